/*
 * The calling-context trees of a profile, ready to be walked: children of each node, largest first,
 * and each node's total and self time. Used by every view of the tree.
 */
#ifndef FM_REPORT_BRANCH_H
#define FM_REPORT_BRANCH_H

#include "record/model/derive/flat.h"
#include "show/report/metric.h"

struct fm_branches {
    const struct fm_profile *p;
    uint32_t *children; /* all children, grouped by parent */
    uint32_t *start;    /* per node, and one behind the last */
    int64_t *total_ns;
    int64_t
        *weight; /* NULL: the total. Where numbers are differences, those below zero count, too */
    int64_t *self_ns;               /* of a root: samples that showed no Python frame */
    struct fm_node_numbers numbers; /* of the metrics that have a column of their own */
};

void fm_branches_init(struct fm_branches *b, const struct fm_profile *p);
/* The same with another metric in the place of time. */
void fm_branches_init_of(struct fm_branches *b, const struct fm_profile *p, enum fm_metric metric);
void fm_branches_release(struct fm_branches *b);

/* How much the node matters: by that it is sorted, and shown or not. */
static inline int64_t fm_branches_weight(const struct fm_branches *b, uint32_t node)
{
    return b->weight ? b->weight[node] : b->total_ns[node];
}

/* Is the tree of this thread in scope? */
bool fm_branches_shows(const struct fm_profile *p, const struct fm_flat_scope *scope,
                       uint32_t thread);

/* A step of a walk, parents before children, in the order of a page. */
struct fm_step {
    uint32_t node;
    int depth;       /* 0 for a root */
    uint64_t lasts;  /* bit d: the ancestor at depth d (up to 63) has no later sibling shown */
    uint32_t hidden; /* instead of a node: so many children of `node` are not shown, too small each
                        or too deep, but together large enough for a line */
    int64_t hidden_ns;
};

/* Walk the tree of `thread` down to `depth_max` (< 0: all the way), leaving out what is smaller
 * than `least_ns`. Nothing recurses. */
typedef void fm_step_show(const struct fm_branches *b, const struct fm_step *step, void *data);
void fm_branches_walk(const struct fm_branches *b, uint32_t thread, int depth_max, int64_t least_ns,
                      fm_step_show *show, void *data);

#endif
