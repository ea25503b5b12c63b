/*
 * The flat table of trees; see flat.h for what the numbers mean.
 *
 * Trees are taken as a shape (model/shape.h), in which the nodes below one follow it. So whether a
 * function, or an edge (caller, callee), is active already is told by where its outermost activation
 * ends, which is what CPython's _lsprof keeps as its recursion levels: an entry counts as primitive,
 * and its time towards the total, if no other is active.
 *
 * Metrics are added up one after the other: first by node of the shape, what is its own and what it
 * has together with its callees, then by function and by edge.
 *
 * Nothing recurses: trees may be as deep as there are nodes. Memory is some numbers per node,
 * whatever the number of metrics.
 */
#include "record/model/flat.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"

struct edge {
    uint32_t caller, callee; /* as functions are called in the shape */
    uint32_t busy_until;     /* while edges are found: the end of its outermost activation */
};

struct flat_table {
    const struct fm_shape *shape;
    const struct fm_shape_source *source;
    const struct fm_flat_shape *o;
    uint8_t *outermost;       /* by node: no other of its function is active */
    struct fm_flat_row *rows; /* by function of the shape */
    FM_VEC(struct edge) edges;
    uint32_t *edge_of; /* by node; FM_NONE: nobody called it */
    uint8_t *edge_outermost;
    struct fm_flat_edge *edge_rows; /* by edge */
    int64_t *own, *total;           /* by node: of the metric at hand */
    int64_t *sums, *outer;          /* by function, then by edge: the same of these */
};

/* ---- edges ---- */

static void find_edges(struct flat_table *t)
{
    const struct fm_shape *shape = t->shape;
    struct fm_map index = { 0 };
    t->edge_of = fm_malloc(shape->nodes * sizeof *t->edge_of);
    t->edge_outermost = fm_calloc(shape->nodes, 1);
    t->edge_of[0] = FM_NONE;
    for (uint32_t i = 1; i < shape->nodes; i++) {
        uint32_t caller = shape->func[shape->parent[i]], callee = shape->func[i];
        t->edge_of[i] = FM_NONE;
        if (!t->o->is_row[caller] || !t->o->is_row[callee])
            continue;
        bool is_new;
        uint32_t fresh = (uint32_t)t->edges.len;
        uint32_t edge = *fm_map_at(&index, fm_map_pair(caller, callee), fresh, &is_new);
        if (is_new)
            fm_vec_push(&t->edges, ((struct edge){ caller, callee, 0 }));
        t->edge_of[i] = edge;
        if (i >= t->edges.data[edge].busy_until) {
            t->edge_outermost[i] = 1;
            t->edges.data[edge].busy_until = shape->end[i];
        }
    }
    fm_map_release(&index);
}

/* ---- numbers ---- */

static void combine(int64_t *number, enum fm_metric metric, int64_t value)
{
    if (fm_metric_is_sum(metric))
        *number = fm_sum(*number, value);
    else
        *number = fm_metric_combine(metric, *number, value);
}

static bool is_timeless(const struct flat_table *t, enum fm_metric metric, size_t node)
{
    return metric == FM_METRIC_TOTAL && t->o->timeless &&
           t->o->timeless[t->source->p->nodes.data[node].thread];
}

/* What nodes of the profile have of a metric goes to those of the shape. */
static void gather_column(struct flat_table *t, enum fm_metric metric, int64_t *numbers)
{
    const struct fm_shape_source *s = t->source;
    const int64_t *data = s->p->columns[metric].data;
    unsigned part = fm_part_of(metric);
    for (size_t i = 0; data && i < s->p->nodes.len; i++)
        if (data[i] && fm_shape_counts(s, i, part))
            combine(&numbers[s->node_of[i]], metric, data[i]);
}

/* What includes callees: of a node that became one with its caller it is the caller's already. */
static void gather_totals(struct flat_table *t, enum fm_metric metric)
{
    const struct fm_shape_source *s = t->source;
    const struct fm_profile *p = s->p;
    fm_autofree int64_t *remain = s->partly ? fm_shape_totals_new(s, metric) : NULL;
    const int64_t *data = remain ? remain : p->columns[metric].data;
    unsigned part = remain ? FM_SHAPE_NODE : fm_part_of(metric);
    for (size_t i = 0; i < p->nodes.len; i++) {
        uint32_t up = p->nodes.data[i].parent;
        if (data[i] && fm_shape_counts(s, i, part) && !is_timeless(t, metric, i) &&
            (up == FM_NONE || s->node_of[up] != s->node_of[i]))
            combine(&t->total[s->node_of[i]], metric, data[i]);
    }
}

