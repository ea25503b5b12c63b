/*
 * Who has the C world to himself.
 *
 * Any thread may call malloc at any time, but for a long while it is mostly one: of Python's threads
 * the one that has the GIL. So the C world has an owner, who counts without atomics and locks. Another
 * thread that has an event takes the world away: it says so, makes all processors agree (membarrier),
 * and waits until the owner is outside. Where that happens again and again within microseconds nobody
 * owns the world: then all count with atomics, and take the locks of tables, until one thread was by
 * itself for long.
 *
 * Order: an event says that it is inside and then looks who the owner is; who takes the world says who
 * the owner is and then looks who is inside. The lock is taken outside, and nothing within it but that.
 */
#ifndef FM_HEAP_ALONE_H
#define FM_HEAP_ALONE_H

#include "target/heap/worlds/event.h"

bool fm_alone_slowly(struct fm_heap_self *self);

/* Go inside, of an event that is open. Whether this thread has the C world to itself until it goes
 * outside. */
static inline bool fm_alone_inside(struct fm_heap_self *self)
{
    fm_event_say_inside(self);
    if (FM_LIKELY(__atomic_load_n(&fm_heap.owner, __ATOMIC_ACQUIRE) == self) &&
        FM_LIKELY(__atomic_load_n(fm_heap.here, __ATOMIC_ACQUIRE)))
        return true;
    return fm_alone_slowly(self);
}

/* Around fork, when everybody is outside and stays there: the world is the thread's that forks. */
void fm_alone_hold(void);
void fm_alone_release(void);

#endif
