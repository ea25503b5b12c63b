/*
 * What of a call graph is shown; see graph.h. In gprof2dot's order: functions by their share, then
 * by their file, edges by theirs, then what a root reaches, then what reaches a leaf. Distances are
 * those of the shortest way.
 */
#include <string.h>

#include "base/memory.h"
#include "show/graph/graph.h"
#include "show/graph/names.h"

struct fm_graph_count fm_graph_count(const struct fm_graph *g)
{
    struct fm_graph_count count = { 0, 0 };
    for (size_t i = 0; i < g->nodes.len; i++)
        count.nodes += g->nodes.data[i].kept;
    for (size_t i = 0; i < g->edges.len; i++)
        count.edges += g->edges.data[i].kept;
    return count;
}

/* A function without any file stays, as it does in gprof2dot; builtins count as the file "~". */
static bool in_paths(const struct fm_graph_node *node, const char *const *paths)
{
    const struct fm_function *f = &node->p->functions.data[node->func];
    const char *file = fm_profile_text(node->p, f->file);
    if (!*file && f->kind != FM_FUNCTION_C)
        return true;
    for (; *paths; paths++)
        if (strncmp(file, *paths, strlen(*paths)) == 0)
            return true;
    return false;
}

static void drop_small(struct fm_graph *g, const struct fm_graph_filter *filter)
{
    for (size_t i = 0; i < g->nodes.len; i++) {
        struct fm_graph_node *node = &g->nodes.data[i];
        node->kept = fm_graph_weight(g, node) >= filter->node_min &&
                     (!filter->paths || !filter->paths[0] || in_paths(node, filter->paths));
    }
    for (size_t i = 0; i < g->edges.len; i++) {
        struct fm_graph_edge *edge = &g->edges.data[i];
        edge->kept = g->nodes.data[edge->caller].kept && g->nodes.data[edge->callee].kept &&
                     fm_graph_edge_weight(g, edge) >= filter->edge_min;
    }
}

/* A walk over the kept edges, in breadth. */
struct reach {
    const struct fm_graph *g;
    bool *seen;
    uint32_t *queue;
    size_t len;
    uint32_t *in_start, *in_edges; /* per node the edges to it; only for the way up */
};

static void reach_init(struct reach *r, const struct fm_graph *g, bool up)
{
    size_t nodes = g->nodes.len, edges = g->edges.len;
    *r = (struct reach){ .g = g };
    r->seen = fm_calloc(nodes + 1, sizeof *r->seen);
    r->queue = fm_malloc((nodes + 1) * sizeof *r->queue);
    if (!up)
        return;
    r->in_start = fm_calloc(nodes + 2, sizeof *r->in_start);
    r->in_edges = fm_malloc((edges + 1) * sizeof *r->in_edges);
    for (size_t i = 0; i < edges; i++)
        r->in_start[g->edges.data[i].callee + 2]++;
    for (size_t i = 2; i < nodes + 2; i++)
        r->in_start[i] += r->in_start[i - 1];
    for (size_t i = 0; i < edges; i++)
        r->in_edges[r->in_start[g->edges.data[i].callee + 1]++] = (uint32_t)i;
}

static void reach_release(struct reach *r)
{
    free(r->seen);
    free(r->queue);
    free(r->in_start);
    free(r->in_edges);
}

static void reach_add(struct reach *r, uint32_t node)
{
    if (r->seen[node])
        return;
    r->seen[node] = true;
    r->queue[r->len++] = node;
}

static void reach_step(struct reach *r, uint32_t node)
{
    const struct fm_graph *g = r->g;
    const uint32_t *start = r->in_start ? r->in_start : g->edge_start;
    for (uint32_t i = start[node]; i < start[node + 1]; i++) {
        const struct fm_graph_edge *edge = &g->edges.data[r->in_start ? r->in_edges[i] : i];
        if (edge->kept)
            reach_add(r, r->in_start ? edge->caller : edge->callee);
    }
}

