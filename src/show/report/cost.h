/*
 * What profiling cost the program: each process measured the price of one event at its start; times
 * the number of its events, and with what the agent took beside them (own_ns), this is what Fathom
 * added, in time that the program would not have used.
 *
 * Where instructions without an event took longer, too (3.11), that is the least. At most, all the
 * time on a processor went into instructions that was not Fathom's, nor surely a C function's.
 */
#ifndef FM_REPORT_COST_H
#define FM_REPORT_COST_H

#include "record/model/derive/flat.h"

struct fm_cost {
    int64_t added_ns; /* the middle of … */
    int64_t least_ns, most_ns;
    int64_t wall_ns; /* of the processes together, with what was added */
};

/* Of the processes in scope. */
struct fm_cost fm_cost_of(const struct fm_profile *p, const struct fm_flat_scope *scope);

/* Of each process, or, in its process, of one thread. The caller frees. */
struct fm_cost *fm_costs_new(const struct fm_profile *p, uint32_t thread);

/* Events recorded in one thread. */
struct fm_events {
    int64_t calls, c_calls, resumes;
    double c_self_ns; /* in C functions that were recorded, without what they called */
};

/* Of each thread. The caller frees. */
struct fm_events *fm_events_new(const struct fm_profile *p);

static inline int64_t fm_events_sum(const struct fm_events *e)
{
    return e->calls + e->c_calls + e->resumes;
}

#endif
