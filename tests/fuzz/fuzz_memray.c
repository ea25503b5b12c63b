/* Fuzzes the readers of what memray writes: its own files, and those for others. */
#include "fuzz.h"

#include <string.h>

#include "base/memory.h"
#include "fuzz_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool own = fm_format_memray_bin.recognise(data, size);
    fuzz_format(own ? &fm_format_memray_bin : &fm_format_memray, data, size);
    return 0;
}

/* Files of version 13, 10 and 13 with --aggregate as tests/unit/test_memray.c puts them together, and the first in
 * a frame of LZ4. */
static const char *const files[] = {
    /* clang-format off */
        "6d656d726179000d000000f0070b03000000000000000000000000000000000000e8030000000000"
        "0088130000000000006170702e7079202d2d6e6f7700671200000100000000000000010000000000"
        "00000101002f7573722f6c6962002f7573722f7369746500002f737276002f7573722f6c69620000"
        "0e0172756e002f7372762f6170702e7079008c0106d10001d900010e026d61696e002f7372762f61"
        "70702e7079007706d10001d900010c0100000000000000410100410204fe80086402e7070a0c0200"
        "00000000000041020cf880f80f0e8020f880040f8008fdfffb0f01",
        "6d656d726179000a000000000000000000000000000000000000000000e803000000000000881300"
        "00000000006170702e7079202d2d6e6f77006712000001000000000000000100000000000000010c"
        "0100000000000000030272756e002f7372762f6170702e7079008c01040003026d61696e002f7372"
        "762f6170702e707900730400118040640903026d61696e002f7372762f6170702e707900030400a1"
        "80c07f802021ffbf7f0b89061e10",
        "6d656d726179000d000000f0070b03000100000000000000000000000000000000e8030000000000"
        "0088130000000000006170702e7079202d2d6e6f7700671200000100000000000000010000000000"
        "00000101002f7573722f6c6962002f7573722f7369746500002f737276002f7573722f6c69620000"
        "011004000000000000780300000000000042000000000000000e0572756e002f7372762f6170702e"
        "7079008c0106d10001d900010e066d61696e002f7372762f6170702e7079007706d10001d9000104"
        "00050001040106080103000003010103010002010000000000000006000000000000000000000000"
        "00000002000000000000000000000000000000030000000000000001000000000000002c01000000"
        "00000064000000000000000201000000000000000600000000000000000000000000000002000000"
        "00000000000000000000000001000000000000000100000000000000320000000000000032000000"
        "00000000020700000000000000060000000000000000000000000000000300000000000000000000"
        "0000000000010000000000000000000000000000000b0000000000000000000000000000000f",
        "04224d18604082a6000000fd016d656d726179000d000000f0070b0300010013e814002288131b00"
        "f2036170702e7079202d2d6e6f770067120000011800060800a201002f7573722f6c69620900a273"
        "69746500002f737276100000190061000e0172756e1500122f5200fa00008c0106d10001d900010e"
        "026d61691c0013771b00140c6d00f301410100410204fe80086402e7070a0c028400f00641020cf8"
        "80f80f0e8020f880040f8008fdfffb0f0100000000",
    /* clang-format on */
};

static void add_hex(struct fm_buffer *out, const char *hex)
{
    for (; *hex; hex += 2) {
        unsigned high = (unsigned)(strchr("0123456789abcdef", hex[0]) - "0123456789abcdef");
        unsigned low = (unsigned)(strchr("0123456789abcdef", hex[1]) - "0123456789abcdef");
        fm_buffer_add_char(out, (char)(high << 4 | low));
    }
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
    else if (n - 3 < FM_COUNT(files))
        add_hex(out, files[n - 3]);
    return n < 3 + FM_COUNT(files);
}
