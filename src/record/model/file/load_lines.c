/*
 * Reads the blocks of a .fathom file that stand beside the trees: lines, spots and waits; see
 * loader.h and docs/format.md.
 */
#include <string.h>

#include "record/capture/format.h"
#include "record/model/file/loader.h"

/* ---- lines ---- */

bool fm_load_lines(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c) || !fm_loader_is_new(l, &l->lines) || l->table.width < 4 ||
        l->table.rows >= FM_NONE - l->p->lines.rows.len)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        struct fm_line *row = fm_lines_add(&l->p->lines, fm_loader_row_process(l, i),
                                           fm_loader_function(l, fm_loader_cell(l, i, 1)),
                                           fm_loader_cell32(l, i, 2), false);
        row->hits = fm_loader_signed(l, i, 3);
        row->total_ns = fm_loader_signed(l, i, 4);
        row->self_ns = fm_loader_signed(l, i, 5);
        row->min_ns = fm_loader_signed(l, i, 6);
        row->max_ns = fm_loader_signed(l, i, 7);
        row->suspended_ns = fm_loader_signed(l, i, 8);
        fm_renumber_add(&l->lines, l->table.first + i, (uint32_t)l->p->lines.rows.len - 1);
    }
    return true;
}

bool fm_load_visits(struct fm_loader *l, struct fm_cursor *c)
{
    struct fm_lines *lines = &l->p->lines;
    if (!fm_loader_table(l, c) || l->table.width < 3)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        struct fm_line *row = fm_loader_line(l, i);
        uint32_t visits = fm_loader_cell32(l, i, 2);
        uint64_t bucket = fm_loader_cell(l, i, 1);
        if (!row)
            continue;
        uint32_t *to = &fm_lines_histogram(lines, row)
                            ->buckets[bucket < FM_LINE_BUCKETS ? bucket : FM_LINE_BUCKETS - 1];
        if (__builtin_add_overflow(*to, visits, to))
            *to = UINT32_MAX;
    }
    return true;
}

bool fm_load_line_states(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c) || l->table.width < 2)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        struct fm_line *row = fm_loader_line(l, i);
        if (!row)
            continue;
        row->samples = fm_sum(row->samples, fm_loader_signed(l, i, 1));
        for (uint32_t s = 0; s < FM_STATE_COUNT; s++)
            row->state_ns[s] = fm_sum(row->state_ns[s], fm_loader_signed(l, i, 2 + s));
    }
    return true;
}

/* ---- spots and waits ---- */

bool fm_load_spots(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c) || l->table.width < 7)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        struct fm_spot spot = {
            .process = fm_loader_row_process(l, i),
            .func = fm_loader_function(l, fm_loader_cell(l, i, 1)),
            .line = fm_loader_cell32(l, i, 2),
            .end_line = fm_loader_cell32(l, i, 3),
            .column = fm_loader_cell32(l, i, 4),
            .end_column = fm_loader_cell32(l, i, 5),
            .samples = fm_loader_signed(l, i, 6),
            .ns = fm_loader_signed(l, i, 7),
        };
        fm_vec_push(&l->p->samples.spots, spot);
    }
    return true;
}

bool fm_load_waits(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c) || l->table.width < 6)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint64_t state = fm_loader_cell(l, i, 3);
        struct fm_wait wait = {
            .process = fm_loader_row_process(l, i),
            .func = fm_loader_function(l, fm_loader_cell(l, i, 1)),
            .line = fm_loader_cell32(l, i, 2),
            .state = state < FM_STATE_COUNT ? (uint32_t)state : FM_STATE_OTHER,
            .detail = fm_loader_string(l, fm_loader_cell(l, i, 4)),
            .samples = fm_loader_signed(l, i, 5),
            .ns = fm_loader_signed(l, i, 6),
        };
        fm_vec_push(&l->p->samples.waits, wait);
    }
    return true;
}

bool fm_load_marks(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint32_t func = fm_loader_id(&l->functions, fm_loader_cell(l, i, 0));
        if (func != FM_NONE)
            fm_lines_mark(&l->p->lines, func);
    }
    return true;
}

bool fm_load_unit(struct fm_loader *l, struct fm_cursor *c)
{
    double unit_s;
    if (!fm_loader_table(l, c) || l->table.rows != 1)
        return false;
    uint64_t bits = fm_loader_cell(l, 0, 0);
    memcpy(&unit_s, &bits, sizeof unit_s);
    if (!(unit_s > 0 && unit_s <= 1e9))
        return false;
    l->p->lines.unit_s = unit_s;
    return true;
}
