/*
 * The tables of `fathom top`: rows of functions or lines, with callers below those that are open;
 * see model.h.
 *
 * Times of nodes are added up once per table, forward for self and backward for the subtrees; rows
 * and callers only add those up. A caller's row says how much of the function's time came through
 * it: so the callers of a row add up to the row, but for what had no caller.
 */
#include <string.h>

#include "show/report/samples/sampling.h"
#include "show/top/model.h"

#define OPEN_CALLERS 16           /* that many levels open by themselves */
#define LINE_KEY     (1ull << 63) /* so that no key of a line is one of a function */

struct times {
    int64_t self, total;
};

struct filler {
    const struct fm_top_model *model;
    const struct fm_top_query *query;
    struct fm_top_table *table;
    struct times *span, *start; /* per node */
};

/* A node of the function that was opened, and the one above it that is looked at. */
struct path {
    uint32_t leaf, at;
};

struct caller_group {
    struct fm_top_row row;
    size_t first, n; /* of the paths through this caller */
};

static int64_t masked(const struct fm_top_count *count, unsigned states)
{
    int64_t sum = 0;
    for (int s = 0; s < FM_STATE_COUNT; s++)
        if (states & 1u << s)
            sum = fm_sum(sum, count->state_ns[s]);
    return sum;
}

/* What came since `before`; a sampler that forgets a thread takes nothing back. */
static int64_t gain(int64_t now, int64_t before)
{
    return now > before ? now - before : 0;
}

static int64_t state_in_span(const struct fm_top_query *query, const struct fm_top_count *now,
                             const struct fm_top_count *before, int state)
{
    if (!(query->states & 1u << state))
        return 0;
    return query->since_start ? now->state_ns[state]
                              : gain(now->state_ns[state], before->state_ns[state]);
}

static int64_t span_of(const struct fm_top_query *query, const struct fm_top_count *now,
                       const struct fm_top_count *before)
{
    int64_t sum = 0;
    for (int s = 0; s < FM_STATE_COUNT; s++)
        sum = fm_sum(sum, state_in_span(query, now, before, s));
    return sum;
}

static void add_states(const struct fm_top_query *query, struct fm_top_row *row,
                       const struct fm_top_count *now, const struct fm_top_count *before)
{
    for (int s = 0; s < FM_STATE_COUNT; s++)
        row->state_ns[s] = fm_sum(row->state_ns[s], state_in_span(query, now, before, s));
    row->samples = fm_sum(row->samples, now->samples);
}

/* How many samples the time in the span is made of. Samples are not counted by state: their share
 * is taken to be that of the time. */
static void add_whole(struct filler *f, const struct fm_top_count *now,
                      const struct fm_top_count *before)
{
    const struct fm_top_query *q = f->query;
    struct fm_top_query every = *q;
    every.states = FM_TOP_ALL_STATES;
    int64_t samples = q->since_start ? now->samples : gain(now->samples, before->samples);
    int64_t part = span_of(q, now, before), all = span_of(&every, now, before);
    f->table->whole_ns = fm_sum(f->table->whole_ns, part);
    if (all > 0)
        f->table->samples += (double)samples * ((double)part / (double)all);
}

static void sum_nodes(struct filler *f)
{
    const struct fm_top_model *m = f->model;
    for (size_t i = 0; i < m->nodes.len; i++) {
        const struct fm_top_node *node = &m->nodes.data[i];
        if (f->query->thread != FM_NONE && node->thread != f->query->thread)
            continue;
        f->span[i].self = f->span[i].total = span_of(f->query, &node->now, &node->before);
        f->start[i].self = f->start[i].total = masked(&node->now, f->query->states);
    }
    for (size_t i = m->nodes.len; i-- > 0;) {
        uint32_t parent = m->nodes.data[i].parent;
        if (parent == FM_NONE)
            continue;
        f->span[parent].total = fm_sum(f->span[parent].total, f->span[i].total);
        f->start[parent].total = fm_sum(f->start[parent].total, f->start[i].total);
    }
}

