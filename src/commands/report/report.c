/*
 * `fathom report`: opens recordings, adds them up, reshapes and narrows them as asked, and hands
 * them to a report (src/show/report).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "commands/inputs.h"
#include "commands/report/report_options.h"
#include "commands/report/report_range.h"
#include "commands/verb.h"
#include "record/formats/python/pstats.h"
#include "record/formats/sources.h"
#include "record/model/derive/edit.h"
#include "record/model/derive/shed.h"
#include "record/model/trace/lanes/timeline.h"
#include "show/report/cost.h"

/* The profile to report, and the table of its functions. */
struct subject {
    struct fm_shown from, to; /* of --at TIME */
    struct fm_profile *p;
    struct fm_timeline *timeline; /* of a report of the timeline */
    struct fm_report_range range;
    struct fm_flat *made; /* what must be freed of the table */
    const struct fm_flat *flat;
    struct fm_names *names;
    struct fm_linetables *lines; /* of a report of lines */
    uint32_t *origin;            /* of one of memory: the functions that lines are of */
};

static int edit(struct subject *s, const struct fm_report_options *o, struct fm_error *err)
{
    if (o->edits.len && s->timeline)
        return fm_error_set(err, FM_USAGE,
                            "--fold, --filter and --root do not go with a report of the timeline");
    for (size_t i = 0; i < o->edits.len; i++) {
        const struct fm_edit_step *step = &o->edits.data[i];
        struct fm_profile *old = s->p;
        if (!old->threads.len)
            return fm_error_set(err, FM_UNSUPPORTED,
                                "--fold, --filter and --root need calling contexts, which %s does "
                                "not hold",
                                o->files[0]);
        if (step->kind == FM_EDIT_FOLD)
            s->p = fm_profile_fold(old, fm_function_glob, (void *)step->glob);
        else if (step->kind == FM_EDIT_FILTER)
            s->p = fm_profile_filter(old, fm_function_glob, (void *)step->glob);
        else
            s->p = fm_profile_root(old, fm_function_glob, (void *)step->glob);
        fm_profile_free(old);
    }
    return 0;
}

/* Process ids come again in long runs, thread ids too: the first that fits is meant. */
static int find_scope(const struct fm_profile *p, const struct fm_report_options *o,
                      struct fm_flat_scope *scope, struct fm_error *err)
{
    *scope = (struct fm_flat_scope){ FM_NONE, FM_NONE };
    for (uint32_t i = 0; o->process >= 0 && i < p->processes.len; i++) {
        if (p->processes.data[i].pid == o->process && scope->process == FM_NONE)
            scope->process = i;
    }
    if (o->process >= 0 && scope->process == FM_NONE)
        return fm_error_set(err, FM_UNSUPPORTED, "there is no process %lld in the recording",
                            (long long)o->process);
    for (uint32_t i = 0; o->thread >= 0 && i < p->threads.len; i++) {
        const struct fm_thread *t = &p->threads.data[i];
        if (t->tid == o->thread && scope->thread == FM_NONE &&
            (scope->process == FM_NONE || scope->process == t->process))
            scope->thread = i;
    }
    if (o->thread >= 0 && scope->thread == FM_NONE)
        return fm_error_set(err, FM_UNSUPPORTED, "there is no thread %lld in the recording",
                            (long long)o->thread);
    return 0;
}

/* Nothing was recorded line by line: say so, and why if the recording knows. */
static int fail_without_lines(const struct fm_profile *p, const struct fm_report_options *o,
                              struct fm_error *err)
{
    for (size_t i = 0; i < p->notes.len; i++) {
        if (strcmp(fm_profile_text(p, p->notes.data[i].kind), "lines") == 0)
            return fm_error_set(err, FM_UNSUPPORTED, "%s holds no lines: %s", o->files[0],
                                fm_profile_text(p, p->notes.data[i].text));
    }
    const char *lack = fm_inputs_lack(p);
    return fm_error_set(
        err, FM_UNSUPPORTED, "%s holds no lines: %s", o->files[0],
        lack ? lack : "nothing was recorded line by line, which `fathom run --lines` does");
}

/* Nothing was sampled: say so. */
static int fail_without_samples(const struct fm_report_options *o, struct fm_error *err)
{
    return fm_error_set(err, FM_UNSUPPORTED,
                        "%s holds no samples: the program was not sampled, only its calls or lines "
                        "were recorded",
                        o->files[0]);
}

