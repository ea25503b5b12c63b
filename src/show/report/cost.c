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

/* Time in C functions that were recorded, without what they called. */
static double c_self_ns(const struct fm_profile *p, uint32_t process, uint32_t thread)
{
    double ns = 0;
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        const struct fm_node *node = &p->nodes.data[i];
        if ((thread != FM_NONE && node->thread != thread) ||
            p->threads.data[node->thread].process != process)
            continue;
        double total = (double)fm_profile_value(p, FM_METRIC_TOTAL, i);
        if (p->functions.data[node->func].kind == FM_FUNCTION_C)
            ns += total;
        if (node->parent != FM_NONE &&
            p->functions.data[p->nodes.data[node->parent].func].kind == FM_FUNCTION_C)
            ns -= total;
    }
    return ns;
}

/* How long threads lived, and how long of that they were on a processor. */
struct life {
    double wall_ns, cpu_ns;
};

static struct life life_of(const struct fm_profile *p, uint32_t process, uint32_t thread)
{
    struct life life = { 0 };
    for (uint32_t i = 0; i < p->threads.len; i++) {
        const struct fm_thread *t = &p->threads.data[i];
        if (t->process != process || (thread != FM_NONE && thread != i))
            continue;
        /* The clock of a thread counts from its start, which may be before that of the recording. */
        uint64_t wall_ns = t->end_ns > t->start_ns ? t->end_ns - t->start_ns : 0;
        life.wall_ns += (double)wall_ns;
        life.cpu_ns += (double)(t->cpu_ns < wall_ns ? t->cpu_ns : wall_ns);
    }
    return life;
}

/* By how much instructions without an event took longer, at most. Of the time in C functions as much
 * as possible was off the processor; the rest was on it, and not in instructions. */
static double slowed_ns(const struct fm_profile *p, uint32_t i, uint32_t thread, double added_ns)
{
    double slow = (double)p->processes.data[i].slow_permille / 1000;
    if (slow <= 0)
        return 0;
    struct life life = life_of(p, i, thread);
    double c_ns = c_self_ns(p, i, thread) - (life.wall_ns - life.cpu_ns);
    double ns = life.cpu_ns - (c_ns > 0 ? c_ns : 0) - added_ns;
    return ns > 0 ? ns * slow / (1 + slow) : 0;
}

/* What the events of a process took, and its agent, in ns. */
static double events_ns(const struct fm_profile *p, uint32_t i, uint32_t thread)
{
    const struct fm_process *process = &p->processes.data[i];
    double ps = 0;
    if (thread == FM_NONE) /* lines are not told apart by thread */
        ps = (double)process->own_ns * 1000 +
             (double)line_hits(p, i) * (double)process->cost_line_ps;
    if (process->cost_call_ps || process->cost_c_call_ps || process->cost_resume_ps) {
        struct fm_events e = fm_events_of(p, i, thread);
        ps += (double)e.calls * (double)process->cost_call_ps +
              (double)e.c_calls * (double)process->cost_c_call_ps +
              (double)e.resumes * (double)process->cost_resume_ps;
    }
    return ps / 1000;
}

struct fm_cost fm_cost_of(const struct fm_profile *p, const struct fm_flat_scope *scope)
{
    struct fm_cost cost = { 0 };
    double least_ns = 0, most_ns = 0;
    for (uint32_t i = 0; i < p->processes.len; i++) {
        const struct fm_process *process = &p->processes.data[i];
        if (scope->process != FM_NONE && scope->process != i)
            continue;
        if (scope->thread != FM_NONE && p->threads.data[scope->thread].process != i)
            continue;
        if (process->end_ns > process->start_ns && process->start_ns)
            cost.wall_ns += (int64_t)(process->end_ns - process->start_ns);
        double ns = events_ns(p, i, scope->thread);
        least_ns += ns;
        most_ns += ns + slowed_ns(p, i, scope->thread, ns);
    }
    cost.least_ns = (int64_t)least_ns;
    cost.most_ns = (int64_t)most_ns;
    cost.added_ns = (int64_t)((least_ns + most_ns) / 2);
    return cost;
}