static void add_node(const struct filler *f, struct fm_top_row *row, uint32_t i)
{
    const struct fm_top_node *node = &f->model->nodes.data[i];
    if (f->query->thread != FM_NONE && node->thread != f->query->thread)
        return;
    row->self_ns = fm_sum(row->self_ns, f->span[i].self);
    row->self_start_ns = fm_sum(row->self_start_ns, f->start[i].self);
    if (node->outermost) {
        row->total_ns = fm_sum(row->total_ns, f->span[i].total);
        row->total_start_ns = fm_sum(row->total_start_ns, f->start[i].total);
    }
    add_states(f->query, row, &node->now, &node->before);
}

static int by_number(int64_t a, int64_t b)
{
    return a > b ? -1 : a < b; /* the largest first */
}

static int by_place(const struct fm_top_model *m, const struct fm_top_row *a,
                    const struct fm_top_row *b)
{
    uint32_t file_a = m->functions.data[a->func].file, file_b = m->functions.data[b->func].file;
    if (file_a != file_b) {
        if (file_a == FM_NONE || file_b == FM_NONE)
            return file_a == FM_NONE ? 1 : -1;
        return strcmp(fm_strings_get(m->strings, m->files.data[file_a].path),
                      fm_strings_get(m->strings, m->files.data[file_b].path));
    }
    uint32_t line_a = a->line ? a->line : m->functions.data[a->func].line;
    uint32_t line_b = b->line ? b->line : m->functions.data[b->func].line;
    return line_a < line_b ? -1 : line_a > line_b;
}

/* Rows with equal numbers keep one order from refresh to refresh. */
static int compare_rows(const struct filler *f, const struct fm_top_row *a,
                        const struct fm_top_row *b)
{
    const struct fm_top_model *m = f->model;
    int order = 0;
    switch (f->query->sort) {
    case FM_TOP_SORT_SELF:
        break;
    case FM_TOP_SORT_TOTAL:
        order = by_number(a->total_ns, b->total_ns);
        break;
    case FM_TOP_SORT_SAMPLES:
        order = by_number(a->samples, b->samples);
        break;
    case FM_TOP_SORT_NAME:
        order = strcmp(fm_top_name(m, a->func), fm_top_name(m, b->func));
        break;
    case FM_TOP_SORT_PLACE:
        order = by_place(m, a, b);
        break;
    }
    order = order ? order : by_number(a->self_ns, b->self_ns);
    order = order ? order : by_number(a->total_ns, b->total_ns);
    order = order ? order : by_number(a->self_start_ns, b->self_start_ns);
    order = order ? order : by_number(a->total_start_ns, b->total_start_ns);
    if (order)
        return f->query->reverse ? -order : order;
    order = a->func < b->func ? -1 : a->func > b->func;
    order = order ? order : a->line < b->line ? -1 : a->line > b->line;
    return order ? order : a->wait < b->wait ? -1 : a->wait > b->wait;
}

static int compare_tops(const void *a, const void *b, void *data)
{
    return compare_rows(data, a, b);
}

static int compare_groups(const void *a, const void *b, void *data)
{
    const struct caller_group *x = a, *y = b;
    return compare_rows(data, &x->row, &y->row);
}

static uint32_t caller_of(const struct fm_top_model *m, const struct path *path)
{
    uint32_t up = m->nodes.data[path->at].parent;
    return up == FM_NONE || m->nodes.data[up].parent == FM_NONE ? FM_NONE : up;
}

static int compare_paths(const void *a, const void *b, void *data)
{
    const struct path *x = a, *y = b;
    const struct fm_top_model *m = ((const struct filler *)data)->model;
    uint32_t func_x = m->nodes.data[x->at].func, func_y = m->nodes.data[y->at].func;
    if (func_x != func_y)
        return func_x < func_y ? -1 : 1;
    return x->leaf < y->leaf ? -1 : x->leaf > y->leaf;
}

static bool is_toggled(const struct filler *f, uint64_t key)
{
    const uint32_t *value = f->query->toggled ? fm_map_find(f->query->toggled, key) : NULL;
    return value && *value;
}

