/*
 * The threads of a recording, one line each: how long they lived, how much CPU they used, and how
 * much they did. A thread that was waiting lived long and used little CPU.
 */
#include "show/report/cost.h"
#include "show/report/metric.h"
#include "show/report/number.h"
#include "show/report/report.h"
#include "show/report/samples/sampling.h"

void fm_report_threads(const struct fm_report *r)
{
    const struct fm_profile *p = r->p;
    struct fm_table t;
    char text[FM_NUMBER_BYTES];
    int64_t all_ns[FM_STATE_COUNT] = { 0 };
    bool beside = r->flat->beside; /* samples, beside calls */
    fm_autofree struct fm_thread_states *states =
        r->flat->states || beside ? fm_thread_states_new(p) : NULL;
    uint64_t metrics;
    fm_autofree int64_t *numbers = fm_thread_numbers_new(p, &metrics);
    fm_table_init(&t, r->style);
    fm_table_column(&t, "process", FM_TABLE_RIGHT);
    fm_table_column(&t, "thread", FM_TABLE_RIGHT);
    fm_table_column(&t, "wall", FM_TABLE_RIGHT);
    fm_table_column(&t, "CPU", FM_TABLE_RIGHT);
    fm_table_column(&t, "%", FM_TABLE_RIGHT);
    if (beside || !states)
        fm_table_column(&t, "calls", FM_TABLE_RIGHT);
    if (states)
        fm_table_column(&t, "samples", FM_TABLE_RIGHT);
    fm_metric_thread_columns(&t, metrics);
    if (states)
        fm_table_column(&t, "states", FM_TABLE_LEFT);
    fm_table_column(&t, "name", FM_TABLE_FLEXIBLE);
    fm_autofree struct fm_events *events = fm_events_new(p);
    for (uint32_t i = 0; i < p->threads.len; i++) {
        const struct fm_thread *thread = &p->threads.data[i];
        if ((r->scope.thread != FM_NONE && r->scope.thread != i) ||
            (r->scope.process != FM_NONE && r->scope.process != thread->process))
            continue;
        int64_t wall_ns =
            thread->end_ns > thread->start_ns ? (int64_t)(thread->end_ns - thread->start_ns) : 0;
        snprintf(text, sizeof text, "%u", p->processes.data[thread->process].pid);
        fm_table_cell(&t, FM_COLOR_NONE, text);
        snprintf(text, sizeof text, "%u", thread->tid);
        fm_table_cell(&t, FM_COLOR_NONE, text);
        fm_table_cell(&t, FM_COLOR_NONE, fm_number_time(text, wall_ns));
        fm_table_cell(&t, FM_COLOR_NONE, /* none: not known, or no thread of its own: tasks */
                      thread->cpu_ns ? fm_number_time(text, (int64_t)thread->cpu_ns) : "");
        fm_table_cell(&t, fm_color_heat((double)thread->cpu_ns, (double)wall_ns),
                      fm_number_percent(text, (double)thread->cpu_ns, (double)wall_ns));
        int64_t calls = fm_events_sum(&events[i]);
        if (beside || !states) /* what was only sampled has none */
            fm_table_cell(&t, FM_COLOR_NONE, calls || !beside ? fm_number_count(text, calls) : "");
        if (states)
            fm_table_cell(&t, FM_COLOR_NONE, fm_number_count(text, states[i].samples));
        fm_metric_thread_cells(&t, metrics, numbers + (size_t)i * FM_METRIC_COUNT);
        if (states) {
            fm_states_cell(&t, states[i].state_ns);
            fm_states_add(all_ns, states[i].state_ns);
        }
        fm_table_cell(&t, FM_COLOR_NAME, fm_profile_text(p, thread->name));
    }
    fm_table_print(&t, r->out);
    fm_table_release(&t);
    fm_states_print_legend(&r->style, r->out, all_ns);
}
