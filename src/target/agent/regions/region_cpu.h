/*
 * Processor time of threads, for regions.
 *
 * Asking the kernel takes some 0.5 µs, more than all else that a region costs. So a thread's clock is read when
 * its last reading is older than FM_REGION_CPU_NS; until then the thread is taken to have run since. Waits
 * that are shorter than that are therefore counted as running, and longer ones are exact within it.
 *
 * Nanoseconds of the kernel and ticks since are kept apart, and added up apart: how long a tick is is known
 * at the end.
 *
 * Threads: each has its own clock.
 */
#ifndef FM_AGENT_REGION_CPU_H
#define FM_AGENT_REGION_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define FM_REGION_CPU_NS 50000u

/* An instant, or a length: the sum of both. */
struct fm_region_cpu {
    int64_t ns, ticks;
};

struct fm_region_clock {
    int64_t ns;           /* when it was last read */
    uint64_t read_ticks;  /* … and when that was; 0: never */
    uint64_t limit_ticks; /* how long that serves */
};

/* The clock of a thread that is new here; `since` is some earlier instant, by which the length of a tick is known. */
struct fm_region_clock fm_region_clock_new(struct fm_clock_pair since);
void fm_region_clock_read(struct fm_region_clock *clock);

static inline bool fm_region_clock_is_old(const struct fm_region_clock *clock, uint64_t now)
{
    return __builtin_expect(now - clock->read_ticks > clock->limit_ticks, 0);
}

/* What this thread, whose clock it is, has used by `now`, an instant just past. */
static inline struct fm_region_cpu fm_region_cpu_at(struct fm_region_clock *clock, uint64_t now)
{
    if (!fm_region_clock_is_old(clock, now))
        return (struct fm_region_cpu){ clock->ns, (int64_t)(now - clock->read_ticks) };
    fm_region_clock_read(
        clock); /* however long the thread has waited for a processor on its way here */
    return (struct fm_region_cpu){ clock->ns, 0 };
}

/* … at an instant from which on something is measured, which is put off by what asking takes. */
static inline struct fm_region_cpu fm_region_cpu_from(struct fm_region_clock *clock, uint64_t *now)
{
    if (fm_region_clock_is_old(clock, *now)) {
        fm_region_clock_read(clock);
        *now = clock->read_ticks;
    }
    return fm_region_cpu_at(clock, *now);
}

static inline void fm_region_cpu_add(struct fm_region_cpu *to, struct fm_region_cpu begin,
                                     struct fm_region_cpu end)
{
    to->ns += end.ns - begin.ns;
    to->ticks += end.ticks - begin.ticks;
}

#endif
