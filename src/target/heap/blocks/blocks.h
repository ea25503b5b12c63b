/*
 * Records of living blocks by address: an open hash table, deleted from by moving what follows back,
 * so that there are no tombstones and a table is as long as what lives in it asks for.
 *
 * A table has one user at a time: the Python world's has the GIL, of the C world's each has a lock.
 */
#ifndef FM_HEAP_BLOCKS_H
#define FM_HEAP_BLOCKS_H

#include "target/heap/heap.h"

struct fm_heap_block {
    uintptr_t address; /* 0: free */
    uint64_t record;   /* record.h, without slack */
    uint64_t bytes;
};

struct fm_heap_blocks {
    struct fm_heap_block *slots;
    size_t room, used; /* room: a power of two, or 0 */
};

static inline size_t fm_block_hash(uintptr_t address)
{
    return (size_t)((address >> 4) * 0x9e3779b97f4a7c15u >> 20);
}

/* False if there is no memory for it. What is known of its address is given back in `ret_old`, whose
 * record is 0 otherwise: that block ended behind our back. */
bool fm_blocks_put(struct fm_heap_blocks *table, struct fm_heap_block block,
                   struct fm_heap_block *ret_old);

/* Take a block out; its record is 0 if it is not known. */
static inline struct fm_heap_block fm_blocks_take(struct fm_heap_blocks *table, uintptr_t address);

/* Forget all of them. */
void fm_blocks_clear(struct fm_heap_blocks *table);

void fm_blocks_close_gap(struct fm_heap_blocks *table, size_t gap);

static inline struct fm_heap_block fm_blocks_take(struct fm_heap_blocks *table, uintptr_t address)
{
    if (FM_UNLIKELY(!table->room))
        return (struct fm_heap_block){ 0, 0, 0 };
    size_t mask = table->room - 1;
    for (size_t i = fm_block_hash(address) & mask; table->slots[i].address; i = (i + 1) & mask) {
        if (table->slots[i].address != address)
            continue;
        struct fm_heap_block block = table->slots[i];
        fm_blocks_close_gap(table, i);
        return block;
    }
    return (struct fm_heap_block){ 0, 0, 0 };
}

#endif
