/* What reports of memory share; see memory.h. */
#include "show/report/memory/memory.h"

#include <stdlib.h>
#include <string.h>

#include "record/model/live/live_heap.h"
#include "show/report/branch.h"
#include "show/report/report.h"

const struct fm_instant_info fm_instants[FM_INSTANTS] = {
    [FM_AT_PEAK] = { "peak", "at the peak", FM_METRIC_PEAK, FM_METRIC_PEAK_BLOCKS },
    [FM_AT_END] = { "end", "alive at the end", FM_METRIC_LEAKED, FM_METRIC_LEAKED_BLOCKS },
    [FM_AT_ALL] = { "all", "allocated in all", FM_METRIC_ALLOCATED, FM_METRIC_BLOCKS },
    [FM_AT_TEMPORARY] = { "temporary", "freed at once", FM_METRIC_TEMPORARY,
                          FM_METRIC_TEMPORARY_BLOCKS },
    [FM_AT_TOGETHER] = { "together", "when all had most", FM_METRIC_TOGETHER,
                         FM_METRIC_TOGETHER_BLOCKS },
    [FM_AT_TIME] = { "time", "alive then", FM_METRIC_THEN, FM_METRIC_THEN_BLOCKS },
};

enum fm_instant fm_instant_of(enum fm_metric metric)
{
    int i = 0;
    while (i < FM_INSTANTS && fm_instants[i].bytes != metric && fm_instants[i].blocks != metric)
        i++;
    return (enum fm_instant)i;
}

uint64_t fm_memory_metrics(const struct fm_profile *p)
{
    uint64_t all = 0;
    for (int i = 0; i < FM_INSTANTS; i++)
        if ((i != FM_AT_TOGETHER && i != FM_AT_TIME) || p->columns[fm_instants[i].bytes].data)
            all |= (uint64_t)1 << fm_instants[i].bytes | (uint64_t)1 << fm_instants[i].blocks;
    for (int m = 0; m < FM_METRIC_COUNT && fm_profile_has_estimates(p); m++)
        if (fm_metric_info((enum fm_metric)m)->place == FM_PLACE_ERROR)
            all |= (uint64_t)1 << m;
    return all;
}

static bool shows_process(const struct fm_report *r, uint32_t process)
{
    if (r->scope.thread != FM_NONE)
        return r->p->threads.data[r->scope.thread].process == process;
    return r->scope.process == FM_NONE || r->scope.process == process;
}

/* Is the node what a child of fork had from its parent? */
static bool is_inherited(const struct fm_profile *p, const struct fm_node *node)
{
    const struct fm_function *f = &p->functions.data[node->func];
    return f->kind == FM_FUNCTION_REGION &&
           strcmp(fm_profile_text(p, f->name), FM_HEAP_INHERITED) == 0;
}

/* What looking from outside saw: of one process, or of the whole run, which may be that process alone. */
static void add_looks(const struct fm_report *r, struct fm_memory_sums *sums)
{
    uint32_t process = r->scope.process;
    bool of_run = false;
    for (size_t i = 0; i < r->p->memory.points.len; i++)
        of_run = of_run || r->p->memory.points.data[i].process == FM_NONE;
    if (process == FM_NONE && !of_run && r->p->processes.len == 1)
        process = 0;
    for (size_t i = 0; i < r->p->memory.points.len && r->scope.thread == FM_NONE; i++) {
        const struct fm_memory_point *point = &r->p->memory.points.data[i];
        if (point->process != process)
            continue;
        sums->looks++;
        sums->resident = point->rss > sums->resident ? point->rss : sums->resident;
    }
}

