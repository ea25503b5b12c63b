/* Building call graphs, and their shares; see graph.h. */
#include "show/graph/graph.h"

#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "record/model/derive/label.h"
#include "show/graph/names.h"

static void node_take(struct fm_graph_node *node, int side, const struct fm_flat_row *row)
{
    struct fm_graph_side *s = &node->side[side];
    node->on[side] = true;
    s->total_ns = fm_sum(s->total_ns, row->total_ns);
    s->self_ns = fm_sum(s->self_ns, row->self_ns);
    s->calls = fm_sum(s->calls, row->calls);
    s->samples = fm_sum(s->samples, row->samples);
}

static void edge_take(struct fm_graph_edge *edge, int side, int64_t total_ns, int64_t calls)
{
    edge->on[side] = true;
    edge->total_ns[side] = fm_sum(edge->total_ns[side], total_ns);
    edge->calls[side] = fm_sum(edge->calls[side], calls);
}

/* What is weighed need not be time: model/derive/weigh.h. */
static enum fm_unit unit_of(const struct fm_profile *p)
{
    const char *unit = fm_profile_fact_get(p, "unit");
    return !unit ? FM_UNIT_NS : strcmp(unit, "bytes") == 0 ? FM_UNIT_BYTES : FM_UNIT_COUNT;
}

static void take_whole(struct fm_graph *g, int side, const struct fm_flat *flat)
{
    int64_t self = fm_flat_total(flat).self_ns, longest = 0;
    for (size_t i = 0; i < flat->rows.len; i++) {
        if (flat->rows.data[i].total_ns > longest)
            longest = flat->rows.data[i].total_ns;
    }
    g->self_sum_ns[side] = self;
    g->self_whole_ns[side] = (double)self;
    g->total_whole_ns[side] = (double)(self > longest ? self : longest);
    g->calls_are_samples = g->calls_are_samples || (flat->sampled && !flat->states);
}

/* Put the edges in order of (caller, callee) by counting; they come in order of callee. */
static void sort_edges(struct fm_graph *g)
{
    size_t nodes = g->nodes.len, edges = g->edges.len;
    uint32_t *start = fm_calloc(nodes + 2, sizeof *start);
    struct fm_graph_edge *sorted = fm_malloc((edges + 1) * sizeof *sorted);
    for (size_t i = 0; i < edges; i++)
        start[g->edges.data[i].caller + 2]++;
    for (size_t i = 2; i < nodes + 2; i++)
        start[i] += start[i - 1];
    for (size_t i = 0; i < edges; i++)
        sorted[start[g->edges.data[i].caller + 1]++] = g->edges.data[i];
    free(g->edges.data);
    g->edges.data = sorted;
    g->edges.cap = edges + 1;
    g->edge_start = start;
}

struct fm_graph *fm_graph_new(const struct fm_profile *p, const struct fm_flat *flat)
{
    struct fm_graph *g = fm_calloc(1, sizeof *g);
    g->sides = 1;
    g->unit = unit_of(p);
    take_whole(g, 0, flat);
    fm_vec_reserve(&g->nodes, flat->rows.len);
    fm_vec_reserve(&g->edges, flat->edges.len);
    for (size_t i = 0; i < flat->rows.len; i++) {
        struct fm_graph_node node = { .p = p, .func = flat->rows.data[i].func, .kept = true };
        node_take(&node, 0, &flat->rows.data[i]);
        fm_vec_push(&g->nodes, node);
    }
    for (size_t i = 0; i < flat->edges.len; i++) {
        const struct fm_flat_edge *e = &flat->edges.data[i];
        struct fm_graph_edge edge = { .caller = e->caller, .callee = e->callee, .kept = true };
        edge_take(&edge, 0, fm_edge_time(flat, e), e->calls);
        fm_vec_push(&g->edges, edge);
    }
    sort_edges(g);
    return g;
}

void fm_graph_free(struct fm_graph *g)
{
    if (!g)
        return;
    fm_vec_release(&g->nodes);
    fm_vec_release(&g->edges);
    free(g->edge_start);
    free(g);
}

/* ---- two recordings ---- */

/* Which functions of two profiles are the same. A key is a module and a qualified name. Where
 * several functions of a side share one (lambdas, comprehensions) they are told apart by their
 * order in the file, or by their lines if one side has more of them than the other. */
struct match {
    struct fm_strings *keys;
    FM_VEC(struct key_count) places; /* by key */
    struct fm_map nodes;             /* (key, order or line) → node */
    uint32_t *node_of;               /* of the rows of the side at hand */
};

struct key_count {
    uint32_t count[FM_GRAPH_SIDES];
};

struct keyed {
    uint32_t key, line, row;
    uint32_t order; /* among the rows of its key */
};

