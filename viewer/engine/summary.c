/* What a recording is, as JSON for the page; see viewer/ENGINE.md. */
#include <string.h>

#include "engine.h"
#include "json.h"
#include "record/capture/live_heap.h"
#include "show/report/samples/sampling.h"

#define MAX_WAITS   1000u   /* and spots: the longest */
#define MAX_LISTED  100000u /* processes, threads, files, notes */
#define FEW_SAMPLES 100     /* that tell nothing: a recording of memory is not drawn by them */

struct summary_writer {
    struct fm_buffer *out;
    const struct fm_recording *r;
    const struct fm_profile *p;
    bool estimated; /* memory is */
};

static int64_t signed_ns(uint64_t ns)
{
    return ns < INT64_MAX ? (int64_t)ns : INT64_MAX;
}

static int64_t span(uint64_t start, uint64_t end)
{
    return end > start ? signed_ns(end - start) : 0;
}

static void text(struct summary_writer *w, const char *key, uint32_t string)
{
    json_string(w->out, key, w->p->strings, string);
}

static void begin(struct summary_writer *w, const char *key, char bracket)
{
    json_key(w->out, key);
    fm_buffer_add_char(w->out, bracket);
}

static void write_facts(struct summary_writer *w)
{
    begin(w, "facts", '{');
    for (size_t i = 0; i < w->p->facts.len && i < MAX_LISTED; i++) {
        json_next(w->out);
        json_text(w->out, fm_strings_get(w->p->strings, w->p->facts.data[i].key),
                  fm_strings_len(w->p->strings, w->p->facts.data[i].key));
        fm_buffer_add_char(w->out, ':');
        json_text(w->out, fm_strings_get(w->p->strings, w->p->facts.data[i].value),
                  fm_strings_len(w->p->strings, w->p->facts.data[i].value));
    }
    json_close(w->out, '}');
}

static void write_sampled(struct summary_writer *w, const struct fm_process *process)
{
    if (!process->sampled) {
        fm_buffer_add_text(w->out, ",\"sampled\":null");
        return;
    }
    begin(w, "sampled", '{');
    fm_buffer_addf(w->out, "\"mode\":\"%s\"",
                   fm_sample_mode_name((enum fm_sample_mode)process->sample_mode));
    json_int(w->out, "intervalNs", signed_ns(process->sample_interval_ns));
    json_int(w->out, "rounds", signed_ns(process->sample_rounds));
    json_int(w->out, "samples", signed_ns(process->samples));
    json_int(w->out, "partial", signed_ns(process->samples_partial));
    json_int(w->out, "lost", signed_ns(process->samples_lost));
    json_int(w->out, "cpuNs", signed_ns(process->sampler_cpu_ns));
    json_close(w->out, '}');
}

static void write_process(struct summary_writer *w, const struct fm_process *process)
{
    json_open(w->out, '{');
    json_int(w->out, "pid", process->pid);
    json_int(w->out, "parentPid", process->parent_pid);
    text(w, "exe", process->exe);
    text(w, "command", process->command);
    text(w, "cwd", process->cwd);
    text(w, "version", process->version);
    json_int(w->out, "startRealNs", signed_ns(process->start_real_ns));
    json_int(w->out, "startNs", signed_ns(process->start_ns));
    json_int(w->out, "run", process->run);
    json_int(w->out, "durationNs", span(process->start_ns, process->end_ns));
    if (process->exit_status < 0)
        fm_buffer_add_text(w->out, ",\"exitStatus\":null");
    else
        json_int(w->out, "exitStatus", process->exit_status);
    json_bool(w->out, "profiled", process->profiled);
    json_bool(w->out, "forked", process->forked);
    json_bool(w->out, "calls", process->calls);
    json_bool(w->out, "cCalls", process->c_calls);
    json_bool(w->out, "lines", process->lines);
    json_bool(w->out, "memory", process->memory);
    json_bool(w->out, "memoryPython", process->memory_python);
    json_int(w->out, "memoryOwnBytes", signed_ns(process->memory_own_bytes));
    json_int(w->out, "memorySampleBytes", signed_ns(process->memory_sample_bytes));
    begin(w, "cost", '{');
    json_int(w->out, "callPs", signed_ns(process->cost_call_ps));
    json_int(w->out, "cCallPs", signed_ns(process->cost_c_call_ps));
    json_int(w->out, "resumePs", signed_ns(process->cost_resume_ps));
    json_int(w->out, "linePs", signed_ns(process->cost_line_ps));
    json_int(w->out, "ownNs", signed_ns(process->own_ns));
    json_close(w->out, '}');
    write_sampled(w, process);
    json_close(w->out, '}');
}

