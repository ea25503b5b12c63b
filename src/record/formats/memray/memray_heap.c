/* What allocations and frees come to; see memray_heap.h. */
#include "record/formats/memray/memray_heap.h"

#include <sys/random.h>
#include <time.h>

#include "base/map.h"
#include "base/memory.h"
#include "record/model/profile.h"

#define SLOTS_FIRST 4096

/* Where blocks lie must be nothing that a file can choose. */
static uint64_t some_number(void)
{
    uint64_t number;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
        number = (uint64_t)time(NULL) ^ (uintptr_t)&number;
    return number;
}

void fm_memray_heap_init(struct fm_memray_heap *h, struct fm_budget *budget)
{
    *h = (struct fm_memray_heap){ .budget = budget, .seed = some_number(), .cap = SLOTS_FIRST };
    h->slots = fm_calloc(h->cap, sizeof *h->slots);
    h->ranges.seed = h->seed;
    h->rising = true;
    fm_memray_heap_context(h, 0); /* they count from 1 */
}

void fm_memray_heap_release(struct fm_memray_heap *h)
{
    free(h->slots);
    fm_vec_release(&h->accounts);
    fm_vec_release(&h->made);
    fm_memray_ranges_release(&h->ranges);
}

void fm_memray_heap_context(struct fm_memray_heap *h, uint32_t thread)
{
    fm_vec_push(&h->accounts, (struct fm_memray_account){ .thread = thread });
}

void fm_memray_heap_thread(struct fm_memray_heap *h)
{
    fm_vec_push(&h->made, 0);
}

/* ---- blocks that are alive ---- */

static inline size_t home_of(const struct fm_memray_heap *h, uint64_t address)
{
    return (size_t)fm_mix64(address + h->seed) & (h->cap - 1);
}

static inline struct fm_memray_block *find(struct fm_memray_heap *h, uint64_t address)
{
    size_t i = home_of(h, address);
    while (h->slots[i].context && h->slots[i].address != address)
        i = (i + 1) & (h->cap - 1);
    return &h->slots[i];
}

static bool grow(struct fm_memray_heap *h)
{
    struct fm_memray_block *old = h->slots;
    size_t cap = h->cap;
    if (!fm_budget_take(h->budget, cap * 2, sizeof *old))
        return false;
    h->cap = cap * 2;
    h->slots = fm_calloc(h->cap, sizeof *h->slots);
    for (size_t i = 0; i < cap; i++)
        if (old[i].context)
            *find(h, old[i].address) = old[i];
    free(old);
    return true;
}

/* Blocks behind a gap move into it if they could not be at home otherwise. */
static inline void forget(struct fm_memray_heap *h, struct fm_memray_block *block)
{
    size_t mask = h->cap - 1, gap = (size_t)(block - h->slots);
    for (size_t i = (gap + 1) & mask; h->slots[i].context; i = (i + 1) & mask) {
        size_t home = home_of(h, h->slots[i].address);
        if (((i - home) & mask) >= ((i - gap) & mask)) {
            h->slots[gap] = h->slots[i];
            gap = i;
        }
    }
    h->slots[gap].context = 0;
    h->used--;
}

/* ---- accounts and the peak ---- */

static inline struct fm_memray_account *touch(struct fm_memray_heap *h, uint32_t context)
{
    struct fm_memray_account *a = &h->accounts.data[context];
    if (a->epoch != h->epoch) {
        a->at = a->live;
        a->at_blocks = a->live_blocks;
        a->epoch = h->epoch;
    }
    return a;
}

static inline void rise(struct fm_memray_heap *h, uint32_t context, uint64_t bytes)
{
    struct fm_memray_account *a = touch(h, context);
    a->live += (int64_t)bytes;
    a->live_blocks++;
    h->live += bytes;
    if (h->live >= h->peak) {
        h->peak = h->live;
        h->rising = true;
    }
}

/* A free that changes nothing does not end a peak: memray's is the last instant with so much. */
static inline void fall(struct fm_memray_heap *h, uint32_t context, uint64_t bytes, int blocks)
{
    if (h->rising && bytes) {
        h->epoch++;
        h->rising = false;
    }
    struct fm_memray_account *a = touch(h, context);
    a->live -= (int64_t)bytes;
    a->live_blocks += blocks;
    h->live -= bytes;
}

