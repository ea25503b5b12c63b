/*
 * Memory by thread and by process, one line each, at the instant that the report is of. What a thread
 * has at the peak is what it had when its process had most.
 */
#include "base/memory.h"
#include "show/report/branch.h"
#include "show/report/memory/memory.h"
#include "show/report/number.h"
#include "show/report/report.h"

int64_t *fm_memory_of_threads_new(const struct fm_profile *p)
{
    int64_t *numbers = fm_calloc(p->threads.len * FM_METRIC_COUNT + 1, sizeof *numbers);
    for (int m = 0; m < FM_METRIC_COUNT; m++) {
        const int64_t *data = p->columns[m].data;
        for (size_t i = 0; data && i < p->nodes.len; i++) {
            int64_t *number =
                &numbers[(size_t)p->nodes.data[i].thread * FM_METRIC_COUNT + (size_t)m];
            *number = fm_sum(*number, data[i]);
        }
    }
    return numbers;
}

int64_t *fm_memory_of_processes_new(const struct fm_profile *p)
{
    int64_t *numbers = fm_calloc(p->processes.len * FM_METRIC_COUNT + 1, sizeof *numbers);
    fm_autofree int64_t *threads = fm_memory_of_threads_new(p);
    for (size_t i = 0; i < p->threads.len; i++)
        for (size_t m = 0; m < FM_METRIC_COUNT; m++) {
            int64_t *number = &numbers[p->threads.data[i].process * (size_t)FM_METRIC_COUNT + m];
            *number = fm_sum(*number, threads[i * FM_METRIC_COUNT + m]);
        }
    return numbers;
}

/* What stands behind the instant that the report is of, unless it is of just that. */
static const struct other {
    const char *title;
    enum fm_metric bytes;
    bool optional;
} others[] = {
    { "at end", FM_METRIC_LEAKED, false },
    { "allocated", FM_METRIC_ALLOCATED, false },
    { "temporary", FM_METRIC_TEMPORARY, true },
};

static bool is_other(const struct fm_report *r, size_t i)
{
    return others[i].bytes != r->memory.at->bytes;
}

static const char *title_of(const struct fm_report *r)
{
    for (size_t i = 0; i < FM_COUNT(others); i++)
        if (!is_other(r, i))
            return others[i].title;
    return fm_metric_name(r->memory.at->bytes);
}

/* Bytes at that instant and their share, then blocks, and what else is known. */
static void add_columns(struct fm_table *t, const struct fm_report *r)
{
    fm_table_column(t, title_of(r), FM_TABLE_RIGHT);
    fm_memory_error_column(t, r->p, r->memory.at->bytes);
    fm_table_column(t, "%", FM_TABLE_RIGHT);
    fm_table_column(t, "blocks", FM_TABLE_RIGHT);
    for (size_t i = 0; i < FM_COUNT(others); i++)
        if (is_other(r, i))
            fm_table_column(t, others[i].title,
                            others[i].optional ? FM_TABLE_OPTIONAL : FM_TABLE_RIGHT);
}

static void add_numbers(struct fm_table *t, const struct fm_report *r, const int64_t *numbers,
                        int64_t all)
{
    char text[FM_NUMBER_BYTES];
    int64_t bytes = numbers[r->memory.at->bytes];
    fm_table_cell(t, FM_COLOR_NONE, fm_number_bytes(text, bytes));
    fm_memory_error_cell(t, r->p, r->memory.at->bytes, numbers);
    fm_table_cell(t, fm_color_heat((double)bytes, (double)all),
                  fm_number_percent(text, (double)bytes, (double)all));
    fm_table_cell(t, FM_COLOR_NONE, fm_number_count(text, numbers[r->memory.at->blocks]));
    for (size_t i = 0; i < FM_COUNT(others); i++)
        if (is_other(r, i))
            fm_table_cell(t, FM_COLOR_NONE, fm_number_bytes(text, numbers[others[i].bytes]));
}

