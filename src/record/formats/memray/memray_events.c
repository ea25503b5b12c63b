/*
 * memray's records of allocations, frees, pushes and pops, one after the other, in both of their forms: from version
 * 12 on a byte has type and flags as densely as they fit, before that four bits each. See memray_bin.h.
 */
#include "record/formats/memray/memray_bin.h"

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

static inline enum fm_memray_ending act(struct fm_memray_bin *b, struct memray_allocator allocator,
                                        uint64_t address, uint64_t bytes)
{
    struct fm_memray_event e = { address, bytes, b->context, b->thread,
                                 (enum fm_heap_kind)allocator.kind };
    if (!fm_memray_whole(&b->s))
        return FM_MEMRAY_CUT_OFF;
    switch ((enum memray_act)allocator.act) {
    case ACT_ALLOCATE:
        return fm_memray_allocate(&b->heap, &e) ? FM_MEMRAY_GOES_ON : FM_MEMRAY_TOO_MUCH;
    case ACT_FREE:
        fm_memray_free(&b->heap, &e);
        return FM_MEMRAY_GOES_ON;
    case ACT_MAP:
        return fm_memray_map(&b->heap, &e) ? FM_MEMRAY_GOES_ON : FM_MEMRAY_TOO_MUCH;
    case ACT_UNMAP:
        return fm_memray_unmap(&b->heap, &e) ? FM_MEMRAY_GOES_ON : FM_MEMRAY_TOO_MUCH;
    case ACT_NONE:
        break;
    }
    return FM_MEMRAY_DAMAGED;
}

/* ---- what is being called ---- */

static inline enum fm_memray_ending push(struct fm_memray_bin *b, uint64_t key)
{
    if (!fm_memray_whole(&b->s))
        return FM_MEMRAY_CUT_OFF;
    uint32_t child = fm_memray_child(&b->c, b->context, key);
    if (child == FM_NONE)
        return FM_MEMRAY_TOO_MUCH;
    struct fm_memray_thread *t = &b->c.threads.data[b->thread];
    fm_vec_push(&t->stack, child);
    b->context = child;
    return FM_MEMRAY_GOES_ON;
}

static inline enum fm_memray_ending pop(struct fm_memray_bin *b, unsigned count)
{
    struct fm_memray_thread *t = &b->c.threads.data[b->thread];
    if (count > t->stack.len)
        return FM_MEMRAY_DAMAGED;
    t->stack.len -= count;
    b->context = t->stack.len ? t->stack.data[t->stack.len - 1] : t->root;
    return FM_MEMRAY_GOES_ON;
}

static enum fm_memray_ending read_look(struct fm_memray_bin *b)
{
    uint64_t rss = fm_memray_varint(&b->s), ms = fm_memray_varint(&b->s);
    if (!fm_memray_whole(&b->s))
        return FM_MEMRAY_CUT_OFF;
    fm_memray_add_look(b, ms, rss, b->heap.live);
    return FM_MEMRAY_GOES_ON;
}

/* ---- records from version 12 on ---- */

static inline uint64_t read_address(struct fm_memray_bin *b, unsigned which)
{
    if (which < 15)
        return b->recent[(b->newest + which) & 15];
    b->newest = (b->newest - 1) & 15;
    return b->recent[b->newest] = fm_memray_delta(&b->s, &b->last_address) << 3;
}

static inline enum fm_memray_ending read_allocation(struct fm_memray_bin *b, unsigned flags)
{
    uint64_t address = read_address(b, flags >> 3 & 15), bytes = 0;
    unsigned number = flags & 7;
    if (!number)
        number = (unsigned)fm_memray_fixed(&b->s, 1);
    if (number > 15)
        return FM_MEMRAY_DAMAGED;
    if (allocators[number].act != ACT_FREE) {
        if (b->header.native)
            fm_memray_delta(&b->s, &b->last_native);
        bytes = fm_memray_varint(&b->s);
    }
    return act(b, allocators[number], address, bytes);
}