struct fm_memory_sums fm_memory_sums_of(const struct fm_report *r)
{
    const struct fm_profile *p = r->p;
    struct fm_memory_sums sums = { 0 };
    for (uint32_t i = 0; i < p->processes.len; i++) {
        const struct fm_process *process = &p->processes.data[i];
        if (!process->memory || !shows_process(r, i))
            continue;
        sums.processes++;
        sums.own_bytes = fm_sum(sums.own_bytes, (int64_t)process->memory_own_bytes);
        sums.python = sums.python || process->memory_python;
        sums.c_only = sums.c_only || (!process->memory_python && !process->memory_foreign);
        sums.foreign = (sums.processes == 1 || sums.foreign) && process->memory_foreign;
        int64_t sample = (int64_t)process->memory_sample_bytes;
        if (sums.processes == 1 || sample < sums.sample_least)
            sums.sample_least = sample;
        sums.sample_most = sample > sums.sample_most ? sample : sums.sample_most;
    }
    for (int m = 0; m < FM_METRIC_COUNT; m++) {
        const int64_t *data = p->columns[m].data;
        for (size_t i = 0; data && i < p->nodes.len; i++) {
            if (!data[i] || !fm_branches_shows(p, &r->scope, p->nodes.data[i].thread))
                continue;
            sums.all[m] = fm_sum(sums.all[m], data[i]);
            if (p->nodes.data[i].parent == FM_NONE)
                sums.outside[m] = fm_sum(sums.outside[m], data[i]);
            if (m == FM_METRIC_PEAK && is_inherited(p, &p->nodes.data[i]))
                sums.inherited = fm_sum(sums.inherited, data[i]);
        }
    }
    add_looks(r, &sums);
    return sums;
}

void fm_memory_walk(const struct fm_report *r, fm_step_show *show, void *data)
{
    struct fm_branches b;
    int64_t all = 0;
    fm_branches_init_of(&b, r->p, r->memory.at->bytes);
    for (uint32_t i = 0; i < r->p->threads.len; i++)
        if (fm_branches_shows(r->p, &r->scope, i))
            all = fm_sum(all, fm_branches_weight(&b, r->p->threads.data[i].root));
    int64_t least = (int64_t)((double)all * r->min_percent / 100);
    fm_node_numbers_release(&b.numbers);
    fm_node_numbers_init_of(&b.numbers, r->p, fm_memory_metrics(r->p));
    for (uint32_t i = 0; i < r->p->threads.len; i++)
        if (fm_branches_shows(r->p, &r->scope, i) &&
            fm_branches_weight(&b, r->p->threads.data[i].root))
            fm_branches_walk(&b, i, r->depth_max, least > 1 ? least : 1, show, data);
    fm_branches_release(&b);
}

/* ---- statistics ---- */

fm_memory_buckets fm_memory_buckets_of(const struct fm_report *r, enum fm_heap_table table,
                                       bool octaves)
{
    uint32_t step = octaves && table == FM_HEAP_SIZES ? 2 : 1, first = FM_HEAP_BUCKETS_MAX,
             last = 0;
    struct fm_memory_bucket all[FM_HEAP_BUCKETS_MAX] = { 0 };
    fm_memory_buckets found = { 0 };
    for (size_t i = 0; i < r->p->memory.counts.len; i++) {
        const struct fm_heap_count *count = &r->p->memory.counts.data[i];
        uint32_t at = count->bucket / step * step;
        if (count->table != (uint32_t)table || at >= FM_HEAP_BUCKETS_MAX || !count->blocks ||
            !shows_process(r, count->process))
            continue;
        all[at].blocks = fm_sum(all[at].blocks, count->blocks);
        all[at].bytes = fm_sum(all[at].bytes, count->bytes);
        first = at < first ? at : first;
        last = at > last ? at : last;
    }
    for (uint32_t at = first; at <= last; at += step) {
        all[at].from = fm_heap_bucket_start(table, at);
        all[at].below = fm_heap_bucket_start(table, at + step);
        if (all[at].blocks || (table != FM_HEAP_BY_KIND && all[at].below > all[at].from))
            fm_vec_push(&found, all[at]);
    }
    return found;
}
