/*
 * Adding an audit hook before the interpreter exists, and its end.
 *
 * CPython facts relied on (3.8 to 3.15): PySys_AddAuditHook keeps the hook in one block from
 * PyMem_RawMalloc. Before initialisation that is plain malloc; with -X dev or PYTHONMALLOC=debug the
 * interpreter then puts a checking allocator in its place, which aborts the process when the block
 * is given to it at the very end. The event "cpython._PySys_ClearAuditHooks" is raised just before
 * the blocks are freed, so that is where an allocator is put in front that knows our block.
 *
 * Threads: the constructor adds; the thread that ends the interpreter clears. Others may be
 * allocating then: one pointer of the allocator changes, and both values of it will do.
 */
#include "target/preload/preload.h"

#include <stdlib.h>

/* PyMemAllocatorEx, and the domain of PyMem_RawMalloc. */
struct allocator {
    void *ctx;
    void *(*malloc)(void *ctx, size_t bytes);
    void *(*calloc)(void *ctx, size_t count, size_t bytes);
    void *(*realloc)(void *ctx, void *block, size_t bytes);
    void (*free)(void *ctx, void *block);
};
enum { DOMAIN_RAW = 0 };

static void (*get_allocator)(int domain, struct allocator *allocator);
static void (*set_allocator)(int domain, struct allocator *allocator);
static struct allocator plain;  /* as found by the constructor */
static struct allocator behind; /* the one behind ours, at the end */
static void *hook_block;

/* While the hook is added: pass on, and remember the block. */
static void *remember_malloc(void *ctx, size_t bytes)
{
    hook_block = plain.malloc(ctx, bytes);
    return hook_block;
}

/* At the end: pass on all but that block, which goes back where it came from. */
static void free_but_hook(void *ctx, void *block)
{
    if (block && block == hook_block) {
        hook_block = NULL;
        plain.free(plain.ctx, block);
        return;
    }
    behind.free(ctx, block);
}

int fm_preload_add_hook(fm_preload_hook *hook)
{
    int (*add)(fm_preload_hook *, void *) =
        (int (*)(fm_preload_hook *, void *))fm_preload_symbol("PySys_AddAuditHook");
    get_allocator = (void (*)(int, struct allocator *))fm_preload_symbol("PyMem_GetAllocator");
    set_allocator = (void (*)(int, struct allocator *))fm_preload_symbol("PyMem_SetAllocator");
    if (!add || !get_allocator || !set_allocator)
        return -1;
    get_allocator(DOMAIN_RAW, &plain);
    struct allocator remembering = plain;
    remembering.malloc = remember_malloc;
    set_allocator(DOMAIN_RAW, &remembering);
    int rc = add(hook, NULL);
    set_allocator(DOMAIN_RAW, &plain);
    return rc;
}

void fm_preload_hooks_end(void)
{
    if (!hook_block)
        return;
    get_allocator(DOMAIN_RAW, &behind);
    if (behind.free == plain.free)
        return; /* no other allocator was put in place */
    struct allocator ours = behind;
    ours.free = free_but_hook;
    set_allocator(DOMAIN_RAW, &ours);
}
