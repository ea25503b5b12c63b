/* The order of all samples of one target; see account_order.h. */
#include "watch/sampler/account_order.h"

#define WHOLE (1ull << 40) /* a stretch of so many rounds is all there is */

void fm_account_order_release(struct fm_account_order *o)
{
    for (size_t i = 0; i < o->lanes.len; i++)
        fm_vec_release(&o->lanes.data[i].items);
    for (size_t i = 0; i < o->taken.len; i++)
        fm_vec_release(&o->taken.data[i].order.items);
    fm_vec_release(&o->lanes);
    fm_vec_release(&o->lane_of);
    fm_vec_release(&o->taken);
    fm_vec_release(&o->times);
}

/* --- taking over ------------------------------------------------------------------------------ */

void fm_account_order_take(struct fm_account_order *o, uint32_t place,
                           struct fm_thread_order *thread)
{
    if (!thread->items.len)
        return;
    fm_vec_push(&o->taken, ((struct fm_taken_order){ place, *thread }));
    *thread = (struct fm_thread_order){ .next_round = thread->next_round };
}

void fm_account_order_take_times(struct fm_account_order *o, struct fm_target_order *target)
{
    for (size_t i = 0; i < target->times.len; i++) {
        const struct fm_order_time *time = &target->times.data[i];
        const struct fm_order_time *last = o->times.len ? &o->times.data[o->times.len - 1] : NULL;
        if (!last || (time->round > last->round && time->ns > last->ns))
            fm_vec_push(&o->times, *time);
    }
    /* The last round is where the next time is counted from. */
    const struct fm_order_time *last = o->times.len ? &o->times.data[o->times.len - 1] : NULL;
    if (last && target->last.round > last->round && target->last.ns > last->ns)
        fm_vec_push(&o->times, target->last);
    target->times.len = 0;
    target->items = 0;
    if (o->grain > target->grain)
        target->grain = o->grain;
    else if (target->grain > o->grain)
        o->grain = target->grain;
}

/* --- adding up -------------------------------------------------------------------------------- */

static struct fm_account_lane *lane_of(struct fm_account_order *o, uint32_t place, uint64_t round)
{
    while (o->lane_of.len <= place)
        fm_vec_push(&o->lane_of, 0);
    if (!o->lane_of.data[place]) {
        fm_vec_push(&o->lanes, ((struct fm_account_lane){ .place = place, .first_round = round }));
        o->lane_of.data[place] = (uint32_t)o->lanes.len;
    }
    return &o->lanes.data[o->lane_of.data[place] - 1];
}

static void add_item(struct fm_account_lane *lane, struct fm_order_item item)
{
    struct fm_order_item *last = lane->items.len ? &lane->items.data[lane->items.len - 1] : NULL;
    lane->rounds += item.count;
    if (last && fm_order_is_equal(last, &item) && last->count <= UINT32_MAX - item.count)
        last->count += item.count;
    else
        fm_vec_push(&lane->items, item);
}

static void add_taken(struct fm_account_order *o, const struct fm_taken_order *taken,
                      const uint32_t *rows)
{
    struct fm_account_lane *lane = lane_of(o, taken->place, taken->order.first_round);
    uint64_t end = lane->first_round + lane->rounds;
    if (taken->order.first_round > end) {
        uint64_t gap = taken->order.first_round - end;
        add_item(lane, (struct fm_order_item){ FM_ORDER_UNSEEN, 0,
                                               gap < UINT32_MAX ? (uint32_t)gap : UINT32_MAX });
    }
    for (size_t i = 0; i < taken->order.items.len; i++) {
        struct fm_order_item item = taken->order.items.data[i];
        if (item.node != FM_ORDER_UNSEEN)
            item.node = rows[item.node];
        if (item.node == FM_ORDER_UNSEEN)
            item.state = 0;
        add_item(lane, item);
    }
}

static size_t count_items(const struct fm_account_order *o)
{
    size_t items = 0;
    for (size_t i = 0; i < o->lanes.len; i++)
        items += o->lanes.data[i].items.len;
    return items;
}

