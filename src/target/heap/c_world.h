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

void fm_c_world_init(void); /* find the real functions */

#endif
