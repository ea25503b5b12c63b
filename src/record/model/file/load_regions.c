/* Reads the block of a .fathom file that is about regions; see loader.h and docs/format.md. */
#include "record/capture/format.h"
#include "record/model/file/loader.h"

/* A row that names no row before it is of the outermost. */
static uint32_t around_of(struct fm_loader *l, uint32_t row)
{
    uint64_t around = fm_loader_cell(l, row, 1);
    uint32_t known = around ? fm_loader_id(&l->regions, around - 1) : FM_NONE;
    l->lost_nodes += around && known == FM_NONE;
    return known;
}

bool fm_load_regions(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c) || l->table.width < 4 || !fm_loader_is_new(l, &l->regions))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        struct fm_region_row row = {
            .process = fm_loader_row_process(l, i),
            .around = around_of(l, i),
            .name = fm_loader_string(l, fm_loader_cell(l, i, 2)),
            .entered = fm_loader_signed(l, i, 3),
            .open = fm_loader_signed(l, i, 4),
            .ns = fm_loader_signed(l, i, 5),
            .suspended_ns = fm_loader_signed(l, i, 6),
            .min_ns = fm_loader_signed(l, i, 7),
            .max_ns = fm_loader_signed(l, i, 8),
            .memory = fm_loader_cell(l, i, 9) != 0,
            .allocated = fm_loader_signed(l, i, 10),
            .freed = fm_loader_signed(l, i, 11),
            .above_most = fm_loader_signed(l, i, 12),
            .cpu_ns = fm_loader_signed(l, i, 13),
        };
        uint64_t id = l->table.first + i;
        if (id >= FM_NONE ||
            !fm_renumber_add(&l->regions, (uint32_t)id, (uint32_t)l->p->regions.rows.len))
            return false;
        fm_vec_push(&l->p->regions.rows, row);
    }
    return true;
}
