/* The trace of a process, with its live store; see live_trace.h. */
#include "record/model/live/live_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "record/capture/format.h"
#include "record/capture/reader.h"
#include "record/model/live/live_regions.h"
#include "record/model/trace/traces.h"

/* The thread that the store has for a number of the trace; a new one, if it has none. */
static uint32_t thread_of(struct fm_live_loader *l, const struct fm_trace_pack *pack,
                          const struct fm_trace_thread *traced)
{
    struct fm_profile *p = l->p;
    struct fm_thread thread = { .process = l->process_id,
                                .tid = traced->tid,
                                .start_ns = fm_trace_pack_instant_ns(pack, traced->first_ticks),
                                .end_ns = fm_trace_pack_instant_ns(pack, traced->last_ticks) };
    if (traced->thread && traced->thread <= l->threads.len) {
        const struct fm_live_thread *live = &l->threads.data[traced->thread - 1];
        uint32_t root = fm_renumber_get(&l->nodes, live->root);
        if (root != FM_NONE && p->nodes.data[root].parent == FM_NONE) {
            struct fm_thread *known = &p->threads.data[p->nodes.data[root].thread];
            known->end_ns = thread.end_ns > known->end_ns ? thread.end_ns : known->end_ns;
            return p->nodes.data[root].thread;
        }
        thread.name =
            fm_strings_add(p->strings, live->name, strnlen(live->name, sizeof live->name));
        thread.cpu_ns = live->cpu_ns;
    }
    return fm_profile_thread(p, &thread);
}

static uint32_t function_of(struct fm_live_loader *l, uint32_t id)
{
    uint32_t name = id & ~FM_TRACE_NODE_REGION;
    if (id & FM_TRACE_NODE_REGION && name < l->names.len && l->names.data[name] != FM_NONE)
        return fm_trace_region_function(l->p, l->names.data[name]);
    uint32_t func = id < l->functions.len ? l->functions.data[id] : FM_NONE;
    if (func != FM_NONE)
        return func;
    l->unknown_functions++;
    return fm_live_unknown_function(l);
}

static void add_values(struct fm_live_loader *l, uint32_t node, const struct fm_trace_node *from)
{
    struct fm_profile *p = l->p;
    fm_profile_add(p, FM_METRIC_CALLS, node, (int64_t)from->calls);
    fm_profile_add(p, FM_METRIC_TOTAL, node, fm_live_ticks_ns(l, from->total_ticks));
    if (from->min_ticks && from->min_ticks != UINT64_MAX) {
        int64_t min_ns = fm_live_ticks_ns(l, from->min_ticks);
        fm_profile_add(p, FM_METRIC_MIN, node, min_ns ? min_ns : 1);
    }
    fm_profile_add(p, FM_METRIC_MAX, node, fm_live_ticks_ns(l, from->max_ticks));
    if (from->resumes || from->suspended_ticks) {
        fm_profile_add(p, FM_METRIC_RESUMES, node, (int64_t)from->resumes);
        fm_profile_add(p, FM_METRIC_SUSPENDED, node, fm_live_ticks_ns(l, from->suspended_ticks));
    }
}

static void add_nodes(struct fm_live_loader *l, const struct fm_trace_pack *pack,
                      const uint32_t *threads, size_t thread_count)
{
    size_t count;
    const struct fm_trace_node *nodes = fm_trace_pack_nodes(pack, &count);
    uint32_t *places = fm_malloc((count + 1) * sizeof *places);
    fm_profile_reserve(l->p, l->p->nodes.len + count);
    for (size_t i = 0; i < count; i++) {
        const struct fm_trace_node *from = &nodes[i];
        places[i] = FM_NONE;
        if (from->parent == UINT32_MAX) {
            if (from->thread < thread_count && threads[from->thread] != FM_NONE)
                places[i] = l->p->threads.data[threads[from->thread]].root;
            continue;
        }
        if (from->parent >= i || places[from->parent] == FM_NONE)
            continue;
        places[i] = fm_profile_node(l->p, places[from->parent], function_of(l, from->func));
        add_values(l, places[i], from);
    }
    free(places);
}

