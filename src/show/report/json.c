/*
 * Reports as JSON, for programs: times in nanoseconds, names and paths in full, text as recorded.
 */
#include "record/model/derive/label.h"
#include "show/report/branch.h"
#include "show/report/cost.h"
#include "show/report/edges.h"
#include "show/report/json_text.h"
#include "show/report/report.h"
#include "show/report/samples/places.h"
#include "show/report/samples/sampling.h"

struct json_page {
    const struct fm_report *r;
    int64_t samples; /* of all functions */
    struct fm_sampling sampling;
    struct fm_buffer text;
};

static void add_edges(struct json_page *page, const struct fm_edges *edges, uint32_t row)
{
    struct fm_buffer *out = &page->text;
    const struct fm_report *r = page->r;
    size_t n;
    struct fm_flat_edge *all = fm_edges_shown(edges, r, row, &n);
    fm_json_add_key(out, edges->direction == FM_CALLERS ? "callers" : "callees");
    fm_buffer_add_char(out, '[');
    for (size_t i = 0; i < n; i++) {
        fm_buffer_add_text(out, i ? ", {" : "{");
        fm_json_add_function(out, page->r->p,
                             r->flat->rows.data[fm_edges_other(edges, &all[i])].func);
        fm_json_add_member(out, "calls", all[i].calls);
        if (!fm_edge_counts_only(&all[i])) {
            fm_json_add_member(out, "primitive_calls", all[i].primitive);
            fm_json_add_member(out, "self_ns", all[i].self_ns);
            fm_json_add_member(out, "total_ns", all[i].total_ns);
        }
        fm_json_add_metrics(out, r->p, r->flat->columns, all[i].self, all[i].total);
        if (r->flat->states || r->flat->beside) {
            fm_json_add_member(out, "samples", all[i].samples);
            fm_json_add_member(out, "total_samples", all[i].total_samples);
        }
        fm_buffer_add_char(out, '}');
    }
    fm_buffer_add_char(out, ']');
}

/* What a function has of samples. */
static void add_samples(struct json_page *page, const struct fm_flat_row *f)
{
    struct fm_buffer *out = &page->text;
    fm_json_add_member(out, "samples", f->samples);
    fm_json_add_member(out, "total_samples", f->total_samples);
    fm_json_add_key(out, "self_error");
    fm_buffer_addf(out, "%.6f", fm_sampling_error_of(&page->sampling, f->samples, page->samples));
    fm_json_add_states(out, "states_ns", f->state_ns);
    fm_json_add_states(out, "total_states_ns", f->total_state_ns);
}

static void add_rows(struct json_page *page, enum fm_part part)
{
    struct fm_buffer *out = &page->text;
    const struct fm_report *r = page->r;
    struct fm_edges edges;
    bool with_edges = part == FM_PART_CALLERS || part == FM_PART_CALLEES;
    if (with_edges)
        fm_edges_init(&edges, r->flat, part == FM_PART_CALLERS ? FM_CALLERS : FM_CALLEES);
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        uint32_t row = r->selection.rows.data[i];
        const struct fm_flat_row *f = &r->flat->rows.data[row];
        fm_buffer_add_text(out, i ? ",\n  {" : "\n  {");
        fm_json_add_function(out, page->r->p, f->func);
        fm_json_add_member(out, "calls", f->calls);
        fm_json_add_member(out, "primitive_calls", f->primitive);
        fm_json_add_member(out, "resumes", f->resumes);
        fm_json_add_member(out, "self_ns", f->self_ns);
        fm_json_add_member(out, "total_ns", f->total_ns);
        fm_json_add_member(out, "min_ns", f->min_ns);
        fm_json_add_member(out, "max_ns", f->max_ns);
        fm_json_add_member(out, "suspended_ns", f->suspended_ns);
        fm_json_add_metrics(out, r->p, r->flat->columns, f->self, f->total);
        if (r->flat->states || r->flat->beside || part == FM_PART_STATES)
            add_samples(page, f);
        if (with_edges)
            add_edges(page, &edges, row);
        fm_buffer_add_char(out, '}');
    }
    if (with_edges)
        fm_edges_release(&edges);
}

