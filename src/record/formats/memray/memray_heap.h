/*
 * What the allocations and frees of a memray file, one after the other, come to: by context what was allocated,
 * what was alive at the peak and at the end, and what was freed at once.
 *
 * One pass, exact. The peak is the last instant at which most was alive, as memray has it. Accounts keep what is
 * alive; at the first free after a peak a new epoch begins, and an account notes what it had at that peak when
 * it is first touched after it. So no instant costs more than another.
 *
 * A block at an address where one is alive takes its place: that one was freed unseen.
 *
 * Contexts are numbers that the reader gives, from 1 on; each has a thread.
 */
#ifndef FM_FORMATS_MEMRAY_HEAP_H
#define FM_FORMATS_MEMRAY_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "record/capture/budget.h"
#include "record/capture/live_heap.h"
#include "record/formats/memray/memray_ranges.h"

/* No machine has more, and no sum of what is alive may pass it. */
#define FM_MEMRAY_BYTES_MAX ((uint64_t)1 << 60)

struct fm_memray_account {
    int64_t allocated, blocks;
    int64_t at, at_blocks; /* at the last peak before `epoch` */
    int64_t live, live_blocks;
    int64_t temporary, temporary_blocks;
    uint64_t epoch;
    uint32_t thread;
};

struct fm_memray_block {
    uint64_t address, bytes;
    uint32_t context; /* 0: the slot is free */
    uint32_t birth;
};

struct fm_memray_heap {
    FM_VEC(struct fm_memray_account) accounts; /* by context */
    FM_VEC(uint32_t) made;                     /* allocations by thread, modulo 2^32 */
    struct fm_memray_block *slots;
    size_t used, cap; /* cap is a power of two */
    uint64_t seed;
    struct fm_memray_ranges ranges;
    size_t ranges_known; /* to the budget */
    uint64_t live, peak;
    uint64_t epoch;
    bool rising; /* the peak is now */
    uint64_t sizes[FM_HEAP_SIZE_BUCKETS], lives[FM_HEAP_LIFE_BUCKETS];
    uint64_t kind_blocks[FM_HEAP_KINDS];
    int64_t kind_bytes[FM_HEAP_KINDS];
    struct fm_budget *budget;
};

/* One allocation or free. */
struct fm_memray_event {
    uint64_t address, bytes;
    uint32_t context, thread; /* of a free only the thread counts */
    enum fm_heap_kind kind;
};

void fm_memray_heap_init(struct fm_memray_heap *h, struct fm_budget *budget);
void fm_memray_heap_release(struct fm_memray_heap *h);

/* The next context, or thread. */
void fm_memray_heap_context(struct fm_memray_heap *h, uint32_t thread);
void fm_memray_heap_thread(struct fm_memray_heap *h);

/* False: more than any machine has, or than the budget allows. */
bool fm_memray_allocate(struct fm_memray_heap *h, const struct fm_memray_event *e);
bool fm_memray_map(struct fm_memray_heap *h, const struct fm_memray_event *e);
void fm_memray_free(struct fm_memray_heap *h, const struct fm_memray_event *e);
bool fm_memray_unmap(struct fm_memray_heap *h, const struct fm_memray_event *e);

/* Everything was there: what accounts that were not touched since had at the peak. */
void fm_memray_settle(struct fm_memray_heap *h);

#endif
