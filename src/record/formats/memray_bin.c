/*
 * Reads memray's own files (.bin), versions 10 to 13: memray 1.7 to 1.20.
 *
 * A file is a header and records, in the byte order of the machine (little), as they are or in a frame of LZ4:
 *
 *     header      "memray\0", version, [12+: version of Python], native?, aggregated?, times, command line, pid, …
 *     allocation  an address (the difference to the last, or from version 12 on one of the 15 last), bytes
 *     push, pop   what the thread is calling, as far as it changed since its last allocation
 *     thread      all that follows is of that one
 *     memory      what was resident, every 10 ms
 *     definitions of code objects (12+) or frames, names of threads; of native frames, which are passed over
 *
 * With --aggregate the file has the sums instead: contexts, and what each had at the peak and in the end.
 *
 * A file that ends early, of a program that was killed, is read up to there, and so is a damaged one: a note says
 * so. Only a header that cannot be read makes it unreadable.
 *
 * Untrusted: numbers are checked where they are used, and what is kept is paid from a budget.
 */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "record/formats/format.h"
#include "record/formats/memray_contexts.h"
#include "record/formats/memray_heap.h"
#include "record/formats/memray_source.h"
#include "record/model/curve.h"

#define VERSION_FIRST 10
#define VERSION_LAST  13
#define TEXT_MAX      ((size_t)1 << 20)
#define TABLE_MAX     ((size_t)16 << 20)
#define PATHS_MAX     65536
#define TIME_MAX_MS   ((uint64_t)1 << 43) /* some hundred years */

/* A list of ten million equal objects is forty million bytes of records, and 160 KB of LZ4: what is alive counts
 * by itself, beside what a file of that size may need otherwise. */
#define BUDGET_SMALL ((uint64_t)4 << 30)

enum memray_ending {
    GOES_ON,
    ENDED,    /* as it should */
    CUT_OFF,  /* in the middle of a record, or without an end */
    DAMAGED,  /* something that memray does not write */
    TOO_MUCH, /* for the budget, or for any machine */
};

struct memray_header {
    uint32_t version, python; /* of Python as in its PY_VERSION_HEX; 0 if unknown */
    bool native, aggregated, python_allocators;
    uint64_t start_ms, end_ms;
    uint32_t pid;
    uint64_t main_tid, skipped;
};

struct memray_bin {
    struct fm_memray_source s;
    struct fm_budget budget;
    struct fm_memray_heap heap;
    struct fm_memray_contexts c;
    struct memray_header header;
    struct fm_buffer text, other, table;
    struct fm_curve curve;
    uint64_t last_ms;
    /* The thread that records are of, and what it is calling. */
    uint32_t thread, context;
    /* What differences are to. */
    uint64_t last_address, last_native, last_instruction, last_frame, last_line;
    uint64_t
        recent[16]; /* addresses: of 15 the newest is at `newest`, and they go on round the end */
    unsigned newest;
    /* Of an aggregated file. */
    FM_VEC(struct memray_trace) traces;
    FM_VEC(uint64_t) frame_keys;
    struct fm_map trace_contexts; /* (thread, trace) → context */
};

struct memray_trace {
    uint64_t key; /* of its frame */
    uint32_t parent;
};

/* ---- what was asked ---- */

enum memray_act { ACT_NONE, ACT_ALLOCATE, ACT_FREE, ACT_MAP, ACT_UNMAP };

struct memray_allocator {
    uint8_t act, kind;
};

/* memray does not tell objects of Python from its other memory. */
#define PYTHON_CALL                                                                                \
    {                                                                                              \
        ACT_ALLOCATE, FM_HEAP_KIND_MEMORY                                                          \
    }
#define C_CALL(kind)                                                                               \
    {                                                                                              \
        ACT_ALLOCATE, FM_HEAP_KIND_##kind                                                          \
    }

