/*
 * The flat table of a profile; see flat.h for what the numbers mean.
 *
 * The trees are walked depth first with a counter per function and per edge (caller, callee) that
 * says how often it is on the stack at this moment, which is what CPython's _lsprof keeps as its
 * recursion levels. An entry counts as primitive, and its time towards the total, while the counter
 * is zero. Self time needs no extra pass: a node gives its total to its own row and edge and takes
 * it from those of its parent.
 *
 * What is of the node itself (samples, states) is summed up over its callees first, in one backward
 * pass, and then treated as the total time is.
 *
 * Nothing recurses: trees may be as deep as there are nodes. Memory is two numbers per node, and one
 * more for each metric of the nodes themselves.
 */
#include "record/model/flat.h"

#include <string.h>

#include "base/map.h"
#include "base/memory.h"

struct level {
    uint32_t node;
    uint32_t edge; /* FM_NONE below a thread's root: nobody called it */
};

/* A metric that some node has. */
struct counted {
    enum fm_metric metric;
    enum fm_metric_scope scope;
    const int64_t *own;
    int64_t
        *inclusive; /* of the node and its callees; NULL if it is no metric of the node itself */
};

struct flat_walk {
    const struct fm_profile *p;
    uint32_t *first_child, *next_sibling;
    struct counted metrics[FM_METRIC_COUNT]; /* those with numbers, but calls and times */
    int metric_count;
    struct fm_flat_row *rows; /* one per function, in this walk */
    uint32_t *active;         /* per function: times on the stack */
    bool timeless;            /* this thread's time is that of samples beside exact ones */
    struct fm_map edge_index; /* (caller, callee) functions → edge */
    FM_VEC(struct fm_flat_edge) edges;
    FM_VEC(uint32_t) edge_active;
    FM_VEC(struct level) stack;
};

static void walk_choose_metrics(struct flat_walk *w)
{
    for (int i = 0; i < FM_METRIC_COUNT; i++) {
        enum fm_metric metric = (enum fm_metric)i;
        if (!w->p->columns[i].data || metric == FM_METRIC_CALLS || metric == FM_METRIC_TOTAL)
            continue;
        w->metrics[w->metric_count++] = (struct counted){
            .metric = metric,
            .scope = fm_metric_info(metric)->scope,
            .own = w->p->columns[i].data,
            .inclusive = fm_metric_is_self(metric) ? fm_profile_totals_new(w->p, metric) : NULL,
        };
    }
}

static void walk_init(struct flat_walk *w, const struct fm_profile *p)
{
    size_t n = p->nodes.len;
    *w = (struct flat_walk){ .p = p };
    w->first_child = fm_malloc(n * sizeof(uint32_t));
    w->next_sibling = fm_malloc(n * sizeof(uint32_t));
    memset(w->first_child, 0xff, n * sizeof(uint32_t)); /* FM_NONE */
    for (size_t i = n; i-- > 0;) {
        uint32_t parent = p->nodes.data[i].parent;
        if (parent == FM_NONE)
            continue;
        w->next_sibling[i] = w->first_child[parent];
        w->first_child[parent] = (uint32_t)i;
    }
    walk_choose_metrics(w);
    w->rows = fm_calloc(p->functions.len, sizeof *w->rows);
    w->active = fm_calloc(p->functions.len, sizeof *w->active);
}

static void walk_release(struct flat_walk *w)
{
    free(w->first_child);
    free(w->next_sibling);
    for (int m = 0; m < w->metric_count; m++)
        free(w->metrics[m].inclusive);
    free(w->rows);
    free(w->active);
    fm_map_release(&w->edge_index);
    fm_vec_release(&w->edges);
    fm_vec_release(&w->edge_active);
    fm_vec_release(&w->stack);
}

static uint32_t edge_at(struct flat_walk *w, uint32_t caller, uint32_t callee)
{
    bool is_new;
    uint32_t fresh = (uint32_t)w->edges.len;
    uint32_t edge = *fm_map_at(&w->edge_index, fm_map_pair(caller, callee), fresh, &is_new);
    if (is_new) {
        fm_vec_push(&w->edges, ((struct fm_flat_edge){ .caller = caller, .callee = callee }));
        fm_vec_push(&w->edge_active, 0);
    }
    return edge;
}

