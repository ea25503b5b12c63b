/*
 * The callbacks of sys.monitoring when every call is told (--trace); see monitoring.h and
 * trace/trace.h.
 *
 * The simple case of each event is here, without a call of another function. It needs no look at the
 * collector: a thread that is not in its trace has no room to write.
 */
#include "target/agent/hooks/monitoring.h"
#include "target/agent/regions/foreign.h"
#include "target/agent/trace/exceptions.h"
#include "target/agent/trace/trace.h"
#include "target/agent/trace/values.h"
#include "target/agent/trace/watches.h"

#if FM_HAS_MONITORING

static __attribute__((noinline)) PyObject *enter_code(PyObject *self, PyCodeObject *code,
                                                      enum fm_trace_begin how)
{
    struct fm_collector *c = fm_callback_collector(self);
    if (!c)
        Py_RETURN_NONE;
    struct fm_agent_thread *t = fm_collector_thread(c);
    struct fm_func *f = fm_function_of_code(c, code);
    if (!t || !f)
        fm_collector_lost_call(c);
    else
        fm_trace_enter(c, t, f, code, fm_python_frame(), how);
    if (f && f->trace_word)
        fm_function_keep_word(code, f);
    Py_RETURN_NONE;
}

static __attribute__((noinline)) PyObject *leave_call(PyObject *self, const void *key, uint64_t now,
                                                      enum fm_trace_end how, PyObject *value)
{
    struct fm_collector *c = fm_callback_collector(self);
    struct fm_agent_thread *t = c ? fm_collector_thread(c) : NULL;
    if (t)
        fm_trace_leave(c, t, key, how == FM_TRACE_YIELDED ? fm_python_frame() : NULL, now, how,
                       value);
    Py_RETURN_NONE;
}

/* A region that is this call's own ends before it does; the tool that hears of its begin would be told later. */
static inline void end_followed(PyObject *code)
{
    if (__builtin_expect(fm_foreign_count, 0))
        fm_foreign_leave((PyCodeObject *)code, fm_python_frame());
}

static PyObject *on_start(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    PyCodeObject *code = (PyCodeObject *)args[0];
    struct fm_agent_thread *t = fm_current[FM_TRACE_SLOT];
    const struct fm_func *f;
    uint32_t word;
    if (__builtin_expect(
            t && fm_function_has_word(code, &f, &word) && fm_trace_call(t, f, word, code), 1))
        Py_RETURN_NONE;
    return enter_code(self, code, FM_TRACE_CALLED);
}

static inline PyObject *return_now(PyObject *self, PyObject *const *args)
{
    uint64_t now = fm_clock_ticks();
    struct fm_agent_thread *t = fm_current[FM_TRACE_SLOT];
    if (__builtin_expect(t && fm_trace_return(t, args[0], now), 1))
        Py_RETURN_NONE;
    return leave_call(self, args[0], now, FM_TRACE_RETURNED, args[2]);
}

/* Apart, so that the usual case saves no registers. */
static __attribute__((noinline)) PyObject *return_followed(PyObject *self, PyObject *const *args)
{
    end_followed(args[0]);
    return return_now(self, args);
}

static PyObject *on_return(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    return __builtin_expect(fm_foreign_count, 0) ? return_followed(self, args)
                                                 : return_now(self, args);
}

static PyObject *on_resume(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    const void *generator = fm_python_frame(); /* a call: before there is more to keep across it */
    PyCodeObject *code = (PyCodeObject *)args[0];
    struct fm_agent_thread *t = fm_current[FM_TRACE_SLOT];
    const struct fm_func *f;
    uint32_t word;
    if (__builtin_expect(t && fm_function_has_word(code, &f, &word) &&
                             fm_trace_resume(t, f, word, code, generator),
                         1))
        Py_RETURN_NONE;
    return enter_code(self, code, FM_TRACE_RESUMED);
}

static PyObject *on_throw(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    return enter_code(self, (PyCodeObject *)args[0], FM_TRACE_THROWN);
}

static PyObject *on_yield(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    uint64_t now = fm_clock_ticks();
    const void *generator = fm_python_frame();
    struct fm_agent_thread *t = fm_current[FM_TRACE_SLOT];
    if (__builtin_expect(t && fm_trace_yield(t, args[0], generator, now), 1))
        Py_RETURN_NONE;
    return leave_call(self, args[0], now, FM_TRACE_YIELDED, args[2]);
}

static PyObject *on_unwind(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    end_followed(args[0]);
    return leave_call(self, args[0], fm_clock_ticks(), FM_TRACE_UNWOUND, args[2]);
}

static __attribute__((noinline)) PyObject *enter_c(PyObject *self, PyObject *callable,
                                                   const PyMethodDef *def)
{
    struct fm_collector *c = fm_callback_collector(self);
    if (!c)
        Py_RETURN_NONE;
    struct fm_agent_thread *t = fm_collector_thread(c);
    struct fm_func *f = fm_function_of_c(c, callable, def);
    if (!t || !f)
        fm_collector_lost_call(c);
    else
        fm_trace_enter(c, t, f, def, NULL, FM_TRACE_CALLED);
    Py_RETURN_NONE;
}

