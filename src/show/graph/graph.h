/*
 * The call graph of a profile: functions as nodes, caller and callee as edges, each with its share
 * of the whole; what is worth showing of it; and the same of two recordings side by side.
 *
 * Model. A graph is made of the flat table of a profile (model/derive/flat.h) and refers to that profile,
 * which must outlive it. Numbers are kept as they were recorded, shares are computed from them: a
 * total is a share of the longer of the sum of all self times and the longest total, a self time is
 * a share of the sum of all self times. These are gprof2dot's shares of a pstats file. They are not
 * estimated: recursion was sorted out when the calls were recorded, so nothing is propagated around
 * cycles.
 *
 * A comparison has two sides. A node or edge may be on one of them only; a function is the same on
 * both sides if module and qualified name are; where several share these (lambdas, comprehensions),
 * the order in their file decides, or the line if one side has more of them.
 *
 * fm_graph_prune() clears `kept` of what is not to be shown and removes nothing.
 *
 * Threads: none. Does not draw (graph/dot.h) and does not lay out (graph/render.h).
 */
#ifndef FM_GRAPH_GRAPH_H
#define FM_GRAPH_GRAPH_H

#include "base/error.h"
#include "record/model/derive/flat.h"

#define FM_GRAPH_SIDES 2

struct fm_graph_side {
    int64_t total_ns, self_ns; /* an edge has no self time */
    int64_t calls, samples;
};

struct fm_graph_node {
    const struct fm_profile *p; /* whose function it is: of the first side that has it */
    uint32_t func;
    bool on[FM_GRAPH_SIDES]; /* which sides have it */
    bool kept;
    struct fm_graph_side side[FM_GRAPH_SIDES];
};

struct fm_graph_edge {
    uint32_t caller, callee; /* nodes */
    bool on[FM_GRAPH_SIDES];
    bool kept;
    int64_t total_ns[FM_GRAPH_SIDES], calls[FM_GRAPH_SIDES];
};

struct fm_graph {
    int sides; /* 1, or 2 for a comparison */
    FM_VEC(struct fm_graph_node) nodes;
    FM_VEC(struct fm_graph_edge) edges; /* sorted by (caller, callee) */
    uint32_t *edge_start; /* per node its first edge as a caller; one more at the end */
    /* What shares are of. Of a comparison by time both sides are measured by the first. */
    double total_whole_ns[FM_GRAPH_SIDES], self_whole_ns[FM_GRAPH_SIDES];
    int64_t self_sum_ns[FM_GRAPH_SIDES]; /* the time of each recording */
    enum fm_unit unit;                   /* of what is called time here: it may be another metric */
    bool calls_are_samples;              /* the table is of Python's own sampler */
};

struct fm_graph *fm_graph_new(const struct fm_profile *p, const struct fm_flat *flat);

enum fm_graph_measure {
    FM_GRAPH_BY_TIME,  /* both sides as shares of the first recording: what became slower */
    FM_GRAPH_BY_SHARE, /* each of its own recording: what weighs more, however long it ran */
};

/* The graph of both; `p` and `flat` have two elements. */
struct fm_graph *fm_graph_compare(const struct fm_profile *const p[FM_GRAPH_SIDES],
                                  const struct fm_flat *const flat[FM_GRAPH_SIDES],
                                  enum fm_graph_measure measure);
void fm_graph_free(struct fm_graph *g);

/* Shares from 0 to 1; beyond 1 only on the second side of a comparison. If nothing took any time,
 * all are 1. */
double fm_graph_total(const struct fm_graph *g, const struct fm_graph_node *node, int side);
double fm_graph_self(const struct fm_graph *g, const struct fm_graph_node *node, int side);
double fm_graph_edge_total(const struct fm_graph *g, const struct fm_graph_edge *edge, int side);

/* The larger of both sides: what decides whether it is shown, and how boldly. */
double fm_graph_weight(const struct fm_graph *g, const struct fm_graph_node *node);
double fm_graph_edge_weight(const struct fm_graph *g, const struct fm_graph_edge *edge);

struct fm_graph_filter {
    double node_min, edge_min; /* shares; smaller ones are not shown */
    const char *const *paths;  /* only functions of files that begin so; NULL: all */
    const char *root, *leaf;   /* only what these globs reach, or what reaches them; or NULL */
    int depth;                 /* calls away from root or leaf; negative: all */
};

struct fm_graph_count {
    size_t nodes, edges; /* that are kept */
};

/* FM_UNSUPPORTED if there is nothing in the graph or no function that root or leaf names;
 * FM_BAD_QUERY if what there is does not pass the filter. */
int fm_graph_prune(struct fm_graph *g, const struct fm_graph_filter *filter, struct fm_error *err);
struct fm_graph_count fm_graph_count(const struct fm_graph *g);

#endif