static void show_node(const struct fm_branches *b, const struct fm_step *step, void *data)
{
    struct json_page *page = data;
    struct fm_buffer *out = &page->text;
    const struct fm_node *node = &b->p->nodes.data[step->node];
    if (step->hidden)
        return;
    bool first = out->data[out->len - 1] == '[';
    fm_buffer_add_text(out, first ? "\n  {" : ",\n  {");
    fm_json_add_member(out, "node", step->node);
    fm_json_add_key(out, "parent");
    if (step->depth)
        fm_buffer_addf(out, "%u", node->parent);
    else
        fm_buffer_add_text(out, "null");
    fm_json_add_member(out, "thread", b->p->threads.data[node->thread].tid);
    fm_json_add_member(out, "depth", step->depth);
    fm_json_add_function(out, page->r->p, node->func);
    fm_json_add_member(out, "calls", fm_profile_value(b->p, FM_METRIC_CALLS, step->node));
    fm_json_add_member(out, "resumes", fm_profile_value(b->p, FM_METRIC_RESUMES, step->node));
    fm_json_add_member(out, "self_ns", b->self_ns[step->node]);
    fm_json_add_member(out, "total_ns", b->total_ns[step->node]);
    fm_json_add_member(out, "suspended_ns",
                       fm_profile_value(b->p, FM_METRIC_SUSPENDED, step->node));
    int64_t self[FM_METRIC_COUNT], total[FM_METRIC_COUNT];
    fm_node_numbers_get(&b->numbers, step->node, self, total);
    fm_json_add_metrics(out, b->p, b->numbers.metrics, self, total);
    if (page->r->flat->states || page->r->flat->beside) {
        int64_t states[FM_STATE_COUNT];
        fm_states_of_node(b->p, step->node, states);
        fm_json_add_member(out, "samples", fm_profile_value(b->p, FM_METRIC_SAMPLES, step->node));
        fm_json_add_states(out, "states_ns", states);
    }
    fm_buffer_add_char(out, '}');
}

static void add_tree(struct json_page *page)
{
    const struct fm_report *r = page->r;
    struct fm_branches b;
    int64_t all_ns = 0;
    fm_branches_init(&b, r->p);
    for (uint32_t i = 0; i < r->p->threads.len; i++) {
        if (fm_branches_shows(r->p, &r->scope, i))
            all_ns += b.total_ns[r->p->threads.data[i].root];
    }
    for (uint32_t i = 0; i < r->p->threads.len; i++) {
        if (fm_branches_shows(r->p, &r->scope, i))
            fm_branches_walk(&b, i, r->depth_max, (int64_t)((double)all_ns * r->min_percent / 100),
                             show_node, page);
    }
    fm_branches_release(&b);
}

static void add_threads(struct json_page *page)
{
    const struct fm_profile *p = page->r->p;
    struct fm_buffer *out = &page->text;
    bool first = true;
    bool sampled = page->sampling.any;
    fm_autofree struct fm_thread_states *states = sampled ? fm_thread_states_new(p) : NULL;
    uint64_t metrics;
    fm_autofree int64_t *numbers = fm_thread_numbers_new(p, &metrics);
    fm_autofree struct fm_events *events = fm_events_new(p);
    for (uint32_t i = 0; i < p->threads.len; i++) {
        const struct fm_thread *t = &p->threads.data[i];
        if (!fm_branches_shows(p, &page->r->scope, i))
            continue;
        fm_buffer_add_text(out, first ? "\n  {" : ",\n  {");
        first = false;
        fm_json_add_member(out, "process", p->processes.data[t->process].pid);
        fm_json_add_member(out, "thread", t->tid);
        fm_json_add_text_member(out, "name", fm_profile_text(p, t->name));
        fm_json_add_member(out, "wall_ns",
                           t->end_ns > t->start_ns ? (int64_t)(t->end_ns - t->start_ns) : 0);
        fm_json_add_member(out, "cpu_ns", (int64_t)t->cpu_ns);
        fm_json_add_member(out, "calls", fm_events_sum(&events[i]));
        fm_json_add_metrics(out, p, metrics, numbers + (size_t)i * FM_METRIC_COUNT, NULL);
        if (sampled) {
            fm_json_add_member(out, "samples", states[i].samples);
            fm_json_add_states(out, "states_ns", states[i].state_ns);
        }
        fm_buffer_add_char(out, '}');
    }
}

