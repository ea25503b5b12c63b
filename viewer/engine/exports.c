/*
 * The border between the page and the engine: plain numbers and memory. engine.js is on the other
 * side.
 *
 * The one engine of the page lives here. Functions that can fail return −1; engine_error then
 * leaves the sentence in the text. Texts go in as (address, length) of memory from engine_alloc,
 * which the engine frees; texts and results come out by engine_text, engine_text_length and
 * engine_results.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "show/report/samples/sampling.h"
#include "timeline.h"
#include "view.h"

#define EXPORT(name) __attribute__((export_name(#name), used))

static struct fm_engine engine;
static bool started;

static struct fm_engine *the_engine(void)
{
    if (!started) {
        fm_engine_init(&engine);
        started = true;
    }
    return &engine;
}

EXPORT(engine_alloc) void *engine_alloc(uint32_t bytes)
{
    return malloc(bytes ? bytes : 1);
}

EXPORT(engine_text) const char *engine_text(void)
{
    return fm_buffer_text(&the_engine()->text);
}

EXPORT(engine_text_length) uint32_t engine_text_length(void)
{
    return (uint32_t)the_engine()->text.len;
}

EXPORT(engine_results) const struct fm_result *engine_results(uint32_t which)
{
    return &the_engine()->results[which < 3 ? which : 0];
}

EXPORT(engine_error) void engine_error(void)
{
    fm_buffer_clear(&the_engine()->text);
    fm_buffer_add_text(&the_engine()->text, the_engine()->err.text);
}

/* ---- recordings ---- */

EXPORT(engine_open) int engine_open(char *bytes, uint32_t len, char *name, uint32_t name_len)
{
    fm_autofree char *own_name = fm_strndup(name, name_len);
    int recording = fm_engine_open(the_engine(), bytes, len, own_name);
    struct fm_recording *r = recording < 0 ? NULL : the_engine()->recordings[recording];
    if (r && r->p->traces.list.len)
        r->bytes = bytes; /* blocks of traces are read when they come into sight */
    else
        free(bytes);
    free(name);
    return recording;
}

EXPORT(engine_close) void engine_close(int recording)
{
    fm_engine_close(the_engine(), recording);
}

EXPORT(engine_summary) int engine_summary(int recording)
{
    return fm_engine_summary(the_engine(), recording);
}

EXPORT(engine_functions) int engine_functions(uint32_t from)
{
    return fm_engine_functions(the_engine(), from);
}

EXPORT(engine_source) int engine_source(int recording, char *file, uint32_t len, uint32_t process)
{
    int status = fm_engine_source(the_engine(), recording, file, len, process);
    free(file);
    return status;
}

EXPORT(engine_memory) int engine_memory(int recording)
{
    return fm_engine_memory(the_engine(), recording);
}

EXPORT(engine_moment) int engine_moment(int recording, double from_ns, double to_ns)
{
    return fm_engine_moment(the_engine(), recording, from_ns, to_ns);
}

EXPORT(engine_share_error) double engine_share_error(double part, double whole)
{
    return whole >= 1 && whole < 9e18 && part >= 0 && part <= whole
               ? fm_sampling_error((int64_t)part, (int64_t)whole)
               : 1;
}

/* ---- the timeline ---- */

EXPORT(engine_timeline) int engine_timeline(int recording)
{
    return fm_engine_timeline(the_engine(), recording);
}

EXPORT(engine_timeline_cells)
int engine_timeline_cells(int recording, uint32_t lane, double from_ns, double to_ns,
                          double cell_ns)
{
    return fm_engine_timeline_cells(the_engine(), recording, lane, from_ns, to_ns, cell_ns);
}

EXPORT(engine_timeline_marks)
int engine_timeline_marks(int recording, double from_ns, double to_ns, double cell_ns)
{
    return fm_engine_timeline_marks(the_engine(), recording, from_ns, to_ns, cell_ns);
}

EXPORT(engine_timeline_values)
int engine_timeline_values(int recording, uint32_t lane, double begin_ns, double end_ns,
                           uint32_t depth)
{
    return fm_engine_timeline_values(the_engine(), recording, lane, begin_ns, end_ns, depth);
}

EXPORT(engine_timeline_mark_values)
int engine_timeline_mark_values(int recording, uint32_t lane, uint32_t kind, double begin_ns,
                                double value)
{
    return fm_engine_timeline_mark_values(the_engine(), recording, lane, kind, begin_ns, value);
}

EXPORT(engine_timeline_tasks) int engine_timeline_tasks(int recording)
{
    return fm_engine_timeline_tasks(the_engine(), recording);
}

EXPORT(engine_timeline_waits)
int engine_timeline_waits(int recording, double from_ns, double to_ns)
{
    return fm_engine_timeline_waits(the_engine(), recording, from_ns, to_ns);
}

EXPORT(engine_timeline_turns)
int engine_timeline_turns(int recording, uint32_t process, double from_ns, double to_ns,
                          double least_ns)
{
    return fm_engine_timeline_turns(the_engine(), recording, process, from_ns, to_ns, least_ns);
}

