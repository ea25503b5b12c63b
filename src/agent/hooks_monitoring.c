/*
 * Events from sys.monitoring (PEP 669), CPython 3.12 and later.
 *
 * Each event has a callback object of our own type, whose vectorcall slot is the C function itself:
 * the interpreter calls it with no argument parsing and no recursion check in between, so a program
 * near its recursion limit behaves as without us. All events are global to the interpreter and thus
 * cover every thread; other interpreters have no tool of ours and are left alone.
 *
 * CALL is needed because C_RETURN and C_RAISE exist only together with it; it also fires for calls
 * of Python functions, which are let through by their type alone.
 */
#include "agent/functions.h"
#include "agent/hooks.h"

#include <stddef.h>

#if FM_HAS_MONITORING

enum event { START, RESUME, THROW, RETURN, YIELD, UNWIND, CALL, C_RETURN, C_RAISE, EVENT_COUNT };

static const char *const event_names[EVENT_COUNT] = {
    "PY_START",  "PY_RESUME", "PY_THROW", "PY_RETURN", "PY_YIELD",
    "PY_UNWIND", "CALL",      "C_RETURN", "C_RAISE",
};

struct callback {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    struct fm_collector *collector;
};

struct fm_hooks {
    int tool_id;
    PyObject *monitoring;
    PyObject *missing; /* sys.monitoring.MISSING: a call without arguments */
};

/* ---- the callbacks ----------------------------------------------------------------------- */

#define COLLECTOR(self) (((struct callback *)(self))->collector)

static PyObject *on_start(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    struct fm_collector *c = COLLECTOR(self);
    struct fm_thread *t = fm_collector_thread(c);
    struct fm_func *f = fm_function_of_code(c, (PyCodeObject *)args[0]);
    if (__builtin_expect(t && f, 1))
        fm_enter(c, t, f, args[0]);
    Py_RETURN_NONE;
}

static PyObject *on_resume(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    struct fm_collector *c = COLLECTOR(self);
    struct fm_thread *t = fm_collector_thread(c);
    struct fm_func *f = fm_function_of_code(c, (PyCodeObject *)args[0]);
    if (__builtin_expect(t && f, 1))
        fm_resume(c, t, f, args[0], fm_python_frame());
    Py_RETURN_NONE;
}

static PyObject *on_return(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    struct fm_collector *c = COLLECTOR(self);
    uint64_t now = fm_collector_now(c);
    struct fm_thread *t = fm_collector_thread(c);
    if (__builtin_expect(t != NULL, 1))
        fm_leave(c, t, args[0], now);
    Py_RETURN_NONE;
}

static PyObject *on_yield(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    struct fm_collector *c = COLLECTOR(self);
    uint64_t now = fm_collector_now(c);
    struct fm_thread *t = fm_collector_thread(c);
    if (__builtin_expect(t != NULL, 1))
        fm_yield(c, t, args[0], fm_python_frame(), now);
    Py_RETURN_NONE;
}

/* The method definition behind a callable that is a C function as cProfile counts them: a builtin
 * function or method, or a method descriptor called with an object of its type. Else NULL. */
static inline const PyMethodDef *c_definition(struct fm_collector *c, PyObject *callable,
                                              PyObject *first_argument)
{
    PyTypeObject *type = Py_TYPE(callable);
    if (type == &PyCFunction_Type || type == &PyCMethod_Type)
        return ((PyCFunctionObject *)callable)->m_ml;
    if (type == &PyMethodDescr_Type && first_argument != c->hooks->missing) {
        PyMethodDescrObject *descriptor = (PyMethodDescrObject *)callable;
        if (PyObject_TypeCheck(first_argument, descriptor->d_common.d_type))
            return descriptor->d_method;
    }
    return NULL;
}

static PyObject *on_call(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    struct fm_collector *c = COLLECTOR(self);
    const PyMethodDef *def = c_definition(c, args[2], args[3]);
    if (!def)
        Py_RETURN_NONE;
    struct fm_thread *t = fm_collector_thread(c);
    struct fm_func *f = fm_function_of_c(c, args[2], def);
    if (__builtin_expect(t && f, 1))
        fm_enter(c, t, f, def);
    Py_RETURN_NONE;
}

static PyObject *on_c_return(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    struct fm_collector *c = COLLECTOR(self);
    uint64_t now = fm_collector_now(c);
    const PyMethodDef *def = c_definition(c, args[2], args[3]);
    if (!def)
        Py_RETURN_NONE;
    struct fm_thread *t = fm_collector_thread(c);
    if (__builtin_expect(t != NULL, 1))
        fm_leave(c, t, def, now);
    Py_RETURN_NONE;
}

