/* Addresses whose end we must hear of; see watched.h. */
#include "target/heap/contexts/watched.h"

#include "target/heap/contexts/codes.h"
#include "target/heap/contexts/context.h"

uint64_t fm_watched[1 << (FM_WATCHED_BITS - 6)];

void fm_watched_ends(const void *block)
{
    if (!fm_heap.has_layout)
        return;
    const char *object = (const char *)block + fm_heap.layout.gc_head;
    if (!fm_context_forget(block) && (fm_codes_forget(block) || fm_codes_forget(object)))
        __atomic_add_fetch(&fm_heap.era, 1, __ATOMIC_RELAXED);
}