static inline void count(struct fm_memray_heap *h, const struct fm_memray_event *e)
{
    struct fm_memray_account *a = &h->accounts.data[e->context];
    unsigned bucket = fm_heap_size_bucket(e->bytes);
    a->allocated = fm_sum(a->allocated, (int64_t)e->bytes);
    a->blocks++;
    h->sizes[bucket < FM_HEAP_SIZE_BUCKETS ? bucket : FM_HEAP_SIZE_BUCKETS - 1]++;
    h->kind_blocks[e->kind]++;
    h->kind_bytes[e->kind] = fm_sum(h->kind_bytes[e->kind], (int64_t)e->bytes);
}

/* Freed by the thread that made it: how many others that made meanwhile, and temporary if it was one at most. */
static inline void live_out(struct fm_memray_heap *h, uint32_t context, uint32_t thread,
                            uint32_t birth, uint64_t bytes)
{
    struct fm_memray_account *a = &h->accounts.data[context];
    if (a->thread != thread)
        return;
    uint32_t age = h->made.data[thread] - birth;
    h->lives[fm_heap_life_bucket(age)]++;
    if (age <= 1) {
        a->temporary = fm_sum(a->temporary, (int64_t)bytes);
        a->temporary_blocks++;
    }
}

/* ---- blocks ---- */

static inline bool is_possible(const struct fm_memray_heap *h, uint64_t bytes)
{
    return bytes <= FM_MEMRAY_BYTES_MAX && h->live + bytes <= FM_MEMRAY_BYTES_MAX;
}

bool fm_memray_allocate(struct fm_memray_heap *h, const struct fm_memray_event *e)
{
    if (!is_possible(h, e->bytes) || (h->used * 8 >= h->cap * 5 && !grow(h)))
        return false;
    struct fm_memray_block *block = find(h, e->address);
    if (block->context)
        fall(h, block->context, block->bytes, -1);
    else
        h->used++;
    uint32_t birth = ++h->made.data[e->thread];
    *block = (struct fm_memray_block){ e->address, e->bytes, e->context, birth };
    rise(h, e->context, e->bytes);
    count(h, e);
    return true;
}

void fm_memray_free(struct fm_memray_heap *h, const struct fm_memray_event *e)
{
    struct fm_memray_block *block = find(h, e->address);
    if (!block->context)
        return;
    live_out(h, block->context, e->thread, block->birth, block->bytes);
    fall(h, block->context, block->bytes, -1);
    forget(h, block);
}

/* ---- mappings ---- */

struct memray_unmapping {
    struct fm_memray_heap *h;
    const struct fm_memray_event *e;
};

static void unmapped(void *data, const struct fm_memray_range *range, uint64_t bytes, int blocks)
{
    const struct memray_unmapping *u = data;
    if (range->begin == u->e->address && bytes == u->e->bytes && blocks < 0)
        live_out(u->h, range->context, u->e->thread, range->birth, bytes);
    fall(u->h, range->context, bytes, blocks);
}

/* Ranges that are no more are used again; new ones count, and so does, a little, each that a munmap meets: no
 * honest one meets many, and a file could make it meet all. */
static bool pay_for_ranges(struct fm_memray_heap *h, size_t met)
{
    size_t fresh = h->ranges.all.len - h->ranges_known;
    h->ranges_known = h->ranges.all.len;
    return fm_budget_take(h->budget, fresh, sizeof *h->ranges.all.data) &&
           (met <= 16 || fm_budget_take(h->budget, met, 8));
}

bool fm_memray_map(struct fm_memray_heap *h, const struct fm_memray_event *e)
{
    struct fm_memray_range range = { .begin = e->address, .context = e->context };
    if (!is_possible(h, e->bytes) || __builtin_add_overflow(e->address, e->bytes, &range.end))
        return false;
    range.birth = ++h->made.data[e->thread];
    if (e->bytes)
        fm_memray_ranges_add(&h->ranges, &range);
    rise(h, e->context, e->bytes);
    count(h, e);
    return pay_for_ranges(h, 0);
}

bool fm_memray_unmap(struct fm_memray_heap *h, const struct fm_memray_event *e)
{
    uint64_t end;
    if (__builtin_add_overflow(e->address, e->bytes, &end))
        end = UINT64_MAX;
    struct memray_unmapping u = { h, e };
    fm_memray_ranges_take(&h->ranges, e->address, end, unmapped, &u);
    return pay_for_ranges(h, h->ranges.met.len);
}

/* ---- the end ---- */

/* Accounts of an older epoch had at the peak what they have now; while it rises, all have. */
void fm_memray_settle(struct fm_memray_heap *h)
{
    h->epoch += h->rising;
    for (size_t i = 0; i < h->accounts.len; i++)
        touch(h, (uint32_t)i);
}
