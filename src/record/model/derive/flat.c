/*
 * The flat table of trees; see flat.h for what the numbers mean.
 *
 * Trees are taken as a shape (model/derive/shape.h), of which model/derive/sums.h adds up one metric after the other:
 * by node, then by function and by edge. What has no total is added up here, all of it in one pass.
 *
 * An entry counts as primitive if no other of the same function, or edge, is active. Memory is some
 * numbers per node, whatever the number of metrics.
 */
#include "record/model/derive/flat.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "record/model/derive/sums.h"

struct flat_table {
    const struct fm_shape *shape;
    const struct fm_shape_source *source;
    const struct fm_flat_shape *o;
    const uint8_t *outermost;       /* by node: no other of its function is active */
    struct fm_calls calls;          /* empty if edges are not wanted */
    struct fm_flat_row *rows;       /* by function of the shape */
    struct fm_flat_edge *edge_rows; /* by call */
};

/* ---- numbers ---- */

static inline void add(bool sum, enum fm_metric metric, int64_t *number, int64_t value)
{
    *number = sum ? fm_sum(*number, value) : fm_metric_combine(metric, *number, value);
}

/* A column of which a function has the sum, or the like, of what its nodes have. */
struct plain {
    enum fm_metric metric; /* whose number it goes into */
    const int64_t *data;
    unsigned part;
    bool sum, entries;
};

/* Numbers of all plain columns side by side, and primitive entries behind them. */
static void plain_add(const struct plain *columns, int count, int64_t *numbers, unsigned part,
                      size_t node, bool outermost)
{
    for (int k = 0; k < count; k++) {
        const struct plain *c = &columns[k];
        int64_t value = c->data[node];
        if (!value || !(part & c->part))
            continue;
        add(c->sum, c->metric, &numbers[k], value);
        if (c->entries && outermost)
            numbers[count] = fm_sum(numbers[count], value);
    }
}

static void plain_take(const struct plain *columns, int count, const int64_t *numbers, int metrics,
                       int64_t *self, int64_t *primitive)
{
    for (int k = 0; k < count; k++) {
        enum fm_metric metric = columns[k].metric;
        if ((int)metric < metrics)
            self[metric] = fm_metric_combine(metric, self[metric], numbers[k]);
    }
    *primitive = numbers[count];
}

/* All of them in one pass: most of the time goes into finding the rows, so these are small. */
static void add_plain(struct flat_table *t, const struct plain *columns, int count)
{
    const struct fm_shape_source *s = t->source;
    size_t width = (size_t)count + 1;
    fm_autofree int64_t *rows = fm_calloc(t->o->functions * width + 1, sizeof *rows);
    fm_autofree int64_t *edges = fm_calloc(t->calls.list.len * width + 1, sizeof *edges);
    for (size_t i = 0; count && i < s->p->nodes.len; i++) {
        uint32_t node = s->node_of[i];
        if (node == FM_NONE)
            continue;
        unsigned part = s->part ? s->part[i] : FM_SHAPE_WHOLE;
        plain_add(columns, count, rows + t->shape->func[node] * width, part, i, t->outermost[node]);
        if (t->calls.of && t->calls.of[node] != FM_NONE)
            plain_add(columns, count, edges + t->calls.of[node] * width, part, i,
                      t->calls.outermost[node]);
    }
    for (size_t f = 0; f < t->o->functions; f++)
        plain_take(columns, count, rows + f * width, FM_METRIC_COUNT, t->rows[f].self,
                   &t->rows[f].primitive);
    for (size_t i = 0; i < t->calls.list.len; i++)
        plain_take(columns, count, edges + i * width, FM_METRIC_STATES, t->edge_rows[i].self,
                   &t->edge_rows[i].primitive);
}