/* Why there is none of what was asked of `fathom run`; NULL: it was not asked. */
static const char *why_unprofiled(const struct fm_profile *p, const char *collector)
{
    const char *asked = fm_profile_fact_get(p, "collectors");
    for (size_t i = 0; asked && strstr(asked, collector) && i < p->notes.len; i++)
        if (strcmp(fm_profile_text(p, p->notes.data[i].kind), "unprofiled") == 0)
            return fm_profile_text(p, p->notes.data[i].text);
    return NULL;
}

/* No memory was recorded: say so, and why if the recording knows. */
static int fail_without_memory(const struct fm_profile *p, const struct fm_report_options *o,
                               struct fm_error *err)
{
    const char *lack = fm_inputs_lack(p);
    if (!lack)
        lack = why_unprofiled(p, "memory");
    return fm_error_set(err, FM_UNSUPPORTED, "%s holds no memory: %s", o->files[0],
                        lack ? lack : "it was not recorded, which `fathom run --memory` does");
}

/* Is there a process with samples? */
static bool has_samples(const struct fm_profile *p)
{
    for (size_t i = 0; i < p->processes.len; i++)
        if (p->processes.data[i].sampled)
            return true;
    return false;
}

static int check_part(const struct fm_profile *p, const struct fm_report_options *o,
                      struct fm_error *err)
{
    if (o->part == FM_PART_TREE && !p->threads.len)
        return fm_error_set(err, FM_UNSUPPORTED,
                            "%s holds callers but no calling contexts, so "
                            "there is no tree to show",
                            o->files[0]);
    if (o->part == FM_PART_THREADS && !p->threads.len)
        return fm_error_set(err, FM_UNSUPPORTED, "%s holds no threads", o->files[0]);
    if (o->part == FM_PART_PROCESSES && !p->processes.len)
        return fm_error_set(err, FM_UNSUPPORTED, "%s holds no processes", o->files[0]);
    if (o->part == FM_PART_REGIONS && !p->regions.rows.len)
        return fm_error_set(err, FM_UNSUPPORTED,
                            "%s holds no regions: the program entered none (fathom.region) while "
                            "calls, lines or memory were recorded",
                            o->files[0]);
    if (fm_part_is_of_samples(o->part) && !has_samples(p))
        return fail_without_samples(o, err);
    if (fm_part_is_of_lines(o->part) && !o->memory && !fm_linetables_exist(p))
        return fail_without_lines(p, o, err);
    return 0;
}

static void make_table(struct subject *s, const struct fm_report_options *o,
                       const struct fm_flat_scope *scope, const struct fm_style *style)
{
    bool classic = o->layout == FM_LAYOUT_PSTATS;
    enum fm_names_strip strip = FM_NAMES_WHOLE;
    if (s->p->threads.len || !s->p->flat)
        s->made = fm_flat_new(s->p, scope);
    s->flat = s->made ? s->made : s->p->flat;
    if (classic && s->made && s->made->states)
        fm_flat_count_samples(s->made); /* as Python's own sampler has them */
    struct fm_flat *combined = classic ? fm_pstats_combine(s->p, s->flat) : NULL;
    if (combined) {
        fm_flat_free(s->made);
        s->flat = s->made = combined;
    }
    if (o->strip_dirs)
        strip = classic ? FM_NAMES_LABELS : FM_NAMES_FILES;
    else if (o->layout == FM_LAYOUT_TABLE && style->width > 0 && style->width < 120)
        strip = FM_NAMES_FILES; /* a narrow page: whole paths would be cut anyway */
    else if ((o->part == FM_PART_HOT || o->part == FM_PART_WAITS) && style->width > 0)
        strip = FM_NAMES_FILES; /* the place is for the lines */
    if (fm_part_is_of_lines(o->part) && !o->memory)
        s->lines = fm_linetables_new(s->p, scope, s->flat);
    if (s->lines && o->part == FM_PART_LINES && !o->view.summarize && !o->strip_dirs)
        strip = FM_NAMES_WHOLE; /* each stands on a line of its own */
    s->names = fm_names_new(s->p, s->lines ? &s->lines->flat : s->flat, strip);
}

