/* Tables of lines; see linetable.h. */
#include "show/report/lines/linetable.h"

#include "show/report/samples/sampling.h"

static bool in_scope(const struct fm_flat_scope *scope, uint32_t process)
{
    return scope->process == FM_NONE || scope->process == process;
}

static int64_t span_ns(uint64_t start_ns, uint64_t end_ns)
{
    return start_ns && end_ns > start_ns ? (int64_t)(end_ns - start_ns) : 0;
}

/* The time of all samples, which with asyncio's tasks is more than that of the threads. */
static int64_t sampled_ns_of(const struct fm_flat *flat)
{
    int64_t sum = 0;
    for (size_t i = 0; i < flat->rows.len; i++)
        sum = fm_sum(sum, fm_states_sum(flat->rows.data[i].state_ns));
    return sum;
}

/* All time of the threads: of their trees if every call was recorded, else from start to end; of
 * processes without known threads, and of foreign files, what there is. */
static int64_t program_ns_of(const struct fm_linetables *t, const struct fm_flat_scope *scope,
                             const struct fm_flat *flat)
{
    const struct fm_profile *p = t->p;
    int64_t tree_ns = fm_flat_total(flat).self_ns, threads_ns = 0, wall_ns = 0, lines_ns = 0;
    bool calls = p->processes.len > 0;
    for (uint32_t i = 0; i < p->processes.len; i++) {
        const struct fm_process *process = &p->processes.data[i];
        if (!in_scope(scope, i))
            continue;
        calls = calls && (process->calls || !process->profiled);
        wall_ns = fm_sum(wall_ns, span_ns(process->start_ns, process->end_ns));
    }
    for (uint32_t i = 0; i < p->threads.len; i++) {
        const struct fm_thread *thread = &p->threads.data[i];
        if (in_scope(scope, thread->process))
            threads_ns = fm_sum(threads_ns, span_ns(thread->start_ns, thread->end_ns));
    }
    for (size_t i = 0; i < t->combined.rows.len; i++)
        lines_ns = fm_sum(lines_ns, t->combined.rows.data[i].self_ns);
    if (flat->beside && sampled_ns_of(flat) > tree_ns)
        tree_ns = sampled_ns_of(flat);
    if ((calls || flat->states) && tree_ns > 0)
        return tree_ns;
    return threads_ns ? threads_ns : wall_ns ? wall_ns : lines_ns;
}

/* A file of another tool has hits and times only: without more, all time is the line's own. */
static bool add_detail(struct fm_lines *lines)
{
    for (size_t i = 0; i < lines->rows.len; i++) {
        const struct fm_line *row = &lines->rows.data[i];
        if (row->samples || row->self_ns || row->min_ns || row->max_ns || row->histogram != FM_NONE)
            return true;
    }
    for (size_t i = 0; i < lines->rows.len; i++)
        lines->rows.data[i].self_ns = lines->rows.data[i].total_ns;
    return false;
}

/* Of samples at least the states are known: the time of the line itself is theirs. */
static void settle_sampled(struct fm_lines *lines)
{
    for (size_t i = 0; i < lines->rows.len; i++) {
        struct fm_line *row = &lines->rows.data[i];
        row->self_ns = row->self_ns ? row->self_ns : fm_states_sum(row->state_ns);
        row->total_ns = row->total_ns > row->self_ns ? row->total_ns : row->self_ns;
    }
}

/* Of the processes in scope: samples, hits, or both? A recording of calls may have lines of samples
 * alone. */
static void tell_samples(struct fm_linetables *t, const struct fm_flat *flat)
{
    bool samples = flat->states, hits = false;
    for (size_t i = 0; i < t->combined.rows.len; i++) {
        samples = samples || t->combined.rows.data[i].samples;
        hits = hits || t->combined.rows.data[i].hits;
    }
    t->sampled = samples && !hits;
    t->beside = samples && hits;
}

