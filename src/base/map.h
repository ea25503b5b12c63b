/*
 * A hash map from 64-bit keys to 32-bit values, for the tool: open addressing, linear probing.
 * Keys are opaque numbers (ids, packed pairs of ids). There is no deletion. A zeroed map is empty.
 */
#ifndef FM_BASE_MAP_H
#define FM_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fm_map_slot {
    uint64_t key;
    uint32_t value;
    uint32_t used;
};

struct fm_map {
    struct fm_map_slot *slots;
    size_t len, cap; /* cap is 0 or a power of two */
};

/* The value of `key`, which is first set to `fresh` if the key is new (`*is_new` says so, may be
 * NULL). The pointer is valid until the next call that may insert. */
uint32_t *fm_map_at(struct fm_map *map, uint64_t key, uint32_t fresh, bool *is_new);

/* The value of `key`, or NULL. */
const uint32_t *fm_map_find(const struct fm_map *map, uint64_t key);

void fm_map_release(struct fm_map *map);

static inline uint64_t fm_map_pair(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

/* A good mixer of 64 bits (the finaliser of MurmurHash3), for hash tables everywhere. */
static inline uint64_t fm_mix64(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdULL;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ULL;
    x ^= x >> 33;
    return x;
}

#endif