/* Coarser until half of what may be is used, so that it is not done each time. */
static void keep_limit(struct fm_account_order *o)
{
    uint64_t rounds = o->times.len ? o->times.data[o->times.len - 1].round : 0;
    if (!o->grain)
        o->grain = 1;
    if (!o->limit || count_items(o) <= o->limit)
        return;
    while (count_items(o) > o->limit / 2 && o->grain <= rounds) {
        o->grain *= 2;
        for (size_t i = 0; i < o->lanes.len; i++) {
            struct fm_account_lane *lane = &o->lanes.data[i];
            lane->items.len =
                fm_order_thin_items(lane->items.data, lane->items.len, lane->first_round, o->grain);
        }
    }
}

void fm_account_order_settle(struct fm_account_order *o, const uint32_t *rows)
{
    for (size_t i = 0; i < o->taken.len; i++) {
        add_taken(o, &o->taken.data[i], rows);
        fm_vec_release(&o->taken.data[i].order.items);
    }
    o->taken.len = 0;
    keep_limit(o);
    while (o->times.len > FM_ORDER_MOST_TIMES) {
        o->tolerance_ns = o->tolerance_ns ? 2 * o->tolerance_ns : FM_ORDER_TIME_NS / 8;
        o->times.len = fm_order_thin_times(o->times.data, o->times.len, o->tolerance_ns);
    }
}

/* --- folding ---------------------------------------------------------------------------------- */

/* Add the items of a folded record to the lane of the record that it is part of. */
static void fold_lane(struct fm_account_lane *into, struct fm_account_lane *lane)
{
    uint64_t end = lane->first_round + lane->rounds, into_end = into->first_round + into->rounds;
    uint64_t first = into->items.len && into->first_round < lane->first_round ? into->first_round
                                                                              : lane->first_round;
    if (into->items.len && into_end > end)
        end = into_end;
    for (size_t i = 0; i < lane->items.len; i++)
        if (lane->items.data[i].node != FM_ORDER_UNSEEN)
            fm_vec_push(&into->items, lane->items.data[i]);
    into->first_round = first;
    into->rounds = end - first;
    fm_vec_release(&lane->items);
}

static void move_rows(struct fm_account_lane *lane, const uint32_t *rows)
{
    for (size_t i = 0; i < lane->items.len; i++)
        if (lane->items.data[i].node != FM_ORDER_UNSEEN)
            lane->items.data[i].node = rows[lane->items.data[i].node];
}

/* Lanes of records that stay, then one for each that others became part of. */
static void move_lanes(struct fm_account_order *o, const uint32_t *places, const bool *folded)
{
    size_t n = o->lanes.len, kept = 0;
    FM_VEC(struct fm_account_lane) sums = { 0 };
    for (size_t i = 0; i < n; i++) {
        struct fm_account_lane lane = o->lanes.data[i];
        uint32_t place = lane.place;
        lane.place = places[place];
        if (!folded[place]) {
            o->lanes.data[kept++] = lane;
            continue;
        }
        size_t sum = 0;
        while (sum < sums.len && sums.data[sum].place != lane.place)
            sum++;
        if (sum == sums.len)
            fm_vec_push(&sums, ((struct fm_account_lane){ .place = lane.place }));
        fold_lane(&sums.data[sum], &lane);
    }
    o->lanes.len = kept;
    for (size_t i = 0; i < sums.len; i++) {
        struct fm_account_lane *sum = &sums.data[i];
        sum->items.len = fm_order_thin_items(sum->items.data, sum->items.len, 0, WHOLE);
        fm_vec_push(&o->lanes, *sum);
    }
    fm_vec_release(&sums);
}

void fm_account_order_move(struct fm_account_order *o, const uint32_t *places, const bool *folded,
                           const uint32_t *rows)
{
    for (size_t i = 0; i < o->lanes.len; i++)
        move_rows(&o->lanes.data[i], rows);
    move_lanes(o, places, folded);
    o->lane_of.len = 0;
    for (size_t i = 0; i < o->lanes.len; i++) {
        while (o->lane_of.len <= o->lanes.data[i].place)
            fm_vec_push(&o->lane_of, 0);
        o->lane_of.data[o->lanes.data[i].place] = (uint32_t)i + 1;
    }
}