static inline enum fm_memray_ending read_push(struct fm_memray_bin *b)
{
    uint64_t code = fm_memray_varint(&b->s);
    int64_t instruction = fm_unzigzag(fm_memray_varint(&b->s));
    if (code > UINT32_MAX)
        return FM_MEMRAY_DAMAGED;
    return push(b, fm_memray_frame_key((uint32_t)code, (uint32_t)instruction));
}

/* An object that came or went: which memory is its is not said, so there is nothing to show. */
static enum fm_memray_ending skip_object(struct fm_memray_bin *b, unsigned flags)
{
    read_address(b, flags >> 1 & 15);
    if (b->header.native && flags & 1)
        fm_memray_delta(&b->s, &b->last_native);
    return fm_memray_whole(&b->s) ? FM_MEMRAY_GOES_ON : FM_MEMRAY_CUT_OFF;
}

static inline enum fm_memray_ending read_record(struct fm_memray_bin *b)
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
        return FM_MEMRAY_ENDED;
    case 2:
        return read_look(b);
    case 5:
        return fm_memray_skip_native_frame(b);
    case 6: /* libraries moved */
        return FM_MEMRAY_GOES_ON;
    case 7:
        return fm_memray_skip_segments(b);
    case 10:
        return fm_memray_name_thread(b);
    case 12:
        return fm_memray_switch_thread(b);
    case 14:
        return fm_memray_define_code(b);
    default:
        return FM_MEMRAY_DAMAGED;
    }
}

/* ---- records of versions 10 and 11 ---- */

static enum fm_memray_ending read_old_allocation(struct fm_memray_bin *b, unsigned number,
                                                 bool native)
{
    uint64_t address = fm_memray_delta(&b->s, &b->last_address), bytes = 0;
    if (native || old_allocators[number].act != ACT_FREE)
        bytes = fm_memray_varint(&b->s);
    if (native)
        fm_memray_delta(&b->s, &b->last_native);
    return act(b, old_allocators[number], address, bytes);
}

static enum fm_memray_ending read_old_push(struct fm_memray_bin *b)
{
    uint64_t frame = fm_memray_delta(&b->s, &b->last_frame);
    return frame > UINT32_MAX ? FM_MEMRAY_DAMAGED : push(b, frame);
}

static inline enum fm_memray_ending read_old_record(struct fm_memray_bin *b)
{
    unsigned token = *b->s.at++, flags = token >> 4;
    switch (token & 15) {
    case 0:
        return flags == 1 ? FM_MEMRAY_ENDED : FM_MEMRAY_DAMAGED;
    case 1:
        return read_old_allocation(b, flags, false);
    case 2:
        return read_old_allocation(b, flags, true);
    case 3:
        return fm_memray_define_frame(b);
    case 4:
        return read_old_push(b);
    case 5:
        return fm_memray_skip_native_frame(b);
    case 6:
        return FM_MEMRAY_GOES_ON;
    case 7:
        return fm_memray_skip_segments(b);
    case 9:
        return pop(b, flags + 1);
    case 10:
        return fm_memray_name_thread(b);
    case 11:
        return read_look(b);
    case 12:
        return fm_memray_switch_thread(b);
    default:
        return FM_MEMRAY_DAMAGED;
    }
}

/* ---- all of them ---- */

enum fm_memray_ending fm_memray_read_events(struct fm_memray_bin *b)
{
    enum fm_memray_ending ending = FM_MEMRAY_GOES_ON;
    if (b->header.version < 12)
        while (ending == FM_MEMRAY_GOES_ON && fm_memray_next(&b->s))
            ending = read_old_record(b);
    else
        while (ending == FM_MEMRAY_GOES_ON && fm_memray_next(&b->s))
            ending = read_record(b);
    return ending == FM_MEMRAY_GOES_ON ? FM_MEMRAY_CUT_OFF : ending;
}
