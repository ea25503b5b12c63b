/*
 * Events from sys.monitoring (PEP 669), CPython 3.12 and later.
 *
 * Each event has a callback object of our own type, whose vectorcall slot is the C function itself:
 * the interpreter calls it with no argument parsing and no recursion check in between, so a program
 * near its recursion limit behaves as without us. All events are global to the interpreter and thus
 * cover every thread; other interpreters have no tool of ours and are left alone.
 *
 * With lines, the lines of a chosen function come from events of that function alone
 * (set_local_events); a function that is not chosen answers its first PY_START with DISABLE and
 * costs nothing from then on.
 *
 * CALL is needed because C_RETURN and C_RAISE exist only together with it; it also fires for calls
 * of Python functions, which are let through by their type alone.
 */
#include "target/agent/hooks/monitoring.h"

#include <stddef.h>

#include "target/agent/hooks/program_tools.h"

#if FM_HAS_MONITORING

static const char *const event_names[FM_EVENT_COUNT] = {
    "PY_START", "PY_RESUME", "PY_THROW", "PY_RETURN", "PY_YIELD", "PY_UNWIND",
    "LINE",     "RAISE",     "CALL",     "C_RETURN",  "C_RAISE",
};

static void callback_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef callback_members[] = {
    { "__vectorcalloffset__", Py_T_PYSSIZET, offsetof(struct fm_callback, vectorcall), Py_READONLY,
      NULL },
    { NULL, 0, 0, 0, NULL },
};

static PyType_Slot callback_slots[] = {
    { Py_tp_dealloc, (void *)callback_dealloc },
    { Py_tp_call, (void *)PyVectorcall_Call },
    { Py_tp_members, callback_members },
    { 0, NULL },
};

static PyType_Spec callback_spec = {
    .name = "fathom._agent.callback",
    .basicsize = sizeof(struct fm_callback),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = callback_slots,
};

/* The type lives as long as the process: callbacks may be called until the very end. */
static PyObject *new_callback(struct fm_collector *c, vectorcallfunc function)
{
    static PyTypeObject *type;
    if (!type)
        type = (PyTypeObject *)PyType_FromSpec(&callback_spec);
    if (!type)
        return NULL;
    struct fm_callback *callback = PyObject_New(struct fm_callback, type);
    if (callback) {
        callback->vectorcall = function;
        callback->collector = c;
    }
    return (PyObject *)callback;
}

/* ---- installing -------------------------------------------------------------------------- */

/* A tool id that nobody has. 5 first: it is meant for optimisers, and no program is likely to miss
 * it, while 3 and 4 are what programs take for their own tools. An id of somebody's is never
 * touched. */
static int take_tool_id(PyObject *monitoring)
{
    static const int preferred[] = { 5, 4, 3, 2, 1, 0 };
    for (size_t i = 0; i < sizeof preferred / sizeof *preferred; i++) {
        PyObject *done =
            PyObject_CallMethod(monitoring, "use_tool_id", "is", preferred[i], "fathom");
        Py_XDECREF(done);
        if (done)
            return preferred[i];
        if (!PyErr_ExceptionMatches(PyExc_ValueError))
            return -1;
        PyErr_Clear();
    }
    PyErr_SetString(PyExc_ValueError, "all sys.monitoring tool ids are in use");
    return -1;
}

static vectorcallfunc callback_of(const struct fm_collector *c, int event)
{
    if (c->trace)
        return (c->trace_min_ticks ? fm_monitoring_brief : fm_monitoring_trace)[event];
    return c->lines_on ? fm_monitoring_lines[event] : fm_monitoring_calls[event];
}

