/*
 * The order of a process's samples while they come: by thread, items of model/trace/sample_order.h with
 * rows of the tally as contexts; and when the rounds were.
 *
 * What a sample adds is a comparison with the last item, and one more item if they differ. Memory is bounded:
 * with more than a stated number of items since they were last handed over, stretches of time within which
 * the order is forgotten become twice as long.
 *
 * Asyncio's tasks, of which many are seen in one round, have no order.
 */
#ifndef FM_SAMPLER_ORDER_H
#define FM_SAMPLER_ORDER_H

#include "record/model/trace/sample_order.h"
#include "watch/sampler/tally.h"

#define FM_ORDER_MOST_ITEMS (1u << 18) /* of a target, not handed over yet */
#define FM_ORDER_MOST_TIMES 4096u
#define FM_ORDER_TIME_NS    50000000u /* between two times */

/* Of one thread, since it was last handed over. */
struct fm_thread_order {
    FM_VEC(struct fm_order_item) items;
    uint64_t first_round, next_round; /* next: behind the last item; 0: the thread was never seen */
    uint64_t stretch;                 /* that the last item is in … */
    size_t stretch_first;             /* … and its first item */
};

/* Of one target. */
struct fm_target_order {
    bool on;
    uint64_t grain;
    size_t items; /* of all threads */
    FM_VEC(struct fm_order_time) times;
    uint64_t time_step_ns;
    struct fm_order_time last; /* the round before, whether it is in `times` or not */
};

/* The thread was seen in this round. */
void fm_thread_order_add(struct fm_thread_order *o, struct fm_target_order *all,
                         struct fm_tally *tally, uint32_t row, enum fm_state state, uint64_t round);

/* The round is over, and what it saw was so at `ns`. */
void fm_target_order_round(struct fm_target_order *o, uint64_t round, uint64_t ns,
                           uint64_t interval_ns);

/* Are there more items than may be? Then the threads' orders are to be thinned, to `grain`. */
static inline bool fm_target_order_is_full(const struct fm_target_order *o)
{
    return o->items > FM_ORDER_MOST_ITEMS;
}
void fm_thread_order_thin(struct fm_thread_order *o, uint64_t grain);

#endif
