/* Blocks of Python's allocators; see python_world.h. */
#include "target/heap/worlds/python_world.h"

#include <dlfcn.h>
#include <errno.h>

#include "target/heap/account/account.h"
#include "target/heap/blocks/blocks.h"
#include "target/heap/blocks/pools.h"
#include "target/heap/blocks/ranges.h"
#include "target/heap/blocks/types.h"
#include "target/heap/contexts/context.h"
#include "target/heap/contexts/watched.h"
#include "target/heap/sampled/sampled.h"
#include "target/heap/worlds/event.h"

/* PyObjectArenaAllocator; unchanged since 3.5. */
struct python_arenas {
    void *ctx;
    void *(*alloc)(void *ctx, size_t bytes);
    void (*free)(void *ctx, void *arena, size_t bytes);
};

struct fm_python_allocator fm_python_behind[FM_PYTHON_DOMAINS];
static struct python_arenas arena_behind;
static struct fm_heap_blocks large; /* blocks that lie in no pool */
static fm_heap_lock lock;           /* instead of the GIL, when there are several */
static FM_HEAP_TLS unsigned
    entered; /* counts events, to find out whether hooks are still in place */
static FM_HEAP_TLS bool
    guarded; /* this thread has the lock: its own allocations come through here */

/* ---- records ---- */

/* The record that was there, of a block that ended behind our back, or 0. */
static inline uint64_t record_put(void *block, size_t bytes, uint32_t account, uint32_t birth,
                                  uint64_t *ret_old_bytes)
{
    uintptr_t address = (uintptr_t)block;
    uint32_t class_bytes;
    uint64_t *place = bytes <= 512 ? fm_pools_begin(address, &class_bytes) : NULL;
    if (FM_LIKELY(place != NULL) && FM_LIKELY(class_bytes - bytes < 256)) {
        uint64_t old = *place;
        *place = fm_record(account, class_bytes - (uint32_t)bytes, birth);
        *ret_old_bytes = class_bytes - fm_record_slack(old);
        return old;
    }
    struct fm_heap_block old;
    if (!fm_blocks_put(&large, address, fm_record(account, 0, birth), bytes, &old))
        fm_heap_count_lost(FM_HEAP_LOST_BLOCKS);
    fm_ranges_block_begins(FM_HEAP_RANGE_PYTHON_BLOCK, block, bytes);
    fm_heap.header->python_large += (int64_t)(bytes - (old.record ? old.bytes : 0));
    *ret_old_bytes = old.bytes;
    return old.record;
}

/* Take the record of a block away; 0 if it is not known. */
static inline uint64_t record_take(const void *block, uint64_t *ret_bytes)
{
    uintptr_t address = (uintptr_t)block;
    uint32_t class_bytes;
    uint64_t *place = fm_pools_find(address, &class_bytes);
    if (FM_LIKELY(place && *place)) {
        uint64_t record = *place;
        *place = 0;
        *ret_bytes = class_bytes - fm_record_slack(record);
        return record;
    }
    struct fm_heap_block found = fm_blocks_take(&large, address);
    fm_ranges_block_ends(address, found.bytes);
    fm_heap.header->python_large -= (int64_t)found.bytes;
    *ret_bytes = found.bytes;
    return found.record;
}

/* ---- events ---- */

static void ends(struct fm_heap_self *self, uint64_t record, uint64_t bytes);

static inline void begins(struct fm_heap_self *self, void *thread, void *block, size_t bytes,
                          enum fm_heap_kind kind)
{
    bytes += !bytes; /* CPython makes it one, too */
    bool may_anchor = kind != FM_HEAP_KIND_OBJECT || bytes < fm_heap.layout.frame_object_bytes;
    uint32_t account = fm_context_account(self, FM_HEAP_WORLD_PYTHON, thread,
                                          may_anchor ? FM_CONTEXT_MAY_ANCHOR : FM_CONTEXT_GIL);
    if (FM_UNLIKELY(!account)) {
        fm_heap_count_lost(FM_HEAP_LOST_BLOCKS);
        return;
    }
    uint64_t old_bytes, old = record_put(block, bytes, account, ++self->allocations, &old_bytes);
    fm_event_begins(self, bytes);
    fm_account_begin(fm_heap.header, &fm_heap.accounts[account], bytes, kind);
    if (FM_UNLIKELY(old != 0))
        ends(self, old, old_bytes);
    if (FM_UNLIKELY(fm_heap.types))
        fm_types_block(self, &(struct fm_heap_last){ block, bytes, account });
}

