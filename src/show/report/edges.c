/* Edges by row: a counting sort, which keeps the order of the table; see edges.h. */
#include "show/report/edges.h"

#include "base/memory.h"

static uint32_t row_of(const struct fm_flat_edge *edge, enum fm_direction direction)
{
    return direction == FM_CALLERS ? edge->callee : edge->caller;
}

void fm_edges_init(struct fm_edges *e, const struct fm_flat *flat, enum fm_direction direction)
{
    size_t rows = flat->rows.len, n = flat->edges.len;
    e->direction = direction;
    e->data = fm_calloc(n, sizeof *e->data);
    e->start = fm_calloc(rows + 2, sizeof *e->start);
    /* start[r + 1] first counts, then runs along while the edges of r are placed. */
    for (size_t i = 0; i < n; i++)
        e->start[row_of(&flat->edges.data[i], direction) + 2]++;
    for (size_t r = 2; r < rows + 2; r++)
        e->start[r] += e->start[r - 1];
    for (size_t i = 0; i < n; i++)
        e->data[e->start[row_of(&flat->edges.data[i], direction) + 1]++] = flat->edges.data[i];
}

void fm_edges_release(struct fm_edges *e)
{
    free(e->data);
    free(e->start);
}
