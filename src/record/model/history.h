/*
 * What was alive at any instant: the memory of a process as slices over time.
 *
 * A slice is what changed since the one before it: by context, bytes and blocks that are alive more, or
 * less. All slices up to an instant, added up, are what was alive then. They are kept as bytes, since
 * there may be many:
 *
 *     slice := varint length of the rest, varint µs since the slice before (the first: since 0 of the
 *              clock), then changes until the length is used up
 *     change := signed number of the context − that of the change before (from 0), signed bytes, signed
 *              blocks
 *
 * Contexts of one slice ascend, each is there once. A slice without changes says that somebody looked,
 * and nothing had changed.
 *
 * The same bytes are what the launcher writes while the program runs, with numbers of accounts as
 * contexts (capture/live_slices.h), and what a profile holds, with indices of fm_history.contexts. A
 * reader trusts nothing: what is damaged ends the slices.
 */
#ifndef FM_MODEL_HISTORY_H
#define FM_MODEL_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/varint.h"
#include "base/vec.h"

struct fm_history_change {
    uint32_t context;
    int64_t bytes, blocks;
};

/* Slices, and where the next one goes on. A zeroed one is empty and valid. */
struct fm_slices {
    struct fm_buffer bytes;
    struct fm_buffer open; /* the slice being made */
    uint64_t last_us;
    uint32_t context; /* of the last change of the open slice */
    size_t count;
};

void fm_slices_release(struct fm_slices *s);

/* Add a slice: begin, its changes in ascending order of contexts, end. Times never go back. */
void fm_slices_begin(struct fm_slices *s, uint64_t at_ns);
void fm_slices_change(struct fm_slices *s, const struct fm_history_change *change);
void fm_slices_end(struct fm_slices *s);

/* Each two slices become one: half as many, and those that stay are as they were. */
void fm_slices_thin(struct fm_slices *s);

struct fm_slices_walk {
    struct fm_cursor rest, slice;
    uint64_t at_us;
    uint32_t context;
};

struct fm_slices_walk fm_slices_walk(const void *bytes, size_t len);

/* The next slice; false behind the last that is whole. */
bool fm_slices_next(struct fm_slices_walk *w, uint64_t *ret_at_ns);

/* The next change of that slice; false behind the last. */
bool fm_slices_next_change(struct fm_slices_walk *w, struct fm_history_change *ret);

/* Of one process. */
struct fm_history {
    uint32_t process;
    uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC; before and after it the process had nothing */
    bool exact;                /* every event is in it, not only what was seen now and then */
    FM_VEC(uint32_t) contexts; /* nodes */
    struct fm_slices slices;
};

void fm_history_release(struct fm_history *h);

struct fm_profile;

/* An instant of a run, counted from its beginning. */
struct fm_moment {
    bool percent; /* … of its length; else nanoseconds */
    double value;
};

/* What is shown for an instant: the last slices at or before it. */
struct fm_shown {
    double asked_ns, shown_ns; /* since the beginning of the run; of several processes the oldest */
    uint64_t begin_ns;         /* CLOCK_MONOTONIC: the beginning of the run; of several the last */
    uint32_t processes;        /* that were alive then */
    bool exact;                /* … and nothing happened between the two times */
};

/* When a run began, and ended, as far as the histories of its processes tell; false: there is none. The
 * beginning is that of its curve (fathom plot). */
bool fm_history_span(const struct fm_profile *p, uint32_t run, uint64_t *ret_begin_ns,
                     uint64_t *ret_end_ns);

/*
 * Let the metrics "then" and "then_blocks" be what was alive at `to`, or, if `from` is not NULL, what of
 * that was not yet at `from`: less than nothing, if there was more. Processes that were not yet, or no
 * more, have nothing. False if no run was going on then.
 */
bool fm_history_show(struct fm_profile *p, const struct fm_moment *from, const struct fm_moment *to,
                     struct fm_shown *ret_from, struct fm_shown *ret_to);

#endif
