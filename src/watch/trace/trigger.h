/*
 * What makes a flight recorder write: an exception, one that nobody caught, or a call or region that took
 * too long. Found in the words of a process's trace (capture/live_trace.h), also in chunks that it still
 * fills, so that nothing in the process has to be decided.
 *
 * A chunk that is being filled may lose its last words again: begins of calls that turn out too short
 * (--min-duration). So what is only begun at its end is looked at again the next time.
 *
 * Nothing in a chunk is trusted. Threads: a scan belongs to one at a time; rules do not change.
 */
#ifndef FM_WATCH_TRACE_TRIGGER_H
#define FM_WATCH_TRACE_TRIGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/model/trace/pack/pack.h"

#define FM_TRIGGER_RULES 16u
#define FM_TRIGGER_TEXT  256u

enum fm_trigger_kind {
    FM_TRIGGER_RAISED,   /* an exception of that type, or of one made from it */
    FM_TRIGGER_UNCAUGHT, /* … leaves the program, or the function that a thread runs */
    FM_TRIGGER_SLOW,     /* a region or function took so long */
};

struct fm_trigger_rule {
    enum fm_trigger_kind kind;
    char pattern[FM_TRIGGER_TEXT]; /* a name or glob */
    uint64_t limit_ns;             /* SLOW */
};

struct fm_trigger_rules {
    struct fm_trigger_rule rules[FM_TRIGGER_RULES];
    size_t count;
};

/* It happened. */
struct fm_trigger {
    const struct fm_trigger_rule *rule;
    pid_t pid;
    uint32_t tid;
    uint64_t ns; /* when: CLOCK_MONOTONIC */
    uint64_t took_ns;
    char what[FM_TRIGGER_TEXT]; /* the type, region or function */
};

typedef void fm_trigger_sink(void *context, const struct fm_trigger *trigger);

struct fm_trigger_scan;

/* Of the process PID.N of a run's folder. */
struct fm_trigger_scan *fm_trigger_scan_new(const struct fm_trigger_rules *rules,
                                            const char *folder, pid_t pid, unsigned number,
                                            fm_trigger_sink *sink, void *context);
void fm_trigger_scan_free(struct fm_trigger_scan *scan); /* NULL: nothing */

struct fm_trigger_chunk {
    uint32_t thread, tid;
    uint64_t sequence, ticks; /* as in its descriptor */
    const uint16_t *words;
    size_t count;
    unsigned shift;
    bool whole; /* the thread has handed it over */
};

/* What is new in a chunk; chunks of a thread come in their order, each as often as you like. The packer of
 * the trace knows its clock. */
void fm_trigger_scan_chunk(struct fm_trigger_scan *scan, const struct fm_trigger_chunk *chunk,
                           const struct fm_trace_pack *clock);

/* So many words of that chunk need not be there any more. */
size_t fm_trigger_scan_done(const struct fm_trigger_scan *scan, uint32_t thread, uint64_t sequence);

/* "ValueError was raised", "assembly took 1.24 s": into `out`. */
void fm_trigger_describe(const struct fm_trigger *trigger, char *out, size_t size);

#endif
