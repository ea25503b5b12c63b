/*
 * Reads the heap store of a process (capture/live_heap.h) into a profile: contexts by line with what
 * they allocated. The process is one that is there already, if its own store was read before.
 *
 * The store may come from a process that was killed at any instant, or still runs: nothing in it is
 * trusted.
 */
#ifndef FM_MODEL_LIVE_HEAP_H
#define FM_MODEL_LIVE_HEAP_H

#include "base/error.h"
#include "record/capture/live_heap.h"
#include "record/model/live/live.h"
#include "record/model/profile.h"

/* What of a process's memory belongs to no function of the program. */
#define FM_HEAP_BEFORE    "<before the program>"
#define FM_HEAP_INHERITED "<inherited by fork>"

/* The files of a store; what is not there has no bytes. */
struct fm_heap_files {
    const void *bytes;
    size_t len;
    const void *more; /* of its ".more" file */
    size_t more_len;
    const void *slices; /* what others saw of it meanwhile (capture/live_slices.h) */
    size_t slices_len;
    uint64_t events_lost; /* that are missing in them */
};

/* `run` is the file of what all processes have together; NULL: there is none. */
int fm_live_heap_load(struct fm_profile *p, const struct fm_heap_files *files,
                      const struct fm_heap_run *run, const struct fm_live_ending *ending,
                      struct fm_error *err);

#endif
