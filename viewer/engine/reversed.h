/*
 * The tree of callers: below a function its callers, below these theirs. Children of a node are
 * made when first asked for, since all of them would be as many as the contexts of a recording
 * times their depth.
 *
 * A node stands for a set of items: a context of the view in which time was spent (leaf), and the
 * context above it that this node stands for (here). Its value is the sum of the leaves' own
 * numbers, or, when the tree begins with one function, of that function's totals.
 */
#ifndef FM_ENGINE_REVERSED_H
#define FM_ENGINE_REVERSED_H

#include "view.h"

struct fm_reversed_item {
    uint32_t leaf, here;
};

struct fm_reversed_node {
    uint32_t parent, func;
    uint32_t first_item, items;
    uint32_t first_child, children; /* children lie side by side */
    bool expanded;
};

struct fm_reversed {
    FM_VEC(struct fm_reversed_node) nodes;
    FM_VEC(struct fm_reversed_item) items;
    bool all;         /* the root stands for every context: its items are not kept */
    uint32_t *counts; /* by function, zero between calls */
    uint32_t counts_len;
};

struct fm_reversed *fm_reversed_new(struct fm_view *v);
void fm_reversed_free(struct fm_reversed *r);

/* Make the children of a node. False if there would be too much. */
bool fm_reversed_expand(struct fm_view *v, uint32_t node);
bool fm_reversed_has_callers(const struct fm_view *v, uint32_t node);
/* The sum of a column of the view over the leaves. */
double fm_reversed_sum(const struct fm_view *v, uint32_t node, const int64_t *column);

#endif
