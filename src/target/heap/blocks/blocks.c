/* Records of blocks by address; see blocks.h. */
#include "target/heap/blocks/blocks.h"

#define FIRST_ROOM 256

void fm_blocks_close_gap(struct fm_heap_blocks *table, size_t gap)
{
    size_t mask = table->room - 1;
    for (size_t i = (gap + 1) & mask; table->slots[i].address; i = (i + 1) & mask) {
        size_t home = fm_block_hash(table->slots[i].address) & mask;
        /* May it go to the gap: is its home not between the gap and here? */
        if (((i - home) & mask) >= ((i - gap) & mask)) {
            table->slots[gap] = table->slots[i];
            gap = i;
        }
    }
    table->slots[gap].address = 0;
    table->used--;
}

static bool enlarge(struct fm_heap_blocks *table)
{
    size_t room = table->room ? table->room * 2 : FIRST_ROOM;
    struct fm_heap_block *slots = fm_heap_map(room * sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < table->room; i++) {
        if (!table->slots[i].address)
            continue;
        size_t at = fm_block_hash(table->slots[i].address) & (room - 1);
        while (slots[at].address)
            at = (at + 1) & (room - 1);
        slots[at] = table->slots[i];
    }
    if (table->room)
        fm_heap_unmap(table->slots, table->room * sizeof *slots);
    table->slots = slots;
    table->room = room;
    return true;
}

bool fm_blocks_grow(struct fm_heap_blocks *table)
{
    return enlarge(table) || table->used + 1 < table->room;
}

void fm_blocks_clear(struct fm_heap_blocks *table)
{
    if (table->room)
        fm_heap_unmap(table->slots, table->room * sizeof *table->slots);
    *table = (struct fm_heap_blocks){ 0 };
}
