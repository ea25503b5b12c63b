/*
 * Reading one of memray's own files: what its parts share. memray_bin.c has the header and makes the profile, memray_events.c
 * reads allocations and frees one after the other, memray_sums.c the sums of an aggregated file, memray_define.c what
 * both have: threads, code, memory over time.
 */
#ifndef FM_FORMATS_MEMRAY_BIN_H
#define FM_FORMATS_MEMRAY_BIN_H

#include "record/formats/memray/memray_contexts.h"
#include "record/formats/memray/memray_heap.h"
#include "record/formats/memray/memray_source.h"
#include "record/model/curve.h"

#define FM_MEMRAY_TIME_MAX_MS ((uint64_t)1 << 43) /* some hundred years */

enum fm_memray_ending {
    FM_MEMRAY_GOES_ON,
    FM_MEMRAY_ENDED,    /* as it should */
    FM_MEMRAY_CUT_OFF,  /* in the middle of a record, or without an end */
    FM_MEMRAY_DAMAGED,  /* something that memray does not write */
    FM_MEMRAY_TOO_MUCH, /* for the budget, or for any machine */
};

struct fm_memray_header {
    uint32_t version, python; /* of Python as in its PY_VERSION_HEX; 0 if unknown */
    bool native, aggregated, python_allocators;
    uint64_t start_ms, end_ms;
    uint32_t pid;
    uint64_t main_tid, skipped;
};

/* Of an aggregated file: a frame below another trace. */
struct fm_memray_trace {
    uint64_t key; /* of its frame */
    uint32_t parent;
};

struct fm_memray_bin {
    struct fm_memray_source s;
    struct fm_budget budget;        /* of contexts, code and texts */
    struct fm_budget blocks_budget; /* of the blocks that are alive */
    struct fm_memray_heap heap;
    struct fm_memray_contexts c;
    struct fm_memray_header header;
    struct fm_buffer text, other, table;
    struct fm_curve curve;
    uint64_t last_ms;
    /* The thread that records are of, and what it is calling. */
    uint32_t thread, context;
    /* What differences are to. */
    uint64_t last_address, last_native, last_instruction, last_frame, last_line;
    uint64_t recent[16]; /* addresses: the newest at `newest`, 14 others behind it, round the end */
    unsigned newest;
    /* Of an aggregated file. */
    FM_VEC(struct fm_memray_trace) traces;
    FM_VEC(uint64_t) frame_keys;
    struct fm_map trace_contexts; /* (thread, trace) → context */
};

/* All records, to the end of the file or of what can be read. */
enum fm_memray_ending fm_memray_read_events(struct fm_memray_bin *b);
enum fm_memray_ending fm_memray_read_sums(struct fm_memray_bin *b);

/* ---- records that all files have, behind their first byte ---- */

enum fm_memray_ending fm_memray_switch_thread(struct fm_memray_bin *b);
enum fm_memray_ending fm_memray_name_thread(struct fm_memray_bin *b);
enum fm_memray_ending fm_memray_define_code(struct fm_memray_bin *b);
enum fm_memray_ending fm_memray_define_frame(struct fm_memray_bin *b);

/* Native frames, and where libraries lie: passed over. */
enum fm_memray_ending fm_memray_skip_native_frame(struct fm_memray_bin *b);
enum fm_memray_ending fm_memray_skip_segments(struct fm_memray_bin *b);

/* A text into `text`; the numbers behind it are in the window then. */
bool fm_memray_read_text(struct fm_memray_bin *b, struct fm_buffer *text);
/* Function and file into b->text and b->other, and what is known of them by this number. */
bool fm_memray_read_names(struct fm_memray_bin *b);
enum fm_memray_ending fm_memray_define_place(struct fm_memray_bin *b, uint64_t number,
                                             uint64_t line);

/* What was resident and allocated so many milliseconds after the start. */
void fm_memray_add_look(struct fm_memray_bin *b, uint64_t ms, uint64_t rss, uint64_t heap);

#endif