bool fm_python_world_move(const void *block, uint32_t from, uint32_t to)
{
    uint64_t bytes, old_bytes, record = record_take(block, &bytes);
    bool mine = record && fm_record_account(record) == from;
    if (record)
        record_put((void *)block, bytes, mine ? to : fm_record_account(record),
                   fm_record_birth(record), &old_bytes);
    return mine;
}

/* The account that a record means: all that a child was born with is one. */
static inline uint32_t account_of(uint64_t record)
{
    uint32_t account = fm_record_account(record);
    return FM_LIKELY(account > fm_heap.inherited) ? account
                                                  : fm_heap.inherited_account[FM_HEAP_WORLD_PYTHON];
}

static void ends(struct fm_heap_self *self, uint64_t record, uint64_t bytes)
{
    struct fm_heap_account *account = &fm_heap.accounts[account_of(record)];
    fm_event_ends(self, bytes);
    fm_account_age(fm_heap.header, account, self, record, bytes);
    fm_account_end(fm_heap.header, account, bytes);
}

/* The block is alive after all: realloc failed. */
static void ends_not(void *block, uint64_t record, uint64_t bytes)
{
    uint64_t none;
    record_put(block, bytes, fm_record_account(record), fm_record_birth(record), &none);
}

/* ---- the hooks ---- */

static inline struct fm_heap_self *open_event(void)
{
    entered++;
    return fm_event_open();
}

/* This thread has another thread state than last time: of a second interpreter, which may have a GIL
 * of its own? What is in an interpreter was allocated in it, so that none escapes us. */
static void see_thread(struct fm_heap_self *self, const void *thread)
{
    uint32_t at = fm_heap.layout.thread_interpreter;
    self->thread = thread;
    if (at == UINT32_MAX || fm_heap.parallel)
        return;
    const void *interpreter = *(const void *const *)((const char *)thread + at);
    if (!fm_heap.interpreter)
        fm_heap.interpreter = interpreter;
    if (interpreter == fm_heap.interpreter)
        return;
    __atomic_store_n(&fm_heap.parallel, true, __ATOMIC_RELAXED);
    fm_threads_await(NULL); /* those who have not seen it yet */
}

/* The thread state that runs; NULL: none, or its frames are not known yet. Before guard(). */
static inline void *running_thread(struct fm_heap_self *self)
{
    if (FM_UNLIKELY(!fm_heap.has_layout))
        return NULL;
    void *thread = fm_heap.layout.current_thread();
    if (FM_UNLIKELY(thread != self->thread) && thread)
        see_thread(self, thread);
    return thread;
}

static void guard_slowly(void)
{
    fm_heap_lock_take(&lock);
    guarded = true;
}

static void unguard_slowly(void)
{
    guarded = false;
    fm_heap_lock_give(&lock);
}

static inline void guard(void)
{
    if (FM_UNLIKELY(__atomic_load_n(&fm_heap.parallel, __ATOMIC_RELAXED)))
        guard_slowly();
}

static inline void unguard(void)
{
    if (FM_UNLIKELY(guarded)) /* not `parallel`: that may have become true since */
        unguard_slowly();
}

void fm_python_world_clear(void)
{
    guard_slowly();
    fm_blocks_clear(&large);
    fm_pools_clear();
    unguard_slowly();
}

void fm_python_world_hold(void)
{
    guard_slowly();
}

void fm_python_world_release(void)
{
    unguard_slowly();
}

static inline void count(struct fm_heap_self *self, void *block, size_t bytes,
                         enum fm_heap_kind kind)
{
    fm_event_inside(self);
    void *thread = running_thread(self);
    if (FM_LIKELY(block != NULL)) {
        guard();
        begins(self, thread, block, bytes, kind);
        unguard();
    } else {
        fm_context_refused(self, bytes, thread, FM_CONTEXT_GIL);
    }
    fm_event_leave(self);
}

static inline void *hook_malloc(int domain, enum fm_heap_kind kind, size_t bytes)
{
    const struct fm_python_allocator *next = &fm_python_behind[domain];
    struct fm_heap_self *self = open_event();
    void *block = next->malloc(next->ctx, bytes);
    if (FM_LIKELY(self != NULL))
        count(self, block, bytes, kind);
    return block;
}

