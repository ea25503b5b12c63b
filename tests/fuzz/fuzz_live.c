/* Fuzzes the reader of live stores. The input is the store as it is. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "../unit/live_store.h"
#include "base/error.h"
#include "base/memory.h"
#include "record/model/derive/flat.h"
#include "record/model/live/live.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fm_error err = FM_ERROR_INIT;
    struct fm_profile *p = fm_profile_new();
    struct fm_live_ending ending = { { 9000, 9000 }, 8000, 0 };
    size_t half = size / 2 / FM_LIVE_PAGE * FM_LIVE_PAGE;
    if (fm_live_load(p, data, size, NULL, 0, NULL, &err) && !err.text[0])
        abort(); /* a refusal must say why */
    fm_live_load(p, data, half, data + half, size - half, &ending, &err);
    fm_flat_free(fm_flat_new(p, NULL));
    for (size_t i = 0; i < p->nodes.len; i++)
        if (p->nodes.data[i].parent != FM_NONE && p->nodes.data[i].parent >= i)
            abort();
    struct fm_lines combined = fm_lines_combined(p, FM_NONE);
    for (size_t i = 0; i < combined.rows.len; i++)
        fm_lines_quantile_ns(&combined, &combined.rows.data[i], 0.99);
    fm_lines_release(&combined);
    struct fm_regions regions = fm_regions_combined(p, FM_NONE);
    for (size_t i = 0; i < regions.rows.len; i++)
        if (regions.rows.data[i].around != FM_NONE && regions.rows.data[i].around >= i)
            abort();
    fm_regions_release(&regions);
    fm_profile_free(p);
    return 0;
}

/* As a process leaves it, and with everything in one chunk's page so that mutations meet it. */
bool fuzz_seed(unsigned n, struct fm_buffer *out)
{
    ls_sample(out);
    if (n == 1)
        ls_header(out)->later_ticks = 0;
    if (n == 2)
        ls_lines(out);
    if (n == 3)
        ls_regions(out);
    return n < 4;
}
