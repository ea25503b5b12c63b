/* A hash map from 64-bit keys to 32-bit values; see map.h. */
#include "base/map.h"

#include "base/memory.h"

static struct fm_map_slot *find_slot(const struct fm_map *map, uint64_t key)
{
    size_t i = (size_t)fm_mix64(key) & (map->cap - 1);
    while (map->slots[i].used && map->slots[i].key != key)
        i = (i + 1) & (map->cap - 1);
    return &map->slots[i];
}

static void grow(struct fm_map *map)
{
    struct fm_map old = *map;
    map->cap = old.cap ? old.cap * 2 : 64;
    map->slots = fm_calloc(map->cap, sizeof *map->slots);
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i].used)
            *find_slot(map, old.slots[i].key) = old.slots[i];
    free(old.slots);
}

uint32_t *fm_map_at(struct fm_map *map, uint64_t key, uint32_t fresh, bool *is_new)
{
    if (map->len * 4 >= map->cap * 3)
        grow(map);
    struct fm_map_slot *slot = find_slot(map, key);
    if (is_new)
        *is_new = !slot->used;
    if (!slot->used) {
        *slot = (struct fm_map_slot){ key, fresh, 1 };
        map->len++;
    }
    return &slot->value;
}

const uint32_t *fm_map_find(const struct fm_map *map, uint64_t key)
{
    if (!map->cap)
        return NULL;
    struct fm_map_slot *slot = find_slot(map, key);
    return slot->used ? &slot->value : NULL;
}

void fm_map_release(struct fm_map *map)
{
    free(map->slots);
    *map = (struct fm_map){ 0 };
}
