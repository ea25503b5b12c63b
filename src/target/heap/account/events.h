/*
 * Every event told to the launcher, with `--memory=events` (capture/live_events.h): which account, how
 * many bytes, when. One comparison per event where that is not asked for.
 *
 * When the ring is full we wait for the launcher, with whatever locks the event has: the program
 * stands still, and loses nothing. If nobody reads for FM_EVENTS_PATIENCE_NS (the launcher was killed),
 * the ring is closed: the program goes on, and what is not told is counted.
 */
#ifndef FM_HEAP_EVENTS_H
#define FM_HEAP_EVENTS_H

#include "record/capture/live_events.h"
#include "target/heap/heap.h"

#define FM_EVENTS_PATIENCE_NS 2000000000u

/* A ring beside the store that is open, if it was asked for; in a child, one of its own. */
void fm_events_open(void);

void fm_events_add(const struct fm_heap_account *account, uint64_t bytes, enum fm_event_kind kind);

static inline void fm_events_changed(const struct fm_heap_account *account, uint64_t bytes,
                                     enum fm_event_kind kind)
{
    if (FM_UNLIKELY(fm_heap.events != NULL))
        fm_events_add(account, bytes, kind);
}

#endif
