/*
 * Shapes: what folding, keeping, rooting and combining make of trees. One for all: reports reshape
 * profiles with it (model/derive/edit.h), the viewer its views.
 *
 * In two steps, which copy no numbers:
 *
 * Parts say of every node of a profile what becomes of it: a pass or two over the nodes, in which a
 * caller comes before its callees. The profile itself stays as it is.
 *
 * The shape then is the tree: equal paths become one, be they of threads, of two profiles, or because
 * of what was taken out between them. Its nodes are numbered so that those below v are v + 1 …
 * end[v] − 1, and every node of the profiles knows the one it is in.
 *
 * Numbers are taken over by fm_shape_counts and fm_shape_totals_new.
 */
#ifndef FM_MODEL_SHAPE_H
#define FM_MODEL_SHAPE_H

#include "record/model/profile.h"

/* What is asked of a function: bits by function of a profile. One that is folded is not there any
 * more to be kept or to be a root. */
enum fm_ask { FM_ASK_FOLD = 1, FM_ASK_KEEP = 2, FM_ASK_ROOT = 4 };

/* What becomes of a node of a profile: one of the first three, or none, which leaves it out with all
 * below it; and which of its numbers count. */
enum fm_node_part {
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

/* Lists of children, in the order of the profile; FM_NONE ends them. */
struct fm_links {
    uint32_t *first_child, *next_child; /* by node */
};

void fm_links_init(struct fm_links *links, const struct fm_profile *p);
void fm_links_release(struct fm_links *links);

/* By node of the profile its part; NULL if nothing is asked for: all are whole. `asked` is by
 * function, `kinds` are the asks that matter, even if no function matches. Caller frees. */
uint8_t *fm_parts_new(const struct fm_profile *p, const struct fm_links *links,
                      const uint8_t *asked, unsigned kinds);

struct fm_shape_source {
    const struct fm_profile *p; /* NULL: there is no such source */
    const struct fm_links *links;
    const uint8_t *part;  /* by node of p; NULL: all are whole */
    bool partly;          /* some nodes have of totals only what remains below them */
    const uint32_t *func; /* by function of p: what it is called in the shape */
    const uint32_t
        *name; /* by node of p: the same, where lines are told apart; NULL: as its function */
    const uint32_t *thread; /* by thread: the same for its root; FM_NONE leaves the thread out */
    uint32_t *node_of;      /* result, by node of p: node of the shape or FM_NONE. Caller frees */
};

/* What functions, and behind them threads, are called in a shape of one profile that keeps its
 * functions' numbers. Caller frees. */
uint32_t *fm_names_in_shape_new(const struct fm_profile *p);

struct fm_shape_options {
    bool together;      /* equal paths of all threads combined */
    bool joins;         /* a callee that is called as its caller is becomes one with it */
    bool folds;         /* parts may melt */
    uint32_t functions; /* names in the shape are below this */
};

struct fm_shape {
    uint32_t nodes, depth;
    uint32_t *parent, *func, *end; /* node 0 is the root of all, with function 0 */
};

/* Caller frees the arrays (fm_shape_release) and node_of. */
void fm_shape_init(struct fm_shape *shape, struct fm_shape_source source[2],
                   const struct fm_shape_options *o);
void fm_shape_release(struct fm_shape *shape);

/* By node: is there no node of the same function above it? Caller frees. */
uint8_t *fm_shape_outermost_new(const struct fm_shape *shape, uint32_t functions);

/* The part that a node must have for its number of a metric to count. */
static inline unsigned fm_part_of(enum fm_metric metric)
{
    return metric == FM_METRIC_CALLS   ? FM_SHAPE_CALLS
           : fm_metric_is_self(metric) ? FM_SHAPE_OWN
                                       : FM_SHAPE_REST;
}

/* Does the number of a node count in the shape? */
static inline bool fm_shape_counts(const struct fm_shape_source *s, size_t node, unsigned part)
{
    return s->node_of[node] != FM_NONE && (!s->part || s->part[node] & part);
}

/* Of a metric that includes callees, by node of the profile: its number, or where that does not count
 * the sum of what remains below it. Caller frees. */
int64_t *fm_shape_totals_new(const struct fm_shape_source *s, enum fm_metric metric);

#endif
