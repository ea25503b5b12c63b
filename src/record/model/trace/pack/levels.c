/* Levels of detail, as spans end; see levels.h. */
#include "record/model/trace/pack/levels.h"

#include <string.h>

void fm_level_cell_join(struct fm_level_cell *cell, const struct fm_level_cell *part)
{
    if (part->longest > cell->longest) {
        cell->longest = part->longest;
        cell->subject = part->subject;
    }
    if (part->begin < cell->begin)
        cell->begin = part->begin;
    if (part->end > cell->end)
        cell->end = part->end;
    cell->covered += part->covered;
    cell->spans += part->spans;
    cell->flags |= part->flags;
}

/* A cell is in no higher level as it is. */
static void finish(struct fm_levels *levels, const struct fm_level_cell *cell, unsigned top)
{
    if (!top)
        return; /* a span, which the events have */
    if (levels->skip[top])
        levels->skip[top]--;
    else
        fm_vec_push(&levels->done[top].cells, *cell);
}

/* Level `n` gets a cell of the level below it. */
static void add(struct fm_levels *levels, struct fm_level_row *row, struct fm_level_cell cell,
                unsigned n)
{
    for (; n <= FM_LEVELS; n++) {
        struct fm_level_cell *open = &row->open[n - 1];
        uint32_t *parts = &row->parts[n - 1];
        unsigned width = levels->width + 2 * (n - 1);
        bool is_long = (cell.end - cell.begin) >> width;
        if (!is_long && *parts && open->begin >> width == cell.begin >> width) {
            if ((*parts)++ == 1)
                finish(levels, open, n - 1);
            finish(levels, &cell, n - 1);
            fm_level_cell_join(open, &cell);
            open->origin = (uint8_t)n;
            return;
        }
        struct fm_level_cell before = *open;
        bool had = *parts;
        *parts = !is_long;
        if (!is_long)
            *open = cell;
        if (had && is_long)
            add(levels, row, before, n + 1);
        else if (had)
            cell = before;
        if (!had && !is_long)
            return;
    }
    finish(levels, &cell, FM_LEVELS);
}

void fm_levels_add(struct fm_levels *levels, const struct fm_level_cell *span)
{
    static const struct fm_level_row empty;
    if (span->depth >= FM_LEVEL_DEPTH)
        return;
    while (levels->rows.len <= span->depth)
        fm_vec_push(&levels->rows, empty);
    add(levels, &levels->rows.data[span->depth], *span, 1);
}

void fm_levels_end(struct fm_levels *levels)
{
    for (size_t depth = 0; depth < levels->rows.len; depth++) {
        struct fm_level_row *row = &levels->rows.data[depth];
        for (unsigned n = 1; n <= FM_LEVELS; n++) {
            bool had = row->parts[n - 1];
            row->parts[n - 1] = 0;
            if (had && n < FM_LEVELS)
                add(levels, row, row->open[n - 1], n + 1);
            else if (had)
                finish(levels, &row->open[n - 1], FM_LEVELS);
        }
    }
}

void fm_levels_release(struct fm_levels *levels)
{
    fm_vec_release(&levels->rows);
    for (unsigned top = 0; top <= FM_LEVELS; top++)
        fm_vec_release(&levels->done[top].cells);
}
