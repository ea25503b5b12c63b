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

/* Room for one more, or not. */
bool fm_blocks_grow(struct fm_heap_blocks *table);

/* The slot of an address, or the free one that it would have. There is always a free one. */
static inline size_t fm_blocks_slot(const struct fm_heap_blocks *table, uintptr_t address)
{
    size_t mask = table->room - 1, i = fm_block_hash(address) & mask;
    while (table->slots[i].address && table->slots[i].address != address)
        i = (i + 1) & mask;
    return i;
}

/* False if there is no memory for it. What is known of its address is given back in `ret_old`, whose
 * record is 0 otherwise: that block ended behind our back. Numbers, not a struct: a struct would be
 * written to the stack by words and read from there by pairs, which processors wait for. */
static inline bool fm_blocks_put(struct fm_heap_blocks *table, uintptr_t address, uint64_t record,
                                 uint64_t bytes, struct fm_heap_block *ret_old)
{
    ret_old->record = 0;
    if (FM_UNLIKELY(table->used + 1 > table->room / 4 * 3) && !fm_blocks_grow(table))
        return false;
    struct fm_heap_block *slot = &table->slots[fm_blocks_slot(table, address)];
    if (FM_UNLIKELY(slot->address != 0))
        *ret_old = *slot;
    else
        table->used++;
    slot->address = address;
    slot->record = record;
    slot->bytes = bytes;
    return true;
}

/* Forget all of them. */
void fm_blocks_clear(struct fm_heap_blocks *table);

void fm_blocks_close_gap(struct fm_heap_blocks *table, size_t gap);

/* Take a block out; its record is 0 if it is not known. */
static inline struct fm_heap_block fm_blocks_take(struct fm_heap_blocks *table, uintptr_t address)
{
    if (FM_UNLIKELY(!table->room))
        return (struct fm_heap_block){ 0, 0, 0 };
    size_t i = fm_blocks_slot(table, address);
    struct fm_heap_block block = table->slots[i];
    if (FM_UNLIKELY(!block.address))
        return (struct fm_heap_block){ 0, 0, 0 };
    if (FM_LIKELY(!table->slots[(i + 1) & (table->room - 1)].address)) {
        table->slots[i].address = 0;
        table->used--;
    } else {
        fm_blocks_close_gap(table, i);
    }
    return block;
}

#endif
