/* The callbacks of sys.monitoring when lines are recorded; see monitoring.h and lines.h. */
#include "target/agent/hooks/monitoring.h"
#include "target/agent/lines/lines.h"

#if FM_HAS_MONITORING

/* The first call of a chosen function: ask for its lines. */
static void listen_to_code(struct fm_collector *c, PyCodeObject *code)
{
    uint64_t since = fm_clock_ticks();
    struct fm_raised raised = fm_python_put_aside();
    if (fm_hooks_mark(c, code) < 0)
        PyErr_Clear();
    fm_python_put_back(raised);
    fm_collector_charge(c, since);
}

static PyObject *lines_start(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    struct fm_collector *c = fm_callback_collector(self);
    if (__builtin_expect(!c, 0))
        Py_RETURN_NONE;
    PyCodeObject *code = (PyCodeObject *)args[0];
    struct fm_agent_thread *t = fm_collector_thread(c);
    struct fm_func *f = t ? fm_function_of_code(c, code) : NULL;
    if (!f) {
        fm_collector_lost_call(c);
        Py_RETURN_NONE;
    }
    struct fm_func_lines *lines = fm_lines_of(c, f, code);
    if (!lines && !c->calls)
        return Py_NewRef(c->hooks->disable); /* from now on this function costs nothing */
    if (lines && !fm_hooks_listen_to(c, code))
        listen_to_code(c, code);
    if (fm_enter(c, t, f, args[0]))
        *fm_line_frame_of(t) = (struct fm_line_frame){ 0 };
    Py_RETURN_NONE;
}

static PyObject *lines_line(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    struct fm_collector *c = fm_callback_collector(self);
    if (__builtin_expect(!c, 0))
        Py_RETURN_NONE;
    uint64_t now = fm_collector_now(c);
    struct fm_agent_thread *t = fm_collector_thread(c);
    if (!t || fm_frame_key(t->top) != (uintptr_t)args[0])
        Py_RETURN_NONE; /* it began before we listened, or we do not now */
    struct fm_func *f = (struct fm_func *)(uintptr_t)t->top->func;
    if (f->lines)
        fm_line_event(c, t, f, (int)PyLong_AsLong(args[1]), now);
    Py_RETURN_NONE;
}

/* Is this the end of a call that was not given a frame? Asked without --calls. */
static bool is_beyond(struct fm_collector *c, struct fm_agent_thread *t, PyObject *code)
{
    struct fm_func *f =
        t->beyond ? fm_python_code_extra((PyCodeObject *)code, fm_code_index[c->slot]) : NULL;
    return f && f->lines;
}

static PyObject *lines_return(PyObject *self, PyObject *const *args, size_t nargs,
                              PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    struct fm_collector *c = fm_callback_collector(self);
    if (__builtin_expect(!c, 0))
        Py_RETURN_NONE;
    uint64_t now = fm_collector_now(c);
    struct fm_agent_thread *t = fm_collector_thread(c);
    /* Without --calls, unwinding is told of functions that were never entered here, too. */
    if (t && (c->calls || fm_frame_key(t->top) == (uintptr_t)args[0] || is_beyond(c, t, args[0])))
        fm_leave_with_line(c, t, args[0], now);
    Py_RETURN_NONE;
}

/* Unwinding and throwing are told of every function, also of those that are not ours. */
static PyObject *lines_throw(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    struct fm_collector *c = fm_callback_collector(self);
    if (__builtin_expect(!c, 0))
        Py_RETURN_NONE;
    struct fm_func *f = fm_python_code_extra((PyCodeObject *)args[0], fm_code_index[c->slot]);
    if (!c->running || (!c->calls && (!f || !f->lines)))
        Py_RETURN_NONE;
    PyObject *result = fm_monitoring_resume(self, args, nargs, kwnames);
    /* 3.13 and later tell the line again into which an exception is thrown: no new visit. */
    struct fm_agent_thread *t = fm_current[c->slot];
    if (t)
        fm_line_frame_of(t)->last = 0;
    return result;
}

static PyObject *lines_call(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    struct fm_collector *c = fm_callback_collector(self);
    if (__builtin_expect(!c, 0))
        Py_RETURN_NONE;
    const PyMethodDef *def = fm_c_definition(c, args[2], args[3]);
    struct fm_agent_thread *t = def ? fm_collector_thread(c) : NULL;
    struct fm_func *f = t ? fm_function_of_c(c, args[2], def) : NULL;
    if (def && !f)
        fm_collector_lost_call(c);
    if (f && fm_enter(c, t, f, def))
        *fm_line_frame_of(t) = (struct fm_line_frame){ 0 };
    Py_RETURN_NONE;
}

static PyObject *lines_c_return(PyObject *self, PyObject *const *args, size_t nargs,
                                PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    struct fm_collector *c = fm_callback_collector(self);
    if (__builtin_expect(!c, 0))
        Py_RETURN_NONE;
    uint64_t now = fm_collector_now(c);
    const PyMethodDef *def = fm_c_definition(c, args[2], args[3]);
    struct fm_agent_thread *t = def ? fm_collector_thread(c) : NULL;
    if (t)
        fm_leave_with_line(c, t, def, now);
    Py_RETURN_NONE;
}

const vectorcallfunc fm_monitoring_lines[FM_EVENT_COUNT] = {
    [FM_START] = lines_start,         [FM_RESUME] = fm_monitoring_resume,
    [FM_THROW] = lines_throw,         [FM_RETURN] = lines_return,
    [FM_YIELD] = fm_monitoring_yield, [FM_UNWIND] = lines_return,
    [FM_LINE] = lines_line,           [FM_CALL] = lines_call,
    [FM_C_RETURN] = lines_c_return,   [FM_C_RAISE] = lines_c_return,
};

#endif
