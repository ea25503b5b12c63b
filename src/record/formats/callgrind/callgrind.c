/*
 * Writes the callgrind format, version 1, for KCachegrind, QCachegrind and callgrind_annotate;
 * callgrind_read.c reads it.
 *
 * A function of the file is a function of the profile at one of two levels, as valgrind has it:
 * "f" while it is not active already, "f'2" while it is. So the time of a call includes no call
 * twice, and inclusive times come out right in tools that only add up. Functions of one file and
 * name are told apart by " [2]", " [3]", … in the order of the profile.
 *
 * Costs are nanoseconds. A function with recorded lines has its own time on them (divided between
 * the levels as the function's own time is); what no line accounts for, and all of a function
 * without lines, is on its first line. Which line made a call is not known: calls are on the first
 * line of the caller. Where contexts are lines (memory) own numbers and calls are exactly on them. Lines from .lprof have only times that include callees: these are taken.
 */
#include "record/formats/callgrind/callgrind.h"

#include <string.h>

#include "base/clean.h"
#include "base/map.h"
#include "base/memory.h"
#include "record/model/derive/flat.h"

/* What a line had by calling a function, where contexts are lines. */
struct line_call {
    uint32_t line;
    int64_t total;
    uint32_t next; /* of the same two functions, or FM_NONE */
};

struct callgrind_saver {
    const struct fm_profile *p;
    struct fm_profile *levels; /* with a function of its own for each level */
    uint32_t *base;            /* by function of `levels`: the function of `p` */
    uint32_t *second;          /* by function of `p`: its second level, or FM_NONE */
    struct fm_flat *flat;      /* of `levels` */
    uint32_t *row_of;          /* by function of `levels`: row, or FM_NONE */
    uint32_t *edges_of;        /* by row: where its calls begin in `calls`; one more at the end */
    uint32_t *calls;           /* edges, by caller */
    struct fm_lines lines;     /* of `p`, without processes; self_ns is what to write */
    uint32_t *lines_of;        /* by function of `p`: its first row in `lines`, or FM_NONE */
    bool lined;                /* contexts are lines: `lines` and `lines_of` are of `levels` */
    bool hits;                 /* lines were counted */
    struct fm_map calls_of;    /* if lined, (caller, callee) of `levels`: the first of its … */
    FM_VEC(struct line_call) line_calls;
    struct fm_map files, functions; /* that have a number in the file already */
    uint32_t *twin;                 /* by function of `p`: 0, or n of " [n]" */
    const char *event;              /* what the numbers are: "ns" */
    int64_t sum_ns, sum_hits, sums[FM_METRIC_COUNT];
    struct fm_buffer body;
};

/* ---- the levels of recursion ---- */

static uint32_t level_function(struct callgrind_saver *s, uint32_t func, uint32_t active)
{
    if (!active)
        return func;
    if (s->second[func] == FM_NONE) {
        s->second[func] = fm_profile_function_distinct(s->levels, &s->p->functions.data[func]);
        s->base = fm_realloc(s->base, s->levels->functions.len, sizeof *s->base);
        s->base[s->second[func]] = func;
    }
    return s->second[func];
}

static void level_add(struct callgrind_saver *s, uint32_t node, uint32_t parent, uint32_t func)
{
    uint32_t copy = fm_profile_node_at(s->levels, parent, func, s->p->nodes.data[node].line);
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        fm_profile_add(s->levels, (enum fm_metric)m, copy,
                       fm_profile_value(s->p, (enum fm_metric)m, node));
}

struct visit {
    uint32_t node, copy;
};

