/* What the buckets of memory's counts mean; see memory.h. */
#include "record/model/memory.h"

#include "record/capture/live_heap.h"

const char *fm_heap_kind_title(int64_t kind)
{
    static const char *const titles[] = {
#define X(name, title) title,
        FM_HEAP_KIND_LIST(X)
#undef X
    };
    return kind >= 0 && kind < FM_HEAP_KINDS ? titles[kind] : "another";
}

int64_t fm_heap_bucket_start(enum fm_heap_table table, uint32_t bucket)
{
    if (table == FM_HEAP_BY_KIND || !bucket)
        return bucket;
    uint32_t octave = table == FM_HEAP_SIZES ? bucket / 2 : bucket - 1;
    if (octave > 61)
        return INT64_MAX;
    int64_t start = (int64_t)1 << octave;
    if (table == FM_HEAP_SIZES && bucket % 2)
        start += octave ? start / 2 : 1; /* nothing is between 1 and 2 */
    return start;
}
