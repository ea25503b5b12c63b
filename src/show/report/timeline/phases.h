/*
 * The phases of each lane of a timeline: time is cut into columns, and each column is named after a function
 * that was open in most of it. Which function of the stack: the outermost that tells columns apart. So a program
 * whose main() calls load(), solve() and save() has these three, not main() and not what they call.
 *
 * How it is found. Of each column the path of functions that were open in most of it goes into one tree of all
 * lanes. Beginning with the whole, whatever has most columns is split into its callees, until there are
 * FM_PHASES_MOST names or nothing worth it is left.
 */
#ifndef FM_REPORT_PHASES_H
#define FM_REPORT_PHASES_H

#include "record/model/derive/flat.h"
#include "record/model/trace/lanes/timeline.h"

#define FM_PHASES_MOST     10u
#define FM_PHASES_NO_STATE UINT8_MAX /* not known: every call of the lane was recorded */

struct fm_phase_column {
    uint32_t func; /* FM_NONE: nothing was open in most of it */
    uint8_t state; /* enum fm_state */
    uint8_t lost;  /* something of it was dropped */
};

struct fm_phase_lane {
    uint32_t lane; /* of the timeline */
    struct fm_phase_column *columns;
};

/* A name, and of how many columns of all lanes. */
struct fm_phase_name {
    uint32_t func;
    uint64_t columns;
};

struct fm_phases {
    uint64_t from_ns, to_ns;
    uint32_t columns;
    FM_VEC(struct fm_phase_lane) lanes;
    FM_VEC(struct fm_phase_name) names; /* most columns first */
};

/* Of the lanes in `scope`. */
int fm_phases_find(struct fm_phases *ph, struct fm_timeline *t, const struct fm_flat_scope *scope,
                   struct fm_error *err);
void fm_phases_release(struct fm_phases *ph);

/* When a column begins; the end of the last is that of the number of columns. */
static inline uint64_t fm_phases_at_ns(const struct fm_phases *ph, uint32_t column)
{
    return ph->from_ns +
           (uint64_t)((double)(ph->to_ns - ph->from_ns) * column / (double)ph->columns);
}

/* The place of a function among the names; the number of names if it is none. */
size_t fm_phases_name(const struct fm_phases *ph, uint32_t func);

#endif
