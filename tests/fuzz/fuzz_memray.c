/* Fuzzes the reader of what memray writes. */
#include "fuzz.h"

#include "fuzz_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_format(&fm_format_memray, data, size);
    return 0;
}

bool fuzz_seed(unsigned n, struct fm_buffer *out)
{
    static const char *const seeds[] = {
        "allocator,num_allocations,size,tid,thread_name,stack_trace\r\n"
        "MALLOC,1,618,2,0x2 (w),f;/a;b.py;3|main;/a.py;9\r\n"
        "CALLOC,2,70,1,0x1,\"g \"\"x\"\";/a,b.py;4\"\r\nMMAP,1,4096,1,0x1,\r\n",
        "{\"version\":0,\"costs\":[{\"description\":\"Memory\",\"unit\":\"bytes\"}],"
        "\"events\":[{\"callchain\":[1,0],\"cost\":[70]},{\"callchain\":[0],\"cost\":[5]}],"
        "\"functions\":[{\"name\":\"main\",\"module\":\"a.py\"},{\"name\":\"f\",\"module\":\"a.py\"}]}",
        "{\"total_num_allocations\":9,\"total_bytes_allocated\":90,\"allocation_size_histogram\":[],"
        "\"top_allocations_by_size\":[{\"location\":\"f:a.py:3\",\"size\":50}],"
        "\"top_allocations_by_count\":[{\"location\":\"g\",\"count\":5}],"
        "\"metadata\":{\"command_line\":\"x\"}}",
    };
    fm_buffer_clear(out);
    if (n < 3)
        fm_buffer_add_text(out, seeds[n]);
    return n < 3;
}
