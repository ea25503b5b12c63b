/* Builds live stores (capture/live.h) by hand, honest and hostile ones. */
#ifndef FM_TESTS_LIVE_STORE_H
#define FM_TESTS_LIVE_STORE_H

#include "base/buffer.h"
#include "base/varint.h"
#include "record/capture/live.h"

/* A store of process 42, a tick of half a nanosecond: 2,000 ticks from (1000, 5000 ns) on take
 * 1,000 ns. */
static inline void ls_begin(struct fm_buffer *b)
{
    struct fm_live_header h = { .version = FM_LIVE_VERSION,
                                .flags = FM_LIVE_C_CALLS,
                                .pid = 42,
                                .parent_pid = 41,
                                .python_hex = 0x030d00f0,
                                .start_ticks = 1000,
                                .start_ns = 5000,
                                .start_real_ns = 777,
                                .later_ticks = 3000,
                                .later_ns = 6000 };
    char page[FM_LIVE_PAGE] = { 0 };
    memcpy(h.magic, FM_LIVE_MAGIC, sizeof h.magic);
    memcpy(page, &h, sizeof h);
    fm_buffer_clear(b);
    fm_buffer_add(b, page, sizeof page);
}

static inline struct fm_live_header *ls_header(struct fm_buffer *b)
{
    return (struct fm_live_header *)(void *)b->data;
}

/* A chunk with this payload, filled up to a whole page. Gives its offset. */
static inline size_t ls_chunk(struct fm_buffer *b, uint32_t kind, uint32_t first_id,
                              uint64_t address, const void *payload, size_t bytes)
{
    size_t offset = b->len;
    size_t whole = sizeof(struct fm_live_chunk) + bytes;
    whole = (whole + FM_LIVE_PAGE - 1) / FM_LIVE_PAGE * FM_LIVE_PAGE;
    struct fm_live_chunk head = { .magic = FM_LIVE_CHUNK_MAGIC,
                                  .kind = kind,
                                  .bytes = (uint32_t)whole,
                                  .used = (uint32_t)bytes,
                                  .first_id = first_id,
                                  .address = address };
    fm_buffer_add(b, &head, sizeof head);
    fm_buffer_add(b, payload, bytes);
    while (b->len < offset + whole)
        fm_buffer_add_char(b, '\0');
    return offset;
}

static inline struct fm_live_chunk *ls_chunk_at(struct fm_buffer *b, size_t offset)
{
    return (struct fm_live_chunk *)(void *)(b->data + offset);
}

static inline void ls_text(struct fm_buffer *b, const char *text)
{
    fm_buffer_add_varint(b, strlen(text));
    fm_buffer_add_text(b, text);
}

/* Append one definition, whose body is in `body`, to a log; empties the body. */
static inline void ls_define(struct fm_buffer *log, struct fm_buffer *body)
{
    fm_buffer_add_varint(log, body->len);
    fm_buffer_add(log, body->data, body->len);
    fm_buffer_clear(body);
}

static inline void ls_function(struct fm_buffer *log, uint64_t id, uint64_t flags, uint64_t line,
                               const char *name, const char *file)
{
    fm_autobuffer body = FM_BUFFER_INIT;
    fm_buffer_add_varint(&body, FM_LIVE_DEF_FUNCTION);
    fm_buffer_add_varint(&body, id);
    fm_buffer_add_varint(&body, flags);
    fm_buffer_add_varint(&body, line);
    ls_text(&body, name);
    ls_text(&body, "");
    ls_text(&body, file);
    ls_define(log, &body);
}

static inline void ls_pair(struct fm_buffer *log, uint64_t kind, const char *key, const char *value)
{
    fm_autobuffer body = FM_BUFFER_INIT;
    fm_buffer_add_varint(&body, kind);
    ls_text(&body, key);
    ls_text(&body, value);
    ls_define(log, &body);
}

#define LS_NODES_ADDRESS 0x7f0000000000u
#define LS_NODE_ADDRESS(id)                                                                        \
    (LS_NODES_ADDRESS + sizeof(struct fm_live_chunk) + (id) * sizeof(struct fm_live_node))

/*
 * The store most tests start from. Root 0 of thread "Main":
 *     1 main   calls 1, open since tick 1200
 *     2 f      under main: calls 3 (2 complete: 400 ticks, 100 to 300), one open since tick 2000
 *     3 len    under f, a C function: calls 5, 50 ticks
 *     4 gen    under main: calls 1, 80 ticks, resumed 4 times, suspended 600 ticks
 */
