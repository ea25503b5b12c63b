/*
 * Tables over a view: functions, and calls between functions; see view.h.
 *
 * The numbers mean what they mean in the reports (model/flat.h): of nested activations of a
 * function, or of one pair of caller and callee, only the outermost counts in a total. A recording
 * that came as a table is shown by that table, not by the tree that was estimated from it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
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

struct fm_view_numbers *fm_view_function_numbers(struct fm_view *v, int side, unsigned metric)
{
    struct fm_view_side *s = &v->side[side];
    struct fm_view_numbers *rows = fm_calloc(v->engine->functions.len, sizeof *rows);
    if (!s->recording)
        return rows;
    for (size_t i = 0; s->table && i < s->table->rows.len; i++) {
        const struct fm_flat_row *row = &s->table->rows.data[i];
        rows[s->recording->func_of[row->func]] = row_numbers(row, metric);
    }
    if (s->recording->estimated && s->table)
        return rows;
    struct fm_view_values values = fm_view_values(v, side, metric);
    const double *calls = fm_view_selves(v, side, FM_ENGINE_CALLS);
    for (uint32_t i = 1; i < v->nodes; i++) {
        struct fm_view_numbers *row = &rows[v->func[i]];
        row->calls += calls[i];
        row->self += values.self[i];
        row->total += v->outermost[i] ? values.total[i] : 0;
    }
    return rows;
}

double fm_view_sum(struct fm_view *v, int side, unsigned metric)
{
    struct fm_view_side *s = &v->side[side];
    if (!s->recording)
        return 0;
    double sum = 0;
    for (size_t i = 0; s->table && i < s->table->rows.len; i++)
        sum += table_self(s->table->rows.data[i].self, FM_METRIC_COUNT, metric);
    return s->recording->estimated && s->table ? sum
                                               : sum + fm_view_values(v, side, metric).total[0];
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
    struct fm_shape shape = { v->nodes, v->depth, v->parent, v->func, v->end };
    fm_autofree bool *is_row = fm_calloc(functions, sizeof *is_row);
    for (uint32_t f = 0; f < functions; f++)
        is_row[f] = is_shown(v, f);
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
    if (!s->recording->estimated || !s->table) {
        const struct fm_flat *flat = flat_of(v);
        for (size_t i = 0; i < flat->rows.len; i++)
            rows[flat->rows.data[i].func] = &flat->rows.data[i];
    }
    for (size_t i = 0; s->table && i < s->table->rows.len; i++)
        rows[s->recording->func_of[s->table->rows.data[i].func]] = &s->table->rows.data[i];
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

int fm_view_table(struct fm_view *v, unsigned metric)
{
    if (!metric_exists(v, metric))
        return -1;
    struct fm_result *r = &v->engine->results[0];
    bool diff = fm_view_is_diff(v), states = has_states(&v->side[0]);
    uint32_t rows;
    fm_autofree struct fm_view_numbers *after = fm_view_function_numbers(v, 0, metric);
    fm_autofree struct fm_view_numbers *before = fm_view_function_numbers(v, 1, metric);
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
    }
    r->scalars[0] = fm_view_sum(v, 0, metric);
    r->scalars[1] = fm_view_sum(v, 1, metric);
    r->scalars[2] = states;
    r->scalars[3] = further;
    return 0;
}

/* ---- calls between functions ---- */

static uint32_t edge_at(struct fm_view *v, uint32_t caller, uint32_t callee)
{
    bool is_new;
    uint32_t id =
        *fm_map_at(&v->edge_index, fm_map_pair(caller, callee), (uint32_t)v->edges.len, &is_new);
    if (is_new)
        fm_vec_push(&v->edges, ((struct fm_view_edge){ caller, callee }));
    return id;
}

static void find_table_edges(struct fm_view *v, const struct fm_view_side *s)
{
    for (size_t i = 0; s->table && i < s->table->edges.len; i++) {
        const struct fm_flat_edge *edge = &s->table->edges.data[i];
        edge_at(v, s->recording->func_of[s->table->rows.data[edge->caller].func],
                s->recording->func_of[s->table->rows.data[edge->callee].func]);
    }
}

static void find_edges(struct fm_view *v)
{
    if (v->edge_of)
        return;
    v->edge_of = fm_malloc(v->nodes * sizeof *v->edge_of);
    v->edge_outermost = fm_calloc(v->nodes, 1);
    FM_VEC(uint32_t) busy_until = { 0 };
    v->edge_of[0] = FM_NONE;
    for (uint32_t i = 1; i < v->nodes; i++) {
        uint32_t caller = v->func[v->parent[i]];
        v->edge_of[i] = FM_NONE;
        if (!is_shown(v, v->func[i]))
            continue;
        uint32_t edge = v->edge_of[i] = edge_at(v, is_shown(v, caller) ? caller : 0, v->func[i]);
        while (busy_until.len <= edge)
            fm_vec_push(&busy_until, 0);
        if (i >= busy_until.data[edge]) {
            v->edge_outermost[i] = 1;
            busy_until.data[edge] = v->end[i];
        }
    }
    fm_vec_release(&busy_until);
    for (int i = 0; i < 2; i++)
        find_table_edges(v, &v->side[i]);
}

