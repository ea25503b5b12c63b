/*
 * The processes of a recording: who started whom, under which Python, how they ended. A Python that
 * was not profiled is named too, with the reason among the notes above the table.
 */
#include "base/memory.h"
#include "show/report/cost.h"
#include "show/report/number.h"
#include "show/report/report.h"

static void add_process(struct fm_table *t, const struct fm_report *r, uint32_t i, int64_t events)
{
    const struct fm_process *process = &r->p->processes.data[i];
    char text[FM_NUMBER_BYTES];
    snprintf(text, sizeof text, "%u", process->pid);
    fm_table_cell(t, FM_COLOR_NONE, text);
    snprintf(text, sizeof text, "%u", process->parent_pid);
    fm_table_cell(t, FM_COLOR_DIM, process->parent_pid ? text : "");
    fm_table_cell(t, FM_COLOR_NONE, fm_profile_text(r->p, process->version));
    bool timed = process->start_ns && process->end_ns > process->start_ns;
    fm_table_cell(t, FM_COLOR_NONE,
                  timed ? fm_number_time(text, (int64_t)(process->end_ns - process->start_ns))
                        : "");
    snprintf(text, sizeof text, "%d", process->exit_status);
    fm_table_cell(t, process->exit_status > 0 ? FM_COLOR_WARN : FM_COLOR_NONE,
                  process->exit_status < 0 ? "?" : text);
    if (process->sampled && !process->calls) {
        fm_table_cell(t, FM_COLOR_NONE,
                      r->flat->beside ? "" : fm_number_count(text, (int64_t)process->samples));
    } else if (process->profiled) {
        fm_table_cell(t, FM_COLOR_NONE, fm_number_count(text, events));
    } else {
        fm_table_cell(t, FM_COLOR_WARN, "unprofiled");
    }
    if (r->flat->beside)
        fm_table_cell(t, FM_COLOR_NONE,
                      process->sampled ? fm_number_count(text, (int64_t)process->samples) : "");
    uint32_t command = process->command ? process->command : process->exe;
    fm_table_cell(t, FM_COLOR_NAME, fm_profile_text(r->p, command));
}

/* Of each process. The caller frees. */
static int64_t *event_counts_new(const struct fm_profile *p)
{
    int64_t *counts = fm_calloc(p->processes.len + 1, sizeof *counts);
    fm_autofree struct fm_events *events = fm_events_new(p);
    for (uint32_t i = 0; i < p->threads.len; i++)
        if (p->threads.data[i].process < p->processes.len)
            counts[p->threads.data[i].process] += fm_events_sum(&events[i]);
    return counts;
}

void fm_report_processes(const struct fm_report *r)
{
    struct fm_table t;
    fm_autofree int64_t *events = event_counts_new(r->p);
    fm_table_init(&t, r->style);
    fm_table_column(&t, "process", FM_TABLE_RIGHT);
    fm_table_column(&t, "parent", FM_TABLE_RIGHT);
    fm_table_column(&t, "Python", FM_TABLE_LEFT);
    fm_table_column(&t, "wall", FM_TABLE_RIGHT);
    fm_table_column(&t, "exit", FM_TABLE_RIGHT);
    fm_table_column(&t, r->flat->states ? "samples" : "calls", FM_TABLE_RIGHT);
    if (r->flat->beside)
        fm_table_column(&t, "samples", FM_TABLE_RIGHT);
    fm_table_column(&t, "command", FM_TABLE_FLEXIBLE);
    for (uint32_t i = 0; i < r->p->processes.len; i++) {
        if (r->scope.process == FM_NONE || r->scope.process == i)
            add_process(&t, r, i, events[i]);
    }
    fm_table_print(&t, r->out);
    fm_table_release(&t);
}
