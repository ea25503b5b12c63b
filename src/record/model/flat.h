/*
 * The flat table of a profile: one row per function, one edge per caller and callee.
 *
 * The numbers mean what pstats means by them, so tables can be compared number by number:
 *   calls       entries, resumes of generators included
 *   primitive   those entries that happened while the function was not active already
 *   self_ns     time in the function itself, without callees
 *   total_ns    time including callees; of nested activations only the outermost counts
 * and on an edge: the callee's calls, self and total time when called from that caller; `primitive`
 * and `total_ns` count only while the same edge is not active already.
 *
 * Of samples (SAMPLES and STATE_* of the nodes) a row has those that ended in the function, and
 * those in which it was on the stack at all; recursion counts a sample once. In a table of calls
 * they add no time: a thread that was only sampled in a process whose calls were recorded
 * (asyncio's tasks) gives its samples alone.
 *
 * Rows with no entries of their own (frames that were open before recording began, e.g. inherited
 * by fork) are kept when they have time. Thread roots are no rows.
 */
#ifndef FM_MODEL_FLAT_H
#define FM_MODEL_FLAT_H

#include "record/model/profile.h"

struct fm_flat_row {
    uint32_t func;
    int64_t calls, primitive;
    int64_t resumes; /* part of calls */
    int64_t self_ns, total_ns;
    int64_t min_ns, max_ns; /* 0 if unknown */
    int64_t suspended_ns;
    int64_t samples, total_samples; /* that ended here; in which it was on the stack */
    int64_t state_ns[FM_STATE_COUNT], total_state_ns[FM_STATE_COUNT]; /* the same, as time */
};

struct fm_flat_edge {
    uint32_t caller, callee; /* row numbers */
    int64_t calls, primitive;
    int64_t self_ns, total_ns;
    int64_t samples, total_samples;
};

struct fm_flat {
    FM_VEC(struct fm_flat_row) rows;   /* in order of function id */
    FM_VEC(struct fm_flat_edge) edges; /* sorted by (callee, caller) */
    bool sampled;                      /* numbers are samples, not exact */
    bool states; /* … of Fathom's sampler: samples and states are there instead of calls. Not set
                    for a table of Python's sampler (pstats), where calls are samples */
    bool beside; /* samples and states are there beside calls, whose times are exact */
};

/* Which part of a profile to add up; FM_NONE means all. */
struct fm_flat_scope {
    uint32_t process, thread;
};

/* The table of a profile (or of one process or thread of it), computed from its trees or copied
 * from its ready-made table. The caller frees it. */
struct fm_flat *fm_flat_new(const struct fm_profile *p, const struct fm_flat_scope *scope);
void fm_flat_free(struct fm_flat *flat);

/* Sums over rows, as pstats shows them: calls, primitive calls, self time. */
struct fm_flat_total {
    int64_t calls, primitive, self_ns;
};
struct fm_flat_total fm_flat_total(const struct fm_flat *flat);

/* Make samples the calls, as Python's own sampler has it in its pstats files: calls are those in which
 * the function was on the stack, primitive ones those that ended there. */
void fm_flat_count_samples(struct fm_flat *flat);

/* Add `extra` (a table over the same profile's functions) into `flat`, as pstats.Stats.add does. */
void fm_flat_merge(struct fm_flat *flat, const struct fm_flat *extra);

#endif
