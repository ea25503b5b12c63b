/* Reports of memory as CSV: bytes as whole numbers, every metric of memory in each row. */
#include <string.h>

#include "base/memory.h"
#include "show/report/branch.h"
#include "show/report/csv_text.h"
#include "show/report/edges.h"
#include "show/report/memory/memory.h"
#include "show/report/metric.h"
#include "show/report/report.h"

static void put_functions(const struct fm_report *r)
{
    uint64_t metrics = fm_memory_metrics(r->p);
    fputs("function,file,line", r->out);
    fm_csv_put_metric_titles(r->out, metrics, true);
    fputs("\r\n", r->out);
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        const struct fm_flat_row *f = &r->flat->rows.data[r->selection.rows.data[i]];
        fm_csv_put_function(r, f->func);
        fm_csv_put_metrics(r->out, r->p, metrics, f->self, f->total);
        fputs("\r\n", r->out);
    }
}

static void put_lines(const struct fm_report *r)
{
    struct fm_texts *texts = fm_texts_new(r->p);
    uint64_t metrics = fm_memory_metrics(r->p);
    const char *why;
    fputs("function,file,line", r->out);
    fm_csv_put_metric_titles(r->out, metrics, false);
    fputs(",source\r\n", r->out);
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        const struct fm_flat_row *f = &r->flat->rows.data[r->selection.rows.data[i]];
        fm_csv_put_function(r, f->func);
        fm_csv_put_metrics(r->out, r->p, metrics, f->self, NULL);
        fm_csv_put_source(r, fm_texts_find(texts, r->memory.origin[f->func], &why),
                          r->p->functions.data[f->func].line);
        fputs("\r\n", r->out);
    }
    fm_texts_free(texts);
}

static void put_edges(const struct fm_report *r, enum fm_direction direction)
{
    struct fm_edges edges;
    uint64_t metrics = fm_memory_metrics(r->p);
    fm_edges_init(&edges, r->flat, direction);
    fputs("caller,caller_file,caller_line,callee,callee_file,callee_line", r->out);
    fm_csv_put_metric_titles(r->out, metrics, true);
    fputs("\r\n", r->out);
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        size_t n;
        struct fm_flat_edge *all = fm_edges_shown(&edges, r, r->selection.rows.data[i], &n);
        for (size_t k = 0; k < n; k++) {
            fm_csv_put_function(r, r->flat->rows.data[all[k].caller].func);
            fputc(',', r->out);
            fm_csv_put_function(r, r->flat->rows.data[all[k].callee].func);
            fm_csv_put_metrics(r->out, r->p, metrics, all[k].self, all[k].total);
            fputs("\r\n", r->out);
        }
    }
    fm_edges_release(&edges);
}

static void put_node(const struct fm_branches *b, const struct fm_step *step, void *data)
{
    const struct fm_report *r = data;
    const struct fm_node *node = &b->p->nodes.data[step->node];
    int64_t self[FM_METRIC_COUNT], total[FM_METRIC_COUNT];
    if (step->hidden || !step->depth)
        return;
    fprintf(r->out, "%u,", step->node);
    if (step->depth > 1)
        fprintf(r->out, "%u", node->parent);
    fprintf(r->out, ",%u,%d,", b->p->threads.data[node->thread].tid, step->depth);
    fm_csv_put_function(r, node->func);
    fm_node_numbers_get(&b->numbers, step->node, self, total);
    fm_csv_put_metrics(r->out, r->p, b->numbers.metrics, self, total);
    fputs("\r\n", r->out);
}

static void put_tree(const struct fm_report *r)
{
    fputs("node,parent,thread,depth,function,file,line", r->out);
    fm_csv_put_metric_titles(r->out, fm_memory_metrics(r->p), true);
    fputs("\r\n", r->out);
    fm_memory_walk(r, put_node, (void *)r);
}

