/*
 * Old ids to new ids, for readers whose input may have gaps.
 *
 * Ids of an input are mapped in increasing order; stretches that stay side by side in both
 * numberings are one run, so an undamaged input of any size costs one run. Nothing is allocated by
 * the value of an id, only by the number of ids that were really there: an input cannot ask for
 * memory.
 */
#ifndef FM_MODEL_RENUMBER_H
#define FM_MODEL_RENUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct fm_renumber_run {
    uint32_t from, to, count;
};

struct fm_renumber {
    FM_VEC(struct fm_renumber_run) runs;
};

/* Map `from` to `to`. False, and nothing done, unless `from` is above every id mapped so far. */
static inline bool fm_renumber_add(struct fm_renumber *r, uint32_t from, uint32_t to)
{
    if (r->runs.len) {
        struct fm_renumber_run *last = &r->runs.data[r->runs.len - 1];
        if (from < last->from || from - last->from < last->count)
            return false;
        if (from - last->from == last->count && to == last->to + last->count) {
            last->count++;
            return true;
        }
    }
    fm_vec_push(&r->runs, ((struct fm_renumber_run){ from, to, 1 }));
    return true;
}

/* The new id, or UINT32_MAX (FM_NONE) if there is none. */
static inline uint32_t fm_renumber_get(const struct fm_renumber *r, uint32_t from)
{
    size_t low = 0, high = r->runs.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct fm_renumber_run *run = &r->runs.data[middle];
        if (from < run->from)
            high = middle;
        else if (from - run->from >= run->count)
            low = middle + 1;
        else
            return run->to + (from - run->from);
    }
    return UINT32_MAX;
}

static inline void fm_renumber_release(struct fm_renumber *r)
{
    fm_vec_release(&r->runs);
}

#endif