/* By number, from version 12 on, and before. */
static const struct memray_allocator allocators[16] = {
    [1] = { ACT_FREE, 0 },   [2] = PYTHON_CALL,
    [3] = PYTHON_CALL,       [4] = PYTHON_CALL,
    [5] = { ACT_FREE, 0 },   [6] = C_CALL(MALLOC),
    [7] = C_CALL(REALLOC),   [8] = C_CALL(CALLOC),
    [9] = C_CALL(ALIGNED),   [10] = C_CALL(ALIGNED),
    [11] = C_CALL(ALIGNED),  [12] = C_CALL(ALIGNED),
    [13] = C_CALL(ALIGNED),  [14] = { ACT_MAP, FM_HEAP_KIND_MMAP },
    [15] = { ACT_UNMAP, 0 },
};

static const struct memray_allocator old_allocators[16] = {
    [1] = C_CALL(MALLOC),    [2] = { ACT_FREE, 0 },
    [3] = C_CALL(CALLOC),    [4] = C_CALL(REALLOC),
    [5] = C_CALL(ALIGNED),   [6] = C_CALL(ALIGNED),
    [7] = C_CALL(ALIGNED),   [8] = C_CALL(ALIGNED),
    [9] = C_CALL(ALIGNED),   [10] = { ACT_MAP, FM_HEAP_KIND_MMAP },
    [11] = { ACT_UNMAP, 0 }, [12] = PYTHON_CALL,
    [13] = PYTHON_CALL,      [14] = PYTHON_CALL,
    [15] = { ACT_FREE, 0 },
};

static inline enum memray_ending act(struct memray_bin *b, struct memray_allocator allocator,
                                     uint64_t address, uint64_t bytes)
{
    struct fm_memray_event e = { address, bytes, b->context, b->thread,
                                 (enum fm_heap_kind)allocator.kind };
    if (!fm_memray_whole(&b->s))
        return CUT_OFF;
    switch ((enum memray_act)allocator.act) {
    case ACT_ALLOCATE:
        return fm_memray_allocate(&b->heap, &e) ? GOES_ON : TOO_MUCH;
    case ACT_FREE:
        fm_memray_free(&b->heap, &e);
        return GOES_ON;
    case ACT_MAP:
        return fm_memray_map(&b->heap, &e) ? GOES_ON : TOO_MUCH;
    case ACT_UNMAP:
        return fm_memray_unmap(&b->heap, &e) ? GOES_ON : TOO_MUCH;
    case ACT_NONE:
        break;
    }
    return DAMAGED;
}

/* ---- threads and what they call ---- */

static enum memray_ending switch_thread(struct memray_bin *b)
{
    uint64_t tid = fm_memray_fixed(&b->s, 8);
    if (!fm_memray_whole(&b->s))
        return CUT_OFF;
    uint32_t thread = fm_memray_thread(&b->c, tid);
    if (thread == FM_NONE)
        return TOO_MUCH;
    const struct fm_memray_thread *t = &b->c.threads.data[thread];
    b->thread = thread;
    b->context = t->stack.len ? t->stack.data[t->stack.len - 1] : t->root;
    return GOES_ON;
}

static inline enum memray_ending push(struct memray_bin *b, uint64_t key)
{
    if (!fm_memray_whole(&b->s))
        return CUT_OFF;
    uint32_t child = fm_memray_child(&b->c, b->context, key);
    if (child == FM_NONE)
        return TOO_MUCH;
    struct fm_memray_thread *t = &b->c.threads.data[b->thread];
    fm_vec_push(&t->stack, child);
    b->context = child;
    return GOES_ON;
}

static inline enum memray_ending pop(struct memray_bin *b, unsigned count)
{
    struct fm_memray_thread *t = &b->c.threads.data[b->thread];
    if (count > t->stack.len)
        return DAMAGED;
    t->stack.len -= count;
    b->context = t->stack.len ? t->stack.data[t->stack.len - 1] : t->root;
    return GOES_ON;
}

/* A text, whose numbers may follow: they are in the window then. */
static bool read_text(struct memray_bin *b, struct fm_buffer *text)
{
    fm_buffer_clear(text);
    if (!fm_memray_text(&b->s, text, TEXT_MAX))
        return false;
    fm_memray_next(&b->s);
    return true;
}

static uint32_t string_of(struct memray_bin *b, const struct fm_buffer *text)
{
    return fm_strings_add(b->c.p->strings, fm_buffer_text(text), text->len);
}

