/*
 * Reports as CSV (RFC 4180, with a header line), for spreadsheets: times in seconds.
 */
#include <string.h>

#include "show/report/branch.h"
#include "show/report/cost.h"
#include "show/report/csv_text.h"
#include "show/report/edges.h"
#include "show/report/lines/annotated.h"
#include "show/report/lines/hotlines.h"
#include "show/report/report.h"
#include "show/report/samples/sampling.h"

static void put_rows(const struct fm_report *r)
{
    fputs("function,file,line,calls,primitive_calls,resumes,self_s,total_s,min_s,max_s,"
          "suspended_s",
          r->out);
    if (r->flat->beside)
        fputs(",samples,total_samples", r->out);
    fm_csv_put_metric_titles(r->out, r->flat->columns, true);
    if (r->flat->beside)
        fm_csv_put_state_titles(r);
    fputs("\r\n", r->out);
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        const struct fm_flat_row *f = &r->flat->rows.data[r->selection.rows.data[i]];
        fm_csv_put_function(r, f->func);
        fprintf(r->out, ",%lld,%lld,%lld", (long long)f->calls, (long long)f->primitive,
                (long long)f->resumes);
        fm_csv_put_seconds(r, f->self_ns);
        fm_csv_put_seconds(r, f->total_ns);
        fm_csv_put_seconds(r, f->min_ns);
        fm_csv_put_seconds(r, f->max_ns);
        fm_csv_put_seconds(r, f->suspended_ns);
        if (r->flat->beside)
            fprintf(r->out, ",%lld,%lld", (long long)f->samples, (long long)f->total_samples);
        fm_csv_put_metrics(r->out, r->p, r->flat->columns, f->self, f->total);
        if (r->flat->beside)
            fm_csv_put_states(r, f->state_ns);
        fputs("\r\n", r->out);
    }
}

static void put_edge(const struct fm_report *r, const struct fm_flat_edge *e)
{
    bool sampled = r->flat->states;
    fm_csv_put_function(r, r->flat->rows.data[e->caller].func);
    fputc(',', r->out);
    fm_csv_put_function(r, r->flat->rows.data[e->callee].func);
    fprintf(r->out, ",%lld,%lld", (long long)(sampled ? e->samples : e->calls),
            (long long)(sampled ? e->total_samples : e->primitive));
    fm_csv_put_seconds(r, e->self_ns);
    fm_csv_put_seconds(r, e->total_ns);
    fm_csv_put_metrics(r->out, r->p, r->flat->columns, e->self, e->total);
    fputs("\r\n", r->out);
}

static void put_edges(const struct fm_report *r, enum fm_direction direction)
{
    struct fm_edges edges;
    fm_edges_init(&edges, r->flat, direction);
    fprintf(r->out,
            "caller,caller_file,caller_line,callee,callee_file,callee_line,%s,self_s,total_s",
            r->flat->states ? "samples,total_samples" : "calls,primitive_calls");
    fm_csv_put_metric_titles(r->out, r->flat->columns, true);
    fputs("\r\n", r->out);
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        size_t n;
        struct fm_flat_edge *all = fm_edges_shown(&edges, r, r->selection.rows.data[i], &n);
        for (size_t k = 0; k < n; k++)
            put_edge(r, &all[k]);
    }
    fm_edges_release(&edges);
}

static void show_node(const struct fm_branches *b, const struct fm_step *step, void *data)
{
    const struct fm_report *r = data;
    const struct fm_node *node = &b->p->nodes.data[step->node];
    if (step->hidden || !step->depth)
        return;
    bool top = b->p->nodes.data[node->parent].parent == FM_NONE;
    fprintf(r->out, "%u,", step->node);
    if (!top)
        fprintf(r->out, "%u", node->parent);
    fprintf(r->out, ",%u,%d,", b->p->threads.data[node->thread].tid, step->depth);
    fm_csv_put_function(r, node->func);
    if (r->flat->states)
        fprintf(r->out, ",%lld", (long long)fm_profile_value(b->p, FM_METRIC_SAMPLES, step->node));
    else
        fprintf(r->out, ",%lld,%lld",
                (long long)fm_profile_value(b->p, FM_METRIC_CALLS, step->node),
                (long long)fm_profile_value(b->p, FM_METRIC_RESUMES, step->node));
    fm_csv_put_seconds(r, b->self_ns[step->node]);
    fm_csv_put_seconds(r, b->total_ns[step->node]);
    if (r->flat->beside)
        fprintf(r->out, ",%lld", (long long)fm_profile_value(b->p, FM_METRIC_SAMPLES, step->node));
    int64_t self[FM_METRIC_COUNT], total[FM_METRIC_COUNT];
    fm_node_numbers_get(&b->numbers, step->node, self, total);
    fm_csv_put_metrics(r->out, r->p, b->numbers.metrics, self, total);
    if (r->flat->states || r->flat->beside) {
        int64_t states[FM_STATE_COUNT];
        fm_states_of_node(b->p, step->node, states);
        fm_csv_put_states(r, states);
    }
    fputs("\r\n", r->out);
}

