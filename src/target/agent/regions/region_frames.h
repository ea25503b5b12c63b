/*
 * Whose a region is: the generator or coroutine that entered it, if one did, and hearing of it when that
 * gives up control and goes on (regions.h).
 *
 * A generator behind a `@contextmanager` enters a region for the function that has it in its `with`:
 * frames of contextlib, and generators that these drive, are passed over.
 *
 * From 3.12 on the events come from a monitoring tool of our own, for the code of such generators alone. On 3.11
 * they come from profile functions in all threads, from the first such region on: calls cost more from then on.
 *
 * Threads: the GIL.
 */
#ifndef FM_AGENT_REGION_FRAMES_H
#define FM_AGENT_REGION_FRAMES_H

#include <stdbool.h>

/* The frame of the generator or coroutine that enters a region now, watched from now on; NULL if none does, or it
 * cannot be watched. Raises nothing. */
const void *fm_region_frames_watch(void);

/* hooks_3_11.c: hear of all generators. False if that cannot be. */
bool fm_hooks_watch_generators(void);

#endif
