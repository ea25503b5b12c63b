/* Blocks of the C library; see c_world.h. */
#include "target/heap/worlds/c_world.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include "target/heap/account/account.h"
#include "target/heap/blocks/blocks.h"
#include "target/heap/blocks/ranges.h"
#include "target/heap/contexts/context.h"
#include "target/heap/sampled/sampled.h"
#include "target/heap/worlds/alone.h"

#define SHARDS       64
#define BUFFER_BYTES 16384

static struct {
    _Alignas(64) struct fm_heap_blocks blocks;
    fm_heap_lock lock;
} shards[SHARDS];

/* The functions that do the work. */
static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    void *(*memalign)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    size_t (*usable)(void *);
} real;

/* ---- while dlsym looks for them ---- */

static _Alignas(16) char buffer[BUFFER_BYTES];
static size_t buffer_used;

static void *buffer_take(size_t bytes)
{
    size_t rounded = (bytes + 15) & ~(size_t)15;
    size_t at = __atomic_fetch_add(&buffer_used, rounded, __ATOMIC_RELAXED);
    return bytes <= BUFFER_BYTES && at + rounded <= BUFFER_BYTES ? buffer + at : NULL;
}

static bool is_in_buffer(const void *block)
{
    return (const char *)block >= buffer && (const char *)block < buffer + BUFFER_BYTES;
}