static const vectorcallfunc event_callbacks[EVENT_COUNT] = {
    on_start, on_resume, on_resume, on_return, on_yield, on_return, on_call, on_c_return, on_c_return,
};

static void callback_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef callback_members[] = {
    { "__vectorcalloffset__", Py_T_PYSSIZET, offsetof(struct callback, vectorcall), Py_READONLY,
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
    .basicsize = sizeof(struct callback),
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
    struct callback *callback = PyObject_New(struct callback, type);
    if (callback) {
        callback->vectorcall = function;
        callback->collector = c;
    }
    return (PyObject *)callback;
}

/* ---- installing -------------------------------------------------------------------------- */

/* A tool id that nobody has: 3 and 4 have no meaning by convention, the others only if need be. An
 * id that belongs to somebody is never touched. */
static int take_tool_id(PyObject *monitoring)
{
    static const int preferred[] = { 4, 3, 5, 2, 1, 0 };
    for (size_t i = 0; i < sizeof preferred / sizeof *preferred; i++) {
        PyObject *done = PyObject_CallMethod(monitoring, "use_tool_id", "is", preferred[i], "fathom");
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

/* Register (or, without collector, unregister) one callback; returns its event bit or −1. */
static long register_event(struct fm_hooks *hooks, struct fm_collector *c, int event)
{
    PyObject *events = PyObject_GetAttrString(hooks->monitoring, "events");
    PyObject *bit = events ? PyObject_GetAttrString(events, event_names[event]) : NULL;
    PyObject *callback = c ? new_callback(c, event_callbacks[event]) : Py_NewRef(Py_None);
    PyObject *old = NULL;
    long value = bit ? PyLong_AsLong(bit) : -1;
    if (bit && callback)
        old = PyObject_CallMethod(hooks->monitoring, "register_callback", "iOO", hooks->tool_id, bit,
                                  callback);
    if (!old)
        value = -1;
    Py_XDECREF(old);
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

static int listen(struct fm_hooks *hooks, struct fm_collector *c)
{
    long events = 0;
    for (int event = 0; event < EVENT_COUNT; event++) {
        if (event >= CALL && !c->c_calls)
            break;
        long bit = register_event(hooks, c, event);
        if (bit < 0)
            return -1;
        /* C_RETURN and C_RAISE come with CALL and cannot be asked for by themselves. */
        if (event <= CALL)
            events |= bit;
    }
    return set_events(hooks, events);
}

int fm_hooks_install(struct fm_collector *c)
{
    struct fm_hooks *hooks = PyMem_RawCalloc(1, sizeof *hooks);
    if (!hooks) {
        PyErr_NoMemory();
        return -1;
    }
    c->hooks = hooks;
    hooks->tool_id = -1;
    hooks->monitoring = Py_XNewRef(PySys_GetObject("monitoring"));
    if (hooks->monitoring)
        hooks->missing = PyObject_GetAttrString(hooks->monitoring, "MISSING");
    if (hooks->missing)
        hooks->tool_id = take_tool_id(hooks->monitoring);
    if (hooks->tool_id < 0)
        c->store.header->lost[FM_LIVE_LOST_TOOL_ID]++;
    if (hooks->tool_id < 0 || listen(hooks, c) < 0) {
        struct fm_raised raised = fm_python_put_aside();
        fm_hooks_remove(c);
        fm_python_put_back(raised);
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError, "sys.monitoring is not available");
        return -1;
    }
    return 0;
}

int fm_hooks_remove(struct fm_collector *c)
{
    struct fm_hooks *hooks = c->hooks;
    int rc = 0;
    if (!hooks)
        return 0;
    if (hooks->tool_id >= 0) {
        if (set_events(hooks, 0) < 0)
            rc = -1;
        for (int event = 0; event < EVENT_COUNT && rc == 0; event++)
            if (register_event(hooks, NULL, event) < 0)
                rc = -1;
        PyObject *done =
            PyObject_CallMethod(hooks->monitoring, "free_tool_id", "i", hooks->tool_id);
        Py_XDECREF(done);
        if (!done)
            rc = -1;
    }
    Py_XDECREF(hooks->missing);
    Py_XDECREF(hooks->monitoring);
    PyMem_RawFree(hooks);
    c->hooks = NULL;
    return rc;
}

#endif