static int keyed_order(const void *left, const void *right)
{
    const struct keyed *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static int keyed_by_row(const void *left, const void *right)
{
    const struct keyed *a = left, *b = right;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* The rows of a side with their keys, in the table's order. */
static struct keyed *match_keys(struct match *m, int side, const struct fm_profile *p,
                                const struct fm_flat *flat)
{
    size_t n = flat->rows.len;
    struct keyed *rows = fm_calloc(n + 1, sizeof *rows);
    fm_autobuffer key = FM_BUFFER_INIT;
    for (size_t i = 0; i < n; i++) {
        uint32_t func = flat->rows.data[i].func;
        fm_buffer_clear(&key);
        fm_graph_name_key(&key, p, func);
        rows[i].key = fm_strings_add(m->keys, fm_buffer_text(&key), key.len);
        rows[i].line = p->functions.data[func].line;
        rows[i].row = (uint32_t)i;
        while (m->places.len <= rows[i].key)
            fm_vec_push(&m->places, ((struct key_count){ { 0, 0 } }));
        m->places.data[rows[i].key].count[side]++;
    }
    qsort(rows, n, sizeof *rows, keyed_order);
    for (size_t i = 1; i < n; i++)
        rows[i].order = rows[i].key == rows[i - 1].key ? rows[i - 1].order + 1 : 0;
    qsort(rows, n, sizeof *rows, keyed_by_row);
    return rows;
}

static void match_side(struct match *m, struct fm_graph *g, int side, const struct fm_profile *p,
                       const struct fm_flat *flat, const struct keyed *rows)
{
    for (size_t i = 0; i < flat->rows.len; i++) {
        const struct fm_flat_row *row = &flat->rows.data[i];
        const struct key_count *place = &m->places.data[rows[i].key];
        bool paired = place->count[0] == place->count[1];
        bool single = place->count[0] <= 1 && place->count[1] <= 1;
        uint32_t which = paired || single ? rows[i].order : rows[i].line;
        bool is_new;
        uint32_t node =
            *fm_map_at(&m->nodes, fm_map_pair(rows[i].key, which), (uint32_t)g->nodes.len, &is_new);
        if (is_new)
            fm_vec_push(&g->nodes,
                        ((struct fm_graph_node){ .p = p, .func = row->func, .kept = true }));
        node_take(&g->nodes.data[node], side, row);
        m->node_of[i] = node;
    }
}

static int edge_order(const void *left, const void *right)
{
    const struct fm_graph_edge *a = left, *b = right;
    if (a->callee != b->callee)
        return a->callee < b->callee ? -1 : 1;
    return a->caller < b->caller ? -1 : a->caller > b->caller;
}

static void match_edges(struct match *m, struct fm_graph *g, struct fm_map *index, int side,
                        const struct fm_flat *flat)
{
    for (size_t i = 0; i < flat->edges.len; i++) {
        const struct fm_flat_edge *e = &flat->edges.data[i];
        uint32_t caller = m->node_of[e->caller], callee = m->node_of[e->callee];
        bool is_new;
        uint32_t edge =
            *fm_map_at(index, fm_map_pair(caller, callee), (uint32_t)g->edges.len, &is_new);
        if (is_new)
            fm_vec_push(&g->edges, ((struct fm_graph_edge){
                                       .caller = caller, .callee = callee, .kept = true }));
        edge_take(&g->edges.data[edge], side, fm_edge_time(flat, e), e->calls);
    }
}

static void measure_by_first(struct fm_graph *g)
{
    int by = g->total_whole_ns[0] > 0 ? 0 : 1;
    g->total_whole_ns[1 - by] = g->total_whole_ns[by];
    g->self_whole_ns[1 - by] = g->self_whole_ns[by];
}

struct fm_graph *fm_graph_compare(const struct fm_profile *const p[FM_GRAPH_SIDES],
                                  const struct fm_flat *const flat[FM_GRAPH_SIDES],
                                  enum fm_graph_measure measure)
{
    struct fm_graph *g = fm_calloc(1, sizeof *g);
    struct match m = { .keys = fm_strings_new() };
    struct keyed *rows[FM_GRAPH_SIDES];
    struct fm_map index = { 0 };
    g->sides = FM_GRAPH_SIDES;
    g->unit = unit_of(p[0]);
    for (int side = 0; side < FM_GRAPH_SIDES; side++) {
        take_whole(g, side, flat[side]);
        rows[side] = match_keys(&m, side, p[side], flat[side]);
    }
    for (int side = 0; side < FM_GRAPH_SIDES; side++) {
        m.node_of = fm_malloc((flat[side]->rows.len + 1) * sizeof *m.node_of);
        match_side(&m, g, side, p[side], flat[side], rows[side]);
        match_edges(&m, g, &index, side, flat[side]);
        free(m.node_of);
        free(rows[side]);
    }
    if (g->edges.len)
        qsort(g->edges.data, g->edges.len, sizeof *g->edges.data, edge_order);
    sort_edges(g);
    if (measure == FM_GRAPH_BY_TIME)
        measure_by_first(g);
    fm_strings_free(m.keys);
    fm_map_release(&m.nodes);
    fm_vec_release(&m.places);
    fm_map_release(&index);
    return g;
}

/* ---- shares ---- */

static double share(const struct fm_graph *g, double part, double whole, int side)
{
    if (whole <= 0)
        return 1; /* nothing took time: show what called what */
    double value = part / whole;
    if (value < 0)
        return 0;
    return value > 1 && (g->sides == 1 || side == 0) ? 1 : value;
}

double fm_graph_total(const struct fm_graph *g, const struct fm_graph_node *node, int side)
{
    return share(g, (double)node->side[side].total_ns, g->total_whole_ns[side], side);
}

double fm_graph_self(const struct fm_graph *g, const struct fm_graph_node *node, int side)
{
    return share(g, (double)node->side[side].self_ns, g->self_whole_ns[side], side);
}

double fm_graph_edge_total(const struct fm_graph *g, const struct fm_graph_edge *edge, int side)
{
    return share(g, (double)edge->total_ns[side], g->total_whole_ns[side], side);
}

double fm_graph_weight(const struct fm_graph *g, const struct fm_graph_node *node)
{
    double first = fm_graph_total(g, node, 0);
    double second = g->sides > 1 ? fm_graph_total(g, node, 1) : 0;
    return first > second ? first : second;
}

double fm_graph_edge_weight(const struct fm_graph *g, const struct fm_graph_edge *edge)
{
    double first = fm_graph_edge_total(g, edge, 0);
    double second = g->sides > 1 ? fm_graph_edge_total(g, edge, 1) : 0;
    return first > second ? first : second;
}