/* Copy a tree, depth first, with a count of how often each function is on the way down. */
static void level_tree(struct callgrind_saver *s, uint32_t root, uint32_t new_root,
                       const uint32_t *child, const uint32_t *sibling, uint32_t *active)
{
    FM_VEC(struct visit) stack = { 0 };
    uint32_t next = child[root], parent = new_root;
    while (next != FM_NONE || stack.len) {
        if (next == FM_NONE) {
            struct visit done = stack.data[--stack.len];
            active[s->p->nodes.data[done.node].func]--;
            next = sibling[done.node];
            parent = stack.len ? stack.data[stack.len - 1].copy : new_root;
            continue;
        }
        uint32_t func = s->p->nodes.data[next].func;
        level_add(s, next, parent, level_function(s, func, active[func]++));
        parent = (uint32_t)s->levels->nodes.len - 1;
        fm_vec_push(&stack, ((struct visit){ next, parent }));
        next = child[next];
    }
    fm_vec_release(&stack);
}

static void split_levels(struct callgrind_saver *s)
{
    const struct fm_profile *p = s->p;
    size_t n = p->nodes.len;
    fm_autofree uint32_t *child = fm_malloc((n + 1) * sizeof *child);
    fm_autofree uint32_t *sibling = fm_malloc((n + 1) * sizeof *sibling);
    fm_autofree uint32_t *active = fm_calloc(p->functions.len + 1, sizeof *active);
    memset(child, 0xff, (n + 1) * sizeof *child); /* FM_NONE */
    for (size_t i = n; i-- > 0;) {
        uint32_t parent = p->nodes.data[i].parent;
        if (parent == FM_NONE)
            continue;
        sibling[i] = child[parent];
        child[parent] = (uint32_t)i;
    }
    fm_profile_reserve(s->levels, n);
    for (size_t t = 0; t < p->threads.len; t++) {
        struct fm_thread own = { .process = p->threads.data[t].process };
        uint32_t thread = fm_profile_thread(s->levels, &own);
        level_tree(s, p->threads.data[t].root, s->levels->threads.data[thread].root, child, sibling,
                   active);
    }
}

/* Strings, processes and functions of `levels` begin as those of `p`, with the same numbers. */
static void make_levels(struct callgrind_saver *s)
{
    const struct fm_profile *p = s->p;
    s->levels = fm_profile_new();
    for (uint32_t i = 0; i < fm_strings_count(p->strings); i++)
        fm_profile_string_of(s->levels, p, i);
    s->base = fm_malloc((p->functions.len + 1) * sizeof *s->base);
    s->second = fm_malloc((p->functions.len + 1) * sizeof *s->second);
    for (uint32_t f = 0; f < p->functions.len; f++) {
        s->base[fm_profile_function(s->levels, &p->functions.data[f])] = f;
        s->second[f] = FM_NONE;
    }
    for (size_t i = 0; i < p->processes.len; i++) /* flat asks what was recorded in them */
        fm_vec_push(&s->levels->processes, p->processes.data[i]);
    split_levels(s);
}

/* ---- tables ---- */

static void make_flat(struct callgrind_saver *s)
{
    s->flat = fm_flat_new(s->levels, NULL);
    if (s->p->flat)
        fm_flat_add(s->flat, s->p->flat);
    size_t rows = s->flat->rows.len, functions = s->levels->functions.len;
    s->row_of = fm_malloc((functions + 1) * sizeof *s->row_of);
    memset(s->row_of, 0xff, (functions + 1) * sizeof *s->row_of);
    for (uint32_t i = 0; i < rows; i++)
        s->row_of[s->flat->rows.data[i].func] = i;
    s->edges_of = fm_calloc(rows + 2, sizeof *s->edges_of);
    s->calls = fm_malloc((s->flat->edges.len + 1) * sizeof *s->calls);
    for (size_t i = 0; i < s->flat->edges.len; i++)
        s->edges_of[s->flat->edges.data[i].caller + 2]++;
    for (size_t i = 2; i < rows + 2; i++)
        s->edges_of[i] += s->edges_of[i - 1];
    for (uint32_t i = 0; i < s->flat->edges.len; i++)
        s->calls[s->edges_of[s->flat->edges.data[i].caller + 1]++] = i;
}

/* Is its time that of samples beside exact times, to which it must not be added? */
static bool is_sampled_beside(const struct fm_profile *p, const struct fm_line *row)
{
    return !row->hits && row->samples && row->process < p->processes.len &&
           p->processes.data[row->process].calls;
}

