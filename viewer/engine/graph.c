/*
 * The call graph of a view: which functions and calls are worth a box and a line, and where they
 * go.
 *
 * As gprof2dot does: functions whose total is below a share of the whole, and calls below another,
 * are left out; with a root or a leaf, only what is reached from the one or leads to the other.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "layers.h"
#include "view.h"

#define MAX_EDGES 5000u

struct picked {
    uint32_t func;
    double weight;
};

struct graph {
    struct fm_view *v;
    const struct fm_graph_query *q;
    struct fm_view_numbers *node[2]; /* by function; after and before */
    fm_view_edges calls;
    double sum[2];
    uint8_t *wanted; /* by function */
    uint32_t *box;   /* by function: its row, or FM_NONE */
    FM_VEC(struct picked) nodes;
    FM_VEC(struct picked) edges; /* func: the edge's number */
    double omitted_nodes, omitted_edges;
};

/* The larger share of the two recordings. */
static double share(const struct graph *g, double after, double before)
{
    double a = g->sum[0] > 0 ? after / g->sum[0] : 0, b = g->sum[1] > 0 ? before / g->sum[1] : 0;
    return a > b ? a : b;
}

static int by_weight(const void *left, const void *right)
{
    const struct picked *a = left, *b = right;
    if (a->weight != b->weight)
        return a->weight > b->weight ? -1 : 1;
    return a->func < b->func ? -1 : a->func > b->func;
}

/* Mark what is reached from `start`, along the calls or against them. */
static void reach(struct graph *g, uint32_t start, bool forward, uint8_t *seen)
{
    const struct fm_view *v = g->v;
    size_t functions = v->engine->functions.len;
    fm_autofree uint32_t *head = fm_malloc(functions * sizeof *head);
    fm_autofree uint32_t *chain = fm_malloc((g->calls.len + 1) * sizeof *chain);
    fm_autofree uint32_t *queue = fm_malloc(functions * sizeof *queue);
    memset(head, 0xff, functions * sizeof *head);
    for (uint32_t i = 0; i < g->calls.len; i++) {
        uint32_t from = forward ? g->calls.data[i].caller : g->calls.data[i].callee;
        chain[i] = head[from];
        head[from] = i;
    }
    uint32_t len = 0;
    seen[start] = 1;
    queue[len++] = start;
    for (uint32_t at = 0; at < len; at++) {
        for (uint32_t i = head[queue[at]]; i != FM_NONE; i = chain[i]) {
            uint32_t to = forward ? g->calls.data[i].callee : g->calls.data[i].caller;
            if (!seen[to]) {
                seen[to] = 1;
                queue[len++] = to;
            }
        }
    }
}

static void choose_wanted(struct graph *g)
{
    size_t functions = g->v->engine->functions.len;
    memset(g->wanted, 1, functions);
    const uint32_t ends[2] = { g->q->root, g->q->leaf };
    for (int i = 0; i < 2; i++) {
        if (ends[i] >= functions)
            continue;
        fm_autofree uint8_t *seen = fm_calloc(functions, 1);
        reach(g, ends[i], i == 0, seen);
        for (size_t f = 0; f < functions; f++)
            g->wanted[f] &= seen[f];
    }
}

static void pick_nodes(struct graph *g)
{
    uint32_t limit = g->q->limit && g->q->limit < 2000 ? g->q->limit : 2000;
    for (uint32_t f = 1; f < g->v->engine->functions.len; f++) {
        const struct fm_view_numbers *after = &g->node[0][f], *before = &g->node[1][f];
        uint8_t kind = g->v->engine->functions.data[f].kind;
        if (kind == FM_FUNCTION_ROOT ||
            !(after->total > 0 || before->total > 0 || after->calls > 0 || before->calls > 0))
            continue;
        double weight = share(g, after->total, before->total);
        if (g->wanted[f] && weight >= g->q->node_cut)
            fm_vec_push(&g->nodes, ((struct picked){ f, weight }));
        else
            g->omitted_nodes++;
    }
    if (g->nodes.len)
        qsort(g->nodes.data, g->nodes.len, sizeof *g->nodes.data, by_weight);
    if (g->nodes.len > limit) {
        g->omitted_nodes += (double)(g->nodes.len - limit);
        g->nodes.len = limit;
    }
    memset(g->box, 0xff, g->v->engine->functions.len * sizeof *g->box);
    for (uint32_t i = 0; i < g->nodes.len; i++)
        g->box[g->nodes.data[i].func] = i;
}

static void pick_edges(struct graph *g)
{
    for (uint32_t i = 0; i < g->calls.len; i++) {
        const struct fm_view_edge *edge = &g->calls.data[i];
        double weight = share(g, edge->side[0].total, edge->side[1].total);
        bool used = weight > 0 || edge->side[0].calls > 0 || edge->side[1].calls > 0;
        if (!edge->caller || !used)
            continue;
        if (g->box[edge->caller] != FM_NONE && g->box[edge->callee] != FM_NONE &&
            weight >= g->q->edge_cut)
            fm_vec_push(&g->edges, ((struct picked){ i, weight }));
        else
            g->omitted_edges++;
    }
    if (g->edges.len)
        qsort(g->edges.data, g->edges.len, sizeof *g->edges.data, by_weight);
    if (g->edges.len > MAX_EDGES) {
        g->omitted_edges += (double)(g->edges.len - MAX_EDGES);
        g->edges.len = MAX_EDGES;
    }
}

