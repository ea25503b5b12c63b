/* Distinct stacks and waits; see tally.h. */
#include "watch/sampler/tally.h"

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

static bool is_row(const struct fm_tally *t, const struct fm_tally_row *row,
                   const struct fm_tally_row *key, const struct fm_raw_frame *frames)
{
    return row->hash == key->hash && row->n == key->n && row->thread == key->thread &&
           row->partial == key->partial &&
           (!key->n || memcmp(t->frames.data + row->first, frames, key->n * sizeof *frames) == 0);
}

static bool is_full(const struct fm_tally *t, uint32_t n)
{
    return t->rows.len >= FM_TALLY_MAX_ROWS || t->frames.len + n > FM_TALLY_MAX_FRAMES;
}

uint32_t fm_tally_row(struct fm_tally *t, uint32_t thread, const struct fm_raw_frame *frames,
                      uint32_t n, bool partial)
{
    struct fm_tally_row key = { .hash =
                                    hash_frames(((uint64_t)thread << 1 | partial) + 1, frames, n),
                                .n = n,
                                .thread = thread,
                                .partial = partial };
    if (t->rows.len * 2 >= t->row_cap)
        grow_rows(t);
    size_t slot = key.hash & (t->row_cap - 1);
    for (; t->row_index[slot]; slot = (slot + 1) & (t->row_cap - 1)) {
        uint32_t row = t->row_index[slot] - 1;
        if (is_row(t, &t->rows.data[row], &key, frames))
            return row;
    }
    if (n && is_full(t, n))
        return fm_tally_row(t, thread, NULL, 0, true);
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
    return hash_frames((uint64_t)w->detail << 32 ^ (uint64_t)w->holder << 8 ^ (uint64_t)w->state,
                       both, 2);
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

uint64_t fm_tally_end_round(struct fm_tally *t, uint64_t ns, uint64_t most_ns)
{
    struct fm_tally_round over = t->before;
    uint64_t seen_ns = ns < most_ns ? ns : most_ns;
    give_time(t, &t->before, seen_ns / 2);
    give_time(t, &t->now, seen_ns - seen_ns / 2);
    t->before = t->now;
    t->now = over;
    t->now.seen.len = t->now.waits.len = 0;
    return ns - seen_ns;
}

static const struct fm_raw_frame *frames_of(const struct fm_tally *t,
                                            const struct fm_tally_row *row)
{
    return row->n ? t->frames.data + row->first : NULL;
}

void fm_tally_add_all(struct fm_tally *t, const struct fm_tally *other,
                      uint32_t (*thread)(void *, uint32_t), uint32_t (*detail)(void *, uint32_t),
                      void *data, uint32_t *rows)
{
    for (size_t i = 0; i < other->rows.len; i++) {
        const struct fm_tally_row *row = &other->rows.data[i];
        uint32_t at = UINT32_MAX;
        for (int k = 0; k < FM_STATE_COUNT; k++) {
            if (!row->samples[k] && !row->ns[k])
                continue;
            if (at == UINT32_MAX)
                at = fm_tally_row(t, thread(data, row->thread), frames_of(other, row), row->n,
                                  row->partial);
            t->rows.data[at].samples[k] += row->samples[k];
            t->rows.data[at].ns[k] += row->ns[k];
        }
        if (rows)
            rows[i] = at;
    }
    for (size_t i = 0; i < other->waits.len; i++) {
        struct fm_tally_wait wait = other->waits.data[i];
        if (wait.detail == FM_TALLY_HOLDER)
            wait.holder = thread(data, wait.holder);
        else
            wait.detail = detail(data, wait.detail);
        if (!wait.samples && !wait.ns)
            continue;
        uint32_t at = fm_tally_wait(t, &wait); /* may move them */
        t->waits.data[at].samples += wait.samples;
        t->waits.data[at].ns += wait.ns;
    }
}

/* The row of `old` in `t`. */
static uint32_t row_again(struct fm_tally *t, const struct fm_tally *old, uint32_t number)
{
    const struct fm_tally_row *row = &old->rows.data[number];
    return fm_tally_row(t, row->thread, frames_of(old, row), row->n, row->partial);
}

struct fm_tally fm_tally_take(struct fm_tally *t, uint32_t **rows, size_t n, uint32_t **waits,
                              size_t m)
{
    struct fm_tally old = *t;
    *t = (struct fm_tally){ .before = old.before, .now = old.now };
    old.before = old.now = (struct fm_tally_round){ 0 };
    for (size_t i = 0; i < t->before.seen.len; i++)
        t->before.seen.data[i].row = row_again(t, &old, t->before.seen.data[i].row);
    for (size_t i = 0; i < t->before.waits.len; i++)
        t->before.waits.data[i] = fm_tally_wait(t, &old.waits.data[t->before.waits.data[i]]);
    for (size_t i = 0; i < n; i++)
        *rows[i] = *rows[i] < old.rows.len ? row_again(t, &old, *rows[i]) : *rows[i];
    for (size_t i = 0; i < m; i++)
        *waits[i] =
            *waits[i] < old.waits.len ? fm_tally_wait(t, &old.waits.data[*waits[i]]) : *waits[i];
    return old;
}