static void put_tree(const struct fm_report *r)
{
    struct fm_branches b;
    int64_t all_ns = 0;
    fm_branches_init(&b, r->p);
    fprintf(r->out, "node,parent,thread,depth,function,file,line,%s,self_s,total_s",
            r->flat->states ? "samples" : "calls,resumes");
    if (r->flat->beside)
        fputs(",samples", r->out);
    fm_csv_put_metric_titles(r->out, b.numbers.metrics, true);
    if (r->flat->states || r->flat->beside)
        fm_csv_put_state_titles(r);
    fputs("\r\n", r->out);
    for (uint32_t i = 0; i < r->p->threads.len; i++) {
        if (fm_branches_shows(r->p, &r->scope, i))
            all_ns += b.total_ns[r->p->threads.data[i].root];
    }
    for (uint32_t i = 0; i < r->p->threads.len; i++) {
        if (fm_branches_shows(r->p, &r->scope, i))
            fm_branches_walk(&b, i, r->depth_max, (int64_t)((double)all_ns * r->min_percent / 100),
                             show_node, (void *)r);
    }
    fm_branches_release(&b);
}

static void put_threads(const struct fm_report *r)
{
    const struct fm_profile *p = r->p;
    bool sampled = r->flat->states, beside = r->flat->beside;
    fm_autofree struct fm_thread_states *states =
        sampled || beside ? fm_thread_states_new(p) : NULL;
    fprintf(r->out, "process,thread,name,wall_s,cpu_s,%s%s", sampled ? "samples" : "calls",
            beside ? ",samples" : "");
    uint64_t metrics;
    fm_autofree int64_t *numbers = fm_thread_numbers_new(p, &metrics);
    fm_csv_put_metric_titles(r->out, metrics, false);
    if (states)
        fm_csv_put_state_titles(r);
    fputs("\r\n", r->out);
    fm_autofree struct fm_events *events = fm_events_new(p);
    for (uint32_t i = 0; i < p->threads.len; i++) {
        const struct fm_thread *t = &p->threads.data[i];
        if (!fm_branches_shows(p, &r->scope, i))
            continue;
        fprintf(r->out, "%u,%u,", p->processes.data[t->process].pid, t->tid);
        fm_csv_put_text(r, fm_profile_text(p, t->name));
        fm_csv_put_seconds(r, t->end_ns > t->start_ns ? (int64_t)(t->end_ns - t->start_ns) : 0);
        fm_csv_put_seconds(r, (int64_t)t->cpu_ns);
        int64_t count = sampled ? states[i].samples : fm_events_sum(&events[i]);
        fprintf(r->out, ",%lld", (long long)count);
        if (beside)
            fprintf(r->out, ",%lld", (long long)states[i].samples);
        fm_csv_put_metrics(r->out, r->p, metrics, numbers + (size_t)i * FM_METRIC_COUNT, NULL);
        if (states)
            fm_csv_put_states(r, states[i].state_ns);
        fputs("\r\n", r->out);
    }
}

static void put_processes(const struct fm_report *r)
{
    const struct fm_profile *p = r->p;
    fputs("process,parent,python,profiled,exit_status,executable,command,wall_s\r\n", r->out);
    for (uint32_t i = 0; i < p->processes.len; i++) {
        const struct fm_process *q = &p->processes.data[i];
        if (r->scope.process != FM_NONE && r->scope.process != i)
            continue;
        fprintf(r->out, "%u,%u,", q->pid, q->parent_pid);
        fm_csv_put_text(r, fm_profile_text(p, q->version));
        fprintf(r->out, ",%s,", q->profiled ? "yes" : "no");
        if (q->exit_status >= 0)
            fprintf(r->out, "%d", q->exit_status);
        fputc(',', r->out);
        fm_csv_put_text(r, fm_profile_text(p, q->exe));
        fputc(',', r->out);
        fm_csv_put_text(r, fm_profile_text(p, q->command));
        fm_csv_put_seconds(
            r, q->start_ns && q->end_ns > q->start_ns ? (int64_t)(q->end_ns - q->start_ns) : 0);
        fputs("\r\n", r->out);
    }
}

/* A line of a function; what its recording does not hold stays empty. */
static void put_line(const struct fm_report *r, const struct fm_linetable *table,
                     const struct fm_line *row, const struct fm_text *text)
{
    double percent = table->time_ns ? (double)row->total_ns * 100 / (double)table->time_ns : 0;
    int64_t seen = r->lines->sampled ? row->samples : row->hits;
    fm_csv_put_function(r, table->func);
    fprintf(r->out, ",%u,%lld", row->line, (long long)seen);
    fm_csv_put_seconds(r, row->total_ns);
    fprintf(r->out, ",%.6g", percent);
    if (r->lines->sampled) {
        fm_csv_put_seconds(r, row->self_ns);
        fm_csv_put_states(r, row->state_ns);
    } else if (r->lines->detailed) {
        fm_csv_put_seconds(r, row->self_ns);
        fm_csv_put_seconds(r, row->min_ns);
        fm_csv_put_seconds(r, row->max_ns);
        fm_csv_put_seconds(r, fm_lines_quantile_ns(&r->lines->combined, row, 0.5));
        fm_csv_put_seconds(r, fm_lines_quantile_ns(&r->lines->combined, row, 0.99));
        fm_csv_put_seconds(r, row->suspended_ns);
    } else {
        fputs(",,,,,,", r->out);
    }
    if (r->lines->beside) {
        fprintf(r->out, ",%lld", (long long)row->samples);
        fm_csv_put_states(r, row->state_ns);
    }
    fm_csv_put_source(r, text, row->line);
    fputs("\r\n", r->out);
}