static void fill_nodes(struct graph *g, struct fm_result *r, struct fm_layers *layers)
{
    bool diff = fm_view_is_diff(g->v);
    fm_result_begin(r, (uint32_t)g->nodes.len);
    uint32_t *func = fm_result_u32(r);
    layers->layer = fm_result_u32(r);
    layers->x = fm_result_f64(r);
    layers->y = fm_result_f64(r);
    double *total = fm_result_f64(r), *self = fm_result_f64(r), *calls = fm_result_f64(r);
    double *base = diff ? fm_result_f64(r) : NULL, *base_self = diff ? fm_result_f64(r) : NULL;
    for (size_t i = 0; i < g->nodes.len; i++) {
        uint32_t f = func[i] = g->nodes.data[i].func;
        total[i] = g->node[0][f].total;
        self[i] = g->node[0][f].self;
        calls[i] = g->node[0][f].calls;
        if (diff) {
            base[i] = g->node[1][f].total;
            base_self[i] = g->node[1][f].self;
        }
    }
}

static void fill_edges(struct graph *g, struct fm_result *r, const struct fm_layers *layers)
{
    bool diff = fm_view_is_diff(g->v);
    fm_result_begin(r, (uint32_t)g->edges.len);
    uint32_t *from = fm_result_u32(r), *to = fm_result_u32(r), *first = fm_result_u32(r),
             *points = fm_result_u32(r);
    double *total = fm_result_f64(r), *calls = fm_result_f64(r);
    double *base = diff ? fm_result_f64(r) : NULL;
    for (size_t i = 0; i < g->edges.len; i++) {
        const struct fm_view_edge *edge = &g->calls.data[g->edges.data[i].func];
        from[i] = layers->edge[i].from;
        to[i] = layers->edge[i].to;
        first[i] = layers->edge[i].first_point;
        points[i] = layers->edge[i].points;
        total[i] = edge->side[0].total;
        calls[i] = edge->side[0].calls;
        if (diff)
            base[i] = edge->side[1].total;
    }
}

static void fill_points(struct fm_result *r, const struct fm_layers *layers)
{
    fm_result_begin(r, (uint32_t)layers->points.len);
    double *x = fm_result_f64(r), *y = fm_result_f64(r);
    for (size_t i = 0; i < layers->points.len; i++) {
        x[i] = layers->points.data[i].x;
        y[i] = layers->points.data[i].y;
    }
}

static void lay_out(struct graph *g)
{
    struct fm_result *r = g->v->engine->results;
    struct fm_layers layers = { .nodes = (uint32_t)g->nodes.len, .edges = (uint32_t)g->edges.len };
    layers.edge = fm_calloc(g->edges.len, sizeof *layers.edge);
    for (size_t i = 0; i < g->edges.len; i++) {
        const struct fm_view_edge *edge = &g->calls.data[g->edges.data[i].func];
        layers.edge[i] = (struct fm_layers_edge){ .from = g->box[edge->caller],
                                                  .to = g->box[edge->callee],
                                                  .weight = g->edges.data[i].weight };
    }
    fill_nodes(g, &r[0], &layers);
    fm_layers_place(&layers);
    fill_edges(g, &r[1], &layers);
    fill_points(&r[2], &layers);
    r[0].scalars[0] = layers.width;
    r[0].scalars[1] = layers.height;
    r[0].scalars[2] = g->omitted_nodes;
    r[0].scalars[3] = g->omitted_edges;
    r[0].scalars[4] = g->sum[0];
    r[0].scalars[5] = g->sum[1];
    free(layers.edge);
    fm_vec_release(&layers.points);
}

int fm_view_graph(struct fm_view *v, const struct fm_graph_query *q)
{
    if (!fm_engine_metric_is_drawn(q->metric)) {
        fm_error_set(&v->engine->err, FM_USAGE, "there is no metric %u", q->metric);
        return -1;
    }
    struct graph g = { .v = v, .q = q };
    for (int i = 0; i < 2; i++) {
        g.node[i] = fm_view_function_numbers(v, i, q->metric);
        g.sum[i] = fm_view_sum(v, i, q->metric);
    }
    g.calls = fm_view_edges_of(v, q->metric, FM_NONE);
    g.wanted = fm_malloc(v->engine->functions.len);
    g.box = fm_malloc(v->engine->functions.len * sizeof *g.box);
    choose_wanted(&g);
    pick_nodes(&g);
    pick_edges(&g);
    lay_out(&g);
    for (int i = 0; i < 2; i++)
        free(g.node[i]);
    fm_vec_release(&g.calls);
    free(g.wanted);
    free(g.box);
    fm_vec_release(&g.nodes);
    fm_vec_release(&g.edges);
    return 0;
}
