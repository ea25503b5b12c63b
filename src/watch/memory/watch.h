/*
 * The memory of a run over time, seen from outside: nothing is done in the program for it.
 *
 * Model. Every 10 ms each process of the run is looked at: what is resident of it (resident.h) and
 * what it has allocated, which the heap library counts in the store that it shares with us
 * (capture/live_heap.h); the run's sum, and what its control group has and may have (cgroup.h), make
 * a curve of its own. Each curve stays short however long that goes on (model/curve.h).
 *
 * Processes become known as children of known ones (os/run/newborn.h), or by the stores they make in the
 * folder of the run. One that left its parent and its session before it was seen, and makes no store,
 * is not noticed; one that lived for less than the time between two looks may have none.
 *
 * Looking takes at most a hundredth of one processor, measured on itself: where there are very many
 * processes looks become rarer. Slices of what is alive (slicer.h) take half a hundredth. Shares of shared memory and swap (`shares`) are looked at in
 * rounds of their own, at most every 100 ms and for at most a hundredth of the time.
 *
 * Threads: one caller at a time.
 */
#ifndef FM_WATCH_MEMORY_WATCH_H
#define FM_WATCH_MEMORY_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/model/profile.h"

struct fm_memory_watch;

struct fm_memory_watch_options {
    const char *folder; /* where heap stores are; NULL: nowhere */
    bool children;      /* look at the processes below, too */
    bool shares;        /* proportional share and swap */
    int64_t limit;      /* of what the run may have allocated; 0: none */
    bool events; /* heap stores have rings of events (event_log.h) instead of being looked at */
};

/* Begin with the process `pid`; the first look is due at once. */
struct fm_memory_watch *fm_memory_watch_new(const struct fm_memory_watch_options *options,
                                            pid_t pid);
void fm_memory_watch_free(struct fm_memory_watch *w); /* NULL: nothing */

/* When the next look is due; UINT64_MAX for NULL. */
uint64_t fm_memory_watch_due_ns(const struct fm_memory_watch *w);
void fm_memory_watch_look(struct fm_memory_watch *w);

/* Ask all processes that ran at the last look to end (SIGTERM), each once, but for `except`. */
void fm_memory_watch_ask(struct fm_memory_watch *w, pid_t except);
void fm_memory_watch_kill(const struct fm_memory_watch *w); /* all of them: SIGKILL */

/* Keep all that processes told so far; whoever has ended tells no more. */
void fm_memory_watch_drain(struct fm_memory_watch *w); /* NULL: nothing */

/* Have all processes ended? */
bool fm_memory_watch_is_over(const struct fm_memory_watch *w);

/*
 * Add the curves to a profile that has the processes of the run. Of those it does not have (no
 * Pythons) the program itself and the large ones are added; small or short ones are in the sum only.
 */
void fm_memory_watch_gather(struct fm_memory_watch *w, struct fm_profile *p);

/* A note of kind "out-of-memory" for each process of `p` that was ended by SIGKILL, if the kernel
 * killed processes of the group, or of a machine without such groups, since the beginning. One of kind
 * "near-limit" if the group was close to it. */
void fm_memory_watch_note_kills(const struct fm_memory_watch *w, struct fm_profile *p);

#endif