/* Samples by thread; the sum comes back. */
static int64_t count_samples(const struct fm_profile *p, int64_t *by_thread)
{
    int64_t sum = 0;
    const int64_t *data = p->columns[FM_METRIC_SAMPLES].data;
    for (size_t i = 0; data && i < p->nodes.len; i++) {
        int64_t *thread = &by_thread[p->nodes.data[i].thread];
        *thread = fm_sum(*thread, data[i]);
        sum = fm_sum(sum, data[i]);
    }
    return sum;
}

static void write_threads(struct summary_writer *w, const int64_t *samples)
{
    begin(w, "threads", '[');
    for (uint32_t i = 0; i < w->r->threads && i < MAX_LISTED; i++) {
        const struct fm_thread *thread = &w->p->threads.data[i];
        json_open(w->out, '{');
        json_int(w->out, "process", thread->process);
        json_int(w->out, "tid", thread->tid);
        text(w, "name", thread->name);
        json_int(w->out, "startNs", signed_ns(thread->start_ns));
        json_int(w->out, "durationNs", span(thread->start_ns, thread->end_ns));
        json_int(w->out, "cpuNs", signed_ns(thread->cpu_ns));
        json_int(w->out, "value", fm_profile_value(w->p, FM_METRIC_TOTAL, thread->root));
        json_int(w->out, "samples", samples[i]);
        json_close(w->out, '}');
    }
    json_close(w->out, ']');
}

/* As in the header of every report: what was not seen whole is no evidence. */
static void write_sampling(struct summary_writer *w, int64_t samples)
{
    struct fm_sampling s = fm_sampling_of(w->p, &(struct fm_flat_scope){ FM_NONE, FM_NONE });
    int64_t whole = s.any ? s.whole : samples; /* other tools' samples come without processes */
    if (samples > 0)
        fm_buffer_addf(w->out,
                       ",\"sampling\":{\"samples\":%lld,\"whole\":%lld,\"partialShare\":%.9g,"
                       "\"lostShare\":%.9g,\"error\":%.9g}",
                       (long long)samples, (long long)whole, s.partial_share, s.lost_share,
                       fm_sampling_error_max(whole));
    else
        fm_buffer_add_text(w->out, ",\"sampling\":null");
}

static bool any_calls(const struct fm_profile *p)
{
    return p->columns[FM_METRIC_CALLS].data || p->flat;
}

static void write_color(struct summary_writer *w, uint32_t light, uint32_t dark)
{
    if (light || dark)
        fm_buffer_addf(w->out, ",\"colors\":[\"#%06x\",\"#%06x\"]", light, dark);
    else
        fm_buffer_add_text(w->out, ",\"colors\":null");
}

static void write_metric(struct summary_writer *w, unsigned metric)
{
    struct fm_metric_info info = fm_engine_metric_info(metric);
    bool estimated = info.place == FM_PLACE_MEMORY && w->estimated;
    json_open(w->out, '{');
    json_int(w->out, "id", metric);
    fm_buffer_addf(w->out, ",\"key\":\"%s\",\"title\":\"%s%s\",\"unit\":\"%s\"", info.name,
                   info.title, estimated ? ", estimated" : "", fm_unit_name(info.unit));
    json_bool(w->out, "exact",
              !estimated &&
                  (info.origin == FM_EXACT || (info.origin == FM_AS_RECORDED && any_calls(w->p))));
    json_bool(w->out, "hasTotal", info.scope != FM_OF_ENTRIES);
    json_bool(w->out, "memory", info.place == FM_PLACE_MEMORY);
    write_color(w, info.light, info.dark);
    json_close(w->out, '}');
}