static enum memray_ending name_thread(struct memray_bin *b)
{
    if (!read_text(b, &b->text))
        return CUT_OFF;
    if (!fm_budget_take(&b->budget, 1, b->text.len + 1))
        return TOO_MUCH;
    b->c.threads.data[b->thread].name = string_of(b, &b->text);
    return GOES_ON;
}

/* ---- definitions ---- */

/* Function and file of a code object or frame. */
static bool read_names(struct memray_bin *b)
{
    return read_text(b, &b->text) && read_text(b, &b->other);
}

static uint32_t as_line(uint64_t line)
{
    return (int64_t)line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

static enum memray_ending define(struct memray_bin *b, uint64_t number, uint64_t line)
{
    struct fm_memray_code code = { .line = as_line(line) };
    if (!fm_memray_whole(&b->s))
        return CUT_OFF;
    if (number > UINT32_MAX)
        return DAMAGED;
    if (!fm_budget_take(&b->budget, 1, b->text.len + b->other.len))
        return TOO_MUCH;
    code.name = string_of(b, &b->text);
    code.file = string_of(b, &b->other);
    return fm_memray_define(&b->c, (uint32_t)number, &code, &b->table) ? GOES_ON : TOO_MUCH;
}

static enum memray_ending define_code(struct memray_bin *b)
{
    uint64_t number = fm_memray_varint(&b->s);
    if (!read_names(b))
        return CUT_OFF;
    uint64_t line = fm_memray_delta(&b->s, &b->last_line);
    uint64_t len = fm_memray_varint(&b->s);
    fm_buffer_clear(&b->table);
    if (len > TABLE_MAX)
        return DAMAGED;
    if (!fm_memray_whole(&b->s) || !fm_memray_bytes(&b->s, &b->table, len, TABLE_MAX))
        return CUT_OFF;
    return define(b, number, line);
}

static enum memray_ending define_frame(struct memray_bin *b)
{
    uint64_t number = fm_memray_delta(&b->s, &b->last_frame);
    if (!read_names(b))
        return CUT_OFF;
    return define(b, number, fm_memray_delta(&b->s, &b->last_line));
}

/* ---- what is passed over: native frames and where libraries lie ---- */

static enum memray_ending skip_native_frame(struct memray_bin *b)
{
    fm_memray_delta(&b->s, &b->last_instruction);
    fm_memray_delta(&b->s, &b->last_native);
    return fm_memray_whole(&b->s) ? GOES_ON : CUT_OFF;
}

static enum memray_ending skip_segments(struct memray_bin *b)
{
    if (!read_text(b, &b->text))
        return CUT_OFF;
    uint64_t count = fm_memray_varint(&b->s);
    fm_memray_skip(&b->s, 8);
    for (; count && fm_memray_next(&b->s); count--) {
        fm_memray_skip(&b->s, 1 + 8);
        fm_memray_varint(&b->s);
    }
    return count || !fm_memray_whole(&b->s) ? CUT_OFF : GOES_ON;
}

/* ---- memory over time ---- */

static void add_look(struct memray_bin *b, uint64_t ms, uint64_t rss, uint64_t heap)
{
    uint64_t at_ms = b->header.start_ms + ms;
    if (ms > TIME_MAX_MS || rss > FM_MEMRAY_BYTES_MAX || heap > FM_MEMRAY_BYTES_MAX ||
        at_ms < b->last_ms)
        return;
    b->last_ms = at_ms;
    struct fm_memory_point point = { .at_ns = at_ms * 1000000,
                                     .heap = (int64_t)heap,
                                     .rss = (int64_t)rss };
    point.pss = point.swap = point.limit = point.group = -1;
    fm_curve_add(&b->curve, &point);
}

static enum memray_ending read_look(struct memray_bin *b)
{
    uint64_t rss = fm_memray_varint(&b->s), ms = fm_memray_varint(&b->s);
    if (!fm_memray_whole(&b->s))
        return CUT_OFF;
    add_look(b, ms, rss, b->heap.live);
    return GOES_ON;
}

/* ---- records from version 12 on ---- */

static inline uint64_t read_address(struct memray_bin *b, unsigned which)
{
    if (which < 15)
        return b->recent[(b->newest + which) & 15];
    b->newest = (b->newest - 1) & 15;
    return b->recent[b->newest] = fm_memray_delta(&b->s, &b->last_address) << 3;
}

static inline enum memray_ending read_allocation(struct memray_bin *b, unsigned flags)
{
    uint64_t address = read_address(b, flags >> 3 & 15), bytes = 0;
    unsigned number = flags & 7;
    if (!number)
        number = (unsigned)fm_memray_fixed(&b->s, 1);
    if (number > 15)
        return DAMAGED;
    if (allocators[number].act != ACT_FREE) {
        if (b->header.native)
            fm_memray_delta(&b->s, &b->last_native);
        bytes = fm_memray_varint(&b->s);
    }
    return act(b, allocators[number], address, bytes);
}

static inline enum memray_ending read_push(struct memray_bin *b)
{
    uint64_t code = fm_memray_varint(&b->s);
    int64_t instruction = fm_unzigzag(fm_memray_varint(&b->s));
    if (code > UINT32_MAX)
        return DAMAGED;
    return push(b, fm_memray_frame_key((uint32_t)code, (uint32_t)instruction));
}

/* An object that came or went: which memory is its is not said, so there is nothing to show. */
static enum memray_ending skip_object(struct memray_bin *b, unsigned flags)
{
    read_address(b, flags >> 1 & 15);
    if (b->header.native && flags & 1)
        fm_memray_delta(&b->s, &b->last_native);
    return fm_memray_whole(&b->s) ? GOES_ON : CUT_OFF;
}

static inline enum memray_ending read_record(struct memray_bin *b)
{
    unsigned token = *b->s.at++;
    if (token & 128)
        return read_allocation(b, token & 127);
    if (token & 64)
        return read_push(b);
    if (token & 32)
        return skip_object(b, token & 31);
    if (token & 16)
        return pop(b, (token & 15) + 1);
    switch (token) {
    case 1:
        return ENDED;
    case 2:
        return read_look(b);
    case 5:
        return skip_native_frame(b);
    case 6: /* libraries moved */
        return GOES_ON;
    case 7:
        return skip_segments(b);
    case 10:
        return name_thread(b);
    case 12:
        return switch_thread(b);
    case 14:
        return define_code(b);
    default:
        return DAMAGED;
    }
}

/* ---- records of versions 10 and 11 ---- */

static enum memray_ending read_old_allocation(struct memray_bin *b, unsigned number, bool native)
{
    uint64_t address = fm_memray_delta(&b->s, &b->last_address), bytes = 0;
    if (native || old_allocators[number].act != ACT_FREE)
        bytes = fm_memray_varint(&b->s);
    if (native)
        fm_memray_delta(&b->s, &b->last_native);
    return act(b, old_allocators[number], address, bytes);
}

static enum memray_ending read_old_push(struct memray_bin *b)
{
    uint64_t frame = fm_memray_delta(&b->s, &b->last_frame);
    return frame > UINT32_MAX ? DAMAGED : push(b, frame);
}

static inline enum memray_ending read_old_record(struct memray_bin *b)
{
    unsigned token = *b->s.at++, flags = token >> 4;
    switch (token & 15) {
    case 0:
        return flags == 1 ? ENDED : DAMAGED;
    case 1:
        return read_old_allocation(b, flags, false);
    case 2:
        return read_old_allocation(b, flags, true);
    case 3:
        return define_frame(b);
    case 4:
        return read_old_push(b);
    case 5:
        return skip_native_frame(b);
    case 6:
        return GOES_ON;
    case 7:
        return skip_segments(b);
    case 9:
        return pop(b, flags + 1);
    case 10:
        return name_thread(b);
    case 11:
        return read_look(b);
    case 12:
        return switch_thread(b);
    default:
        return DAMAGED;
    }
}

/* ---- aggregated files ---- */

/* A frame of the file's own numbering; they come in order. */
static enum memray_ending read_frame(struct memray_bin *b)
{
    bool old = b->c.lines_are_defined;
    uint64_t number = old ? fm_memray_fixed(&b->s, 8) : fm_memray_varint(&b->s), key = number;
    if (old) {
        if (!read_names(b))
            return CUT_OFF;
        uint64_t line = fm_memray_fixed(&b->s, 4);
        fm_memray_skip(&b->s, 1);
        return define(b, number, line);
    }
    uint64_t code = fm_memray_varint(&b->s);
    int64_t instruction = fm_unzigzag(fm_memray_varint(&b->s));
    fm_memray_skip(&b->s, 1);
    if (!fm_memray_whole(&b->s))
        return CUT_OFF;
    if (number != b->frame_keys.len || code > UINT32_MAX)
        return DAMAGED;
    key = fm_memray_frame_key((uint32_t)code, (uint32_t)instruction);
    if (!fm_budget_take(&b->budget, 2, sizeof key))
        return TOO_MUCH;
    fm_vec_push(&b->frame_keys, key);
    return GOES_ON;
}

/* A frame below another trace; traces count from 1 in their order. */
static enum memray_ending read_trace(struct memray_bin *b)
{
    bool old = b->c.lines_are_defined;
    uint64_t frame = old ? fm_memray_fixed(&b->s, 8) : fm_memray_varint(&b->s);
    uint64_t parent = old ? fm_memray_fixed(&b->s, 4) : fm_memray_varint(&b->s);
    if (!fm_memray_whole(&b->s))
        return CUT_OFF;
    if (parent > b->traces.len || frame > UINT32_MAX || (!old && frame >= b->frame_keys.len))
        return DAMAGED;
    if (!fm_budget_take(&b->budget, 2, sizeof(struct memray_trace)))
        return TOO_MUCH;
    fm_vec_push(&b->traces, ((struct memray_trace){ old ? frame : b->frame_keys.data[frame],
                                                    (uint32_t)parent }));
    return GOES_ON;
}

/* The context that a trace is in a thread. Each is looked for once: what is above it is known then. */
static uint32_t context_of(struct memray_bin *b, uint32_t thread, uint32_t trace)
{
    FM_VEC(uint32_t) missing = { 0 };
    const uint32_t *known = NULL;
    while (trace && !(known = fm_map_find(&b->trace_contexts, fm_map_pair(thread, trace)))) {
        fm_vec_push(&missing, trace);
        trace = b->traces.data[trace - 1].parent;
    }
    uint32_t context = known ? *known : b->c.threads.data[thread].root;
    while (missing.len && context != FM_NONE) {
        trace = missing.data[--missing.len];
        context = fm_memray_child(&b->c, context, b->traces.data[trace - 1].key);
        if (context != FM_NONE)
            fm_map_at(&b->trace_contexts, fm_map_pair(thread, trace), context, NULL);
    }
    fm_vec_release(&missing);
    return context;
}

static enum memray_ending read_sum(struct memray_bin *b)
{
    uint64_t tid = fm_memray_fixed(&b->s, 8);
    fm_memray_skip(&b->s, 8 + 8); /* the allocator, and native frames */
    uint64_t trace = fm_memray_fixed(&b->s, 8), n[4];
    fm_memray_skip(&b->s, 8);
    for (int i = 0; i < 4; i++)
        n[i] = fm_memray_fixed(&b->s, 8);
    if (!fm_memray_whole(&b->s))
        return CUT_OFF;
    uint32_t thread = fm_memray_thread(&b->c, tid);
    if (trace > b->traces.len)
        return DAMAGED;
    for (int i = 0; i < 4; i++)
        if (n[i] > FM_MEMRAY_BYTES_MAX)
            return TOO_MUCH;
    uint32_t context = thread == FM_NONE ? FM_NONE : context_of(b, thread, (uint32_t)trace);
    if (context == FM_NONE)
        return TOO_MUCH;
    struct fm_memray_account *a = &b->heap.accounts.data[context];
    a->at_blocks = fm_sum(a->at_blocks, (int64_t)n[0]);
    a->live_blocks = fm_sum(a->live_blocks, (int64_t)n[1]);
    a->at = fm_sum(a->at, (int64_t)n[2]);
    a->live = fm_sum(a->live, (int64_t)n[3]);
    return GOES_ON;
}

static enum memray_ending read_snapshot(struct memray_bin *b)
{
    uint64_t ms = fm_memray_fixed(&b->s, 8), rss = fm_memray_fixed(&b->s, 8);
    uint64_t heap = fm_memray_fixed(&b->s, 8);
    if (!fm_memray_whole(&b->s))
        return CUT_OFF;
    add_look(b, ms - b->header.start_ms, rss, heap);
    return GOES_ON;
}

static enum memray_ending skip_survivor(struct memray_bin *b)
{
    fm_memray_varint(&b->s);
    if (b->header.native)
        fm_memray_varint(&b->s);
    return fm_memray_whole(&b->s) ? GOES_ON : CUT_OFF;
}

static enum memray_ending read_aggregated_record(struct memray_bin *b)
{
    switch (*b->s.at++) {
    case 1:
        return read_snapshot(b);
    case 2:
        return read_sum(b);
    case 3:
        return read_trace(b);
    case 4:
        return read_frame(b);
    case 5:
        return skip_native_frame(b);
    case 6:
        return GOES_ON;
    case 7:
        return skip_segments(b);
    case 10:
        return name_thread(b);
    case 12:
        return switch_thread(b);
    case 13:
        return skip_survivor(b);
    case 14:
        return define_code(b);
    case 15:
        return ENDED;
    default:
        return DAMAGED;
    }
}

/* ---- the header ---- */

/* Paths that memray maps files to modules with; from version 13 on. */
static bool skip_paths(struct memray_bin *b)
{
    if (!read_text(b, &b->other))
        return false;
    for (int list = 0, n = 0; list < 2; n++) {
        if (n > PATHS_MAX || !read_text(b, &b->other))
            return false;
        list += b->other.len == 0;
    }
    return true;
}

static bool read_header(struct memray_bin *b)
{
    struct memray_header *h = &b->header;
    struct fm_memray_source *s = &b->s;
    fm_memray_next(s);
    h->python = h->version >= 12 ? (uint32_t)fm_memray_fixed(s, 4) : 0;
    h->native = fm_memray_fixed(s, 1) != 0;
    h->aggregated = fm_memray_fixed(s, 1) != 0;
    fm_memray_skip(s, 16); /* how many of what there are, if it was not killed */
    h->start_ms = fm_memray_fixed(s, 8);
    h->end_ms = fm_memray_fixed(s, 8);
    if (!fm_memray_whole(s) || !read_text(b, &b->text))
        return false;
    h->pid = (uint32_t)fm_memray_fixed(s, 4);
    h->main_tid = fm_memray_fixed(s, 8);
    h->skipped = fm_memray_fixed(s, 8);
    fm_memray_skip(s, 1);
    h->python_allocators = h->version >= 11 && fm_memray_fixed(s, 1);
    fm_memray_skip(s, h->version >= 12);
    h->start_ms = h->start_ms < TIME_MAX_MS ? h->start_ms : 0;
    h->end_ms = h->end_ms < TIME_MAX_MS ? h->end_ms : 0;
    return fm_memray_whole(s) && (h->version < 13 || skip_paths(b));
}

static int begin(struct memray_bin *b, struct fm_error *err)
{
    struct fm_memray_source *s = &b->s;
    if (s->end - s->at < 11)
        return fm_error_set(err, FM_DAMAGED, "it is cut off in its header");
    if (memcmp(s->at, "memray", 7) != 0)
        return fm_error_set(err, FM_DAMAGED, "%s",
                            s->broken ? s->broken : "it is a frame of LZ4, and not memray's");
    s->at += 7;
    b->header.version = (uint32_t)fm_memray_fixed(s, 4);
    if (b->header.version < VERSION_FIRST || b->header.version > VERSION_LAST)
        return fm_error_set(
            err, FM_UNSUPPORTED,
            "it is memray's file of version %u, and Fathom reads versions %d to %d; "
            "\"memray transform csv\", of the memray that wrote it, makes one that "
            "Fathom reads",
            b->header.version, VERSION_FIRST, VERSION_LAST);
    if (!read_header(b))
        return fm_error_set(err, FM_DAMAGED, "its header is damaged or cut off");
    b->c.lines_are_defined = b->header.version < 12;
    b->c.table_kind = b->header.python >= 0x030b0000   ? FM_TABLE_PEP657
                      : b->header.python >= 0x030a0000 ? FM_TABLE_PEP626
                                                       : FM_TABLE_LNOTAB;
    b->thread = fm_memray_thread(&b->c, b->header.main_tid);
    b->context = b->c.threads.data[b->thread].root;
    return 0;
}

/* ---- the whole ---- */

static enum memray_ending read_records(struct memray_bin *b)
{
    enum memray_ending ending = GOES_ON;
    if (b->header.aggregated)
        while (ending == GOES_ON && fm_memray_next(&b->s))
            ending = read_aggregated_record(b);
    else if (b->header.version < 12)
        while (ending == GOES_ON && fm_memray_next(&b->s))
            ending = read_old_record(b);
    else
        while (ending == GOES_ON && fm_memray_next(&b->s))
            ending = read_record(b);
    return ending == GOES_ON ? CUT_OFF : ending;
}

static void note_ending(struct memray_bin *b, enum memray_ending ending)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    uint64_t at = b->s.unpacked - (uint64_t)(b->s.at < b->s.end ? b->s.end - b->s.at : 0);
    if (ending == CUT_OFF && !b->s.broken) {
        fm_profile_note(
            b->c.p, FM_NONE, "cut-off", 1,
            b->header.aggregated
                ? "memray's file ends early: some of its sums are missing"
                : "memray's file ends early, as that of a program that was killed: what "
                  "was recorded last may be missing");
        return;
    }
    fm_buffer_addf(&text,
                   "memray's file is damaged: at byte %" PRIu64 " of its records %s; all of "
                   "it that comes before is shown",
                   at,
                   b->s.broken ? b->s.broken
                   : ending == TOO_MUCH
                       ? "is more than any machine has, or than a file of its size may need"
                       : "is what memray does not write");
    fm_profile_note(b->c.p, FM_NONE, "damaged", 1, fm_buffer_text(&text));
}

