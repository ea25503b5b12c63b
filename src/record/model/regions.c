/* Regions of a program; see regions.h. */
#include "record/model/regions.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "record/model/profile.h"

void fm_regions_release(struct fm_regions *regions)
{
    fm_vec_release(&regions->rows);
}

void fm_region_combine(struct fm_region_row *to, const struct fm_region_row *from)
{
    to->entered = fm_sum(to->entered, from->entered);
    to->open = fm_sum(to->open, from->open);
    to->ns = fm_sum(to->ns, from->ns);
    to->suspended_ns = fm_sum(to->suspended_ns, from->suspended_ns);
    to->cpu_ns = fm_sum(to->cpu_ns, from->cpu_ns);
    if (from->min_ns && (!to->min_ns || from->min_ns < to->min_ns))
        to->min_ns = from->min_ns;
    if (from->max_ns > to->max_ns)
        to->max_ns = from->max_ns;
    to->memory = to->memory || from->memory;
    to->allocated = fm_sum(to->allocated, from->allocated);
    to->freed = fm_sum(to->freed, from->freed);
    if (from->above_most > to->above_most)
        to->above_most = from->above_most;
}

/* Rows of one name inside of the same region become one; `place` has where each went, or FM_NONE. */
static struct fm_regions by_name(const struct fm_profile *p, uint32_t process, uint32_t *place)
{
    struct fm_regions all = { 0 };
    struct fm_map known = { 0 };
    for (size_t i = 0; i < p->regions.rows.len; i++) {
        struct fm_region_row row = p->regions.rows.data[i];
        place[i] = FM_NONE;
        if (process != FM_NONE && row.process != process)
            continue;
        row.around = row.around < i ? place[row.around] : FM_NONE;
        bool is_new;
        uint32_t *at =
            fm_map_at(&known, fm_map_pair(row.around, row.name), (uint32_t)all.rows.len, &is_new);
        place[i] = *at;
        if (is_new)
            fm_vec_push(&all.rows, row);
        else
            fm_region_combine(&all.rows.data[*at], &row);
    }
    fm_map_release(&known);
    return all;
}

/* The rows in order: the first inside of each, then the next beside it. Neither needs a stack. */
struct fm_regions fm_regions_combined(const struct fm_profile *p, uint32_t process)
{
    fm_autofree uint32_t *place = fm_malloc((p->regions.rows.len + 1) * sizeof *place);
    struct fm_regions all = by_name(p, process, place), ordered = { 0 };
    size_t n = all.rows.len;
    fm_autofree uint32_t *first = fm_malloc((n + 1) * sizeof *first);
    fm_autofree uint32_t *next = fm_malloc((n + 1) * sizeof *next);
    fm_autofree uint32_t *moved = fm_malloc((n + 1) * sizeof *moved);
    memset(first, 0xff, (n + 1) * sizeof *first); /* first[n]: of those inside of none */
    for (size_t i = n; i-- > 0;) {
        uint32_t around = all.rows.data[i].around;
        uint32_t *list = &first[around == FM_NONE ? n : around];
        next[i] = *list;
        *list = (uint32_t)i;
    }
    for (uint32_t at = first[n]; at != FM_NONE;) {
        struct fm_region_row row = all.rows.data[at];
        row.around = row.around == FM_NONE ? FM_NONE : moved[row.around];
        moved[at] = (uint32_t)ordered.rows.len;
        fm_vec_push(&ordered.rows, row);
        uint32_t up = at;
        at = first[at];
        while (at == FM_NONE && up != FM_NONE) {
            at = next[up];
            up = all.rows.data[up].around;
        }
    }
    fm_regions_release(&all);
    return ordered;
}
