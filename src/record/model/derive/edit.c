/*
 * Reshaping trees; see edit.h.
 *
 * What becomes of nodes and which of their numbers count is told by model/derive/shape.h; here they become
 * a profile again. A profile without a tree has nothing to reshape: its ready-made table is copied
 * as it is.
 */
#include "record/model/derive/edit.h"

#include <fnmatch.h>
#include <string.h>

#include "base/buffer.h"
#include "base/map.h"
#include "base/memory.h"
#include "record/model/derive/flat.h"
#include "record/model/derive/shape.h"

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
        fm_profile_string_of(copy, p, i);
    for (size_t i = 0; i < p->functions.len; i++)
        fm_profile_function(copy, &p->functions.data[i]);
    VEC_COPY(&copy->processes, &p->processes);
    VEC_COPY(&copy->notes, &p->notes);
    VEC_COPY(&copy->sources, &p->sources);
    VEC_COPY(&copy->facts, &p->facts);
    VEC_COPY(&copy->memory.counts, &p->memory.counts);
    VEC_COPY(&copy->memory.points, &p->memory.points);
    VEC_COPY(&copy->memory.marks, &p->memory.marks);
    VEC_COPY(&copy->regions.rows, &p->regions.rows);
    VEC_COPY(&copy->memory.residents, &p->memory.residents);
    VEC_COPY(&copy->memory.reserves, &p->memory.reserves);
    for (size_t i = 0; i < p->threads.len; i++)
        fm_profile_thread(copy, &p->threads.data[i]);
    if (p->flat) {
        copy->flat = fm_calloc(1, sizeof *copy->flat);
        fm_flat_add(copy->flat, p->flat);
    }
    return copy;
}

/* ---- what stands beside the trees ---- */

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
        wait.detail = fm_profile_string_of(to, from, wait.detail);
        if (wait.func != FM_NONE)
            fm_vec_push(&to->samples.waits, wait);
    }
    fm_samples_sort(&to->samples);
}

static void copy_memory(struct fm_profile *to, const struct fm_profile *from,
                        uint32_t first_process)
{
    for (size_t i = 0; i < from->memory.counts.len; i++) {
        struct fm_heap_count count = from->memory.counts.data[i];
        count.process = moved_process(count.process, first_process);
        fm_vec_push(&to->memory.counts, count);
    }
    for (size_t i = 0; i < from->memory.points.len; i++) {
        struct fm_memory_point point = from->memory.points.data[i];
        point.process = moved_process(point.process, first_process);
        fm_vec_push(&to->memory.points, point);
    }
    for (size_t i = 0; i < from->memory.marks.len; i++) {
        struct fm_memory_mark mark = from->memory.marks.data[i];
        mark.process = moved_process(mark.process, first_process);
        mark.name = fm_profile_string_of(to, from, mark.name);
        fm_vec_push(&to->memory.marks, mark);
    }
    for (size_t i = 0; i < from->memory.residents.len; i++) {
        struct fm_resident resident = from->memory.residents.data[i];
        resident.process = moved_process(resident.process, first_process);
        fm_vec_push(&to->memory.residents, resident);
    }
    for (size_t i = 0; i < from->memory.reserves.len; i++) {
        struct fm_reserve reserve = from->memory.reserves.data[i];
        reserve.process = moved_process(reserve.process, first_process);
        reserve.library = fm_profile_string_of(to, from, reserve.library);
        fm_vec_push(&to->memory.reserves, reserve);
    }
}

static void copy_regions(struct fm_profile *to, const struct fm_profile *from,
                         uint32_t first_process)
{
    uint32_t first = (uint32_t)to->regions.rows.len;
    for (size_t i = 0; i < from->regions.rows.len; i++) {
        struct fm_region_row row = from->regions.rows.data[i];
        row.process = moved_process(row.process, first_process);
        row.around = row.around == FM_NONE ? FM_NONE : row.around + first;
        row.name = fm_profile_string_of(to, from, row.name);
        fm_vec_push(&to->regions.rows, row);
    }
}

/* What was alive over time: of nodes that follow those of `to` in their order. */
static void copy_histories(struct fm_profile *to, const struct fm_profile *from,
                           uint32_t first_process, uint32_t first_node)
{
    for (size_t i = 0; i < from->memory.histories.len; i++) {
        const struct fm_history *h = &from->memory.histories.data[i];
        struct fm_history copy = { .process = moved_process(h->process, first_process),
                                   .begin_ns = h->begin_ns,
                                   .end_ns = h->end_ns,
                                   .exact = h->exact };
        for (size_t k = 0; k < h->contexts.len; k++)
            fm_vec_push(&copy.contexts, h->contexts.data[k] + first_node);
        fm_buffer_add(&copy.slices.bytes, h->slices.bytes.data, h->slices.bytes.len);
        copy.slices.last_us = h->slices.last_us;
        copy.slices.count = h->slices.count;
        fm_vec_push(&to->memory.histories, copy);
    }
}

/* ---- reshaping ---- */

