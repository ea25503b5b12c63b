/*
 * Tables over a view: functions, and calls between functions; see view.h.
 *
 * The numbers are those of the reports, as the same code makes both: model/derive/sums.h adds up what is drawn,
 * by function and by call, and model/derive/flat.h what a row shows beside it. A recording that came as a
 * table is shown by that table, not by the tree that was estimated from it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "record/model/derive/label.h"
#include "view.h"

static double positive(int64_t value)
{
    return value > 0 ? (double)value : 0;
}

/* ---- functions ---- */

static bool is_shown(const struct fm_view *v, uint32_t func)
{
    uint8_t kind = v->engine->functions.data[func].kind;
    return kind != FM_FUNCTION_ROOT && kind != FM_ENGINE_KIND_EVERYTHING;
}

/* What a table that the recording came as has of a metric: numbers are by metric of the model, and
 * `count` of them are there. What has no total is drawn with what is its own. */
static double table_self(const int64_t *self, unsigned count, unsigned metric)
{
    return metric < count ? positive(self[metric]) : 0;
}

static double table_total(const int64_t *self, const int64_t *total, unsigned count,
                          unsigned metric)
{
    if (metric >= count)
        return 0;
    return positive(fm_metric_has_total((enum fm_metric)metric) ? total[metric] : self[metric]);
}

static struct fm_view_numbers row_numbers(const struct fm_flat_row *row, unsigned metric)
{
    return (struct fm_view_numbers){ positive(row->calls),
                                     table_self(row->self, FM_METRIC_COUNT, metric),
                                     table_total(row->self, row->total, FM_METRIC_COUNT, metric) };
}

static struct fm_view_numbers edge_numbers(const struct fm_flat_edge *edge, unsigned metric)
{
    return (struct fm_view_numbers){
        positive(edge->calls), table_self(edge->self, FM_METRIC_STATES, metric),
        table_total(edge->self, edge->total, FM_METRIC_STATES, metric)
    };
}

/* Are the numbers of a side those of its tree, or only those of the table that it came as? */
static bool has_tree(const struct fm_view_side *s)
{
    return s->recording && !(s->recording->estimated && s->table);
}

/* The function of the engine that a row of a recording's table is of. */
static uint32_t table_func(const struct fm_view_side *s, uint32_t row)
{
    return s->recording->func_of[s->table->rows.data[row].func];
}

/* What functions or calls have in the tree of a side, by group. Caller frees. */
static struct fm_view_numbers *tree_numbers_new(struct fm_view *v, int side, unsigned metric,
                                                const struct fm_groups *groups)
{
    struct fm_view_numbers *numbers = fm_calloc(groups->count, sizeof *numbers);
    if (!has_tree(&v->side[side]))
        return numbers;
    struct fm_sums_of what = { .numbers = fm_view_table_values(v, side, metric),
                               .calls = fm_view_selves(v, side, FM_ENGINE_CALLS) };
    fm_autofree struct fm_sums *sums = fm_sums_new(groups, &what);
    for (size_t i = 0; i < groups->count; i++)
        numbers[i] = (struct fm_view_numbers){ (double)sums[i].calls, (double)sums[i].self,
                                               (double)sums[i].total };
    return numbers;
}

static void numbers_add(struct fm_view_numbers *numbers, struct fm_view_numbers extra)
{
    numbers->calls += extra.calls;
    numbers->self += extra.self;
    numbers->total += extra.total;
}

struct fm_view_numbers *fm_view_function_numbers(struct fm_view *v, int side, unsigned metric)
{
    const struct fm_view_side *s = &v->side[side];
    struct fm_shape tree = fm_view_tree(v);
    struct fm_groups functions =
        fm_groups_of_functions(&tree, v->outermost, (uint32_t)v->engine->functions.len);
    struct fm_view_numbers *rows = tree_numbers_new(v, side, metric, &functions);
    for (uint32_t i = 0; s->table && i < s->table->rows.len; i++)
        numbers_add(&rows[table_func(s, i)], row_numbers(&s->table->rows.data[i], metric));
    return rows;
}

double fm_view_sum(struct fm_view *v, int side, unsigned metric)
{
    const struct fm_view_side *s = &v->side[side];
    double sum = has_tree(s) ? (double)fm_view_table_values(v, side, metric).total[0] : 0;
    for (size_t i = 0; s->table && i < s->table->rows.len; i++)
        sum += table_self(s->table->rows.data[i].self, FM_METRIC_COUNT, metric);
    return sum;
}

/* By function of the engine: may it be a row? Caller frees. */
static bool *is_row_new(const struct fm_view *v)
{
    size_t functions = v->engine->functions.len;
    bool *is_row = fm_malloc(functions * sizeof *is_row);
    for (uint32_t f = 0; f < functions; f++)
        is_row[f] = is_shown(v, f);
    return is_row;
}