/* Register (or, without collector, unregister) one callback; returns its event bit or −1. */
static long register_event(struct fm_hooks *hooks, struct fm_collector *c, int event)
{
    PyObject *events = PyObject_GetAttrString(hooks->monitoring, "events");
    PyObject *bit = events ? PyObject_GetAttrString(events, event_names[event]) : NULL;
    PyObject *callback = c ? new_callback(c, callback_of(c, event)) : Py_NewRef(Py_None);
    PyObject *old = NULL;
    long value = bit ? PyLong_AsLong(bit) : -1;
    if (bit && callback)
        old = PyObject_CallMethod(hooks->monitoring, "register_callback", "iOO", hooks->tool_id,
                                  bit, callback);
    if (!old)
        value = -1;
    Py_XDECREF(old);
    Py_XSETREF(hooks->callbacks[event], c ? Py_XNewRef(callback) : NULL);
    Py_XDECREF(callback);
    Py_XDECREF(bit);
    Py_XDECREF(events);
    return value;
}

static int set_events(struct fm_hooks *hooks, long events)
{
    PyObject *done =
        PyObject_CallMethod(hooks->monitoring, "set_events", "il", hooks->tool_id, events);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* With calls all of them are, else only those by which chosen functions are found, or that cannot be
 * asked for by function (unwinding and throwing, before 3.15). */
bool fm_hooks_is_global(const struct fm_collector *c, int event)
{
    if (event == FM_LINE)
        return false;
    if (event == FM_START)
        return c->calls || c->lines_patterns[0];
    return c->calls || event == FM_UNWIND || event == FM_THROW;
}

static int listen(struct fm_hooks *hooks, struct fm_collector *c)
{
    long events = 0;
    for (int event = 0; event < FM_EVENT_COUNT; event++) {
        if ((event >= FM_CALL && !c->c_calls) || !callback_of(c, event))
            continue;
        hooks->bits[event] = register_event(hooks, c, event);
        if (hooks->bits[event] < 0)
            return -1;
        /* C_RETURN and C_RAISE come with CALL and cannot be asked for by themselves. */
        if (event <= FM_CALL && fm_hooks_is_global(c, event))
            events |= hooks->bits[event];
    }
    PyObject *code;
    for (Py_ssize_t at = 0; c->marked && PyDict_Next(c->marked, &at, NULL, &code);)
        if (fm_hooks_mark(c, (PyCodeObject *)code) < 0)
            return -1;
    return set_events(hooks, events);
}

/* ---- events of single functions ---------------------------------------------------------- */

static int set_local_events(struct fm_hooks *hooks, PyCodeObject *code, long events)
{
    PyObject *done = PyObject_CallMethod(hooks->monitoring, "set_local_events", "iOl",
                                         hooks->tool_id, code, events);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Remember a code object weakly, so that what the program drops goes away; dead ones are swept out
 * when the list has doubled. */
static int remember_code(struct fm_hooks *hooks, PyCodeObject *code)
{
    if (!hooks->listened && !(hooks->listened = PyList_New(0)))
        return -1;
    if (PyList_GET_SIZE(hooks->listened) >= hooks->sweep_at) {
        Py_ssize_t kept = 0, size = PyList_GET_SIZE(hooks->listened);
        for (Py_ssize_t i = 0; i < size; i++) {
            PyObject *reference = PyList_GET_ITEM(hooks->listened, i);
            PyObject *alive = fm_python_weak_target(reference);
            if (alive && kept != i)
                PyList_SetItem(hooks->listened, kept, Py_NewRef(reference));
            kept += alive != NULL;
            Py_XDECREF(alive);
        }
        PyList_SetSlice(hooks->listened, kept, size, NULL);
        hooks->sweep_at = kept * 2 + 1024;
    }
    PyObject *reference = PyWeakref_NewRef((PyObject *)code, NULL);
    int rc = reference ? PyList_Append(hooks->listened, reference) : -1;
    Py_XDECREF(reference);
    return rc;
}

int fm_hooks_mark(struct fm_collector *c, PyCodeObject *code)
{
    struct fm_hooks *hooks = c->hooks;
    long events = 0;
    if (fm_hooks_listen_to(c, code))
        return 0;
    for (int event = FM_START; event <= FM_LINE; event++)
        if (!fm_hooks_is_global(c, event))
            events |= hooks->bits[event];
    if (remember_code(hooks, code) < 0 ||
        fm_python_code_extra_set(code, fm_listen_index[c->slot], hooks->serial) < 0)
        return -1;
    return set_local_events(hooks, code, events);
}

/* Take the events of single functions back, if the tool id is still ours. */
static void release_local(struct fm_hooks *hooks, bool ours)
{
    for (Py_ssize_t i = 0; ours && hooks->listened && i < PyList_GET_SIZE(hooks->listened); i++) {
        PyObject *code = fm_python_weak_target(PyList_GET_ITEM(hooks->listened, i));
        if (code && set_local_events(hooks, (PyCodeObject *)code, 0) < 0)
            PyErr_Clear();
        Py_XDECREF(code);
    }
    Py_CLEAR(hooks->listened);
}

int fm_hooks_install(struct fm_collector *c)
{
    struct fm_hooks *hooks = PyMem_RawCalloc(1, sizeof *hooks);
    if (!hooks) {
        PyErr_NoMemory();
        return -1;
    }
    static uintptr_t serial;
    c->hooks = hooks;
    hooks->tool_id = -1;
    hooks->serial = (void *)++serial;
    hooks->sweep_at = 1024;
    hooks->monitoring = Py_XNewRef(PySys_GetObject("monitoring"));
    if (hooks->monitoring)
        hooks->missing = PyObject_GetAttrString(hooks->monitoring, "MISSING");
    if (hooks->missing)
        hooks->disable = PyObject_GetAttrString(hooks->monitoring, "DISABLE");
    if (hooks->disable)
        hooks->tool_id = take_tool_id(hooks->monitoring);
    if (hooks->tool_id < 0 && c->store.header)
        c->store.header->lost[FM_LIVE_LOST_TOOL_ID]++;
    if (hooks->tool_id < 0 || listen(hooks, c) < 0) {
        struct fm_raised raised = fm_python_put_aside();
        fm_hooks_remove(c);
        fm_python_put_back(raised);
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError, "sys.monitoring is not available");
        return -1;
    }
    fm_program_watch();
    fm_monitoring_watch_ids(hooks->monitoring);
    return 0;
}

/* ---- removing ---------------------------------------------------------------------------- */

/* The program may have freed it, and given it to somebody else. */
bool fm_hooks_own_tool_id(const struct fm_hooks *hooks)
{
    PyObject *name = PyObject_CallMethod(hooks->monitoring, "get_tool", "i", hooks->tool_id);
    bool ours =
        name && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "fathom") == 0;
    Py_XDECREF(name);
    PyErr_Clear();
    return ours;
}

