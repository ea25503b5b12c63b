/* The order of samples; see sample_order.h. */
#include "record/model/trace/sample_order.h"

void fm_sample_order_release(struct fm_sample_order *order)
{
    for (size_t i = 0; i < order->clocks.len; i++)
        fm_vec_release(&order->clocks.data[i].times);
    fm_vec_release(&order->clocks);
    fm_vec_release(&order->lanes);
    fm_vec_release(&order->items);
}

/* --- other numbers ---------------------------------------------------------------------------- */

void fm_sample_order_move(struct fm_sample_order *order, const uint32_t *place, size_t nodes)
{
    for (size_t i = 0; i < order->items.len; i++) {
        struct fm_order_item *item = &order->items.data[i];
        item->node = item->node < nodes ? place[item->node] : FM_ORDER_UNSEEN;
        item->state = item->node == FM_ORDER_UNSEEN ? 0 : item->state;
    }
}

void fm_sample_order_copy(struct fm_sample_order *to, const struct fm_sample_order *from,
                          const struct fm_order_renumbering *numbers)
{
    uint32_t first = (uint32_t)to->items.len;
    for (size_t i = 0; i < from->lanes.len; i++) {
        struct fm_order_lane lane = from->lanes.data[i];
        lane.thread =
            numbers->thread ? numbers->thread[lane.thread] : numbers->first_thread + lane.thread;
        lane.first += first;
        fm_vec_push(&to->lanes, lane);
    }
    for (size_t i = 0; i < from->items.len; i++) {
        struct fm_order_item item = from->items.data[i];
        if (item.node != FM_ORDER_UNSEEN)
            item.node = numbers->node ? numbers->node[item.node] : numbers->first_node + item.node;
        item.state = item.node == FM_ORDER_UNSEEN ? 0 : item.state;
        fm_vec_push(&to->items, item);
    }
    for (size_t i = 0; i < from->clocks.len; i++) {
        const struct fm_order_clock *clock = &from->clocks.data[i];
        uint32_t process = numbers->process ? numbers->process[clock->process]
                                            : numbers->first_process + clock->process;
        struct fm_order_clock *own = fm_sample_order_clock(to, process);
        for (size_t k = 0; k < clock->times.len; k++)
            fm_vec_push(&own->times, clock->times.data[k]);
    }
}

/* --- time ------------------------------------------------------------------------------------- */

struct fm_order_clock *fm_sample_order_clock(struct fm_sample_order *order, uint32_t process)
{
    for (size_t i = 0; i < order->clocks.len; i++)
        if (order->clocks.data[i].process == process)
            return &order->clocks.data[i];
    fm_vec_push(&order->clocks, (struct fm_order_clock){ .process = process });
    return &order->clocks.data[order->clocks.len - 1];
}

double fm_order_clock_ns(const struct fm_order_clock *clock, double round)
{
    size_t low = 0, high = clock->times.len - 1; /* the pair around it */
    if (!high)
        return (double)clock->times.data[0].ns;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (round >= (double)clock->times.data[middle].round)
            low = middle;
        else
            high = middle;
    }
    const struct fm_order_time *a = &clock->times.data[low], *b = &clock->times.data[high];
    double slope = (double)(b->ns - a->ns) / (double)(b->round - a->round);
    double ns = (double)a->ns + (round - (double)a->round) * slope;
    return ns > 0 ? ns : 0;
}