/* The model's table of the tree, as a report has it, of what a row shows whatever is drawn: what is a
 * function's own, and totals of metrics with columns of their own. */
static const struct fm_flat *flat_of(struct fm_view *v)
{
    v = v->tree_of ? v->tree_of : v;
    struct fm_view_side *s = &v->side[0];
    fm_view_use(v);
    if (s->flat)
        return s->flat;
    uint32_t functions = (uint32_t)v->engine->functions.len;
    uint64_t unseen = (uint64_t)1 << FM_METRIC_TOTAL | (uint64_t)1 << FM_METRIC_RESUMES;
    struct fm_shape shape = fm_view_tree(v);
    fm_autofree bool *is_row = is_row_new(v);
    s->flat = fm_flat_of_shape(&shape, &s->of,
                               &(struct fm_flat_shape){ .functions = functions,
                                                        .is_row = is_row,
                                                        .outermost = v->outermost,
                                                        .metrics = ~unseen,
                                                        .totals = fm_profile_columns(s->of.p) });
    return s->flat;
}

/* By function of the engine: its row, of the tree or of the table that the recording came as. Where
 * there are both, a row of the table stands before. Caller frees. */
static const struct fm_flat_row **rows_new(struct fm_view *v)
{
    const struct fm_view_side *s = &v->side[0];
    const struct fm_flat_row **rows = fm_calloc(v->engine->functions.len, sizeof *rows);
    if (has_tree(s)) {
        const struct fm_flat *flat = flat_of(v);
        for (size_t i = 0; i < flat->rows.len; i++)
            rows[flat->rows.data[i].func] = &flat->rows.data[i];
    }
    for (uint32_t i = 0; s->table && i < s->table->rows.len; i++)
        rows[table_func(s, i)] = &s->table->rows.data[i];
    return rows;
}

static uint32_t *contexts_new(const struct fm_view *v)
{
    uint32_t *contexts = fm_calloc(v->engine->functions.len, sizeof *contexts);
    for (uint32_t i = 1; i < v->nodes; i++)
        contexts[v->func[i]]++;
    return contexts;
}

/* Does any node have a state that counts? */
static bool has_states(const struct fm_view_side *s)
{
    for (int state = 0; state < FM_STATE_COUNT; state++) {
        const int64_t *data = s->of.p->columns[fm_metric_of_state((enum fm_state)state)].data;
        for (size_t i = 0; data && i < s->of.p->nodes.len; i++)
            if (data[i] && (!s->of.part || s->of.part[i] & FM_SHAPE_OWN))
                return true;
    }
    return false;
}

/* The functions that are to be in the table. Caller frees. */
static uint32_t *shown_new(struct fm_view *v, const uint32_t *contexts,
                           const struct fm_view_numbers *after,
                           const struct fm_view_numbers *before, uint32_t *count)
{
    uint32_t *funcs = fm_malloc(v->engine->functions.len * sizeof *funcs);
    *count = 0;
    for (uint32_t f = 0; f < v->engine->functions.len && *count < FM_ENGINE_ROWS; f++)
        if (is_shown(v, f) &&
            (contexts[f] || after[f].calls || after[f].total || before[f].calls || before[f].total))
            funcs[(*count)++] = f;
    return funcs;
}

static bool metric_exists(struct fm_view *v, unsigned metric)
{
    if (fm_engine_metric_is_drawn(metric))
        return true;
    fm_error_set(&v->engine->err, FM_USAGE, "there is no metric %u", metric);
    return false;
}

unsigned fm_view_error_metric(const struct fm_view *v, unsigned metric)
{
    unsigned error =
        metric < FM_METRIC_COUNT ? fm_metric_error((enum fm_metric)metric) : FM_METRIC_COUNT;
    return fm_engine_metric_is_there(v->side[0].of.p, error) ? error : FM_METRIC_COUNT;
}