static void add_processes(struct json_page *page)
{
    const struct fm_profile *p = page->r->p;
    struct fm_buffer *out = &page->text;
    bool first = true;
    for (uint32_t i = 0; i < p->processes.len; i++) {
        const struct fm_process *q = &p->processes.data[i];
        if (page->r->scope.process != FM_NONE && page->r->scope.process != i)
            continue;
        fm_buffer_add_text(out, first ? "\n  {" : ",\n  {");
        first = false;
        fm_json_add_member(out, "process", q->pid);
        fm_json_add_member(out, "parent", q->parent_pid);
        fm_json_add_text_member(out, "python", fm_profile_text(p, q->version));
        fm_json_add_text_member(out, "executable", fm_profile_text(p, q->exe));
        fm_json_add_text_member(out, "command", fm_profile_text(p, q->command));
        fm_json_add_text_member(out, "folder", fm_profile_text(p, q->cwd));
        fm_json_add_member(out, "start_ns", (int64_t)q->start_real_ns);
        fm_json_add_member(
            out, "wall_ns",
            q->start_ns && q->end_ns > q->start_ns ? (int64_t)(q->end_ns - q->start_ns) : 0);
        fm_json_add_key(out, "exit_status");
        if (q->exit_status < 0)
            fm_buffer_add_text(out, "null");
        else
            fm_buffer_addf(out, "%d", q->exit_status);
        fm_json_add_key(out, "profiled");
        fm_buffer_add_text(out, q->profiled ? "true" : "false");
        fm_json_add_key(out, "forked");
        fm_buffer_add_text(out, q->forked ? "true" : "false");
        if (q->sampled) {
            fm_json_add_member(out, "rounds", (int64_t)q->sample_rounds);
            fm_json_add_member(out, "samples", (int64_t)q->samples);
            fm_json_add_member(out, "partial", (int64_t)q->samples_partial);
            fm_json_add_member(out, "lost", (int64_t)q->samples_lost);
            fm_json_add_member(out, "sampler_cpu_ns", (int64_t)q->sampler_cpu_ns);
        }
        fm_buffer_add_char(out, '}');
    }
}

static void add_place(struct json_page *page, const struct fm_place *place, enum fm_part part,
                      const struct fm_text *text)
{
    struct fm_buffer *out = &page->text;
    const struct fm_profile *p = page->r->p;
    if (part == FM_PART_WAITS) {
        fm_json_add_text_member(out, "state", fm_state_name((enum fm_state)place->wait.state));
        fm_json_add_text_member(out, "detail", fm_profile_text(p, place->wait.detail));
        fm_json_add_member(out, "at_line", place->wait.line);
    } else {
        fm_json_add_member(out, "at_line", place->spot.line);
        fm_json_add_member(out, "end_line", place->spot.end_line);
        fm_json_add_member(out, "column", place->spot.column);
        fm_json_add_member(out, "end_column", place->spot.end_column);
    }
    fm_json_add_member(out, "samples", place->samples);
    fm_json_add_member(out, "ns", place->ns);
    if (text && place->spot.line >= 1 && place->spot.line <= fm_text_count(text)) {
        fm_autobuffer shown = FM_BUFFER_INIT;
        fm_text_show(text, place->spot.line, &shown);
        fm_json_add_text_member(out, "source", fm_buffer_text(&shown));
    }
    fm_json_add_key(out, "function");
    fm_buffer_add_char(out, '{');
    fm_json_add_function(out, p, page->r->flat->rows.data[place->row].func);
    fm_buffer_add_char(out, '}');
}

static void add_places(struct json_page *page, enum fm_part part)
{
    struct fm_places places;
    struct fm_texts *texts = NULL;
    fm_places_init(&places, page->r, part);
    for (size_t i = 0; i < places.all.len; i++) {
        const struct fm_place *place = &places.all.data[i];
        fm_buffer_add_text(&page->text, i ? ",\n  {" : "\n  {");
        add_place(page, place, part,
                  part == FM_PART_SPOTS ? fm_place_text(page->r, &texts, place) : NULL);
        fm_buffer_add_char(&page->text, '}');
    }
    fm_texts_free(texts);
    fm_places_release(&places);
}

static void add_sampling(struct json_page *page)
{
    struct fm_sampling s = page->sampling;
    struct fm_buffer *out = &page->text;
    if (!s.any)
        return;
    fm_json_add_key(out, "sampling");
    fm_buffer_add_char(out, '{');
    fm_json_add_member(out, "samples", s.samples);
    fm_json_add_member(out, "whole", s.whole);
    fm_json_add_member(out, "partial", s.partial);
    fm_json_add_member(out, "lost", s.lost);
    fm_json_add_member(out, "rounds", s.rounds);
    fm_json_add_key(out, "asked_hz");
    fm_buffer_addf(out, "%.6g", s.asked_hz);
    fm_json_add_text_member(out, "mode", s.mixed ? "mixed" : fm_sample_mode_name(s.mode));
    fm_json_add_key(out, "error");
    fm_buffer_addf(out, "%.6f", fm_sampling_error_max(s.whole));
    fm_json_add_member(out, "sampler_cpu_ns", s.cpu_ns);
    fm_buffer_add_char(out, '}');
}

