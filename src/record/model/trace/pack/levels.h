/*
 * Levels of detail of a thread: cells that stand for many spans, made while its spans end.
 *
 * Level n has buckets of 2^(width + 2(n − 1)) ticks, level 0 is the spans themselves. At each depth what
 * begins in one bucket becomes one cell, which knows the longest span in it, how many there are, and how
 * much of it is covered. What is alone in its bucket, or longer than one, stays as it is and goes on to
 * the next level. So a cell appears in all levels from the one that made it (`origin`; 0: it is a span)
 * to the one before it was put together with others (`top`), and is written once, as one of its top. The
 * picture of a level are all cells with origin ≤ level ≤ top.
 */
#ifndef FM_MODEL_TRACE_LEVELS_H
#define FM_MODEL_TRACE_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/varint.h"
#include "base/vec.h"

#define FM_LEVELS      14  /* from 256 µs to more than four hours */
#define FM_LEVEL_DEPTH 192 /* deeper spans are in the events alone */

struct fm_level_cell {
    uint64_t begin, end; /* ticks */
    uint64_t longest;    /* ticks: of the span of `subject` */
    uint64_t covered;    /* ticks */
    uint64_t spans;
    uint32_t subject; /* events.h */
    uint16_t depth;
    uint8_t origin;
    uint8_t flags; /* enum fm_cell_flags of timeline.h */
};

struct fm_level_cells {
    FM_VEC(struct fm_level_cell) cells;
};

/* One depth: what is being put together in the current bucket of each level. */
struct fm_level_row {
    struct fm_level_cell open[FM_LEVELS];
    uint32_t parts[FM_LEVELS]; /* it is of so many; 0: empty */
};

struct fm_levels {
    unsigned width; /* log2 of the ticks of a bucket of level 1 */
    FM_VEC(struct fm_level_row) rows;
    struct fm_level_cells done[FM_LEVELS + 1]; /* by top: to be written */
    uint64_t skip[FM_LEVELS + 1];              /* … of which so many were written before */
};

/* A span ended. */
void fm_levels_add(struct fm_levels *levels, const struct fm_level_cell *span);

/* The usual case of that, without a copy: a short span goes into the bucket that is open at its depth. Else
 * nothing has happened. */
static inline bool fm_levels_join(struct fm_levels *levels, size_t depth, uint64_t begin,
                                  uint64_t end, uint32_t subject, uint8_t flags)
{
    if (depth >= levels->rows.len)
        return false;
    struct fm_level_row *row = &levels->rows.data[depth];
    struct fm_level_cell *open = &row->open[0];
    uint64_t length = end - begin;
    if (!row->parts[0] || length >> levels->width || (open->begin ^ begin) >> levels->width)
        return false;
    row->parts[0]++;
    if (length > open->longest) {
        open->longest = length;
        open->subject = subject;
    }
    open->begin = begin < open->begin ? begin : open->begin;
    open->end = end > open->end ? end : open->end;
    open->covered += length;
    open->spans++;
    open->flags |= flags;
    open->origin = 1;
    return true;
}

/* There are no more: what is open in buckets is done. */
void fm_levels_end(struct fm_levels *levels);
void fm_levels_release(struct fm_levels *levels);

/* Put `part`, which follows it at the same depth, into a cell. */
void fm_level_cell_join(struct fm_level_cell *cell, const struct fm_level_cell *part);

/* ---- blocks ---- */

struct fm_level_facts {
    uint32_t thread, top, width;
    uint64_t begin, end; /* ticks, of all cells */
    uint64_t cells;
};
bool fm_level_facts(struct fm_level_facts *facts, struct fm_cursor *head);

/* Head and body of a block of the cells of one top; they are sorted for it. */
void fm_level_block(struct fm_levels *levels, uint32_t thread, unsigned top, struct fm_buffer *head,
                    struct fm_buffer *body);

/* Give out the cells of a block; false if it makes no sense. */
typedef void fm_level_cell_fn(void *context, const struct fm_level_cell *cell);
bool fm_level_read(const struct fm_level_facts *facts, const struct fm_buffer *body,
                   fm_level_cell_fn *each, void *context);

#endif
