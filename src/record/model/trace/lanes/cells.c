/* Cells: what lies in one piece of a row together; see lanes.h, timeline.h. */
#include "base/runs.h"
#include "record/model/trace/lanes/lanes.h"

static void finish(struct fm_cell_builder *b, size_t depth)
{
    struct fm_cell *cell = &b->open.data[depth];
    uint64_t length = cell->end_ns - cell->begin_ns;
    uint64_t share =
        length ? (uint64_t)((double)b->covered.data[depth] * 255 / (double)length) : 255;
    cell->covered = (uint8_t)(share > 255 ? 255 : share);
    fm_vec_push(&b->into->cells, *cell);
    cell->spans = 0;
}

static void join(struct fm_cell *cell, const struct fm_cell *part)
{
    if (part->longest_ns > cell->longest_ns) {
        cell->longest_ns = part->longest_ns;
        cell->func = part->func;
        cell->state = part->state;
    }
    if (part->end_ns > cell->end_ns)
        cell->end_ns = part->end_ns;
    cell->spans += part->spans;
    cell->flags = (uint8_t)((cell->flags | part->flags) & ~FM_CELL_EXACT);
}

void fm_cell_builder_add(struct fm_cell_builder *b, const struct fm_cell *cell, uint64_t covered_ns)
{
    static const struct fm_cell none;
    while (b->open.len <= cell->depth) {
        fm_vec_push(&b->open, none);
        fm_vec_push(&b->covered, 0);
    }
    struct fm_cell *open = &b->open.data[cell->depth];
    uint64_t *covered = &b->covered.data[cell->depth];
    bool is_long = cell->end_ns - cell->begin_ns >= b->cell_ns;
    if (open->spans && !is_long && open->end_ns - open->begin_ns < b->cell_ns &&
        open->begin_ns / b->cell_ns == cell->begin_ns / b->cell_ns) {
        join(open, cell);
        *covered += covered_ns;
        return;
    }
    if (open->spans)
        finish(b, cell->depth);
    *open = *cell;
    *covered = covered_ns;
    if (is_long)
        finish(b, cell->depth);
}

static int compare_cells(const void *a, const void *b)
{
    const struct fm_cell *x = a, *y = b;
    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

bool fm_cell_builder_take(void *builder, const struct fm_lane_event *event)
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
    if (span->flags & FM_SPAN_UNWOUND)
        cell.flags |= FM_CELL_ERROR;
    fm_cell_builder_add(builder, &cell, cell.longest_ns);
    return true;
}

void fm_cell_builder_end(struct fm_cell_builder *b)
{
    for (size_t depth = 0; depth < b->open.len; depth++)
        if (b->open.data[depth].spans)
            finish(b, depth);
    fm_sort_runs(b->into->cells.data, b->into->cells.len, sizeof *b->into->cells.data,
                 compare_cells);
    fm_vec_release(&b->open);
    fm_vec_release(&b->covered);
}