void fm_c_world_init(void)
{
    static bool begun;
    if (begun)
        return; /* dlsym itself allocates: from the buffer */
    begun = true;
    real.calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
    real.malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    real.realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
    real.memalign = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "memalign");
    real.posix_memalign = (int (*)(void **, size_t, size_t))dlsym(RTLD_NEXT, "posix_memalign");
    real.aligned_alloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "aligned_alloc");
    real.valloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "valloc");
    real.pvalloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "pvalloc");
    real.usable = (size_t(*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
    real.free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
}

/* ---- records ---- */

/* Other bits of the hash than those that choose the slot. */
static inline size_t shard_of(uintptr_t address)
{
    return (address >> 4) * 0x9e3779b97f4a7c15u >> 58;
}

static inline bool record_put(bool alone, uintptr_t address, uint64_t record, uint64_t bytes,
                              struct fm_heap_block *ret_old)
{
    size_t shard = shard_of(address);
    if (!alone)
        fm_heap_lock_take(&shards[shard].lock);
    bool ok = fm_blocks_put(&shards[shard].blocks, address, record, bytes, ret_old);
    if (!alone)
        fm_heap_lock_give(&shards[shard].lock);
    fm_ranges_block_begins(FM_HEAP_RANGE_C_BLOCK, (const void *)address, bytes);
    if (FM_UNLIKELY(!ok))
        fm_heap_count_lost(FM_HEAP_LOST_BLOCKS);
    return ok;
}

static inline struct fm_heap_block record_take(bool alone, const void *block)
{
    size_t shard = shard_of((uintptr_t)block);
    if (!alone)
        fm_heap_lock_take(&shards[shard].lock);
    struct fm_heap_block found = fm_blocks_take(&shards[shard].blocks, (uintptr_t)block);
    if (!alone)
        fm_heap_lock_give(&shards[shard].lock);
    fm_ranges_block_ends(found.address, found.bytes);
    return found;
}

void fm_c_world_clear(void)
{
    for (size_t i = 0; i < SHARDS; i++)
        fm_blocks_clear(&shards[i].blocks);
}

/* ---- events ---- */

static inline struct fm_heap_account *account_of(const struct fm_heap_block *block)
{
    uint32_t number = fm_record_account(block->record);
    if (FM_UNLIKELY(number <= fm_heap.inherited))
        number = fm_heap.inherited_account[FM_HEAP_WORLD_C];
    return &fm_heap.accounts[number];
}

static inline void ends(struct fm_heap_self *self, bool alone, const struct fm_heap_block *block)
{
    fm_event_ends(self, block->bytes);
    fm_account_end_shared(fm_heap.header, account_of(block), alone, block->bytes, 1);
}

static inline void age(struct fm_heap_self *self, bool alone, const struct fm_heap_block *block)
{
    fm_account_age_shared(fm_heap.header, account_of(block), alone, self, block->record,
                          block->bytes);
}

/* Whoever is alone knows that at compile time: for that both ways are written out, and the rare one is a
 * function of its own, for which the other saves no registers. */
#define WRITTEN_OUT inline __attribute__((always_inline))
#define APART       __attribute__((noinline))

static WRITTEN_OUT void begins(struct fm_heap_self *self, bool alone, void *block, size_t bytes,
                               enum fm_heap_kind kind)
{
    uint32_t account = fm_context_account_c(self);
    if (FM_UNLIKELY(!account)) {
        fm_heap_count_lost(FM_HEAP_LOST_BLOCKS);
        return;
    }
    uint64_t record = fm_record(account, 0, ++self->allocations);
    fm_event_begins(self, bytes);
    struct fm_heap_block old;
    if (record_put(alone, (uintptr_t)block, record, bytes, &old))
        fm_account_begin_shared(fm_heap.header, &fm_heap.accounts[account], alone, bytes, kind);
    if (FM_UNLIKELY(old.record != 0)) {
        age(self, alone, &old);
        ends(self, alone, &old);
    }
}

static APART void begins_shared(struct fm_heap_self *self, void *block, size_t bytes,
                                enum fm_heap_kind kind)
{
    begins(self, false, block, bytes, kind);
}

static void ends_unknown(void)
{
    __atomic_add_fetch(&fm_heap.header->worlds[FM_HEAP_WORLD_C].unknown_frees, 1, __ATOMIC_RELAXED);
}

static APART void *given_nothing(struct fm_heap_self *self, size_t bytes)
{
    int saved_errno = errno;
    fm_alone_inside(self);
    if (bytes)
        fm_context_refused_c(self, bytes);
    errno = saved_errno;
    fm_event_leave(self);
    return NULL;
}

/* Count what the real function gave to a thread whose event is open. */
static APART void *count_given(struct fm_heap_self *self, void *block, size_t bytes,
                               enum fm_heap_kind kind)
{
    if (FM_UNLIKELY(!block))
        return given_nothing(self, bytes);
    int *errno_at = self->errno_at, saved_errno = *errno_at;
    if (FM_LIKELY(fm_alone_inside(self)))
        begins(self, true, block, bytes, kind);
    else
        begins_shared(self, block, bytes, kind);
    *errno_at = saved_errno;
    fm_event_leave(self);
    return block;
}

/* After the real function. */
static inline void *given(struct fm_heap_self *self, void *block, size_t bytes,
                          enum fm_heap_kind kind)
{
    if (FM_UNLIKELY(!self))
        return block;
    if (FM_LIKELY(!fm_heap.sample_bytes))
        return count_given(self, block, bytes, kind);
    fm_event_close();
    return fm_sampled_leave(0, block, bytes, kind);
}

void *fm_c_world_given(struct fm_heap_self *self, void *block, size_t bytes, enum fm_heap_kind kind)
{
    return given(self, block, bytes, kind);
}

static WRITTEN_OUT void goes_so(struct fm_heap_self *self, bool alone, const void *block)
{
    struct fm_heap_block found = record_take(alone, block);
    if (FM_LIKELY(found.record != 0)) {
        age(self, alone, &found);
        ends(self, alone, &found);
    } else {
        ends_unknown();
    }
    fm_event_outside(self);
}

static APART void goes_shared(struct fm_heap_self *self, const void *block)
{
    goes_so(self, false, block);
}

static inline void goes(struct fm_heap_self *self, const void *block)
{
    if (FM_LIKELY(fm_alone_inside(self)))
        goes_so(self, true, block);
    else
        goes_shared(self, block);
}

/* ---- malloc and its family ---- */

FM_HEAP_EXPORT void *malloc(size_t bytes)
{
    if (FM_UNLIKELY(!real.malloc)) {
        fm_c_world_init();
        if (!real.malloc)
            return buffer_take(bytes);
    }
    if (fm_heap.sample_bytes) {
        int busy = fm_sampled_enter();
        return fm_sampled_leave(busy, real.malloc(bytes), bytes, FM_HEAP_KIND_MALLOC);
    }
    struct fm_heap_self *self = fm_event_open();
    void *block = real.malloc(bytes);
    return FM_LIKELY(self != NULL) ? count_given(self, block, bytes, FM_HEAP_KIND_MALLOC) : block;
}

FM_HEAP_EXPORT void *calloc(size_t count, size_t bytes)
{
    if (FM_UNLIKELY(!real.calloc)) {
        fm_c_world_init();
        if (!real.calloc)
            return bytes && count > BUFFER_BYTES / bytes ? NULL : buffer_take(count * bytes);
    }
    if (fm_heap.sample_bytes) {
        int busy = fm_sampled_enter();
        void *block = real.calloc(count, bytes);
        return fm_sampled_leave(busy, block, count * bytes, FM_HEAP_KIND_CALLOC);
    }
    struct fm_heap_self *self = fm_event_open();
    return given(self, real.calloc(count, bytes), count * bytes, FM_HEAP_KIND_CALLOC);
}

/* Before the real function: count the end of a block. If that is not NULL an event is open. */
static inline struct fm_heap_self *taken(const void *block)
{
    if (fm_heap.sample_bytes) {
        if (fm_sampled_may_know(block) && !fm_heap_busy)
            fm_sampled_ends(block);
        return NULL;
    }
    struct fm_heap_self *self = fm_event_open();
    if (FM_UNLIKELY(!self))
        return NULL;
    goes(self, block);
    return self;
}

FM_HEAP_EXPORT void free(void *block)
{
    if (!block || FM_UNLIKELY(is_in_buffer(block)))
        return;
    if (FM_UNLIKELY(!real.free)) {
        fm_c_world_init();
        if (!real.free)
            return;
    }
    struct fm_heap_self *self = taken(block);
    real.free(block);
    if (FM_LIKELY(self != NULL))
        fm_event_close();
}

/* From the buffer to a real block. */
static void *leave_buffer(const void *block, size_t bytes)
{
    void *moved = malloc(bytes);
    size_t left = (size_t)(buffer + BUFFER_BYTES - (const char *)block);
    if (moved)
        memcpy(moved, block, bytes < left ? bytes : left);
    return moved;
}

/* The block is alive after all: realloc failed. */
static void ends_not(struct fm_heap_self *self, bool alone, const struct fm_heap_block *block)
{
    struct fm_heap_block none;
    self->meter->freed -= block->bytes;
    if (record_put(alone, block->address, block->record, block->bytes, &none))
        fm_account_end_shared(fm_heap.header, account_of(block), alone, -block->bytes, -1);
}

struct moving {
    const void *old;
    struct fm_heap_block found; /* its record is 0 if the block is not known */
    uint32_t round;
};

static inline struct moving moves(struct fm_heap_self *self, const void *old)
{
    struct moving moving = { .old = old };
    bool alone = fm_alone_inside(self);
    moving.round = fm_heap.round;
    if (old)
        moving.found = record_take(alone, old);
    if (moving.found.record)
        ends(self, alone, &moving.found);
    fm_event_outside(self);
    return moving;
}

static inline void moved(struct fm_heap_self *self, const struct moving *moving, void *block,
                         size_t bytes)
{
    bool alone = fm_alone_inside(self);
    bool known = moving->found.record && moving->round == fm_heap.round;
    if (FM_UNLIKELY(!block && bytes)) {
        if (known)
            ends_not(self, alone, &moving->found);
        fm_context_refused_c(self, bytes);
    } else {
        if (known)
            age(self, alone, &moving->found);
        else if (moving->old)
            ends_unknown();
        if (block && alone)
            begins(self, true, block, bytes, FM_HEAP_KIND_REALLOC);
        else if (block)
            begins_shared(self, block, bytes, FM_HEAP_KIND_REALLOC);
    }
}

/* The old block is counted as freed before the real function, so that nothing is by halves while that
 * runs, for which others do not wait. */
static inline void *reallocate(fm_c_world_resize *resize, const void *data, void *old, size_t bytes)
{
    struct fm_heap_self *self = fm_event_open();
    if (FM_UNLIKELY(!self))
        return resize(data, old, bytes);
    struct moving moving = moves(self, old);
    void *block = resize(data, old, bytes);
    int saved_errno = errno;
    moved(self, &moving, block, bytes);
    errno = saved_errno;
    fm_event_leave(self);
    return block;
}

static void *resize_plainly(const void *data, void *old, size_t bytes)
{
    (void)data;
    return real.realloc(old, bytes);
}

struct fm_heap_self *fm_c_world_ends(const void *block)
{
    return taken(block);
}

void *fm_c_world_realloc(fm_c_world_resize *resize, const void *data, void *old, size_t bytes)
{
    if (fm_heap.sample_bytes)
        return fm_sampled_realloc(resize, data, old, bytes);
    return reallocate(resize, data, old, bytes);
}

FM_HEAP_EXPORT void *realloc(void *old, size_t bytes)
{
    if (FM_UNLIKELY(!real.realloc)) {
        fm_c_world_init();
        if (!real.realloc)
            return old ? leave_buffer(old, bytes) : buffer_take(bytes);
    }
    if (FM_UNLIKELY(is_in_buffer(old)))
        return leave_buffer(old, bytes);
    if (fm_heap.sample_bytes)
        return fm_sampled_realloc(resize_plainly, NULL, old, bytes);
    return reallocate(resize_plainly, NULL, old, bytes);
}

FM_HEAP_EXPORT void *reallocarray(void *old, size_t count, size_t bytes)
{
    size_t whole;
    if (__builtin_mul_overflow(count, bytes, &whole)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(old, whole);
}

FM_HEAP_EXPORT void *memalign(size_t alignment, size_t bytes)
{
    fm_c_world_init();
    struct fm_heap_self *self = fm_event_open();
    return given(self, real.memalign(alignment, bytes), bytes, FM_HEAP_KIND_ALIGNED);
}

FM_HEAP_EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    fm_c_world_init();
    struct fm_heap_self *self = fm_event_open();
    return given(self, real.aligned_alloc(alignment, bytes), bytes, FM_HEAP_KIND_ALIGNED);
}

FM_HEAP_EXPORT int posix_memalign(void **ret_block, size_t alignment, size_t bytes)
{
    fm_c_world_init();
    struct fm_heap_self *self = fm_event_open();
    int rc = real.posix_memalign(ret_block, alignment, bytes);
    given(self, rc == 0 ? *ret_block : NULL, bytes, FM_HEAP_KIND_ALIGNED);
    return rc;
}

FM_HEAP_EXPORT void *valloc(size_t bytes)
{
    fm_c_world_init();
    struct fm_heap_self *self = fm_event_open();
    return given(self, real.valloc(bytes), bytes, FM_HEAP_KIND_ALIGNED);
}

FM_HEAP_EXPORT void *pvalloc(size_t bytes)
{
    fm_c_world_init();
    struct fm_heap_self *self = fm_event_open();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return given(self, real.pvalloc(bytes), (bytes + page - 1) / page * page, FM_HEAP_KIND_ALIGNED);
}

/* C23; a C library that has them would free past us. */
FM_HEAP_EXPORT void free_sized(void *block, size_t bytes)
{
    (void)bytes;
    free(block);
}

FM_HEAP_EXPORT void free_aligned_sized(void *block, size_t alignment, size_t bytes)
{
    (void)alignment;
    (void)bytes;
    free(block);
}

FM_HEAP_EXPORT size_t malloc_usable_size(void *block)
{
    fm_c_world_init();
    if (FM_UNLIKELY(is_in_buffer(block)))
        return 0;
    return real.usable(block);
}
