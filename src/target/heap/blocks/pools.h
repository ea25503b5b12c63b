/*
 * Records of small blocks of Python, a word each, where CPython's own pools are their shape.
 *
 * CPython facts relied on (3.10 to 3.15): blocks of up to 512 bytes lie in pools of 16 KiB, aligned,
 * all of one size class; a pool begins with 48 bytes, of which the 32-bit number at 36 is its class
 * (size = 16 * (class + 1)); it changes class only while none of its blocks is in use. Pools lie in
 * arenas, whose birth and death PyObject_SetArenaAllocator tells us. A block that lies in no arena we
 * know is somebody else's (blocks.h).
 *
 * Against a hash table: 8 bytes per block and not 42, and no search. The GIL protects everything.
 */
#ifndef FM_HEAP_POOLS_H
#define FM_HEAP_POOLS_H

#include "target/heap/heap.h"

#define FM_POOL_SHIFT   14
#define FM_POOL_HEADER  48
#define FM_POOL_CLASS   36 /* where the class is in the header */
#define FM_REGION_SHIFT 20
#define FM_WINDOW_BITS  40 /* of addresses */
#define FM_REGION_POOLS (1u << (FM_REGION_SHIFT - FM_POOL_SHIFT))

struct fm_pool {
    uint64_t *records;    /* by block; NULL: none yet */
    uint32_t block_bytes; /* of its class */
    uint32_t inverse;     /* 2^32 / block_bytes, rounded up */
};

/* A mebibyte of addresses, of which some pools lie in arenas. */
struct fm_region {
    uint64_t arenas; /* a bit per pool */
    struct fm_pool pools[FM_REGION_POOLS];
};

/* By (address - fm_window) >> FM_REGION_SHIFT: a tebibyte around the first arena. Others are rare. */
extern struct fm_region **fm_regions; /* NULL: no pools */
extern uintptr_t fm_window;

void fm_pools_init(void);
void fm_pools_arena_begins(const void *arena, size_t bytes);
void fm_pools_arena_ends(const void *arena, size_t bytes);

void fm_pools_clear(void); /* forget all blocks, not the arenas */

/* Get a pool's records ready for blocks of its present class; false: it is none, or no memory. */
bool fm_pool_prepare(struct fm_region *region, uintptr_t address);

static inline struct fm_pool *fm_pool_at(struct fm_region *region, uintptr_t address)
{
    return &region->pools[address >> FM_POOL_SHIFT & (FM_REGION_POOLS - 1)];
}

static inline struct fm_region *fm_region_at(uintptr_t address)
{
    address -= fm_window;
    return fm_regions && address >> FM_WINDOW_BITS == 0 ? fm_regions[address >> FM_REGION_SHIFT]
                                                        : NULL;
}

static inline uint64_t *fm_pool_record(const struct fm_pool *pool, uintptr_t address)
{
    uint32_t offset = (uint32_t)(address & ((1u << FM_POOL_SHIFT) - 1)) - FM_POOL_HEADER;
    return &pool->records[(uint64_t)offset * pool->inverse >> 32];
}

/* Where the record of a new block is to be; NULL: it is not in a pool. `*ret_bytes`: of its class. */
static inline uint64_t *fm_pools_begin(uintptr_t address, uint32_t *ret_bytes)
{
    struct fm_region *region = fm_region_at(address);
    if (FM_UNLIKELY(!region))
        return NULL;
    struct fm_pool *pool = fm_pool_at(region, address);
    uintptr_t head = address >> FM_POOL_SHIFT << FM_POOL_SHIFT;
    if (FM_UNLIKELY(!pool->records ||
                    pool->block_bytes != (*(const uint32_t *)(head + FM_POOL_CLASS) + 1) * 16) &&
        !fm_pool_prepare(region, address))
        return NULL;
    *ret_bytes = pool->block_bytes;
    return fm_pool_record(pool, address);
}

/* The record of a block; NULL: there is none. */
static inline uint64_t *fm_pools_find(uintptr_t address, uint32_t *ret_bytes)
{
    struct fm_region *region = fm_region_at(address);
    struct fm_pool *pool = region ? fm_pool_at(region, address) : NULL;
    if (!pool || !pool->records)
        return NULL;
    *ret_bytes = pool->block_bytes;
    return fm_pool_record(pool, address);
}

#endif