static inline void ls_sample(struct fm_buffer *b)
{
    fm_autobuffer log = FM_BUFFER_INIT;
    struct fm_live_node nodes[] = {
        { .parent = 0, .id = 0, .min_ticks = UINT64_MAX },
        { .parent = 0, .func = 1, .calls = 1, .id = 1, .min_ticks = UINT64_MAX },
        { .parent = 1,
          .func = 2,
          .calls = 3,
          .id = 2,
          .total_ticks = 400,
          .min_ticks = 100,
          .max_ticks = 300 },
        { .parent = 2,
          .func = 3,
          .calls = 5,
          .id = 3,
          .total_ticks = 50,
          .min_ticks = 1,
          .max_ticks = 20 },
        { .parent = 1,
          .func = 4,
          .calls = 1,
          .id = 4,
          .total_ticks = 80,
          .min_ticks = 10,
          .max_ticks = 70 },
    };
    struct fm_live_thread thread = { .root = 0,
                                     .tid = 43,
                                     .stack = 9,
                                     .depth = 2,
                                     .start_ticks = 1100,
                                     .last_ticks = 2500,
                                     .cpu_ns = 321,
                                     .name = "Main" };
    struct fm_live_frame frames[] = {
        { .node = LS_NODE_ADDRESS(0) },
        { .node = LS_NODE_ADDRESS(1), .enter_ticks = 1200 },
        { .node = LS_NODE_ADDRESS(2), .enter_ticks = 2000 },
    };
    struct fm_live_resumed resumed = { .node = 4, .resumes = 4, .suspended_ticks = 600 };
    ls_begin(b);
    ls_function(&log, 1, 0, 10, "main", "app.py");
    ls_function(&log, 2, 0, 20, "f", "app.py");
    ls_function(&log, 3, FM_LIVE_FUNCTION_C, 0, "<built-in method builtins.len>", "");
    ls_function(&log, 4, FM_LIVE_FUNCTION_GENERATOR, 30, "gen", "app.py");
    ls_pair(&log, FM_LIVE_DEF_INFO, "exe", "/usr/bin/python3");
    ls_pair(&log, FM_LIVE_DEF_INFO, "cwd", "/home");
    ls_pair(&log, FM_LIVE_DEF_SOURCE, "<string>", "x = 1\n");
    ls_pair(&log, 1000, "a kind of", "the future");
    ls_chunk(b, FM_LIVE_DEFS, 0, 0x1000, log.data, log.len);
    ls_chunk(b, FM_LIVE_THREADS, 0, 0x2000, &thread, sizeof thread);
    ls_chunk(b, FM_LIVE_STACK, 9, 0x3000, frames, sizeof frames);
    ls_chunk(b, FM_LIVE_NODES, 0, LS_NODES_ADDRESS, nodes, sizeof nodes);
    ls_chunk(b, FM_LIVE_RESUMED, 0, 0x5000, &resumed, sizeof resumed);
}

/*
 * Lines beside ls_sample. Function 2 (f) was asked for by name, function 1 (main) was not:
 *     main:11   one hit, open: nothing ended
 *     f:21      5 hits, 400 ticks, 300 of its own, 10 to 200 ticks; 4 visits of 2^4 to 1.5 * 2^4
 *               ticks, one of 1.5 * 2^7 to 2^8
 *     gen:31    4 hits, 40 ticks, of less than a tick to 20 ticks, suspended for 600
 *     gen:32    prepared, never begun
 */
static inline void ls_lines(struct fm_buffer *b)
{
    fm_autobuffer log = FM_BUFFER_INIT;
    fm_autobuffer body = FM_BUFFER_INIT;
    struct fm_live_line lines[] = {
        { .func = 1, .line = 11, .hits = 1, .min_ticks = UINT64_MAX },
        { .func = 2,
          .line = 21,
          .hits = 5,
          .total_ticks = 400,
          .self_ticks = 300,
          .min_ticks = 10,
          .max_ticks = 200 },
        { .func = 4,
          .line = 31,
          .hits = 4,
          .total_ticks = 40,
          .self_ticks = 40,
          .min_ticks = 0,
          .max_ticks = 20,
          .suspended_ticks = 600 },
        { .func = 4, .line = 32, .min_ticks = UINT64_MAX },
    };
    lines[1].buckets[8] = 4;
    lines[1].buckets[15] = 1;
    ls_header(b)->flags |= FM_LIVE_LINES_ON;
    for (uint64_t func = 1; func <= 2; func++) {
        fm_buffer_add_varint(&body, FM_LIVE_DEF_LINES);
        fm_buffer_add_varint(&body, func);
        fm_buffer_add_varint(&body, func == 2 ? FM_LIVE_LINES_MARKED : 0);
        ls_define(&log, &body);
    }
    ls_chunk(b, FM_LIVE_DEFS, 0, 0x6000, log.data, log.len);
    ls_chunk(b, FM_LIVE_LINES, 0, 0x7000, lines, sizeof lines);
}

