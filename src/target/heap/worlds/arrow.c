/*
 * Blocks of Apache Arrow, whose allocator (mimalloc) is inside of its library: from version 25 on it calls
 * that through three exported names, so that they can be stood in for. Then its blocks are at the line
 * that asked for them, and what the allocator takes from the system meanwhile is not counted again.
 *
 * A process may have several such libraries, each with an allocator of its own, and a block goes back to
 * the one that it is of: the real functions are those of the library that calls. Who calls is looked up
 * once for each place in the code.
 */
#include <dlfcn.h>

#include "target/heap/worlds/c_world.h"
#include "target/heap/worlds/event.h"

#define PLACES 64

struct arrow_functions {
    void *(*malloc)(size_t bytes, size_t alignment);
    void *(*realloc)(void *block, size_t bytes, size_t alignment);
    void (*free)(void *block);
};

static struct {
    struct {
        const void *caller;
        struct arrow_functions real;
    } all[PLACES];
    uint32_t count; /* released after the place is written */
    fm_heap_lock lock;
} places;

FM_HEAP_EXPORT void *arrow_mi_malloc_aligned(size_t bytes, size_t alignment);
FM_HEAP_EXPORT void *arrow_mi_realloc_aligned(void *old, size_t bytes, size_t alignment);
FM_HEAP_EXPORT void arrow_mi_free(void *block);

static bool take_from(void *library, struct arrow_functions *real)
{
    real->malloc = (void *(*)(size_t, size_t))dlsym(library, "arrow_mi_malloc_aligned");
    real->realloc = (void *(*)(void *, size_t, size_t))dlsym(library, "arrow_mi_realloc_aligned");
    real->free = (void (*)(void *))dlsym(library, "arrow_mi_free");
    return real->malloc && real->realloc && real->free && real->malloc != arrow_mi_malloc_aligned;
}

/* In the library that calls, or one that it depends on; else in one that the program was linked with. */
static bool look_up(const void *caller, struct arrow_functions *real)
{
    Dl_info info;
    void *library = dladdr(caller, &info) && info.dli_fname
                        ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
                        : NULL;
    /* It is not given back: what was found in it is to stay. */
    return (library && take_from(library, real)) || take_from(RTLD_NEXT, real);
}

static void remember(const void *caller, const struct arrow_functions *real)
{
    fm_heap_lock_take(&places.lock);
    if (places.count < PLACES) {
        places.all[places.count].caller = caller;
        places.all[places.count].real = *real;
        __atomic_store_n(&places.count, places.count + 1, __ATOMIC_RELEASE);
    }
    fm_heap_lock_give(&places.lock);
}

/* False: nobody knows. It cannot be, for whoever calls has found us by a name that he has himself. */
static bool find(const void *caller, struct arrow_functions *ret_real)
{
    uint32_t count = __atomic_load_n(&places.count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++) {
        if (places.all[i].caller == caller) {
            *ret_real = places.all[i].real;
            return true;
        }
    }
    if (!look_up(caller, ret_real))
        return false;
    remember(caller, ret_real);
    return true;
}

void *arrow_mi_malloc_aligned(size_t bytes, size_t alignment)
{
    struct arrow_functions real;
    if (!find(__builtin_return_address(0), &real))
        return NULL;
    struct fm_heap_self *self = fm_event_open();
    return fm_c_world_given(self, real.malloc(bytes, alignment), bytes, FM_HEAP_KIND_ALIGNED);
}

void arrow_mi_free(void *block)
{
    struct arrow_functions real;
    if (!block || !find(__builtin_return_address(0), &real))
        return;
    struct fm_heap_self *self = fm_c_world_ends(block);
    real.free(block);
    if (self)
        fm_event_close();
}

/* The real function with what it needs beside the block. */
struct arrow_resize {
    struct arrow_functions real;
    size_t alignment;
};

static void *resize(const void *data, void *old, size_t bytes)
{
    const struct arrow_resize *how = data;
    return how->real.realloc(old, bytes, how->alignment);
}

void *arrow_mi_realloc_aligned(void *old, size_t bytes, size_t alignment)
{
    struct arrow_resize how = { .alignment = alignment };
    if (!find(__builtin_return_address(0), &how.real))
        return NULL;
    return fm_c_world_realloc(resize, &how, old, bytes);
}
