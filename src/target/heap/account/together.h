/*
 * What this process has, told to the run: the peak of all processes together (capture/live_heap.h).
 *
 * The sum is one word that all processes add to, so each tells of its changes only when they amount
 * to something: a comparison per event, and a write that others see at every sixteenth kilobyte. As
 * long as there is one process alone, its own peak is that of the run, and no shares are kept.
 *
 * What a child of fork was born with is not counted again in it: the system keeps it once, until one
 * of them writes to it.
 *
 * Sum, peak and epoch change together or the shares are wrong: if one process saw that the sum falls,
 * and another went on before the new epoch stood, what that one had would not be noted. So one of all
 * processes at a time changes them, and who is killed while it does is not waited for.
 *
 * Threads: telling takes a lock of the process, then the run's, within which nothing else is taken.
 */
#ifndef FM_HEAP_TOGETHER_H
#define FM_HEAP_TOGETHER_H

#include "target/heap/heap.h"

/* Where nothing is told to anybody: without a file of the run. */
extern struct fm_heap_run fm_together_nobody;

/* Map the file of the run in fm_heap.folder, if it is there. */
void fm_together_open(void);

/* This process has a store. All that is alive in it now it has from its parent. */
void fm_together_join(void);

/* It ends, or executes another program; that may fail, and then it is back with its next event. */
void fm_together_leave(enum fm_heap_left left);

/* `alone`: no other thread counts blocks of C meanwhile (worlds/alone.h). */
void fm_together_tell(struct fm_heap_header *h, bool alone);
void fm_together_touch(const struct fm_heap_account *account);

/* `live` has changed. */
static inline void fm_together_changed(struct fm_heap_header *h, int64_t live, bool alone)
{
    int64_t apart = live - __atomic_load_n(&h->told, __ATOMIC_RELAXED);
    if (FM_UNLIKELY((uint64_t)(apart + FM_HEAP_TELL_BYTES) > 2 * FM_HEAP_TELL_BYTES))
        fm_together_tell(h, alone);
}

/* What is alive of an account is about to change. */
static inline void fm_together_changes(const struct fm_heap_account *account)
{
    if (FM_UNLIKELY(__atomic_load_n(&fm_heap.run->members, __ATOMIC_RELAXED) > 1))
        fm_together_touch(account);
}

#endif
