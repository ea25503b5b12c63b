/*
 * Whether an event is ours to count, for both worlds; see the manners in heap.h.
 *
 * A thread is `busy` in all of an event, and `inside` while it looks at what others may take away or
 * change: they wait for it (fm_threads_await). So the real function, which may take long, or a lock, is
 * called outside. Whoever forks waits until everybody is outside (fork.h).
 */
#ifndef FM_HEAP_EVENT_H
#define FM_HEAP_EVENT_H

#include "target/heap/contexts/threads.h"
#include "target/heap/fork.h"

/* The thread that has the event, busy until fm_event_close(); NULL: pass it on. */
static inline struct fm_heap_self *fm_event_open(void)
{
    if (FM_UNLIKELY(fm_heap_busy))
        return NULL;
    if (FM_UNLIKELY(!__atomic_load_n(fm_heap.here, __ATOMIC_RELAXED)) && !fm_fork_arrive())
        return NULL;
    fm_heap_busy = 1;
    struct fm_heap_self *self = fm_threads_self();
    if (FM_UNLIKELY(!self))
        fm_heap_busy = 0;
    return self;
}

static inline void fm_event_close(void)
{
    fm_heap_busy = 0;
}

/* Whoever waits for us makes the processors agree: it has seen us inside, or we see why it waits. */
static inline void fm_event_say_inside(struct fm_heap_self *self)
{
    __atomic_store_n(&self->inside, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void fm_event_outside(struct fm_heap_self *self)
{
    __atomic_store_n(&self->inside, 0, __ATOMIC_RELEASE);
}

static inline void fm_event_inside(struct fm_heap_self *self)
{
    fm_event_say_inside(self);
    while (FM_UNLIKELY(!__atomic_load_n(fm_heap.here, __ATOMIC_ACQUIRE)) && !fm_fork_is_quiet()) {
        fm_event_outside(self);
        fm_fork_wait();
        fm_event_say_inside(self);
    }
}

/* Open, and inside until fm_event_leave(). */
static inline struct fm_heap_self *fm_event_enter(void)
{
    struct fm_heap_self *self = fm_event_open();
    if (FM_LIKELY(self != NULL))
        fm_event_inside(self);
    return self;
}

/* The thread's own count of what begins and ends in it. */
static inline void fm_event_begins(struct fm_heap_self *self, uint64_t bytes)
{
    struct fm_heap_meter *meter = self->meter;
    meter->allocated += bytes;
    int64_t net = (int64_t)(meter->allocated - meter->freed);
    meter->high = net > meter->high ? net : meter->high;
    meter->top = net > meter->top ? net : meter->top;
}

static inline void fm_event_ends(struct fm_heap_self *self, uint64_t bytes)
{
    self->meter->freed += bytes;
}

static inline void fm_event_leave(struct fm_heap_self *self)
{
    fm_event_outside(self);
    fm_event_close();
}

#endif