static uint32_t add_process(struct memray_bin *b, const char *command)
{
    const struct memray_header *h = &b->header;
    char version[32] = "";
    if (h->python)
        snprintf(version, sizeof version, "%u.%u.%u", h->python >> 24, h->python >> 16 & 255,
                 h->python >> 8 & 255);
    uint64_t end_ms = b->last_ms > h->end_ms ? b->last_ms : h->end_ms;
    struct fm_process process = { .pid = h->pid,
                                  .command = fm_profile_string(b->c.p, command),
                                  .version = fm_profile_string(b->c.p, version),
                                  .start_ns = h->start_ms * 1000000,
                                  .start_real_ns = h->start_ms * 1000000,
                                  .exit_status = -1,
                                  .profiled = true,
                                  .memory = true,
                                  .memory_python = h->python_allocators };
    process.end_ns = end_ms > h->start_ms ? end_ms * 1000000 : 0;
    return fm_profile_process(b->c.p, &process);
}

static void add_numbers(struct memray_bin *b, const uint32_t *nodes)
{
    struct fm_profile *p = b->c.p;
    for (size_t i = 1; i < b->c.all.len; i++) {
        const struct fm_memray_account *a = &b->heap.accounts.data[i];
        fm_profile_add(p, FM_METRIC_PEAK, nodes[i], a->at);
        fm_profile_add(p, FM_METRIC_PEAK_BLOCKS, nodes[i], a->at_blocks);
        fm_profile_add(p, FM_METRIC_LEAKED, nodes[i], a->live);
        fm_profile_add(p, FM_METRIC_LEAKED_BLOCKS, nodes[i], a->live_blocks);
        fm_profile_add(p, FM_METRIC_ALLOCATED, nodes[i], a->allocated);
        fm_profile_add(p, FM_METRIC_BLOCKS, nodes[i], a->blocks);
        fm_profile_add(p, FM_METRIC_TEMPORARY, nodes[i], a->temporary);
        fm_profile_add(p, FM_METRIC_TEMPORARY_BLOCKS, nodes[i], a->temporary_blocks);
    }
}

