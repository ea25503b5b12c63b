/*
 * Python's raw allocator; see raw_world.h.
 *
 * Other threads may be in it while it is replaced, with the old function and the new context, or the
 * other way round: ours ignores it, and so does CPython's own. tracemalloc does the same.
 */
#include "target/heap/worlds/raw_world.h"

#include <dlfcn.h>

#include "target/heap/worlds/c_world.h"
#include "target/heap/worlds/event.h"
#include "target/heap/worlds/python_world.h"

static struct fm_python_allocator behind; /* what our hooks call; written once */
static FM_HEAP_TLS unsigned entered;      /* counts calls: are hooks still in place? */

static void *raw_malloc(void *ctx, size_t bytes)
{
    (void)ctx;
    entered++;
    struct fm_heap_self *self = fm_event_open();
    return fm_c_world_given(self, behind.malloc(behind.ctx, bytes), bytes + !bytes,
                            FM_HEAP_KIND_MALLOC);
}

static void *raw_calloc(void *ctx, size_t count, size_t bytes)
{
    (void)ctx;
    entered++;
    struct fm_heap_self *self = fm_event_open();
    size_t whole = count * bytes; /* if that is too much, it is refused */
    return fm_c_world_given(self, behind.calloc(behind.ctx, count, bytes), whole + !whole,
                            FM_HEAP_KIND_CALLOC);
}

static void *resize(const void *data, void *old, size_t bytes)
{
    (void)data;
    return behind.realloc(behind.ctx, old, bytes);
}

static void *raw_realloc(void *ctx, void *old, size_t bytes)
{
    if (!old)
        return raw_malloc(ctx, bytes);
    entered++;
    return fm_c_world_realloc(resize, NULL, old,
                              bytes + !bytes); /* what is behind does that, too */
}

static void raw_free(void *ctx, void *block)
{
    (void)ctx;
    entered++;
    struct fm_heap_self *self = block ? fm_c_world_ends(block) : NULL;
    behind.free(behind.ctx, block);
    if (FM_LIKELY(self != NULL))
        fm_event_close();
}

void fm_raw_world_hook(void)
{
    static const struct fm_python_allocator hooks = { NULL, raw_malloc, raw_calloc, raw_realloc,
                                                      raw_free };
    void (*get)(int, struct fm_python_allocator *) =
        (void (*)(int, struct fm_python_allocator *))dlsym(RTLD_DEFAULT, "PyMem_GetAllocator");
    void (*set)(int, struct fm_python_allocator *) =
        (void (*)(int, struct fm_python_allocator *))dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");
    struct fm_python_allocator found, ours = hooks;
    if (!get || !set)
        return;
    get(FM_PYTHON_RAW, &found);
    unsigned before = entered;
    if (behind.malloc)
        found.free(found.ctx, found.malloc(found.ctx, 1));
    if (behind.malloc && entered != before)
        return; /* still, perhaps through somebody who put himself in front */
    behind = found;
    set(FM_PYTHON_RAW, &ours);
}
