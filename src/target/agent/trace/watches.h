/*
 * Variables at lines (--watch FILE:LINE:NAME): each time the line is reached, the value that the variable has
 * then. A number is a counter of the trace, which is drawn as a curve; anything else an instant with a text.
 *
 * From 3.12 on only functions of that file have events of lines, and each of their lines but those that are
 * watched has one. On 3.11 the trace function is on in these functions, or with C calls in all.
 *
 * Threads: the GIL.
 */
#ifndef FM_AGENT_TRACE_WATCHES_H
#define FM_AGENT_TRACE_WATCHES_H

#include "target/agent/trace/trace.h"

/* Which watches may be about the code: a bit each. */
uint32_t fm_trace_watches_of(const struct fm_collector *c, PyCodeObject *code);

/* A line is reached by the innermost frame. False: nothing at this line is watched. */
bool fm_trace_watches_line(struct fm_collector *c, struct fm_agent_thread *t, PyCodeObject *code,
                           const void *frame, uint32_t watches, int line);

#endif
