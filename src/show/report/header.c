/*
 * What stands above every report: what ran, under which Python, for how long, what Fathom added,
 * and what was lost. Anything a reader must know to trust the numbers below it.
 */
#include <string.h>

#include "base/clean.h"
#include "record/model/derive/shed.h"
#include "show/report/cost.h"
#include "show/report/number.h"
#include "show/report/report.h"
#include "show/report/samples/sampling.h"

static bool in_scope(const struct fm_report *r, uint32_t process)
{
    if (r->scope.thread != FM_NONE)
        return r->p->threads.data[r->scope.thread].process == process;
    return r->scope.process == FM_NONE || r->scope.process == process;
}

static void print_line(const struct fm_report *r, enum fm_color color, const char *text)
{
    fm_color_begin(&r->style, r->out, color);
    fm_clean_put(r->out, text);
    fm_color_end(&r->style, r->out, color);
    fputc('\n', r->out);
}

static void print_subject(const struct fm_report *r)
{
    const char *command = fm_profile_fact_get(r->p, "command");
    fm_autobuffer line = FM_BUFFER_INIT;
    if (!command && r->p->processes.len)
        command = fm_profile_text(r->p, r->p->processes.data[0].command);
    if (command && *command) {
        print_line(r, FM_COLOR_BOLD, command);
        return;
    }
    for (size_t i = 0; r->files && r->files[i]; i++)
        fm_buffer_addf(&line, "%s%s", i ? ", " : "", r->files[i]);
    if (line.len)
        print_line(r, FM_COLOR_BOLD, line.data);
}

/* "Python 3.12.1, 3.13.0": each version once. */
static void add_versions(const struct fm_report *r, struct fm_buffer *line)
{
    const struct fm_profile *p = r->p;
    for (uint32_t i = 0; i < p->processes.len; i++) {
        bool seen = !p->processes.data[i].version || !in_scope(r, i);
        for (uint32_t k = 0; k < i && !seen; k++)
            seen = p->processes.data[k].version == p->processes.data[i].version;
        if (!seen)
            fm_buffer_addf(line, "%s%s", line->len ? ", " : "Python ",
                           fm_profile_text(p, p->processes.data[i].version));
    }
}

static void add_part(struct fm_buffer *line, const char *text)
{
    fm_buffer_addf(line, "%s%s", line->len ? " · " : "", text);
}

static void add_counted(struct fm_buffer *line, int64_t n, const char *one, const char *many)
{
    char count[FM_NUMBER_BYTES], text[96];
    snprintf(text, sizeof text, "%s %s", fm_number_count(count, n), n == 1 ? one : many);
    add_part(line, text);
}

/* How often a line was begun. */
static void add_lines(const struct fm_report *r, struct fm_buffer *line)
{
    const struct fm_lines *lines = &r->p->lines;
    int64_t hits = 0;
    for (size_t i = 0; i < lines->rows.len; i++) {
        const struct fm_line *row = &lines->rows.data[i];
        if (row->process == FM_NONE || in_scope(r, row->process))
            hits = fm_sum(hits, row->hits);
    }
    bool sampled = r->flat->states || r->flat->beside; /* then lines may be those of samples */
    if (hits || !sampled)
        add_counted(line, hits, "line hit", "line hits");
}

/* What ran, and for how long. */
static void add_run(const struct fm_report *r, struct fm_buffer *line, int64_t wall)
{
    char number[FM_NUMBER_BYTES], text[96];
    int64_t processes = 0, threads = 0;
    for (uint32_t i = 0; i < r->p->processes.len; i++)
        processes += in_scope(r, i);
    for (uint32_t i = 0; i < r->p->threads.len; i++)
        threads += r->scope.thread == FM_NONE ? in_scope(r, r->p->threads.data[i].process)
                                              : i == r->scope.thread;
    add_versions(r, line);
    if (wall) {
        snprintf(text, sizeof text, "%s wall", fm_number_time(number, wall));
        add_part(line, text);
    }
    if (processes) {
        add_counted(line, processes, "process", "processes");
        add_counted(line, threads, "thread", "threads");
    }
}