static void reach_walk(struct reach *r, int depth)
{
    size_t done = 0;
    for (int level = 0; done < r->len && (depth < 0 || level < depth); level++) {
        size_t end = r->len;
        for (; done < end; done++)
            reach_step(r, r->queue[done]);
    }
}

/* Is there a function of that name, and how large is it? Negative if there is none. */
static double weight_of_name(const struct fm_graph *g, const char *glob)
{
    double largest = -1;
    for (size_t i = 0; i < g->nodes.len; i++) {
        const struct fm_graph_node *node = &g->nodes.data[i];
        double weight = fm_graph_weight(g, node);
        if (weight > largest && fm_graph_name_matches(node->p, node->func, glob))
            largest = weight;
    }
    return largest;
}

static int fail_to_find(const struct fm_graph *g, const struct fm_graph_filter *filter,
                        const char *glob, struct fm_error *err)
{
    double weight = weight_of_name(g, glob);
    if (weight < 0)
        return fm_error_set(err, FM_UNSUPPORTED, "there is no function \"%s\" in the recording",
                            glob);
    if (weight < filter->node_min)
        return fm_error_set(err, FM_BAD_QUERY,
                            "the function \"%s\" has %.3g%% of the time, below the threshold of "
                            "%g%%; lower it with -n",
                            glob, weight * 100, filter->node_min * 100);
    return fm_error_set(err, FM_BAD_QUERY, "nothing that is shown leads to \"%s\"%s", glob,
                        filter->root ? " from the root" : "");
}

static int keep_reached(struct fm_graph *g, const struct fm_graph_filter *filter, bool up,
                        struct fm_error *err)
{
    const char *glob = up ? filter->leaf : filter->root;
    struct reach r;
    reach_init(&r, g, up);
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        const struct fm_graph_node *node = &g->nodes.data[i];
        if (node->kept && fm_graph_name_matches(node->p, node->func, glob))
            reach_add(&r, i);
    }
    if (!r.len)
        fail_to_find(g, filter, glob, err);
    reach_walk(&r, filter->depth);
    for (size_t i = 0; i < g->nodes.len; i++)
        g->nodes.data[i].kept = g->nodes.data[i].kept && r.seen[i];
    for (size_t i = 0; i < g->edges.len; i++) {
        struct fm_graph_edge *edge = &g->edges.data[i];
        edge->kept = edge->kept && r.seen[edge->caller] && r.seen[edge->callee];
    }
    reach_release(&r);
    return err->status;
}

static int fail_empty(const struct fm_graph *g, const struct fm_graph_filter *filter,
                      struct fm_error *err)
{
    double largest = 0;
    for (size_t i = 0; i < g->nodes.len; i++) {
        double weight = fm_graph_weight(g, &g->nodes.data[i]);
        largest = weight > largest ? weight : largest;
    }
    if (largest >= filter->node_min)
        return fm_error_set(err, FM_BAD_QUERY,
                            "no function of these paths takes %g%% of the time or more",
                            filter->node_min * 100);
    return fm_error_set(err, FM_BAD_QUERY,
                        "no function takes %g%% of the time or more, the largest takes %.3g%%; "
                        "lower the threshold with -n",
                        filter->node_min * 100, largest * 100);
}

int fm_graph_prune(struct fm_graph *g, const struct fm_graph_filter *filter, struct fm_error *err)
{
    struct fm_error own = FM_ERROR_INIT;
    err = err ? err : &own;
    if (!g->nodes.len)
        return fm_error_set(err, FM_UNSUPPORTED, "there are no calls in the recording");
    drop_small(g, filter);
    if (!fm_graph_count(g).nodes && !filter->root && !filter->leaf)
        return fail_empty(g, filter, err);
    if (filter->root && keep_reached(g, filter, false, err) < 0)
        return err->status;
    if (filter->leaf && keep_reached(g, filter, true, err) < 0)
        return err->status;
    return 0;
}
