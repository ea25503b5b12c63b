/* Python's allocators, hooked for sampled blocks; see sampled.h. */
#include "target/heap/contexts/watched.h"
#include "target/heap/sampled/sampled.h"
#include "target/heap/worlds/python_world.h"

/* CPython makes no bytes one byte. */
static inline void *hook_malloc(int domain, enum fm_heap_kind kind, size_t bytes)
{
    const struct fm_python_allocator *next = &fm_python_behind[domain];
    int busy = fm_sampled_enter();
    return fm_sampled_leave(busy, next->malloc(next->ctx, bytes), bytes + !bytes, kind);
}

static inline void *hook_calloc(int domain, enum fm_heap_kind kind, size_t count, size_t bytes)
{
    const struct fm_python_allocator *next = &fm_python_behind[domain];
    int busy = fm_sampled_enter();
    void *block = next->calloc(next->ctx, count, bytes);
    size_t whole = count * bytes;
    return fm_sampled_leave(busy, block, whole + !whole, kind);
}

/* Code objects, of which contexts are made, are freed as objects. */
static void free_slowly(int domain, void *block)
{
    if (!fm_heap_busy) {
        if (domain == FM_PYTHON_OBJ && fm_is_watched(block)) {
            fm_heap_busy = 1;
            fm_watched_ends(block);
            fm_heap_busy = 0;
        }
        fm_sampled_ends(block);
    }
    fm_python_behind[domain].free(fm_python_behind[domain].ctx, block);
}

static inline void hook_free(int domain, void *block)
{
    const struct fm_python_allocator *next = &fm_python_behind[domain];
    if (fm_sampled_may_know(block))
        free_slowly(domain, block);
    else
        next->free(next->ctx, block);
}

static inline void *hook_realloc(int domain, enum fm_heap_kind kind, void *old, size_t bytes)
{
    const struct fm_python_allocator *next = &fm_python_behind[domain];
    struct fm_heap_block taken = { 0, 0, 0 };
    if (!fm_heap_busy && old && fm_sampled_may_know(old))
        taken = fm_sampled_take(old);
    int busy = fm_sampled_enter();
    void *block = next->realloc(next->ctx, old, bytes);
    if (FM_UNLIKELY(taken.record != 0)) {
        fm_heap_busy = busy;
        if (block)
            fm_sampled_ended(&taken);
        else
            fm_sampled_put_back(&taken);
    }
    return fm_sampled_leave(busy, block, bytes + !bytes, kind);
}

FM_PYTHON_HOOKS(memory, FM_PYTHON_MEM, FM_HEAP_KIND_MEMORY)
FM_PYTHON_HOOKS(object, FM_PYTHON_OBJ, FM_HEAP_KIND_OBJECT)

const struct fm_python_allocator *fm_sampled_hooks(int domain)
{
    static const struct fm_python_allocator memory = { NULL, memory_malloc, memory_calloc,
                                                       memory_realloc, memory_free },
                                            object = { NULL, object_malloc, object_calloc,
                                                       object_realloc, object_free };
    return domain == FM_PYTHON_OBJ ? &object : &memory;
}
