/*
 * A trace that begins while the program runs (--paused, trace_start(), `attach --trace`), stops, and goes on.
 *
 * A thread's calls that are open then are found on its stack at its first event, and told as open before
 * that (FM_TRACE_OPEN): so readers have the whole stack, and ends meet their begins. C functions that are open
 * nobody can see. When the trace stops, all that is open is closed; the thread stays the same one.
 *
 * Threads: the GIL.
 */
#ifndef FM_AGENT_TRACE_LATE_H
#define FM_AGENT_TRACE_LATE_H

#include "target/agent/trace/trace.h"

/* Put what runs in this thread on its stack, to be told before anything else, and tell its regions. What is
 * about to be told itself is none of it: the newest call, if its code is `begins`, or the newest region. */
void fm_trace_find_open(struct fm_collector *c, struct fm_agent_thread *t, const void *begins,
                        bool region_begins);

/* There is no room. If that is because whoever attached is gone, the trace ends soon. */
void fm_trace_nobody_listens(struct fm_collector *c);

/* The code that really runs in this thread, the newest first: at most `cap` of it. How much there is. */
size_t fm_running_code(const void **into, size_t cap);

/* Listen, or no longer: 1 if that is new, 0 if it is so already, −1 with an exception. */
int fm_trace_go_on(struct fm_collector *c);
int fm_trace_pause(struct fm_collector *c);

#endif
