/*
 * Reshaping trees; see edit.h.
 *
 * Every operation is a forward pass over the nodes, in which a parent comes before its children, so
 * each node finds the place that its parent has got in the new tree. Nothing recurses. A profile
 * without a tree has nothing to reshape: its ready-made table is copied as it is.
 */
#include "record/model/edit.h"

#include <fnmatch.h>
#include <string.h>

#include "base/buffer.h"
#include "base/map.h"
#include "base/memory.h"
#include "record/model/flat.h"

/* ---- a copy of everything but the nodes ---- */

#define VEC_COPY(to, from)                                                                         \
    do {                                                                                           \
        for (size_t fm_i_ = 0; fm_i_ < (from)->len; fm_i_++)                                       \
            fm_vec_push((to), (from)->data[fm_i_]);                                                \
    } while (0)

/* Strings and functions keep their ids; threads get their roots, in order, as the first nodes. */
static struct fm_profile *copy_without_nodes(const struct fm_profile *p)
{
    struct fm_profile *copy = fm_profile_new();
    for (uint32_t i = 0; i < fm_strings_count(p->strings); i++)
        fm_strings_add(copy->strings, fm_strings_get(p->strings, i), fm_strings_len(p->strings, i));
    for (size_t i = 0; i < p->functions.len; i++)
        fm_profile_function(copy, &p->functions.data[i]);
    VEC_COPY(&copy->processes, &p->processes);
    VEC_COPY(&copy->notes, &p->notes);
    VEC_COPY(&copy->sources, &p->sources);
    VEC_COPY(&copy->facts, &p->facts);
    for (size_t i = 0; i < p->threads.len; i++)
        fm_profile_thread(copy, &p->threads.data[i]);
    if (p->flat) {
        copy->flat = fm_calloc(1, sizeof *copy->flat);
        fm_flat_merge(copy->flat, p->flat);
    }
    return copy;
}

/* ---- what stands beside the trees ---- */

static uint32_t append_string(struct fm_profile *into, const struct fm_profile *from, uint32_t id)
{
    return fm_strings_add(into->strings, fm_strings_get(from->strings, id),
                          fm_strings_len(from->strings, id));
}

static uint32_t moved_process(uint32_t process, uint32_t first_process)
{
    return process == FM_NONE ? FM_NONE : process + first_process;
}

/* Add the lines of functions that have a new number (not FM_NONE) and their marks. */
static void copy_lines(struct fm_lines *to, const struct fm_lines *from, const uint32_t *functions,
                       uint32_t first_process)
{
    for (size_t i = 0; i < from->rows.len; i++) {
        const struct fm_line *row = &from->rows.data[i];
        uint32_t func = functions[row->func];
        if (func == FM_NONE)
            continue;
        struct fm_line *copy =
            fm_lines_add(to, moved_process(row->process, first_process), func, row->line, false);
        fm_lines_combine(to, copy, from, row);
    }
    for (size_t i = 0; i < from->marked.len; i++)
        if (functions[from->marked.data[i]] != FM_NONE)
            fm_lines_mark(to, functions[from->marked.data[i]]);
    /* Of two timers the coarser one describes the sum, as line_profiler has it. */
    if (from->unit_s > to->unit_s)
        to->unit_s = from->unit_s;
    fm_lines_sort(to);
}

/* Add those in functions that have a new number (not FM_NONE). */
static void copy_samples(struct fm_profile *to, const struct fm_profile *from,
                         const uint32_t *functions, uint32_t first_process)
{
    for (size_t i = 0; i < from->samples.spots.len; i++) {
        struct fm_spot spot = from->samples.spots.data[i];
        spot.func = functions[spot.func];
        spot.process = moved_process(spot.process, first_process);
        if (spot.func != FM_NONE)
            fm_vec_push(&to->samples.spots, spot);
    }
    for (size_t i = 0; i < from->samples.waits.len; i++) {
        struct fm_wait wait = from->samples.waits.data[i];
        wait.func = functions[wait.func];
        wait.process = moved_process(wait.process, first_process);
        wait.detail = append_string(to, from, wait.detail);
        if (wait.func != FM_NONE)
            fm_vec_push(&to->samples.waits, wait);
    }
    fm_samples_sort(&to->samples);
}

/* ---- building ---- */

