/*
 * What the sampler learned beside the trees: the expressions in which samples fell, and what threads
 * waited for.
 *
 * In the trees themselves a sampled process has, per node and of the node itself only (its callees
 * not included): SAMPLES and, per state, nanoseconds (FM_METRIC_STATE_*). If its calls were not
 * recorded too, TOTAL is filled from the samples, callees included, so that every report works. The
 * rows of lines have samples and states alike (model/lines.h).
 *
 * A sample's weight is the real time since the one before, so times add up whatever the rate was.
 */
#ifndef FM_MODEL_SAMPLES_H
#define FM_MODEL_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "record/model/states.h"

/* How the thread is called that stands for the asyncio tasks of another, whose name follows. */
#define FM_TASKS_THREAD "asyncio tasks of "

/* An expression that was executing. */
struct fm_spot {
    uint32_t process, func;
    uint32_t line, end_line, column, end_column; /* 1-based; columns in UTF-8 bytes, 0 unknown */
    int64_t samples, ns;
};

/* Waiting at a line for something that has a name: a path, an address, the holder of a lock. */
struct fm_wait {
    uint32_t process, func, line;
    uint32_t state;  /* enum fm_state */
    uint32_t detail; /* string id */
    int64_t samples, ns;
};

struct fm_samples {
    FM_VEC(struct fm_spot) spots; /* sorted by all fields before the numbers, each once */
    FM_VEC(struct fm_wait) waits; /* … */
};

void fm_samples_release(struct fm_samples *samples);

struct fm_profile;

/* Let only some states (a bit each) count as time: of processes with samples the times of nodes and
 * lines are made anew from these states; calls and hits, of which no state is known, are dropped.
 * Of samples it is only known how much time each state had, so their number shrinks in proportion.
 * Of lines only the time of their own is left, and spots, of which no state is known, are dropped.
 * False if there is no such process. */
bool fm_samples_keep_states(struct fm_profile *p, unsigned states);

/* Put rows in order and combine equal ones: to be called after a series of pushes. */
void fm_samples_sort(struct fm_samples *samples);

#endif
