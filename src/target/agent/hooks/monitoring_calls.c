/* The callbacks of sys.monitoring when calls are recorded, and no lines; see monitoring.h. */
#include "target/agent/hooks/monitoring.h"

#if FM_HAS_MONITORING

static PyObject *on_start(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    struct fm_collector *c = fm_callback_collector(self);
    if (__builtin_expect(!c, 0))
        Py_RETURN_NONE;
    struct fm_agent_thread *t = fm_collector_thread(c);
    struct fm_func *f = fm_function_of_code(c, (PyCodeObject *)args[0]);
    if (__builtin_expect(t && f, 1))
        fm_enter(c, t, f, args[0]);
    else
        fm_collector_lost_call(c);
    Py_RETURN_NONE;
}

PyObject *fm_monitoring_resume(PyObject *self, PyObject *const *args, size_t nargs,
                               PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    struct fm_collector *c = fm_callback_collector(self);
    if (__builtin_expect(!c, 0))
        Py_RETURN_NONE;
    struct fm_agent_thread *t = fm_collector_thread(c);
    struct fm_func *f = fm_function_of_code(c, (PyCodeObject *)args[0]);
    if (__builtin_expect(t && f, 1))
        fm_resume(c, t, f, args[0], fm_python_frame(), 0);
    Py_RETURN_NONE;
}

static PyObject *on_return(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    struct fm_collector *c = fm_callback_collector(self);
    if (__builtin_expect(!c, 0))
        Py_RETURN_NONE;
    uint64_t now = fm_collector_now(c);
    struct fm_agent_thread *t = fm_collector_thread(c);
    if (__builtin_expect(t != NULL, 1))
        fm_leave(c, t, args[0], now);
    Py_RETURN_NONE;
}

PyObject *fm_monitoring_yield(PyObject *self, PyObject *const *args, size_t nargs,
                              PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    struct fm_collector *c = fm_callback_collector(self);
    if (__builtin_expect(!c, 0))
        Py_RETURN_NONE;
    uint64_t now = fm_collector_now(c);
    struct fm_agent_thread *t = fm_collector_thread(c);
    if (__builtin_expect(t != NULL, 1))
        fm_yield(c, t, args[0], fm_python_frame(), now);
    Py_RETURN_NONE;
}

static PyObject *on_call(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    struct fm_collector *c = fm_callback_collector(self);
    if (__builtin_expect(!c, 0))
        Py_RETURN_NONE;
    const PyMethodDef *def = fm_c_definition(c, args[2], args[3]);
    if (!def)
        Py_RETURN_NONE;
    struct fm_agent_thread *t = fm_collector_thread(c);
    struct fm_func *f = fm_function_of_c(c, args[2], def);
    if (__builtin_expect(t && f, 1))
        fm_enter(c, t, f, def);
    else
        fm_collector_lost_call(c);
    Py_RETURN_NONE;
}

static PyObject *on_c_return(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    struct fm_collector *c = fm_callback_collector(self);
    if (__builtin_expect(!c, 0))
        Py_RETURN_NONE;
    uint64_t now = fm_collector_now(c);
    const PyMethodDef *def = fm_c_definition(c, args[2], args[3]);
    if (!def)
        Py_RETURN_NONE;
    struct fm_agent_thread *t = fm_collector_thread(c);
    if (__builtin_expect(t != NULL, 1))
        fm_leave(c, t, def, now);
    Py_RETURN_NONE;
}

const vectorcallfunc fm_monitoring_calls[FM_EVENT_COUNT] = {
    [FM_START] = on_start,   [FM_RESUME] = fm_monitoring_resume, [FM_THROW] = fm_monitoring_resume,
    [FM_RETURN] = on_return, [FM_YIELD] = fm_monitoring_yield,   [FM_UNWIND] = on_return,
    [FM_CALL] = on_call,     [FM_C_RETURN] = on_c_return,        [FM_C_RAISE] = on_c_return,
};

#endif
