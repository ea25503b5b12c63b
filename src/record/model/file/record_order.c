/* The order of samples through the recorder; see recording.h and trace/sample_order.h. */
#include "base/varint.h"
#include "record/model/file/recording.h"

/* Each block stands for itself: its first row has nothing before it. */
static struct fm_row_before *row_before(const struct fm_recorder *r, enum fm_recorder_table table,
                                        struct fm_row_before *before)
{
    const struct fm_rows *rows = &r->tables[table];
    if (fm_rows_full(rows) || !rows->count)
        *before = (struct fm_row_before){ 0 };
    return before;
}

static void append_clock(struct fm_recorder *r, const struct fm_order_clock *clock,
                         uint64_t process)
{
    for (size_t k = 0; k < clock->times.len; k++) {
        const struct fm_order_time *time = &clock->times.data[k];
        struct fm_row_before *before = row_before(r, FM_TABLE_SAMPLE_ROUNDS, &r->round);
        FM_RECORDER_ROW(r, FM_TABLE_SAMPLE_ROUNDS, process + 1,
                        fm_zigzag((int64_t)(time->round - before->context)),
                        fm_zigzag((int64_t)(time->ns - before->time)));
        *before = (struct fm_row_before){ time->ns, time->round };
    }
}

static void append_item(struct fm_recorder *r, uint64_t lane, uint32_t first_node,
                        const struct fm_order_item *item)
{
    struct fm_row_before *before = row_before(r, FM_TABLE_SAMPLE_ITEMS, &r->item);
    bool unseen = item->node == FM_ORDER_UNSEEN;
    uint64_t context = unseen ? 0 : (uint64_t)first_node + item->node + 1;
    FM_RECORDER_ROW(r, FM_TABLE_SAMPLE_ITEMS, lane, fm_zigzag((int64_t)(context - before->context)),
                    unseen ? 0 : item->state, item->count);
    before->context = context;
}

void fm_recorder_order(struct fm_recorder *r, const struct fm_sample_order *order,
                       const struct fm_order_numbers *numbers)
{
    for (size_t i = 0; i < order->clocks.len && !r->failed; i++)
        append_clock(r, &order->clocks.data[i],
                     (uint64_t)numbers->first_process + order->clocks.data[i].process);
    for (size_t i = 0; i < order->lanes.len && !r->failed; i++) {
        const struct fm_order_lane *lane = &order->lanes.data[i];
        uint64_t number = FM_RECORDER_ROW(r, FM_TABLE_SAMPLE_LANES,
                                          (uint64_t)numbers->first_thread + lane->thread,
                                          lane->first_round, lane->rounds, lane->grain, lane->n);
        for (uint32_t k = 0; k < lane->n; k++)
            append_item(r, number, numbers->first_node, &order->items.data[lane->first + k]);
    }
}
