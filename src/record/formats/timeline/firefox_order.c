/*
 * Samples of a Firefox profile in the order of time, where the recording kept it (model/trace/sample_order.h).
 *
 * The order says in which rounds which stack was seen; how much time a stack had, the tree says. So the time of a stack is
 * shared out among its rounds, and sums are those of the tree to the nanosecond. What the tree has beside what the order
 * knows stands behind the rest.
 */
#include "base/memory.h"
#include "record/formats/timeline/firefox.h"

/* What is known of a context in a state. */
struct firefox_share {
    int64_t ns;      /* that it had */
    uint64_t rounds; /* in the order */
    uint64_t past;   /* of these, rounds that were written */
};

struct firefox_order {
    struct fm_firefox *f;
    const struct fm_sample_order *order;
    struct fm_firefox_samples *into;
    FM_VEC(struct firefox_share) shares;
    struct fm_map share_of; /* (node, state) */
};

static struct firefox_share *share_at(struct firefox_order *o, uint32_t node, uint32_t state)
{
    bool is_new;
    uint64_t key = (uint64_t)node * FM_STATE_COUNT + state;
    uint32_t at = *fm_map_at(&o->share_of, key, (uint32_t)o->shares.len, &is_new);
    if (is_new) {
        struct firefox_share share = { 0 };
        share.ns = fm_profile_value(o->f->p, fm_metric_of_state((enum fm_state)state), node);
        fm_vec_push(&o->shares, share);
    }
    return &o->shares.data[at];
}

static bool is_known(const struct firefox_order *o, const struct fm_order_item *item)
{
    return item->node < o->f->p->nodes.len && item->state < FM_STATE_COUNT;
}

static const struct fm_order_clock *clock_of(const struct fm_sample_order *order, uint32_t process)
{
    for (size_t i = 0; i < order->clocks.len; i++)
        if (order->clocks.data[i].process == process && order->clocks.data[i].times.len)
            return &order->clocks.data[i];
    return NULL;
}

static void count_rounds(struct firefox_order *o, const struct fm_order_lane *lane)
{
    for (uint32_t i = 0; i < lane->n; i++) {
        const struct fm_order_item *item = &o->order->items.data[lane->first + i];
        if (is_known(o, item))
            share_at(o, item->node, item->state)->rounds += item->count;
    }
}

static int64_t part_of(const struct firefox_share *share, uint64_t rounds)
{
    return (int64_t)((unsigned __int128)(share->ns > 0 ? share->ns : 0) * rounds / share->rounds);
}

static void add(struct firefox_order *o, uint32_t stack, double at_ns, int64_t weight)
{
    struct fm_firefox_samples *into = o->into;
    struct fm_firefox_sample sample = { .stack = stack, .weight = weight };
    sample.at_ns = at_ns > 0 && at_ns < 9e18 ? (int64_t)at_ns : 0;
    if (into->list.len > into->begin && into->list.data[into->list.len - 1].at_ns > sample.at_ns)
        sample.at_ns = into->list.data[into->list.len - 1].at_ns;
    fm_vec_push(&into->list, sample);
}

static void add_lane(struct firefox_order *o, const struct fm_order_lane *lane,
                     const struct fm_order_clock *clock, uint64_t start_ns)
{
    uint64_t round = lane->first_round;
    for (uint32_t i = 0; i < lane->n; i++) {
        const struct fm_order_item *item = &o->order->items.data[lane->first + i];
        double at_ns = fm_order_clock_ns(clock, (double)round) - (double)start_ns;
        round += item->count;
        if (!is_known(o, item)) { /* a gap */
            add(o, FM_NONE, at_ns, 0);
            continue;
        }
        struct firefox_share *share = share_at(o, item->node, item->state);
        int64_t before = part_of(share, share->past);
        share->past += item->count;
        uint32_t stack = fm_firefox_node_stack(o->f, item->node, (enum fm_state)item->state);
        add(o, stack, at_ns, part_of(share, share->past) - before);
    }
    add(o, FM_NONE, fm_order_clock_ns(clock, (double)round) - (double)start_ns, 0);
}

/* States of a node that were never seen in the order; the rest has been shared out. */
static void add_rest(struct firefox_order *o, uint32_t node)
{
    for (uint32_t i = 0; i < FM_STATE_COUNT; i++) {
        enum fm_state state = (enum fm_state)i;
        if (fm_profile_value(o->f->p, fm_metric_of_state(state), node) <= 0)
            continue;
        int64_t ns = share_at(o, node, i)->ns;
        if (!share_at(o, node, i)->rounds)
            add(o, fm_firefox_node_stack(o->f, node, state), 0, ns);
    }
}

bool fm_firefox_add_order(struct fm_firefox *f, uint32_t thread, uint64_t start_ns,
                          struct fm_firefox_samples *into)
{
    const struct fm_profile *p = f->p;
    struct firefox_order o = { .f = f, .order = &p->order, .into = into };
    const struct fm_order_clock *clock = clock_of(o.order, p->threads.data[thread].process);
    bool any = false;
    if (!clock || f->own.unit || p->processes.data[p->threads.data[thread].process].calls)
        return false;
    for (uint32_t i = f->first_lane[thread]; i != FM_NONE; i = f->next_lane[i])
        count_rounds(&o, &o.order->lanes.data[i]);
    if (o.shares.len) {
        for (uint32_t i = f->first_lane[thread]; i != FM_NONE; i = f->next_lane[i])
            add_lane(&o, &o.order->lanes.data[i], clock, start_ns);
        for (uint32_t node = f->first_node[thread]; node != FM_NONE; node = f->next_node[node])
            add_rest(&o, node);
        any = true;
    }
    fm_vec_release(&o.shares);
    fm_map_release(&o.share_of);
    return any;
}
