/*
 * What the files about sys.monitoring (PEP 669, CPython 3.12 and later) share: the events, the
 * callback object, and the collector's hooks. hooks_monitoring.c installs; monitoring_calls.c and
 * monitoring_lines.c and monitoring_trace.c are what is called; monitoring_program.c is about the program's own tools.
 *
 * Threads: the GIL protects everything here.
 */
#ifndef FM_AGENT_MONITORING_H
#define FM_AGENT_MONITORING_H

#include "target/agent/functions.h"
#include "target/agent/hooks/hooks.h"
#include "target/agent/regions/region_type.h"

#if FM_HAS_MONITORING

enum fm_event {
    FM_START,
    FM_RESUME,
    FM_THROW,
    FM_RETURN,
    FM_YIELD,
    FM_UNWIND,
    FM_LINE,
    FM_RAISE,
    FM_CALL,
    FM_C_RETURN,
    FM_C_RAISE,
    FM_EVENT_COUNT
};

/* Its vectorcall slot is the C function itself. */
struct fm_callback {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    struct fm_collector *collector; /* NULL once the collector is gone: events may still come */
};

struct fm_hooks {
    int tool_id;
    PyObject *monitoring;
    PyObject *missing; /* sys.monitoring.MISSING: a call without arguments */
    PyObject *disable; /* sys.monitoring.DISABLE: no more of this event at this place */
    long bits[FM_EVENT_COUNT];
    PyObject *callbacks[FM_EVENT_COUNT]; /* struct fm_callback, or NULL */
    PyObject *listened; /* weak references to code objects with events of their own, or NULL */
    Py_ssize_t sweep_at;
    void *serial; /* no two installations have the same; it marks such code objects */
};

static inline struct fm_collector *fm_callback_collector(PyObject *callback)
{
    return ((struct fm_callback *)callback)->collector;
}

/* Do we listen to the events of this code already? */
static inline bool fm_hooks_listen_to(const struct fm_collector *c, PyCodeObject *code)
{
    return fm_python_code_extra(code, fm_listen_index[c->slot]) == c->hooks->serial;
}

/* Is this event asked for everywhere, not by function? */
bool fm_hooks_is_global(const struct fm_collector *c, int event);

/* Is the tool id still ours? */
bool fm_hooks_own_tool_id(const struct fm_hooks *hooks);

/* From now on a program that frees our tool id ends the recording, which says so. */
void fm_monitoring_watch_ids(PyObject *monitoring);

/* Callbacks by event; NULL where there is none. */
extern const vectorcallfunc fm_monitoring_calls[FM_EVENT_COUNT];
extern const vectorcallfunc fm_monitoring_lines[FM_EVENT_COUNT];
extern const vectorcallfunc fm_monitoring_trace[FM_EVENT_COUNT];
extern const vectorcallfunc fm_monitoring_brief[FM_EVENT_COUNT]; /* … and short calls are hidden */

/* A generator goes on, and gives up control; these know about lines. */
PyObject *fm_monitoring_resume(PyObject *self, PyObject *const *args, size_t nargs,
                               PyObject *kwnames);
PyObject *fm_monitoring_yield(PyObject *self, PyObject *const *args, size_t nargs,
                              PyObject *kwnames);

/* Entering and leaving a region is no call: the region would be inside of it, and not in its function. */
static inline bool fm_is_region_method(const PyMethodDef *def)
{
#if FM_WITH_BINDS
    (void)def;
    return false;
#else
    return (uintptr_t)def - (uintptr_t)fm_region_methods < 2 * sizeof *def;
#endif
}

/* The method definition behind a callable that is a C function as cProfile counts them: a builtin
 * function or method, or a method descriptor called with an object of its type. Else NULL. */
static inline const PyMethodDef *fm_c_definition(const struct fm_collector *c, PyObject *callable,
                                                 PyObject *first_argument)
{
    PyTypeObject *type = Py_TYPE(callable);
    const PyMethodDef *def = NULL;
    if (type == &PyCFunction_Type || type == &PyCMethod_Type) {
        def = ((PyCFunctionObject *)callable)->m_ml;
    } else if (type == &PyMethodDescr_Type && first_argument != c->hooks->missing) {
        PyMethodDescrObject *descriptor = (PyMethodDescrObject *)callable;
        if (PyObject_TypeCheck(first_argument, descriptor->d_common.d_type))
            def = descriptor->d_method;
    }
    return fm_is_region_method(def) ? NULL : def;
}

#endif

#endif