static void add_table(struct fm_linetables *t, uint32_t func, size_t first, size_t n)
{
    struct fm_linetable table = { .func = func, .rows = t->combined.rows.data + first, .n = n };
    struct fm_flat_row row = { .func = func };
    for (size_t i = 0; i < n; i++) {
        const struct fm_line *line = &table.rows[i];
        table.hits = fm_sum(table.hits, line->hits);
        table.samples = fm_sum(table.samples, line->samples);
        table.time_ns = fm_sum(table.time_ns, line->total_ns);
        table.self_ns = fm_sum(table.self_ns, line->self_ns);
        row.suspended_ns = fm_sum(row.suspended_ns, line->suspended_ns);
        row.min_ns = fm_metric_combine(FM_METRIC_MIN, row.min_ns, line->min_ns);
        row.max_ns = fm_metric_combine(FM_METRIC_MAX, row.max_ns, line->max_ns);
    }
    row.calls = row.primitive = table.hits;
    row.samples = table.samples;
    row.self_ns = table.self_ns;
    row.total_ns = table.time_ns;
    fm_vec_push(&t->all, table);
    fm_vec_push(&t->flat.rows, row);
}

/* Rows are in order of function, and so is what is marked: one pass over both. */
static void add_tables(struct fm_linetables *t)
{
    size_t at = 0, mark = 0, rows = t->combined.rows.len, marks = t->combined.marked.len;
    while (at < rows || mark < marks) {
        uint32_t with_rows = at < rows ? t->combined.rows.data[at].func : FM_NONE;
        uint32_t marked = mark < marks ? t->combined.marked.data[mark] : FM_NONE;
        uint32_t func = with_rows < marked ? with_rows : marked;
        size_t first = at;
        while (at < rows && t->combined.rows.data[at].func == func)
            at++;
        add_table(t, func, first, at - first);
        if (func == marked) {
            t->all.data[t->all.len - 1].marked = t->any_marked = true;
            mark++;
        }
    }
}

/* See linetable.h about recursion. */
static void settle_times(struct fm_linetables *t, const struct fm_flat *flat)
{
    size_t at = 0;
    for (size_t i = 0; i < t->all.len; i++) {
        struct fm_linetable *table = &t->all.data[i];
        while (at < flat->rows.len && flat->rows.data[at].func < table->func)
            at++;
        if (at == flat->rows.len)
            return;
        const struct fm_flat_row *row = &flat->rows.data[at];
        bool exact = table->hits > 0; /* the lines' times; otherwise they are those of samples */
        int64_t total_ns =
            exact || !flat->beside ? row->total_ns : fm_states_sum(row->total_state_ns);
        if (row->func != table->func || total_ns <= 0 || total_ns >= table->time_ns)
            continue;
        if (exact && flat->states && row->calls == row->primitive)
            continue; /* the function's own time is that of samples */
        table->time_ns = total_ns;
        t->flat.rows.data[i].total_ns = total_ns;
    }
}

struct fm_linetables *fm_linetables_new(const struct fm_profile *p,
                                        const struct fm_flat_scope *scope,
                                        const struct fm_flat *flat)
{
    struct fm_linetables *t = fm_calloc(1, sizeof *t);
    t->p = p;
    t->combined = fm_lines_combined(p, scope->process);
    tell_samples(t, flat);
    if (t->sampled)
        settle_sampled(&t->combined);
    t->detailed = add_detail(&t->combined);
    t->texts = fm_texts_new(p);
    add_tables(t);
    settle_times(t, flat);
    t->program_ns = program_ns_of(t, scope, flat);
    return t;
}

void fm_linetables_free(struct fm_linetables *tables)
{
    if (!tables)
        return;
    fm_lines_release(&tables->combined);
    fm_vec_release(&tables->all);
    fm_vec_release(&tables->flat.rows);
    fm_texts_free(tables->texts);
    free(tables);
}

bool fm_linetables_are_all(const struct fm_profile *p)
{
    if (!fm_linetables_exist(p) || p->flat)
        return false;
    for (size_t i = 0; i < p->processes.len; i++) {
        if (p->processes.data[i].calls || p->processes.data[i].sampled)
            return false;
    }
    return true;
}
