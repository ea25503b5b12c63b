/*
 * The traces of a run: finds PID.N.trace in its folder as processes appear, and empties them in threads of
 * the launcher's own (trace_log.h), some of each in turn, so that none has to wait for another.
 *
 * It sleeps by the clock, briefly while something comes: a process has room for a tenth of a second
 * of its fastest calls, and is not slowed down by having to wake anybody. The end of a process wakes it.
 *
 * Threads: but for its own, one. A process belongs to one of them.
 */
#ifndef FM_WATCH_TRACE_WATCH_H
#define FM_WATCH_TRACE_WATCH_H

#include "watch/trace/trace_log.h"

struct fm_trace_watch;

/* NULL if there can be no thread. `window_ns`: only the last so much of the blocks is kept; 0: all.
 * `triggers`: what to look for; NULL: nothing. */
struct fm_trace_watch *fm_trace_watch_new(const char *folder, uint64_t window_ns,
                                          const struct fm_trigger_rules *triggers);

/* What was found first and not taken yet; false: nothing. Those beyond some are counted alone, in `*more`. */
bool fm_trace_watch_triggered(struct fm_trace_watch *w, struct fm_trigger *trigger, uint64_t *more);

/* Let all that was taken so far be in the folder, and change nothing there until fm_trace_watch_go_on(). */
void fm_trace_watch_hold(struct fm_trace_watch *w);
void fm_trace_watch_go_on(struct fm_trace_watch *w);

/* No more: what ended processes left is packed. Those that go on are told that nobody listens. */
void fm_trace_watch_stop(struct fm_trace_watch *w);

/* Was it not stopped yet? */
bool fm_trace_watch_goes_on(const struct fm_trace_watch *w);

/* After that: the trace of a process; NULL if there is none. */
struct fm_trace_log *fm_trace_watch_find(const struct fm_trace_watch *w, pid_t pid,
                                         unsigned number);

/* NULL: nothing. */
void fm_trace_watch_free(struct fm_trace_watch *w);

#endif
