/*
 * Which addresses are whose, told to whoever looks at resident memory from outside (capture/live_heap.h):
 * mappings, arenas of Python, stacks of threads, large blocks. From outside all of them are anonymous
 * memory, and neighbours look like one.
 *
 * What is here is rare: nothing smaller than FM_HEAP_LARGE_BYTES but mappings and arenas.
 *
 * Threads: a lock, within which only the store's is taken. Failure: what has no room is not told.
 */
#ifndef FM_HEAP_RANGES_H
#define FM_HEAP_RANGES_H

#include "target/heap/heap.h"

void fm_ranges_add(enum fm_heap_range_kind kind, uintptr_t start, size_t bytes, uint64_t by);

/* The one that begins there is no more. */
void fm_ranges_remove(uintptr_t start);

void fm_ranges_clear(void); /* forget all of them, for another store */

/* Around fork, and in the child, whose store has none yet. */
void fm_ranges_hold(void);
void fm_ranges_release(void);
void fm_ranges_retell(void);

/* A large block begins or ends. */
static inline void fm_ranges_block_begins(enum fm_heap_range_kind kind, const void *block,
                                          size_t bytes)
{
    if (FM_UNLIKELY(bytes >= FM_HEAP_LARGE_BYTES))
        fm_ranges_add(kind, (uintptr_t)block, bytes, 0);
}

static inline void fm_ranges_block_ends(uintptr_t block, size_t bytes)
{
    if (FM_UNLIKELY(bytes >= FM_HEAP_LARGE_BYTES))
        fm_ranges_remove(block);
}

#endif
