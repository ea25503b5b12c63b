/* The order of a process's samples while they come; see order.h. */
#include "watch/sampler/order.h"

static bool join_last(struct fm_thread_order *o, const struct fm_order_item *item)
{
    struct fm_order_item *last = o->items.len ? &o->items.data[o->items.len - 1] : NULL;
    if (!last || !fm_order_is_equal(last, item) || last->count > UINT32_MAX - item->count)
        return false;
    last->count += item->count;
    return true;
}

static void push(struct fm_thread_order *o, struct fm_target_order *all,
                 const struct fm_order_item *item, uint64_t round)
{
    if (!o->items.len)
        o->first_round = round;
    fm_vec_push(&o->items, *item);
    all->items++;
}

/* Rounds in which the thread was not seen. */
static void add_unseen(struct fm_thread_order *o, struct fm_target_order *all, uint64_t round)
{
    uint64_t rounds = round - o->next_round;
    struct fm_order_item unseen = { FM_ORDER_UNSEEN, 0,
                                    rounds < UINT32_MAX ? (uint32_t)rounds : UINT32_MAX };
    if (!join_last(o, &unseen))
        push(o, all, &unseen, o->next_round);
}

/* An equal item of the same stretch of time. */
static struct fm_order_item *earlier(struct fm_thread_order *o, const struct fm_target_order *all,
                                     const struct fm_order_item *item, uint32_t place,
                                     uint64_t round)
{
    if (o->stretch != round / all->grain) {
        o->stretch = round / all->grain;
        o->stretch_first = o->items.len;
    }
    if (place < o->stretch_first || place >= o->items.len ||
        !fm_order_is_equal(&o->items.data[place], item) || o->items.data[place].count == UINT32_MAX)
        return NULL;
    return &o->items.data[place];
}

void fm_thread_order_add(struct fm_thread_order *o, struct fm_target_order *all,
                         struct fm_tally *tally, uint32_t row, enum fm_state state, uint64_t round)
{
    struct fm_order_item item = { row, (uint32_t)state, 1 };
    if (o->next_round && o->next_round < round)
        add_unseen(o, all, round);
    o->next_round = round + 1;
    if (join_last(o, &item))
        return;
    uint32_t *place = &tally->rows.data[row].place[state];
    struct fm_order_item *same = all->grain > 1 ? earlier(o, all, &item, *place, round) : NULL;
    if (same) {
        same->count++;
        return;
    }
    *place = (uint32_t)o->items.len;
    push(o, all, &item, round);
}

void fm_thread_order_thin(struct fm_thread_order *o, uint64_t grain)
{
    if (!o->items.len)
        return;
    o->items.len = fm_order_thin_items(o->items.data, o->items.len, o->first_round, grain);
    o->stretch = UINT64_MAX;
}

/* Times stand at equal distances, and around a time in which nobody looked. */
void fm_target_order_round(struct fm_target_order *o, uint64_t round, uint64_t ns,
                           uint64_t interval_ns)
{
    struct fm_order_time now = { round, ns };
    const struct fm_order_time *last = o->times.len ? &o->times.data[o->times.len - 1] : NULL;
    uint64_t step_ns = o->time_step_ns ? o->time_step_ns : FM_ORDER_TIME_NS;
    bool pause = last && ns - o->last.ns > 10 * interval_ns && ns - o->last.ns > step_ns / 2;
    if (pause && o->last.round > last->round && o->last.ns > last->ns)
        fm_vec_push(&o->times, o->last);
    if (!last || pause || ns - last->ns >= step_ns)
        fm_vec_push(&o->times, now);
    o->last = now;
    if (o->times.len > FM_ORDER_MOST_TIMES) {
        o->time_step_ns = 2 * step_ns;
        o->times.len = fm_order_thin_times(o->times.data, o->times.len, o->time_step_ns / 8);
    }
}
