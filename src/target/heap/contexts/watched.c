/* Addresses whose end we must hear of; see watched.h. */
#include "target/heap/contexts/watched.h"

#include "target/heap/contexts/codes.h"
#include "target/heap/contexts/context.h"

uint64_t fm_watched[1 << (FM_WATCHED_BITS - 6)];
uintptr_t fm_watched_vain[FM_WATCHED_VAIN];

void fm_watched_ends(const void *block)
{
    if (!fm_heap.has_layout)
        return;
    const char *object = (const char *)block + fm_heap.layout.gc_head;
    if (fm_context_forget(block))
        return;
    if (fm_codes_forget(block) || fm_codes_forget(object))
        __atomic_add_fetch(&fm_heap.era, 1, __ATOMIC_RELAXED);
    else
        __atomic_store_n(fm_watched_vain_at(block), (uintptr_t)block, __ATOMIC_RELAXED);
}
