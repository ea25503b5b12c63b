/* Inside of sampled lanes (sampled.h): what sampled.c, sampled_cells.c and sampled_profile.c share. Nobody else
 * includes this. */
#ifndef FM_MODEL_TRACE_SAMPLED_LANES_H
#define FM_MODEL_TRACE_SAMPLED_LANES_H

#include "record/model/trace/lanes/sampled.h"

/* Items that follow one another, with the instants at which they begin; the end of the last is one more. */
struct fm_sampled_piece {
    const struct fm_order_lane *order;
    const uint64_t *instants; /* order->n + 1 */
};

struct fm_sampled_lane {
    struct fm_lane lane;
    uint32_t first, n; /* pieces */
};

struct fm_sampled {
    const struct fm_profile *p;
    FM_VEC(struct fm_sampled_lane) lanes;
    FM_VEC(struct fm_sampled_piece) pieces; /* by lane, then by time */
    uint64_t *instants;
    uint32_t *depths; /* by node; of the root of a thread 0 */
};

static inline const struct fm_order_item *fm_sampled_items(const struct fm_sampled *s,
                                                           const struct fm_sampled_piece *piece)
{
    return s->p->order.items.data + piece->order->first;
}

#endif
