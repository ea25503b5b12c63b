/*
 * Which Python lock a blocked thread waits for, and who holds it.
 *
 * The kernel tells the address of the futex. From there to the lock object there are two ways:
 *   semaphores  a lock points at one that contains the futex. The objects in the newest frames of the
 *               waiting thread, and their attributes, are searched for such a lock.
 *   mutexes     the thread parks on a semaphore of its own, beside which it notes the address of
 *               the lock's PyMutex.
 * In both ways the lock that is found is the right one, or none is found. Lock is made of a mutex
 * since 3.13.1, RLock since 3.14 (3.13.0 has semaphores only, 3.13.1 and later both); the size of
 * their instances tells, so no version is asked.
 *
 * Who holds it: an RLock notes its owner. A plain lock does not; but a thread inside `with lock:`
 * has the lock's __exit__ on the value stack of a frame. That is what "probably held by" rests on:
 * whoever called acquire() by hand is not found.
 */
#ifndef FM_CPYTHON_LOCKS_H
#define FM_CPYTHON_LOCKS_H

#include "watch/cpython/frame.h"

struct fm_lock {
    fm_addr at;     /* 0: not found */
    bool recursive; /* an RLock */
    char name[128]; /* what a frame of the waiting thread calls it: "self._lock"; "" if nothing */
    uint64_t owner; /* of an RLock: ident of the thread that holds it; 0: unknown or none */
};

/* The lock that the thread with these frames waits for in a futex at `futex`. */
bool fm_lock_find(const struct fm_heap *t, fm_addr futex, const struct fm_stack *waiting,
                  struct fm_lock *ret);

/* Is one of these frames inside `with lock:`? Its index, or −1. `*ret_exit` is what it will call in
 * the end if that is not certain, else 0. */
int fm_lock_held_in(const struct fm_heap *t, fm_addr lock, const struct fm_stack *stack,
                    fm_addr *ret_exit);

/* Has one of these frames this object on its value stack? */
bool fm_lock_has_slot(const struct fm_heap *t, fm_addr object, const struct fm_stack *stack);

#endif