/* Metrics of memory, or all the other ones; errors stand beside what they are of. */
static void write_drawn(struct summary_writer *w, unsigned from, unsigned to, bool memory)
{
    for (unsigned m = from; m < to; m++) {
        enum fm_metric_place place = fm_engine_metric_info(m).place;
        if ((place == FM_PLACE_MEMORY) != memory || place == FM_PLACE_ERROR ||
            fm_engine_is_moment(m))
            continue;
        bool of_table = w->p->flat && (m == FM_ENGINE_TOTAL || m == FM_ENGINE_CALLS);
        if (fm_engine_metric_is_drawn(m) && (of_table || fm_engine_metric_is_there(w->p, m)))
            write_metric(w, m);
    }
}

/* What can be drawn, and what has a column of its own in the table of functions. */
static void write_metrics(struct summary_writer *w, int64_t samples)
{
    uint64_t columns = fm_profile_columns(w->p);
    bool memory_first = !any_calls(w->p) && samples < FEW_SAMPLES;
    begin(w, "metrics", '[');
    if (memory_first)
        write_drawn(w, 0, FM_METRIC_STATES, true);
    write_drawn(w, 0, FM_METRIC_STATES, false);
    write_drawn(w, FM_METRIC_COUNT, FM_ENGINE_METRICS, false);
    write_drawn(w, FM_METRIC_STATES, FM_METRIC_COUNT, false);
    if (!memory_first)
        write_drawn(w, 0, FM_METRIC_STATES, true);
    json_close(w->out, ']');
    begin(w, "columns", '[');
    for (unsigned m = 0; m < FM_METRIC_COUNT; m++)
        if (columns >> m & 1)
            write_metric(w, m);
    json_close(w->out, ']');
}

static void write_states(struct summary_writer *w)
{
    bool any = false;
    for (int s = 0; s < FM_STATE_COUNT; s++)
        any = any || w->p->columns[fm_metric_of_state((enum fm_state)s)].data;
    if (!any) {
        fm_buffer_add_text(w->out, ",\"states\":null,\"stateTitles\":null,\"stateColors\":null");
        return;
    }
    begin(w, "states", '[');
    for (int s = 0; s < FM_STATE_COUNT; s++)
        fm_buffer_addf(w->out, "%s\"%s\"", s ? "," : "", fm_state_name((enum fm_state)s));
    json_close(w->out, ']');
    begin(w, "stateTitles", '[');
    for (int s = 0; s < FM_STATE_COUNT; s++)
        fm_buffer_addf(w->out, "%s\"%s\"", s ? "," : "", fm_state_title((enum fm_state)s));
    json_close(w->out, ']');
    begin(w, "stateColors", '[');
    for (int s = 0; s < FM_STATE_COUNT; s++) {
        const struct fm_state_info *state = fm_state_info((enum fm_state)s);
        fm_buffer_addf(w->out, "%s[\"#%06x\",\"#%06x\"]", s ? "," : "", state->light, state->dark);
    }
    json_close(w->out, ']');
}

static void write_notes(struct summary_writer *w)
{
    begin(w, "notes", '[');
    for (size_t i = 0; i < w->p->notes.len && i < MAX_LISTED; i++) {
        const struct fm_note *note = &w->p->notes.data[i];
        json_open(w->out, '{');
        json_int(w->out, "process", note->process == FM_NONE ? -1 : (int64_t)note->process);
        text(w, "kind", note->kind);
        json_int(w->out, "count", signed_ns(note->count));
        text(w, "text", note->text);
        json_close(w->out, '}');
    }
    json_close(w->out, ']');
}

/* Files in order of appearance, with how much there is of each. */
struct file {
    uint32_t string, functions, lines;
    int state; /* −1: no text known */
    bool text;
};