static void add_count(struct memray_bin *b, uint32_t process, enum fm_heap_table table,
                      uint32_t bucket, uint64_t blocks, int64_t bytes)
{
    struct fm_heap_count counted = { process, table, bucket, (int64_t)blocks, bytes };
    if (blocks)
        fm_vec_push(&b->c.p->memory.counts, counted);
}

static void add_counts(struct memray_bin *b, uint32_t process)
{
    const struct fm_memray_heap *h = &b->heap;
    for (uint32_t i = 0; i < FM_HEAP_SIZE_BUCKETS; i++)
        add_count(b, process, FM_HEAP_SIZES, i, h->sizes[i], 0);
    for (uint32_t i = 0; i < FM_HEAP_LIFE_BUCKETS; i++)
        add_count(b, process, FM_HEAP_LIVES, i, h->lives[i], 0);
    for (uint32_t i = 0; i < FM_HEAP_KINDS; i++)
        add_count(b, process, FM_HEAP_BY_KIND, i, h->kind_blocks[i], h->kind_bytes[i]);
}

static void finish(struct memray_bin *b, const char *command)
{
    uint32_t process = add_process(b, command);
    fm_autofree uint32_t *nodes =
        fm_memray_place(&b->c, process, b->header.main_tid, b->header.skipped);
    if (!b->header.aggregated)
        fm_memray_settle(&b->heap);
    add_numbers(b, nodes);
    add_counts(b, process);
    fm_curve_copy(&b->curve, process, &b->c.p->memory);
    if (*command)
        fm_profile_fact(b->c.p, "command", command);
    fm_profile_fact(b->c.p, "collectors", "memory");
    if (b->header.aggregated)
        fm_profile_note(b->c.p, FM_NONE, "partial", 0,
                        "memray was told to aggregate: what was allocated in all, and what was "
                        "freed at once, it did not keep");
}

