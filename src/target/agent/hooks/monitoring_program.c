/*
 * What the program itself does with the tools of CPython 3.12 and later, as far as it concerns us:
 * its own profile and trace functions (see program_tools.h), and freeing our tool id, which ends
 * the recording.
 *
 * CPython facts relied on: tools are told of an event from the highest id to the lowest,
 * sys.settrace's (7) and sys.setprofile's (6) before ours, until one of them fails. `what_event` of
 * the thread says meanwhile which event it is.
 *
 * Threads: the GIL.
 */
#include "target/agent/hooks/intercept.h"
#include "target/agent/hooks/monitoring.h"
#include "target/agent/hooks/program_tools.h"

#if FM_HAS_MONITORING

/* Who listens to calls, as bits of tool ids; sys.setprofile is one of them. −1 if that cannot be
 * known. */
static long listeners(PyObject *monitoring)
{
    PyObject *events = PyObject_CallMethod(monitoring, "_all_events", NULL);
    PyObject *tools = events ? PyMapping_GetItemString(events, "CALL") : NULL;
    long bits = tools ? PyLong_AsLong(tools) : -1;
    if (events && !tools && PyErr_ExceptionMatches(PyExc_KeyError))
        bits = 0;
    Py_XDECREF(tools);
    Py_XDECREF(events);
    PyErr_Clear();
    return bits;
}

bool fm_hooks_others_listen(PyThreadState *thread)
{
    (void)thread;
    long ours = 0;
    PyObject *monitoring = NULL;
    for (int slot = 0; slot < FM_SLOTS; slot++) {
        struct fm_collector *c = fm_collector_at(slot);
        if (!c || !c->hooks)
            continue;
        ours |= 1L << c->hooks->tool_id;
        monitoring = c->hooks->monitoring;
    }
    return !monitoring || (listeners(monitoring) & ~ours) != 0;
}

/* One of our events, of which we are not told because the program's function has raised. Those
 * that are followed by another about the same call need not be known: after PY_RETURN and PY_YIELD
 * the call goes on with the exception. */
static bool is_missed(const struct fm_collector *c, int event, PyCodeObject *code)
{
    switch (event) {
    case FM_START:
    case FM_RESUME:
    case FM_THROW:
    case FM_UNWIND:
        return fm_hooks_is_global(c, event) || fm_hooks_listen_to(c, code);
    case FM_C_RETURN:
    case FM_C_RAISE:
        return true;
    default:
        return false;
    }
}

/* The program's function has raised in the event of this frame: CPython tells nobody after it. */
static void tell_ourselves(PyFrameObject *frame, PyObject *arg)
{
    struct fm_raised raised = fm_python_put_aside();
    PyCodeObject *code = PyFrame_GetCode(frame);
    PyObject *args[] = { (PyObject *)code, NULL, arg, NULL };
    long bit = 1L << PyThreadState_Get()->what_event;
    for (int slot = 0; slot < FM_SLOTS; slot++) {
        struct fm_collector *c = fm_collector_at(slot);
        struct fm_hooks *hooks = c ? c->hooks : NULL;
        for (int event = 0; hooks && event < FM_EVENT_COUNT; event++) {
            struct fm_callback *callback = (struct fm_callback *)hooks->callbacks[event];
            if (callback && hooks->bits[event] == bit && is_missed(c, event, code))
                Py_XDECREF(callback->vectorcall((PyObject *)callback, args, 4, NULL));
        }
    }
    Py_DECREF(code);
    fm_python_put_back(raised);
}

static int on_program_profile(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    if (fm_program_hides(what, arg))
        return 0;
    int rc = fm_program_profile()(self, frame, what, arg);
    if (rc < 0)
        tell_ourselves(frame, arg);
    return rc;
}

static int on_program_trace(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    int rc = fm_program_trace()(self, frame, what, arg);
    if (rc < 0)
        tell_ourselves(frame, arg);
    return rc;
}

void fm_hooks_profile_was_set(PyThreadState *thread)
{
    if (thread->c_profilefunc && thread->c_profilefunc == fm_program_profile())
        thread->c_profilefunc = on_program_profile;
}

void fm_hooks_trace_was_set(PyThreadState *thread)
{
    if (thread->c_tracefunc && thread->c_tracefunc == fm_program_trace())
        thread->c_tracefunc = on_program_trace;
}

/* ---- our tool id ------------------------------------------------------------------------- */

static PyCFunction free_tool_id, clear_tool_id;

/* The program is about to take a tool id away. If it is ours, it goes in good order, so that what
 * the program does next finds the id as it would without us: in nobody's use. Each interpreter has
 * a sys.monitoring of its own. */
static void lose(PyObject *monitoring, PyObject *id)
{
    for (int slot = 0; slot < FM_SLOTS; slot++) {
        struct fm_collector *c = fm_collector_at(slot);
        if (!c || !c->hooked || c->hooks->monitoring != monitoring ||
            c->hooks->tool_id != PyLong_AsLong(id) || !fm_hooks_own_tool_id(c->hooks))
            continue;
        if (c->store.header)
            c->store.header->lost[FM_LIVE_LOST_TOOL_FREED]++;
        fm_collector_stop(c);
    }
    PyErr_Clear();
}

static PyObject *on_free_tool_id(PyObject *self, PyObject *id)
{
    if (PyLong_Check(id))
        lose(self, id);
    return free_tool_id(self, id);
}

static PyObject *on_clear_tool_id(PyObject *self, PyObject *id)
{
    if (PyLong_Check(id))
        lose(self, id);
    return clear_tool_id(self, id);
}

static void intercept(PyObject *monitoring, const char *name, PyCFunction ours,
                      PyCFunction *original)
{
    PyObject *function = PyObject_GetAttrString(monitoring, name);
    fm_intercept(function, name, ours, original);
    Py_XDECREF(function);
    PyErr_Clear();
}

void fm_monitoring_watch_ids(PyObject *monitoring)
{
    intercept(monitoring, "free_tool_id", on_free_tool_id, &free_tool_id);
    intercept(monitoring, "clear_tool_id", on_clear_tool_id, &clear_tool_id);
}

#endif