static void put_threads(const struct fm_report *r)
{
    const struct fm_profile *p = r->p;
    fm_autofree int64_t *numbers = fm_memory_of_threads_new(p);
    fputs("process,thread,name", r->out);
    fm_csv_put_metric_titles(r->out, fm_memory_metrics(r->p), false);
    fputs("\r\n", r->out);
    for (uint32_t i = 0; i < p->threads.len; i++) {
        const struct fm_thread *t = &p->threads.data[i];
        if (!fm_branches_shows(p, &r->scope, i))
            continue;
        fprintf(r->out, "%u,%u,", p->processes.data[t->process].pid, t->tid);
        fm_csv_put_text(r, fm_profile_text(p, t->name));
        fm_csv_put_metrics(r->out, r->p, fm_memory_metrics(r->p),
                           numbers + (size_t)i * FM_METRIC_COUNT, NULL);
        fputs("\r\n", r->out);
    }
}

static void put_processes(const struct fm_report *r)
{
    const struct fm_profile *p = r->p;
    fm_autofree int64_t *numbers = fm_memory_of_processes_new(p);
    fputs("process,parent,python,recorded,command,fathom_bytes", r->out);
    fm_csv_put_metric_titles(r->out, fm_memory_metrics(r->p), false);
    fputs("\r\n", r->out);
    for (uint32_t i = 0; i < p->processes.len; i++) {
        const struct fm_process *q = &p->processes.data[i];
        if (r->scope.process != FM_NONE && r->scope.process != i)
            continue;
        fprintf(r->out, "%u,%u,", q->pid, q->parent_pid);
        fm_csv_put_text(r, fm_profile_text(p, q->version));
        fprintf(r->out, ",%s,", fm_memory_recorded(q));
        fm_csv_put_text(r, fm_profile_text(p, q->command));
        fprintf(r->out, ",%llu", (unsigned long long)q->memory_own_bytes);
        fm_csv_put_metrics(r->out, r->p, fm_memory_metrics(r->p),
                           numbers + (size_t)i * FM_METRIC_COUNT, NULL);
        fputs("\r\n", r->out);
    }
}

static void put_stats(const struct fm_report *r)
{
    static const char *const names[FM_HEAP_TABLES] = {
        [FM_HEAP_SIZES] = "size", [FM_HEAP_LIVES] = "life", [FM_HEAP_BY_KIND] = "kind"
    };
    fputs("table,name,from,below,blocks,bytes\r\n", r->out);
    for (int table = 0; table < FM_HEAP_TABLES; table++) {
        fm_memory_buckets all = fm_memory_buckets_of(r, (enum fm_heap_table)table, false);
        for (size_t i = 0; i < all.len; i++) {
            const struct fm_memory_bucket *b = &all.data[i];
            if (table == FM_HEAP_BY_KIND)
                fprintf(r->out, "%s,%s,,,%lld,%lld\r\n", names[table], fm_heap_kind_title(b->from),
                        (long long)b->blocks, (long long)b->bytes);
            else
                fprintf(r->out, "%s,,%lld,%lld,%lld,\r\n", names[table], (long long)b->from,
                        (long long)b->below, (long long)b->blocks);
        }
        fm_vec_release(&all);
    }
}

void fm_report_memory_csv(const struct fm_report *r, enum fm_part part)
{
    if (part == FM_PART_TREE)
        put_tree(r);
    else if (part == FM_PART_CALLERS || part == FM_PART_CALLEES)
        put_edges(r, part == FM_PART_CALLERS ? FM_CALLERS : FM_CALLEES);
    else if (part == FM_PART_THREADS)
        put_threads(r);
    else if (part == FM_PART_PROCESSES)
        put_processes(r);
    else if (part == FM_PART_STATS)
        put_stats(r);
    else if (part == FM_PART_REGIONS)
        fm_csv_put_regions(r);
    else if (part == FM_PART_RESIDENT)
        fm_report_memory_resident_csv(r);
    else if (fm_part_is_of_lines(part))
        put_lines(r);
    else
        put_functions(r);
}