static PyObject *on_call(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    const struct fm_collector *c = fm_callback_collector(self);
    const PyMethodDef *def = c ? fm_c_definition(c, args[2], args[3]) : NULL;
    if (!def)
        Py_RETURN_NONE;
    struct fm_agent_thread *t = fm_current[FM_TRACE_SLOT];
    const struct fm_func *f = fm_function_in_cache(FM_TRACE_SLOT, def);
    if (__builtin_expect(t && f && f->trace_word && fm_trace_call(t, f, f->trace_word, def), 1))
        Py_RETURN_NONE;
    return enter_c(self, args[2], def);
}

static PyObject *on_c_return(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    uint64_t now = fm_clock_ticks();
    const struct fm_collector *c = fm_callback_collector(self);
    const PyMethodDef *def = c ? fm_c_definition(c, args[2], args[3]) : NULL;
    struct fm_agent_thread *t = fm_current[FM_TRACE_SLOT];
    if (!def || __builtin_expect(t && fm_trace_return(t, def, now), 1))
        Py_RETURN_NONE;
    return leave_call(self, def, now, FM_TRACE_RETURNED, NULL);
}

static PyObject *on_c_raise(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    uint64_t now = fm_clock_ticks();
    const struct fm_collector *c = fm_callback_collector(self);
    const PyMethodDef *def = c ? fm_c_definition(c, args[2], args[3]) : NULL;
    if (!def)
        Py_RETURN_NONE;
    return leave_call(self, def, now, FM_TRACE_UNWOUND, NULL);
}

static PyObject *on_raise(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    struct fm_collector *c = fm_callback_collector(self);
    struct fm_agent_thread *t = c ? fm_collector_thread(c) : NULL;
    if (t && args[2])
        fm_trace_exception(c, t, args[2]);
    Py_RETURN_NONE;
}

/* Of functions that have events of lines (--watch). */
static PyObject *on_line(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    struct fm_collector *c = fm_callback_collector(self);
    struct fm_agent_thread *t = c ? fm_collector_thread(c) : NULL;
    PyCodeObject *code = (PyCodeObject *)args[0];
    const struct fm_func *f = c ? fm_function_of_code(c, code) : NULL;
    if (!t || !f)
        Py_RETURN_NONE;
    int line = (int)PyLong_AsLong(args[1]);
    bool watched =
        f->asked && fm_trace_watches_line(c, t, code, fm_python_frame(), f->asked->watches, line);
    return Py_NewRef(watched ? Py_None : c->hooks->disable);
}

const vectorcallfunc fm_monitoring_trace[FM_EVENT_COUNT] = {
    [FM_START] = on_start,       [FM_RESUME] = on_resume,   [FM_THROW] = on_throw,
    [FM_RETURN] = on_return,     [FM_YIELD] = on_yield,     [FM_UNWIND] = on_unwind,
    [FM_LINE] = on_line,         [FM_RAISE] = on_raise,     [FM_CALL] = on_call,
    [FM_C_RETURN] = on_c_return, [FM_C_RAISE] = on_c_raise,
};

/* ---- when short calls are hidden --------------------------------------------------------- */

static PyObject *on_brief_return(PyObject *self, PyObject *const *args, size_t nargs,
                                 PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    end_followed(args[0]);
    return leave_call(self, args[0], fm_clock_ticks(), FM_TRACE_RETURNED, args[2]);
}

static PyObject *on_brief_c_return(PyObject *self, PyObject *const *args, size_t nargs,
                                   PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    uint64_t now = fm_clock_ticks();
    const struct fm_collector *c = fm_callback_collector(self);
    const PyMethodDef *def = c ? fm_c_definition(c, args[2], args[3]) : NULL;
    if (!def)
        Py_RETURN_NONE;
    return leave_call(self, def, now, FM_TRACE_RETURNED, NULL);
}

static PyObject *on_brief_yield(PyObject *self, PyObject *const *args, size_t nargs,
                                PyObject *kwnames)
{
    (void)nargs, (void)kwnames;
    return leave_call(self, args[0], fm_clock_ticks(), FM_TRACE_YIELDED, args[2]);
}

const vectorcallfunc fm_monitoring_brief[FM_EVENT_COUNT] = {
    [FM_START] = on_start,       [FM_RESUME] = on_resume,
    [FM_THROW] = on_throw,       [FM_RETURN] = on_brief_return,
    [FM_YIELD] = on_brief_yield, [FM_UNWIND] = on_unwind,
    [FM_LINE] = on_line,         [FM_RAISE] = on_raise,
    [FM_CALL] = on_call,         [FM_C_RETURN] = on_brief_c_return,
    [FM_C_RAISE] = on_c_raise,
};

#endif
