/*
 * The order of all samples of one target, kept by its account (account.h): what threads hand over is added
 * at the end of their lanes, and all of it becomes coarser when it is too much.
 */
#ifndef FM_SAMPLER_ACCOUNT_ORDER_H
#define FM_SAMPLER_ACCOUNT_ORDER_H

#include "watch/sampler/order.h"

#define FM_ACCOUNT_ITEMS 1000000u /* of all targets together; each may have … */
#define FM_ACCOUNT_LEAST 10000u   /* … so many */

/* Of one record of threads, which may have several. */
struct fm_account_lane {
    uint32_t place; /* of the record; UINT32_MAX: of one that was folded */
    uint64_t first_round,
        rounds; /* the sum of counts, unless the record stands for several threads */
    FM_VEC(struct fm_order_item) items; /* rows of the account's tally */
};

/* What a thread handed over, with rows of the tally that was taken with it. */
struct fm_taken_order {
    uint32_t place;
    struct fm_thread_order order;
};

struct fm_account_order {
    uint64_t grain; /* 0: 1 */
    size_t limit;   /* items */
    FM_VEC(struct fm_account_lane) lanes;
    FM_VEC(uint32_t) lane_of; /* by place: its lane + 1, or 0 */
    FM_VEC(struct fm_taken_order) taken;
    FM_VEC(struct fm_order_time) times;
    uint64_t tolerance_ns;
};

void fm_account_order_release(struct fm_account_order *o);

/* Take over what a thread has; with the sampler's lock held. */
void fm_account_order_take(struct fm_account_order *o, uint32_t place,
                           struct fm_thread_order *thread);
void fm_account_order_take_times(struct fm_account_order *o, struct fm_target_order *target);

/* Add what was taken, whose rows are `rows[row]` in the account's tally. */
void fm_account_order_settle(struct fm_account_order *o, const uint32_t *rows);

/* Records have moved to `places[place]`, rows to `rows[row]`. Records that have become part of another, as
 * `folded` says, have one lane with it from the first to the last round of any: who of them was seen when is
 * forgotten. */
void fm_account_order_move(struct fm_account_order *o, const uint32_t *places, const bool *folded,
                           const uint32_t *rows);

#endif
