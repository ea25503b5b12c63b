/*
 * Who allocates: the node of the instructions that all Python frames of this thread are at.
 *
 * A frame and its instruction are two loads, but a stack may be hundreds of frames deep, and equal
 * young frames prove nothing about the old ones. So the whole stack would have to be looked at for
 * every block, if there were no anchors:
 *
 * Anchors. For a frame that stays on the stack while blocks come and go, we let CPython make its frame
 * object and drop the reference. The interpreter keeps it until the frame ends, and then frees it, by
 * PyObject_Free, which we hear (watched.h). As long as we have not, and it still stands for that frame,
 * the frame lives, and since older frames wait for it, they are at the instructions where they were.
 * Then only the frames above the anchor are looked at. Anchors are put at intervals, so that a stack
 * that winds down finds the next one. A loop that allocates has one of its own at last, however short the
 * stack is: then nothing is walked.
 *
 * CPython facts relied on: a frame that belongs to a thread (not to a generator) stays where it is
 * until it ends; making a frame object may be done inside of an allocation from 3.12 on, since the
 * garbage collector no longer runs there, and before if it is told not to (the agent does). But not
 * while the interpreter makes a frame object itself: of one frame there would be two, and the first
 * would never end. Allocations that are large enough for that make no anchor.
 *
 * A thread that has released the GIL still has its frames, and they stay as they are: they are its own.
 */
#ifndef FM_HEAP_CONTEXT_H
#define FM_HEAP_CONTEXT_H

#include "target/heap/heap.h"

enum fm_context_holds {
    FM_CONTEXT_NO_GIL, /* this thread may or may not hold the GIL */
    FM_CONTEXT_GIL,
    FM_CONTEXT_MAY_ANCHOR, /* … and what is allocated is not a frame object */
};

/* The account of what the thread state runs, or of no Python code if it is NULL; 0: there is no memory
 * for it. */
uint32_t fm_context_account(struct fm_heap_self *self, int world, void *thread,
                            enum fm_context_holds holds);

/* The same for a block of C, by a thread that may or may not hold the GIL. */
uint32_t fm_context_account_c(struct fm_heap_self *self);

/* Look at the stack, and put an anchor there if it is worth it. With the GIL. */
void fm_context_anchor(struct fm_heap_self *self, void *thread);

/* Write down that an allocation was refused here; the second for a block of C. */
void fm_context_refused(struct fm_heap_self *self, uint64_t bytes, void *thread,
                        enum fm_context_holds holds);
void fm_context_refused_c(struct fm_heap_self *self, uint64_t bytes);

/* The node of a type of objects below the node of the line that made one; 0: no memory for it. */
uint32_t fm_context_of_type(struct fm_heap_self *self, uint32_t node, const void *type);

/* The anchor of which this was the frame object has ended. With the GIL. */
bool fm_context_forget(const void *block);

#endif
