/*
 * Threads as the heap library knows them: by their first allocation. A thread says nothing when it
 * ends (its last frees come after every destructor), so its record is taken over by a later thread
 * when there are many: then both are one tree, and the store says of how many threads it is.
 */
#ifndef FM_HEAP_THREADS_H
#define FM_HEAP_THREADS_H

#include "target/heap/heap.h"

/* Make this thread known; NULL if there is no memory. Busy must be set. */
struct fm_heap_self *fm_threads_begin(void);

static inline struct fm_heap_self *fm_threads_self(void)
{
    return FM_LIKELY(fm_heap_self != NULL) ? fm_heap_self : fm_threads_begin();
}

struct fm_heap_self *fm_threads_all(void); /* the first of a list that only grows */

/* Wait until a thread, or (NULL) every other, has been outside of events since this call began: what it
 * might be looking at is about to go. False if one was not for too long: a debugger stopped it. */
bool fm_threads_await(const struct fm_heap_self *one);

/* … until those who are about to be in the list are in it. While nobody else may begin. */
bool fm_threads_await_beginning(void);
bool fm_threads_can_await(void); /* else what depends on it must not be */
void fm_threads_init(void);

/* Let the meter of a thread lie at `place`, NULL: in its own record. By the thread itself, or when it is
 * no more. */
void fm_threads_meter_at(struct fm_heap_self *self, struct fm_heap_meter *place);

/* Ask the thread for its name, and if there is none yet once more, later. Outside, with the GIL. */
void fm_threads_learn_name(struct fm_heap_self *self);

/* A block of Python ended in the thread. */
static inline void fm_threads_see_free(struct fm_heap_self *self)
{
    if (FM_UNLIKELY(self->name_in) && --self->name_in == 0)
        fm_threads_learn_name(self);
}

/* Threads that are known from an earlier recording are new to this store; before `here` is set. */
bool fm_threads_begin_again(void);

/* In a child: the calling thread is the only one left, and new to its store. */
void fm_threads_reset(void);

#endif
