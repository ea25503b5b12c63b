/* The profile of a stretch of time; see range_profile.h. */
#include "record/model/trace/lanes/range_profile.h"

#include <string.h>

#include "base/memory.h"

static void copy_processes(struct fm_profile *to, const struct fm_profile *from)
{
    for (size_t i = 0; i < from->processes.len; i++) {
        struct fm_process process = from->processes.data[i];
        process.calls = process.lines = process.memory = false;
        process.cost_call_ps = process.cost_c_call_ps = process.cost_resume_ps = 0;
        process.cost_line_ps = process.own_ns = process.sampler_cpu_ns = 0;
        process.samples = process.samples_partial = process.samples_lost = 0;
        process.sample_rounds = 0;
        fm_profile_process(to, &process);
    }
}

struct fm_profile *fm_range_profile_new(const struct fm_profile *p)
{
    struct fm_profile *to = fm_profile_new();
    for (uint32_t i = 0; i < fm_strings_count(p->strings); i++)
        fm_profile_string_of(to, p, i);
    for (size_t i = 0; i < p->functions.len; i++)
        fm_profile_function(to, &p->functions.data[i]);
    copy_processes(to, p);
    for (size_t i = 0; i < p->threads.len; i++) {
        struct fm_thread thread = p->threads.data[i];
        thread.cpu_ns = 0;
        fm_profile_thread_rootless(to, &thread);
    }
    fm_profile_reserve(to, p->nodes.len);
    for (size_t i = 0; i < p->nodes.len; i++) {
        const struct fm_node *node = &p->nodes.data[i];
        if (node->parent == FM_NONE)
            fm_profile_thread_root(to, node->thread);
        else
            fm_profile_node_at(to, node->parent, node->func, node->line);
    }
    for (size_t i = 0; i < p->notes.len; i++)
        fm_vec_push(&to->notes, p->notes.data[i]);
    for (size_t i = 0; i < p->facts.len; i++)
        fm_vec_push(&to->facts, p->facts.data[i]);
    for (size_t i = 0; i < p->sources.len; i++)
        fm_vec_push(&to->sources, p->sources.data[i]);
    return to;
}

static bool has_value(const struct fm_profile *p, uint32_t node)
{
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        if (fm_profile_value(p, (enum fm_metric)m, node))
            return true;
    return false;
}

void fm_range_profile_end(struct fm_profile *p)
{
    fm_autofree uint32_t *place = fm_calloc(p->nodes.len + 1, sizeof *place);
    uint32_t n = 0;
    for (uint32_t i = (uint32_t)p->nodes.len; i-- > 0;) { /* for now: 1 if it is kept */
        uint32_t parent = p->nodes.data[i].parent;
        place[i] = place[i] || parent == FM_NONE || has_value(p, i);
        if (place[i] && parent != FM_NONE)
            place[parent] = 1;
    }
    for (size_t i = 0; i < p->nodes.len; i++) {
        struct fm_node node = p->nodes.data[i];
        if (!place[i])
            continue;
        if (node.parent != FM_NONE)
            node.parent = place[node.parent];
        else
            p->threads.data[node.thread].root = n;
        for (int m = 0; m < FM_METRIC_COUNT; m++)
            if (p->columns[m].data)
                p->columns[m].data[n] = p->columns[m].data[i];
        p->nodes.data[n] = node;
        place[i] = n++;
    }
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        if (p->columns[m].data)
            memset(p->columns[m].data + n, 0, (p->nodes.len - n) * sizeof *p->columns[m].data);
    p->nodes.len = n;
}