/* The callers one step above `paths`, each with the paths through it, in the order of the table. */
static size_t group_paths(struct filler *f, uint64_t key, uint32_t depth, struct path *paths,
                          size_t n, struct caller_group *groups)
{
    const struct fm_top_model *m = f->model;
    size_t count = 0;
    qsort_r(paths, n, sizeof *paths, compare_paths, f);
    for (size_t i = 0; i < n; i++) {
        uint32_t func = m->nodes.data[paths[i].at].func;
        if (!count || groups[count - 1].row.func != func) {
            struct fm_top_row row = { .func = func, .wait = FM_NONE, .depth = depth };
            row.key = fm_mix64(key ^ (func + 1ull) * 0x9e3779b97f4a7c15ull);
            groups[count++] = (struct caller_group){ .row = row, .first = i };
        }
        struct caller_group *group = &groups[count - 1];
        group->n++;
        add_node(f, &group->row, paths[i].leaf);
        group->row.has_more |= caller_of(m, &paths[i]) != FM_NONE;
    }
    qsort_r(groups, count, sizeof *groups, compare_groups, f);
    return count;
}

static void add_callers(struct filler *f, uint64_t key, uint32_t depth, const struct path *below,
                        size_t n)
{
    fm_autofree struct path *paths = fm_calloc(n, sizeof *paths);
    fm_autofree struct caller_group *groups = fm_calloc(n, sizeof *groups);
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t up = caller_of(f->model, &below[i]);
        if (up != FM_NONE)
            paths[used++] = (struct path){ below[i].leaf, up };
    }
    size_t count = group_paths(f, key, depth, paths, used, groups);
    for (size_t i = 0; i < count; i++) {
        struct caller_group *group = &groups[i];
        if (!group->row.self_start_ns && !group->row.total_start_ns)
            continue;
        bool normally = count == 1 && depth < OPEN_CALLERS;
        group->row.open = group->row.has_more && normally != is_toggled(f, group->row.key);
        fm_vec_push(&f->table->rows, group->row);
        if (group->row.open)
            add_callers(f, group->row.key, depth + 1, paths + group->first, group->n);
    }
}

/* All nodes of a function as paths of one step. */
static void open_function(struct filler *f, const struct fm_top_row *row)
{
    FM_VEC(struct path) paths = { 0 };
    for (uint32_t i = 0; i < f->model->nodes.len; i++) {
        const struct fm_top_node *node = &f->model->nodes.data[i];
        bool in = f->query->thread == FM_NONE || node->thread == f->query->thread;
        if (in && node->func == row->func)
            fm_vec_push(&paths, ((struct path){ i, i }));
    }
    add_callers(f, row->key, 1, paths.data, paths.len);
    fm_vec_release(&paths);
}

static void fill_functions(struct filler *f)
{
    const struct fm_top_model *m = f->model;
    fm_autofree struct fm_top_row *all = fm_calloc(m->functions.len, sizeof *all);
    size_t used = 0;
    for (uint32_t i = 0; i < m->nodes.len; i++) {
        const struct fm_top_node *node = &m->nodes.data[i];
        bool is_root = node->parent == FM_NONE;
        struct fm_top_row *row = &all[node->func];
        add_node(f, row, i);
        if (is_root) /* it stands for the thread alone: samples without any frame */
            row->total_ns = row->self_ns, row->total_start_ns = row->self_start_ns;
        row->has_more |= !is_root && m->nodes.data[node->parent].parent != FM_NONE;
    }
    for (uint32_t i = 0; i < m->functions.len; i++) {
        if (!all[i].self_start_ns && !all[i].total_start_ns)
            continue;
        all[i].func = i;
        all[i].wait = FM_NONE;
        all[i].key = fm_mix64(i + 1ull);
        all[used++] = all[i];
    }
    qsort_r(all, used, sizeof *all, compare_tops, f);
    for (size_t i = 0; i < used; i++) {
        all[i].open = all[i].has_more && is_toggled(f, all[i].key);
        fm_vec_push(&f->table->rows, all[i]);
        if (all[i].open)
            open_function(f, &all[i]);
    }
}