/*
 * Regions beside ls_sample, with memory. Two threads, of meters 0 and 1:
 *     load         entered twice; ended once: 400 ticks of which 100 suspended, 900 bytes allocated,
 *                  100 freed, 850 above; open in thread 0 since tick 2000, 150 above until inner began
 *     load/inner   open in thread 0 since tick 2200
 *     wait         open in thread 1, suspended since tick 2600
 */
static inline void ls_regions(struct fm_buffer *b)
{
    fm_autobuffer log = FM_BUFFER_INIT;
    fm_autobuffer body = FM_BUFFER_INIT;
    static const struct {
        uint64_t around;
        const char *name;
    } defined[] = { { 0, "load" }, { 1, "inner" }, { 0, "wait" } };
    struct fm_live_region regions[] = {
        { .id = 1,
          .kept = 1,
          .entered = 2,
          .ended = 1,
          .total_ticks = 400,
          .min_ticks = 400,
          .max_ticks = 400,
          .suspended_ticks = 100,
          .allocated = 900,
          .freed = 100,
          .above_most = 850,
          .cpu_ns = 170,
          .cpu_ticks = -40,
          .cpu_ended = 1 },
        { .id = 2, .entered = 1, .min_ticks = UINT64_MAX },
        { .id = 3, .entered = 1, .min_ticks = UINT64_MAX },
    };
    struct fm_live_visit visits[] = {
        { .region = 1,
          .state = FM_LIVE_VISIT_ENDED,
          .tid = 43,
          .begin_ticks = 1400,
          .end_ticks = 1800,
          .heap_begin = 5000,
          .heap_end = 5800 },
        { .region = 1,
          .state = FM_LIVE_VISIT_RUNS,
          .tid = 43,
          .order = 2,
          .begin_ticks = 2000,
          .allocated = 1000,
          .freed = 200,
          .high = 950,
          .heap_begin = 5800 },
        { .region = 2,
          .state = FM_LIVE_VISIT_RUNS,
          .tid = 43,
          .level = 1,
          .order = 3,
          .begin_ticks = 2200,
          .allocated = 1150,
          .freed = 200,
          .high = 950,
          .heap_begin = 5950 },
        { .region = 3,
          .state = FM_LIVE_VISIT_WAITS,
          .tid = 44,
          .meter = 1,
          .order = 4,
          .begin_ticks = 2400,
          .since_ticks = 2600,
          .suspended_ticks = 50,
          .had_allocated = 70,
          .had_freed = 20,
          .above = 60 },
        { .state = FM_LIVE_VISIT_FREE, .region = 77 },
    };
    struct fm_live_meter meters[] = { { .allocated = 1450, .freed = 300, .top = 1200, .on = 1 },
                                      { .allocated = 5, .on = 1 } };
    for (uint64_t i = 0; i < 3; i++) {
        fm_buffer_add_varint(&body, FM_LIVE_DEF_REGION);
        fm_buffer_add_varint(&body, i + 1);
        fm_buffer_add_varint(&body, defined[i].around);
        ls_text(&body, defined[i].name);
        ls_define(&log, &body);
    }
    ls_chunk(b, FM_LIVE_DEFS, 0, 0x8000, log.data, log.len);
    ls_chunk(b, FM_LIVE_REGIONS, 0, 0x9000, regions, sizeof regions);
    ls_chunk(b, FM_LIVE_VISITS, 0, 0xa000, visits, sizeof visits);
    ls_chunk(b, FM_LIVE_METERS, 0, 0xb000, meters, sizeof meters);
}

/* The first chunk of a kind. */
static inline struct fm_live_chunk *ls_find(struct fm_buffer *b, uint32_t kind)
{
    size_t at = FM_LIVE_PAGE;
    while (ls_chunk_at(b, at)->kind != kind)
        at += ls_chunk_at(b, at)->bytes;
    return ls_chunk_at(b, at);
}

#define LS_RECORDS(b, kind, type) ((type *)(void *)(ls_find(b, kind) + 1))

#endif