int fm_view_table(struct fm_view *v, unsigned metric)
{
    if (!metric_exists(v, metric))
        return -1;
    struct fm_result *r = &v->engine->results[0];
    bool diff = fm_view_is_diff(v), states = has_states(&v->side[0]);
    uint32_t rows;
    fm_autofree struct fm_view_numbers *after = fm_view_function_numbers(v, 0, metric);
    fm_autofree struct fm_view_numbers *before = fm_view_function_numbers(v, 1, metric);
    unsigned of_error = fm_view_error_metric(v, metric);
    fm_autofree struct fm_view_numbers *errors =
        of_error < FM_METRIC_COUNT ? fm_view_function_numbers(v, 0, of_error) : NULL;
    fm_autofree const struct fm_flat_row **all = rows_new(v);
    fm_autofree uint32_t *contexts = contexts_new(v);
    fm_autofree uint32_t *shown = shown_new(v, contexts, after, before, &rows);
    uint64_t columns = fm_profile_columns(v->side[0].of.p);
    uint32_t further = (uint32_t)__builtin_popcountll(columns);
    fm_result_begin(r, rows);
    uint32_t *func = fm_result_u32(r), *nodes = fm_result_u32(r);
    double *number[8];
    for (int i = 0; i < 8; i++)
        number[i] = fm_result_f64(r);
    double *wide = states ? fm_result_f64_wide(r, FM_STATE_COUNT) : NULL;
    double *own = further ? fm_result_f64_wide(r, 2 * further) : NULL;
    double *base[3] = { NULL };
    for (int i = 0; diff && i < 3; i++)
        base[i] = fm_result_f64(r);
    double *error[2] = { NULL };
    for (int i = 0; errors && i < 2; i++)
        error[i] = fm_result_f64(r);
    static const struct fm_flat_row none;
    for (uint32_t i = 0; i < rows; i++) {
        uint32_t f = func[i] = shown[i];
        const struct fm_flat_row *x = all[f] ? all[f] : &none;
        nodes[i] = contexts[f];
        const double numbers[8] = { after[f].calls,
                                    positive(x->primitive),
                                    after[f].self,
                                    after[f].total,
                                    positive(x->min_ns),
                                    positive(x->max_ns),
                                    positive(x->suspended_ns),
                                    positive(x->samples) };
        for (int k = 0; k < 8; k++)
            number[k][i] = numbers[k];
        for (int k = 0; wide && k < FM_STATE_COUNT; k++)
            *wide++ = positive(x->state_ns[k]);
        for (int m = fm_metric_next(columns, 0); m < FM_METRIC_COUNT;
             m = fm_metric_next(columns, m + 1)) {
            *own++ = positive(x->self[m]);
            *own++ = fm_metric_has_total((enum fm_metric)m) ? positive(x->total[m]) : 0;
        }
        if (diff) {
            base[0][i] = before[f].calls;
            base[1][i] = before[f].self;
            base[2][i] = before[f].total;
        }
        if (errors) {
            error[0][i] = (double)fm_profile_error_bytes(v->side[0].of.p, (int64_t)errors[f].self);
            error[1][i] = (double)fm_profile_error_bytes(v->side[0].of.p, (int64_t)errors[f].total);
        }
    }
    r->scalars[0] = fm_view_sum(v, 0, metric);
    r->scalars[1] = fm_view_sum(v, 1, metric);
    r->scalars[2] = states;
    r->scalars[3] = further;
    r->scalars[4] = errors != NULL;
    return 0;
}

/* ---- calls between functions ---- */

/* All calls, or those of the function that was asked for last. */
static const struct fm_calls *calls_of(struct fm_view *v, uint32_t around)
{
    v = v->tree_of ? v->tree_of : v;
    struct fm_calls *calls = around == FM_NONE ? &v->calls : &v->calls_around;
    fm_view_use(v);
    if (calls->of && (around == FM_NONE || v->around == around))
        return calls;
    struct fm_shape tree = fm_view_tree(v);
    fm_autofree bool *is_row = is_row_new(v);
    fm_calls_release(calls);
    fm_calls_init(calls, &tree, &(struct fm_calls_of){ is_row, 0, around });
    v->around = around == FM_NONE ? v->around : around;
    return calls;
}

static void add_tree_edges(struct fm_view *v, unsigned metric, uint32_t around,
                           fm_view_edges *edges)
{
    const struct fm_calls *calls = calls_of(v, around);
    struct fm_groups groups = fm_groups_of_calls(calls);
    fm_autofree struct fm_view_numbers *after = tree_numbers_new(v, 0, metric, &groups);
    fm_autofree struct fm_view_numbers *before = tree_numbers_new(v, 1, metric, &groups);
    fm_vec_reserve(edges, groups.count);
    for (size_t i = 0; i < groups.count; i++) {
        const struct fm_call *call = &calls->list.data[i];
        fm_vec_push(edges,
                    ((struct fm_view_edge){ call->caller, call->callee, { after[i], before[i] } }));
    }
}