static void release(struct memray_bin *b)
{
    fm_memray_source_release(&b->s);
    fm_memray_contexts_release(&b->c);
    fm_memray_heap_release(&b->heap);
    fm_buffer_release(&b->text);
    fm_buffer_release(&b->other);
    fm_buffer_release(&b->table);
    fm_curve_release(&b->curve);
    fm_vec_release(&b->traces);
    fm_vec_release(&b->frame_keys);
    fm_map_release(&b->trace_contexts);
}

static struct fm_profile *read_bin(const void *bytes, int fd, uint64_t len, const char *name,
                                   struct fm_error *err)
{
    struct memray_bin b = { .budget = { .all_bytes = BUDGET_SMALL + len * FM_BUDGET_GROWTH } };
    b.budget.left_bytes = b.budget.all_bytes;
    fm_memray_source_init(&b.s, bytes, fd, len);
    fm_memray_heap_init(&b.heap, &b.budget);
    fm_memray_contexts_init(&b.c, &b.heap, &b.budget);
    struct fm_profile *p = b.c.p;
    if (begin(&b, err) == 0) {
        fm_autofree char *command = fm_strndup(fm_buffer_text(&b.text), b.text.len);
        enum memray_ending ending = read_records(&b);
        finish(&b, command);
        if (ending != ENDED)
            note_ending(&b, ending);
    } else {
        fm_error_context(err, "reading %s", name);
        fm_profile_free(p);
        p = NULL;
    }
    release(&b);
    return p;
}

/* ---- the format ---- */

/* Plain, or in a frame of LZ4, which leaves the first bytes as they are. */
static bool recognise(const void *bytes, size_t len)
{
    size_t look = len < 64 ? len : 64;
    return (len >= 7 && memcmp(bytes, "memray", 7) == 0) ||
           (len >= 4 && memcmp(bytes, "\x04\x22\x4d\x18", 4) == 0 &&
            memmem(bytes, look, "memray", 7));
}

static struct fm_profile *load(const void *bytes, size_t len, const char *name,
                               struct fm_error *err)
{
    return read_bin(bytes, -1, len, name, err);
}

static struct fm_profile *load_fd(int fd, uint64_t len, const char *name, struct fm_error *err)
{
    return read_bin(NULL, fd, len, name, err);
}

static const char *const suffixes[] = { NULL };

const struct fm_format fm_format_memray_bin = {
    .name = "memray's .bin",
    .title = "memray's own files",
    .suffixes = suffixes,
    .recognise = recognise,
    .load = load,
    .load_fd = load_fd,
};
