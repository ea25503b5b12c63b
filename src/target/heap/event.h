/* Whether an event is ours to count, for both worlds; see the manners in heap.h. */
#ifndef FM_HEAP_EVENT_H
#define FM_HEAP_EVENT_H

#include "target/heap/fork.h"
#include "target/heap/threads.h"

/* The thread that has the event, busy until fm_event_leave(); NULL: pass it on. */
static inline struct fm_heap_self *fm_event_enter(void)
{
    if (FM_UNLIKELY(fm_heap_busy))
        return NULL;
    if (FM_UNLIKELY(!*fm_heap.here) && !fm_fork_arrive())
        return NULL;
    fm_heap_busy = 1;
    struct fm_heap_self *self = fm_threads_self();
    if (FM_LIKELY(self != NULL))
        __atomic_store_n(&self->inside, 1, __ATOMIC_RELAXED);
    else
        fm_heap_busy = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* whoever waits for us makes the processors agree */
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
    __atomic_store_n(&self->inside, 0, __ATOMIC_RELEASE);
    fm_heap_busy = 0;
}

#endif
