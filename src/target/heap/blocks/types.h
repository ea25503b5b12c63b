/*
 * What objects are made of blocks: the reference tracer of CPython 3.13 and later calls the agent with
 * every new object, right after its block was allocated. The block then moves from the account of the
 * line that made it to one of the line and the type: a node of the type's own below the line's, so all
 * that works for contexts works for types.
 *
 * An object that comes from a free list has a block that was allocated before: that stays with the
 * type and the line that it had first.
 *
 * Whoever takes the place of the tracer, as tracemalloc does, ends that: a block that nobody told an
 * object of, when the next one comes, is a reason to ask.
 *
 * Threads: the GIL.
 */
#ifndef FM_HEAP_TYPES_H
#define FM_HEAP_TYPES_H

#include "target/heap/heap.h"

/* A block of a Python allocator is new. */
void fm_types_block(struct fm_heap_self *self, const struct fm_heap_last *block);

/* The object at `object`, of the type at `type`, is new. */
void fm_types_object(const char *object, const void *type);

#endif
