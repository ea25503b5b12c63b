/*
 * Regions: named phases of a program (fathom.region), by process and by what is around them.
 *
 * A row adds up all visits of a name below the same regions, over the threads of its process. A row
 * comes after the one around it. When single visits began and ended is among the marks of the curve of
 * memory (model/memory.h), as far as it was kept.
 */
#ifndef FM_MODEL_REGIONS_H
#define FM_MODEL_REGIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct fm_region_row {
    uint32_t process;
    uint32_t around; /* row, or FM_NONE */
    uint32_t name;   /* string id */
    int64_t entered; /* times, entries by itself included */
    int64_t open;    /* visits that had not ended when the process did; they are in the numbers */
    int64_t ns;      /* from begin to end, the sum of all visits */
    int64_t suspended_ns;   /* of that, while the generator or coroutine in it waited */
    int64_t min_ns, max_ns; /* of one visit that ended; 0: there is none */
    int64_t cpu_ns;         /* processor time, of visits that ended; 0: not known */
    bool memory;            /* the rest is known */
    int64_t allocated, freed;
    int64_t above_most; /* the most that one visit stood above what it found: its own peak */
};

struct fm_regions {
    FM_VEC(struct fm_region_row) rows;
};

void fm_regions_release(struct fm_regions *regions);

struct fm_profile;

/* The regions of one process, or (FM_NONE) of all with those of the same names combined, each followed by
 * what is inside of it, in the order in which they were first entered. Caller releases. */
struct fm_regions fm_regions_combined(const struct fm_profile *p, uint32_t process);

/* Add what a row has to another of the same region. */
void fm_region_combine(struct fm_region_row *to, const struct fm_region_row *from);

#endif