EXPORT(engine_timeline_wanted) int engine_timeline_wanted(int recording)
{
    return fm_engine_timeline_wanted(the_engine(), recording);
}

EXPORT(engine_timeline_give)
int engine_timeline_give(int recording, uint32_t trace, uint32_t block, void *bytes, uint32_t len)
{
    return fm_engine_timeline_give(the_engine(), recording, trace, block, bytes, len);
}

EXPORT(engine_timeline_durations)
int engine_timeline_durations(int recording, uint32_t func, double from_ns, double to_ns,
                              uint32_t longest, int only_longest)
{
    return fm_engine_timeline_durations(the_engine(), recording, func, from_ns, to_ns, longest,
                                        only_longest);
}

EXPORT(engine_timeline_groups)
int engine_timeline_groups(int recording, uint32_t func, double from_ns, double to_ns)
{
    return fm_engine_timeline_groups(the_engine(), recording, func, from_ns, to_ns);
}

EXPORT(engine_timeline_find)
int engine_timeline_find(int recording, uint32_t *funcs, uint32_t len, double from_ns, double to_ns,
                         int backwards)
{
    int status =
        fm_engine_timeline_find(the_engine(), recording, funcs, len, from_ns, to_ns, backwards);
    free(funcs);
    return status;
}

EXPORT(engine_timeline_range)
int engine_timeline_range(int recording, double from_ns, double to_ns)
{
    return fm_engine_timeline_range(the_engine(), recording, from_ns, to_ns);
}

/* ---- views ---- */

EXPORT(view_new) int view_new(char *options, uint32_t len)
{
    int view = fm_engine_view_new(the_engine(), options, len);
    free(options);
    return view;
}

EXPORT(view_free) void view_free(int view)
{
    fm_engine_view_free(the_engine(), view);
}

EXPORT(view_info) int view_info(int view)
{
    struct fm_view *v = fm_engine_view(the_engine(), view);
    return v ? fm_view_info(v) : -1;
}

EXPORT(view_totals) int view_totals(int view, uint32_t metric)
{
    struct fm_view *v = fm_engine_view(the_engine(), view);
    return v ? fm_view_totals(v, metric) : -1;
}

EXPORT(view_layout)
int view_layout(int view, uint32_t metric, uint32_t root, double cut, uint32_t depth, int order,
                int by, uint32_t limit)
{
    struct fm_view *v = fm_engine_view(the_engine(), view);
    struct fm_layout_query q = { metric, root, cut, depth, limit, order, by };
    return v ? fm_view_layout(v, &q) : -1;
}

EXPORT(view_children)
int view_children(int view, uint32_t node, uint32_t metric, uint32_t limit, int only)
{
    struct fm_view *v = fm_engine_view(the_engine(), view);
    return v ? fm_view_children(v, node, metric, limit, only) : -1;
}

EXPORT(view_error) int view_error(int view, uint32_t node, uint32_t metric)
{
    struct fm_view *v = fm_engine_view(the_engine(), view);
    return v ? fm_view_error(v, node, metric) : -1;
}

EXPORT(view_parent) uint32_t view_parent(int view, uint32_t node)
{
    struct fm_view *v = fm_engine_view(the_engine(), view);
    return v ? fm_view_parent(v, node) : FM_NONE;
}

EXPORT(view_path) int view_path(int view, uint32_t node)
{
    struct fm_view *v = fm_engine_view(the_engine(), view);
    return v ? fm_view_path(v, node) : -1;
}

EXPORT(view_find) uint32_t view_find(int view, uint32_t *path, uint32_t len)
{
    struct fm_view *v = fm_engine_view(the_engine(), view);
    uint32_t node = v ? fm_view_find(v, path, len) : 0;
    free(path);
    return node;
}

EXPORT(view_table) int view_table(int view, uint32_t metric)
{
    struct fm_view *v = fm_engine_view(the_engine(), view);
    return v ? fm_view_table(v, metric) : -1;
}

EXPORT(view_neighbours) int view_neighbours(int view, uint32_t func, uint32_t metric, int callers)
{
    struct fm_view *v = fm_engine_view(the_engine(), view);
    return v ? fm_view_neighbours(v, func, metric, callers) : -1;
}

EXPORT(view_matched) int view_matched(int view, uint32_t *funcs, uint32_t len, uint32_t metric)
{
    struct fm_view *v = fm_engine_view(the_engine(), view);
    int status = v ? fm_view_matched(v, funcs, len, metric) : -1;
    free(funcs);
    return status;
}

EXPORT(view_graph)
int view_graph(int view, uint32_t metric, double node_cut, double edge_cut, uint32_t limit,
               uint32_t root, uint32_t leaf)
{
    struct fm_view *v = fm_engine_view(the_engine(), view);
    struct fm_graph_query q = { metric, node_cut, edge_cut, limit, root, leaf };
    return v ? fm_view_graph(v, &q) : -1;
}
