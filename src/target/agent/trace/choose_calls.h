/*
 * Which functions are in the trace: those that `--include` names, or all, without those that
 * `--exclude` names. Patterns are those of lines (lines/choose.h); for C functions, a glob against the
 * name.
 *
 * Decided once for each function, together with its definition in the live store. Threads: the GIL.
 */
#ifndef FM_AGENT_TRACE_CHOOSE_CALLS_H
#define FM_AGENT_TRACE_CHOOSE_CALLS_H

#include "target/agent/collector.h"

/* Is the function to be shown, and defined? `key` is its code or definition. */
bool fm_trace_choose(struct fm_collector *c, struct fm_func *f, const void *key);

static inline bool fm_trace_is_shown(struct fm_collector *c, struct fm_func *f, const void *key)
{
    return f->trace_word || (f->id && f->trace_choice == FM_TRACE_SHOWN) ||
           (f->trace_choice != FM_TRACE_NOT_SHOWN && fm_trace_choose(c, f, key));
}

#endif
