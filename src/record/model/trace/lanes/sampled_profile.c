/*
 * What was sampled in a stretch of time, as numbers of nodes; see sampled.h.
 *
 * How much of a context's samples in a state had been seen at an instant is a number that only grows, from 0
 * to all of them. What it has of the recording's time at that instant is the same share of the whole, rounded
 * down. A stretch has the difference of two such numbers, so stretches that follow one another add up exactly,
 * and all of them to what the recording says of the whole.
 */
#include "base/map.h"
#include "base/memory.h"
#include "record/model/trace/lanes/sampled_lanes.h"

/* A context in a state: counts before the two instants, and in all. */
struct seen_counts {
    uint32_t node, state;
    double from, to, all;
};

struct seen_sums {
    struct fm_map places;
    FM_VEC(struct seen_counts) list;
};

/* How much of an item that lasts from `begin` to `end` lies before an instant. */
static double part_before(uint64_t at, uint64_t begin, uint64_t end)
{
    if (at >= end)
        return 1;
    return at <= begin ? 0 : (double)(at - begin) / (double)(end - begin);
}

static void add_counts(struct seen_sums *sums, const struct fm_order_item *item, double from,
                       double to)
{
    bool is_new;
    uint32_t place = *fm_map_at(&sums->places, fm_map_pair(item->node, item->state),
                                (uint32_t)sums->list.len, &is_new);
    if (is_new)
        fm_vec_push(&sums->list, ((struct seen_counts){ item->node, item->state, 0, 0, 0 }));
    struct seen_counts *counts = &sums->list.data[place];
    counts->from += from * item->count;
    counts->to += to * item->count;
    counts->all += item->count;
}

static void count_piece(const struct fm_sampled *s, const struct fm_sampled_piece *piece,
                        uint64_t from_ns, uint64_t to_ns, struct seen_sums *sums)
{
    const struct fm_order_item *items = fm_sampled_items(s, piece);
    for (uint32_t i = 0; i < piece->order->n; i++) {
        uint64_t begin_ns = piece->instants[i], end_ns = piece->instants[i + 1];
        if (items[i].node != FM_ORDER_UNSEEN)
            add_counts(sums, &items[i], part_before(from_ns, begin_ns, end_ns),
                       part_before(to_ns, begin_ns, end_ns));
    }
}

/* The share of a whole that had been seen. */
static int64_t share(int64_t whole, double counts, double all)
{
    return counts >= all ? whole : (int64_t)((double)whole * (counts / all));
}

static bool has_exact_times(const struct fm_profile *p, uint32_t node)
{
    return p->processes.data[p->threads.data[p->nodes.data[node].thread].process].calls;
}

static void add_numbers(const struct fm_profile *p, const struct seen_counts *counts,
                        struct fm_profile *into, int64_t *own_ns)
{
    enum fm_metric metric = fm_metric_of_state((enum fm_state)counts->state);
    int64_t whole = fm_profile_value(p, metric, counts->node);
    int64_t ns = share(whole, counts->to, counts->all) - share(whole, counts->from, counts->all);
    int64_t all = (int64_t)counts->all;
    int64_t samples = share(all, counts->to, counts->all) - share(all, counts->from, counts->all);
    uint32_t process = into->threads.data[into->nodes.data[counts->node].thread].process;
    if (ns)
        fm_profile_add(into, metric, counts->node, ns);
    if (samples)
        fm_profile_add(into, FM_METRIC_SAMPLES, counts->node, samples);
    into->processes.data[process].samples += (uint64_t)samples;
    if (!has_exact_times(into, counts->node))
        own_ns[counts->node] += ns;
}

/* Callees belong to their callers. */
static void add_totals(struct fm_profile *into, int64_t *own_ns)
{
    for (size_t i = into->nodes.len; i-- > 0;) {
        uint32_t parent = into->nodes.data[i].parent;
        if (parent != FM_NONE)
            own_ns[parent] = fm_sum(own_ns[parent], own_ns[i]);
        if (own_ns[i])
            fm_profile_add(into, FM_METRIC_TOTAL, (uint32_t)i, own_ns[i]);
    }
}

void fm_sampled_add(const struct fm_sampled *s, uint64_t from_ns, uint64_t to_ns,
                    struct fm_profile *into)
{
    struct seen_sums sums = { 0 };
    fm_autofree int64_t *own_ns = fm_calloc(into->nodes.len + 1, sizeof *own_ns);
    for (size_t i = 0; i < s->pieces.len; i++)
        count_piece(s, &s->pieces.data[i], from_ns, to_ns, &sums);
    for (size_t i = 0; i < sums.list.len; i++)
        add_numbers(s->p, &sums.list.data[i], into, own_ns);
    add_totals(into, own_ns);
    fm_map_release(&sums.places);
    fm_vec_release(&sums.list);
}