static int64_t negated(int64_t value)
{
    return value == INT64_MIN ? INT64_MAX : -value;
}

static void numbers_of_nodes(struct flat_table *t, enum fm_metric metric)
{
    const struct fm_shape *shape = t->shape;
    size_t bytes = shape->nodes * sizeof *t->own;
    enum fm_metric_scope scope = fm_metric_info(metric)->scope;
    if (scope == FM_OF_CALLEES) {
        memset(t->total, 0, bytes);
        gather_totals(t, metric);
        memcpy(t->own, t->total, bytes);
        for (uint32_t i = 1; i < shape->nodes; i++)
            t->own[shape->parent[i]] = fm_sum(t->own[shape->parent[i]], negated(t->total[i]));
        return;
    }
    memset(t->own, 0, bytes);
    gather_column(t, metric, t->own);
    if (metric == FM_METRIC_CALLS)
        gather_column(t, FM_METRIC_RESUMES, t->own);
    memcpy(t->total, t->own, bytes);
    for (uint32_t i = shape->nodes; scope == FM_OF_SELF && i-- > 1;)
        combine(&t->total[shape->parent[i]], metric, t->total[i]);
}

/* From nodes to functions or edges (`of` tells which): the sum of what is their own, and of the
 * totals of outermost ones. */
static void add_up(struct flat_table *t, enum fm_metric metric, const uint32_t *of,
                   const uint8_t *outermost, size_t count)
{
    memset(t->sums, 0, count * sizeof *t->sums);
    memset(t->outer, 0, count * sizeof *t->outer);
    for (uint32_t i = 1; i < t->shape->nodes; i++) {
        if (of[i] == FM_NONE)
            continue;
        combine(&t->sums[of[i]], metric, t->own[i]);
        if (outermost[i])
            combine(&t->outer[of[i]], metric, t->total[i]);
    }
}

/* Entries that were outermost are what pstats calls primitive. */
static void take(enum fm_metric metric, int64_t own, int64_t outer, int64_t *self, int64_t *total,
                 int64_t *primitive)
{
    self[metric] = own;
    if (fm_metric_has_total(metric))
        total[metric] = outer;
    if (metric == FM_METRIC_CALLS)
        *primitive = outer;
}

static void add_metric(struct flat_table *t, enum fm_metric metric)
{
    numbers_of_nodes(t, metric);
    add_up(t, metric, t->shape->func, t->outermost, t->o->functions);
    for (size_t f = 0; f < t->o->functions; f++) {
        struct fm_flat_row *row = &t->rows[f];
        take(metric, t->sums[f], t->outer[f], row->self, row->total, &row->primitive);
    }
    if (!t->edge_of || metric >= FM_METRIC_STATES)
        return;
    add_up(t, metric, t->edge_of, t->edge_outermost, t->edges.len);
    for (size_t i = 0; i < t->edges.len; i++) {
        struct fm_flat_edge *edge = &t->edge_rows[i];
        take(metric, t->sums[i], t->outer[i], edge->self, edge->total, &edge->primitive);
    }
}

/* ---- the table ---- */

static bool any_number(const int64_t *numbers, int count)
{
    for (int i = 0; i < count; i++)
        if (numbers[i])
            return true;
    return false;
}

static bool row_is_used(const struct fm_flat_row *row)
{
    return any_number(row->self, FM_METRIC_COUNT) || any_number(row->total, FM_METRIC_COUNT);
}

static bool edge_is_used(const struct fm_flat_edge *edge)
{
    return any_number(edge->self, FM_METRIC_STATES) || any_number(edge->total, FM_METRIC_STATES);
}

static int edge_order(const void *left, const void *right)
{
    const struct fm_flat_edge *a = left, *b = right;
    if (a->callee != b->callee)
        return a->callee < b->callee ? -1 : 1;
    return a->caller < b->caller ? -1 : a->caller > b->caller;
}

/* An edge on its way to its place: sorting these moves less than sorting rows. */
struct place {
    uint32_t callee, caller, edge;
};

static int place_order(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->callee != b->callee)
        return a->callee < b->callee ? -1 : 1;
    return a->caller < b->caller ? -1 : a->caller > b->caller;
}

