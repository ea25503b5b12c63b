/*
 * What profiling cost; see cost.h.
 *
 * Everything is counted per thread or per process in one pass over nodes, threads and lines: merged
 * recordings have thousands of processes.
 */
#include "show/report/cost.h"

#include "base/memory.h"

/* ---- events of threads ---- */

static enum fm_function_kind kind_of(const struct fm_profile *p, uint32_t node)
{
    return (enum fm_function_kind)p->functions.data[p->nodes.data[node].func].kind;
}

struct fm_events *fm_events_new(const struct fm_profile *p)
{
    struct fm_events *events = fm_calloc(p->threads.len + 1, sizeof *events);
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        const struct fm_node *node = &p->nodes.data[i];
        struct fm_events *e = &events[node->thread];
        int64_t calls = fm_profile_value(p, FM_METRIC_CALLS, i);
        double total_ns = (double)fm_profile_value(p, FM_METRIC_TOTAL, i);
        if (kind_of(p, i) == FM_FUNCTION_C) {
            e->c_calls += calls;
            e->c_self_ns += total_ns;
        } else if (kind_of(p, i) != FM_FUNCTION_ROOT) {
            e->calls += calls;
        }
        if (node->parent != FM_NONE && kind_of(p, node->parent) == FM_FUNCTION_C)
            e->c_self_ns -= total_ns;
        e->resumes += fm_profile_value(p, FM_METRIC_RESUMES, i);
    }
    return events;
}

/* ---- sums of processes ---- */

struct process_sum {
    struct fm_events events;
    double wall_ns, cpu_ns; /* how long its threads lived, and were on a processor */
    int64_t line_hits;
};

static void sum_add_thread(struct process_sum *sum, const struct fm_thread *t,
                           const struct fm_events *e)
{
    /* The clock of a thread counts from its start, which may be before that of the recording. */
    uint64_t wall_ns = t->end_ns > t->start_ns ? t->end_ns - t->start_ns : 0;
    sum->wall_ns += (double)wall_ns;
    sum->cpu_ns += (double)(t->cpu_ns < wall_ns ? t->cpu_ns : wall_ns);
    sum->events.calls += e->calls;
    sum->events.c_calls += e->c_calls;
    sum->events.resumes += e->resumes;
    sum->events.c_self_ns += e->c_self_ns;
}

static struct process_sum *sums_new(const struct fm_profile *p, uint32_t thread)
{
    struct process_sum *sums = fm_calloc(p->processes.len + 1, sizeof *sums);
    fm_autofree struct fm_events *events = fm_events_new(p);
    for (uint32_t i = 0; i < p->threads.len; i++) {
        const struct fm_thread *t = &p->threads.data[i];
        if ((thread == FM_NONE || thread == i) && t->process < p->processes.len)
            sum_add_thread(&sums[t->process], t, &events[i]);
    }
    for (size_t i = 0; i < p->lines.rows.len; i++)
        if (p->lines.rows.data[i].process < p->processes.len)
            sums[p->lines.rows.data[i].process].line_hits += p->lines.rows.data[i].hits;
    return sums;
}

/* ---- what it cost ---- */

/* By how much instructions without an event took longer, at most. Of the time in C functions as much
 * as possible was off the processor; the rest was on it, and not in instructions. */
static double slowed_ns(const struct fm_process *process, const struct process_sum *sum,
                        double added_ns)
{
    double slow = (double)process->slow_permille / 1000;
    if (slow <= 0)
        return 0;
    double c_ns = sum->events.c_self_ns - (sum->wall_ns - sum->cpu_ns);
    double ns = sum->cpu_ns - (c_ns > 0 ? c_ns : 0) - added_ns;
    return ns > 0 ? ns * slow / (1 + slow) : 0;
}

/* What the events of a process took, and its agent. */
static double events_ns(const struct fm_process *process, const struct process_sum *sum,
                        bool one_thread)
{
    double ps = (double)sum->events.calls * (double)process->cost_call_ps +
                (double)sum->events.c_calls * (double)process->cost_c_call_ps +
                (double)sum->events.resumes * (double)process->cost_resume_ps;
    if (!one_thread) /* lines are not told apart by thread */
        ps +=
            (double)process->own_ns * 1000 + (double)sum->line_hits * (double)process->cost_line_ps;
    return ps / 1000;
}

struct fm_cost *fm_costs_new(const struct fm_profile *p, uint32_t thread)
{
    struct fm_cost *costs = fm_calloc(p->processes.len + 1, sizeof *costs);
    fm_autofree struct process_sum *sums = sums_new(p, thread);
    for (uint32_t i = 0; i < p->processes.len; i++) {
        const struct fm_process *process = &p->processes.data[i];
        if (thread != FM_NONE && p->threads.data[thread].process != i)
            continue;
        double ns = events_ns(process, &sums[i], thread != FM_NONE);
        costs[i].least_ns = (int64_t)ns;
        costs[i].most_ns = (int64_t)(ns + slowed_ns(process, &sums[i], ns));
        costs[i].added_ns = (costs[i].least_ns + costs[i].most_ns) / 2;
        if (process->end_ns > process->start_ns && process->start_ns)
            costs[i].wall_ns = (int64_t)(process->end_ns - process->start_ns);
    }
    return costs;
}

struct fm_cost fm_cost_of(const struct fm_profile *p, const struct fm_flat_scope *scope)
{
    struct fm_cost cost = { 0 };
    fm_autofree struct fm_cost *costs = fm_costs_new(p, scope->thread);
    for (uint32_t i = 0; i < p->processes.len; i++) {
        if (scope->process != FM_NONE && scope->process != i)
            continue;
        cost.least_ns = fm_sum(cost.least_ns, costs[i].least_ns);
        cost.most_ns = fm_sum(cost.most_ns, costs[i].most_ns);
        cost.wall_ns = fm_sum(cost.wall_ns, costs[i].wall_ns);
    }
    cost.added_ns = cost.least_ns + (cost.most_ns - cost.least_ns) / 2;
    return cost;
}