/* A metric with totals, of functions and, as far as they have it, of calls. */
static void add_metric(struct flat_table *t, enum fm_metric metric)
{
    uint64_t resumes = metric == FM_METRIC_CALLS ? (uint64_t)1 << FM_METRIC_RESUMES : 0;
    struct fm_numbers_of of = { (uint64_t)1 << metric | resumes, t->o->timeless };
    struct fm_groups functions = fm_groups_of_functions(t->shape, t->outermost, t->o->functions);
    struct fm_groups calls = fm_groups_of_calls(&t->calls);
    struct fm_sums_of what = { .metric = metric };
    fm_numbers_init(&what.numbers, t->shape, t->source, &of);
    fm_numbers_add_up(&what.numbers, t->shape, &of);
    fm_autofree struct fm_sums *of_functions = fm_sums_new(&functions, &what);
    for (size_t f = 0; f < functions.count; f++) {
        t->rows[f].self[metric] = of_functions[f].self;
        t->rows[f].total[metric] = of_functions[f].total;
    }
    if (metric < FM_METRIC_STATES) {
        fm_autofree struct fm_sums *of_calls = fm_sums_new(&calls, &what);
        for (size_t i = 0; i < calls.count; i++) {
            t->edge_rows[i].self[metric] = of_calls[i].self;
            t->edge_rows[i].total[metric] = of_calls[i].total;
        }
    }
    fm_numbers_release(&what.numbers);
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
    fm_autofree struct place *places = fm_malloc((t->calls.list.len + 1) * sizeof *places);
    size_t used = 0;
    for (uint32_t f = 0; f < functions; f++)
        row_of[f] = t->o->is_row[f] && row_is_used(&t->rows[f]);
    for (size_t i = 0; i < t->calls.list.len; i++)
        if (edge_is_used(&t->edge_rows[i]))
            row_of[t->calls.list.data[i].caller] = row_of[t->calls.list.data[i].callee] = 1;
    for (uint32_t f = 0; f < functions; f++) {
        if (!row_of[f])
            continue;
        row_of[f] = (uint32_t)flat->rows.len;
        fm_vec_push(&flat->rows, t->rows[f]);
        flat->rows.data[flat->rows.len - 1].func = f;
    }
    for (uint32_t i = 0; i < t->calls.list.len; i++)
        if (edge_is_used(&t->edge_rows[i]))
            places[used++] = (struct place){ row_of[t->calls.list.data[i].callee],
                                             row_of[t->calls.list.data[i].caller], i };
    qsort(places, used, sizeof *places, place_order);
    for (size_t i = 0; i < used; i++) {
        struct fm_flat_edge edge = t->edge_rows[places[i].edge];
        edge.caller = places[i].caller;
        edge.callee = places[i].callee;
        fm_vec_push(&flat->edges, edge);
    }
}

