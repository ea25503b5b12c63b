/* A heap store built by hand (capture/live_heap.h), for the tests of its reader and for fuzzing it. */
#ifndef FM_TESTS_HEAP_STORE_H
#define FM_TESTS_HEAP_STORE_H

#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/varint.h"
#include "record/capture/live_heap.h"

/* main line 2 → load line 11: 3,000 bytes in 3 blocks, of which 2,000 were alive at the peak and 1,000
 * are now; below load line 11 a type with 500. The table of positions has two instructions of 2 bytes,
 * one on the first line + 1 and one on the line after. */
static const uint8_t hs_table[] = { 0x80 | 11 << 3, 0, 0, 0x80 | 11 << 3, 0, 0 };

static inline void hs_put_text(struct fm_buffer *b, const char *text)
{
    uint8_t varint[FM_VARINT_MAX];
    fm_buffer_add(b, varint, fm_varint_put(varint, strlen(text)));
    fm_buffer_add(b, text, strlen(text));
}

static inline void hs_define(struct fm_buffer *defs, uint64_t kind, uint64_t number,
                             uint64_t first_line, const char *name, const char *file)
{
    fm_autobuffer body = FM_BUFFER_INIT;
    uint8_t varint[FM_VARINT_MAX];
    uint64_t numbers[] = { kind, number, 0, first_line };
    for (size_t i = 0; i < FM_COUNT(numbers); i++)
        fm_buffer_add(&body, varint, fm_varint_put(varint, numbers[i]));
    hs_put_text(&body, name);
    hs_put_text(&body, "");
    hs_put_text(&body, file);
    bool has_table = kind == FM_HEAP_DEF_CODE;
    fm_buffer_add(&body, varint, fm_varint_put(varint, has_table ? sizeof hs_table : 0));
    fm_buffer_add(&body, hs_table, has_table ? sizeof hs_table : 0);
    fm_buffer_add(defs, varint, fm_varint_put(varint, body.len));
    fm_buffer_add(defs, body.data, body.len);
}

static inline void hs_add_piece(struct fm_buffer *s, enum fm_heap_array array, const void *data,
                                size_t len, uint64_t used)
{
    uint64_t at = s->len;
    fm_buffer_add(s, data, len);
    struct fm_heap_header h; /* aligned, as the buffer need not be */
    memcpy(&h, s->data, sizeof h);
    h.pieces[h.piece_count++] = (struct fm_heap_piece){ array, 0, at, 0, len };
    h.used[array] = used;
    memcpy(s->data, &h, sizeof h);
}

static inline void hs_sample(struct fm_buffer *s)
{
    struct fm_heap_header header = { .magic = FM_HEAP_MAGIC,
                                     .version = FM_HEAP_VERSION,
                                     .flags = FM_HEAP_PYTHON | FM_HEAP_READY,
                                     .pid = 77,
                                     .start_ns = 1000,
                                     .epoch = 5,
                                     .peak = 2500,
                                     .own_bytes = 4096 };
    struct fm_heap_node nodes[] = {
        { 0 },
        { .thread = UINT32_MAX, .account = { 1, 0 } },                /* before the program */
        { .thread = 0 },                                              /* the root of the thread */
        { .parent = 2, .code = 1, .offset = 0 },                      /* main, line 2 */
        { .parent = 3, .code = 2, .offset = 2, .account = { 2, 0 } }, /* load, line 12 */
        { .parent = 4, .code = 3, .account = { 3, 0 } },              /* list */
    };
    struct fm_heap_account accounts[] = {
        { 0 },
        { .allocated = 100, .blocks = 1, .live = 100, .live_blocks = 1, .epoch = 1, .node = 1 },
        { .allocated = 3000,
          .blocks = 3,
          .at = 2000,
          .live = 1000,
          .at_blocks = 2,
          .live_blocks = 1,
          .epoch = 5,
          .node = 4,
          .temporary = 1000,
          .temporary_blocks = 1 },
        { .allocated = 500, .blocks = 1, .live = 500, .live_blocks = 1, .epoch = 4, .node = 5 },
    };
    struct fm_heap_share shares[] = {
        { 0 },
        { .epoch = 2 },
        { .at = 1500, .at_blocks = 2, .epoch = 3 },
        { .at = 900, .at_blocks = 9, .epoch = 2 },
    };
    /* Of no account but if blocks were sampled: see hs_sampled(). */
    struct fm_heap_error errors[] = {
        { 0 },
        { 0 },
        { .allocated = 900,
          .live = 100,
          .at = 400,
          .temporary = 300,
          .own_at = 1600,
          .own_at_error = 800,
          .own_at_blocks = 6,
          .own_epoch = 7 },
    };
    struct fm_heap_thread threads[] = { { .tid = 77, .root = 2, .threads = 1 } };
    fm_autobuffer defs = FM_BUFFER_INIT;
    hs_define(&defs, FM_HEAP_DEF_CODE, 1, 1, "main", "/app.py");
    hs_define(&defs, FM_HEAP_DEF_CODE, 2, 10, "load", "/app.py");
    hs_define(&defs, FM_HEAP_DEF_TYPE, 3, 0, "list", "");
    header.worlds[0].sizes[20] = 4;
    header.worlds[0].kind_blocks[FM_HEAP_KIND_OBJECT] = 4;
    header.worlds[0].kind_bytes[FM_HEAP_KIND_OBJECT] = 3500;
    header.worlds[1].sizes[20] = 1;
    header.lost[FM_HEAP_LOST_DEEP] = 7;
    fm_buffer_clear(s);
    fm_buffer_add(s, &header, sizeof header);
    while (s->len < FM_HEAP_HEADER_BYTES)
        fm_buffer_add_char(s, '\0');
    hs_add_piece(s, FM_HEAP_NODES, nodes, sizeof nodes, FM_COUNT(nodes));
    hs_add_piece(s, FM_HEAP_ACCOUNTS, accounts, sizeof accounts, FM_COUNT(accounts));
    hs_add_piece(s, FM_HEAP_SHARES, shares, sizeof shares, FM_COUNT(shares));
    hs_add_piece(s, FM_HEAP_ERRORS, errors, sizeof errors, FM_COUNT(errors));
    hs_add_piece(s, FM_HEAP_THREADS, threads, sizeof threads, 1);
    hs_add_piece(s, FM_HEAP_DEFS, defs.data, defs.len, defs.len);
}

/* The same of sampled blocks: the peaks of both halves are over. */
static inline void hs_sampled(struct fm_buffer *s)
{
    struct fm_heap_header h;
    hs_sample(s);
    memcpy(&h, s->data, sizeof h);
    h.sample_bytes = 65536;
    h.halves[0] = (struct fm_heap_half){ .peak = 2000, .epoch = 7 };
    h.halves[1] = (struct fm_heap_half){ .peak = 2100, .epoch = 5 };
    h.worlds[0].kind_bytes[FM_HEAP_KIND_MMAP] = 4096; /* half of the bytes, and no block … */
    h.worlds[1].kind_bytes[FM_HEAP_KIND_MMAP] = 4096;
    h.worlds[1].kind_blocks[FM_HEAP_KIND_MMAP] = 1; /* … which is the other one's */
    memcpy(s->data, &h, sizeof h);
}

#endif
