/* Fuzzes the reader of heap stores. The input is slices of it, then the store as it is, which is once more its
 * ".more" file: a piece may be of either. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "../unit/heap_store.h"
#include "base/error.h"
#include "base/memory.h"
#include "record/capture/live_heap.h"
#include "record/capture/live_slices.h"
#include "record/model/derive/flat.h"
#include "record/model/live/live_heap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fm_error err = FM_ERROR_INIT;
    struct fm_profile *p = fm_profile_new();
    struct fm_live_ending ending = { { 9000, 9000 }, 8000, 0 };
    struct fm_heap_run run = { .members = 2, .epoch = 3, .peak = 9000 };
    /* As many bytes as the first one says, four times, are slices. */
    size_t slices = size ? data[0] * 4u : 0;
    slices = slices < size ? slices : size;
    const uint8_t *store = data + slices;
    size -= slices;
    struct fm_heap_files files = { store, size, store, size, data, slices };
    struct fm_slices_header head = { FM_SLICES_MAGIC, FM_SLICES_VERSION, 0 };
    fm_autobuffer behind = FM_BUFFER_INIT;
    if (slices > sizeof head) { /* of the right kind, so that they are read at all */
        fm_buffer_add(&behind, &head, sizeof head);
        fm_buffer_add(&behind, data + sizeof head, slices - sizeof head);
        files.slices = behind.data;
    }
    if (fm_live_heap_load(p, &files, &run, &ending, &err) && !err.text[0])
        abort(); /* a refusal must say why */
    fm_flat_free(fm_flat_new(p, NULL));
    for (size_t i = 0; i < p->nodes.len; i++)
        if (p->nodes.data[i].parent != FM_NONE && p->nodes.data[i].parent >= i)
            abort();
    struct fm_moment half = { true, 50 };
    struct fm_shown shown[2];
    fm_history_show(p, NULL, &half, &shown[0], &shown[1]);
    fm_profile_free(p);
    return 0;
}

/* As a process leaves it, one that is a child's, and one of sampled blocks. */
bool fuzz_seed(unsigned n, struct fm_buffer *out)
{
    fm_autobuffer store = FM_BUFFER_INIT;
    struct fm_slices_header head = { FM_SLICES_MAGIC, FM_SLICES_VERSION, 0 };
    if (n == 2)
        hs_sampled(&store);
    else
        hs_sample(&store);
    if (n == 1)
        ((struct fm_heap_header *)store.data)->flags |= FM_HEAP_FORKED;
    fm_buffer_clear(out);
    fm_buffer_add(out, &head, sizeof head);
    fm_buffer_add(out, "\7\2\4\24\2\2\6\2\4\1\3\4\23\1\1\1", 16);
    out->data[0] = (char)(out->len / 4);
    fm_buffer_add(out, store.data, store.len);
    return n < 3;
}