/* Which functions are looked at before anything else. */
struct only {
    const struct fm_profile *p;
    const char *glob; /* NULL: all */
    const struct fm_linetables *lines;
    bool marked;                      /* only those that were marked */
    bool skip_zero;                   /* of the marked ones, too, only those that ran */
    const struct fm_instant_info *at; /* only those with memory then, their own if `own` */
    bool own, types;
};

static bool is_marked(const struct fm_linetables *lines, uint32_t func)
{
    size_t low = 0, high = lines->combined.marked.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lines->combined.marked.data[middle] < func)
            low = middle + 1;
        else
            high = middle;
    }
    return low < lines->combined.marked.len && lines->combined.marked.data[low] == func;
}

static bool is_asked_for(const struct fm_flat_row *row, void *data)
{
    const struct only *only = data;
    if (only->glob && !fm_function_glob(only->p, row->func, (void *)only->glob))
        return false;
    if (only->types && !fm_function_is_type(&only->p->functions.data[row->func]))
        return false;
    if (only->at)
        return only->own ? row->self[only->at->bytes] || row->self[only->at->blocks]
                         : row->total[only->at->bytes] || row->total[only->at->blocks];
    if (!only->lines)
        return true;
    bool marked = is_marked(only->lines, row->func);
    bool ran =
        row->calls > 0 || ((only->lines->sampled || only->lines->beside) && row->total_ns > 0);
    return (marked || !only->marked) && (ran || (marked && !only->skip_zero));
}

static void print_memory(const struct fm_report *r, const struct fm_report_options *o)
{
    if (o->layout == FM_LAYOUT_JSON) {
        fm_report_memory_json(r, o->part);
        return;
    }
    if (o->layout == FM_LAYOUT_CSV) {
        fm_report_memory_csv(r, o->part);
        return;
    }
    fm_report_memory_header(r);
    if (o->part == FM_PART_TREE)
        fm_report_tree(r);
    else if (o->part == FM_PART_THREADS)
        fm_report_memory_threads(r);
    else if (o->part == FM_PART_PROCESSES)
        fm_report_memory_processes(r);
    else if (o->part == FM_PART_STATS)
        fm_report_memory_stats(r);
    else if (o->part == FM_PART_REGIONS)
        fm_report_regions(r);
    else if (o->part == FM_PART_RESIDENT)
        fm_report_memory_resident(r);
    else if (o->part == FM_PART_CALLERS || o->part == FM_PART_CALLEES)
        fm_report_memory_edges(r, o->part == FM_PART_CALLERS ? FM_CALLERS : FM_CALLEES);
    else if (fm_part_is_of_lines(o->part))
        fm_report_memory_lines(r);
    else
        fm_report_memory_functions(r);
}

static int print_timeline(const struct fm_report *r, const struct fm_report_options *o,
                          struct fm_error *err)
{
    static int (*const print[][3])(const struct fm_report *, struct fm_error *) = {
        { fm_report_timeline, fm_report_timeline_json, fm_report_timeline_csv },
        { fm_report_slowest, fm_report_slowest_json, fm_report_slowest_csv },
        { fm_report_alike, fm_report_alike_json, fm_report_alike_csv },
        { fm_report_tasks, fm_report_tasks_json, fm_report_tasks_csv },
        { fm_report_gil, fm_report_gil_json, fm_report_gil_csv },
    };
    int layout = o->layout == FM_LAYOUT_JSON ? 1 : o->layout == FM_LAYOUT_CSV ? 2 : 0;
    return print[o->part - FM_PART_TIMELINE][layout](r, err);
}