/* Rows that saw nothing are left out, unless an edge that saw something needs them. */
static void fill(struct fm_flat *flat, const struct flat_table *t)
{
    uint32_t functions = t->o->functions;
    fm_autofree uint32_t *row_of = fm_calloc(functions + 1, sizeof *row_of);
    fm_autofree struct place *places = fm_malloc((t->edges.len + 1) * sizeof *places);
    size_t used = 0;
    for (uint32_t f = 0; f < functions; f++)
        row_of[f] = t->o->is_row[f] && row_is_used(&t->rows[f]);
    for (size_t i = 0; i < t->edges.len; i++)
        if (edge_is_used(&t->edge_rows[i]))
            row_of[t->edges.data[i].caller] = row_of[t->edges.data[i].callee] = 1;
    for (uint32_t f = 0; f < functions; f++) {
        if (!row_of[f])
            continue;
        row_of[f] = (uint32_t)flat->rows.len;
        fm_vec_push(&flat->rows, t->rows[f]);
        flat->rows.data[flat->rows.len - 1].func = f;
    }
    for (uint32_t i = 0; i < t->edges.len; i++)
        if (edge_is_used(&t->edge_rows[i]))
            places[used++] = (struct place){ row_of[t->edges.data[i].callee],
                                             row_of[t->edges.data[i].caller], i };
    qsort(places, used, sizeof *places, place_order);
    for (size_t i = 0; i < used; i++) {
        struct fm_flat_edge edge = t->edge_rows[places[i].edge];
        edge.caller = places[i].caller;
        edge.callee = places[i].callee;
        fm_vec_push(&flat->edges, edge);
    }
}

static void tell_columns(struct fm_flat *flat)
{
    for (int m = 0; m < FM_METRIC_COUNT; m++) {
        uint64_t bit = (uint64_t)1 << m;
        if (fm_metric_info((enum fm_metric)m)->place != FM_PLACE_COLUMN)
            continue;
        for (size_t i = 0; i < flat->rows.len && !(flat->columns & bit); i++)
            if (flat->rows.data[i].self[m] || flat->rows.data[i].total[m])
                flat->columns |= bit;
    }
}

struct fm_flat *fm_flat_of_shape(const struct fm_shape *shape, const struct fm_shape_source *source,
                                 const struct fm_flat_shape *o)
{
    struct fm_flat *flat = fm_calloc(1, sizeof *flat);
    struct flat_table t = { .shape = shape, .source = source, .o = o };
    t.outermost = fm_shape_outermost_new(shape, o->functions);
    t.rows = fm_calloc(o->functions + 1, sizeof *t.rows);
    if (o->edges)
        find_edges(&t);
    t.edge_rows = fm_calloc(t.edges.len + 1, sizeof *t.edge_rows);
    size_t most = o->functions > t.edges.len ? o->functions : t.edges.len;
    t.own = fm_malloc(shape->nodes * sizeof *t.own);
    t.total = fm_malloc(shape->nodes * sizeof *t.total);
    t.sums = fm_malloc((most + 1) * sizeof *t.sums);
    t.outer = fm_malloc((most + 1) * sizeof *t.outer);
    const struct fm_column *columns = source->p->columns;
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        if (columns[m].data || (m == FM_METRIC_CALLS && columns[FM_METRIC_RESUMES].data))
            add_metric(&t, (enum fm_metric)m);
    fill(flat, &t);
    tell_columns(flat);
    free(t.outermost);
    free(t.rows);
    fm_vec_release(&t.edges);
    free(t.edge_of);
    free(t.edge_outermost);
    free(t.edge_rows);
    free(t.own);
    free(t.total);
    free(t.sums);
    free(t.outer);
    return flat;
}

/* ---- of a profile ---- */

/* Does every process in scope have samples instead of calls (`states`), or some of them both? Those
 * of which nothing was recorded do not count. */
static void tell_samples(struct fm_flat *flat, const struct fm_profile *p,
                         const struct fm_flat_scope *scope)
{
    uint32_t only =
        scope->thread != FM_NONE ? p->threads.data[scope->thread].process : scope->process;
    bool sampled = false, exact = false;
    for (uint32_t i = 0; i < p->processes.len; i++) {
        const struct fm_process *process = &p->processes.data[i];
        if (only != FM_NONE && only != i)
            continue;
        sampled = sampled || process->sampled;
        exact = exact || (process->profiled && !(process->sampled && !process->calls));
    }
    flat->sampled = flat->states = sampled && !exact && !p->flat;
    flat->beside = sampled && !flat->states;
}

/* Was a thread of a process with calls only sampled? Then nothing was called in it, and its time is
 * that of its samples to the nanosecond. NULL if there is none. Caller frees. */