/* A function keeps its lines, spots and waits if it is still in some tree; one that was in none
 * before (lines may come without calls) if it would be kept there. */
static void copy_places(struct fm_profile *to, const struct fm_profile *from, const uint8_t *asked,
                        bool keeps_matches)
{
    const struct fm_samples *samples = &from->samples;
    size_t n = from->functions.len;
    fm_autofree uint32_t *functions = fm_malloc(n * sizeof *functions);
    if (!from->lines.rows.len && !from->lines.marked.len && !samples->spots.len &&
        !samples->waits.len)
        return;
    for (uint32_t f = 0; f < n; f++)
        functions[f] = (asked[f] != 0) == keeps_matches ? f : FM_NONE;
    for (size_t i = 0; i < from->nodes.len; i++)
        functions[from->nodes.data[i].func] = FM_NONE;
    for (size_t i = 0; i < to->nodes.len; i++)
        functions[to->nodes.data[i].func] = to->nodes.data[i].func;
    copy_lines(&to->lines, &from->lines, functions, 0);
    copy_samples(to, from, functions, 0);
}

/* The nodes of the shape as nodes of `to`, where the roots of threads are already. Caller frees. */
static uint32_t *nodes_new(struct fm_profile *to, const struct fm_shape *shape)
{
    uint32_t *place = fm_malloc(shape->nodes * sizeof *place);
    fm_profile_reserve(to, to->threads.len + shape->nodes);
    for (uint32_t i = 1; i < shape->nodes; i++)
        place[i] = shape->parent[i] ? fm_profile_node(to, place[shape->parent[i]], shape->func[i])
                                    : to->threads.data[shape->func[i] - to->functions.len].root;
    return place;
}

static void add_numbers(struct fm_profile *to, const struct fm_shape_source *source,
                        const uint32_t *place)
{
    for (int m = 0; m < FM_METRIC_COUNT; m++) {
        enum fm_metric metric = (enum fm_metric)m;
        const int64_t *data = source->p->columns[m].data;
        if (!data)
            continue;
        bool below = source->partly && fm_metric_info(metric)->scope == FM_OF_CALLEES;
        fm_autofree int64_t *totals = below ? fm_shape_totals_new(source, metric) : NULL;
        unsigned part = below ? FM_SHAPE_NODE : fm_part_of(metric);
        for (size_t i = 0; i < source->p->nodes.len; i++)
            if (fm_shape_counts(source, i, part))
                fm_profile_add(to, metric, place[source->node_of[i]], totals ? totals[i] : data[i]);
    }
}

/* Samples of contexts that are left out were not seen. */
static void move_order(struct fm_profile *to, const struct fm_profile *from,
                       const struct fm_shape_source *source, const uint32_t *place)
{
    fm_autofree uint32_t *nodes = fm_malloc((from->nodes.len + 1) * sizeof *nodes);
    if (!from->order.lanes.len)
        return;
    for (size_t i = 0; i < from->nodes.len; i++)
        nodes[i] = fm_shape_counts(source, i, fm_part_of(FM_METRIC_SAMPLES))
                       ? place[source->node_of[i]]
                       : FM_ORDER_UNSEEN;
    fm_sample_order_copy(&to->order, &from->order, &(struct fm_order_renumbering){ .node = nodes });
}

static struct fm_profile *reshaped(const struct fm_profile *p, fm_function_match *match, void *data,
                                   enum fm_ask ask)
{
    struct fm_profile *to = copy_without_nodes(p);
    fm_autofree uint8_t *asked = fm_calloc(p->functions.len + 1, 1);
    for (uint32_t f = 0; f < p->functions.len; f++)
        if (p->functions.data[f].kind != FM_FUNCTION_ROOT && match(p, f, data))
            asked[f] = (uint8_t)ask;
    struct fm_links links;
    fm_links_init(&links, p);
    fm_autofree uint8_t *parts = fm_parts_new(p, &links, asked, ask);
    fm_autofree uint32_t *names = fm_names_in_shape_new(p);
    struct fm_shape_options o = { .folds = ask == FM_ASK_FOLD,
                                  .functions = (uint32_t)(p->functions.len + p->threads.len) };
    struct fm_shape_source source[2] = { { .p = p,
                                           .links = &links,
                                           .part = parts,
                                           .partly = ask != FM_ASK_FOLD,
                                           .func = names,
                                           .thread = names + p->functions.len } };
    struct fm_shape shape;
    fm_shape_init(&shape, source, &o);
    fm_autofree uint32_t *place = nodes_new(to, &shape);
    add_numbers(to, &source[0], place);
    move_order(to, p, &source[0], place);
    free(source[0].node_of);
    copy_places(to, p, asked, ask != FM_ASK_FOLD);
    fm_shape_release(&shape);
    fm_links_release(&links);
    return to;
}

struct fm_profile *fm_profile_fold(const struct fm_profile *p, fm_function_match *match, void *data)
{
    return reshaped(p, match, data, FM_ASK_FOLD);
}

