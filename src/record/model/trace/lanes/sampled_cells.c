/* Cells of sampled lanes: spans that are too small to be seen become one; see sampled.h and lanes.h. */
#include "record/model/trace/lanes/lanes.h"
#include "record/model/trace/lanes/sampled.h"

void fm_sampled_cells(const struct fm_sampled *s, size_t lane, uint64_t from_ns, uint64_t to_ns,
                      uint64_t cell_ns, struct fm_cells *into)
{
    struct fm_cell_builder b = { .cell_ns = cell_ns ? cell_ns : 1, .into = into };
    fm_sampled_events(s, lane, from_ns, to_ns, fm_cell_builder_take, &b);
    fm_cell_builder_end(&b);
}