static void print_size(const struct fm_report *r, bool run)
{
    fm_autobuffer line = FM_BUFFER_INIT;
    char number[FM_NUMBER_BYTES], text[96];
    int64_t wall = fm_runs_wall_ns(r->p, &r->scope, false);
    struct fm_flat_total total = fm_flat_total(r->flat);
    if (run)
        add_run(r, &line, wall);
    bool states = r->flat->states; /* a sentence of its own follows */
    if (r->flat->sampled && !states)
        add_counted(&line, total.primitive, "sample", "samples");
    else if (!states && !fm_linetables_are_all(r->p)) /* calls of functions with lines say little */
        add_counted(&line, total.calls, "call", "calls");
    if (fm_linetables_exist(r->p))
        add_lines(r, &line);
    if (!wall && !fm_linetables_are_all(r->p)) {
        snprintf(text, sizeof text, "%s in functions", fm_number_time(number, total.self_ns));
        add_part(&line, text);
    }
    if (run || line.len)
        print_line(r, FM_COLOR_NONE, fm_buffer_text(&line));
}

/* "12 ms", or "12 ms to 40 ms" where that is not the same to a reader. */
static void add_range(struct fm_buffer *line, const char *least, const char *most, bool wide)
{
    fm_buffer_add_text(line, least);
    if (wide && strcmp(least, most) != 0)
        fm_buffer_addf(line, " to %s", most);
}

static void print_cost(const struct fm_report *r)
{
    struct fm_cost cost = fm_cost_of(r->p, &r->scope);
    char least[FM_NUMBER_BYTES], most[FM_NUMBER_BYTES];
    fm_autobuffer line = FM_BUFFER_INIT;
    if (cost.added_ns <= 0)
        return;
    bool wide = cost.most_ns > cost.least_ns + cost.least_ns / 3;
    int64_t low_ns = wide ? cost.least_ns : cost.added_ns;
    fm_buffer_add_text(&line, "Fathom added about ");
    add_range(&line, fm_number_time(least, low_ns), fm_number_time(most, cost.most_ns), wide);
    if (cost.wall_ns > cost.most_ns) {
        fm_buffer_add_text(&line, " (");
        fm_number_percent(least, (double)low_ns, (double)(cost.wall_ns - low_ns));
        fm_number_percent(most, (double)cost.most_ns, (double)(cost.wall_ns - cost.most_ns));
        add_range(&line, least, most, wide);
        fm_buffer_add_text(&line, " %)");
    }
    if (fm_profile_has_memory(r->p))
        fm_buffer_add_text(&line, ", without what recording memory took");
    print_line(r, FM_COLOR_DIM, line.data);
}

/* A line, or two of them. */
static void print_sentences(const struct fm_report *r, char *text)
{
    char *newline = strchr(text, '\n');
    if (newline)
        *newline = '\0';
    print_line(r, FM_COLOR_NONE, text);
    if (newline)
        print_line(r, FM_COLOR_NONE, newline + 1);
}

static void print_counted_states(const struct fm_report *r)
{
    fm_autobuffer line = FM_BUFFER_INIT;
    if (!r->states)
        return;
    for (int s = 0; s < FM_STATE_COUNT; s++)
        if (r->states >> s & 1)
            fm_buffer_addf(&line, "%s%s", line.len ? ", " : "counting only time spent ",
                           fm_state_title((enum fm_state)s));
    print_line(r, FM_COLOR_WARN, line.data);
}

static void print_sampling(const struct fm_report *r)
{
    struct fm_sampling sampling = fm_sampling_of(r->p, &r->scope);
    fm_autobuffer line = FM_BUFFER_INIT, error = FM_BUFFER_INIT, cost = FM_BUFFER_INIT;
    if (!sampling.any)
        return;
    fm_sampling_describe(&sampling, &line);
    fm_sampling_describe_error(&sampling, r->flat->beside ? "states" : "shares", &error);
    size_t width = fm_text_width(line.data, line.len) + 2 + fm_text_width(error.data, error.len);
    bool one_line = r->style.width <= 0 || width <= (size_t)r->style.width;
    fm_buffer_addf(&line, "%s%s", one_line ? "; " : ";\n", error.data);
    print_sentences(r, line.data);
    print_counted_states(r);
    if (sampling.cpu_ns > 0) {
        fm_sampling_describe_cost(&sampling, &cost);
        print_line(r, FM_COLOR_DIM, cost.data);
    }
}