struct fm_view_numbers *fm_view_edge_numbers(struct fm_view *v, int side, unsigned metric)
{
    struct fm_view_side *s = &v->side[side];
    find_edges(v);
    struct fm_view_numbers *rows = fm_calloc(v->edges.len, sizeof *rows);
    if (!s->recording)
        return rows;
    for (size_t i = 0; s->table && i < s->table->edges.len; i++) {
        const struct fm_flat_edge *edge = &s->table->edges.data[i];
        uint32_t at = edge_at(v, s->recording->func_of[s->table->rows.data[edge->caller].func],
                              s->recording->func_of[s->table->rows.data[edge->callee].func]);
        rows[at] = edge_numbers(edge, metric);
    }
    if (s->recording->estimated && s->table)
        return rows;
    struct fm_view_values values = fm_view_values(v, side, metric);
    const double *calls = fm_view_selves(v, side, FM_ENGINE_CALLS);
    for (uint32_t i = 1; i < v->nodes; i++) {
        if (v->edge_of[i] == FM_NONE)
            continue;
        struct fm_view_numbers *row = &rows[v->edge_of[i]];
        row->calls += calls[i];
        row->self += values.self[i];
        row->total += v->edge_outermost[i] ? values.total[i] : 0;
    }
    return rows;
}

struct neighbour {
    uint32_t func;
    struct fm_view_numbers after, before;
};

static int by_weight(const void *left, const void *right)
{
    const struct neighbour *a = left, *b = right;
    double wide = a->after.total + a->before.total, other = b->after.total + b->before.total;
    if (wide != other)
        return wide > other ? -1 : 1;
    return a->func < b->func ? -1 : a->func > b->func;
}

/* One end of the edges is given, so they are told apart by the other end: no edge has to be looked
 * up, and they need not be found for all functions. */
static void neighbours_of_table(const struct fm_view_side *s, uint32_t func, unsigned metric,
                                bool callers, struct fm_view_numbers *rows)
{
    for (size_t i = 0; s->table && i < s->table->edges.len; i++) {
        const struct fm_flat_edge *edge = &s->table->edges.data[i];
        uint32_t caller = s->recording->func_of[s->table->rows.data[edge->caller].func];
        uint32_t callee = s->recording->func_of[s->table->rows.data[edge->callee].func];
        if (func == (callers ? callee : caller))
            rows[callers ? caller : callee] = edge_numbers(edge, metric);
    }
}

static void neighbours_of_tree(struct fm_view *v, int side, uint32_t func, unsigned metric,
                               bool callers, struct fm_view_numbers *rows)
{
    struct fm_view_values values = fm_view_values(v, side, metric);
    const double *calls = fm_view_selves(v, side, FM_ENGINE_CALLS);
    fm_autofree uint32_t *busy_until = fm_calloc(v->engine->functions.len, sizeof *busy_until);
    for (uint32_t i = 1; i < v->nodes; i++) {
        uint32_t callee = v->func[i], caller = v->func[v->parent[i]];
        if ((callers ? callee != func : func && caller != func) || !is_shown(v, callee))
            continue;
        caller = is_shown(v, caller) ? caller : 0;
        if (!callers && caller != func)
            continue;
        uint32_t other = callers ? caller : callee;
        rows[other].calls += calls[i];
        rows[other].self += values.self[i];
        if (i >= busy_until[other]) {
            rows[other].total += values.total[i];
            busy_until[other] = v->end[i];
        }
    }
}

/* By function: the edges between it and `func`. Caller frees. */
static struct fm_view_numbers *neighbour_numbers(struct fm_view *v, int side, uint32_t func,
                                                 unsigned metric, bool callers)
{
    const struct fm_view_side *s = &v->side[side];
    struct fm_view_numbers *rows = fm_calloc(v->engine->functions.len, sizeof *rows);
    if (!s->recording)
        return rows;
    neighbours_of_table(s, func, metric, callers, rows);
    if (!s->recording->estimated || !s->table)
        neighbours_of_tree(v, side, func, metric, callers, rows);
    return rows;
}

int fm_view_neighbours(struct fm_view *v, uint32_t func, unsigned metric, bool callers)
{
    if (!metric_exists(v, metric))
        return -1;
    struct fm_result *r = &v->engine->results[0];
    bool diff = fm_view_is_diff(v);
    fm_autofree struct fm_view_numbers *after = neighbour_numbers(v, 0, func, metric, callers);
    fm_autofree struct fm_view_numbers *before = neighbour_numbers(v, 1, func, metric, callers);
    FM_VEC(struct neighbour) found = { 0 };
    for (uint32_t f = 0; f < v->engine->functions.len && found.len < FM_ENGINE_ROWS; f++)
        if (after[f].calls || after[f].total || before[f].calls || before[f].total)
            fm_vec_push(&found, ((struct neighbour){ f, after[f], before[f] }));
    if (found.len)
        qsort(found.data, found.len, sizeof *found.data, by_weight);
    fm_result_begin(r, (uint32_t)found.len);
    uint32_t *other = fm_result_u32(r);
    double *calls = fm_result_f64(r), *self = fm_result_f64(r), *total = fm_result_f64(r);
    double *base_calls = diff ? fm_result_f64(r) : NULL, *base = diff ? fm_result_f64(r) : NULL;
    for (size_t i = 0; i < found.len; i++) {
        other[i] = found.data[i].func;
        calls[i] = found.data[i].after.calls;
        self[i] = found.data[i].after.self;
        total[i] = found.data[i].after.total;
        if (diff) {
            base_calls[i] = found.data[i].before.calls;
            base[i] = found.data[i].before.total;
        }
    }
    fm_vec_release(&found);
    return 0;
}

/* ---- search ---- */

int fm_view_matched(struct fm_view *v, const uint32_t *funcs, uint32_t len, unsigned metric)
{
    if (!metric_exists(v, metric))
        return -1;
    struct fm_result *r = &v->engine->results[0];
    struct fm_view_values after = fm_view_values(v, 0, metric),
                          before = fm_view_values(v, 1, metric);
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
        sum += after.total[i];
        base += before.total ? before.total[i] : 0;
        covered = v->end[i];
    }
    fm_result_begin(r, 0);
    r->scalars[0] = sum;
    r->scalars[1] = base;
    r->scalars[2] = nodes;
    return 0;
}
