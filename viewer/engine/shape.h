/*
 * From recordings to the tree of a view, in two steps.
 *
 * shape.c says of every node of a recording what becomes of it, its part: folding, keeping and
 * rooting are a pass or two over the nodes, in which a caller comes before its callees. The
 * recording itself stays as it is, and nothing of it is copied. What the three mean is told in
 * model/edit.h: results are those of doing them there, one after the other.
 *
 * tree.c then makes the tree: equal paths become one, be they of threads, of two recordings, or
 * because of what was taken out between them.
 */
#ifndef FM_ENGINE_SHAPE_H
#define FM_ENGINE_SHAPE_H

#include "view.h"

/* What becomes of a node of a recording: one of the first three, or none, which leaves it out with
 * all below it; and which of its numbers count. */
enum fm_shape_part {
    FM_SHAPE_NODE = 1,  /* it is in the tree */
    FM_SHAPE_MELTS = 2, /* into its caller */
    FM_SHAPE_LEADS = 4, /* is not in the tree; what is below it may be, under the caller */
    FM_SHAPE_CALLS = 8,
    FM_SHAPE_OWN = 16,     /* the numbers that are of the node alone: fm_metric_is_self */
    FM_SHAPE_REST = 32,    /* the other ones */
    FM_SHAPE_INSIDE = 64,  /* for those below: it is, or is below, something that is kept */
    FM_SHAPE_ROOTED = 128, /* … a root */
    FM_SHAPE_WHOLE = FM_SHAPE_NODE | FM_SHAPE_CALLS | FM_SHAPE_OWN | FM_SHAPE_REST,
};

struct fm_tree_source {
    struct fm_recording *recording;
    const struct fm_profile *p; /* its profile; NULL: there is no such source */
    const uint8_t *part;        /* by node of p; NULL: all are whole */
    uint32_t *node_of;          /* result, by node of p: node of the tree or FM_NONE */
    /* While the tree is built. */
    const uint32_t *first_child, *next_child; /* the recording's */
    uint32_t *func; /* by function of p: of the engine; FM_NONE: its module, not asked for yet */
};

/* The arrays are as in struct fm_view. */
struct fm_tree {
    uint32_t nodes, depth;
    uint32_t *parent, *func, *end;
};

/* Scope, threads and modules are as the options say. Caller frees the arrays and node_of. */
void fm_tree_build(struct fm_tree *tree, struct fm_engine *e, struct fm_tree_source source[2],
                   const struct fm_view_options *o);

bool fm_view_in_scope(const struct fm_view_options *o, const struct fm_profile *p, uint32_t thread);

#endif
