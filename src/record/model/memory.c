/* What is known of memory beside the contexts; see memory.h. */
#include "record/model/memory.h"

#include <stdlib.h>

void fm_memory_release(struct fm_memory *memory)
{
    fm_vec_release(&memory->residents);
    fm_vec_release(&memory->reserves);
    fm_vec_release(&memory->counts);
    fm_vec_release(&memory->points);
    fm_vec_release(&memory->marks);
    fm_memory_forget_histories(memory);
}

void fm_memory_forget_histories(struct fm_memory *memory)
{
    for (size_t i = 0; i < memory->histories.len; i++)
        fm_history_release(&memory->histories.data[i]);
    fm_vec_release(&memory->histories);
}

const char *fm_resident_title(enum fm_resident_part part)
{
    static const char *const titles[FM_RESIDENT_PARTS] = {
#define X(name, key, title) title,
        FM_RESIDENT_LIST(X)
#undef X
    };
    return titles[part];
}

const char *fm_resident_key(enum fm_resident_part part)
{
    static const char *const keys[FM_RESIDENT_PARTS] = {
#define X(name, key, title) key,
        FM_RESIDENT_LIST(X)
#undef X
    };
    return keys[part];
}
