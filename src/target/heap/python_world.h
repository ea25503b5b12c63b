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
#include <stdint.h>

/* Put the hooks in place, or in front of what was put there since. Before the interpreter exists, or
 * with the GIL. */
void fm_python_world_hook(void);

/* Let a block that belongs to one account belong to another; false if it does not. */
bool fm_python_world_move(const void *block, uint32_t from, uint32_t to);
/* Around fork: where there are several GILs, nobody counts meanwhile. */
void fm_python_world_hold(void);
void fm_python_world_release(void);

#endif
