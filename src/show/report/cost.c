/* What profiling cost; see cost.h. */
#include "show/report/cost.h"

struct fm_events fm_events_of(const struct fm_profile *p, uint32_t process, uint32_t thread)
{
    struct fm_events events = { 0 };
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        const struct fm_node *node = &p->nodes.data[i];
        if ((thread != FM_NONE && node->thread != thread) ||
            (process != FM_NONE && p->threads.data[node->thread].process != process))
            continue;
        int64_t calls = fm_profile_value(p, FM_METRIC_CALLS, i);
        if (p->functions.data[node->func].kind == FM_FUNCTION_C)
            events.c_calls += calls;
        else if (p->functions.data[node->func].kind != FM_FUNCTION_ROOT)
            events.calls += calls;
        events.resumes += fm_profile_value(p, FM_METRIC_RESUMES, i);
    }
    return events;
}

static int64_t line_hits(const struct fm_profile *p, uint32_t process)
{
    int64_t hits = 0;
    for (size_t i = 0; i < p->lines.rows.len; i++)
        if (p->lines.rows.data[i].process == process)
            hits += p->lines.rows.data[i].hits;
    return hits;
}

struct fm_cost fm_cost_of(const struct fm_profile *p, const struct fm_flat_scope *scope)
{
    struct fm_cost cost = { 0 };
    double added_ps = 0;
    for (uint32_t i = 0; i < p->processes.len; i++) {
        const struct fm_process *process = &p->processes.data[i];
        if (scope->process != FM_NONE && scope->process != i)
            continue;
        if (scope->thread != FM_NONE && p->threads.data[scope->thread].process != i)
            continue;
        if (process->end_ns > process->start_ns && process->start_ns)
            cost.wall_ns += (int64_t)(process->end_ns - process->start_ns);
        if (scope->thread == FM_NONE) /* lines are not told apart by thread */
            added_ps += (double)process->own_ns * 1000 +
                        (double)line_hits(p, i) * (double)process->cost_line_ps;
        if (!process->cost_call_ps && !process->cost_c_call_ps && !process->cost_resume_ps)
            continue;
        struct fm_events e = fm_events_of(p, i, scope->thread);
        added_ps += (double)e.calls * (double)process->cost_call_ps +
                    (double)e.c_calls * (double)process->cost_c_call_ps +
                    (double)e.resumes * (double)process->cost_resume_ps;
    }
    cost.added_ns = (int64_t)(added_ps / 1000);
    return cost;
}
