/*
 * Numbers of a shape (model/derive/shape.h): what its nodes have of a metric, and what functions and calls
 * have of it. One for all: tables and graphs of the terminal (model/derive/flat.h) add up with it, and
 * those of the page.
 *
 * A node has what is its own (self), and what it has together with its callees (total). Of a metric
 * that is recorded with callees the first is what the second leaves; of any other the second adds
 * the first up. Where a recording contradicts itself a caller has at least what its callees have,
 * and less than nothing is nothing: so pictures never overflow, and tables say what pictures show.
 *
 * Functions and calls are groups of nodes. A group has what is its nodes' own, and the totals of
 * those nodes that have no other of the group above them: recursion counts once.
 */
#ifndef FM_MODEL_SUMS_H
#define FM_MODEL_SUMS_H

#include "record/model/derive/shape.h"

/* By node of a shape. */
struct fm_numbers {
    int64_t *self, *total; /* total: NULL until it is asked for */
};

struct fm_numbers_of {
    uint64_t columns; /* of which it is the sum, a bit each. What includes callees, or is no sum,
                         stands alone */
    const bool *timeless; /* by thread: its time does not count; NULL: all does */
};

void fm_numbers_init(struct fm_numbers *n, const struct fm_shape *shape,
                     const struct fm_shape_source *source, const struct fm_numbers_of *o);
/* See to it that totals are there, too. */
void fm_numbers_add_up(struct fm_numbers *n, const struct fm_shape *shape,
                       const struct fm_numbers_of *o);
void fm_numbers_release(struct fm_numbers *n);

/* ---- calls: pairs of a caller and a callee ---- */

struct fm_call {
    uint32_t caller, callee; /* as functions are called in the shape */
};

struct fm_calls {
    FM_VEC(struct fm_call) list; /* in the order in which the tree has them */
    /* The nodes that these calls made, as groups. */
    uint32_t *node, *of;
    uint8_t *outermost;
    uint32_t nodes;
};

struct fm_calls_of {
    const bool *is_row; /* by name in the shape: a function, not a thread */
    uint32_t top;    /* how callers are called that are none; FM_NONE: their calls are left out */
    uint32_t around; /* only those from and to this function; FM_NONE: all */
};

void fm_calls_init(struct fm_calls *calls, const struct fm_shape *shape,
                   const struct fm_calls_of *o);
void fm_calls_release(struct fm_calls *calls);

/* ---- what functions and calls have ---- */

/* Nodes, and which group each is in. */
struct fm_groups {
    const uint32_t *node;     /* NULL: all of the shape */
    const uint32_t *of;       /* by place among these: its group; FM_NONE: none */
    const uint8_t *outermost; /* the same: no other of its group is above it */
    uint32_t len;
    size_t count; /* of groups */
};

struct fm_groups fm_groups_of_functions(const struct fm_shape *shape, const uint8_t *outermost,
                                        uint32_t functions);
struct fm_groups fm_groups_of_calls(const struct fm_calls *calls);

struct fm_sums {
    int64_t self, total, calls;
};

struct fm_sums_of {
    struct fm_numbers numbers; /* with totals */
    enum fm_metric metric;     /* says how two of them become one */
    const int64_t *calls;      /* by node, added up beside; NULL: none */
};

/* By group. Caller frees. */
struct fm_sums *fm_sums_new(const struct fm_groups *groups, const struct fm_sums_of *o);

#endif