static void add_table_edges(struct fm_view *v, unsigned metric, uint32_t around,
                            fm_view_edges *edges)
{
    struct fm_map index = { 0 };
    for (uint32_t i = 0; i < edges->len; i++)
        fm_map_at(&index, fm_map_pair(edges->data[i].caller, edges->data[i].callee), i, NULL);
    for (int side = 0; side < 2; side++) {
        const struct fm_view_side *s = &v->side[side];
        for (size_t i = 0; s->table && i < s->table->edges.len; i++) {
            const struct fm_flat_edge *edge = &s->table->edges.data[i];
            struct fm_view_edge fresh = { table_func(s, edge->caller),
                                          table_func(s, edge->callee),
                                          { { 0 } } };
            bool is_new;
            if (around != FM_NONE && fresh.caller != around && fresh.callee != around)
                continue;
            uint32_t at = *fm_map_at(&index, fm_map_pair(fresh.caller, fresh.callee),
                                     (uint32_t)edges->len, &is_new);
            if (is_new)
                fm_vec_push(edges, fresh);
            struct fm_view_numbers numbers = edge_numbers(edge, metric);
            if (around == FM_NONE && metric == FM_ENGINE_TOTAL) /* to be drawn, not listed */
                numbers.total = positive(fm_edge_time(s->table, edge));
            numbers_add(&edges->data[at].side[side], numbers);
        }
    }
    fm_map_release(&index);
}

fm_view_edges fm_view_edges_of(struct fm_view *v, unsigned metric, uint32_t around)
{
    fm_view_edges edges = { 0 };
    if (has_tree(&v->side[0]) || has_tree(&v->side[1]))
        add_tree_edges(v, metric, around, &edges);
    if (v->side[0].table || v->side[1].table)
        add_table_edges(v, metric, around, &edges);
    return edges;
}

static int by_weight(const void *left, const void *right)
{
    const struct fm_view_edge *a = left, *b = right;
    double wide = a->side[0].total + a->side[1].total, other = b->side[0].total + b->side[1].total;
    if (wide != other)
        return wide > other ? -1 : 1;
    if (a->caller != b->caller)
        return a->caller < b->caller ? -1 : 1;
    return a->callee < b->callee ? -1 : a->callee > b->callee;
}

static bool edge_is_used(const struct fm_view_edge *edge)
{
    return edge->side[0].calls || edge->side[0].total || edge->side[1].calls || edge->side[1].total;
}

int fm_view_neighbours(struct fm_view *v, uint32_t func, unsigned metric, bool callers)
{
    if (!metric_exists(v, metric))
        return -1;
    struct fm_result *r = &v->engine->results[0];
    bool diff = fm_view_is_diff(v);
    fm_view_edges edges = fm_view_edges_of(v, metric, func);
    uint32_t found = 0;
    for (size_t i = 0; i < edges.len && found < FM_ENGINE_ROWS; i++) {
        const struct fm_view_edge *edge = &edges.data[i];
        if (func == (callers ? edge->callee : edge->caller) && edge_is_used(edge))
            edges.data[found++] = *edge;
    }
    if (found)
        qsort(edges.data, found, sizeof *edges.data, by_weight);
    fm_result_begin(r, found);
    uint32_t *other = fm_result_u32(r);
    double *calls = fm_result_f64(r), *self = fm_result_f64(r), *total = fm_result_f64(r);
    double *base_calls = diff ? fm_result_f64(r) : NULL, *base = diff ? fm_result_f64(r) : NULL;
    for (uint32_t i = 0; i < found; i++) {
        const struct fm_view_edge *edge = &edges.data[i];
        other[i] = callers ? edge->caller : edge->callee;
        calls[i] = edge->side[0].calls;
        self[i] = edge->side[0].self;
        total[i] = edge->side[0].total;
        if (diff) {
            base_calls[i] = edge->side[1].calls;
            base[i] = edge->side[1].total;
        }
    }
    fm_vec_release(&edges);
    return 0;
}

/* ---- search ---- */

int fm_view_matched(struct fm_view *v, const uint32_t *funcs, uint32_t len, unsigned metric)
{
    if (!metric_exists(v, metric))
        return -1;
    struct fm_result *r = &v->engine->results[0];
    struct fm_numbers after = fm_view_values(v, 0, metric), before = fm_view_values(v, 1, metric);
    fm_autofree uint8_t *wanted = fm_calloc(v->engine->functions.len, 1);
    double sum = 0, base = 0, nodes = 0;
    for (uint32_t i = 0; i < len; i++)
        if (funcs[i] < v->engine->functions.len)
            wanted[funcs[i]] = 1;
    for (uint32_t i = 0, covered = 0; i < v->nodes; i++) {
        if (!wanted[v->func[i]])
            continue;
        nodes++;
        if (i < covered)
            continue;
        sum += (double)after.total[i];
        base += before.total ? (double)before.total[i] : 0;
        covered = v->end[i];
    }
    fm_result_begin(r, 0);
    r->scalars[0] = sum;
    r->scalars[1] = base;
    r->scalars[2] = nodes;
    return 0;
}
