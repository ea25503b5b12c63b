/*
 * Marks: what a trace (--trace) has beside calls. Regions, counters and instants of the program come
 * through here, and what the agent itself sees: exceptions, collections, tasks.
 *
 * Each is written with the time of the call, into the trace of the thread that calls, and does nothing
 * if the process is not traced. Names are numbers of the live store's definitions; a name is looked up
 * once and its number kept by whoever uses it often, for as long as fm_trace_names_era() is the same.
 *
 * Threads: the GIL.
 */
#ifndef FM_AGENT_TRACE_MARKS_H
#define FM_AGENT_TRACE_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/capture/live_trace.h"

/* Is a trace of this process being written? One load and a test. */
extern bool fm_trace_active;
static inline bool fm_trace_on(void)
{
    return fm_trace_active;
}

/* The number of a name (UTF-8), defined if it is new; 0 if there is no room for another. Numbers are
 * of the process's store: after a fork the era is another one, and so are the numbers. */
uint32_t fm_trace_name(const char *text, size_t len);
uint32_t fm_trace_names_era(void);

/* A region nests with the calls of its thread and with other regions; the innermost open one of that
 * name ends. */
void fm_trace_region_begin(uint32_t name);
void fm_trace_region_end(uint32_t name);
/* … of which its coroutine waited: `since` (ticks; 0: it did not) is when it began first. */
void fm_trace_region_end_since(uint32_t name, uint64_t since);
/* One of a generator that goes on: the same region, after so many ticks. */
void fm_trace_region_resume(uint32_t name, uint64_t waited_ticks);

/* What a value is of: what the calling thread told right before it. */
struct fm_trace_valued {
    enum fm_trace_value_of of; /* OF_BEGIN, the region; OF_TOKEN; OF_INSTANT */
    uint32_t token;
};

/* A value of that, as text (UTF-8), of which the beginning is kept. */
void fm_trace_value(struct fm_trace_valued of, uint32_t key, const char *text, size_t len);

void fm_trace_counter(uint32_t name, double value);
void fm_trace_instant(uint32_t name);

/* A span that may end on another thread. Its token, never 0; 0 if nothing is traced. */
uint32_t fm_trace_async_begin(uint32_t name);
void fm_trace_async_end(uint32_t token);

#endif
