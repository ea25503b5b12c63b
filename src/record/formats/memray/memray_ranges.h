/*
 * Ranges of addresses that are mapped: what of them a munmap takes away, in whole or in part, in time that grows
 * with the logarithm of their number and with how many it meets. A mapping above another leaves that as it is,
 * as memray counts.
 *
 * A treap in one array, which knows of each part how far its ranges reach; its ranks begin at a number that no
 * file can know, so that none can make it a list.
 */
#ifndef FM_FORMATS_MEMRAY_RANGES_H
#define FM_FORMATS_MEMRAY_RANGES_H

#include <stdint.h>

#include "base/vec.h"

struct fm_memray_range {
    uint64_t begin, end;
    uint32_t context, birth; /* who mapped it, and which allocation of the thread that was */
    uint32_t left, right, rank;
    uint64_t reach; /* the greatest end of it and of all below */
};

/* The first is none. A zeroed one with a seed is empty. */
struct fm_memray_ranges {
    FM_VEC(struct fm_memray_range) all;
    uint32_t root, unused; /* the unused are chained by `left` */
    uint64_t seed;
    FM_VEC(struct fm_memray_range) met; /* by the last munmap */
};

/* What was taken away of a range: `blocks` is -1 if it was all of it, 0 if a piece is left, 1 if two are. */
typedef void fm_memray_taken(void *data, const struct fm_memray_range *range, uint64_t bytes,
                             int blocks);

/* How many there were is left in `met`. */
void fm_memray_ranges_take(struct fm_memray_ranges *r, uint64_t begin, uint64_t end,
                           fm_memray_taken *taken, void *data);

/* `range` has begin, end, context and birth. */
void fm_memray_ranges_add(struct fm_memray_ranges *r, const struct fm_memray_range *range);
void fm_memray_ranges_release(struct fm_memray_ranges *r);

#endif
