/*
 * Addresses whose end we must hear of: code objects that stand in contexts, frame objects that serve
 * as anchors. All of these are freed by PyObject_Free, where a bit of a small table says whether an
 * address may be one of them; most are not.
 *
 * Bits are set by anybody and never taken back, so some frees look in vain; and where a loop is given the
 * same address again and again, all of its frees would. The last ones that did are remembered until their
 * address is watched.
 */
#ifndef FM_HEAP_WATCHED_H
#define FM_HEAP_WATCHED_H

#include "target/heap/heap.h"

#define FM_WATCHED_BITS  16
#define FM_WATCHED_LEAST 96 /* bytes: the agent proves that these objects have as many */

#define FM_WATCHED_VAIN 64 /* a power of two */

extern uint64_t fm_watched[1 << (FM_WATCHED_BITS - 6)];
extern uintptr_t fm_watched_vain[FM_WATCHED_VAIN];

static inline uint32_t fm_watched_bit(const void *address)
{
    return (uint32_t)(((uintptr_t)address >> 4) * 0x9e3779b97f4a7c15u >> (64 - FM_WATCHED_BITS));
}

static inline uintptr_t *fm_watched_vain_at(const void *address)
{
    return &fm_watched_vain[fm_watched_bit(address) % FM_WATCHED_VAIN];
}

static inline bool fm_is_watched(const void *address)
{
    uint32_t bit = fm_watched_bit(address);
    return FM_UNLIKELY(__atomic_load_n(&fm_watched[bit >> 6], __ATOMIC_RELAXED) >> (bit & 63) &
                       1) &&
           __atomic_load_n(fm_watched_vain_at(address), __ATOMIC_RELAXED) != (uintptr_t)address;
}

/* It lives, so that nobody frees what was there before. */
static inline void fm_watch(const void *address)
{
    uint32_t bit = fm_watched_bit(address);
    uintptr_t *vain = fm_watched_vain_at(address);
    if (__atomic_load_n(vain, __ATOMIC_RELAXED) == (uintptr_t)address)
        __atomic_store_n(vain, 0, __ATOMIC_RELAXED);
    __atomic_fetch_or(&fm_watched[bit >> 6], (uint64_t)1 << (bit & 63), __ATOMIC_RELAXED);
}

/* A block that may be one of them is about to be freed. With the GIL. */
void fm_watched_ends(const void *block);

#endif
