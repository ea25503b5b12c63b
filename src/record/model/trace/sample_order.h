/*
 * The order of samples: what was seen when, of every sampled thread.
 *
 * Model. A process is looked at in rounds, which are numbered from 1. A lane is what was seen of one thread
 * from some round on: items, one after the other, each a context, a state, and for how many rounds; equal
 * neighbours are one item. Rounds in which the thread was not seen are an item without a context. When the
 * rounds were, the times of the process tell: pairs of round and time, between which time passes evenly.
 *
 * Thinning. The order of all samples of an hour would be far larger than all else that is known of it, so
 * the older and longer it is, the coarser it becomes: time is cut into stretches of `grain` rounds (a power
 * of two), and items of one stretch that are equal become one, at the place of the first. So what is
 * forgotten is the order within a stretch, and nothing else: how often which context was seen in it stays.
 *
 * The same items serve the sampler while it runs, with rows of its tally in the place of contexts.
 *
 * Plain C without a live process: compiled for the browser, too.
 */
#ifndef FM_MODEL_TRACE_SAMPLE_ORDER_H
#define FM_MODEL_TRACE_SAMPLE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define FM_ORDER_UNSEEN UINT32_MAX /* the context of rounds in which a thread was not seen */

struct fm_order_item {
    uint32_t node; /* or FM_ORDER_UNSEEN */
    uint32_t state;
    uint32_t count; /* of rounds */
};

/* What lies between two lanes of one thread was not seen. Lanes of a thread come in order of time; those of
 * a record that stands for several ended threads may have more counts than rounds. */
struct fm_order_lane {
    uint32_t thread;
    uint64_t first_round, rounds;
    uint64_t grain;
    uint32_t first, n; /* items */
};

struct fm_order_time {
    uint64_t round, ns; /* CLOCK_MONOTONIC */
};

/* Of one process, in order; both numbers ascend. */
struct fm_order_clock {
    uint32_t process;
    FM_VEC(struct fm_order_time) times;
};

struct fm_sample_order {
    FM_VEC(struct fm_order_lane) lanes;
    FM_VEC(struct fm_order_item) items;
    FM_VEC(struct fm_order_clock) clocks;
};

void fm_sample_order_release(struct fm_sample_order *order);

static inline bool fm_order_is_equal(const struct fm_order_item *a, const struct fm_order_item *b)
{
    return a->node == b->node && a->state == b->state;
}

/* Join equal neighbours, and equal items of stretches of `grain` rounds. The first item began in round
 * `first_round`. Returns how many are left. */
size_t fm_order_thin_items(struct fm_order_item *items, size_t n, uint64_t first_round,
                           uint64_t grain);

/* Leave out times that those around them tell as well, but for `tolerance_ns`. Returns how many are left. */
size_t fm_order_thin_times(struct fm_order_time *times, size_t n, uint64_t tolerance_ns);

/* The whole order with stretches of `grain` rounds. */
void fm_sample_order_thin(struct fm_sample_order *order, uint64_t grain);

/* About how many bytes the order takes in a file. */
uint64_t fm_sample_order_bytes(const struct fm_sample_order *order);

/* Thin it until it takes about `bytes` at most, or nothing is left to be gained. */
void fm_sample_order_fit(struct fm_sample_order *order, uint64_t bytes);

/* Contexts have become others: `place[node]`, UINT32_MAX for one that is gone (it counts as unseen). */
void fm_sample_order_move(struct fm_sample_order *order, const uint32_t *place, size_t nodes);

/* Add a copy of `from`, whose processes, threads and contexts are `process[i]` … in `to`. Pointers may be
 * NULL: numbers follow those of `to` then, which begin at `first_…`. */
struct fm_order_renumbering {
    const uint32_t *process, *thread, *node;
    uint32_t first_process, first_thread, first_node;
};
void fm_sample_order_copy(struct fm_sample_order *to, const struct fm_sample_order *from,
                          const struct fm_order_renumbering *numbers);

/* The clock of a process, made if it has none. */
struct fm_order_clock *fm_sample_order_clock(struct fm_sample_order *order, uint32_t process);

/* When a round was, on a clock with at least one time; rounds may be broken. */
double fm_order_clock_ns(const struct fm_order_clock *clock, double round);

#endif