static void write_files(struct summary_writer *w)
{
    const struct fm_profile *p = w->p;
    struct fm_map index = { 0 };
    FM_VEC(struct file) files = { 0 };
    bool is_new;
    for (size_t i = 0; i < p->functions.len; i++) {
        const struct fm_function *f = &p->functions.data[i];
        if (!f->file)
            continue;
        uint32_t at = *fm_map_at(&index, f->file, (uint32_t)files.len, &is_new);
        if (is_new)
            fm_vec_push(&files, ((struct file){ .string = f->file, .state = -1 }));
        files.data[at].functions++;
    }
    for (size_t i = 0; i < p->lines.rows.len; i++) {
        uint32_t file = p->functions.data[p->lines.rows.data[i].func].file;
        const uint32_t *at = fm_map_find(&index, file);
        if (at)
            files.data[*at].lines++;
    }
    for (size_t i = 0; i < p->sources.len; i++) {
        const uint32_t *at = fm_map_find(&index, p->sources.data[i].file);
        if (!at)
            continue;
        files.data[*at].state = p->sources.data[i].state;
        files.data[*at].text |= p->sources.data[i].text != 0;
    }
    static const char *const states[] = { "none", "file", "generated", "changed" };
    begin(w, "files", '[');
    for (size_t i = 0; i < files.len && i < MAX_LISTED; i++) {
        json_open(w->out, '{');
        text(w, "file", files.data[i].string);
        fm_buffer_addf(w->out, ",\"state\":\"%s\"", states[files.data[i].state + 1]);
        json_bool(w->out, "text", files.data[i].text);
        json_int(w->out, "lines", files.data[i].lines);
        json_int(w->out, "functions", files.data[i].functions);
        json_close(w->out, '}');
    }
    json_close(w->out, ']');
    fm_vec_release(&files);
    fm_map_release(&index);
}

static int wait_by_ns(const void *left, const void *right)
{
    const struct fm_wait *a = *(const struct fm_wait *const *)left,
                         *b = *(const struct fm_wait *const *)right;
    if (a->ns != b->ns)
        return a->ns > b->ns ? -1 : 1;
    return a < b ? -1 : a > b;
}

static void write_waits(struct summary_writer *w)
{
    FM_VEC(const struct fm_wait *) waits = { 0 };
    for (size_t i = 0; i < w->p->samples.waits.len; i++)
        fm_vec_push(&waits, &w->p->samples.waits.data[i]);
    if (waits.len)
        qsort(waits.data, waits.len, sizeof *waits.data, wait_by_ns);
    begin(w, "waits", '[');
    for (size_t i = 0; i < waits.len && i < MAX_WAITS; i++) {
        const struct fm_wait *wait = waits.data[i];
        json_open(w->out, '{');
        json_int(w->out, "process", wait->process == FM_NONE ? -1 : (int64_t)wait->process);
        json_int(w->out, "func", w->r->func_of[wait->func]);
        json_int(w->out, "line", wait->line);
        json_int(w->out, "state", wait->state);
        text(w, "detail", wait->detail);
        json_int(w->out, "samples", wait->samples);
        json_int(w->out, "ns", wait->ns);
        json_close(w->out, '}');
    }
    json_close(w->out, ']');
    fm_vec_release(&waits);
}

static int spot_by_ns(const void *left, const void *right)
{
    const struct fm_spot *a = *(const struct fm_spot *const *)left,
                         *b = *(const struct fm_spot *const *)right;
    if (a->ns != b->ns)
        return a->ns > b->ns ? -1 : 1;
    return a < b ? -1 : a > b;
}

static void write_spots(struct summary_writer *w)
{
    FM_VEC(const struct fm_spot *) spots = { 0 };
    for (size_t i = 0; i < w->p->samples.spots.len; i++)
        fm_vec_push(&spots, &w->p->samples.spots.data[i]);
    if (spots.len)
        qsort(spots.data, spots.len, sizeof *spots.data, spot_by_ns);
    begin(w, "spots", '[');
    for (size_t i = 0; i < spots.len && i < MAX_WAITS; i++) {
        const struct fm_spot *spot = spots.data[i];
        json_open(w->out, '{');
        json_int(w->out, "process", spot->process == FM_NONE ? -1 : (int64_t)spot->process);
        json_int(w->out, "func", w->r->func_of[spot->func]);
        json_int(w->out, "line", spot->line);
        json_int(w->out, "endLine", spot->end_line);
        json_int(w->out, "column", spot->column);
        json_int(w->out, "endColumn", spot->end_column);
        json_int(w->out, "samples", spot->samples);
        json_int(w->out, "ns", spot->ns);
        json_close(w->out, '}');
    }
    json_close(w->out, ']');
    fm_vec_release(&spots);
}