struct edit {
    const struct fm_profile *from;
    struct fm_profile *to;
    bool *matches;          /* per function of `from` */
    uint32_t *place;        /* per node of `from`: its node in `to`, or FM_NONE */
    struct fm_map children; /* (parent, function) in `to` → node */
};

static void edit_init(struct edit *e, const struct fm_profile *p, fm_function_match *match,
                      void *data)
{
    *e = (struct edit){ .from = p, .to = copy_without_nodes(p) };
    e->matches = fm_calloc(p->functions.len, sizeof *e->matches);
    for (uint32_t f = 0; f < p->functions.len; f++)
        e->matches[f] = p->functions.data[f].kind != FM_FUNCTION_ROOT && match(p, f, data);
    e->place = fm_malloc(p->nodes.len * sizeof *e->place);
}

/* A function keeps its lines, spots and waits if it is still in some tree; one that was in none
 * before (lines may come without calls) if it would be kept there. */
static void edit_places(struct edit *e, bool keeps_matches)
{
    const struct fm_samples *samples = &e->from->samples;
    size_t n = e->from->functions.len;
    fm_autofree uint32_t *functions = fm_malloc(n * sizeof *functions);
    if (!e->from->lines.rows.len && !e->from->lines.marked.len && !samples->spots.len &&
        !samples->waits.len)
        return;
    for (uint32_t f = 0; f < n; f++)
        functions[f] = e->matches[f] == keeps_matches ? f : FM_NONE;
    for (size_t i = 0; i < e->from->nodes.len; i++)
        functions[e->from->nodes.data[i].func] = FM_NONE;
    for (size_t i = 0; i < e->to->nodes.len; i++)
        functions[e->to->nodes.data[i].func] = e->to->nodes.data[i].func;
    copy_lines(&e->to->lines, &e->from->lines, functions, 0);
    copy_samples(e->to, e->from, functions, 0);
}

static struct fm_profile *edit_finish(struct edit *e, bool keeps_matches)
{
    edit_places(e, keeps_matches);
    free(e->matches);
    free(e->place);
    fm_map_release(&e->children);
    return e->to;
}

/* The child of `parent` for `func`: the one that is there, or a new one. */
static uint32_t edit_child(struct edit *e, uint32_t parent, uint32_t func)
{
    bool is_new;
    uint32_t fresh = (uint32_t)e->to->nodes.len;
    uint32_t node = *fm_map_at(&e->children, fm_map_pair(parent, func), fresh, &is_new);
    if (is_new)
        fm_profile_node(e->to, parent, func);
    return node;
}

static void edit_add_numbers(struct edit *e, uint32_t node, uint32_t from_node)
{
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        fm_profile_add(e->to, (enum fm_metric)m, node,
                       fm_profile_value(e->from, (enum fm_metric)m, from_node));
}

/* What is of the node alone, and so in no number of its callers. */
static void edit_add_own(struct edit *e, uint32_t node, uint32_t from_node)
{
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        if (fm_metric_is_self((enum fm_metric)m))
            fm_profile_add(e->to, (enum fm_metric)m, node,
                           fm_profile_value(e->from, (enum fm_metric)m, from_node));
}

/* What includes callees, from one node of `from` or of `to` to another of `to`. */
static void edit_add_totals(struct edit *e, uint32_t node, const struct fm_profile *from,
                            uint32_t from_node)
{
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        if (fm_metric_info((enum fm_metric)m)->scope == FM_OF_CALLEES)
            fm_profile_add(e->to, (enum fm_metric)m, node,
                           fm_profile_value(from, (enum fm_metric)m, from_node));
}

static uint32_t new_root(const struct edit *e, uint32_t node)
{
    return e->to->threads.data[e->from->nodes.data[node].thread].root;
}

struct fm_profile *fm_profile_fold(const struct fm_profile *p, fm_function_match *match, void *data)
{
    struct edit e;
    edit_init(&e, p, match, data);
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        const struct fm_node *node = &p->nodes.data[i];
        if (node->parent == FM_NONE) {
            e.place[i] = new_root(&e, i);
        } else if (e.matches[node->func]) {
            /* Its time is part of its caller's total already; its callees follow it there. */
            e.place[i] = e.place[node->parent];
            edit_add_own(&e, e.place[i], i);
            continue;
        } else {
            e.place[i] = edit_child(&e, e.place[node->parent], node->func);
        }
        edit_add_numbers(&e, e.place[i], i);
    }
    return edit_finish(&e, false);
}

