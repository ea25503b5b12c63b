/*
 * A look at one watched thread: what the kernel says it does, its stack by whichever proof can be
 * had (look.h), and what it waits for. For target.c.
 */
#ifndef FM_SAMPLER_THREAD_LOOK_H
#define FM_SAMPLER_THREAD_LOOK_H

#include "watch/sampler/target.h"

enum fm_thread_seen {
    FM_THREAD_SEEN,
    FM_THREAD_LOST, /* the thread ran while it was read */
    FM_THREAD_GONE, /* the thread could not be read: is it still there? */
};

/* Fill in the sample of the thread: state, row, wait. */
enum fm_thread_seen fm_thread_look(struct fm_target *t, struct fm_watched_thread *th,
                                   uint64_t now_ns);

/* Is the thread blocked as at its last sample? Then that sample still holds. */
bool fm_thread_is_unchanged(const struct fm_target *t, struct fm_watched_thread *th);

/* The interpreter of a thread; NULL if the interpreter is gone. */
struct fm_watched_interp *fm_thread_interp(const struct fm_target *t,
                                           const struct fm_watched_thread *th);
bool fm_thread_holds_gil(const struct fm_target *t, const struct fm_watched_thread *th);

#endif
