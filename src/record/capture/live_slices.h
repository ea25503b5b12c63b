/*
 * Slices of a heap store over time: what the launcher saw in the accounts of a process while it ran.
 *
 * The launcher writes them into the run's folder as PID.N.slices, beside the heap store PID.N.heap, slice
 * by slice as they are taken, so that nothing is lost if it is killed. A header, then slices as
 * model/history.h has them, with numbers of accounts as contexts. When there are many, each two become
 * one and the file is written anew.
 */
#ifndef FM_CAPTURE_LIVE_SLICES_H
#define FM_CAPTURE_LIVE_SLICES_H

#include <stdint.h>

#define FM_SLICES_MAGIC   "FATHOMSL"
#define FM_SLICES_VERSION 1
#define FM_SLICES_SUFFIX  ".slices"

struct fm_slices_header {
    char magic[8];
    uint32_t version;
    uint32_t kind; /* enum fm_slices_kind */
};

enum fm_slices_kind {
    FM_SLICES_LOOKS, /* what the launcher saw now and then */
    FM_SLICES_EVENTS, /* every event, by microsecond (capture/live_events.h); they are not thinned out */
};

_Static_assert(sizeof(struct fm_slices_header) == 16, "the slices follow");

#endif