struct fm_profile *fm_profile_root(const struct fm_profile *p, fm_function_match *match, void *data)
{
    struct edit e;
    edit_init(&e, p, match, data);
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        const struct fm_node *node = &p->nodes.data[i];
        uint32_t parent = node->parent == FM_NONE ? FM_NONE : e.place[node->parent];
        e.place[i] = FM_NONE;
        if (node->parent == FM_NONE || (parent == FM_NONE && !e.matches[node->func]))
            continue;
        if (parent == FM_NONE) {
            parent = new_root(&e, i);
            edit_add_totals(&e, parent, p, i);
        }
        e.place[i] = edit_child(&e, parent, node->func);
        edit_add_numbers(&e, e.place[i], i);
    }
    return edit_finish(&e, true);
}

/* What filtering knows about a node. */
enum { LEADS = 1 /* to a match, or is inside one */, INSIDE = 2 };

static uint8_t *filter_marks(const struct edit *e)
{
    const struct fm_profile *p = e->from;
    uint8_t *marks = fm_calloc(p->nodes.len, 1);
    for (size_t i = 0; i < p->nodes.len; i++) {
        const struct fm_node *node = &p->nodes.data[i];
        if (node->parent != FM_NONE && (e->matches[node->func] || marks[node->parent] & INSIDE))
            marks[i] = INSIDE | LEADS;
    }
    for (size_t i = p->nodes.len; i-- > 0;)
        if (marks[i] && p->nodes.data[i].parent != FM_NONE)
            marks[p->nodes.data[i].parent] |= LEADS;
    return marks;
}

struct fm_profile *fm_profile_filter(const struct fm_profile *p, fm_function_match *match,
                                     void *data)
{
    struct edit e;
    edit_init(&e, p, match, data);
    fm_autofree uint8_t *marks = filter_marks(&e);
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        const struct fm_node *node = &p->nodes.data[i];
        if (node->parent == FM_NONE) {
            e.place[i] = new_root(&e, i);
        } else if (marks[i]) {
            e.place[i] = edit_child(&e, e.place[node->parent], node->func);
            if (marks[i] & INSIDE)
                edit_add_numbers(&e, e.place[i], i);
            else
                fm_profile_add(e.to, FM_METRIC_CALLS, e.place[i],
                               fm_profile_value(p, FM_METRIC_CALLS, i));
        }
    }
    /* Above a match only the way to it is kept: the time of what remains below. */
    for (uint32_t i = (uint32_t)p->nodes.len; i-- > 0;) {
        uint32_t parent = p->nodes.data[i].parent;
        if (marks[i] && parent != FM_NONE && !(marks[parent] & INSIDE))
            edit_add_totals(&e, e.place[parent], e.to, e.place[i]);
    }
    return edit_finish(&e, true);
}

/* ---- appending ---- */

static uint32_t *append_functions(struct fm_profile *into, const struct fm_profile *from)
{
    uint32_t *functions = fm_malloc(from->functions.len * sizeof *functions);
    for (size_t i = 0; i < from->functions.len; i++) {
        struct fm_function f = from->functions.data[i];
        f.name = append_string(into, from, f.name);
        f.qualname = append_string(into, from, f.qualname);
        f.file = append_string(into, from, f.file);
        functions[i] = fm_profile_function(into, &f);
    }
    return functions;
}

static void append_processes(struct fm_profile *into, const struct fm_profile *from)
{
    for (size_t i = 0; i < from->processes.len; i++) {
        struct fm_process process = from->processes.data[i];
        process.exe = append_string(into, from, process.exe);
        process.command = append_string(into, from, process.command);
        process.cwd = append_string(into, from, process.cwd);
        process.version = append_string(into, from, process.version);
        fm_profile_process(into, &process);
    }
}