static inline void *hook_calloc(int domain, enum fm_heap_kind kind, size_t count_of, size_t bytes)
{
    const struct fm_python_allocator *next = &fm_python_behind[domain];
    struct fm_heap_self *self = open_event();
    void *block = next->calloc(next->ctx, count_of, bytes);
    if (FM_LIKELY(self != NULL))
        count(self, block, count_of * bytes, kind);
    return block;
}

static inline void hook_free(int domain, void *block)
{
    const struct fm_python_allocator *next = &fm_python_behind[domain];
    struct fm_heap_self *self = FM_LIKELY(block != NULL) ? open_event() : NULL;
    if (FM_UNLIKELY(!self)) {
        next->free(next->ctx, block);
        return;
    }
    uint64_t bytes, record;
    fm_event_inside(self);
    guard();
    record = record_take(block, &bytes);
    /* What is watched is a code object or a frame object, not small; those that we make ourselves
     * have no record. */
    if (FM_UNLIKELY(!record || bytes >= FM_WATCHED_LEAST) && fm_is_watched(block))
        fm_watched_ends(block);
    if (FM_LIKELY(record != 0))
        ends(self, record, bytes);
    else
        fm_heap.header->worlds[FM_HEAP_WORLD_PYTHON].unknown_frees++;
    unguard();
    fm_event_outside(self);
    fm_threads_see_free(self);
    next->free(next->ctx, block);
    fm_event_close();
}

static inline void *hook_realloc(int domain, enum fm_heap_kind kind, void *old, size_t bytes)
{
    const struct fm_python_allocator *next = &fm_python_behind[domain];
    if (!old)
        return hook_malloc(domain, kind, bytes);
    struct fm_heap_self *self = open_event();
    if (FM_UNLIKELY(!self))
        return next->realloc(next->ctx, old, bytes);
    uint64_t old_bytes;
    fm_event_inside(self);
    void *thread = running_thread(self);
    guard();
    uint64_t record = record_take(old, &old_bytes);
    unguard();
    fm_event_outside(self);
    void *block = next->realloc(next->ctx, old, bytes);
    fm_event_inside(self);
    guard();
    if (FM_UNLIKELY(!block)) {
        if (record)
            ends_not(old, record, old_bytes);
        fm_context_refused(self, bytes, thread, FM_CONTEXT_GIL);
    } else {
        if (FM_LIKELY(record != 0))
            ends(self, record, old_bytes);
        begins(self, thread, block, bytes, kind);
    }
    unguard();
    fm_event_leave(self);
    return block;
}

FM_PYTHON_HOOKS(memory, FM_PYTHON_MEM, FM_HEAP_KIND_MEMORY)
FM_PYTHON_HOOKS(object, FM_PYTHON_OBJ, FM_HEAP_KIND_OBJECT)

/* A block of C was allocated on a deep stack, perhaps without the GIL; here it is held. */
static void anchor_for_c(void)
{
    struct fm_heap_self *self = fm_event_enter();
    if (!self)
        return;
    void *thread = fm_heap.has_layout ? fm_heap.layout.current_thread() : NULL;
    if (thread)
        fm_context_anchor(self, thread);
    self->wants_anchor = false;
    fm_event_leave(self);
}

/* What is put off until the GIL is held. */
static void attend(struct fm_heap_self *self)
{
    if (self->wants_anchor)
        anchor_for_c();
    if (fm_heap_busy)
        return;
    fm_heap_busy = 1;
    fm_threads_see_free(self);
    fm_heap_busy = 0;
}

/* Apart, so that all other frees save no registers for it. */
static __attribute__((noinline)) void hear(const void *block)
{
    struct fm_heap_self *self = fm_heap_self;
    if (fm_is_watched(block) && !fm_heap_busy && block) {
        fm_heap_busy = 1;
        fm_watched_ends(block);
        fm_heap_busy = 0;
    }
    if (self && (self->wants_anchor | self->name_in))
        attend(self);
}

/* Without counting: only the end of what is watched. */
static void listen_free(void *ctx, void *block)
{
    const struct fm_heap_self *self = fm_heap_self;
    (void)ctx;
    entered++;
    if (FM_UNLIKELY(fm_is_watched(block)) ||
        FM_UNLIKELY(self && (self->wants_anchor | self->name_in)))
        hear(block);
    fm_python_behind[FM_PYTHON_OBJ].free(fm_python_behind[FM_PYTHON_OBJ].ctx, block);
}

/* ---- arenas ---- */

