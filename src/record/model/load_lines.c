/*
 * Reads the blocks of a .fathom file that stand beside the trees: lines, spots and waits; see
 * loader.h and docs/format.md.
 */
#include <string.h>

#include "record/capture/format.h"
#include "record/model/loader.h"

/* ---- lines ---- */

bool fm_load_lines(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c) || !fm_loader_is_new(l, &l->lines) || l->table.width < 4 ||
        l->table.rows >= FM_NONE - l->p->lines.rows.len)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint64_t process = fm_loader_cell(l, i, 0);
        struct fm_line *row = fm_lines_add(
            &l->p->lines, process ? fm_loader_process(l, process - 1) : FM_NONE,
            fm_loader_function(l, fm_loader_cell(l, i, 1)), fm_loader_cell32(l, i, 2), false);
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
        uint32_t row = fm_loader_id(&l->lines, fm_loader_cell(l, i, 0)),
                 visits = fm_loader_cell32(l, i, 2);
        uint64_t bucket = fm_loader_cell(l, i, 1);
        if (row == FM_NONE) {
            l->lost_nodes++;
            continue;
        }
        uint32_t *to = &fm_lines_histogram(lines, &lines->rows.data[row])
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
        uint32_t id = fm_loader_id(&l->lines, fm_loader_cell(l, i, 0));
        if (id == FM_NONE) {
            l->lost_nodes++;
            continue;
        }
        struct fm_line *row = &l->p->lines.rows.data[id];
        row->samples = fm_sum(row->samples, fm_loader_signed(l, i, 1));
        for (uint32_t s = 0; s < FM_STATE_COUNT; s++)
            row->state_ns[s] = fm_sum(row->state_ns[s], fm_loader_signed(l, i, 2 + s));
    }
    return true;
}

bool fm_load_line_memory(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c) || l->table.width < 3)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint32_t id = fm_loader_id(&l->lines, fm_loader_cell(l, i, 0));
        if (id == FM_NONE) {
            l->lost_nodes++;
            continue;
        }
        struct fm_line *row = &l->p->lines.rows.data[id];
        row->memory = true;
        row->allocated = fm_sum(row->allocated, fm_loader_signed(l, i, 1));
        row->freed = fm_sum(row->freed, fm_loader_signed(l, i, 2));
        row->heap_after = fm_loader_signed(l, i, 3);
        row->heap_most = fm_loader_signed(l, i, 4);
        row->above_most = fm_loader_signed(l, i, 5);
    }
    return true;
}

/* ---- spots and waits ---- */

bool fm_load_spots(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c) || l->table.width < 7)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint64_t process = fm_loader_cell(l, i, 0);
        struct fm_spot spot = {
            .process = process ? fm_loader_process(l, process - 1) : FM_NONE,
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
        uint64_t process = fm_loader_cell(l, i, 0), state = fm_loader_cell(l, i, 3);
        struct fm_wait wait = {
            .process = process ? fm_loader_process(l, process - 1) : FM_NONE,
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

/* ---- memory ---- */

bool fm_load_heap_counts(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c) || l->table.width < 4)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint64_t process = fm_loader_cell(l, i, 0);
        struct fm_heap_count count = {
            .process = fm_loader_process(l, process ? process - 1 : FM_NONE),
            .table = fm_loader_cell32(l, i, 1),
            .bucket = fm_loader_cell32(l, i, 2),
            .blocks = fm_loader_signed(l, i, 3),
            .bytes = fm_loader_signed(l, i, 4),
        };
        if (count.table < FM_HEAP_TABLES && count.bucket < FM_HEAP_BUCKETS_MAX)
            fm_vec_push(&l->p->memory.counts, count);
    }
    return true;
}

static int64_t known_bytes(struct fm_loader *l, uint32_t row, uint32_t column)
{
    uint64_t cell = fm_loader_cell(l, row, column);
    return cell > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)cell - 1;
}

bool fm_load_memory_points(struct fm_loader *l, struct fm_cursor *c)
{
    uint64_t at_ns = 0;
    if (!fm_loader_table(l, c) || l->table.width < 3)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint64_t process = fm_loader_cell(l, i, 0);
        at_ns += (uint64_t)fm_loader_signed(l, i, 1);
        struct fm_memory_point point = {
            .process = process ? fm_loader_process(l, process - 1) : FM_NONE,
            .at_ns = at_ns,
            .heap = known_bytes(l, i, 2),
            .rss = known_bytes(l, i, 3),
            .pss = known_bytes(l, i, 4),
            .swap = known_bytes(l, i, 5),
            .limit = known_bytes(l, i, 6),
            .group = known_bytes(l, i, 7),
        };
        fm_vec_push(&l->p->memory.points, point);
    }
    return true;
}

bool fm_load_memory_marks(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c) || l->table.width < 5)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint64_t process = fm_loader_cell(l, i, 0), level = fm_loader_cell(l, i, 2);
        struct fm_memory_mark mark = {
            .process = process ? fm_loader_process(l, process - 1) : FM_NONE,
            .name = fm_loader_string(l, fm_loader_cell(l, i, 1)),
            .level = level && level < FM_MARK_NO_LEVEL ? (uint32_t)level - 1 : FM_MARK_NO_LEVEL,
            .begin_ns = fm_loader_cell(l, i, 3),
            .end_ns = fm_loader_cell(l, i, 4),
            .begin_bytes = known_bytes(l, i, 5),
            .end_bytes = known_bytes(l, i, 6),
        };
        fm_vec_push(&l->p->memory.marks, mark);
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