struct fm_profile *fm_profile_filter(const struct fm_profile *p, fm_function_match *match,
                                     void *data)
{
    return reshaped(p, match, data, FM_ASK_KEEP);
}

struct fm_profile *fm_profile_root(const struct fm_profile *p, fm_function_match *match, void *data)
{
    return reshaped(p, match, data, FM_ASK_ROOT);
}

/* ---- merging ---- */

static uint32_t *merge_functions(struct fm_profile *into, const struct fm_profile *from)
{
    uint32_t *functions = fm_malloc(from->functions.len * sizeof *functions);
    for (size_t i = 0; i < from->functions.len; i++) {
        struct fm_function f = from->functions.data[i];
        f.name = fm_profile_string_of(into, from, f.name);
        f.qualname = fm_profile_string_of(into, from, f.qualname);
        f.file = fm_profile_string_of(into, from, f.file);
        functions[i] = fm_profile_function(into, &f);
    }
    return functions;
}

static void merge_processes(struct fm_profile *into, const struct fm_profile *from)
{
    uint32_t first_run = fm_profile_runs(into);
    for (size_t i = 0; i < from->processes.len; i++) {
        struct fm_process process = from->processes.data[i];
        process.run += first_run;
        process.exe = fm_profile_string_of(into, from, process.exe);
        process.command = fm_profile_string_of(into, from, process.command);
        process.cwd = fm_profile_string_of(into, from, process.cwd);
        process.version = fm_profile_string_of(into, from, process.version);
        fm_profile_process(into, &process);
    }
}

static void merge_trees(struct fm_profile *into, const struct fm_profile *from,
                        uint32_t first_process, const uint32_t *functions)
{
    uint32_t first_thread = (uint32_t)into->threads.len;
    fm_autofree uint32_t *place = fm_malloc(from->nodes.len * sizeof *place);
    for (size_t i = 0; i < from->threads.len; i++) {
        struct fm_thread thread = from->threads.data[i];
        thread.process += first_process;
        thread.name = fm_profile_string_of(into, from, thread.name);
        fm_profile_thread_rootless(into, &thread);
    }
    fm_profile_reserve(into, into->nodes.len + from->nodes.len);
    for (uint32_t i = 0; i < from->nodes.len; i++) {
        const struct fm_node *node = &from->nodes.data[i];
        if (node->parent == FM_NONE)
            place[i] = fm_profile_thread_root(into, first_thread + node->thread);
        else
            place[i] =
                fm_profile_node_at(into, place[node->parent], functions[node->func], node->line);
        for (int m = 0; m < FM_METRIC_COUNT; m++)
            fm_profile_add(into, (enum fm_metric)m, place[i],
                           fm_profile_value(from, (enum fm_metric)m, i));
    }
}

static void merge_flat(struct fm_profile *into, const struct fm_flat *flat,
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
    fm_flat_add(into->flat, &extra);
    fm_vec_release(&extra.rows);
    fm_vec_release(&extra.edges);
}

/* The text of a file that two recordings share is kept once; two states of it are kept both. */
static void merge_sources(struct fm_profile *into, const struct fm_profile *from)
{
    struct fm_map known = { 0 };
    for (size_t i = 0; i < into->sources.len; i++) {
        const struct fm_source *source = &into->sources.data[i];
        fm_map_at(&known, fm_map_pair(source->file, source->text), (uint32_t)i, NULL);
    }
    for (size_t i = 0; i < from->sources.len; i++) {
        struct fm_source source = from->sources.data[i];
        bool is_new;
        source.file = fm_profile_string_of(into, from, source.file);
        source.text = fm_profile_string_of(into, from, source.text);
        fm_map_at(&known, fm_map_pair(source.file, source.text), (uint32_t)into->sources.len,
                  &is_new);
        if (is_new)
            fm_vec_push(&into->sources, source);
    }
    fm_map_release(&known);
}

void fm_profile_merge(struct fm_profile *into, const struct fm_profile *from)
{
    uint32_t first_process = (uint32_t)into->processes.len, first_node = (uint32_t)into->nodes.len;
    struct fm_order_renumbering order = { .first_process = first_process,
                                          .first_thread = (uint32_t)into->threads.len,
                                          .first_node = first_node };
    fm_autofree uint32_t *functions = merge_functions(into, from);
    merge_processes(into, from);
    merge_trees(into, from, first_process, functions);
    if (from->flat)
        merge_flat(into, from->flat, functions);
    copy_lines(&into->lines, &from->lines, functions, first_process);
    copy_samples(into, from, functions, first_process);
    copy_memory(into, from, first_process);
    copy_regions(into, from, first_process);
    copy_histories(into, from, first_process, first_node);
    fm_sample_order_copy(&into->order, &from->order, &order);
    merge_sources(into, from);
    for (size_t i = 0; i < from->notes.len; i++) {
        struct fm_note note = from->notes.data[i];
        if (note.process != FM_NONE)
            note.process += first_process;
        note.kind = fm_profile_string_of(into, from, note.kind);
        note.text = fm_profile_string_of(into, from, note.text);
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