/* An arena may be needed for a frame object of our own, which is made inside of an event. */
static void mark_arena(void (*mark)(const void *, size_t), const void *arena, size_t bytes)
{
    bool inside = guarded;
    if (!inside)
        guard();
    mark(arena, bytes);
    if (!inside)
        unguard();
}

static void *arena_alloc(void *ctx, size_t bytes)
{
    (void)ctx;
    /* Blocks in it are counted, not the arena; unless only C's are. */
    int busy = fm_heap_busy;
    fm_heap_busy = fm_heap.python ? 1 : 0;
    void *arena = arena_behind.alloc(arena_behind.ctx, bytes);
    fm_heap_busy = busy;
    if (arena && fm_heap.header && fm_heap.python) {
        mark_arena(fm_pools_arena_begins, arena, bytes);
        fm_ranges_add(FM_HEAP_RANGE_ARENA, (uintptr_t)arena, bytes, 0);
    }
    return arena;
}

/* When the interpreter ends it frees the frames, which lie in arenas, of threads that still run in C
 * code, and may be looking at them for a context (context.c). */
static void await_end_of_python(void)
{
    static bool awaited;
    if (!fm_heap.has_layout || awaited ||
        !__atomic_load_n(fm_heap.layout.finalizing, __ATOMIC_RELAXED))
        return;
    awaited = true;
    fm_threads_await(NULL);
}

static void arena_free(void *ctx, void *arena, size_t bytes)
{
    (void)ctx;
    int busy = fm_heap_busy;
    await_end_of_python();
    if (fm_heap.python) { /* also while nothing is recorded: what comes in its place is no arena */
        mark_arena(fm_pools_arena_ends, arena, bytes);
        fm_ranges_remove((uintptr_t)arena);
    }
    fm_heap_busy = fm_heap.python ? 1 : 0;
    arena_behind.free(arena_behind.ctx, arena, bytes);
    fm_heap_busy = busy;
}

/* ---- putting them in place ---- */

/* Do calls still come to us, perhaps through somebody who put himself in front (tracemalloc)? */
static bool is_reached(const struct fm_python_allocator *found)
{
    unsigned before = entered + fm_sampled_here.made;
    found->free(found->ctx, found->malloc(found->ctx, 1));
    return entered + fm_sampled_here.made != before;
}

static void hook_domain(int domain, const struct fm_python_allocator *hooks)
{
    void (*get)(int, struct fm_python_allocator *) =
        (void (*)(int, struct fm_python_allocator *))dlsym(RTLD_DEFAULT, "PyMem_GetAllocator");
    void (*set)(int, struct fm_python_allocator *) =
        (void (*)(int, struct fm_python_allocator *))dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");
    struct fm_python_allocator found;
    if (!get || !set)
        return;
    get(domain, &found);
    if (fm_python_behind[domain].malloc && is_reached(&found))
        return;
    fm_python_behind[domain] = found;
    struct fm_python_allocator ours = *hooks;
    if (!fm_heap.python) {
        ours = found;
        ours.free = hooks->free;
        if (domain != FM_PYTHON_OBJ)
            return;
    }
    set(domain, &ours);
}

void fm_python_world_hook(void)
{
    static const struct fm_python_allocator memory = { NULL, memory_malloc, memory_calloc,
                                                       memory_realloc, memory_free },
                                            object = { NULL, object_malloc, object_calloc,
                                                       object_realloc, object_free },
                                            listen = { NULL, NULL, NULL, NULL, listen_free };
    void (*get)(struct python_arenas *) =
        (void (*)(struct python_arenas *))dlsym(RTLD_DEFAULT, "PyObject_GetArenaAllocator");
    void (*set)(struct python_arenas *) =
        (void (*)(struct python_arenas *))dlsym(RTLD_DEFAULT, "PyObject_SetArenaAllocator");
    if (get && set && !arena_behind.alloc) {
        get(&arena_behind);
        struct python_arenas ours = { NULL, arena_alloc, arena_free };
        set(&ours);
    }
    if (fm_heap.python && fm_heap.sample_bytes) {
        hook_domain(FM_PYTHON_MEM, fm_sampled_hooks(FM_PYTHON_MEM));
        hook_domain(FM_PYTHON_OBJ, fm_sampled_hooks(FM_PYTHON_OBJ));
        return;
    }
    hook_domain(FM_PYTHON_MEM, &memory);
    hook_domain(FM_PYTHON_OBJ, fm_heap.python ? &object : &listen);
}