static struct fm_top_row line_row(const struct filler *f, const struct fm_top_line *line)
{
    const struct fm_top_query *q = f->query;
    struct fm_top_row row = { .func = line->func, .line = line->line, .wait = FM_NONE };
    row.key = fm_mix64(fm_map_pair(line->func, line->line) | LINE_KEY);
    row.self_ns = span_of(q, &line->now, &line->before);
    row.self_start_ns = masked(&line->now, q->states);
    row.total_ns = row.total_start_ns = -1; /* by state it is not known */
    if (q->states == FM_TOP_ALL_STATES) {
        row.total_start_ns = line->total_now_ns;
        row.total_ns =
            q->since_start ? line->total_now_ns : gain(line->total_now_ns, line->total_before_ns);
    }
    row.has_more = line->wait != FM_NONE;
    row.open = row.has_more && is_toggled(f, row.key);
    add_states(q, &row, &line->now, &line->before);
    return row;
}

/* What a line waited for, below it. */
static void add_waits(struct filler *f, const struct fm_top_row *line, uint32_t first)
{
    const struct fm_top_model *m = f->model;
    FM_VEC(struct fm_top_row) rows = { 0 };
    for (uint32_t i = first; i != FM_NONE; i = m->waits.data[i].next) {
        const struct fm_top_wait *wait = &m->waits.data[i];
        struct fm_top_row row = { .func = line->func, .line = line->line, .wait = i, .depth = 1 };
        if (!(f->query->states & 1u << wait->state) || !wait->now_ns)
            continue;
        row.key = fm_mix64(line->key ^ (i + 1ull) * 0x9e3779b97f4a7c15ull);
        row.self_start_ns = wait->now_ns;
        row.self_ns = f->query->since_start ? wait->now_ns : gain(wait->now_ns, wait->before_ns);
        row.total_ns = row.total_start_ns = -1;
        row.state_ns[wait->state] = row.self_ns;
        row.samples = wait->samples;
        fm_vec_push(&rows, row);
    }
    if (rows.len)
        qsort_r(rows.data, rows.len, sizeof *rows.data, compare_tops, f);
    for (size_t i = 0; i < rows.len; i++)
        fm_vec_push(&f->table->rows, rows.data[i]);
    fm_vec_release(&rows);
}

static const struct fm_top_line *line_of(const struct fm_top_model *m, const struct fm_top_row *row)
{
    return &m->lines.data[*fm_map_find(&m->line_of, fm_map_pair(row->func, row->line))];
}

static void fill_lines(struct filler *f)
{
    const struct fm_top_model *m = f->model;
    FM_VEC(struct fm_top_row) rows = { 0 };
    for (size_t i = 0; i < m->lines.len; i++) {
        struct fm_top_row row = line_row(f, &m->lines.data[i]);
        if (row.self_start_ns > 0 || row.total_start_ns > 0)
            fm_vec_push(&rows, row);
    }
    if (rows.len)
        qsort_r(rows.data, rows.len, sizeof *rows.data, compare_tops, f);
    for (size_t i = 0; i < rows.len; i++) {
        const struct fm_top_row *row = &rows.data[i];
        fm_vec_push(&f->table->rows, *row);
        if (row->open)
            add_waits(f, row, line_of(m, row)->wait);
    }
    fm_vec_release(&rows);
}

void fm_top_table_fill(struct fm_top_table *table, const struct fm_top_model *model,
                       const struct fm_top_query *query)
{
    struct filler f = { .model = model, .query = query, .table = table };
    table->rows.len = 0;
    table->whole_ns = 0;
    table->samples = 0;
    for (size_t i = 0; i < model->threads.len; i++)
        if (query->lines || query->thread == FM_NONE || query->thread == i)
            add_whole(&f, &model->threads.data[i].now, &model->threads.data[i].before);
    if (query->lines) {
        fill_lines(&f);
        return;
    }
    f.span = fm_calloc(model->nodes.len, sizeof *f.span);
    f.start = fm_calloc(model->nodes.len, sizeof *f.start);
    sum_nodes(&f);
    fill_functions(&f);
    free(f.span);
    free(f.start);
}

void fm_top_table_release(struct fm_top_table *table)
{
    fm_vec_release(&table->rows);
}

double fm_top_table_error_percent(const struct fm_top_table *table, double whole_share)
{
    double whole = table->samples * whole_share;
    return whole >= 1 ? fm_sampling_error_max((int64_t)whole) * 100 : 0;
}
