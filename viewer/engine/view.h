/*
 * A view: one recording, or two to be compared, shaped for showing. See engine.h for the model.
 *
 * Invariants:
 *  1. node 0 is the root; parent[v] < v < end[v] <= nodes; the nodes below v are v + 1 … end[v]
 * − 1.
 *  2. func[v] < number of functions of the engine when the view was made.
 *  3. total[v] >= the sum of the totals of v's children, and nothing is negative: pictures never
 * overflow (model/derive/sums.h). A reversed view has these too, for the tables; its own tree is in
 * reversed.h.
 */
#ifndef FM_ENGINE_VIEW_H
#define FM_ENGINE_VIEW_H

#include "engine.h"
#include "record/model/derive/sums.h"

/* What the page asks for; filled from text by fm_view_options_read (options.c). */
struct fm_view_pattern {
    uint32_t func;    /* an id, or FM_NONE: a glob */
    const char *glob; /* in the text that was read */
};
typedef FM_VEC(struct fm_view_pattern) fm_view_patterns;

struct fm_view_options {
    int recording, base;      /* base −1: none */
    uint32_t process, thread; /* FM_NONE: all */
    bool together;            /* equal paths of all threads combined */
    bool fold_libraries, by_module, by_line, reversed;
    uint32_t callers_of; /* FM_NONE: no */
    fm_view_patterns fold, keep, root;
};

/* The text is pairs "key\0value\0"; it must live as long as the options. 0 or negative. */
int fm_view_options_read(struct fm_view_options *o, const char *text, size_t len,
                         struct fm_error *err);
void fm_view_options_release(struct fm_view_options *o);

#define FM_VIEW_RECENT 3

/* What tables have of time, where that is not what is drawn: threads that were only sampled beside
 * calls are in pictures, and tables leave their time out (model/derive/flat.h). */
enum { FM_VIEW_TABLE_TIME = FM_ENGINE_METRICS, FM_VIEW_METRICS };

struct fm_view_side {
    struct fm_recording *recording; /* NULL: not compared */
    struct fm_shape_source of;      /* its profile, what of its nodes counts and where they are */
    struct fm_numbers values[FM_VIEW_METRICS]; /* the model's; NULL until asked for */
    unsigned recent[FM_VIEW_RECENT];           /* metrics kept, the newest first */
    const struct fm_flat *table; /* NULL, or the table that the recording came as, shown as it is */
    struct fm_flat *flat;        /* what a table shows beside the metric; NULL until asked for */
};

struct fm_reversed;

struct fm_view {
    struct fm_engine *engine;
    struct fm_view_options options;
    /* Views that differ only in being reversed use one tree and its numbers, those of the first. */
    char *key;               /* what the tree was made by, as text */
    struct fm_view *tree_of; /* whose tree this is; NULL: its own */
    uint32_t users;          /* other views that use this one's tree */
    bool closed;             /* freed, but for those */
    uint64_t used;           /* when, in the engine's counting */
    uint32_t nodes, depth;
    uint32_t *parent, *func, *end;
    uint8_t *outermost; /* no node of the same function above it */
    struct fm_view_side side[2];
    /* Who called whom, the model's: all of it, and of one function. Made when first asked for. */
    struct fm_calls calls, calls_around;
    uint32_t around;              /* which one */
    struct fm_reversed *reversed; /* NULL unless reversed */
};

int fm_engine_view_new(struct fm_engine *e, const char *options, size_t len);
void fm_engine_view_free(struct fm_engine *e, int view);
struct fm_view *fm_engine_view(struct fm_engine *e, int view); /* or NULL and e->err */
bool fm_view_uses(const struct fm_view *v, const struct fm_recording *r);

/* The options that make the tree, as text. Caller frees. options.c */
char *fm_view_options_key(const struct fm_view_options *o);

/* Shape the sides as the options say, and build the tree. shape.c */
void fm_view_shape(struct fm_view *v);

/* The numbers of a metric on a side (0 after, 1 before); NULLs if there is no such side. */
struct fm_numbers fm_view_values(struct fm_view *v, int side, unsigned metric);
/* Those that tables and graphs are made of. */
struct fm_numbers fm_view_table_values(struct fm_view *v, int side, unsigned metric);
/* Without the totals, which for most metrics need not be made then. */
const int64_t *fm_view_selves(struct fm_view *v, int side, unsigned metric);
/* Another instant is shown: what was alive at the last one goes. */
void fm_view_forget_moments(struct fm_view *v);
/* The view is used: those that were used before the last ones forget their numbers. */
void fm_view_use(struct fm_view *v);