/* What is neither of a function nor of the root of all. */
static void tell_outside(struct fm_flat *flat, const struct flat_table *t)
{
    for (uint32_t f = 0; f < t->o->functions; f++) {
        const struct fm_flat_row *row = &t->rows[f];
        if (t->o->is_row[f] || f == t->shape->func[0] || row->self_ns <= 0)
            continue; /* nobody measured threads as such: only what is below them is known */
        flat->outside.self_ns = fm_sum(flat->outside.self_ns, row->self_ns);
        flat->outside.samples = fm_sum(flat->outside.samples, row->samples);
        for (int s = 0; s < FM_STATE_COUNT; s++)
            flat->outside.state_ns[s] = fm_sum(flat->outside.state_ns[s], row->state_ns[s]);
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

/* Is a metric wanted, if the recording has it; and its total? */
static bool is_wanted(const struct fm_flat_shape *o, int metric, bool total)
{
    bool has = !total || fm_metric_has_total((enum fm_metric)metric);
    return o->metrics ? (total ? o->totals : o->metrics) >> metric & 1 : has;
}

/* Is it added up with totals, of node after node? */
static bool has_sums(const struct flat_table *t, enum fm_metric metric)
{
    const struct fm_column *columns = t->source->p->columns;
    bool there =
        columns[metric].data || (metric == FM_METRIC_CALLS && columns[FM_METRIC_RESUMES].data);
    bool callees = fm_metric_info(metric)->scope == FM_OF_CALLEES;
    return there && is_wanted(t->o, metric, false) && (callees || is_wanted(t->o, metric, true));
}

/* The others, and entries, of which the primitive ones are told apart, too. */
static int plain_columns(const struct flat_table *t, struct plain *columns)
{
    int count = 0;
    for (int m = 0; m < FM_METRIC_COUNT; m++) {
        enum fm_metric metric = (enum fm_metric)m;
        const int64_t *data = t->source->p->columns[m].data;
        bool calls = metric == FM_METRIC_CALLS, resumes = metric == FM_METRIC_RESUMES;
        if (!data || (has_sums(t, metric) && !calls && !resumes))
            continue;
        struct plain column = { metric, data, fm_part_of(metric), fm_metric_is_sum(metric), calls };
        if (is_wanted(t->o, m, false))
            columns[count++] = column;
        column.metric = FM_METRIC_CALLS;
        column.entries = true;
        if (resumes && is_wanted(t->o, FM_METRIC_CALLS, false))
            columns[count++] = column; /* they are entries, too */
    }
    return count;
}

static void add_metrics(struct flat_table *t)
{
    struct plain columns[FM_METRIC_COUNT + 1];
    add_plain(t, columns, plain_columns(t, columns));
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        if (has_sums(t, (enum fm_metric)m))
            add_metric(t, (enum fm_metric)m);
}

struct fm_flat *fm_flat_of_shape(const struct fm_shape *shape, const struct fm_shape_source *source,
                                 const struct fm_flat_shape *o)
{
    struct fm_flat *flat = fm_calloc(1, sizeof *flat);
    struct flat_table t = { .shape = shape, .source = source, .o = o };
    fm_autofree uint8_t *found = o->outermost ? NULL : fm_shape_outermost_new(shape, o->functions);
    t.outermost = o->outermost ? o->outermost : found;
    if (o->edges)
        fm_calls_init(&t.calls, shape, &(struct fm_calls_of){ o->is_row, FM_NONE, FM_NONE });
    t.rows = fm_calloc(o->functions + 1, sizeof *t.rows);
    t.edge_rows = fm_calloc(t.calls.list.len + 1, sizeof *t.edge_rows);
    add_metrics(&t);
    fill(flat, &t);
    tell_outside(flat, &t);
    tell_columns(flat);
    fm_calls_release(&t.calls);
    free(t.rows);
    free(t.edge_rows);
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

/* Nothing was called in such a thread, and its time is that of its samples to the nanosecond. */
bool *fm_flat_timeless_new(const struct fm_profile *p)
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

static bool counts_calls(const struct fm_profile *p, uint32_t node)
{
    uint32_t process = p->threads.data[p->nodes.data[node].thread].process;
    return process >= p->processes.len || p->processes.data[process].calls ||
           !p->processes.data[process].sampled;
}

/* Where some processes counted calls and others were only sampled: the time of the latter. */
static void tell_uncounted(struct fm_flat *flat, const struct fm_shape *shape,
                           const struct fm_shape_source *source, uint32_t functions)
{
    const struct fm_profile *p = source->p;
    fm_autofree uint8_t *outermost = fm_shape_outermost_new(shape, functions);
    fm_autofree int64_t *self_ns = fm_calloc(functions + 1, sizeof *self_ns);
    fm_autofree int64_t *total_ns = fm_calloc(functions + 1, sizeof *total_ns);
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        uint32_t node = source->node_of[i];
        int64_t ns = fm_profile_value(p, FM_METRIC_TOTAL, i);
        if (node == FM_NONE || !ns || counts_calls(p, i))
            continue;
        uint32_t func = shape->func[node], caller = shape->func[shape->parent[node]];
        self_ns[func] = fm_sum(self_ns[func], ns);
        self_ns[caller] = fm_sum(self_ns[caller], ns == INT64_MIN ? INT64_MAX : -ns);
        if (outermost[node])
            total_ns[func] = fm_sum(total_ns[func], ns);
    }
    for (size_t i = 0; i < flat->rows.len; i++) {
        flat->rows.data[i].uncounted_self_ns = self_ns[flat->rows.data[i].func];
        flat->rows.data[i].uncounted_ns = total_ns[flat->rows.data[i].func];
    }
}

static struct fm_flat *flat_of_trees(const struct fm_profile *p, const struct fm_flat_scope *scope)
{
    size_t functions = p->functions.len;
    fm_autofree uint32_t *names = names_new(p, scope);
    fm_autofree bool *timeless = fm_flat_timeless_new(p),
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
    tell_samples(flat, p, scope);
    if (flat->beside)
        tell_uncounted(flat, &shape, &source[0], o.functions);
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
    struct fm_flat_total sum = { .self_ns = flat->outside.self_ns,
                                 .samples = flat->outside.samples };
    for (size_t i = 0; i < flat->rows.len; i++) {
        sum.calls = fm_sum(sum.calls, flat->rows.data[i].calls);
        sum.primitive = fm_sum(sum.primitive, flat->rows.data[i].primitive);
        sum.self_ns = fm_sum(sum.self_ns, flat->rows.data[i].self_ns);
        sum.samples = fm_sum(sum.samples, flat->rows.data[i].samples);
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
    row->uncounted_self_ns = fm_sum(row->uncounted_self_ns, extra->uncounted_self_ns);
    row->uncounted_ns = fm_sum(row->uncounted_ns, extra->uncounted_ns);
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
