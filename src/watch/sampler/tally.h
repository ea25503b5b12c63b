/*
 * Distinct stacks and how often each was seen, by state. A stack belongs to a thread (the sampler's
 * number of it), so the same frames in two threads are two rows.
 *
 * Time. What is seen in a round counts for the second half of the time since the round before and
 * for the first half of that until the next, whatever is seen then. (All of the time before it
 * would favour whatever follows a look that took long; all of it only where the next round sees the
 * thread again, whoever stays long.) What is longer than a stated time was not seen by anybody
 * (fm_tally_end_round).
 *
 * Memory grows with the number of distinct stacks, up to a bound: frames are kept once per row, and what is
 * new when FM_TALLY_MAX_ROWS or FM_TALLY_MAX_FRAMES are reached counts for its thread without a stack, as partial.
 */
#ifndef FM_SAMPLER_TALLY_H
#define FM_SAMPLER_TALLY_H

#include "base/vec.h"
#include "record/model/states.h"
#include "watch/sampler/climb.h"

#define FM_TALLY_MAX_ROWS   1000000u
#define FM_TALLY_MAX_FRAMES 50000000u

struct fm_tally_row {
    uint64_t hash;
    uint32_t first, n; /* frames, newest first, in fm_tally.frames */
    uint32_t thread;
    bool partial; /* there is more of the stack, older than this */
    uint64_t samples[FM_STATE_COUNT];
    uint64_t ns[FM_STATE_COUNT];
    uint32_t place[FM_STATE_COUNT]; /* in the order of the thread's samples (order.h): the last */
};

/* Waiting for something with a name, at a place in the code. */
struct fm_tally_wait {
    uint64_t hash;
    struct fm_raw_frame where;
    enum fm_state state;
    uint32_t detail; /* string id, or FM_TALLY_HOLDER: the thread that held the GIL … */
    uint32_t holder; /* … its number */
    struct fm_raw_frame held_at; /* … and where it was */
    uint64_t samples, ns;
};

#define FM_TALLY_HOLDER UINT32_MAX

/* What was counted in a round. */
struct fm_tally_seen {
    uint32_t row;
    enum fm_state state;
};

struct fm_tally {
    FM_VEC(struct fm_tally_row) rows;
    FM_VEC(struct fm_raw_frame) frames;
    FM_VEC(struct fm_tally_wait) waits;
    struct fm_tally_round {
        FM_VEC(struct fm_tally_seen) seen;
        FM_VEC(uint32_t) waits;
    } now, before; /* what this round has seen so far, and what the one before did */
    uint32_t *row_index, *wait_index; /* row + 1, or 0; open addressing */
    size_t row_cap, wait_cap;         /* powers of two */
};

void fm_tally_release(struct fm_tally *t);

/* The row of this stack, new if it was never seen. */
uint32_t fm_tally_row(struct fm_tally *t, uint32_t thread, const struct fm_raw_frame *frames,
                      uint32_t n, bool partial);

/* The row of this wait; only what identifies it is looked at. */
uint32_t fm_tally_wait(struct fm_tally *t, const struct fm_tally_wait *wait);

/* Seen in this round. */
void fm_tally_add(struct fm_tally *t, uint32_t row, enum fm_state state);
void fm_tally_add_wait(struct fm_tally *t, uint32_t wait);

/* The round is over; its stacks were read so long after those of the round before. Of that time no
 * more than `most_ns` is given to anybody. Returns the rest. */
uint64_t fm_tally_end_round(struct fm_tally *t, uint64_t ns, uint64_t most_ns);

/* Add what another one counted; numbers of its threads become `threads[number]`, details
 * `details[id]`. What its last round saw is left out: it has no time yet. Its rows become `rows[row]`
 * (UINT32_MAX: one that was never counted), if that is not NULL. */
void fm_tally_add_all(struct fm_tally *t, const struct fm_tally *other,
                      uint32_t (*thread)(void *, uint32_t), uint32_t (*detail)(void *, uint32_t),
                      void *data, uint32_t *rows);

/* Hand over what was counted so far and begin anew. What the last round saw stays, to be given its
 * time; so do the rows in `*rows[0..n)` and `*waits[0..m)` (UINT32_MAX: none), which become their
 * new numbers. */
struct fm_tally fm_tally_take(struct fm_tally *t, uint32_t **rows, size_t n, uint32_t **waits,
                              size_t m);

#endif
