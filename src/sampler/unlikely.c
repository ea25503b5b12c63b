/* Unlikely calls; see unlikely.h. */
#include "sampler/unlikely.h"

#define ENOUGH 1000u /* samples of the place, and of the function, before anything is unlikely */
#define RARE   30u   /* one in so many of both */
#define ONCE   3u    /* … or hardly ever at all, wherever in the caller: */
#define NEVER  300u
#define HARDLY 10000u /* … if more than that */

static uint64_t site_key(const struct fm_raw_frame *caller)
{
    return fm_map_pair(caller->code, (uint32_t)caller->offset);
}

static uint64_t call_key(const struct fm_raw_frame *caller, const struct fm_raw_frame *callee)
{
    return fm_mix64(site_key(caller)) ^ callee->code;
}

/* Functions alone: the place in the caller may be as wrong as the call. */
static uint64_t pair_key(const struct fm_raw_frame *caller, const struct fm_raw_frame *callee)
{
    return fm_map_pair(caller->code, callee->code);
}

/* A recursion counts once per stack: else the call that begins it would look rare. */
static void add(struct fm_unlikely *u, struct fm_map *map, uint64_t key, uint32_t row, uint64_t samples)
{
    bool is_new;
    uint32_t index = *fm_map_at(map, key, (uint32_t)u->samples.len, &is_new);
    if (is_new) {
        fm_vec_push(&u->samples, 0);
        fm_vec_push(&u->last_rows, UINT32_MAX);
    }
    if (u->last_rows.data[index] == row)
        return;
    u->last_rows.data[index] = row;
    u->samples.data[index] += samples;
}

static uint64_t get(const struct fm_unlikely *u, const struct fm_map *map, uint64_t key)
{
    const uint32_t *index = fm_map_find(map, key);
    return index ? u->samples.data[*index] : 0;
}

void fm_unlikely_init(struct fm_unlikely *u, const struct fm_tally *tally)
{
    *u = (struct fm_unlikely){ .tally = tally };
    for (uint32_t i = 0; i < tally->rows.len; i++) {
        const struct fm_tally_row *row = &tally->rows.data[i];
        const struct fm_raw_frame *frames = row->n ? tally->frames.data + row->first : NULL;
        uint64_t samples = 0;
        for (int k = 0; k < FM_STATE_COUNT; k++)
            samples += row->samples[k];
        for (uint32_t k = 0; k + 1 < row->n; k++) {
            add(u, &u->sites, site_key(&frames[k + 1]), i, samples);
            add(u, &u->callees, frames[k].code, i, samples);
            add(u, &u->calls, call_key(&frames[k + 1], &frames[k]), i, samples);
            add(u, &u->callers, frames[k + 1].code, i, samples);
            add(u, &u->pairs, pair_key(&frames[k + 1], &frames[k]), i, samples);
        }
    }
}

void fm_unlikely_release(struct fm_unlikely *u)
{
    fm_map_release(&u->sites);
    fm_map_release(&u->callees);
    fm_map_release(&u->calls);
    fm_map_release(&u->callers);
    fm_map_release(&u->pairs);
    fm_vec_release(&u->samples);
    fm_vec_release(&u->last_rows);
}

static bool is_unlikely(const struct fm_unlikely *u, const struct fm_raw_frame *caller,
                        const struct fm_raw_frame *callee)
{
    uint64_t all = get(u, &u->callees, callee->code);
    uint64_t site = get(u, &u->sites, site_key(caller));
    uint64_t calls = get(u, &u->calls, call_key(caller, callee));
    if (site >= ENOUGH && all >= ENOUGH && calls * RARE < site && calls * RARE < all)
        return true;
    uint64_t pairs = get(u, &u->pairs, pair_key(caller, callee));
    uint64_t rare = pairs * (pairs <= ONCE ? NEVER : HARDLY);
    return rare < all && rare < get(u, &u->callers, caller->code);
}

/* The stack of a thread that was blocked has been read at leisure. */
static bool was_blocked(const struct fm_tally_row *row)
{
    for (int k = 0; k < FM_STATE_COUNT; k++) {
        if (row->samples[k] && !fm_state_is_running((enum fm_state)k) && k != FM_STATE_GIL)
            return true;
    }
    return false;
}

uint32_t fm_unlikely_cut(const struct fm_unlikely *u, const struct fm_tally_row *row)
{
    const struct fm_raw_frame *frames = row->n ? u->tally->frames.data + row->first : NULL;
    if (was_blocked(row))
        return 0;
    for (uint32_t k = row->n; k-- > 1;) { /* from the oldest call on */
        if (is_unlikely(u, &frames[k], &frames[k - 1]))
            return k;
    }
    return 0;
}
