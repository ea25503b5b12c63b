/*
 * Sampled blocks (--memory=sampled): one in `fm_heap.sample_bytes` bytes, and nothing but a countdown
 * for all others.
 *
 * Every thread counts down the bytes it allocates; the block that brings it below zero is recorded, and
 * stands for many (sampled_account.h says for how many, and how sure that is). A block that ends is in
 * the table of records, or is not, as most are: of each small stretch of addresses a byte says how many
 * recorded blocks begin there, so that nearly all frees need no more than that byte.
 *
 * Mappings are few, and all of them recorded.
 *
 * Both worlds are one here: records and accounts are behind one lock, which is taken once in so many
 * bytes. The stack is walked without anchors (context.h): it is done too rarely for them.
 */
#ifndef FM_HEAP_SAMPLED_H
#define FM_HEAP_SAMPLED_H

#include "target/heap/blocks/blocks.h"
#include "target/heap/heap.h"
#include "target/heap/worlds/c_world.h"

#define FM_SAMPLED_STRETCHES (1u << 18)

/* Of a thread. */
struct fm_sampled_thread {
    int64_t left;    /* bytes until the next sample */
    uint32_t made;   /* blocks, counts up, around */
    uint32_t armed;  /* `left` was drawn; else the next block sees to it */
    uint64_t random; /* see chance.h */
};

extern FM_HEAP_TLS struct fm_sampled_thread fm_sampled_here;
extern uint8_t fm_sampled_stretches[FM_SAMPLED_STRETCHES];
extern uint32_t fm_sampled_shift; /* a stretch has 2^shift bytes */

/* `seed`: the same samples each time, where the program does the same; 0: others each time. */
void fm_sampled_init(uint64_t sample_bytes, uint64_t seed);

static inline uint8_t *fm_sampled_stretch(const void *block)
{
    uintptr_t stretch = (uintptr_t)block >> fm_sampled_shift;
    return &fm_sampled_stretches[(stretch ^ stretch >> 18) & (FM_SAMPLED_STRETCHES - 1)];
}

/* May the block be recorded? Nearly always it is not. */
static inline bool fm_sampled_may_know(const void *block)
{
    return FM_UNLIKELY(__atomic_load_n(fm_sampled_stretch(block), __ATOMIC_RELAXED));
}

/* The end of the block is to be looked at though it is not recorded: it is a code object (watched.h). */
void fm_sampled_watch(const void *block);

/* Around the real function: what it calls in turn is not counted. Gives what to leave with. */
static inline int fm_sampled_enter(void)
{
    int busy = fm_heap_busy;
    fm_heap_busy = 1;
    return busy;
}

void fm_sampled_passed(void *block, size_t bytes, enum fm_heap_kind kind);
void fm_sampled_refused(size_t bytes, enum fm_heap_kind kind);

static inline void *fm_sampled_leave(int busy, void *block, size_t bytes, enum fm_heap_kind kind)
{
    struct fm_sampled_thread *here = &fm_sampled_here;
    fm_heap_busy = busy;
    if (FM_UNLIKELY(busy))
        return block;
    if (FM_UNLIKELY(!block)) {
        fm_sampled_refused(bytes, kind);
        return block;
    }
    here->made++;
    if (FM_UNLIKELY((here->left -= (int64_t)bytes) < 0))
        fm_sampled_passed(block, bytes, kind);
    return block;
}

/* A block that may be recorded is about to end. */
void fm_sampled_ends(const void *block);

/* The same in three steps, for realloc: take the record away, and put it back, or count its end. */
struct fm_heap_block fm_sampled_take(const void *block);
void fm_sampled_put_back(const struct fm_heap_block *taken);
void fm_sampled_ended(const struct fm_heap_block *taken);

/* A mapping, or a part of one: `blocks` is 0 where the rest goes on. `account` is any of its node's. */
void fm_sampled_mapped(uint32_t account, uint64_t bytes);
void fm_sampled_unmapped(uint32_t account, uint64_t bytes, int32_t blocks);

/* Of C's realloc. */
void *fm_sampled_realloc(fm_c_world_resize *resize, const void *data, void *old, size_t bytes);

/* Fork: nobody else may be at it; then in the parent, or in the child. */
void fm_sampled_hold(void);
void fm_sampled_release(void);
void fm_sampled_in_child(void);
/* … and what it was born with is in the accounts of `inherited_account`. */
void fm_sampled_inherit(void);

/* Python's allocators: the hooks of a domain (python_world.h). */
struct fm_python_allocator;
const struct fm_python_allocator *fm_sampled_hooks(int domain);

#endif