static void give_tool_id_back(struct fm_hooks *hooks)
{
    if (set_events(hooks, 0) < 0)
        PyErr_Clear();
    for (int event = 0; event < FM_EVENT_COUNT; event++)
        if (register_event(hooks, NULL, event) < 0)
            PyErr_Clear();
    PyObject *done = PyObject_CallMethod(hooks->monitoring, "free_tool_id", "i", hooks->tool_id);
    Py_XDECREF(done);
    PyErr_Clear();
}

int fm_hooks_remove(struct fm_collector *c)
{
    struct fm_hooks *hooks = c->hooks;
    if (!hooks)
        return 0;
    /* Whatever happens below, no event reaches the collector any more. */
    for (int event = 0; event < FM_EVENT_COUNT; event++)
        if (hooks->callbacks[event])
            ((struct fm_callback *)hooks->callbacks[event])->collector = NULL;
    bool ours = hooks->tool_id >= 0 && fm_hooks_own_tool_id(hooks);
    release_local(hooks, ours);
    if (ours)
        give_tool_id_back(hooks);
    for (int event = 0; event < FM_EVENT_COUNT; event++)
        Py_XDECREF(hooks->callbacks[event]);
    Py_XDECREF(hooks->missing);
    Py_XDECREF(hooks->disable);
    Py_XDECREF(hooks->monitoring);
    PyMem_RawFree(hooks);
    c->hooks = NULL;
    return 0;
}

#endif
