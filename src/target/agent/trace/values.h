/*
 * Values in a trace (--args, --returns): what chosen functions were called with, and what they returned or
 * yielded, as short texts (render.h). Variables at lines (watches.h) share their bounds.
 *
 * A function of which something is asked has a record, `asked` of struct fm_func, and its calls go the slow
 * way; others cost nothing. Arguments are looked at before the call begins, so that the time this takes is
 * the caller's, and told right behind its begin, with the same time; a result right before its end.
 *
 * Bounds: a text has at most FM_TRACE_VALUE_BYTES bytes, a call at most FM_TRACE_ARGUMENTS arguments, and a
 * process tells at most 1 MiB of values in a second. What is beyond is left out, and counted.
 *
 * A look takes microseconds, of which what a call costs (calibrate.h) knows nothing: each is timed, and is
 * time that Fathom added.
 *
 * Threads: the GIL.
 */
#ifndef FM_AGENT_TRACE_VALUES_H
#define FM_AGENT_TRACE_VALUES_H

#include "target/agent/trace/render.h"
#include "target/agent/trace/trace.h"

#define FM_TRACE_ARGUMENTS 16

struct fm_trace_asked {
    bool args, results, imports;
    uint32_t watches; /* a bit each; see watches.h */
    uint32_t era;     /* of the names */
    int count;        /* of arguments that are told */
    uint32_t names[FM_TRACE_ARGUMENTS];
};

struct fm_trace_arguments {
    int count;
    struct fm_rendered texts[FM_TRACE_ARGUMENTS];
};

/* A look at values, as it began. */
struct fm_trace_look {
    uint64_t since, cpu_ns;
    uint64_t waited; /* for room, which is told of by itself */
    bool repr;       /* code of the program may run */
};

/* Around a look, or what is told of it. CPython has no events of what repr() runs, so there is no look within
 * another; what others do while it has given up the GIL is not counted. */
struct fm_trace_look fm_trace_look_begins(const struct fm_collector *c, bool repr);
void fm_trace_look_ends(struct fm_collector *c, struct fm_trace_look look);

/* What is asked of the function? Decided once, together with whether it is shown. */
void fm_trace_ask_of(const struct fm_collector *c, struct fm_func *f, PyCodeObject *code);

/* Look at the arguments of a call that begins, and tell them when it has begun. */
void fm_trace_arguments_look(struct fm_collector *c, const struct fm_func *f, PyCodeObject *code,
                             const void *frame, struct fm_trace_arguments *to);
void fm_trace_arguments_tell(struct fm_collector *c, struct fm_agent_thread *t, struct fm_func *f,
                             PyCodeObject *code, const struct fm_trace_arguments *arguments);

/* The innermost call is about to end with this value. */
void fm_trace_result_tell(struct fm_collector *c, struct fm_agent_thread *t,
                          const struct fm_func *f, PyObject *value, uint64_t now,
                          enum fm_trace_end how);

/* May so many bytes be told now? If not, one more value is counted as left out. */
bool fm_trace_values_allow(struct fm_collector *c, size_t bytes);

/* The value of a variable of a frame, a local of its own or shared with others; borrowed, or NULL. */
PyObject *fm_trace_variable(PyCodeObject *code, const void *frame, int n);

#endif
