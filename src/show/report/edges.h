/*
 * The edges of a table, found by the function at one end: the callers of a row, or its callees.
 */
#ifndef FM_REPORT_EDGES_H
#define FM_REPORT_EDGES_H

#include "record/model/derive/flat.h"
#include "show/report/report.h"

struct fm_edges {
    enum fm_direction direction;
    struct fm_flat_edge *data; /* a copy, grouped by row */
    size_t *start;             /* per row, and one behind the last */
};

void fm_edges_init(struct fm_edges *e, const struct fm_flat *flat, enum fm_direction direction);
void fm_edges_release(struct fm_edges *e);

/* The edges of `row`, which may be reordered in place. */
static inline struct fm_flat_edge *fm_edges_of(const struct fm_edges *e, uint32_t row, size_t *n)
{
    *n = e->start[row + 1] - e->start[row];
    return e->data + e->start[row];
}

/* The edges of `row` that a report shows: in its order, and as many as it asks for. */
static inline struct fm_flat_edge *
fm_edges_shown(const struct fm_edges *e, const struct fm_report *r, uint32_t row, size_t *n)
{
    struct fm_flat_edge *all = fm_edges_of(e, row, n);
    fm_query_sort_edges(r->query, r->names, all, *n, e->direction == FM_CALLERS);
    if (r->edges_max >= 0 && *n > (size_t)r->edges_max)
        *n = (size_t)r->edges_max;
    return all;
}

/* The row at the other end: the caller among callers, the callee among callees. */
static inline uint32_t fm_edges_other(const struct fm_edges *e, const struct fm_flat_edge *edge)
{
    return e->direction == FM_CALLERS ? edge->caller : edge->callee;
}

#endif