void fm_report_notes(const struct fm_report *r)
{
    for (size_t i = 0; i < r->p->notes.len; i++) {
        const struct fm_note *note = &r->p->notes.data[i];
        fm_autobuffer line = FM_BUFFER_INIT;
        char count[FM_NUMBER_BYTES];
        if (note->process != FM_NONE && !in_scope(r, note->process))
            continue;
        fm_buffer_addf(&line, "%s: ", fm_profile_text(r->p, note->kind));
        if (note->process != FM_NONE && note->process < r->p->processes.len)
            fm_buffer_addf(&line, "process %u: ", r->p->processes.data[note->process].pid);
        if (note->count > 1)
            fm_buffer_addf(&line, "%s ", fm_number_count(count, (int64_t)note->count));
        fm_buffer_add_text(&line, fm_profile_text(r->p, note->text));
        print_line(r, FM_COLOR_WARN, line.data);
    }
}

/* "only 1.500 s to 2.000 s of 4.100 s" */
static void print_range(const struct fm_report *r)
{
    char text[128];
    if (!r->range.asked)
        return;
    snprintf(text, sizeof text, "only %.3f s to %.3f s of %.3f s", (double)r->range.from_ns / 1e9,
             (double)r->range.to_ns / 1e9, (double)r->range.length_ns / 1e9);
    print_line(r, FM_COLOR_BOLD, text);
}

void fm_report_header(const struct fm_report *r)
{
    print_subject(r);
    print_range(r);
    print_size(r, true);
    print_sampling(r);
    print_cost(r);
    if (fm_profile_has_memory(r->p))
        print_line(r, FM_COLOR_DIM, "memory was recorded, too: --memory");
    fm_report_notes(r);
    fputc('\n', r->out);
}

void fm_report_time_header(const struct fm_report *r)
{
    print_size(r, false);
    print_sampling(r);
    print_cost(r);
    fputc('\n', r->out);
}

/* "peak 12.3 MiB in 1,234 blocks" */
static void add_memory(const struct fm_report *r, struct fm_buffer *line, const char *what,
                       const struct fm_memory_sums *sums, enum fm_instant instant)
{
    char blocks[FM_NUMBER_BYTES];
    fm_autobuffer text = FM_BUFFER_INIT;
    int64_t count = sums->all[fm_instants[instant].blocks];
    if (sums->foreign && !count && !sums->all[fm_instants[instant].bytes])
        return;
    fm_buffer_addf(&text, "%s ", what);
    fm_memory_describe(&text, r->p, fm_instants[instant].bytes, sums->all);
    if (count || !sums->foreign)
        fm_buffer_addf(&text, " in %s block%s", fm_number_count(blocks, count),
                       count == 1 ? "" : "s");
    add_part(line, text.data);
}

/* "alive at 2.5 s 14.6 MiB in 5,010 blocks, as looked at 4 ms before". Of a range, how much more. */
static void print_moment(const struct fm_report *r, const struct fm_memory_sums *sums)
{
    const struct fm_memory_view *v = &r->memory;
    fm_autobuffer line = FM_BUFFER_INIT;
    char what[96];
    if (v->range)
        snprintf(what, sizeof what, "from %.3f s to %.3f s: %s", v->from.asked_ns / 1e9,
                 v->to.asked_ns / 1e9, sums->all[FM_METRIC_THEN] < 0 ? "" : "+");
    else
        snprintf(what, sizeof what, "alive at %.3f s:", v->to.asked_ns / 1e9);
    add_memory(r, &line, what, sums, FM_AT_TIME);
    double to_ms = (v->to.asked_ns - v->to.shown_ns) / 1e6;
    double from_ms = v->range ? (v->from.asked_ns - v->from.shown_ns) / 1e6 : 0;
    if (v->to.exact && (!v->range || v->from.exact))
        fm_buffer_add_text(&line, ", to the event");
    else
        fm_buffer_addf(&line, ", as looked at %.1f ms before", to_ms > from_ms ? to_ms : from_ms);
    print_line(r, FM_COLOR_BOLD, line.data);
}

