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
 * Rows with no entries of their own (frames that were open before recording began, e.g. inherited
 * by fork) are kept when they have time. Thread roots are no rows.
 */
#ifndef FM_MODEL_FLAT_H
#define FM_MODEL_FLAT_H

#include "model/profile.h"

struct fm_flat_row {
    uint32_t func;
    int64_t calls, primitive;
    int64_t resumes;      /* part of calls */
    int64_t self_ns, total_ns;
    int64_t min_ns, max_ns; /* 0 if unknown */
    int64_t suspended_ns;
};

struct fm_flat_edge {
    uint32_t caller, callee; /* row numbers */
    int64_t calls, primitive;
    int64_t self_ns, total_ns;
};

struct fm_flat {
    FM_VEC(struct fm_flat_row) rows;   /* in order of function id */
    FM_VEC(struct fm_flat_edge) edges; /* sorted by (callee, caller) */
    bool sampled;                      /* numbers are samples, not exact (3.15's sampler) */
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

/* Add `extra` (a table over the same profile's functions) into `flat`, as pstats.Stats.add does. */
void fm_flat_merge(struct fm_flat *flat, const struct fm_flat *extra);

#endif
