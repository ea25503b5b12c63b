/* Fuzzes the reader of heap stores. The input is the store as it is, and once more its ".more" file: a
 * piece may be of either. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "../unit/heap_store.h"
#include "base/error.h"
#include "base/memory.h"
#include "record/capture/live_heap.h"
#include "record/model/flat.h"
#include "record/model/live_heap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fm_error err = FM_ERROR_INIT;
    struct fm_profile *p = fm_profile_new();
    struct fm_live_ending ending = { { 9000, 9000 }, 8000, 0 };
    struct fm_heap_run run = { .members = 2, .epoch = 3, .peak = 9000 };
    struct fm_heap_files files = { data, size, data, size };
    if (fm_live_heap_load(p, &files, &run, &ending, &err) && !err.text[0])
        abort(); /* a refusal must say why */
    fm_flat_free(fm_flat_new(p, NULL));
    for (size_t i = 0; i < p->nodes.len; i++)
        if (p->nodes.data[i].parent != FM_NONE && p->nodes.data[i].parent >= i)
            abort();
    fm_profile_free(p);
    return 0;
}

/* As a process leaves it, and one that is a child's. */
bool fuzz_seed(unsigned n, struct fm_buffer *out)
{
    hs_sample(out);
    if (n == 1)
        ((struct fm_heap_header *)out->data)->flags |= FM_HEAP_FORKED;
    return n < 2;
}
