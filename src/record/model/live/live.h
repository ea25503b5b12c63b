/*
 * Reads the live store of a process (capture/live.h) into a profile: one process with its threads.
 * The store may come from a process that was killed at any instant: nothing in it is trusted.
 */
#ifndef FM_MODEL_LIVE_H
#define FM_MODEL_LIVE_H

#include "base/clock.h"
#include "base/error.h"
#include "record/model/profile.h"

struct fm_live_trace;

struct fm_live_ending {
    struct fm_clock_pair now; /* both clocks at this moment, on the machine and boot of the store;
                                 zeros if unknown (then the store's own later pair is used) */
    uint64_t end_ns;          /* when the process ended (CLOCK_MONOTONIC), 0 if unknown: then the
                                 store's end_ticks, else the last instant it recorded */
    int32_t exit_status;      /* -1 if unknown */
    const struct fm_live_trace *trace; /* of its calls (live_trace.h); NULL: there is none */
};

/* Add the process in `bytes` (and the chunks of its ".more" file, may be NULL) to `p`. */
int fm_live_load(struct fm_profile *p, const void *bytes, size_t len, const void *more,
                 size_t more_len, const struct fm_live_ending *ending, struct fm_error *err);

#endif
