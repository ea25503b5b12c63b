/* Reports of memory as JSON: bytes as whole numbers, every metric of memory in each element. */
#include <string.h>

#include "base/memory.h"
#include "show/report/branch.h"
#include "show/report/edges.h"
#include "show/report/json_text.h"
#include "show/report/memory/memory.h"
#include "show/report/metric.h"
#include "show/report/report.h"

/* The next element of a list. */
static void add_element(struct fm_buffer *out)
{
    fm_buffer_add_text(out, out->data[out->len - 1] == '[' ? "\n  {" : ",\n  {");
}

static void begin_list(struct fm_buffer *out, const char *name)
{
    fm_buffer_addf(out, ",\n \"%s\": [", name);
}

static void add_edges(struct fm_buffer *out, const struct fm_report *r,
                      const struct fm_edges *edges, uint32_t row)
{
    size_t n;
    struct fm_flat_edge *all = fm_edges_shown(edges, r, row, &n);
    fm_json_add_key(out, edges->direction == FM_CALLERS ? "callers" : "callees");
    fm_buffer_add_char(out, '[');
    for (size_t i = 0; i < n; i++) {
        fm_buffer_add_text(out, i ? ", {" : "{");
        fm_json_add_function(out, r->p, r->flat->rows.data[fm_edges_other(edges, &all[i])].func);
        fm_json_add_metrics(out, r->p, fm_memory_metrics(r->p), all[i].self, all[i].total);
        fm_buffer_add_char(out, '}');
    }
    fm_buffer_add_char(out, ']');
}

static void add_row(struct fm_buffer *out, const struct fm_report *r, uint32_t row)
{
    const struct fm_flat_row *f = &r->flat->rows.data[row];
    add_element(out);
    fm_json_add_function(out, r->p, f->func);
    fm_json_add_member(out, "first_line", r->p->functions.data[r->memory.origin[f->func]].line);
    fm_json_add_metrics(out, r->p, fm_memory_metrics(r->p), f->self, f->total);
}

static void add_functions(struct fm_buffer *out, const struct fm_report *r, enum fm_part part)
{
    struct fm_edges edges;
    struct fm_texts *texts = fm_part_is_of_lines(part) ? fm_texts_new(r->p) : NULL;
    bool with_edges = part == FM_PART_CALLERS || part == FM_PART_CALLEES;
    const char *why;
    if (with_edges)
        fm_edges_init(&edges, r->flat, part == FM_PART_CALLERS ? FM_CALLERS : FM_CALLEES);
    begin_list(out, texts ? "lines" : r->memory.rows == FM_ROWS_TYPES ? "types" : "functions");
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        uint32_t row = r->selection.rows.data[i], func = r->flat->rows.data[row].func;
        uint32_t line = r->p->functions.data[func].line;
        const struct fm_text *text =
            texts ? fm_texts_find(texts, r->memory.origin[func], &why) : NULL;
        fm_autobuffer source = FM_BUFFER_INIT;
        add_row(out, r, row);
        if (text && line >= 1 && line <= fm_text_count(text)) {
            fm_text_show(text, line, &source);
            fm_json_add_text_member(out, "source", fm_buffer_text(&source));
        }
        if (with_edges)
            add_edges(out, r, &edges, row);
        fm_buffer_add_char(out, '}');
    }
    fm_buffer_add_char(out, ']');
    fm_texts_free(texts);
    if (with_edges)
        fm_edges_release(&edges);
}

struct tree_text {
    const struct fm_report *r;
    struct fm_buffer *out;
};

