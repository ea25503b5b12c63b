/*
 * Reads the blocks of a .fathom file that say in which order samples were seen; see loader.h,
 * trace/sample_order.h and docs/format.md.
 *
 * Where an item stands is told by those before it. So of a lane that lacks some, what comes before the
 * first that is missing is kept.
 */
#include <string.h>

#include "record/capture/format.h"
#include "record/model/file/loader.h"

#define MOST_ROUNDS (1ull << 48) /* some 9,000 years of a thousand a second */

/* It can take no more items. */
#define CLOSED UINT64_MAX

bool fm_load_sample_lanes(struct fm_loader *l, struct fm_cursor *c)
{
    struct fm_sample_order *order = &l->p->order;
    if (!fm_loader_table(l, c) || l->table.width < 5 || !fm_loader_is_new(l, &l->order.lanes))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        struct fm_order_lane lane = { .thread = fm_loader_id(&l->threads, fm_loader_cell(l, i, 0)),
                                      .first_round = fm_loader_cell(l, i, 1),
                                      .rounds = fm_loader_cell(l, i, 2),
                                      .grain = fm_loader_cell(l, i, 3) };
        uint64_t items = fm_loader_cell(l, i, 4);
        bool fits = lane.thread != FM_NONE && lane.first_round < MOST_ROUNDS &&
                    lane.rounds < MOST_ROUNDS && lane.grain && lane.grain < MOST_ROUNDS;
        l->order.lost += !fits;
        lane.thread = fits ? lane.thread : FM_NONE;
        fm_renumber_add(&l->order.lanes, l->table.first + i, (uint32_t)order->lanes.len);
        fm_vec_push(&order->lanes, lane);
        fm_vec_push(&l->order.missing, fits ? items : CLOSED);
    }
    return true;
}

/* Rows are missing before this block: lanes that it may go on with cannot. They come in order. */
static void close_lanes(struct fm_loader *l, uint32_t last)
{
    for (uint32_t i = 0; i < l->order.missing.len && i <= last; i++)
        if (l->order.missing.data[i])
            l->order.missing.data[i] = CLOSED;
}

static void add_item(struct fm_loader *l, uint32_t number, const struct fm_order_item *item)
{
    struct fm_sample_order *order = &l->p->order;
    struct fm_order_lane *lane = &order->lanes.data[number];
    uint64_t *missing = &l->order.missing.data[number];
    if (!lane->n)
        lane->first = (uint32_t)order->items.len;
    bool fits = *missing && *missing != CLOSED && item->count &&
                order->items.len < FM_ORDER_UNSEEN && lane->first + lane->n == order->items.len;
    *missing = fits ? *missing - 1 : CLOSED;
    if (!fits)
        return;
    fm_vec_push(&order->items, *item);
    lane->n++;
}

bool fm_load_sample_items(struct fm_loader *l, struct fm_cursor *c)
{
    uint64_t context = 0;
    if (!fm_loader_table(l, c) || l->table.width < 4 || !l->table.rows)
        return false;
    uint32_t first = fm_loader_id(&l->order.lanes, fm_loader_cell(l, 0, 0));
    if (l->table.first != l->order.next_item && first != FM_NONE)
        close_lanes(l, first);
    l->order.next_item = (uint64_t)l->table.first + l->table.rows;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint32_t lane = fm_loader_id(&l->order.lanes, fm_loader_cell(l, i, 0));
        uint64_t state = fm_loader_cell(l, i, 2);
        struct fm_order_item item = { .node = FM_ORDER_UNSEEN, .count = fm_loader_cell32(l, i, 3) };
        context += (uint64_t)fm_loader_signed(l, i, 1);
        if (lane == FM_NONE)
            continue;
        if (context)
            item.node = fm_loader_id(&l->nodes, context - 1);
        if (item.node != FM_ORDER_UNSEEN)
            item.state = state < FM_STATE_COUNT ? (uint32_t)state : FM_STATE_OTHER;
        add_item(l, lane, &item);
    }
    return true;
}

bool fm_load_sample_rounds(struct fm_loader *l, struct fm_cursor *c)
{
    struct fm_sample_order *order = &l->p->order;
    uint64_t round = 0, ns = 0;
    if (!fm_loader_table(l, c) || l->table.width < 3)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint32_t process = fm_loader_row_process(l, i);
        bool is_new;
        round += (uint64_t)fm_loader_signed(l, i, 1);
        ns += (uint64_t)fm_loader_signed(l, i, 2);
        if (process == FM_NONE || round >= MOST_ROUNDS || ns > INT64_MAX)
            continue;
        uint32_t at = *fm_map_at(&l->order.clocks, process, (uint32_t)order->clocks.len, &is_new);
        if (is_new)
            fm_vec_push(&order->clocks, (struct fm_order_clock){ .process = process });
        struct fm_order_clock *clock = &order->clocks.data[at];
        const struct fm_order_time *last =
            clock->times.len ? &clock->times.data[clock->times.len - 1] : NULL;
        if (!last || (round > last->round && ns > last->ns))
            fm_vec_push(&clock->times, ((struct fm_order_time){ round, ns }));
    }
    return true;
}

/* Of a lane that was cut off, what is there; its counts are its rounds then. */
static void cut_lane(const struct fm_sample_order *order, struct fm_order_lane *lane)
{
    uint64_t rounds = 0;
    for (uint32_t i = 0; i < lane->n; i++)
        rounds += order->items.data[lane->first + i].count;
    lane->rounds = rounds < lane->rounds ? rounds : lane->rounds;
}

void fm_load_order_end(struct fm_loader *l)
{
    struct fm_sample_order *order = &l->p->order;
    size_t kept = 0;
    for (size_t i = 0; i < order->lanes.len; i++) {
        struct fm_order_lane lane = order->lanes.data[i];
        if (lane.thread == FM_NONE)
            continue;
        l->order.lost += l->order.missing.data[i] != 0;
        if (l->order.missing.data[i])
            cut_lane(order, &lane);
        if (lane.n && lane.rounds &&
            fm_map_find(&l->order.clocks, l->p->threads.data[lane.thread].process))
            order->lanes.data[kept++] = lane;
    }
    order->lanes.len = kept;
    if (l->order.lost)
        fm_profile_note(l->p, FM_NONE, "damaged", l->order.lost,
                        "threads have no timeline, or only its beginning: some of it is missing");
}

void fm_load_order_release(struct fm_loader *l)
{
    fm_renumber_release(&l->order.lanes);
    fm_vec_release(&l->order.missing);
    fm_map_release(&l->order.clocks);
}