static bool *only_sampled_new(const struct fm_profile *p)
{
    fm_autofree int64_t *sampled_ns = fm_calloc(p->threads.len + 1, sizeof *sampled_ns);
    bool any = false;
    for (int s = 0; s < FM_STATE_COUNT; s++) {
        const int64_t *data = p->columns[fm_metric_of_state((enum fm_state)s)].data;
        for (size_t i = 0; data && i < p->nodes.len; i++) {
            int64_t *ns = &sampled_ns[p->nodes.data[i].thread];
            *ns = fm_sum(*ns, data[i]);
            any = true;
        }
    }
    if (!any)
        return NULL;
    bool *only = fm_calloc(p->threads.len + 1, sizeof *only);
    for (uint32_t i = 0; i < p->threads.len; i++) {
        const struct fm_thread *thread = &p->threads.data[i];
        only[i] = sampled_ns[i] > 0 && thread->process < p->processes.len &&
                  p->processes.data[thread->process].calls &&
                  sampled_ns[i] == fm_profile_value(p, FM_METRIC_TOTAL, thread->root);
    }
    for (uint32_t i = 0; i < p->nodes.len; i++)
        if (fm_profile_value(p, FM_METRIC_CALLS, i) || fm_profile_value(p, FM_METRIC_RESUMES, i))
            only[p->nodes.data[i].thread] = false;
    return only;
}

/* Functions, and behind them threads, are called by their numbers plus one: 0 is the root of all.
 * Threads out of scope are left out. Caller frees. */
static uint32_t *names_new(const struct fm_profile *p, const struct fm_flat_scope *scope)
{
    size_t functions = p->functions.len, threads = p->threads.len;
    uint32_t *names = fm_malloc((functions + threads + 1) * sizeof *names);
    for (size_t i = 0; i < functions + threads; i++)
        names[i] = (uint32_t)i + 1;
    for (uint32_t t = 0; t < threads; t++)
        if ((scope->process != FM_NONE && scope->process != p->threads.data[t].process) ||
            (scope->thread != FM_NONE && scope->thread != t))
            names[functions + t] = FM_NONE;
    return names;
}

static struct fm_flat *flat_of_trees(const struct fm_profile *p, const struct fm_flat_scope *scope)
{
    size_t functions = p->functions.len;
    fm_autofree uint32_t *names = names_new(p, scope);
    fm_autofree bool *timeless = only_sampled_new(p),
                     *is_row = fm_calloc(functions + p->threads.len + 1, sizeof *is_row);
    memset(is_row + 1, true, functions);
    if (timeless && scope->thread != FM_NONE)
        timeless[scope->thread] = false;
    struct fm_links links;
    struct fm_shape shape;
    fm_links_init(&links, p);
    struct fm_shape_source source[2] = {
        { .p = p, .links = &links, .func = names, .thread = names + functions }
    };
    struct fm_flat_shape o = { .functions = (uint32_t)(functions + p->threads.len + 1),
                               .is_row = is_row,
                               .timeless = timeless,
                               .edges = true };
    fm_shape_init(&shape, source, &(struct fm_shape_options){ .functions = o.functions });
    struct fm_flat *flat = fm_flat_of_shape(&shape, &source[0], &o);
    for (size_t i = 0; i < flat->rows.len; i++)
        flat->rows.data[i].func--;
    free(source[0].node_of);
    fm_shape_release(&shape);
    fm_links_release(&links);
    return flat;
}

struct fm_flat *fm_flat_new(const struct fm_profile *p, const struct fm_flat_scope *scope)
{
    struct fm_flat_scope all = { FM_NONE, FM_NONE };
    if (!scope)
        scope = &all;
    struct fm_flat *flat = flat_of_trees(p, scope);
    tell_samples(flat, p, scope);
    /* A ready-made table has no processes or threads, so it belongs to the whole only. */
    if (p->flat && scope->process == FM_NONE && scope->thread == FM_NONE)
        fm_flat_add(flat, p->flat);
    return flat;
}

void fm_flat_free(struct fm_flat *flat)
{
    if (!flat)
        return;
    fm_vec_release(&flat->rows);
    fm_vec_release(&flat->edges);
    free(flat);
}

struct fm_flat_total fm_flat_total(const struct fm_flat *flat)
{
    struct fm_flat_total sum = { 0, 0, 0 };
    for (size_t i = 0; i < flat->rows.len; i++) {
        sum.calls = fm_sum(sum.calls, flat->rows.data[i].calls);
        sum.primitive = fm_sum(sum.primitive, flat->rows.data[i].primitive);
        sum.self_ns = fm_sum(sum.self_ns, flat->rows.data[i].self_ns);
    }
    return sum;
}