/* The cells of a process whose memory was not recorded. */
static void add_none(struct fm_table *t, const struct fm_report *r)
{
    fm_table_cell(t, FM_COLOR_WARN, "none");
    for (int k = fm_memory_has_error(r->p, r->memory.at->bytes) ? -1 : 0; k < 2; k++)
        fm_table_cell(t, FM_COLOR_NONE, "");
    for (size_t i = 0; i < FM_COUNT(others); i++)
        if (is_other(r, i))
            fm_table_cell(t, FM_COLOR_NONE, "");
}

static void add_id(struct fm_table *t, enum fm_color color, uint32_t id)
{
    char text[FM_NUMBER_BYTES];
    snprintf(text, sizeof text, "%u", id);
    fm_table_cell(t, color, id ? text : "");
}

void fm_report_memory_threads(const struct fm_report *r)
{
    const struct fm_profile *p = r->p;
    struct fm_table t;
    int64_t all = fm_memory_sums_of(r).all[r->memory.at->bytes];
    fm_autofree int64_t *numbers = fm_memory_of_threads_new(p);
    fm_table_init(&t, r->style);
    fm_table_column(&t, "process", FM_TABLE_RIGHT);
    fm_table_column(&t, "thread", FM_TABLE_RIGHT);
    add_columns(&t, r);
    fm_table_column(&t, "name", FM_TABLE_FLEXIBLE);
    for (uint32_t i = 0; i < p->threads.len; i++) {
        const struct fm_thread *thread = &p->threads.data[i];
        if (!fm_branches_shows(p, &r->scope, i))
            continue;
        add_id(&t, FM_COLOR_NONE, p->processes.data[thread->process].pid);
        add_id(&t, FM_COLOR_NONE, thread->tid);
        add_numbers(&t, r, numbers + (size_t)i * FM_METRIC_COUNT, all);
        fm_table_cell(&t, FM_COLOR_NAME, fm_profile_text(p, thread->name));
    }
    fm_table_print(&t, r->out);
    fm_table_release(&t);
}

void fm_report_memory_processes(const struct fm_report *r)
{
    const struct fm_profile *p = r->p;
    struct fm_table t;
    char text[FM_NUMBER_BYTES];
    int64_t all = fm_memory_sums_of(r).all[r->memory.at->bytes];
    bool together =
        p->columns[FM_METRIC_TOGETHER].data && r->memory.at != &fm_instants[FM_AT_TOGETHER];
    fm_autofree int64_t *numbers = fm_memory_of_processes_new(p);
    fm_table_init(&t, r->style);
    fm_table_column(&t, "process", FM_TABLE_RIGHT);
    fm_table_column(&t, "parent", FM_TABLE_RIGHT);
    if (together)
        fm_table_column(&t, "together", FM_TABLE_RIGHT);
    add_columns(&t, r);
    fm_table_column(&t, "Fathom", FM_TABLE_OPTIONAL);
    fm_table_column(&t, "command", FM_TABLE_FLEXIBLE);
    for (uint32_t i = 0; i < p->processes.len; i++) {
        const struct fm_process *process = &p->processes.data[i];
        if (r->scope.process != FM_NONE && r->scope.process != i)
            continue;
        add_id(&t, FM_COLOR_NONE, process->pid);
        add_id(&t, FM_COLOR_DIM, process->parent_pid);
        int64_t share = numbers[(size_t)i * FM_METRIC_COUNT + FM_METRIC_TOGETHER];
        if (together)
            fm_table_cell(&t, FM_COLOR_NONE, process->memory ? fm_number_bytes(text, share) : "");
        if (process->memory) {
            add_numbers(&t, r, numbers + (size_t)i * FM_METRIC_COUNT, all);
        } else {
            add_none(&t, r);
        }
        fm_table_cell(&t, FM_COLOR_DIM, fm_number_bytes(text, (int64_t)process->memory_own_bytes));
        uint32_t command = process->command ? process->command : process->exe;
        fm_table_cell(&t, FM_COLOR_NAME, fm_profile_text(p, command));
    }
    fm_table_print(&t, r->out);
    fm_table_release(&t);
}