static void put_line_titles(const struct fm_report *r)
{
    fputs(r->lines->sampled
              ? "function,file,first_line,line,samples,time_s,percent,self_s"
              : "function,file,first_line,line,hits,time_s,percent,self_s,min_s,max_s,p50_s,p99_s,"
                "suspended_s",
          r->out);
    if (r->lines->beside)
        fputs(",samples", r->out);
    if (r->lines->sampled || r->lines->beside)
        fm_csv_put_state_titles(r);
    fputs(",source\r\n", r->out);
}

static void put_lines(const struct fm_report *r)
{
    const char *why;
    put_line_titles(r);
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        const struct fm_linetable *table = &r->lines->all.data[r->selection.rows.data[i]];
        const struct fm_text *text = fm_texts_find(r->lines->texts, table->func, &why);
        for (size_t k = 0; k < table->n; k++)
            put_line(r, table, &table->rows[k], text);
    }
}

static void put_line_functions(const struct fm_report *r)
{
    fprintf(r->out, "function,file,line,%s,time_s\r\n", r->lines->sampled ? "samples" : "hits");
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        const struct fm_linetable *table = &r->lines->all.data[r->selection.rows.data[i]];
        fm_csv_put_function(r, table->func);
        fprintf(r->out, ",%lld", (long long)(r->lines->sampled ? table->samples : table->hits));
        fm_csv_put_seconds(r, table->time_ns);
        fputs("\r\n", r->out);
    }
}

static void put_hot(const struct fm_report *r)
{
    struct fm_hotlines hot;
    const char *why;
    put_line_titles(r);
    fm_hotlines_init(&hot, r);
    for (size_t i = 0; i < hot.all.len; i++) {
        const struct fm_hotline *line = &hot.all.data[i];
        put_line(r, &r->lines->all.data[line->table], line->row,
                 fm_texts_find(r->lines->texts, line->row->func, &why));
    }
    fm_hotlines_release(&hot);
}

static void put_annotated(const struct fm_report *r)
{
    struct fm_annotation a;
    fprintf(r->out, "file,line,%s,self_s,source\r\n", r->lines->sampled ? "samples" : "hits");
    fm_annotation_init(&a, r);
    for (size_t i = 0; i < a.files.len; i++) {
        const struct fm_annotated *file = &a.files.data[i];
        for (size_t k = 0; k < file->n; k++) {
            const struct fm_annotated_line *line = &a.lines.data[file->first + k];
            fm_csv_put_text(r, fm_profile_text(r->p, file->file));
            fprintf(r->out, ",%u,%lld", line->line,
                    (long long)(r->lines->sampled ? line->samples : line->hits));
            fm_csv_put_seconds(r, line->self_ns);
            fm_csv_put_source(r, file->text, line->line);
            fputs("\r\n", r->out);
        }
    }
    fm_annotation_release(&a);
}

void fm_report_csv(const struct fm_report *r, enum fm_part part)
{
    switch (part) {
    case FM_PART_FUNCTIONS:
        if (r->flat->states)
            fm_csv_put_sampled(r);
        else
            put_rows(r);
        break;
    case FM_PART_CALLERS:
    case FM_PART_CALLEES:
        put_edges(r, part == FM_PART_CALLERS ? FM_CALLERS : FM_CALLEES);
        break;
    case FM_PART_TREE:
        put_tree(r);
        break;
    case FM_PART_THREADS:
        put_threads(r);
        break;
    case FM_PART_PROCESSES:
        put_processes(r);
        break;
    case FM_PART_SOURCE: /* plain text only */
    case FM_PART_STATS:  /* of memory: memory_csv.c */
    case FM_PART_RESIDENT:
    case FM_PART_TIMELINE: /* timeline_export.c */
    case FM_PART_SLOWEST:
    case FM_PART_ALIKE:
    case FM_PART_TASKS:
    case FM_PART_GIL:
        break;
    case FM_PART_REGIONS:
        fm_csv_put_regions(r);
        break;
    case FM_PART_STATES:
        fm_csv_put_state_table(r);
        break;
    case FM_PART_WAITS:
    case FM_PART_SPOTS:
        fm_csv_put_places(r, part);
        break;
    case FM_PART_LINES:
        if (r->view.summarize)
            put_line_functions(r);
        else
            put_lines(r);
        break;
    case FM_PART_HOT:
        put_hot(r);
        break;
    case FM_PART_ANNOTATE:
        put_annotated(r);
        break;
    }
}
