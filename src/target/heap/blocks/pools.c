/* Records in the shape of CPython's pools; see pools.h. */
#include "target/heap/blocks/pools.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define CLASSES      32 /* of 16 to 512 bytes */
#define SLAB_BYTES   (1u << 20)
#define LEAST_LIMIT  ((uint64_t)1 << 30)  /* of addresses, if there is a limit */
#define WINDOW_ABOVE ((uintptr_t)1 << 36) /* the first arena; later ones lie below it, mostly */

struct fm_region **fm_regions;
uintptr_t fm_window;

/* Arrays of records are cut from slabs and used again by pools of the same class. */
static struct {
    uint64_t *unused[CLASSES]; /* the first word of each leads to the next */
    char *slab;
    size_t left;
} arrays;

void fm_pools_init(void)
{
    struct rlimit limit;
    if (fm_regions)
        return;
    size_t bytes = ((size_t)1 << (FM_WINDOW_BITS - FM_REGION_SHIFT)) * sizeof *fm_regions;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < LEAST_LIMIT)
        return; /* what it takes of addresses would be missed: blocks.h will do */
    void *p = fm_heap_mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    fm_regions = p == MAP_FAILED ? NULL : p;
}

static uint32_t records_of_class(uint32_t block_bytes)
{
    return ((1u << FM_POOL_SHIFT) - FM_POOL_HEADER) / block_bytes;
}

static void *cut(size_t bytes)
{
    if (arrays.left < bytes) {
        char *slab = fm_heap_map(SLAB_BYTES);
        if (!slab)
            return NULL;
        arrays.slab = slab;
        arrays.left = SLAB_BYTES;
    }
    void *p = arrays.slab;
    arrays.slab += bytes;
    arrays.left -= bytes;
    return p;
}

static uint64_t *array_new(uint32_t block_bytes)
{
    uint64_t **unused = &arrays.unused[block_bytes / 16 - 1];
    uint32_t count = records_of_class(block_bytes);
    uint64_t *array = *unused;
    if (!array)
        return cut(count * sizeof *array);
    *unused = (uint64_t *)(uintptr_t)array[0];
    memset(array, 0, count * sizeof *array);
    return array;
}

static void array_free(struct fm_pool *pool)
{
    if (!pool->records)
        return;
    uint64_t **unused = &arrays.unused[pool->block_bytes / 16 - 1];
    pool->records[0] = (uint64_t)(uintptr_t)*unused;
    *unused = pool->records;
    pool->records = NULL;
}

bool fm_pool_prepare(struct fm_region *region, uintptr_t address)
{
    struct fm_pool *pool = fm_pool_at(region, address);
    uintptr_t head = address >> FM_POOL_SHIFT << FM_POOL_SHIFT;
    if (!(region->arenas >> (address >> FM_POOL_SHIFT & (FM_REGION_POOLS - 1)) & 1))
        return false;
    uint32_t class = *(const uint32_t *)(head + FM_POOL_CLASS);
    if (class >= CLASSES)
        return false;
    array_free(pool);
    pool->block_bytes = (class + 1) * 16;
    pool->inverse = (uint32_t)(((uint64_t)1 << 32) / pool->block_bytes + 1);
    pool->records = array_new(pool->block_bytes);
    return pool->records;
}

static struct fm_region *region_of(uintptr_t address, bool make)
{
    uintptr_t at = address - fm_window;
    if (!fm_regions || at >> FM_WINDOW_BITS)
        return NULL;
    struct fm_region **place = &fm_regions[at >> FM_REGION_SHIFT];
    if (!*place && make)
        *place = cut(sizeof **place);
    return *place;
}

/* Whole pools only: an arena need not be aligned. */
static uintptr_t first_pool(const void *arena)
{
    uintptr_t pool_bytes = (uintptr_t)1 << FM_POOL_SHIFT;
    return ((uintptr_t)arena + pool_bytes - 1) & ~(pool_bytes - 1);
}

static void open_window(uintptr_t address)
{
    uintptr_t end = (address + WINDOW_ABOVE) >> FM_REGION_SHIFT << FM_REGION_SHIFT;
    uintptr_t bytes = (uintptr_t)1 << FM_WINDOW_BITS;
    fm_window = end > bytes ? end - bytes : 0;
}

static void arena_mark(const void *arena, size_t bytes, bool begins)
{
    if (!fm_window && begins)
        open_window((uintptr_t)arena);
    uintptr_t end = (uintptr_t)arena + bytes, pool_bytes = (uintptr_t)1 << FM_POOL_SHIFT;
    for (uintptr_t at = first_pool(arena); at + pool_bytes <= end; at += pool_bytes) {
        struct fm_region *region = region_of(at, begins);
        uint64_t bit = (uint64_t)1 << (at >> FM_POOL_SHIFT & (FM_REGION_POOLS - 1));
        if (!region)
            continue;
        array_free(fm_pool_at(region, at));
        region->arenas = begins ? region->arenas | bit : region->arenas & ~bit;
    }
}

void fm_pools_arena_begins(const void *arena, size_t bytes)
{
    arena_mark(arena, bytes, true);
}

void fm_pools_arena_ends(const void *arena, size_t bytes)
{
    arena_mark(arena, bytes, false);
}

void fm_pools_clear(void)
{
    size_t count = (size_t)1 << (FM_WINDOW_BITS - FM_REGION_SHIFT);
    for (size_t i = 0; fm_regions && fm_window && i < count; i++)
        for (uint32_t k = 0; fm_regions[i] && k < FM_REGION_POOLS; k++)
            array_free(&fm_regions[i]->pools[k]);
}
