/*
 * What pstats and the reports agree on about functions and edges of a flat table. Whoever shows a
 * table or writes one as pstats uses these, so that both say the same.
 */
#ifndef FM_MODEL_LABEL_H
#define FM_MODEL_LABEL_H

#include <string.h>

#include "record/model/derive/flat.h"

/* Shown as ('~', 0, name) by pstats: a function without a file. */
static inline bool fm_label_is_builtin(const struct fm_profile *p, const struct fm_function *f)
{
    if (f->line != 0)
        return false;
    const char *file = fm_profile_text(p, f->file);
    return (f->kind != FM_FUNCTION_PYTHON && !*file) || strcmp(file, "~") == 0;
}

/* Is this an edge of which only the number of calls is known (the `profile` module, samplers)? */
static inline bool fm_edge_counts_only(const struct fm_flat_edge *e)
{
    return e->calls > 0 && e->primitive == 0 && e->self_ns == 0 && e->total_ns == 0;
}

/* Time of an edge, for those who draw it: of one of which only the calls are known, their part of the
 * callee's. */
static inline int64_t fm_edge_time(const struct fm_flat *flat, const struct fm_flat_edge *e)
{
    const struct fm_flat_row *callee = &flat->rows.data[e->callee];
    if (!fm_edge_counts_only(e) || callee->calls <= 0)
        return e->total_ns;
    double part = (double)e->calls / (double)callee->calls;
    return (int64_t)((part > 1 ? 1 : part) * (double)callee->total_ns);
}

/* Seconds as cProfile computes them from nanoseconds (it multiplies, and so must we for the same
 * last digit). */
static inline double fm_label_seconds(int64_t ns)
{
    return (double)ns * 1e-9;
}

#endif
