/*
 * The clock of a traced process: pairs of (ticks, ns) that say what its ticks are on CLOCK_MONOTONIC.
 *
 * Between two pairs time runs evenly, before the first and behind the last as in the pair of pairs next
 * to it. So instants keep their order, and a span has the same times wherever it is met. A pair that
 * disagrees with the pace so far by more than one part in a hundred is a jump: the machine slept, or the
 * counter was set.
 */
#ifndef FM_MODEL_TRACE_CLOCK_H
#define FM_MODEL_TRACE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/varint.h"
#include "base/vec.h"

struct fm_clock_point {
    uint64_t ticks, ns;
    double ns_per_tick; /* from here to the next; of the last: as before it */
    bool jump;          /* time jumped on the way here */
};

struct fm_trace_clock {
    FM_VEC(struct fm_clock_point) points; /* by ticks, and ns never goes back */
    double pace;                          /* ns per tick over all; 0: not known */
    size_t near;                          /* where the last instant was */
};

/* Take a pair; one that is nearer than a second to another adds nothing, but for the first two. True if
 * it was taken. */
bool fm_trace_clock_add(struct fm_trace_clock *clock, uint64_t ticks, uint64_t ns);

/* … as it is in a file: strictly later than the one before. */
bool fm_trace_clock_append(struct fm_trace_clock *clock, uint64_t ticks, uint64_t ns);

void fm_trace_clock_release(struct fm_trace_clock *clock);

uint64_t fm_trace_clock_find_ns(struct fm_trace_clock *clock, uint64_t ticks);

/* Most instants lie near the one that was asked for before. */
static inline uint64_t fm_trace_clock_ns(struct fm_trace_clock *clock, uint64_t ticks)
{
    size_t i = clock->near, count = clock->points.len;
    const struct fm_clock_point *point = clock->points.data + i;
    if (i >= count || ticks < point->ticks || point->ns_per_tick == 1.0)
        return fm_trace_clock_find_ns(clock, ticks);
    uint64_t ns = point->ns + (uint64_t)((double)(ticks - point->ticks) * point->ns_per_tick);
    if (i + 1 == count)
        return ns;
    if (ticks >= point[1].ticks)
        return fm_trace_clock_find_ns(clock, ticks);
    return ns < point[1].ns ? ns : point[1].ns;
}

uint64_t fm_trace_clock_length_ns(const struct fm_trace_clock *clock, uint64_t ticks);

/* The last ticks that are not after `ns`. */
uint64_t fm_trace_clock_ticks(const struct fm_trace_clock *clock, uint64_t ns);

#endif
