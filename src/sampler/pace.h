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
    double usual_ns; /* half of the rounds cost less */
    double long_ns;  /* most of the time goes to rounds that cost less */
    uint64_t due_ns;
};

/* A round is over, for which so much had to be read: its cost, which is counted, as the time it took also tells what
 * else the machine did. When shall the next one begin? It may be in the past: at once. `chance` is any random number. */
uint64_t fm_pace_next(struct fm_pace *pace, uint64_t cost_ns, uint64_t now_ns, uint64_t chance);

#endif