/* What contexts that are lines have of their own. */
static void add_lines_of_nodes(struct callgrind_saver *s)
{
    const struct fm_profile *levels = s->levels;
    fm_autofree int64_t *own = fm_profile_selves_new(levels, FM_METRIC_TOTAL);
    for (size_t i = 0; i < levels->nodes.len; i++) {
        const struct fm_node *node = &levels->nodes.data[i];
        if (node->line && own[i] > 0)
            fm_lines_add(&s->lines, FM_NONE, node->func, node->line, false)->self_ns = own[i];
    }
}

static void add_lines(struct callgrind_saver *s)
{
    const struct fm_profile *p = s->p;
    s->hits = p->lines.rows.len > 0;
    for (size_t i = 0; i < p->lines.rows.len; i++) {
        const struct fm_line *row = &p->lines.rows.data[i];
        if (is_sampled_beside(p, row))
            continue;
        struct fm_line *copy = fm_lines_add(&s->lines, FM_NONE, row->func, row->line, false);
        bool inclusive = p->lines.unit_s > 0 && row->process == FM_NONE && !row->self_ns;
        copy->self_ns = inclusive ? row->total_ns : row->self_ns;
        copy->self_ns = copy->self_ns > 0 ? copy->self_ns : 0;
        copy->hits = row->hits > 0 ? row->hits : 0;
    }
}

static void make_lines(struct callgrind_saver *s)
{
    size_t functions = s->levels->functions.len;
    s->lined = fm_profile_fact_get(s->p, "metric") && s->p->has_lined_nodes;
    if (s->lined)
        add_lines_of_nodes(s);
    else
        add_lines(s);
    fm_lines_sort(&s->lines);
    s->lines_of = fm_malloc((functions + 1) * sizeof *s->lines_of);
    memset(s->lines_of, 0xff, (functions + 1) * sizeof *s->lines_of);
    for (size_t i = s->lines.rows.len; i-- > 0;)
        s->lines_of[s->lines.rows.data[i].func] = (uint32_t)i;
}

/* The call of this line in the list that begins at `first`. */
static struct line_call *line_call_at(struct callgrind_saver *s, uint32_t first, uint32_t line)
{
    for (uint32_t i = first; i != FM_NONE; i = s->line_calls.data[i].next)
        if (s->line_calls.data[i].line == line)
            return &s->line_calls.data[i];
    uint32_t rest = s->line_calls.data[first].next;
    s->line_calls.data[first].next = (uint32_t)s->line_calls.len;
    fm_vec_push(&s->line_calls, ((struct line_call){ line, 0, rest }));
    return &s->line_calls.data[s->line_calls.len - 1];
}

/* In `levels` the nodes below one follow it: a call below another of the same two functions is part of that. */
static void make_line_calls(struct callgrind_saver *s)
{
    const struct fm_profile *l = s->levels;
    size_t n = l->nodes.len;
    fm_autofree uint32_t *end = fm_malloc((n + 1) * sizeof *end);
    fm_autofree uint32_t *busy_until = fm_calloc(n + 1, sizeof *busy_until);
    for (size_t i = n; i-- > 0;) {
        end[i] = (uint32_t)i + 1;
        for (size_t k = i + 1; k < n && l->nodes.data[k].parent == i; k = end[k])
            end[i] = end[k];
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t up = l->nodes.data[i].parent, line;
        bool is_new;
        if (up == FM_NONE || l->nodes.data[up].parent == FM_NONE)
            continue;
        line = l->nodes.data[up].line ? l->nodes.data[up].line
                                      : l->functions.data[l->nodes.data[up].func].line;
        uint32_t first =
            *fm_map_at(&s->calls_of, fm_map_pair(l->nodes.data[up].func, l->nodes.data[i].func),
                       (uint32_t)s->line_calls.len, &is_new);
        if (is_new)
            fm_vec_push(&s->line_calls, ((struct line_call){ line, 0, FM_NONE }));
        if (i < busy_until[first])
            continue;
        busy_until[first] = end[i];
        struct line_call *call = line_call_at(s, first, line);
        call->total = fm_sum(call->total, fm_profile_value(l, FM_METRIC_TOTAL, i));
    }
}

