/*
 * A profile of what packers made, for tests: blocks lie in a nameless file, functions are called f1, f2 …,
 * names n1, n2 …
 */
#ifndef FM_TESTS_TRACE_PROFILE_H
#define FM_TESTS_TRACE_PROFILE_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/model/profile.h"
#include "record/model/trace/pack/pack.h"

/* Where the payloads of a packer go. */
struct trace_packed {
    int fd;
    uint64_t at, events_bytes, level_bytes, other_bytes;
    FM_VEC(struct fm_trace_block) blocks;
};

static inline void trace_sink(void *context, uint16_t type, const void *payload, size_t bytes)
{
    struct trace_packed *packed = context;
    struct fm_trace_block block = { packed->at, (uint32_t)bytes, type };
    if (pwrite(packed->fd, payload, bytes, (off_t)packed->at) != (ssize_t)bytes)
        abort();
    packed->at += bytes;
    *(type == 34   ? &packed->events_bytes
      : type == 35 ? &packed->level_bytes
                   : &packed->other_bytes) += bytes;
    fm_vec_push(&packed->blocks, block);
}

static inline uint32_t trace_function(struct fm_profile *p, uint32_t id)
{
    char name[32];
    snprintf(name, sizeof name, "f%u", id);
    struct fm_function f = { .line = id, .name = fm_profile_string(p, name) };
    f.qualname = f.name;
    f.file = fm_profile_string(p, "/app/program.py");
    return fm_profile_function(p, &f);
}

static inline void trace_nodes(struct fm_profile *p, const struct fm_trace_pack *pack,
                               const struct fm_trace *trace)
{
    size_t count;
    const struct fm_trace_node *nodes = fm_trace_pack_nodes(pack, &count);
    uint32_t *of = calloc(count + 1, sizeof *of);
    for (size_t i = 0; i < count; i++) {
        of[i] = FM_NONE;
        if (nodes[i].parent != FM_NONE ? of[nodes[i].parent] == FM_NONE
                                       : nodes[i].thread == FM_NONE)
            continue; /* of before what is told */
        if (nodes[i].parent == FM_NONE) {
            of[i] = p->threads.data[trace->streams.data[nodes[i].thread].thread].root;
            continue;
        }
        uint32_t id = nodes[i].func & ~FM_TRACE_NODE_REGION;
        bool region = nodes[i].func & FM_TRACE_NODE_REGION;
        of[i] = fm_profile_node(p, of[nodes[i].parent],
                                region ? trace->regions.data[id] : trace->functions.data[id]);
        fm_profile_add(p, FM_METRIC_CALLS, of[i], (int64_t)nodes[i].calls);
        fm_profile_add(p, FM_METRIC_RESUMES, of[i], (int64_t)nodes[i].resumes);
        int64_t total = (int64_t)fm_trace_pack_length_ns(pack, nodes[i].total_ticks);
        fm_profile_add(p, FM_METRIC_TOTAL, of[i], total);
        if (nodes[nodes[i].parent].parent == FM_NONE)
            fm_profile_add(p, FM_METRIC_TOTAL, of[nodes[i].parent], total);
    }
    free(of);
}

/* A process with threads, trees and timeline; takes `packed` over. */
static inline uint32_t trace_add(struct fm_profile *p, struct fm_trace_pack *pack,
                                 struct trace_packed *packed, uint32_t pid, uint32_t functions,
                                 uint32_t names)
{
    size_t count;
    const struct fm_trace_thread *threads = fm_trace_pack_threads(pack, &count);
    struct fm_process process = { .pid = pid, .parent_pid = 1, .profiled = true, .calls = true };
    process.start_ns = UINT64_MAX;
    struct fm_trace trace = { .source = fm_trace_source_file(packed->fd) };
    for (size_t i = 0; i < count; i++) {
        uint64_t begin = fm_trace_pack_instant_ns(pack, threads[i].first_ticks);
        uint64_t end = fm_trace_pack_instant_ns(pack, threads[i].last_ticks);
        process.start_ns = begin < process.start_ns ? begin : process.start_ns;
        process.end_ns = end > process.end_ns ? end : process.end_ns;
        struct fm_trace_stream s = { .number = threads[i].thread, .depth = threads[i].depth };
        s.begin_ns = begin;
        s.end_ns = end;
        s.events = threads[i].events;
        s.lost = threads[i].lost;
        fm_vec_push(&trace.streams, s);
    }
    trace.process = fm_profile_process(p, &process);
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, i ? "worker-%zu" : "MainThread", i);
        struct fm_thread thread = { .process = trace.process, .tid = pid + (uint32_t)i };
        thread.name = fm_profile_string(p, name);
        thread.start_ns = trace.streams.data[i].begin_ns;
        thread.end_ns = trace.streams.data[i].end_ns;
        trace.streams.data[i].thread = fm_profile_thread(p, &thread);
    }
    fm_vec_push(&trace.functions, FM_NONE);
    for (uint32_t id = 1; id <= functions; id++)
        fm_vec_push(&trace.functions, trace_function(p, id));
    fm_vec_push(&trace.names, FM_NONE);
    for (uint32_t id = 1; id <= names; id++) {
        char name[32];
        snprintf(name, sizeof name, "n%u", id);
        fm_vec_push(&trace.names, fm_profile_string(p, name));
    }
    size_t region_count;
    const uint8_t *regions = fm_trace_pack_region_names(pack, &region_count);
    fm_trace_add_regions(p, &trace, regions, region_count);
    for (size_t i = 0; i < packed->blocks.len; i++)
        fm_vec_push(&trace.blocks, packed->blocks.data[i]);
    trace_nodes(p, pack, &trace);
    fm_vec_push(&p->traces.list, trace);
    close(packed->fd);
    fm_vec_release(&packed->blocks);
    return trace.process;
}

static inline struct trace_packed trace_packed_new(void)
{
    return (struct trace_packed){ .fd = memfd_create("packed", MFD_CLOEXEC) };
}

#endif