/* Where the blocks are. Those of the launcher's own are none of them. */
static void find_blocks(struct fm_trace *trace, int packed)
{
    struct fm_reader reader;
    struct fm_block block;
    struct stat st;
    if (packed < 0 || fstat(packed, &st) != 0)
        return;
    if (fm_reader_init_fd(&reader, packed, (uint64_t)st.st_size, NULL) == 0) {
        reader.wanted = reader.placed = 1ull << FM_BLOCK_TRACE_EVENTS |
                                        1ull << FM_BLOCK_TRACE_LEVELS |
                                        1ull << FM_BLOCK_TRACE_MARKS |
                                        1ull << FM_BLOCK_TRACE_TASKS | 1ull << FM_BLOCK_TRACE_CLOCK;
        while (fm_reader_next(&reader, &block))
            fm_vec_push(&trace->blocks,
                        ((struct fm_trace_block){ .at = block.offset + FM_BLOCK_HEADER_BYTES,
                                                  .bytes = block.stored,
                                                  .type = block.type }));
    }
    fm_reader_release(&reader);
}

/* What the numbers are of, in one sentence. */
static void note_window(struct fm_live_loader *l, const struct fm_live_trace *from)
{
    char text[160];
    snprintf(text, sizeof text,
             from->tree_cut
                 ? "timeline and tables have the last %.12g s before this was written alone; "
                   "calls that were open then began before"
                 : "the timeline has the last %.12g s alone; tables have the whole run",
             (double)from->window_ns / 1e9);
    fm_profile_note(l->p, l->process_id, "window", 1, text);
}

static void add_trace(struct fm_live_loader *l, const struct fm_live_trace *from,
                      const uint32_t *threads)
{
    size_t count;
    uint64_t last_ns = 0;
    const struct fm_trace_thread *traced = fm_trace_pack_threads(from->pack, &count);
    struct fm_trace trace = { .process = l->process_id };
    if (from->packed >= 0)
        trace.source =
            from->path ? fm_trace_source_path(from->path) : fm_trace_source_file(from->packed);
    if (!trace.source || !count) {
        fm_trace_source_drop(trace.source);
        return;
    }
    for (size_t i = 0; i < l->functions.len; i++)
        fm_vec_push(&trace.functions, l->functions.data[i]);
    for (size_t i = 0; i < l->names.len; i++)
        fm_vec_push(&trace.names, l->names.data[i]);
    size_t name_count;
    const uint8_t *region_names = fm_trace_pack_region_names(from->pack, &name_count);
    fm_trace_add_regions(l->p, &trace, region_names, name_count);
    for (size_t i = 0; i < count; i++) {
        uint64_t ns = fm_trace_pack_instant_ns(from->pack, traced[i].last_ticks);
        last_ns = ns > last_ns ? ns : last_ns;
    }
    for (size_t i = 0; i < count; i++) {
        if (threads[i] == FM_NONE)
            continue;
        struct fm_trace_stream stream = {
            .number = traced[i].thread,
            .thread = threads[i],
            .depth = traced[i].depth,
            .begin_ns = fm_trace_pack_instant_ns(from->pack, traced[i].first_ticks),
            .end_ns = fm_trace_pack_instant_ns(from->pack, traced[i].last_ticks),
            .events = traced[i].events,
            .lost = traced[i].lost,
        };
        if (from->window_ns && !from->tree_cut && last_ns - stream.begin_ns > from->window_ns)
            stream.begin_ns = last_ns - from->window_ns < stream.end_ns ? last_ns - from->window_ns
                                                                        : stream.end_ns;
        fm_vec_push(&trace.streams, stream);
    }
    if (from->window_ns)
        note_window(l, from);
    find_blocks(&trace, from->packed);
    fm_vec_push(&l->p->traces.list, trace);
}

static void note_troubles(struct fm_live_loader *l, const struct fm_trace_pack *pack)
{
    if (fm_trace_pack_lost_nodes(pack))
        fm_profile_note(l->p, l->process_id, "lost", fm_trace_pack_lost_nodes(pack),
                        "calls whose own context was not kept: there were too many");
    if (fm_trace_pack_broken(pack))
        fm_profile_note(l->p, l->process_id, "damaged", fm_trace_pack_broken(pack),
                        "words of the trace that make no sense and were left out");
}

void fm_live_read_trace(struct fm_live_loader *l, const struct fm_live_trace *trace)
{
    size_t count;
    const struct fm_trace_thread *traced = fm_trace_pack_threads(trace->pack, &count);
    uint32_t *threads = fm_malloc((count + 1) * sizeof *threads);
    for (size_t i = 0; i < count; i++)
        threads[i] = traced[i].thread ? thread_of(l, trace->pack, &traced[i]) : FM_NONE;
    add_nodes(l, trace->pack, threads, count);
    add_trace(l, trace, threads);
    note_troubles(l, trace->pack);
    free(threads);
}
