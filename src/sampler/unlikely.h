/*
 * Calls that are so unlikely that a torn copy is the better explanation.
 *
 * The copy of a running stack is taken within nanoseconds, but not within none: on rare occasions (one in
 * some hundred thousand samples of functions that take 50 ns) its older part is of one instant and its
 * newer part of the next. Such a stack shows a call that no program makes: at this place in the caller it is
 * nearly always another function that runs, and that function nearly always runs elsewhere. Both together,
 * over many samples, tell it from a call that is merely rare: a dispatcher's seldom target has no other
 * caller, a helper's seldom caller calls nothing else there.
 *
 * Stacks of blocked threads are certain and never touched. Of a torn one what is above the call is taken off and the sample is counted as partial.
 */
#ifndef FM_SAMPLER_UNLIKELY_H
#define FM_SAMPLER_UNLIKELY_H

#include "base/map.h"
#include "sampler/tally.h"

struct fm_unlikely {
    const struct fm_tally *tally;
    struct fm_map sites, callers, callees, calls, pairs; /* → index in `samples` */
    FM_VEC(uint64_t) samples;
    FM_VEC(uint32_t) last_rows; /* that added to them */
};

void fm_unlikely_init(struct fm_unlikely *u, const struct fm_tally *tally);
void fm_unlikely_release(struct fm_unlikely *u);

/* How many of the newest frames of this row to take off. */
uint32_t fm_unlikely_cut(const struct fm_unlikely *u, const struct fm_tally_row *row);

#endif
