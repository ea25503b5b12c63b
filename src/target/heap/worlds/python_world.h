/*
 * The Python world: blocks of Python's own allocators, PyMem_Malloc and PyObject_Malloc, hooked by
 * PyMem_SetAllocator. PyMem_RawMalloc is not: it ends in malloc, which is.
 *
 * With `--memory=malloc` their blocks are not counted, but the arenas that they lie in; PyObject_Free
 * is hooked all the same, since it tells of the end of code objects (watched.h).
 */
#ifndef FM_HEAP_PYTHON_WORLD_H
#define FM_HEAP_PYTHON_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* PyMemAllocatorEx and the domains; unchanged since 3.5. */
struct fm_python_allocator {
    void *ctx;
    void *(*malloc)(void *ctx, size_t bytes);
    void *(*calloc)(void *ctx, size_t count, size_t bytes);
    void *(*realloc)(void *ctx, void *block, size_t bytes);
    void (*free)(void *ctx, void *block);
};
enum { FM_PYTHON_RAW, FM_PYTHON_MEM, FM_PYTHON_OBJ, FM_PYTHON_DOMAINS };

/* The four functions of a domain, of hook_malloc() and so on, which know which domain it is. */
#define FM_PYTHON_HOOKS(name, domain, kind)                                                        \
    static void *name##_malloc(void *ctx, size_t bytes)                                            \
    {                                                                                              \
        (void)ctx;                                                                                 \
        return hook_malloc(domain, kind, bytes);                                                   \
    }                                                                                              \
    static void *name##_calloc(void *ctx, size_t count, size_t bytes)                              \
    {                                                                                              \
        (void)ctx;                                                                                 \
        return hook_calloc(domain, kind, count, bytes);                                            \
    }                                                                                              \
    static void *name##_realloc(void *ctx, void *block, size_t bytes)                              \
    {                                                                                              \
        (void)ctx;                                                                                 \
        return hook_realloc(domain, kind, block, bytes);                                           \
    }                                                                                              \
    static void name##_free(void *ctx, void *block)                                                \
    {                                                                                              \
        (void)ctx;                                                                                 \
        hook_free(domain, block);                                                                  \
    }

extern struct fm_python_allocator
    fm_python_behind[FM_PYTHON_DOMAINS]; /* what our hooks call; written once each */

/* Put the hooks in place, or in front of what was put there since. Before the interpreter exists, or
 * with the GIL. */
void fm_python_world_hook(void);

/* Let a block that belongs to one account belong to another; false if it does not. */
bool fm_python_world_move(const void *block, uint32_t from, uint32_t to);
/* Forget all blocks; while nothing is recorded. */
void fm_python_world_clear(void);
/* Around fork: where there are several GILs, nobody counts meanwhile. */
void fm_python_world_hold(void);
void fm_python_world_release(void);

#endif