/* Number those of one file and name, among the functions that will be written. */
static void number_twins(struct callgrind_saver *s)
{
    struct fm_map names = { 0 };
    s->twin = fm_calloc(s->p->functions.len + 1, sizeof *s->twin);
    for (uint32_t f = 0; f < s->p->functions.len; f++) {
        const struct fm_function *function = &s->p->functions.data[f];
        if (s->row_of[f] == FM_NONE && s->lines_of[f] == FM_NONE && s->second[f] == FM_NONE)
            continue;
        uint64_t key = fm_map_pair(function->file, function->qualname);
        uint32_t *count = fm_map_at(&names, key, 0, NULL);
        if (++*count > 1)
            s->twin[f] = *count;
    }
    fm_map_release(&names);
}

/* ---- the text ---- */

/* A name may not end its line, and readers want UTF-8. */
static void put_name(struct fm_buffer *out, const char *text)
{
    fm_clean_add(out, text, strlen(text));
}

/* Written out once, then by its number. */
static void put_file(struct callgrind_saver *s, const char *key, uint32_t file)
{
    bool is_new;
    uint32_t fresh = (uint32_t)s->files.len + 1;
    uint32_t number = *fm_map_at(&s->files, file, fresh, &is_new);
    const char *text = fm_profile_text(s->p, file);
    fm_buffer_addf(&s->body, "%s=(%u)", key, number);
    if (is_new) {
        fm_buffer_add_char(&s->body, ' ');
        put_name(&s->body, *text ? text : FM_CALLGRIND_NO_FILE);
    }
    fm_buffer_add_char(&s->body, '\n');
}

static void put_function(struct callgrind_saver *s, const char *key, uint32_t func)
{
    bool is_new;
    uint32_t base = s->base[func], fresh = (uint32_t)s->functions.len + 1;
    uint32_t number = *fm_map_at(&s->functions, func, fresh, &is_new);
    const char *text = fm_profile_text(s->p, s->p->functions.data[base].qualname);
    fm_buffer_addf(&s->body, "%s=(%u)", key, number);
    if (is_new) {
        fm_buffer_add_char(&s->body, ' ');
        put_name(&s->body, *text ? text : "?");
        if (s->twin[base])
            fm_buffer_addf(&s->body, " [%u]", s->twin[base]);
        if (func != base)
            fm_buffer_add_text(&s->body, "'2");
    }
    fm_buffer_add_char(&s->body, '\n');
}

/* The metrics that have a column of their own everywhere; NULL: zeros, which may be left out. */
static void put_metrics(struct callgrind_saver *s, const int64_t *numbers)
{
    for (int m = 0; numbers && m < FM_METRIC_COUNT; m++)
        if (s->flat->columns >> m & 1)
            fm_buffer_addf(&s->body, " %lld", numbers[m] > 0 ? (long long)numbers[m] : 0LL);
    fm_buffer_add_char(&s->body, '\n');
}

static void put_cost(struct callgrind_saver *s, uint32_t line, int64_t self_ns, int64_t hits,
                     const int64_t *numbers)
{
    bool further = numbers && s->flat->columns;
    fm_buffer_addf(&s->body, "%u %lld", line, (long long)self_ns);
    if (hits || (further && s->hits))
        fm_buffer_addf(&s->body, " %lld", (long long)hits);
    put_metrics(s, numbers);
    for (int m = 0; further && m < FM_METRIC_COUNT; m++)
        s->sums[m] = fm_sum(s->sums[m], numbers[m] > 0 ? numbers[m] : 0);
    s->sum_ns = fm_sum(s->sum_ns, self_ns);
    s->sum_hits = fm_sum(s->sum_hits, hits);
}

