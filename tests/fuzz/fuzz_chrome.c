/* Fuzzes the reader of Chrome's trace events. */
#include "fuzz.h"

#include "fuzz_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_format(&fm_format_chrome, data, size);
    return 0;
}

bool fuzz_seed(unsigned n, struct fm_buffer *out)
{
    static const char *const seeds[] = {
        "{\"traceEvents\":[{\"ph\":\"M\",\"pid\":7,\"tid\":8,\"name\":\"thread_name\",\"args\":{\"name\":"
        "\"w\"}},{\"ph\":\"X\",\"cat\":\"fee\",\"name\":\"f (a.py:3)\",\"pid\":7,\"tid\":8,\"ts\":20.5,"
        "\"dur\":10},{\"ph\":\"X\",\"cat\":\"fee\",\"name\":\"g\",\"pid\":7,\"tid\":8,\"ts\":25,\"dur\":10}],"
        "\"viztracer_metadata\":{\"overflow\":true},\"file_info\":{\"files\":{\"a.py\":[\"x = 1\\n\",1]}}}",
        "[{\"ph\":\"B\",\"name\":\"a\",\"ts\":1},{\"ph\":\"B\",\"name\":\"b\",\"ts\":2},{\"ph\":\"E\",\"ts\":3},"
        "{\"ph\":\"E\",\"name\":\"a\",\"ts\":9},{\"ph\":\"b\",\"id\":\"0x1\",\"ts\":4},{\"ph\":\"C\",\"ts\":5,"
        "\"args\":{\"v\":1e3}},",
        "{\"baseTimeNanoseconds\":1700000000000000000,\"traceEvents\":[{\"ph\":\"X\",\"cat\":"
        "\"python_function\",\"name\":\"a.py(12): \\u0066\\ud83d\\ude00\",\"pid\":\"Spans\",\"tid\":4,\"ts\":"
        "\"5\",\"dur\":-1}]}",
    };
    fm_buffer_clear(out);
    if (n < 3)
        fm_buffer_add_text(out, seeds[n]);
    return n < 3;
}
