/* Fuzzes the reader of speedscope; what loads must be written and read again. */
#include "fuzz.h"

#include "fuzz_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_format(&fm_format_speedscope, data, size);
    return 0;
}

#define FRAMES                                                                                     \
    "\"shared\":{\"frames\":[{\"name\":\"f\",\"file\":\"a.py\",\"line\":9},"                       \
    "{\"name\":\"thread (1): x\"},{\"name\":\"[self]\",\"col\":null}]}"

bool fuzz_seed(unsigned n, struct fm_buffer *out)
{
    static const char *const seeds[] = {
        "{\"exporter\":\"py-spy@0\",\"profiles\":[{\"type\":\"sampled\",\"name\":\"Process 7 "
        "Thread "
        "12 \\\"w\\\"\",\"unit\":\"seconds\",\"startValue\":0,\"endValue\":1.75,\"samples\":"
        "[[1,0],[0,0],[0,2],[]],\"weights\":[1,0.5,0.25,0.125]}]," FRAMES "}",
        "{\"exporter\":\"pyinstrument\",\"profiles\":[{\"type\":\"evented\",\"name\":\"x\","
        "\"unit\":\"none\",\"endValue\":9,\"events\":[{\"type\":\"O\",\"at\":1,\"frame\":0},"
        "{\"type\":\"O\",\"at\":2,\"frame\":2},{\"type\":\"C\",\"at\":3,\"frame\":2}]}]," FRAMES
        "}",
        "{\"exporter\":\"fathom 1\",\"name\":\"c\",\"profiles\":[{\"type\":\"sampled\",\"name\":"
        "\"Thread 1 \\\"\\\"\",\"unit\":\"nanoseconds\",\"samples\":[[0],[0,1]],\"weights\":[3,4],"
        "\"counts\":[1,2],\"calls\":[5,6]}]," FRAMES "}",
        "{\"exporter\":\"memray@1\",\"profiles\":[{\"type\":\"sampled\",\"name\":\"Memory\","
        "\"unit\":\"bytes\",\"samples\":[[0],[0,1]],\"weights\":[3,4]},{\"type\":\"sampled\","
        "\"name\":\"Allocations\",\"unit\":\"none\",\"samples\":[[0,1]],\"weights\":[1]}]," FRAMES
        "}",
    };
    fm_buffer_clear(out);
    if (n < 4)
        fm_buffer_add_text(out, seeds[n]);
    return n < 4;
}