static int64_t row_self(const struct callgrind_saver *s, uint32_t func)
{
    uint32_t row = func == FM_NONE ? FM_NONE : s->row_of[func];
    int64_t self_ns = row == FM_NONE ? 0 : s->flat->rows.data[row].self_ns;
    return self_ns > 0 ? self_ns : 0;
}

/* The part of a number that goes to one of the levels. */
static int64_t share(const struct callgrind_saver *s, uint32_t func, int64_t number)
{
    uint32_t base = s->base[func];
    int64_t first = row_self(s, base), second = row_self(s, s->second[base]);
    if (!second)
        return func == base ? number : 0;
    int64_t lower = (int64_t)((__int128)number * first / ((__int128)first + second));
    return func == base ? lower : number - lower;
}

/* A function's own time: on its lines, the rest on its first. */
static void put_self(struct callgrind_saver *s, uint32_t func)
{
    uint32_t base = s->base[func], lines_of = s->lined ? func : base;
    int64_t rest = row_self(s, func);
    for (size_t i = s->lines_of[lines_of]; i < s->lines.rows.len; i++) {
        const struct fm_line *row = &s->lines.rows.data[i];
        if (row->func != lines_of)
            break;
        int64_t ns = s->lined ? row->self_ns : share(s, func, row->self_ns);
        int64_t hits = s->lined ? 0 : share(s, func, row->hits);
        if (ns || hits)
            put_cost(s, row->line, ns, hits, NULL);
        rest = rest > ns ? rest - ns : 0;
    }
    uint32_t row = s->row_of[func];
    const int64_t *numbers =
        s->flat->columns && row != FM_NONE ? s->flat->rows.data[row].self : NULL;
    if (rest || numbers || s->lines_of[lines_of] == FM_NONE)
        put_cost(s, s->p->functions.data[base].line, rest, 0, numbers);
}

/* As the lines had it, each as a call of its own; how many there were was not recorded. */
static void put_line_calls(struct callgrind_saver *s, uint32_t caller, uint32_t func)
{
    const struct fm_function *callee = &s->p->functions.data[s->base[func]];
    const uint32_t *first = fm_map_find(&s->calls_of, fm_map_pair(caller, func));
    for (uint32_t i = first ? *first : FM_NONE; i != FM_NONE; i = s->line_calls.data[i].next) {
        const struct line_call *call = &s->line_calls.data[i];
        if (call->total <= 0)
            continue;
        put_file(s, "cfi", callee->file);
        put_function(s, "cfn", func);
        fm_buffer_addf(&s->body, "calls=1 %u\n%u %lld\n", callee->line, call->line,
                       (long long)call->total);
    }
}

static void put_calls(struct callgrind_saver *s, uint32_t row)
{
    const struct fm_flat *flat = s->flat;
    uint32_t caller = s->base[flat->rows.data[row].func];
    for (uint32_t i = s->edges_of[row]; i < s->edges_of[row + 1]; i++) {
        const struct fm_flat_edge *edge = &flat->edges.data[s->calls[i]];
        uint32_t func = flat->rows.data[edge->callee].func;
        if (s->lined) {
            put_line_calls(s, flat->rows.data[row].func, func);
            continue;
        }
        const struct fm_function *callee = &s->p->functions.data[s->base[func]];
        /* A call that was open before recording began was counted nowhere, but it was one. */
        long long calls = edge->calls > 0 ? (long long)edge->calls : 1;
        put_file(s, "cfi", callee->file);
        put_function(s, "cfn", func);
        fm_buffer_addf(&s->body, "calls=%lld %u\n%u %lld%s", calls, callee->line,
                       s->p->functions.data[caller].line,
                       edge->total_ns > 0 ? (long long)edge->total_ns : 0LL,
                       flat->columns && s->hits ? " 0" : "");
        put_metrics(s, edge->total);
    }
}