/* Each process has its own peak, at its own time. */
static void print_memory(const struct fm_report *r, const struct fm_memory_sums *sums)
{
    fm_autobuffer alive = FM_BUFFER_INIT, all = FM_BUFFER_INIT, peak = FM_BUFFER_INIT;
    char number[FM_NUMBER_BYTES];
    bool together = sums->processes > 1 && r->p->columns[FM_METRIC_TOGETHER].data;
    fm_buffer_add_text(&peak, "peak");
    if (sums->processes > 1)
        fm_buffer_addf(&peak, "s of %s processes, added up,",
                       fm_number_count(number, sums->processes));
    if (together) {
        fm_autobuffer line = FM_BUFFER_INIT;
        add_memory(r, &line, "all together at most", sums, FM_AT_TOGETHER);
        print_line(r, FM_COLOR_BOLD, line.data);
    }
    add_memory(r, &alive, peak.data, sums, FM_AT_PEAK);
    add_memory(r, sums->processes > 1 ? &all : &alive, "at the end", sums, FM_AT_END);
    bool known =
        sums->all[FM_METRIC_BLOCKS] != 0; /* some files of others have no more than the peak */
    if (known)
        add_memory(r, &all, "allocated", sums, FM_AT_ALL);
    if (alive.len)
        print_line(r, together ? FM_COLOR_NONE : FM_COLOR_BOLD, alive.data);
    if (sums->inherited && sums->processes > 1) {
        fm_autobuffer line = FM_BUFFER_INIT;
        fm_buffer_addf(&line, "%s of that were inherited by fork, and count for parent and child",
                       fm_number_bytes(number, sums->inherited));
        print_line(r, FM_COLOR_NONE, line.data);
    }
    if (all.len)
        print_line(r, FM_COLOR_NONE, all.data);
    if (!known)
        return;
    fm_buffer_clear(&all);
    add_memory(r, &all, "temporary (freed at once)", sums, FM_AT_TEMPORARY);
    if (all.len)
        print_line(r, FM_COLOR_NONE, all.data);
}

/* "resident at most 20.1 MiB, as looked at 123 times" */
static void print_looks(const struct fm_report *r, const struct fm_memory_sums *sums)
{
    fm_autobuffer line = FM_BUFFER_INIT;
    char number[FM_NUMBER_BYTES];
    if (!sums->resident)
        return;
    fm_buffer_addf(&line, "resident at most %s", fm_number_bytes(number, sums->resident));
    fm_buffer_addf(&line, ", as looked at %s time%s", fm_number_count(number, sums->looks),
                   sums->looks == 1 ? "" : "s");
    print_line(r, FM_COLOR_NONE, line.data);
}

/* What the import system holds is somebody's who imports: how to see whose, if it is more than a twentieth. */
static void print_imports(const struct fm_report *r, const struct fm_memory_sums *sums)
{
    enum fm_metric bytes = r->memory.at->bytes;
    int64_t imports = 0;
    fm_autobuffer line = FM_BUFFER_INIT;
    char number[FM_NUMBER_BYTES];
    for (size_t i = 0; i < r->flat->rows.len; i++) {
        const struct fm_flat_row *row = &r->flat->rows.data[i];
        const char *file = fm_profile_text(r->p, r->p->functions.data[row->func].file);
        if (strncmp(file, "<frozen importlib", strlen("<frozen importlib")) == 0)
            imports = fm_sum(imports, row->self[bytes]);
    }
    if (imports <= 0 || imports < sums->all[bytes] / 20)
        return;
    fm_buffer_addf(&line,
                   "%s of what is shown came by imports: --fold '<frozen importlib*' shows whose",
                   fm_number_bytes(number, imports));
    print_line(r, FM_COLOR_NONE, line.data);
}

void fm_report_memory_header(const struct fm_report *r)
{
    struct fm_memory_sums sums = fm_memory_sums_of(r);
    fm_autobuffer run = FM_BUFFER_INIT, own = FM_BUFFER_INIT, samples = FM_BUFFER_INIT;
    char number[FM_NUMBER_BYTES];
    print_subject(r);
    add_run(r, &run, fm_runs_wall_ns(r->p, &r->scope, false));
    print_line(r, FM_COLOR_NONE, fm_buffer_text(&run));
    if (r->memory.at == &fm_instants[FM_AT_TIME])
        print_moment(r, &sums);
    print_memory(r, &sums);
    print_imports(r, &sums);
    print_looks(r, &sums);
    fm_report_memory_reserves(r);
    fm_memory_describe_samples(&samples, &sums);
    if (samples.len)
        print_line(r, FM_COLOR_WARN, samples.data);
    if (sums.c_only)
        print_line(r, FM_COLOR_NONE,
                   sums.python
                       ? "of some processes Python's own allocators are there as arenas only"
                       : "Python's own allocators are there as arenas only");
    fm_buffer_addf(&own, "Fathom took %s for it in the process%s",
                   fm_number_bytes(number, sums.own_bytes), sums.processes == 1 ? "" : "es");
    if (sums.own_bytes)
        print_line(r, FM_COLOR_DIM, own.data);
    fm_report_notes(r);
    fputc('\n', r->out);
}