static void print(const struct fm_report *r, const struct fm_report_options *o)
{
    enum fm_direction direction = o->part == FM_PART_CALLERS ? FM_CALLERS : FM_CALLEES;
    if (o->memory) {
        print_memory(r, o);
    } else if (o->layout == FM_LAYOUT_JSON) {
        fm_report_json(r, o->part);
    } else if (o->layout == FM_LAYOUT_CSV) {
        fm_report_csv(r, o->part);
    } else if (o->layout == FM_LAYOUT_PSTATS) {
        if (o->part == FM_PART_FUNCTIONS)
            fm_report_classic(r);
        else
            fm_report_classic_edges(r, direction);
    } else {
        fm_report_header(r);
        if (o->part == FM_PART_FUNCTIONS)
            fm_report_functions(r);
        else if (o->part == FM_PART_TREE)
            fm_report_tree(r);
        else if (o->part == FM_PART_THREADS)
            fm_report_threads(r);
        else if (o->part == FM_PART_PROCESSES)
            fm_report_processes(r);
        else if (o->part == FM_PART_SOURCE)
            fm_report_source(r);
        else if (o->part == FM_PART_REGIONS)
            fm_report_regions(r);
        else if (o->part == FM_PART_STATES)
            fm_report_states(r);
        else if (o->part == FM_PART_WAITS)
            fm_report_waits(r);
        else if (o->part == FM_PART_SPOTS)
            fm_report_spots(r);
        else if (o->part == FM_PART_LINES)
            fm_report_lines(r);
        else if (o->part == FM_PART_HOT)
            fm_report_hot(r);
        else if (o->part == FM_PART_ANNOTATE)
            fm_report_annotate(r);
        else
            fm_report_edges(r, direction);
    }
}

/* Let only the states that the user named count. Calls go with the others; what recording them cost
 * stays. */
static bool keep_states(struct fm_profile *p, unsigned states)
{
    fm_autofree struct fm_cost *costs = fm_costs_new(p, FM_NONE);
    for (uint32_t i = 0; i < p->processes.len; i++)
        if (p->processes.data[i].sampled)
            p->processes.data[i].own_ns = (uint64_t)costs[i].least_ns;
    return fm_samples_keep_states(p, states);
}

/* Is source text shown? It is most of the bytes of many recordings. */
static bool shows_text(enum fm_part part)
{
    return part == FM_PART_SOURCE || part == FM_PART_WAITS || part == FM_PART_SPOTS ||
           fm_part_is_of_lines(part);
}

static bool lacks_text(const struct fm_profile *p)
{
    for (size_t i = 0; i < p->sources.len; i++)
        if (!p->sources.data[i].text)
            return true;
    return false;
}

/* Of time and memory one is shown; where there is nothing else, memory. */
static int choose_memory(struct subject *s, struct fm_report_options *o, struct fm_error *err)
{
    if (!o->memory && !fm_profile_has_time(s->p) && fm_report_options_take_memory(o, err) < 0)
        return fm_error_set(err, FM_UNSUPPORTED,
                            "%s holds memory alone, and what was asked for is of time",
                            o->files[0]);
    if (!o->memory) {
        fm_profile_shed_memory(s->p);
        return 0;
    }
    if (!fm_profile_has_memory(s->p))
        return fail_without_memory(s->p, o, err);
    bool together = s->p->columns[FM_METRIC_TOGETHER].data;
    if (o->at_said && o->at == FM_AT_TOGETHER && !together)
        return fm_error_set(
            err, FM_UNSUPPORTED,
            "%s does not tell what several processes had together: that is known of "
            "one run that had several, each recorded by `fathom run --memory`",
            o->files[0]);
    o->together = together && o->process < 0 && o->thread < 0;
    if (o->rows == FM_ROWS_TYPES && !fm_profile_has_types(s->p))
        return fm_error_set(err, FM_UNSUPPORTED,
                            "%s holds no types: they were not recorded, which `fathom run --memory "
                            "--types` does on CPython 3.13 and later",
                            o->files[0]);
    if (o->at_said && o->at == FM_AT_TIME &&
        fm_report_moment_show(&o->moment, s->p, o->files[0], &s->from, &s->to, err) < 0)
        return err->status;
    if (o->part == FM_PART_RESIDENT && !s->p->memory.residents.len)
        return fm_error_set(
            err, FM_UNSUPPORTED,
            "nobody looked into the resident memory of %s: that is done while `fathom "
            "run --memory` (not sampled) runs, if it runs for some tens of milliseconds",
            o->files[0]);
    s->origin = fm_profile_shed_time(s->p, o->rows);
    return fm_report_options_settle(o, false, err);
}

