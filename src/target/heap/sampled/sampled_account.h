/*
 * Counting blocks of which only some are known: estimates, how far they may be off, and the peak.
 *
 * A block of s bytes is met by at least one of the points that lie at random along all bytes that are
 * allocated, one per `interval` on average, with the chance p = 1 - e^(-s/interval). It then stands for
 * s/p bytes and 1/p blocks, so that what an account has is right on average; and w(w - s), with w = s/p,
 * summed up over its blocks, is the expected square of its error.
 *
 * Two halves. The highest value of a sum that is uncertain is too high: it is the highest of the truth
 * and of chance. So each point belongs to one of two halves at random, which know nothing of each
 * other. A half has points every 2 intervals and counts half of what that means, so that the sum of
 * both is an estimate at any instant. Large blocks are in both. Each half finds an instant of its peak.
 * What the *other* half has then is free of that bias, but too low where the memory of a program goes
 * up and down by as much as chance does, so that the instant is missed; what a half has at its own peak
 * is too high where it does not. So the estimate is three quarters of what each has at the other one's
 * peak and a quarter of what it has at its own; tests/unit/test_sampled.c says how good that is.
 *
 * The account of a half in a node is that of the world of the same number: sampled blocks know no worlds.
 * Accounts note `at` in the epochs of the other half, and `own_at` in those of their own (see account.h
 * for epochs). An epoch begins with the first block of either half that ends after the peak.
 *
 * All of it is behind one lock (sampled.c).
 */
#ifndef FM_HEAP_SAMPLED_ACCOUNT_H
#define FM_HEAP_SAMPLED_ACCOUNT_H

#include <stdbool.h>

#include "record/capture/live_heap.h"
#include "target/heap/sampled/chance.h"

#define FM_SAMPLED_DICE 64 /* sides */

/* The halves, a bit each, that a block is of: it was met first after `before` of its bytes, and the other
 * half may have met the rest. */
static inline uint32_t fm_sampled_halves(uint64_t *random, uint64_t before, uint64_t bytes,
                                         uint64_t interval)
{
    uint32_t first = 1 + (uint32_t)(fm_chance_next(random) >> 63);
    uint64_t none = fm_chance_of_none(bytes - before, 2 * interval);
    return fm_chance_next(random) > none ? 3 : first;
}

/* What a block means for the account of a half. */
struct fm_sampled_weight {
    int64_t bytes;
    int32_t blocks;
    uint64_t variance; /* in squares of FM_HEAP_VARIANCE_BYTES */
};

/* The block as it is known to a half. `dice` is what it drew when it began: of 1.3 blocks it makes two
 * in three of ten cases. */
static inline struct fm_sampled_weight fm_sampled_weigh(uint64_t bytes, uint64_t interval, int half,
                                                        uint32_t dice)
{
    uint64_t hit = 0 - fm_chance_of_none(bytes, 2 * interval); /* 0: it is certain */
    unsigned __int128 whole = (unsigned __int128)1 << 64, chance = hit ? hit : whole;
    uint64_t weight = hit ? (uint64_t)(((unsigned __int128)bytes << 64) / chance) : bytes;
    uint64_t parts = (uint64_t)(whole * FM_SAMPLED_DICE / chance); /* of a block */
    uint32_t luck = half ? FM_SAMPLED_DICE - 1 - dice : dice;
    unsigned __int128 square = (unsigned __int128)weight * (weight - bytes) / 4;
    return (struct fm_sampled_weight){
        .bytes = (int64_t)((weight + (uint64_t)half) / 2),
        .blocks = (int32_t)((parts / 2 + luck) / FM_SAMPLED_DICE),
        .variance = (uint64_t)(square / (FM_HEAP_VARIANCE_BYTES * FM_HEAP_VARIANCE_BYTES)),
    };
}

/* One account of one half, and what it is part of. */
struct fm_sampled_account {
    struct fm_heap_header *header;
    struct fm_heap_account *account;
    struct fm_heap_error *error;
    int half;
};

static inline void fm_sampled_touch(const struct fm_sampled_account *s)
{
    uint32_t epoch = s->header->halves[!s->half].epoch, own = s->header->halves[s->half].epoch;
    if (s->account->epoch != epoch) {
        s->account->at = s->account->live;
        s->account->at_blocks = s->account->live_blocks;
        s->error->at = s->error->live;
        s->account->epoch = epoch;
    }
    if (s->error->own_epoch != own) {
        s->error->own_at = s->account->live;
        s->error->own_at_blocks = s->account->live_blocks;
        s->error->own_at_error = s->error->live;
        s->error->own_epoch = own;
    }
}

static inline void fm_sampled_begin(const struct fm_sampled_account *s, struct fm_sampled_weight w)
{
    struct fm_heap_counters *all = &s->header->worlds[s->half];
    struct fm_heap_half *half = &s->header->halves[s->half];
    fm_sampled_touch(s);
    s->account->live += w.bytes;
    s->account->live_blocks += w.blocks;
    s->account->allocated += (uint64_t)w.bytes;
    s->account->blocks += (uint64_t)w.blocks;
    s->error->live += w.variance;
    s->error->allocated += w.variance;
    half->variance += w.variance;
    all->live_blocks += w.blocks;
    __atomic_store_n(&all->live, all->live + w.bytes, __ATOMIC_RELAXED);
    if (all->live > half->peak) {
        half->peak = all->live;
        half->rising = 1;
    }
}

/* Before any account of a block that ends is changed, once for the block. */
static inline void fm_sampled_fall(struct fm_heap_header *header)
{
    for (int i = 0; i < FM_HEAP_WORLDS; i++)
        if (header->halves[i].rising) {
            header->halves[i].rising = 0;
            header->halves[i].epoch++;
        }
}

static inline void fm_sampled_end(const struct fm_sampled_account *s, struct fm_sampled_weight w)
{
    struct fm_heap_counters *all = &s->header->worlds[s->half];
    fm_sampled_touch(s);
    s->account->live -= w.bytes;
    s->account->live_blocks -= w.blocks;
    s->error->live -= w.variance;
    s->header->halves[s->half].variance -= w.variance;
    all->live_blocks -= w.blocks;
    __atomic_store_n(&all->live, all->live - w.bytes, __ATOMIC_RELAXED);
}

static inline void fm_sampled_was_temporary(const struct fm_sampled_account *s,
                                            struct fm_sampled_weight w)
{
    s->account->temporary += (uint64_t)w.bytes;
    s->account->temporary_blocks += (uint32_t)w.blocks;
    s->error->temporary += w.variance;
}

#endif
