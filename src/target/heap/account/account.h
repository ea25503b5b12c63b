/*
 * Counting: a block begins or ends in an account, and the peak is known exactly, without events.
 *
 * The peak. `live` is what is allocated now; when it exceeds the peak, the peak is now (`rising`).
 * The first block that ends after that begins a new epoch: what all accounts had alive until then
 * was the peak, and each account notes it in `at` when it is next touched. So the share of every
 * context in the peak is right at the end, at two comparisons per event. (massif and memray look at all
 * contexts, or keep all events.)
 *
 * Two worlds, see heap.h. In the C world two threads may count at once, unless one is alone (alone.h):
 * their events have no order, and any order of them is right; but no number is lost.
 */
#ifndef FM_HEAP_ACCOUNT_H
#define FM_HEAP_ACCOUNT_H

#include <sys/single_threaded.h>

#include "target/heap/account/events.h"
#include "target/heap/account/together.h"
#include "target/heap/blocks/record.h"
#include "target/heap/heap.h"

#define FM_HEAP_TEMPORARY 1 /* other allocations of the thread, at most, in a temporary's life */

static inline int64_t fm_heap_live(const struct fm_heap_header *h)
{
    return __atomic_load_n(&h->worlds[0].live, __ATOMIC_RELAXED) +
           __atomic_load_n(&h->worlds[1].live, __ATOMIC_RELAXED);
}