/* Open what is to be shown and decide what of it, if the user did not. */
static int open_subject(struct subject *s, struct fm_report_options *o, struct fm_error *err)
{
    bool as_pstats = o->layout == FM_LAYOUT_PSTATS;
    unsigned parts =
        (shows_text(o->part) ? FM_FILE_TEXTS : 0) | (o->at == FM_AT_TIME ? FM_FILE_HISTORIES : 0);
    s->p = fm_inputs_open(o->files, as_pstats, parts, err);
    if (!s->p || choose_memory(s, o, err) < 0)
        return err->status;
    if (o->memory)
        return 0;
    if (!o->part_said && !as_pstats && fm_linetables_are_all(s->p)) {
        o->part = FM_PART_LINES;
        if (lacks_text(s->p)) {
            fm_profile_free(s->p);
            s->p = fm_inputs_open(o->files, as_pstats, FM_FILE_TEXTS, err);
            if (!s->p)
                return err->status;
            fm_profile_shed_memory(s->p);
        }
    }
    /* A file of another tool names its sources but does not hold them. */
    if (fm_part_is_of_lines(o->part) && !s->p->processes.len && !s->p->sources.len)
        fm_sources_embed(s->p);
    if (fm_report_range_is_asked(o) &&
        fm_report_range_open(o, &s->p, &s->timeline, &s->range, err) < 0)
        return err->status;
    if (o->states && !keep_states(s->p, o->states))
        return fail_without_samples(o, err);
    return fm_report_options_settle(o, s->p->lines.marked.len > 0, err);
}

static int report(struct subject *s, struct fm_report_options *o, struct fm_error *err)
{
    struct fm_report r = { .out = stdout,
                           .query = &o->query,
                           .style = fm_style_for(stdout, o->color, o->width),
                           .files = (const char *const *)o->files };
    struct only only = { .glob = o->function, .skip_zero = o->skip_zero };
    if (open_subject(s, o, err) < 0 || edit(s, o, err) < 0 || check_part(s->p, o, err) < 0 ||
        find_scope(s->p, o, &r.scope, err) < 0)
        return err->status;
    /* What the user left open is settled by now: it depends on what the recording holds. */
    r.edges_max = o->edges_max;
    r.depth_max = o->depth_max;
    r.rows_max = o->rows_max;
    r.states = o->states;
    r.min_percent = o->min_percent;
    r.view = o->view;
    if (o->memory)
        r.memory = (struct fm_memory_view){ &fm_instants[o->at], o->rows, s->origin, o->rows_max,
                                            o->moment.range,     s->from, s->to };
    make_table(s, o, &r.scope, &r.style);
    only.p = s->p;
    only.lines = s->lines;
    only.marked = s->lines && o->part == FM_PART_LINES && s->lines->any_marked && !o->function;
    only.at = r.memory.at;
    only.own = fm_part_is_of_lines(o->part);
    only.types = o->rows == FM_ROWS_TYPES;
    if (o->function || s->lines || only.at) {
        o->query.only = is_asked_for;
        o->query.only_data = &only;
    }
    r.p = s->p;
    r.flat = s->flat;
    r.names = s->names;
    r.lines = s->lines;
    r.timeline = s->timeline;
    r.range = s->range;
    fm_query_run(&o->query, s->lines ? &s->lines->flat : s->flat, s->names, &r.selection);
    if (o->function && !r.selection.rows.len && !o->limited)
        fm_error_set(err, FM_UNSUPPORTED, "there is no function \"%s\"%s in the recording",
                     o->function, s->lines ? " with lines" : "");
    else if (s->timeline)
        print_timeline(&r, o, err);
    else
        print(&r, o);
    fm_selection_release(&r.selection);
    if (fflush(stdout) != 0 || ferror(stdout))
        return fm_error_set(err, FM_CANNOT_WRITE, "the report cannot be written");
    return err->status;
}

int fm_verb_report(int argc, char **argv)
{
    struct fm_report_options o;
    struct fm_error err = FM_ERROR_INIT;
    struct subject s = { 0 };
    int status = fm_report_options_parse(&o, argc, argv, &err);
    if (status == 0)
        status = report(&s, &o, &err);
    fm_names_free(s.names);
    fm_linetables_free(s.lines);
    free(s.origin);
    fm_flat_free(s.made);
    fm_timeline_free(s.timeline);
    fm_profile_free(s.p);
    fm_report_options_release(&o);
    if (status >= 0)
        return 0;
    if (status == FM_USAGE)
        return fm_verb_usage("report", "%s", err.text);
    return fm_verb_fail("report", &err);
}
