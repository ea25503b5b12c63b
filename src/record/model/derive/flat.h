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
 * Every other metric is there as model/metrics.h describes it: what is the function's own, and
 * what it has together with its callees; of nested activations only the outermost counts. In a
 * table of calls samples add no time: a thread that was only sampled in a process whose calls were
 * recorded (asyncio's tasks) gives its samples alone.
 *
 * Rows with no entries of their own (frames that were open before recording began, e.g. inherited
 * by fork) are kept when they have time. Thread roots are no rows; what is their own, samples that
 * showed no Python frame, is `outside`, and part of what shares are of.
 */
#ifndef FM_MODEL_FLAT_H
#define FM_MODEL_FLAT_H

#include <stddef.h>

#include "record/model/derive/shape.h"
#include "record/model/profile.h"

/* Numbers by metric; those that every table has can be called by their names, too. The state_ns of
 * a row are the states' part of it. */
struct fm_flat_row {
    uint32_t func;
    int64_t primitive;
    /* Of self_ns and total_ns: sampled, in processes that counted no calls. What is left belongs to
     * the calls, and may be divided by them. */
    int64_t uncounted_self_ns, uncounted_ns;
    union {
        int64_t self[FM_METRIC_COUNT];
        struct {
            int64_t self_ns;
            int64_t calls;          /* resumes included */
            int64_t resumes;        /* part of calls */
            int64_t min_ns, max_ns; /* 0 if unknown */
            int64_t suspended_ns;
            int64_t samples; /* that ended here */
        };
        struct {
            int64_t before_states_[FM_METRIC_STATES];
            int64_t state_ns[FM_STATE_COUNT];
        };
    };
    union {
        int64_t total[FM_METRIC_COUNT]; /* 0 where the metric has none or it was not asked for */
        int64_t total_ns;               /* the first of them */
        struct {
            int64_t before_total_samples_[FM_METRIC_SAMPLES];
            int64_t total_samples; /* in which it was on the stack */
        };
        struct {
            int64_t before_total_states_[FM_METRIC_STATES];
            int64_t total_state_ns[FM_STATE_COUNT];
        };
    };
};

/* The same without states. */
struct fm_flat_edge {
    uint32_t caller, callee; /* row numbers */
    int64_t primitive;
    union {
        int64_t self[FM_METRIC_STATES];
        struct {
            int64_t self_ns, calls, resumes_, min_ns_, max_ns_, suspended_ns_, samples;
        };
    };
    union {
        int64_t total[FM_METRIC_STATES];
        int64_t total_ns; /* the first of them */
        struct {
            int64_t before_total_samples_[FM_METRIC_SAMPLES];
            int64_t total_samples;
        };
    };
};

#define FM_FLAT_NAME(type, field, metric)                                                          \
    _Static_assert(offsetof(struct type, field) ==                                                 \
                       offsetof(struct type, self) + sizeof(int64_t) * FM_METRIC_##metric,         \
                   "the name is that of the metric")
FM_FLAT_NAME(fm_flat_row, calls, CALLS);
FM_FLAT_NAME(fm_flat_row, resumes, RESUMES);
FM_FLAT_NAME(fm_flat_row, self_ns, TOTAL);
FM_FLAT_NAME(fm_flat_row, min_ns, MIN);
FM_FLAT_NAME(fm_flat_row, max_ns, MAX);
FM_FLAT_NAME(fm_flat_row, suspended_ns, SUSPENDED);
FM_FLAT_NAME(fm_flat_row, samples, SAMPLES);
FM_FLAT_NAME(fm_flat_edge, calls, CALLS);
FM_FLAT_NAME(fm_flat_edge, self_ns, TOTAL);
FM_FLAT_NAME(fm_flat_edge, samples, SAMPLES);
#undef FM_FLAT_NAME
_Static_assert(FM_METRIC_TOTAL == 0, "time comes first");

struct fm_flat {
    FM_VEC(struct fm_flat_row) rows;   /* in order of function id */
    FM_VEC(struct fm_flat_edge) edges; /* sorted by (callee, caller) */
    bool sampled;                      /* numbers are samples, not exact */
    bool states; /* … of Fathom's sampler: samples and states are there instead of calls. Not set
                    for a table of Python's sampler (pstats), where calls are samples */
    bool beside; /* samples and states are there beside calls, whose times are exact */
    struct {
        int64_t self_ns, samples, state_ns[FM_STATE_COUNT];
    } outside;        /* all functions: of the threads themselves */
    uint64_t columns; /* metrics that have a column of their own (FM_PLACE_COLUMN) and some number,
                         a bit each */
};

/* Which part of a profile to add up; FM_NONE means all. */
struct fm_flat_scope {
    uint32_t process, thread;
};

/* The table of a profile (or of one process or thread of it), computed from its trees or copied
 * from its ready-made table. The caller frees it. */
struct fm_flat *fm_flat_new(const struct fm_profile *p, const struct fm_flat_scope *scope);
void fm_flat_free(struct fm_flat *flat);

/* By thread: was it only sampled in a process whose calls were recorded? Its time does not count in a
 * table of more than that thread. NULL if there is none. Caller frees. */
bool *fm_flat_timeless_new(const struct fm_profile *p);

/* The same of a shape, one source of it: rows are by what functions are called there. */
struct fm_flat_shape {
    uint32_t functions;       /* names in the shape are below this */
    const bool *is_row;       /* by name: a function, not a thread */
    const bool *timeless;     /* by thread: its time does not count; NULL: all does */
    const uint8_t *outermost; /* fm_shape_outermost_new of the shape, if that is known already */
    bool edges;               /* are wanted, too */
    uint64_t metrics,
        totals; /* that are wanted, a bit each; of those of entries the total is what is
                                 theirs and below them. 0: all there are */
};
struct fm_flat *fm_flat_of_shape(const struct fm_shape *shape, const struct fm_shape_source *source,
                                 const struct fm_flat_shape *o);

/* Sums: calls and primitive calls as pstats shows them, and all time and samples there are, those
 * outside of functions included. Shares are of these. */
struct fm_flat_total {
    int64_t calls, primitive, self_ns, samples;
};
struct fm_flat_total fm_flat_total(const struct fm_flat *flat);

/* Time per call that was not recursive; 0 if there was none. */
static inline double fm_flat_per_call_ns(const struct fm_flat_row *row)
{
    return row->primitive ? ((double)row->total_ns - (double)row->uncounted_ns) / row->primitive
                          : 0;
}

/* Make samples the calls, as Python's own sampler has it in its pstats files: calls are those in which
 * the function was on the stack, primitive ones those that ended there. */
void fm_flat_count_samples(struct fm_flat *flat);

/* Add `extra` (a table over the same profile's functions) into `flat`, as pstats.Stats.add does. */
void fm_flat_add(struct fm_flat *flat, const struct fm_flat *extra);

#endif
