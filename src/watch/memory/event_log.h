/*
 * The events of one process, kept in the folder of the run while it runs: what drain.h makes of its ring
 * is appended to PID.N.slices (capture/live_slices.h), on disk if the run has a folder there, since it
 * grows as long as the program runs. Memory stays bounded: what is written is forgotten.
 *
 * If it cannot be written any more the ring is closed: the program goes on, and counts what is lost.
 */
#ifndef FM_WATCH_MEMORY_EVENT_LOG_H
#define FM_WATCH_MEMORY_EVENT_LOG_H

#include <stdbool.h>
#include <sys/types.h>

struct fm_event_log;

/* Of the store PID.N.heap in the folder of the run. */
struct fm_event_log *fm_event_log_new(const char *folder, pid_t pid, unsigned number);

/* Keep what happened so far; `store` is the open store. `ended`: there will be no more. */
void fm_event_log_drain(struct fm_event_log *log, int store, bool ended);

/* Keep the events of processes in the folder that ended before anybody saw them. */
void fm_event_log_sweep(const char *folder);

/* Nobody reads any more, if the process still runs. NULL: nothing. */
void fm_event_log_free(struct fm_event_log *log);

#endif
