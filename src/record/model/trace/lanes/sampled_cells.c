/* Cells of sampled lanes: spans that are too small to be seen become one; see sampled.h and lanes.h. */
#include "record/model/trace/lanes/lanes.h"
#include "record/model/trace/lanes/sampled.h"

static bool add_span(void *context, const struct fm_lane_event *event)
{
    const struct fm_time_span *span = &event->span;
    if (!event->ends)
        return true;
    struct fm_cell cell = { .begin_ns = span->begin_ns,
                            .end_ns = span->end_ns,
                            .func = span->func,
                            .depth = span->depth,
                            .longest_ns = span->end_ns - span->begin_ns,
                            .spans = 1,
                            .flags = FM_CELL_EXACT,
                            .state = span->state };
    fm_cell_builder_add(context, &cell, cell.longest_ns);
    return true;
}

void fm_sampled_cells(const struct fm_sampled *s, size_t lane, uint64_t from_ns, uint64_t to_ns,
                      uint64_t cell_ns, struct fm_cells *into)
{
    struct fm_cell_builder b = { .cell_ns = cell_ns ? cell_ns : 1, .into = into };
    fm_sampled_events(s, lane, from_ns, to_ns, add_span, &b);
    fm_cell_builder_end(&b);
}
