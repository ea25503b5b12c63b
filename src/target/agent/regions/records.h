/*
 * Records of regions: a name below another region, with what its visits took, in the store.
 *
 * There are at most 50,000; what comes later shares one. The record that a name led to last is kept with the name.
 *
 * Threads: whoever holds regions (alone.h).
 */
#ifndef FM_AGENT_REGION_RECORDS_H
#define FM_AGENT_REGION_RECORDS_H

#include "target/agent/collector.h"
#include "target/agent/regions/visits.h"

/* Another store has begun. */
void fm_region_records_forget(void);

/* All of them, in the order in which they were defined; NULL: none. */
const struct fm_region_record *fm_region_records_first(void);

/* The record of a name below another region, or below none; NULL if there is no memory. */
struct fm_region_record *fm_region_record_look_up(struct fm_collector *c,
                                                  struct fm_region_record *around,
                                                  struct fm_region_name *name);
static inline struct fm_region_record *fm_region_record_find(struct fm_collector *c,
                                                             struct fm_region_record *around,
                                                             struct fm_region_name *name)
{
    if (__builtin_expect(name->era == c->era && name->below == around && name->here, 1))
        return name->here;
    return fm_region_record_look_up(c, around, name);
}

#endif
