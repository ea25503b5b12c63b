/*
 * A hash table from 64-bit keys to pointers, for inside a profiled process.
 *
 * Open addressing over pages from mmap: no malloc, so it is safe under a hooked allocator and at
 * any moment of the program. Key 0 is not allowed. No deletion but fm_agent_table_clear. Growing may
 * fail; then the insertion fails and the caller counts what it drops. Threads: the GIL protects it.
 */
#ifndef FM_AGENT_TABLE_H
#define FM_AGENT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h" /* fm_mix64, for whoever makes keys */

struct fm_agent_table_slot {
    uint64_t key;
    void *value;
};

struct fm_agent_table {
    struct fm_agent_table_slot *slots;
    size_t len, cap; /* cap is 0 or a power of two */
};

/* Where to look first: one multiplication, the high bits. Keys need not be random. */
static inline size_t fm_agent_table_home(const struct fm_agent_table *table, uint64_t key)
{
    return (size_t)(key * 0x9e3779b97f4a7c15ULL >> 32) & (table->cap - 1);
}

static inline void *fm_agent_table_find(const struct fm_agent_table *table, uint64_t key)
{
    if (!table->cap)
        return NULL;
    size_t mask = table->cap - 1;
    for (size_t i = fm_agent_table_home(table, key); table->slots[i].key; i = (i + 1) & mask)
        if (table->slots[i].key == key)
            return table->slots[i].value;
    return NULL;
}

/* Set the value of `key`, new or not. */
bool fm_agent_table_set(struct fm_agent_table *table, uint64_t key, void *value);
void fm_agent_table_release(struct fm_agent_table *table);

/* Memory for the agent's own small records: from mmap, never given back. NULL if there is none. */
void *fm_agent_alloc(size_t bytes);

#endif
