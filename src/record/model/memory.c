/* What is known of memory beside the contexts; see memory.h. */
#include "record/model/memory.h"

#include <stdlib.h>

void fm_memory_release(struct fm_memory *memory)
{
    fm_vec_release(&memory->counts);
    fm_vec_release(&memory->points);
    fm_vec_release(&memory->marks);
}
