/*
 * The trace of one process, kept while it runs: chunks that it hands over (trace_file.h) are given to its
 * packer (model/trace/pack/pack.h), whose blocks are appended to PID.N.packed, on disk if the run has a folder
 * there: it grows as long as the program runs. That file begins as every .fathom file does. The journal
 * (journal.h) has what is not in it yet, so that a launcher may be killed at any instant.
 *
 * If something cannot be written any more the trace is closed: the program goes on and counts what is
 * lost; what was packed stays.
 */
#ifndef FM_WATCH_TRACE_LOG_H
#define FM_WATCH_TRACE_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/model/trace/pack/pack.h"
#include "watch/trace/trigger.h"

#define FM_PACKED_SUFFIX ".packed"

struct fm_trace_log;

/* Of the trace PID.N.trace in the folder of the run. */
struct fm_trace_log *fm_trace_log_new(const char *folder, pid_t pid, unsigned number);

/* Keep only the last so much of the blocks, give or take a quarter; 0: all. Before anything is packed. */
void fm_trace_log_forget(struct fm_trace_log *log, uint64_t window_ns);

/* Look for what these rules want, also in chunks that are being filled. Before anything is packed. */
void fm_trace_log_watch_for(struct fm_trace_log *log, const struct fm_trigger_rules *rules,
                            fm_trigger_sink *sink, void *context);

/* Nobody empties chunks any more, if the process still runs. NULL: nothing. */
void fm_trace_log_free(struct fm_trace_log *log);

/* Pack some of what was handed over so far. True if there may be more. */
bool fm_trace_log_drain(struct fm_trace_log *log);

/* The process has ended, at `end_ticks` (0: not known): pack all that it left. */
void fm_trace_log_end(struct fm_trace_log *log, uint64_t end_ticks);

/* Of a process that has ended: give its blocks back when all of them are older than the window. */
void fm_trace_log_expire(struct fm_trace_log *log);

/* Nobody empties chunks any more: what comes now is lost. What was handed over can still be taken. */
void fm_trace_log_give_up(struct fm_trace_log *log);

/* What was taken so far is to be in the packed file. */
void fm_trace_log_commit(struct fm_trace_log *log);

/* What a process left whose launcher is gone, or has from this one up to now: the folder stays as it is. Of one
 * that forgets, all is cut where the window begins, the tree as well. The calls that are open end at `end_ticks`
 * (0: when their last event was; FM_TRACE_LOG_NOW: now, and what comes later is not taken). NULL if there is nothing. */
#define FM_TRACE_LOG_NOW UINT64_MAX
struct fm_trace_log *fm_trace_log_recover(const char *folder, pid_t pid, unsigned number,
                                          uint64_t end_ticks);

struct fm_trace_log_facts {
    uint64_t lost;         /* events that the process could tell nobody */
    uint64_t waited_ticks; /* that its threads stood still for room */
    uint64_t missing;      /* chunks that ought to be there */
    int failed;            /* errno with which writing failed; 0: it did not */
    bool ended;            /* all that there is was packed */
};

struct fm_trace_log_facts fm_trace_log_facts(const struct fm_trace_log *log);
const struct fm_trace_pack *fm_trace_log_pack(const struct fm_trace_log *log);

/* How much of the past there is in the blocks, and of one that was recovered in the tree; 0: all. */
uint64_t fm_trace_log_window_ns(const struct fm_trace_log *log);

/* The packed file, opened for reading; −1: there is none. And where it lies; NULL: it has no name. */
int fm_trace_log_open_packed(const struct fm_trace_log *log);
const char *fm_trace_log_path(const struct fm_trace_log *log);

#endif