static void add_node(const struct fm_branches *b, const struct fm_step *step, void *data)
{
    const struct tree_text *text = data;
    const struct fm_node *node = &b->p->nodes.data[step->node];
    int64_t self[FM_METRIC_COUNT], total[FM_METRIC_COUNT];
    if (step->hidden)
        return;
    add_element(text->out);
    fm_json_add_member(text->out, "node", step->node);
    fm_json_add_key(text->out, "parent");
    if (step->depth)
        fm_buffer_addf(text->out, "%u", node->parent);
    else
        fm_buffer_add_text(text->out, "null");
    fm_json_add_member(text->out, "thread", b->p->threads.data[node->thread].tid);
    fm_json_add_member(text->out, "depth", step->depth);
    fm_json_add_function(text->out, b->p, node->func);
    fm_node_numbers_get(&b->numbers, step->node, self, total);
    fm_json_add_metrics(text->out, b->p, b->numbers.metrics, self, total);
    fm_buffer_add_char(text->out, '}');
}

static void add_threads(struct fm_buffer *out, const struct fm_report *r)
{
    const struct fm_profile *p = r->p;
    fm_autofree int64_t *numbers = fm_memory_of_threads_new(p);
    for (uint32_t i = 0; i < p->threads.len; i++) {
        if (!fm_branches_shows(p, &r->scope, i))
            continue;
        add_element(out);
        fm_json_add_member(out, "process", p->processes.data[p->threads.data[i].process].pid);
        fm_json_add_member(out, "thread", p->threads.data[i].tid);
        fm_json_add_text_member(out, "name", fm_profile_text(p, p->threads.data[i].name));
        fm_json_add_metrics(out, r->p, fm_memory_metrics(r->p),
                            numbers + (size_t)i * FM_METRIC_COUNT, NULL);
        fm_buffer_add_char(out, '}');
    }
}

static void add_processes(struct fm_buffer *out, const struct fm_report *r)
{
    const struct fm_profile *p = r->p;
    fm_autofree int64_t *numbers = fm_memory_of_processes_new(p);
    for (uint32_t i = 0; i < p->processes.len; i++) {
        const struct fm_process *q = &p->processes.data[i];
        if (r->scope.process != FM_NONE && r->scope.process != i)
            continue;
        add_element(out);
        fm_json_add_member(out, "process", q->pid);
        fm_json_add_member(out, "parent", q->parent_pid);
        fm_json_add_text_member(out, "python", fm_profile_text(p, q->version));
        fm_json_add_text_member(out, "recorded", fm_memory_recorded(q));
        if (q->memory_sample_bytes)
            fm_json_add_member(out, "sample_bytes", (int64_t)q->memory_sample_bytes);
        fm_json_add_text_member(out, "command", fm_profile_text(p, q->command));
        fm_json_add_member(out, "fathom_bytes", (int64_t)q->memory_own_bytes);
        fm_json_add_metrics(out, r->p, fm_memory_metrics(r->p),
                            numbers + (size_t)i * FM_METRIC_COUNT, NULL);
        fm_buffer_add_char(out, '}');
    }
}

static void add_buckets(struct fm_buffer *out, const struct fm_report *r, enum fm_heap_table table,
                        const char *name)
{
    fm_memory_buckets all = fm_memory_buckets_of(r, table, false);
    begin_list(out, name);
    for (size_t i = 0; i < all.len; i++) {
        const struct fm_memory_bucket *b = &all.data[i];
        add_element(out);
        if (table == FM_HEAP_BY_KIND) {
            fm_json_add_text_member(out, "name", fm_heap_kind_title(b->from));
        } else {
            fm_json_add_member(out, "from", b->from);
            fm_json_add_member(out, "below", b->below);
        }
        fm_json_add_member(out, "blocks", b->blocks);
        if (table == FM_HEAP_BY_KIND)
            fm_json_add_member(out, "bytes", b->bytes);
        fm_buffer_add_char(out, '}');
    }
    fm_buffer_add_char(out, ']');
    fm_vec_release(&all);
}

static void add_tops(struct fm_buffer *out, const struct fm_report *r, enum fm_metric metric,
                     const char *name)
{
    size_t count;
    fm_autofree uint32_t *rows = fm_memory_tops_new(r, metric, &count);
    begin_list(out, name);
    for (size_t i = 0; i < count; i++) {
        add_row(out, r, rows[i]);
        fm_buffer_add_char(out, '}');
    }
    fm_buffer_add_char(out, ']');
}

