/*
 * The lines of a live store (capture/live.h), for model/live/live.c: records checked one by one, ticks
 * turned into nanoseconds, histograms into the model's buckets.
 */
#ifndef FM_MODEL_LIVE_LINES_H
#define FM_MODEL_LIVE_LINES_H

#include "record/model/live/live_chunks.h"
#include "record/model/profile.h"

/* What reading lines needs to know of the store, and what it found wrong. */
struct fm_live_lines {
    struct fm_profile *p;
    const uint32_t *functions; /* by live id: function, or FM_NONE */
    size_t function_count;
    uint32_t process;
    uint64_t rate_ns, rate_ticks; /* rate_ticks ticks take rate_ns */
    uint64_t broken;
};

/* Add the rows of one chunk; the caller sorts when all are there. */
void fm_live_lines_read(struct fm_live_lines *l, const struct fm_live_piece *chunk);

#endif
