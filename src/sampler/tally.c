/* Distinct stacks and waits; see tally.h. */
#include "sampler/tally.h"

#include <string.h>

#include "base/map.h"

static void release_round(struct fm_tally_round *round)
{
    fm_vec_release(&round->seen);
    fm_vec_release(&round->waits);
}

void fm_tally_release(struct fm_tally *t)
{
    fm_vec_release(&t->rows);
    fm_vec_release(&t->frames);
    fm_vec_release(&t->waits);
    release_round(&t->now);
    release_round(&t->before);
    free(t->row_index);
    free(t->wait_index);
    *t = (struct fm_tally){ 0 };
}

static uint64_t hash_frames(uint64_t seed, const struct fm_raw_frame *frames, uint32_t n)
{
    uint64_t hash = seed;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t word;
        memcpy(&word, &frames[i], sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return fm_mix64(hash);
}

static void grow_rows(struct fm_tally *t)
{
    size_t cap = t->row_cap ? t->row_cap * 2 : 1024;
    free(t->row_index);
    t->row_index = fm_calloc(cap, sizeof *t->row_index);
    t->row_cap = cap;
    for (size_t i = 0; i < t->rows.len; i++) {
        size_t slot = t->rows.data[i].hash & (cap - 1);
        while (t->row_index[slot])
            slot = (slot + 1) & (cap - 1);
        t->row_index[slot] = (uint32_t)i + 1;
    }
}

static bool is_row(const struct fm_tally *t, const struct fm_tally_row *row, const struct fm_tally_row *key,
                   const struct fm_raw_frame *frames)
{
    return row->hash == key->hash && row->n == key->n && row->thread == key->thread &&
           row->partial == key->partial &&
           (!key->n ||
            memcmp(t->frames.data + row->first, frames, key->n * sizeof *frames) == 0);
}

uint32_t fm_tally_row(struct fm_tally *t, uint32_t thread, const struct fm_raw_frame *frames,
                      uint32_t n, bool partial)
{
    struct fm_tally_row key = { .hash = hash_frames(((uint64_t)thread << 1 | partial) + 1, frames, n),
                                .n = n, .thread = thread, .partial = partial };
    if (t->rows.len * 2 >= t->row_cap)
        grow_rows(t);
    size_t slot = key.hash & (t->row_cap - 1);
    for (; t->row_index[slot]; slot = (slot + 1) & (t->row_cap - 1)) {
        uint32_t row = t->row_index[slot] - 1;
        if (is_row(t, &t->rows.data[row], &key, frames))
            return row;
    }
    key.first = (uint32_t)t->frames.len;
    fm_vec_reserve(&t->frames, t->frames.len + n);
    if (n)
        memcpy(t->frames.data + t->frames.len, frames, n * sizeof *frames);
    t->frames.len += n;
    fm_vec_push(&t->rows, key);
    t->row_index[slot] = (uint32_t)t->rows.len;
    return (uint32_t)t->rows.len - 1;
}

static void grow_waits(struct fm_tally *t)
{
    size_t cap = t->wait_cap ? t->wait_cap * 2 : 256;
    free(t->wait_index);
    t->wait_index = fm_calloc(cap, sizeof *t->wait_index);
    t->wait_cap = cap;
    for (size_t i = 0; i < t->waits.len; i++) {
        size_t slot = t->waits.data[i].hash & (cap - 1);
        while (t->wait_index[slot])
            slot = (slot + 1) & (cap - 1);
        t->wait_index[slot] = (uint32_t)i + 1;
    }
}

static uint64_t hash_wait(const struct fm_tally_wait *w)
{
    struct fm_raw_frame both[2] = { w->where, w->held_at };
    return hash_frames((uint64_t)w->detail << 32 ^ (uint64_t)w->holder << 8 ^ (uint64_t)w->state, both, 2);
}

static bool is_wait(const struct fm_tally_wait *a, const struct fm_tally_wait *b)
{
    return a->hash == b->hash && a->state == b->state && a->detail == b->detail &&
           a->holder == b->holder && memcmp(&a->where, &b->where, sizeof a->where) == 0 &&
           memcmp(&a->held_at, &b->held_at, sizeof a->held_at) == 0;
}

uint32_t fm_tally_wait(struct fm_tally *t, const struct fm_tally_wait *wait)
{
    struct fm_tally_wait key = *wait;
    key.hash = hash_wait(wait);
    key.samples = key.ns = 0;
    if (t->waits.len * 2 >= t->wait_cap)
        grow_waits(t);
    size_t slot = key.hash & (t->wait_cap - 1);
    for (; t->wait_index[slot]; slot = (slot + 1) & (t->wait_cap - 1)) {
        uint32_t row = t->wait_index[slot] - 1;
        if (is_wait(&t->waits.data[row], &key))
            return row;
    }
    fm_vec_push(&t->waits, key);
    t->wait_index[slot] = (uint32_t)t->waits.len;
    return (uint32_t)t->waits.len - 1;
}

void fm_tally_add(struct fm_tally *t, uint32_t row, enum fm_state state)
{
    t->rows.data[row].samples[state]++;
    fm_vec_push(&t->now.seen, ((struct fm_tally_seen){ row, state }));
}

void fm_tally_add_wait(struct fm_tally *t, uint32_t wait)
{
    t->waits.data[wait].samples++;
    fm_vec_push(&t->now.waits, wait);
}

static void give_time(struct fm_tally *t, const struct fm_tally_round *round, uint64_t ns)
{
    for (size_t i = 0; i < round->seen.len; i++)
        t->rows.data[round->seen.data[i].row].ns[round->seen.data[i].state] += ns;
    for (size_t i = 0; i < round->waits.len; i++)
        t->waits.data[round->waits.data[i]].ns += ns;
}

void fm_tally_end_round(struct fm_tally *t, uint64_t ns)
{
    struct fm_tally_round over = t->before;
    give_time(t, &t->before, ns / 2);
    give_time(t, &t->now, ns - ns / 2);
    t->before = t->now;
    t->now = over;
    t->now.seen.len = t->now.waits.len = 0;
}