void fm_json_add_notes(struct fm_buffer *out, const struct fm_profile *p)
{
    fm_json_add_key(out, "notes");
    fm_buffer_add_char(out, '[');
    for (size_t i = 0; i < p->notes.len; i++) {
        const struct fm_note *note = &p->notes.data[i];
        fm_buffer_add_text(out, i ? ", {" : "{");
        fm_json_add_text_member(out, "kind", fm_profile_text(p, note->kind));
        if (note->process < p->processes.len)
            fm_json_add_member(out, "process", p->processes.data[note->process].pid);
        fm_json_add_member(out, "count", (int64_t)note->count);
        fm_json_add_text_member(out, "text", fm_profile_text(p, note->text));
        fm_buffer_add_char(out, '}');
    }
    fm_buffer_add_char(out, ']');
}

void fm_json_add_subject(struct fm_buffer *out, const struct fm_report *r)
{
    const char *command = fm_profile_fact_get(r->p, "command");
    fm_buffer_add_text(out, "{");
    fm_json_add_text_member(out, "fathom", FATHOM_VERSION);
    fm_json_add_key(out, "files");
    fm_buffer_add_char(out, '[');
    for (size_t i = 0; r->files && r->files[i]; i++) {
        fm_buffer_add_text(out, i ? ", " : "");
        fm_json_add_text(out, r->files[i]);
    }
    fm_buffer_add_char(out, ']');
    if (command)
        fm_json_add_text_member(out, "command", command);
}

static void add_head(struct json_page *page)
{
    const struct fm_report *r = page->r;
    struct fm_buffer *out = &page->text;
    struct fm_flat_total total = fm_flat_total(r->flat);
    struct fm_cost cost = fm_cost_of(r->p, &r->scope);
    fm_json_add_subject(out, r);
    fm_json_add_key(out, "sampled");
    fm_buffer_add_text(out, r->flat->sampled ? "true" : "false");
    fm_json_add_member(out, "calls", total.calls);
    fm_json_add_member(out, "primitive_calls", total.primitive);
    fm_json_add_member(out, "self_ns", total.self_ns);
    if (r->flat->outside.self_ns)
        fm_json_add_member(out, "outside_ns", r->flat->outside.self_ns);
    fm_json_add_member(out, "added_ns", cost.added_ns);
    fm_json_add_member(out, "added_least_ns", cost.least_ns);
    fm_json_add_member(out, "added_most_ns", cost.most_ns);
    if (r->lines)
        fm_json_add_member(out, "program_ns", r->lines->program_ns);
    add_sampling(page);
    fm_json_add_notes(out, r->p);
}

void fm_report_json(const struct fm_report *r, enum fm_part part)
{
    static const char *const titles[] = {
        [FM_PART_FUNCTIONS] = "functions",
        [FM_PART_CALLERS] = "functions",
        [FM_PART_CALLEES] = "functions",
        [FM_PART_TREE] = "tree",
        [FM_PART_THREADS] = "threads",
        [FM_PART_PROCESSES] = "processes",
        [FM_PART_SOURCE] = "",
        [FM_PART_STATS] = "",
        [FM_PART_REGIONS] = "regions",
        [FM_PART_RESIDENT] = "",
        [FM_PART_TIMELINE] = "",
        [FM_PART_SLOWEST] = "",
        [FM_PART_ALIKE] = "",
        [FM_PART_TASKS] = "",
        [FM_PART_GIL] = "",
        [FM_PART_STATES] = "functions",
        [FM_PART_WAITS] = "waits",
        [FM_PART_SPOTS] = "spots",
        [FM_PART_LINES] = "functions",
        [FM_PART_HOT] = "lines",
        [FM_PART_ANNOTATE] = "sources",
    };
    struct json_page page = { .r = r, .sampling = fm_sampling_of(r->p, &r->scope) };
    for (size_t i = 0; i < r->flat->rows.len; i++)
        page.samples = fm_sum(page.samples, r->flat->rows.data[i].samples);
    add_head(&page);
    if (part == FM_PART_STATES) {
        fm_buffer_add_text(&page.text, ",\n \"threads\": [");
        add_threads(&page);
        fm_buffer_add_char(&page.text, ']');
    }
    fm_buffer_addf(&page.text, ",\n \"%s\": [", titles[part]);
    if (part == FM_PART_TREE)
        add_tree(&page);
    else if (part == FM_PART_THREADS)
        add_threads(&page);
    else if (part == FM_PART_PROCESSES)
        add_processes(&page);
    else if (part == FM_PART_REGIONS)
        fm_json_add_regions(&page.text, r);
    else if (part == FM_PART_WAITS || part == FM_PART_SPOTS)
        add_places(&page, part);
    else if (fm_part_is_of_lines(part))
        fm_json_add_lines(&page.text, r, part);
    else
        add_rows(&page, part);
    fm_buffer_add_text(&page.text, "]}\n");
    fwrite(page.text.data, 1, page.text.len, r->out);
    fm_buffer_release(&page.text);
}
