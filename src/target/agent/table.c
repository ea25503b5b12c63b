/* A hash table for inside a profiled process; see table.h. */
#include "target/agent/table.h"

#include <sys/mman.h>

#define FIRST_CAP  256 /* slots: one page */
#define SLAB_BYTES ((size_t)64 * 1024)

static void *pages(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static struct fm_agent_table_slot *place_of(const struct fm_agent_table *table, uint64_t key)
{
    size_t mask = table->cap - 1;
    size_t i = fm_agent_table_home(table, key);
    while (table->slots[i].key && table->slots[i].key != key)
        i = (i + 1) & mask;
    return &table->slots[i];
}

static bool grow(struct fm_agent_table *table)
{
    struct fm_agent_table larger = { .cap = table->cap ? table->cap * 2 : FIRST_CAP };
    larger.slots = pages(larger.cap * sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < table->cap; i++)
        if (table->slots[i].key)
            *place_of(&larger, table->slots[i].key) = table->slots[i];
    larger.len = table->len;
    fm_agent_table_release(table);
    *table = larger;
    return true;
}

bool fm_agent_table_set(struct fm_agent_table *table, uint64_t key, void *value)
{
    if (table->len * 2 >= table->cap && !grow(table))
        return false;
    struct fm_agent_table_slot *slot = place_of(table, key);
    if (!slot->key)
        table->len++;
    *slot = (struct fm_agent_table_slot){ key, value };
    return true;
}

void fm_agent_table_release(struct fm_agent_table *table)
{
    if (table->slots)
        munmap(table->slots, table->cap * sizeof *table->slots);
    *table = (struct fm_agent_table){ 0 };
}

void *fm_agent_alloc(size_t bytes)
{
    static char *slab, *slab_end;
    bytes = (bytes + 15) & ~(size_t)15;
    if (bytes > SLAB_BYTES / 4)
        return pages(bytes);
    if ((size_t)(slab_end - slab) < bytes) {
        slab = pages(SLAB_BYTES);
        if (!slab) {
            slab_end = NULL;
            return NULL;
        }
        slab_end = slab + SLAB_BYTES;
    }
    void *p = slab;
    slab += bytes;
    return p;
}