void fm_flat_count_samples(struct fm_flat *flat)
{
    for (size_t i = 0; i < flat->rows.len; i++) {
        flat->rows.data[i].calls = flat->rows.data[i].total_samples;
        flat->rows.data[i].primitive = flat->rows.data[i].samples;
    }
    for (size_t i = 0; i < flat->edges.len; i++) {
        flat->edges.data[i].calls = flat->edges.data[i].total_samples;
        flat->edges.data[i].primitive = flat->edges.data[i].samples;
    }
}

/* ---- merging ---- */

static void numbers_merge(int64_t *numbers, const int64_t *extra, int count)
{
    for (int m = 0; m < count; m++)
        numbers[m] = fm_metric_combine((enum fm_metric)m, numbers[m], extra[m]);
}

static void row_merge(struct fm_flat_row *row, const struct fm_flat_row *extra)
{
    row->primitive = fm_sum(row->primitive, extra->primitive);
    numbers_merge(row->self, extra->self, FM_METRIC_COUNT);
    numbers_merge(row->total, extra->total, FM_METRIC_COUNT);
}

static void edge_merge(struct fm_flat_edge *edge, const struct fm_flat_edge *extra)
{
    edge->primitive = fm_sum(edge->primitive, extra->primitive);
    numbers_merge(edge->self, extra->self, FM_METRIC_STATES);
    numbers_merge(edge->total, extra->total, FM_METRIC_STATES);
}

/* Gathers tables by function, whatever their row numbers are. Rows that a table lists are kept even
 * if they are empty: a foreign profile may mention a function that was never called. */
struct by_function {
    struct fm_map row_index, edge_index; /* function; (caller, callee) functions */
    FM_VEC(struct fm_flat_row) rows;
    FM_VEC(struct fm_flat_edge) edges;
};

static void gather_add(struct by_function *g, const struct fm_flat *flat)
{
    bool is_new;
    for (size_t i = 0; i < flat->rows.len; i++) {
        const struct fm_flat_row *row = &flat->rows.data[i];
        uint32_t at = *fm_map_at(&g->row_index, row->func, (uint32_t)g->rows.len, &is_new);
        if (is_new)
            fm_vec_push(&g->rows, *row);
        else
            row_merge(&g->rows.data[at], row);
    }
    for (size_t i = 0; i < flat->edges.len; i++) {
        struct fm_flat_edge edge = flat->edges.data[i];
        edge.caller = flat->rows.data[edge.caller].func;
        edge.callee = flat->rows.data[edge.callee].func;
        uint64_t key = fm_map_pair(edge.caller, edge.callee);
        uint32_t at = *fm_map_at(&g->edge_index, key, (uint32_t)g->edges.len, &is_new);
        if (is_new)
            fm_vec_push(&g->edges, edge);
        else
            edge_merge(&g->edges.data[at], &edge);
    }
}

static int row_order(const void *left, const void *right)
{
    const struct fm_flat_row *a = left, *b = right;
    return a->func < b->func ? -1 : a->func > b->func;
}

void fm_flat_add(struct fm_flat *flat, const struct fm_flat *extra)
{
    struct by_function g = { .row_index = { 0 } };
    gather_add(&g, flat);
    gather_add(&g, extra);
    if (g.rows.len)
        qsort(g.rows.data, g.rows.len, sizeof *g.rows.data, row_order);
    fm_vec_release(&flat->rows);
    fm_vec_release(&flat->edges);
    for (size_t i = 0; i < g.rows.len; i++) {
        *fm_map_at(&g.row_index, g.rows.data[i].func, 0, NULL) = (uint32_t)i;
        fm_vec_push(&flat->rows, g.rows.data[i]);
    }
    for (size_t i = 0; i < g.edges.len; i++) {
        struct fm_flat_edge edge = g.edges.data[i];
        edge.caller = *fm_map_find(&g.row_index, edge.caller);
        edge.callee = *fm_map_find(&g.row_index, edge.callee);
        fm_vec_push(&flat->edges, edge);
    }
    if (flat->edges.len)
        qsort(flat->edges.data, flat->edges.len, sizeof *flat->edges.data, edge_order);
    flat->sampled |= extra->sampled;
    flat->columns |= extra->columns;
    fm_map_release(&g.row_index);
    fm_map_release(&g.edge_index);
    fm_vec_release(&g.rows);
    fm_vec_release(&g.edges);
}
