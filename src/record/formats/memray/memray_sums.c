/*
 * memray's aggregated files: contexts, and what each had at the peak and in the end; see memray_bin.h.
 *
 * Traces are those of all threads; a context is one in a thread.
 */
#include "record/formats/memray/memray_bin.h"

/* ---- aggregated files ---- */

/* A frame of the file's own numbering; they come in order. */
static enum fm_memray_ending read_frame(struct fm_memray_bin *b)
{
    bool old = b->c.lines_are_defined;
    uint64_t number = old ? fm_memray_fixed(&b->s, 8) : fm_memray_varint(&b->s), key = number;
    if (old) {
        if (!fm_memray_read_names(b))
            return FM_MEMRAY_CUT_OFF;
        uint64_t line = fm_memray_fixed(&b->s, 4);
        fm_memray_skip(&b->s, 1);
        return fm_memray_define_place(b, number, line);
    }
    uint64_t code = fm_memray_varint(&b->s);
    int64_t instruction = fm_unzigzag(fm_memray_varint(&b->s));
    fm_memray_skip(&b->s, 1);
    if (!fm_memray_whole(&b->s))
        return FM_MEMRAY_CUT_OFF;
    if (number != b->frame_keys.len || code > UINT32_MAX)
        return FM_MEMRAY_DAMAGED;
    key = fm_memray_frame_key((uint32_t)code, (uint32_t)instruction);
    if (!fm_budget_take(&b->budget, 2, sizeof key))
        return FM_MEMRAY_TOO_MUCH;
    fm_vec_push(&b->frame_keys, key);
    return FM_MEMRAY_GOES_ON;
}

/* A frame below another trace; traces count from 1 in their order. */
static enum fm_memray_ending read_trace(struct fm_memray_bin *b)
{
    bool old = b->c.lines_are_defined;
    uint64_t frame = old ? fm_memray_fixed(&b->s, 8) : fm_memray_varint(&b->s);
    uint64_t parent = old ? fm_memray_fixed(&b->s, 4) : fm_memray_varint(&b->s);
    if (!fm_memray_whole(&b->s))
        return FM_MEMRAY_CUT_OFF;
    if (parent > b->traces.len || frame > UINT32_MAX || (!old && frame >= b->frame_keys.len))
        return FM_MEMRAY_DAMAGED;
    if (!fm_budget_take(&b->budget, 2, sizeof(struct fm_memray_trace)))
        return FM_MEMRAY_TOO_MUCH;
    fm_vec_push(&b->traces, ((struct fm_memray_trace){ old ? frame : b->frame_keys.data[frame],
                                                       (uint32_t)parent }));
    return FM_MEMRAY_GOES_ON;
}

/* The context that a trace is in a thread. Each is looked for once: what is above it is known then. */
static uint32_t context_of(struct fm_memray_bin *b, uint32_t thread, uint32_t trace)
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

static enum fm_memray_ending read_sum(struct fm_memray_bin *b)
{
    uint64_t tid = fm_memray_fixed(&b->s, 8);
    fm_memray_skip(&b->s, 8 + 8); /* the allocator, and native frames */
    uint64_t trace = fm_memray_fixed(&b->s, 8), n[4];
    fm_memray_skip(&b->s, 8);
    for (int i = 0; i < 4; i++)
        n[i] = fm_memray_fixed(&b->s, 8);
    if (!fm_memray_whole(&b->s))
        return FM_MEMRAY_CUT_OFF;
    uint32_t thread = fm_memray_thread(&b->c, tid);
    if (trace > b->traces.len)
        return FM_MEMRAY_DAMAGED;
    for (int i = 0; i < 4; i++)
        if (n[i] > FM_MEMRAY_BYTES_MAX)
            return FM_MEMRAY_TOO_MUCH;
    uint32_t context = thread == FM_NONE ? FM_NONE : context_of(b, thread, (uint32_t)trace);
    if (context == FM_NONE)
        return FM_MEMRAY_TOO_MUCH;
    struct fm_memray_account *a = &b->heap.accounts.data[context];
    a->at_blocks = fm_sum(a->at_blocks, (int64_t)n[0]);
    a->live_blocks = fm_sum(a->live_blocks, (int64_t)n[1]);
    a->at = fm_sum(a->at, (int64_t)n[2]);
    a->live = fm_sum(a->live, (int64_t)n[3]);
    return FM_MEMRAY_GOES_ON;
}

static enum fm_memray_ending read_snapshot(struct fm_memray_bin *b)
{
    uint64_t ms = fm_memray_fixed(&b->s, 8), rss = fm_memray_fixed(&b->s, 8);
    uint64_t heap = fm_memray_fixed(&b->s, 8);
    if (!fm_memray_whole(&b->s))
        return FM_MEMRAY_CUT_OFF;
    fm_memray_add_look(b, ms - b->header.start_ms, rss, heap);
    return FM_MEMRAY_GOES_ON;
}

static enum fm_memray_ending skip_survivor(struct fm_memray_bin *b)
{
    fm_memray_varint(&b->s);
    if (b->header.native)
        fm_memray_varint(&b->s);
    return fm_memray_whole(&b->s) ? FM_MEMRAY_GOES_ON : FM_MEMRAY_CUT_OFF;
}

static enum fm_memray_ending read_aggregated_record(struct fm_memray_bin *b)
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
        return fm_memray_skip_native_frame(b);
    case 6:
        return FM_MEMRAY_GOES_ON;
    case 7:
        return fm_memray_skip_segments(b);
    case 10:
        return fm_memray_name_thread(b);
    case 12:
        return fm_memray_switch_thread(b);
    case 13:
        return skip_survivor(b);
    case 14:
        return fm_memray_define_code(b);
    case 15:
        return FM_MEMRAY_ENDED;
    default:
        return FM_MEMRAY_DAMAGED;
    }
}

enum fm_memray_ending fm_memray_read_sums(struct fm_memray_bin *b)
{
    enum fm_memray_ending ending = FM_MEMRAY_GOES_ON;
    while (ending == FM_MEMRAY_GOES_ON && fm_memray_next(&b->s))
        ending = read_aggregated_record(b);
    return ending == FM_MEMRAY_GOES_ON ? FM_MEMRAY_CUT_OFF : ending;
}