static int64_t total_of(const struct flat_walk *w, uint32_t node)
{
    return w->timeless ? 0 : fm_profile_value(w->p, FM_METRIC_TOTAL, node);
}

static int64_t negated(int64_t value)
{
    return value == INT64_MIN ? INT64_MAX : -value;
}

static void number_add(int64_t *numbers, enum fm_metric metric, int64_t value)
{
    if (value)
        numbers[metric] = fm_metric_combine(metric, numbers[metric], value);
}

static int64_t entries_of(const struct flat_walk *w, uint32_t node)
{
    return fm_sum(fm_profile_value(w->p, FM_METRIC_CALLS, node),
                  fm_profile_value(w->p, FM_METRIC_RESUMES, node));
}

/* What a node gives to its row, or to its edge, which has no numbers of states (`count` metrics). */
static void numbers_add(const struct flat_walk *w, int64_t *self, int64_t *total, int count,
                        uint32_t node, bool outermost)
{
    for (int i = 0; i < w->metric_count && (int)w->metrics[i].metric < count; i++) {
        const struct counted *c = &w->metrics[i];
        number_add(self, c->metric, c->own[node]);
        if (outermost && c->scope != FM_OF_ENTRIES)
            number_add(total, c->metric, c->inclusive ? c->inclusive[node] : c->own[node]);
    }
    int64_t total_ns = total_of(w, node);
    self[FM_METRIC_CALLS] = fm_sum(self[FM_METRIC_CALLS], entries_of(w, node));
    self[FM_METRIC_TOTAL] = fm_sum(self[FM_METRIC_TOTAL], total_ns);
    if (outermost)
        total[FM_METRIC_TOTAL] = fm_sum(total[FM_METRIC_TOTAL], total_ns);
}

/* What includes callees is not the caller's own. */
static void numbers_take(const struct flat_walk *w, int64_t *self, uint32_t node)
{
    for (int i = 0; i < w->metric_count; i++) {
        const struct counted *c = &w->metrics[i];
        if (c->scope == FM_OF_CALLEES)
            self[c->metric] = fm_sum(self[c->metric], negated(c->own[node]));
    }
    self[FM_METRIC_TOTAL] = fm_sum(self[FM_METRIC_TOTAL], negated(total_of(w, node)));
}

/* `node` is called from the level on top of the stack (none: from the thread's root). */
static void walk_enter(struct flat_walk *w, uint32_t node)
{
    uint32_t func = w->p->nodes.data[node].func;
    uint32_t edge = FM_NONE;
    bool outermost = w->active[func]++ == 0;
    struct fm_flat_row *row = &w->rows[func];
    numbers_add(w, row->self, row->total, FM_METRIC_COUNT, node, outermost);
    row->primitive = fm_sum(row->primitive, outermost ? entries_of(w, node) : 0);
    if (w->stack.len) {
        struct level above = w->stack.data[w->stack.len - 1];
        uint32_t caller = w->p->nodes.data[above.node].func;
        edge = edge_at(w, caller, func);
        struct fm_flat_edge *e = &w->edges.data[edge];
        outermost = w->edge_active.data[edge]++ == 0;
        numbers_add(w, e->self, e->total, FM_METRIC_STATES, node, outermost);
        e->primitive = fm_sum(e->primitive, outermost ? entries_of(w, node) : 0);
        numbers_take(w, w->rows[caller].self, node);
        if (above.edge != FM_NONE)
            numbers_take(w, w->edges.data[above.edge].self, node);
    }
    fm_vec_push(&w->stack, ((struct level){ node, edge }));
}

static void walk_leave(struct flat_walk *w)
{
    struct level top = w->stack.data[--w->stack.len];
    w->active[w->p->nodes.data[top.node].func]--;
    if (top.edge != FM_NONE)
        w->edge_active.data[top.edge]--;
}

static void walk_tree(struct flat_walk *w, uint32_t root)
{
    uint32_t next = w->first_child[root];
    while (next != FM_NONE || w->stack.len) {
        if (next != FM_NONE) {
            walk_enter(w, next);
            next = w->first_child[next];
        } else {
            next = w->next_sibling[w->stack.data[w->stack.len - 1].node];
            walk_leave(w);
        }
    }
}

