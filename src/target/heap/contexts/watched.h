/*
 * Addresses whose end we must hear of: code objects that stand in contexts, frame objects that serve
 * as anchors. All of these are freed by PyObject_Free, where a bit of a small table says whether an
 * address may be one of them; most are not.
 *
 * Bits are set by anybody and never taken back: a few frees look in vain.
 */
#ifndef FM_HEAP_WATCHED_H
#define FM_HEAP_WATCHED_H

#include "target/heap/heap.h"

#define FM_WATCHED_BITS  16
#define FM_WATCHED_LEAST 96 /* bytes: the agent proves that these objects have as many */

extern uint64_t fm_watched[1 << (FM_WATCHED_BITS - 6)];

static inline uint32_t fm_watched_bit(const void *address)
{
    return (uint32_t)(((uintptr_t)address >> 4) * 0x9e3779b97f4a7c15u >> (64 - FM_WATCHED_BITS));
}

static inline bool fm_is_watched(const void *address)
{
    uint32_t bit = fm_watched_bit(address);
    return __atomic_load_n(&fm_watched[bit >> 6], __ATOMIC_RELAXED) >> (bit & 63) & 1;
}

static inline void fm_watch(const void *address)
{
    uint32_t bit = fm_watched_bit(address);
    __atomic_fetch_or(&fm_watched[bit >> 6], (uint64_t)1 << (bit & 63), __ATOMIC_RELAXED);
}

/* A block that may be one of them is about to be freed. With the GIL. */
void fm_watched_ends(const void *block);

#endif