static void put_all(struct callgrind_saver *s)
{
    for (uint32_t func = 0; func < s->levels->functions.len; func++) {
        uint32_t base = s->base[func];
        if (s->row_of[func] == FM_NONE && (func != base || s->lines_of[base] == FM_NONE))
            continue;
        fm_buffer_add_char(&s->body, '\n');
        put_file(s, "fl", s->p->functions.data[base].file);
        put_function(s, "fn", func);
        put_self(s, func);
        if (s->row_of[func] != FM_NONE)
            put_calls(s, s->row_of[func]);
    }
}

static void put_header(const struct callgrind_saver *s, struct fm_buffer *out)
{
    const char *command = fm_profile_fact_get(s->p, "command");
    fm_buffer_add_text(out, "# callgrind format\nversion: 1\n");
    fm_buffer_addf(out, "creator: %s %s\n", FM_CALLGRIND_CREATOR, FATHOM_VERSION);
    if (command) {
        fm_buffer_add_text(out, "cmd: ");
        put_name(out, command);
        fm_buffer_add_char(out, '\n');
    }
    fm_buffer_add_text(out, "positions: line\n");
    fm_autobuffer events = FM_BUFFER_INIT, sums = FM_BUFFER_INIT;
    fm_buffer_addf(out, "event: %s : %s\n", s->event,
                   strcmp(s->event, "ns") == 0 ? "nanoseconds" : s->event);
    if (s->hits)
        fm_buffer_addf(out, "event: %s : times a line began\n", FM_CALLGRIND_HITS);
    fm_buffer_addf(&events, "%s%s", s->event, s->hits ? " " FM_CALLGRIND_HITS : "");
    fm_buffer_addf(&sums, "%lld", (long long)s->sum_ns);
    if (s->hits)
        fm_buffer_addf(&sums, " %lld", (long long)s->sum_hits);
    for (int m = 0; m < FM_METRIC_COUNT; m++) {
        const struct fm_metric_info *info = fm_metric_info((enum fm_metric)m);
        if (!(s->flat->columns >> m & 1))
            continue;
        fm_buffer_addf(out, "event: %s : %s\n", info->name, info->title);
        fm_buffer_addf(&events, " %s", info->name);
        fm_buffer_addf(&sums, " %lld", (long long)s->sums[m]);
    }
    fm_buffer_addf(out, "events: %s\nsummary: %s\n", events.data, sums.data);
}

/* Events are words. */
static const char *event_of(const struct fm_profile *p)
{
    const char *unit = fm_profile_fact_get(p, "unit");
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    return unit && *unit && !unit[strspn(unit, letters)] ? unit : "ns";
}

static void saver_release(struct callgrind_saver *s)
{
    fm_profile_free(s->levels);
    fm_flat_free(s->flat);
    fm_lines_release(&s->lines);
    fm_map_release(&s->files);
    fm_map_release(&s->functions);
    fm_map_release(&s->calls_of);
    fm_vec_release(&s->line_calls);
    fm_buffer_release(&s->body);
    free(s->base);
    free(s->second);
    free(s->row_of);
    free(s->edges_of);
    free(s->calls);
    free(s->lines_of);
    free(s->twin);
}

static int save(const struct fm_profile *p, struct fm_buffer *out, struct fm_error *err)
{
    struct callgrind_saver s = { .p = p, .event = event_of(p) };
    (void)err;
    make_levels(&s);
    make_flat(&s);
    make_lines(&s);
    if (s.lined)
        make_line_calls(&s);
    number_twins(&s);
    put_all(&s);
    put_header(&s, out);
    fm_buffer_add(out, s.body.data, s.body.len);
    saver_release(&s);
    return 0;
}

static const char *const suffixes[] = { ".callgrind", NULL };

const struct fm_format fm_format_callgrind = {
    .name = "callgrind",
    .title = "callgrind, for KCachegrind",
    .suffixes = suffixes,
    .prefix = "callgrind.out.",
    .recognise = fm_callgrind_recognise,
    .load = fm_callgrind_load,
    .save = save,
};