static void add_stats(struct fm_buffer *out, const struct fm_report *r)
{
    add_buckets(out, r, FM_HEAP_BY_KIND, "kinds");
    add_buckets(out, r, FM_HEAP_SIZES, "sizes");
    add_buckets(out, r, FM_HEAP_LIVES, "lives");
    add_tops(out, r, r->memory.at->bytes, "most_bytes");
    add_tops(out, r, r->memory.at->blocks, "most_blocks");
}

static void add_shown(struct fm_buffer *out, const struct fm_shown *shown)
{
    fm_buffer_add_char(out, '{');
    fm_json_add_member(out, "asked_ns", (int64_t)shown->asked_ns);
    fm_json_add_member(out, "shown_ns", (int64_t)shown->shown_ns);
    fm_json_add_member(out, "run_begin_ns", (int64_t)shown->begin_ns);
    fm_json_add_member(out, "processes", shown->processes);
    fm_json_add_key(out, "exact");
    fm_buffer_add_text(out, shown->exact ? "true" : "false");
    fm_buffer_add_char(out, '}');
}

/* Since the beginning of the run: the time that was asked for, and the one that is shown. */
static void add_moment(struct fm_buffer *out, const struct fm_memory_view *view)
{
    if (view->range) {
        fm_json_add_key(out, "from");
        add_shown(out, &view->from);
    }
    fm_json_add_key(out, "time");
    add_shown(out, &view->to);
}

static void add_head(struct fm_buffer *out, const struct fm_report *r)
{
    struct fm_memory_sums sums = fm_memory_sums_of(r);
    fm_json_add_subject(out, r);
    fm_json_add_text_member(out, "at", r->memory.at->name);
    if (r->memory.at == &fm_instants[FM_AT_TIME])
        add_moment(out, &r->memory);
    fm_json_add_key(out, "memory");
    fm_buffer_add_char(out, '{');
    fm_json_add_metrics(out, r->p, fm_memory_metrics(r->p), sums.all, NULL);
    fm_json_add_member(out, "processes", sums.processes);
    if (sums.sample_most)
        fm_json_add_member(out, "sample_bytes", sums.sample_most);
    fm_json_add_member(out, "inherited_peak_bytes", sums.inherited);
    fm_json_add_member(out, "fathom_bytes", sums.own_bytes);
    if (sums.looks) {
        fm_json_add_member(out, "looks", sums.looks);
        fm_json_add_member(out, "resident_bytes", sums.resident);
    }
    fm_json_add_key(out, "outside");
    fm_buffer_add_char(out, '{');
    fm_json_add_metrics(out, r->p, fm_memory_metrics(r->p), sums.outside, NULL);
    fm_buffer_add_text(out, "}}");
    fm_json_add_notes(out, r->p);
}

void fm_report_memory_json(const struct fm_report *r, enum fm_part part)
{
    fm_autobuffer out = FM_BUFFER_INIT;
    struct tree_text text = { r, &out };
    add_head(&out, r);
    if (part == FM_PART_STATS) {
        add_stats(&out, r);
    } else if (part == FM_PART_REGIONS) {
        begin_list(&out, "regions");
        fm_json_add_regions(&out, r);
        fm_buffer_add_char(&out, ']');
    } else if (part == FM_PART_RESIDENT) {
        fm_report_memory_resident_json(r, &out);
    } else if (part == FM_PART_TREE || part == FM_PART_THREADS || part == FM_PART_PROCESSES) {
        begin_list(&out, part == FM_PART_TREE      ? "tree"
                         : part == FM_PART_THREADS ? "threads"
                                                   : "processes");
        if (part == FM_PART_TREE)
            fm_memory_walk(r, add_node, &text);
        else if (part == FM_PART_THREADS)
            add_threads(&out, r);
        else
            add_processes(&out, r);
        fm_buffer_add_char(&out, ']');
    } else {
        add_functions(&out, r, part);
    }
    fm_buffer_add_text(&out, "}\n");
    fwrite(out.data, 1, out.len, r->out);
}
