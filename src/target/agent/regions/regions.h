/*
 * Regions: named phases of the program (fathom.region), with what each took of time and memory.
 *
 * A region is a name below the region around it; its record (struct fm_live_region) adds up its visits
 * in all threads. A visit begins when the program enters the region and lies in the live store from
 * then on, so a process that is killed has its open visits recorded, too.
 *
 * Memory. Each thread in a region has a meter in the live store, where the heap library counts what the
 * thread allocates and frees; without `--memory` there is none. The visits that run in a thread form a
 * list, newest last. `top` of the meter is the highest that it stood since the newest of them began;
 * when another begins, the one before notes it (`high`). So the highest since any of them began is the
 * greatest `high` from it on, and `top`; and visits may end in any order, as those of tasks do.
 *
 * A visit by a generator or coroutine is suspended when that gives up control: it runs in no thread
 * then, and goes on in the one that resumes it. What others do meanwhile is not in its numbers.
 *
 * A region that the thread is in already counts the entry, and nothing else: the outer visit has it.
 *
 * Threads: the GIL protects everything here, but for the list of threads that ended.
 */
#ifndef FM_AGENT_REGIONS_H
#define FM_AGENT_REGIONS_H

#include "target/agent/python.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is anything recorded in this process? */
bool fm_regions_on(void);

/* The program enters the region of that name. `owner` is who will say that it leaves. */
void fm_regions_enter(const void *owner, const char *name, size_t len);
void fm_regions_leave(const void *owner);

/* How high the memory of the newest region that this thread is in stood so far above its begin; −1 if it is in
 * none, or nothing records memory. */
int64_t fm_regions_peak(void);

/* The generator or coroutine whose frame that is gives up control, or goes on. */
void fm_regions_suspend(const void *frame);
void fm_regions_resume(const void *frame);

#endif
