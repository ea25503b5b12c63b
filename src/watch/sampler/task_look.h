/*
 * The asyncio tasks of a thread at its sample: the await stack of each counts as a stack of a
 * thread of its own, "asyncio tasks of …". For target.c.
 */
#ifndef FM_SAMPLER_TASK_LOOK_H
#define FM_SAMPLER_TASK_LOOK_H

#include "watch/sampler/target.h"

/* `looked`: the thread has run since its last sample. While it is blocked its tasks cannot change
 * either. */
void fm_task_look(struct fm_target *t, struct fm_watched_thread *th, bool looked, uint64_t now_ns);

#endif
