/*
 * Regions: named phases of the program (fathom.region), with what each took of time and memory.
 *
 * A region is a name below the region around it; its record (struct fm_live_region) adds up its visits
 * in all threads. A visit begins when the program enters the region and lies in the live store from
 * then on, so a process that is killed has its open visits recorded, too. The store is that of the run; without
 * a run there is one in private memory if the program asked for a table (FATHOM_SUMMARY, `summary.h`).
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
 * A visit with a token (fathom.region_begin) is in no thread: it may end anywhere, overlaps what it will, and has time
 * alone. Its region is below none.
 *
 * Threads: the GIL for everything here unless it says otherwise; what it all shares is behind alone.h.
 */
#ifndef FM_AGENT_REGIONS_H
#define FM_AGENT_REGIONS_H

#include "target/agent/python.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fm_collector;
struct fm_region_name;
struct fm_region_record;
struct fm_region_visit;

/* Is anything recorded in this process? Read by everybody; written with the GIL. */
extern uint8_t fm_regions_recorded;

/* The run has a store from now on. */
void fm_regions_begin_run(void);

/* Tell the run that samples this process, if there is one, and nothing is recorded yet. */
void fm_regions_join_run(void);

/* Count regions, whether there is a run or not: 0, or −1 with an exception. */
int fm_regions_count(void);

/* The collector whose store regions are in; NULL: there is none. Their records, in the order in which they were
 * defined. */
struct fm_collector *fm_regions_collector(void);
const struct fm_region_record *fm_regions_first(void);

/* The program enters the region of that name. `owner` is who will say that it leaves; `*known` is the name as regions
 * know it, kept by who has it for as long as it is the same text. */
void fm_regions_enter(const void *owner, PyObject *name, struct fm_region_name **known);
void fm_regions_leave(const void *owner);

/* The same by C code, without the GIL or with it: the innermost that the thread entered so. */
void fm_regions_enter_c(const char *name, bool has_gil);
void fm_regions_leave_c(bool has_gil);

/* A visit that may end in any thread; `visit` is NULL if nothing was recorded. Ending it twice does nothing. */
struct fm_region_token {
    struct fm_region_visit *visit;
    uint64_t serial;
    uint32_t era;
};
struct fm_region_token fm_regions_open(PyObject *name);
void fm_regions_close(struct fm_region_token token);
struct fm_region_token fm_regions_open_c(const char *name, bool has_gil);
void fm_regions_close_c(struct fm_region_token token, bool has_gil);

/* A number that changes over time; something that happened now. They are in traces alone. */
void fm_regions_counter(PyObject *name, double value);
void fm_regions_instant(PyObject *name);
void fm_regions_counter_c(const char *name, double value);
void fm_regions_instant_c(const char *name);

/* How high the memory of the newest region that this thread is in stood so far above its begin; −1 if it is in
 * none, or nothing records memory. */
int64_t fm_regions_peak(void);

/* The generator or coroutine whose frame that is gives up control, or goes on. */
/* A trace begins in this thread: the regions that it is in are open, but for one that is about to be told. The
 * GIL. */
void fm_regions_trace_open(bool but_newest);

void fm_regions_suspend(const void *frame);
void fm_regions_resume(const void *frame);

#endif