/* When what was alive was looked at, and the metrics that an instant has. Several runs have no common clock. */
static void write_history(struct summary_writer *w)
{
    uint64_t begin_ns, end_ns, slices = 0;
    if (fm_profile_runs(w->p) != 1 || !fm_history_span(w->p, 0, &begin_ns, &end_ns)) {
        fm_buffer_add_text(w->out, ",\"history\":null");
        return;
    }
    for (size_t i = 0; i < w->p->memory.histories.len; i++)
        slices += w->p->memory.histories.data[i].slices.count;
    begin(w, "history", '{');
    json_int(w->out, "beginNs", signed_ns(begin_ns));
    json_int(w->out, "durationNs", span(begin_ns, end_ns));
    json_int(w->out, "slices", signed_ns(slices));
    begin(w, "metrics", '[');
    for (unsigned m = FM_METRIC_THEN; fm_engine_is_moment(m); m++)
        write_metric(w, m);
    json_close(w->out, ']');
    json_close(w->out, '}');
}

/* What there is beside contexts with numbers of memory. */
static void write_memory(struct summary_writer *w)
{
    static const char *const kinds[] = {
#define X(name, title) title,
        FM_HEAP_KIND_LIST(X)
#undef X
    };
    begin(w, "memory", '{');
    fm_buffer_addf(w->out, "\"points\":%zu,\"counts\":%zu", w->p->memory.points.len,
                   w->p->memory.counts.len);
    json_bool(w->out, "lined", w->p->has_lined_nodes);
    write_history(w);
    begin(w, "kinds", '[');
    for (size_t i = 0; i < FM_COUNT(kinds); i++)
        fm_buffer_addf(w->out, "%s\"%s\"", i ? "," : "", kinds[i]);
    json_close(w->out, ']');
    json_close(w->out, '}');
}

static void write_counts(struct summary_writer *w)
{
    begin(w, "counts", '{');
    json_int(w->out, "functions", (int64_t)w->p->functions.len);
    json_int(w->out, "nodes", w->r->nodes);
    json_int(w->out, "lines", (int64_t)w->p->lines.rows.len);
    json_int(w->out, "processes", w->r->processes);
    json_int(w->out, "threads", w->r->threads);
    json_close(w->out, '}');
}

int fm_engine_summary(struct fm_engine *e, int recording)
{
    struct fm_recording *r = fm_engine_recording(e, recording);
    if (!r)
        return -1;
    struct summary_writer w = { &e->text, r, r->p, fm_profile_has_estimates(r->p) };
    fm_autofree int64_t *samples = fm_calloc(r->p->threads.len, sizeof *samples);
    int64_t sum = count_samples(r->p, samples);
    fm_buffer_clear(w.out);
    fm_buffer_add_char(w.out, '{');
    json_key(w.out, "name");
    json_text(w.out, r->name, strlen(r->name));
    write_facts(&w);
    begin(&w, "processes", '[');
    for (uint32_t i = 0; i < r->processes && i < MAX_LISTED; i++)
        write_process(&w, &r->p->processes.data[i]);
    json_close(w.out, ']');
    write_threads(&w, samples);
    write_metrics(&w, sum);
    write_states(&w);
    write_sampling(&w, sum);
    write_notes(&w);
    write_files(&w);
    write_spots(&w);
    write_waits(&w);
    write_memory(&w);
    write_counts(&w);
    fm_buffer_addf(w.out, ",\"tree\":\"%s\"",
                   r->estimated                          ? "estimated"
                   : r->p->nodes.len > r->p->threads.len ? "recorded"
                                                         : "none");
    json_bool(w.out, "hasLines", r->p->lines.rows.len > 0);
    json_bool(w.out, "hasMinMax", r->p->columns[FM_METRIC_MAX].data != NULL);
    fm_buffer_add_char(w.out, '}');
    return 0;
}
