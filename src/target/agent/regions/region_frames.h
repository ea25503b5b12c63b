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
#include <stdint.h>
#include <string.h>

#include "target/agent/python.h"
#include "target/agent/regions/visits.h"

#define FM_PLAIN_CODES 64u /* a power of two */

/* The frame of the generator or coroutine that enters a region now, watched from now on; NULL if none does, or it
 * cannot be watched. Raises nothing. */
const void *fm_region_frames_watch(void);

/* The call whose region it is that is entered now. */
struct fm_region_place fm_region_frames_owner(void);

/* The innermost call of this thread, which need not have the GIL: what C code enters is below it. */
struct fm_region_place fm_region_frames_innermost(void);

#ifdef FM_PYTHON_FRAMES
/* Code whose calls, if they are no generators, own what they enter: most of a program's. By address. */
extern const void *fm_region_frames_plain[FM_PLAIN_CODES];

static inline PyCodeObject *fm_region_frames_code(const _PyInterpreterFrame *frame)
{
    uintptr_t code; /* with marks in its lowest bits, from 3.14 on */
    memcpy(&code, (const char *)frame + FM_FRAME_CODE, sizeof code);
    return (PyCodeObject *)(code & ~(uintptr_t)7);
}

static inline struct fm_region_place fm_region_frames_place(const _PyInterpreterFrame *frame)
{
    return (struct fm_region_place){ frame, frame ? fm_region_frames_code(frame) : NULL };
}

/* Is a function that is no generator running, and known to be of the plain kind? Then
 * fm_region_frames_watch() would say NULL. */
static inline bool fm_region_frames_is_plain(void)
{
    const _PyInterpreterFrame *frame = fm_python_frame();
    if (!frame || frame->owner != FRAME_OWNED_BY_THREAD)
        return false;
    const void *code = fm_region_frames_code(frame);
    return fm_region_frames_plain[(uintptr_t)code >> 5 & (FM_PLAIN_CODES - 1)] == code;
}
#endif

/* Tell foreign.h of calls of this code from now on. False if that cannot be; may leave an exception. */
bool fm_region_frames_follow(PyCodeObject *code);

/* hooks_3_11.c: hear of all generators, and of all calls of what is followed. False if that cannot be. */
bool fm_hooks_watch_generators(void);

#endif
