/* How the order of samples becomes coarser, and how large it is; see sample_order.h. Not for the browser. */
#include <math.h>
#include <string.h>

#include "base/map.h"
#include "record/model/trace/sample_order.h"

#define MOST_GRAIN (1ull << 40)
#define TIME_BYTES 5 /* of a time in a file, about */

/* --- thinning --------------------------------------------------------------------------------- */

static bool add_count(struct fm_order_item *to, uint32_t count)
{
    if (to->count > UINT32_MAX - count)
        return false;
    to->count += count;
    return true;
}

size_t fm_order_thin_items(struct fm_order_item *items, size_t n, uint64_t first_round,
                           uint64_t grain)
{
    struct fm_map known = { 0 }; /* (context, state) → its last place */
    uint64_t at = first_round, stretch = UINT64_MAX;
    size_t kept = 0, stretch_first = 0;
    for (size_t i = 0; i < n; i++) {
        struct fm_order_item item = items[i];
        uint64_t begin = at;
        at += item.count;
        if (begin / grain != stretch) {
            stretch = begin / grain;
            stretch_first = kept;
        }
        if (kept && fm_order_is_equal(&items[kept - 1], &item) &&
            add_count(&items[kept - 1], item.count))
            continue;
        bool is_new = true;
        uint32_t *place = NULL;
        if (grain > 1) {
            place = fm_map_at(&known, fm_map_pair(item.node, item.state), (uint32_t)kept, &is_new);
            /* One that reaches into the next stretch would move all that stands between. */
            if (!is_new && *place >= stretch_first && at <= (stretch + 1) * grain &&
                add_count(&items[*place], item.count))
                continue;
            *place = (uint32_t)kept;
        }
        items[kept++] = item;
    }
    fm_map_release(&known);
    return kept;
}

/* Does time pass evenly, but for the tolerance, from `from` over all between to `to`? */
static bool is_even(const struct fm_order_time *times, size_t from, size_t to,
                    uint64_t tolerance_ns)
{
    double slope =
        (double)(times[to].ns - times[from].ns) / (double)(times[to].round - times[from].round);
    for (size_t i = from + 1; i < to; i++) {
        double ns = (double)(times[i].round - times[from].round) * slope;
        if (fabs(ns - (double)(times[i].ns - times[from].ns)) > (double)tolerance_ns)
            return false;
    }
    return true;
}

size_t fm_order_thin_times(struct fm_order_time *times, size_t n, uint64_t tolerance_ns)
{
    enum { FARTHEST = 64 }; /* so that this does not take the square of the time */
    size_t kept = 0;
    for (size_t i = 0; i < n;) {
        struct fm_order_time here = times[i];
        size_t next = i + 1;
        while (next + 1 < n && next + 1 - i <= FARTHEST &&
               is_even(times, i, next + 1, tolerance_ns))
            next++;
        times[kept++] = here; /* never behind `i` */
        i = next;
    }
    return kept;
}

/* A clock need not be finer than what it dates. */
static void thin_clocks(struct fm_sample_order *order, uint64_t grain)
{
    for (size_t i = 0; i < order->clocks.len; i++) {
        struct fm_order_clock *clock = &order->clocks.data[i];
        if (clock->times.len < 3)
            continue;
        const struct fm_order_time *first = &clock->times.data[0];
        const struct fm_order_time *last = &clock->times.data[clock->times.len - 1];
        double interval_ns = (double)(last->ns - first->ns) / (double)(last->round - first->round);
        uint64_t tolerance_ns = (uint64_t)(interval_ns * (double)grain / 2);
        clock->times.len = fm_order_thin_times(clock->times.data, clock->times.len,
                                               tolerance_ns < 2000000 ? 2000000 : tolerance_ns);
    }
}

void fm_sample_order_thin(struct fm_sample_order *order, uint64_t grain)
{
    uint32_t kept = 0;
    for (size_t i = 0; i < order->lanes.len; i++) {
        struct fm_order_lane *lane = &order->lanes.data[i];
        struct fm_order_item *items = order->items.data + lane->first;
        lane->grain = grain > lane->grain ? grain : lane->grain;
        uint32_t n = (uint32_t)fm_order_thin_items(items, lane->n, lane->first_round, lane->grain);
        memmove(order->items.data + kept, items, n * sizeof *items);
        lane->first = kept;
        lane->n = n;
        kept += n;
    }
    order->items.len = kept;
    thin_clocks(order, grain);
}

/* --- how large it is -------------------------------------------------------------------------- */

/* What the values of a column take when each has a code of its best length. */
static double column_bits(const struct fm_map *counts, double n)
{
    double bits = 0;
    for (size_t i = 0; i < counts->cap; i++)
        if (counts->slots[i].used)
            bits += counts->slots[i].value * log2(n / counts->slots[i].value);
    return bits + (double)counts->len * 16; /* each value once, and its code */
}

uint64_t fm_sample_order_bytes(const struct fm_sample_order *order)
{
    struct fm_map nodes = { 0 }, counts = { 0 };
    double n = (double)order->items.len;
    for (size_t i = 0; i < order->items.len; i++) {
        const struct fm_order_item *item = &order->items.data[i];
        ++*fm_map_at(&nodes, fm_map_pair(item->node, item->state), 0, NULL);
        ++*fm_map_at(&counts, item->count, 0, NULL);
    }
    double bytes = (column_bits(&nodes, n) + column_bits(&counts, n)) / 8;
    for (size_t i = 0; i < order->clocks.len; i++)
        bytes += (double)(order->clocks.data[i].times.len * TIME_BYTES);
    fm_map_release(&nodes);
    fm_map_release(&counts);
    return (uint64_t)bytes + order->lanes.len * 8;
}

void fm_sample_order_fit(struct fm_sample_order *order, uint64_t bytes)
{
    uint64_t rounds = 0;
    for (size_t i = 0; i < order->lanes.len; i++)
        rounds = order->lanes.data[i].rounds > rounds ? order->lanes.data[i].rounds : rounds;
    fm_sample_order_thin(order, 1);
    for (uint64_t grain = 2; grain < MOST_GRAIN && grain / 2 < rounds; grain *= 2) {
        if (fm_sample_order_bytes(order) <= bytes)
            return;
        fm_sample_order_thin(order, grain);
    }
}
