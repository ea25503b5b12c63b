/* Whose addresses are whose; see ranges.h. */
#include "target/heap/blocks/ranges.h"

#include "target/heap/blocks/blocks.h"
#include "target/heap/store.h"

/* The list is kept here, and copied to the store as it changes: a child of fork has another store. */
static struct {
    struct fm_heap_range *all;
    size_t room;
    uint32_t count;
    uint32_t unused;              /* the first free one + 1; its `by` is the next */
    struct fm_heap_blocks starts; /* by address: `bytes` is the number */
    fm_heap_lock lock;
} ranges;

static bool grow(void)
{
    struct fm_heap_range *all =
        fm_heap_enlarged(ranges.all, ranges.count, &ranges.room, sizeof *all);
    ranges.all = all ? all : ranges.all;
    return all;
}

static bool take_number(uint32_t *ret_number)
{
    if (ranges.unused) {
        *ret_number = ranges.unused - 1;
        ranges.unused = (uint32_t)ranges.all[*ret_number].by;
        return true;
    }
    if (ranges.count == ranges.room && !grow())
        return false;
    *ret_number = ranges.count++;
    return true;
}

static void give_number(uint32_t number)
{
    ranges.all[number] = (struct fm_heap_range){ .by = ranges.unused };
    ranges.unused = number + 1;
    fm_heap_store_range(number, &(struct fm_heap_range){ 0 });
}

void fm_ranges_add(enum fm_heap_range_kind kind, uintptr_t start, size_t bytes, uint64_t by)
{
    struct fm_heap_block old;
    uint32_t number;
    if (!fm_heap_is_here())
        return;
    fm_heap_lock_take(&ranges.lock);
    if (take_number(&number)) {
        struct fm_heap_range range = { start, bytes, by, kind, 0 };
        ranges.all[number] = range;
        if (fm_blocks_put(&ranges.starts, start, 1, number, &old)) {
            fm_heap_store_range(number, &range);
            if (old.record)
                give_number((uint32_t)old.bytes);
        } else {
            give_number(number);
        }
    }
    fm_heap_lock_give(&ranges.lock);
}

void fm_ranges_remove(uintptr_t start)
{
    if (!fm_heap_is_here())
        return;
    fm_heap_lock_take(&ranges.lock);
    struct fm_heap_block found = fm_blocks_take(&ranges.starts, start);
    if (found.record)
        give_number((uint32_t)found.bytes);
    fm_heap_lock_give(&ranges.lock);
}

void fm_ranges_retell(void)
{
    fm_heap_lock_take(&ranges.lock);
    for (uint32_t i = 0; i < ranges.count; i++)
        if (ranges.all[i].start)
            fm_heap_store_range(i, &ranges.all[i]);
    fm_heap_lock_give(&ranges.lock);
}

void fm_ranges_clear(void)
{
    fm_heap_lock_take(&ranges.lock);
    fm_blocks_clear(&ranges.starts);
    ranges.count = ranges.unused = 0;
    fm_heap_lock_give(&ranges.lock);
}

void fm_ranges_hold(void)
{
    fm_heap_lock_take(&ranges.lock);
}

void fm_ranges_release(void)
{
    fm_heap_lock_give(&ranges.lock);
}