/* The heap is higher than ever. */
static inline void fm_heap_rise(struct fm_heap_header *h, int64_t live)
{
    if (__libc_single_threaded) {
        h->peak = live;
    } else {
        int64_t peak = __atomic_load_n(&h->peak, __ATOMIC_RELAXED);
        while (live > peak && !__atomic_compare_exchange_n(&h->peak, &peak, live, true,
                                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            ;
    }
    __atomic_store_n(&h->rising, 1, __ATOMIC_RELAXED);
}

/* Of several threads only one begins the new epoch. */
static inline bool fm_heap_take_rising(struct fm_heap_header *h)
{
    if (!__libc_single_threaded)
        return __atomic_exchange_n(&h->rising, 0, __ATOMIC_ACQ_REL);
    h->rising = 0;
    return true;
}

/* Before a block ends: what is alive now was the peak, if it was. */
static inline void fm_heap_fall(struct fm_heap_header *h)
{
    if (FM_UNLIKELY(__atomic_load_n(&h->rising, __ATOMIC_RELAXED)) && fm_heap_take_rising(h)) {
        uint32_t next = __atomic_load_n(&h->epoch, __ATOMIC_RELAXED) + 1;
        __atomic_store_n(&h->epoch, next ? next : 1, __ATOMIC_RELAXED);
    }
}

static inline uint32_t fm_heap_epoch(const struct fm_heap_header *h)
{
    return __atomic_load_n(&h->epoch, __ATOMIC_RELAXED);
}

/* ---- the Python world ---- */

static inline void fm_account_update(struct fm_heap_account *a, uint32_t epoch)
{
    a->at = a->live;
    a->at_blocks = a->live_blocks;
    a->epoch = epoch;
}

static inline void fm_account_begin(struct fm_heap_header *h, struct fm_heap_account *a,
                                    uint64_t bytes, enum fm_heap_kind kind)
{
    struct fm_heap_counters *c = &h->worlds[FM_HEAP_WORLD_PYTHON];
    uint32_t epoch = fm_heap_epoch(h);
    if (FM_UNLIKELY(a->epoch != epoch))
        fm_account_update(a, epoch);
    fm_together_changes(a);
    a->live += (int64_t)bytes;
    a->live_blocks++;
    a->allocated += bytes;
    a->blocks++;
    fm_events_changed(a, bytes, FM_EVENT_BEGIN);
    c->sizes[fm_heap_size_bucket(bytes)]++;
    c->kind_blocks[kind]++;
    c->kind_bytes[kind] += bytes;
    c->live_blocks++;
    __atomic_store_n(&c->live, c->live + (int64_t)bytes, __ATOMIC_RELAXED);
    int64_t live = fm_heap_live(h);
    if (FM_UNLIKELY(live > __atomic_load_n(&h->peak, __ATOMIC_RELAXED)))
        fm_heap_rise(h, live);
    fm_together_changed(h, live, false);
}

static inline void fm_account_end(struct fm_heap_header *h, struct fm_heap_account *a,
                                  uint64_t bytes)
{
    struct fm_heap_counters *c = &h->worlds[FM_HEAP_WORLD_PYTHON];
    __atomic_store_n(&c->live, c->live - (int64_t)bytes, __ATOMIC_RELAXED);
    fm_heap_fall(h);
    fm_together_changed(h, fm_heap_live(h), false);
    uint32_t epoch = fm_heap_epoch(h);
    if (FM_UNLIKELY(a->epoch != epoch))
        fm_account_update(a, epoch);
    fm_together_changes(a);
    a->live -= (int64_t)bytes;
    a->live_blocks--;
    c->live_blocks--;
    fm_events_changed(a, bytes, FM_EVENT_END);
}

/* A block is another account's, after all. */
static inline void fm_account_move(struct fm_heap_header *h, struct fm_heap_account *from,
                                   struct fm_heap_account *to, uint64_t bytes)
{
    uint32_t epoch = fm_heap_epoch(h);
    if (from->epoch != epoch)
        fm_account_update(from, epoch);
    if (to->epoch != epoch)
        fm_account_update(to, epoch);
    fm_together_changes(from);
    fm_together_changes(to);
    from->live -= (int64_t)bytes;
    from->live_blocks--;
    from->allocated -= bytes;
    from->blocks--;
    to->live += (int64_t)bytes;
    to->live_blocks++;
    to->allocated += bytes;
    to->blocks++;
    fm_events_changed(from, bytes, FM_EVENT_END);
    fm_events_changed(to, bytes, FM_EVENT_BEGIN);
}

/* How long the block lived, if the thread that ends it made it. */
static inline void fm_account_age(struct fm_heap_header *h, struct fm_heap_account *a,
                                  const struct fm_heap_self *self, uint64_t record, uint64_t bytes)
{
    if (a->thread != self->number)
        return;
    uint32_t age = self->allocations - fm_record_birth(record);
    h->worlds[FM_HEAP_WORLD_PYTHON].lives[fm_heap_life_bucket(age)]++;
    if (age <= FM_HEAP_TEMPORARY) {
        a->temporary += bytes;
        a->temporary_blocks++;
    }
}

/* ---- the C world ---- */

/* `alone`: see alone.h. Others may read all the same. */
#define FM_HEAP_ADD(field, value)                                                                  \
    do {                                                                                           \
        if (alone)                                                                                 \
            __atomic_store_n(&(field), (field) + (value), __ATOMIC_RELAXED);                       \
        else                                                                                       \
            __atomic_add_fetch(&(field), (value), __ATOMIC_RELAXED);                               \
    } while (0)

/* Only one thread brings an account up to date; while it does, its epoch is none. */
static inline void fm_account_update_shared(struct fm_heap_account *a, uint32_t epoch)
{
    uint32_t old = __atomic_load_n(&a->epoch, __ATOMIC_ACQUIRE);
    while (old == 0)
        old = __atomic_load_n(&a->epoch, __ATOMIC_ACQUIRE);
    if (old == epoch ||
        !__atomic_compare_exchange_n(&a->epoch, &old, 0, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    a->at = __atomic_load_n(&a->live, __ATOMIC_RELAXED);
    a->at_blocks = __atomic_load_n(&a->live_blocks, __ATOMIC_RELAXED);
    __atomic_store_n(&a->epoch, epoch, __ATOMIC_RELEASE);
}

static inline void fm_account_touch_shared(struct fm_heap_header *h, struct fm_heap_account *a,
                                           bool alone)
{
    uint32_t epoch = fm_heap_epoch(h);
    fm_together_changes(a);
    if (FM_LIKELY(__atomic_load_n(&a->epoch, __ATOMIC_RELAXED) == epoch))
        return;
    if (alone)
        fm_account_update(a, epoch);
    else
        fm_account_update_shared(a, epoch);
}

static inline __attribute__((always_inline)) void
fm_account_begin_shared(struct fm_heap_header *h, struct fm_heap_account *a, bool alone,
                        uint64_t bytes, enum fm_heap_kind kind)
{
    struct fm_heap_counters *c = &h->worlds[FM_HEAP_WORLD_C];
    fm_account_touch_shared(h, a, alone);
    FM_HEAP_ADD(a->live, (int64_t)bytes);
    FM_HEAP_ADD(a->live_blocks, 1);
    FM_HEAP_ADD(a->allocated, bytes);
    FM_HEAP_ADD(a->blocks, 1);
    fm_events_changed(a, bytes, FM_EVENT_BEGIN);
    FM_HEAP_ADD(c->sizes[fm_heap_size_bucket(bytes)], 1);
    FM_HEAP_ADD(c->kind_blocks[kind], 1);
    FM_HEAP_ADD(c->kind_bytes[kind], bytes);
    FM_HEAP_ADD(c->live_blocks, 1);
    FM_HEAP_ADD(c->live, (int64_t)bytes);
    int64_t live = fm_heap_live(h);
    if (FM_UNLIKELY(live > __atomic_load_n(&h->peak, __ATOMIC_RELAXED)))
        fm_heap_rise(h, live);
    fm_together_changed(h, live, alone);
}

/* `blocks` is 0 where a block goes on with fewer bytes: a mapping of which a part is taken away. */
static inline void fm_account_end_shared(struct fm_heap_header *h, struct fm_heap_account *a,
                                         bool alone, uint64_t bytes, int32_t blocks)
{
    struct fm_heap_counters *c = &h->worlds[FM_HEAP_WORLD_C];
    /* First, so that no peak of another thread counts a block which its account has no more. */
    FM_HEAP_ADD(c->live, -(int64_t)bytes);
    fm_heap_fall(h);
    fm_together_changed(h, fm_heap_live(h), alone);
    fm_account_touch_shared(h, a, alone);
    FM_HEAP_ADD(a->live, -(int64_t)bytes);
    FM_HEAP_ADD(a->live_blocks, -blocks);
    FM_HEAP_ADD(c->live_blocks, -blocks);
    fm_events_changed(a, bytes, blocks ? FM_EVENT_END : FM_EVENT_SHRINK);
}

static inline void fm_account_age_shared(struct fm_heap_header *h, struct fm_heap_account *a,
                                         bool alone, const struct fm_heap_self *self,
                                         uint64_t record, uint64_t bytes)
{
    if (a->thread != self->number)
        return;
    uint32_t age = self->allocations - fm_record_birth(record);
    FM_HEAP_ADD(h->worlds[FM_HEAP_WORLD_C].lives[fm_heap_life_bucket(age)], 1);
    if (age <= FM_HEAP_TEMPORARY) {
        FM_HEAP_ADD(a->temporary, bytes);
        FM_HEAP_ADD(a->temporary_blocks, 1);
    }
}

#endif
