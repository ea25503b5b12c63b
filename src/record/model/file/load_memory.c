/*
 * Reads the blocks of a .fathom file that are about memory: what lines did to the heap, counts of
 * blocks, and what was looked at over time; see loader.h and docs/format.md.
 */
#include "record/capture/format.h"
#include "record/model/file/loader.h"

bool fm_load_line_memory(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c) || l->table.width < 3)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        struct fm_line *row = fm_loader_line(l, i);
        if (!row)
            continue;
        row->memory = true;
        row->allocated = fm_sum(row->allocated, fm_loader_signed(l, i, 1));
        row->freed = fm_sum(row->freed, fm_loader_signed(l, i, 2));
        row->heap_after = fm_loader_signed(l, i, 3);
        row->heap_most = fm_loader_signed(l, i, 4);
        row->above_most = fm_loader_signed(l, i, 5);
    }
    return true;
}

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
        at_ns += (uint64_t)fm_loader_signed(l, i, 1);
        struct fm_memory_point point = {
            .process = fm_loader_row_process(l, i),
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
        uint64_t level = fm_loader_cell(l, i, 2);
        struct fm_memory_mark mark = {
            .process = fm_loader_row_process(l, i),
            .name = fm_loader_string(l, fm_loader_cell(l, i, 1)),
            .level = level && level < FM_MARK_NO_LEVEL ? (uint32_t)level - 1 : FM_MARK_NO_LEVEL,
            .thread = fm_loader_cell32(l, i, 7),
            .begin_ns = fm_loader_cell(l, i, 3),
            .end_ns = fm_loader_cell(l, i, 4),
            .begin_bytes = known_bytes(l, i, 5),
            .end_bytes = known_bytes(l, i, 6),
        };
        fm_vec_push(&l->p->memory.marks, mark);
    }
    return true;
}

/* What a later version divides further is, here, part of the rest. */
bool fm_load_residents(struct fm_loader *l, struct fm_cursor *c)
{
    enum { FIRST_PART = 5 };
    if (!fm_loader_table(l, c) || l->table.width < FIRST_PART)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        struct fm_resident resident = {
            .process = fm_loader_row_process(l, i),
            .when = fm_loader_cell32(l, i, 1),
            .at_ns = fm_loader_cell(l, i, 2),
            .rss = fm_loader_signed(l, i, 3),
            .untouched = fm_loader_signed(l, i, 4),
        };
        int64_t known = 0;
        for (uint32_t part = 0; part < FM_RESIDENT_REST; part++) {
            resident.parts[part] = fm_loader_signed(l, i, FIRST_PART + part);
            known = fm_sum(known, resident.parts[part]);
        }
        resident.parts[FM_RESIDENT_REST] = fm_sum(resident.rss, known == INT64_MIN ? 0 : -known);
        if (resident.when < FM_RESIDENT_WHENS)
            fm_vec_push(&l->p->memory.residents, resident);
    }
    return true;
}

bool fm_load_reserves(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c) || l->table.width < 5)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        struct fm_reserve reserve = {
            .process = fm_loader_row_process(l, i),
            .when = fm_loader_cell32(l, i, 1),
            .library = fm_loader_string(l, fm_loader_cell(l, i, 2)),
            .reserved = fm_loader_signed(l, i, 3),
            .resident = fm_loader_signed(l, i, 4),
        };
        if (reserve.when < FM_RESIDENT_WHENS)
            fm_vec_push(&l->p->memory.reserves, reserve);
    }
    return true;
}
