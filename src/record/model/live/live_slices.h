/*
 * Reads the slices that the launcher took of a process's accounts (capture/live_slices.h) into the
 * profile: accounts become contexts, those of one line one of them. What the store holds at last is
 * the last slice. Nothing in the file is trusted.
 */
#ifndef FM_MODEL_LIVE_SLICES_H
#define FM_MODEL_LIVE_SLICES_H

#include "record/capture/live_heap.h"
#include "record/model/profile.h"

/* The accounts of the store that was read, by number. */
struct fm_sliced {
    const struct fm_heap_account *accounts;
    const uint32_t *place; /* by node of the store: of the profile, FM_NONE: not there */
    uint64_t account_count, node_count;
    uint32_t process;
    uint64_t begin_ns, end_ns; /* end 0: not known; then it is the last slice's */
    uint32_t inherited;        /* the node of what a child was born with; FM_NONE: of none */
};

void fm_live_slices_load(struct fm_profile *p, const struct fm_sliced *of, const void *bytes,
                         size_t len);

#endif
