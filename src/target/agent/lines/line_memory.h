/*
 * What lines did to the heap: bytes allocated and freed while they were open, callees included, and how
 * high it stood meanwhile above where it was. It rides on the line frames (lines.h) and on the meter
 * that the heap library keeps of each thread; where no memory is recorded there is none, and this does
 * nothing.
 *
 * A line that opens saves the meter and begins a new high; when it closes, the highest of both goes on
 * to the line around it. So lines nest: callers, recursion, generators (closed at yield, opened again
 * at resume). Of nested activations of one line only the outermost counts, as with its time.
 *
 * Another thread's work is not in it: memory that one thread makes and another frees is allocated by
 * the one's lines and freed by the other's.
 */
#ifndef FM_AGENT_LINE_MEMORY_H
#define FM_AGENT_LINE_MEMORY_H

#include <stdbool.h>

#include "record/capture/live.h"
#include "target/heap/layout.h"

/* As of when the line was opened. */
struct fm_line_memory {
    uint64_t allocated, freed;
    int64_t high;
};

/* The heap library's meter of this thread, and all that is allocated now; NULL and 0 without it. */
struct fm_heap_meter *fm_line_memory_meter(void);
int64_t fm_line_memory_live(void);

/* It is not the run's memory that is recorded, but that of some of it (fathom.memory()): nothing for the run's own
 * recording of lines, whose other lines would have none. */
bool fm_line_memory_is_late(void);

/* The same, which lies at `place` from now on. */
struct fm_heap_meter *fm_line_memory_meter_at(struct fm_heap_meter *place);

static inline void fm_line_memory_open(struct fm_heap_meter *meter, struct fm_line_memory *at)
{
    if (__builtin_expect(meter == NULL, 1))
        return;
    *at = (struct fm_line_memory){ meter->allocated, meter->freed, meter->high };
    meter->high = (int64_t)(meter->allocated - meter->freed);
}

static inline void fm_line_memory_close(struct fm_heap_meter *meter,
                                        const struct fm_line_memory *at, struct fm_live_line *line,
                                        bool outermost)
{
    if (__builtin_expect(meter == NULL, 1))
        return;
    int64_t above = meter->high - (int64_t)(at->allocated - at->freed);
    if (outermost) {
        line->allocated += meter->allocated - at->allocated;
        line->freed += meter->freed - at->freed;
        line->heap_after = fm_line_memory_live();
        if (line->heap_after > line->heap_most)
            line->heap_most = line->heap_after;
        if (above > line->above_most)
            line->above_most = above;
    }
    if (at->high > meter->high)
        meter->high = at->high;
}

#endif
