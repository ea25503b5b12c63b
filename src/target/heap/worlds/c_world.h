/*
 * The C world: blocks of malloc and its family, and mappings, by whoever asks for them. What a caller
 * of Python's allocators caused below is that call's (heap.h) and passed on.
 *
 * Records of blocks lie in tables by address, each behind a lock that is held for some ten
 * instructions; a thread that has the world to itself takes none (alone.h).
 *
 * The real functions are found by dlsym(RTLD_NEXT), so another allocator that the user preloads (say
 * jemalloc) stays the one that works. dlsym may allocate, before it has found anything: a small buffer
 * serves that, and its blocks are never given back.
 */
#ifndef FM_HEAP_C_WORLD_H
#define FM_HEAP_C_WORLD_H

#include "target/heap/heap.h"

void fm_c_world_init(void);  /* find the real functions */
void fm_c_world_clear(void); /* forget all blocks, while everybody is outside */

/* For other functions of C than those hooked here (raw_world.c, arrow.c). A block was given, which may be
 * NULL, in an event that is open: count it, and close the event. NULL for `self`: it is not ours. */
void *fm_c_world_given(struct fm_heap_self *self, void *block, size_t bytes,
                       enum fm_heap_kind kind);

/* A block is about to be given back. If that is not NULL an event is open, to be closed after it was. */
struct fm_heap_self *fm_c_world_ends(const void *block);

/* All of a realloc; `resize` is the real one. */
typedef void *fm_c_world_resize(const void *data, void *old, size_t bytes);
void *fm_c_world_realloc(fm_c_world_resize *resize, const void *data, void *old, size_t bytes);

#endif