static int edge_order(const void *left, const void *right)
{
    const struct fm_flat_edge *a = left, *b = right;
    if (a->callee != b->callee)
        return a->callee < b->callee ? -1 : 1;
    return a->caller < b->caller ? -1 : a->caller > b->caller;
}

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

/* Turn per-function rows and edges between functions into a table: rows that saw nothing are left
 * out, unless an edge that saw something needs them. */
static void flat_fill(struct fm_flat *flat, const struct fm_flat_row *rows, size_t functions,
                      const struct fm_flat_edge *edges, size_t edge_count)
{
    fm_autofree uint32_t *row_of = fm_calloc(functions, sizeof *row_of);
    for (size_t f = 0; f < functions; f++)
        row_of[f] = row_is_used(&rows[f]);
    for (size_t i = 0; i < edge_count; i++)
        if (edge_is_used(&edges[i]))
            row_of[edges[i].caller] = row_of[edges[i].callee] = 1;
    for (size_t f = 0; f < functions; f++) {
        if (!row_of[f])
            continue;
        row_of[f] = (uint32_t)flat->rows.len;
        fm_vec_push(&flat->rows, rows[f]);
        flat->rows.data[flat->rows.len - 1].func = (uint32_t)f;
    }
    for (size_t i = 0; i < edge_count; i++) {
        struct fm_flat_edge edge = edges[i];
        if (!edge_is_used(&edge))
            continue;
        edge.caller = row_of[edge.caller];
        edge.callee = row_of[edge.callee];
        fm_vec_push(&flat->edges, edge);
    }
    if (flat->edges.len)
        qsort(flat->edges.data, flat->edges.len, sizeof *flat->edges.data, edge_order);
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
 * that of its samples to the nanosecond. */
static bool *only_sampled_new(const struct flat_walk *w)
{
    const struct fm_profile *p = w->p;
    bool *only = fm_calloc(p->threads.len + 1, sizeof *only);
    for (uint32_t i = 0; i < p->threads.len; i++) {
        const struct fm_thread *thread = &p->threads.data[i];
        int64_t sampled_ns = 0;
        for (int m = 0; m < w->metric_count; m++)
            if (fm_metric_info(w->metrics[m].metric)->place == FM_PLACE_STATE)
                sampled_ns = fm_sum(sampled_ns, w->metrics[m].inclusive[thread->root]);
        only[i] = sampled_ns > 0 && thread->process < p->processes.len &&
                  p->processes.data[thread->process].calls &&
                  sampled_ns == fm_profile_value(p, FM_METRIC_TOTAL, thread->root);
    }
    for (uint32_t i = 0; i < p->nodes.len; i++)
        if (fm_profile_value(p, FM_METRIC_CALLS, i) || fm_profile_value(p, FM_METRIC_RESUMES, i))
            only[p->nodes.data[i].thread] = false;
    return only;
}

struct fm_flat *fm_flat_new(const struct fm_profile *p, const struct fm_flat_scope *scope)
{
    struct fm_flat_scope all = { FM_NONE, FM_NONE };
    struct fm_flat *flat = fm_calloc(1, sizeof *flat);
    struct flat_walk w;
    if (!scope)
        scope = &all;
    walk_init(&w, p);
    fm_autofree bool *only_sampled = only_sampled_new(&w);
    for (uint32_t t = 0; t < p->threads.len; t++) {
        const struct fm_thread *thread = &p->threads.data[t];
        w.timeless = only_sampled[t] && scope->thread != t;
        if ((scope->process == FM_NONE || scope->process == thread->process) &&
            (scope->thread == FM_NONE || scope->thread == t))
            walk_tree(&w, thread->root);
    }
    flat_fill(flat, w.rows, p->functions.len, w.edges.data, w.edges.len);
    walk_release(&w);
    tell_samples(flat, p, scope);
    tell_columns(flat);
    /* A ready-made table has no processes or threads, so it belongs to the whole only. */
    if (p->flat && scope->process == FM_NONE && scope->thread == FM_NONE)
        fm_flat_merge(flat, p->flat);
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

void fm_flat_merge(struct fm_flat *flat, const struct fm_flat *extra)
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