static void append_trees(struct fm_profile *into, const struct fm_profile *from,
                         uint32_t first_process, const uint32_t *functions)
{
    uint32_t first_thread = (uint32_t)into->threads.len;
    fm_autofree uint32_t *place = fm_malloc(from->nodes.len * sizeof *place);
    for (size_t i = 0; i < from->threads.len; i++) {
        struct fm_thread thread = from->threads.data[i];
        thread.process += first_process;
        thread.name = append_string(into, from, thread.name);
        fm_profile_thread_rootless(into, &thread);
    }
    fm_profile_reserve(into, into->nodes.len + from->nodes.len);
    for (uint32_t i = 0; i < from->nodes.len; i++) {
        const struct fm_node *node = &from->nodes.data[i];
        if (node->parent == FM_NONE)
            place[i] = fm_profile_thread_root(into, first_thread + node->thread);
        else
            place[i] = fm_profile_node(into, place[node->parent], functions[node->func]);
        for (int m = 0; m < FM_METRIC_COUNT; m++)
            fm_profile_add(into, (enum fm_metric)m, place[i],
                           fm_profile_value(from, (enum fm_metric)m, i));
    }
}

static void append_flat(struct fm_profile *into, const struct fm_flat *flat,
                        const uint32_t *functions)
{
    struct fm_flat extra = { .sampled = flat->sampled };
    for (size_t i = 0; i < flat->rows.len; i++) {
        struct fm_flat_row row = flat->rows.data[i];
        row.func = functions[row.func];
        fm_vec_push(&extra.rows, row);
    }
    VEC_COPY(&extra.edges, &flat->edges);
    if (!into->flat)
        into->flat = fm_calloc(1, sizeof *into->flat);
    fm_flat_merge(into->flat, &extra);
    fm_vec_release(&extra.rows);
    fm_vec_release(&extra.edges);
}

/* The text of a file that two recordings share is kept once; two states of it are kept both. */
static void append_sources(struct fm_profile *into, const struct fm_profile *from)
{
    struct fm_map known = { 0 };
    for (size_t i = 0; i < into->sources.len; i++) {
        const struct fm_source *source = &into->sources.data[i];
        fm_map_at(&known, fm_map_pair(source->file, source->text), (uint32_t)i, NULL);
    }
    for (size_t i = 0; i < from->sources.len; i++) {
        struct fm_source source = from->sources.data[i];
        bool is_new;
        source.file = append_string(into, from, source.file);
        source.text = append_string(into, from, source.text);
        fm_map_at(&known, fm_map_pair(source.file, source.text), (uint32_t)into->sources.len,
                  &is_new);
        if (is_new)
            fm_vec_push(&into->sources, source);
    }
    fm_map_release(&known);
}

void fm_profile_append(struct fm_profile *into, const struct fm_profile *from)
{
    uint32_t first_process = (uint32_t)into->processes.len;
    fm_autofree uint32_t *functions = append_functions(into, from);
    append_processes(into, from);
    append_trees(into, from, first_process, functions);
    if (from->flat)
        append_flat(into, from->flat, functions);
    copy_lines(&into->lines, &from->lines, functions, first_process);
    copy_samples(into, from, functions, first_process);
    append_sources(into, from);
    for (size_t i = 0; i < from->notes.len; i++) {
        struct fm_note note = from->notes.data[i];
        if (note.process != FM_NONE)
            note.process += first_process;
        note.kind = append_string(into, from, note.kind);
        note.text = append_string(into, from, note.text);
        fm_vec_push(&into->notes, note);
    }
    /* Facts are about one run; of two runs the first says what it was. */
    for (size_t i = 0; i < from->facts.len; i++) {
        const char *key = fm_profile_text(from, from->facts.data[i].key);
        if (!fm_profile_fact_get(into, key))
            fm_profile_fact(into, key, fm_profile_text(from, from->facts.data[i].value));
    }
}

/* ---- matching ---- */

bool fm_function_glob(const struct fm_profile *p, uint32_t func, void *pattern)
{
    const struct fm_function *f = &p->functions.data[func];
    const char *name = fm_profile_text(p, f->name);
    const char *qualname = fm_profile_text(p, f->qualname);
    const char *file = fm_profile_text(p, f->file);
    const char *glob = pattern;
    if (!strpbrk(glob, "*?["))
        return strcmp(glob, name) == 0 || strcmp(glob, qualname) == 0;
    if (fnmatch(glob, name, 0) == 0 || fnmatch(glob, qualname, 0) == 0)
        return true;
    if (*file && fnmatch(glob, file, 0) == 0)
        return true;
    fm_autobuffer both = FM_BUFFER_INIT;
    fm_buffer_addf(&both, "%s:%s", file, qualname);
    return fnmatch(glob, fm_buffer_text(&both), 0) == 0;
}
