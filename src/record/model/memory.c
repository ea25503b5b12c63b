/* What is known of memory beside the contexts; see memory.h. */
#include "record/model/memory.h"

#include <stdlib.h>

void fm_memory_release(struct fm_memory *memory)
{
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