static inline struct fm_shape fm_view_tree(const struct fm_view *v)
{
    return (struct fm_shape){ v->nodes, v->depth, v->parent, v->func, v->end };
}

static inline bool fm_view_is_diff(const struct fm_view *v)
{
    return v->side[1].recording != NULL;
}

/* ---- results; each fills e->results[0] and returns 0, or −1 and e->err ---- */

enum { FM_ORDER_HEAVY, FM_ORDER_NAME, FM_ORDER_RECORDED };
enum { FM_BY_VALUE, FM_BY_BASE, FM_BY_BOTH };

struct fm_layout_query {
    unsigned metric;
    uint32_t root;
    double cut; /* share of the root's width below which a box is left out */
    uint32_t depth, limit;
    int order, by;
};

/* Columns: node, func, depth, parent, start, width, value, self [, base, base self].
 * Scalars: omitted, deeper, truncated. layout.c */
int fm_view_layout(struct fm_view *v, const struct fm_layout_query *q);
/* Columns: node, func, children, value, self, calls [, base, base self, base calls].
 * Scalars: omitted. `only`: the node itself. */
int fm_view_children(struct fm_view *v, uint32_t node, unsigned metric, uint32_t limit, bool only);
/* Scalars: nodes, depth, diff, estimated. */
int fm_view_info(struct fm_view *v);
/* Scalars: the root's value and base. */
int fm_view_totals(struct fm_view *v, unsigned metric);
/* One column: functions from the top to the node. */
int fm_view_path(struct fm_view *v, uint32_t node);
/* The node with that path, or the deepest there is on it. */
uint32_t fm_view_find(struct fm_view *v, const uint32_t *path, uint32_t len);
uint32_t fm_view_parent(struct fm_view *v, uint32_t node);

/* Columns: func, nodes, calls, primitive, self, total, min, max, suspended, samples
 * [, states (as many as there are wide)] [, self and total of each of fm_profile_columns]
 * [, base calls, base self, base total] [, errors of self and total]; scalars: sum, base sum, has states, number
 * of these metrics, has errors. tables.c */
int fm_view_table(struct fm_view *v, unsigned metric);
/* The metric that says how far estimates of another may be off; FM_METRIC_COUNT: they are exact, or it is unknown. */
unsigned fm_view_error_metric(const struct fm_view *v, unsigned metric);
/* Scalars: how far the total and the own part of a node may be off, 0: not. layout.c */
int fm_view_error(struct fm_view *v, uint32_t node, unsigned metric);
/* Columns: func, calls, self, total [, base calls, base total]. */
int fm_view_neighbours(struct fm_view *v, uint32_t func, unsigned metric, bool callers);
/* Scalars: value, base, nodes. */
int fm_view_matched(struct fm_view *v, const uint32_t *funcs, uint32_t len, unsigned metric);

/* Numbers of a function or an edge. */
struct fm_view_numbers {
    double calls, self, total;
};
/* One per function of the engine, zero for those that are not in the view. Caller frees. */
struct fm_view_numbers *fm_view_function_numbers(struct fm_view *v, int side, unsigned metric);
/* Calls from one function to another, after and before. Caller 0 is the thread itself. */
struct fm_view_edge {
    uint32_t caller, callee;
    struct fm_view_numbers side[2];
};
typedef FM_VEC(struct fm_view_edge) fm_view_edges;
/* All of them, or those from and to one function. Caller releases. */
fm_view_edges fm_view_edges_of(struct fm_view *v, unsigned metric, uint32_t around);
/* What shares are taken of. */
double fm_view_sum(struct fm_view *v, int side, unsigned metric);

struct fm_graph_query {
    unsigned metric;
    double node_cut, edge_cut;
    uint32_t limit, root, leaf; /* FM_NONE: no */
};

/* results[0]: nodes: func, layer, x, y, total, self, calls [, base total, base self];
 * results[1]: edges: from, to, first point, points, total, calls [, base total];
 * results[2]: points: x, y. Scalars of results[0]: width, height, omitted nodes, omitted edges,
 * sum, base sum. graph.c */
int fm_view_graph(struct fm_view *v, const struct fm_graph_query *q);

#endif
