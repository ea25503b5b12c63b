/*
 * When the next round is due at the highest rate.
 *
 * A round that begins as soon as the one before is over comes late after whatever takes long to look at: code that
 * was just made, deep stacks. It then meets what follows that, and shares go wrong by as much as what is looked at
 * is short. So where much of the time goes to rounds that take several times what is usual, rounds begin at
 * instants that do not depend on it: at a distance that most of them keep, with some chance in it. Elsewhere one
 * begins after the other.
 */
#ifndef FM_SAMPLER_PACE_H
#define FM_SAMPLER_PACE_H

#include <stdint.h>

struct fm_pace {
    double usual_ns; /* half of the rounds take less */
    double long_ns;  /* most of the time goes to rounds that take less */
    uint64_t due_ns;
};

/* A round began at `begin_ns` and is over now. When shall the next one begin? It may be in the past: at once.
 * `chance` is any random number. */
uint64_t fm_pace_next(struct fm_pace *pace, uint64_t begin_ns, uint64_t now_ns, uint64_t chance);

#endif
