/* Fuzzes the reader of Chrome's trace events: trees, and a timeline whose lanes nest. */
#include "fuzz.h"

#include "fuzz_format.h"
#include "record/model/trace/lanes/timeline.h"

struct lane_check {
    uint64_t at_ns;
    size_t open;
};

static bool take_event(void *context, const struct fm_lane_event *event)
{
    struct lane_check *check = context;
    if (event->at_ns < check->at_ns || (event->ends && !check->open))
        abort(); /* time goes back, or nothing is open */
    check->at_ns = event->at_ns;
    check->open += event->ends ? (size_t)-1 : 1;
    return true;
}

static void check_timeline(const struct fm_profile *p)
{
    struct fm_error err = FM_ERROR_INIT;
    struct fm_timeline *t = fm_timeline_open(p, &err);
    for (size_t i = 0; t && i < fm_timeline_lanes(t); i++) {
        struct lane_check check = { 0 };
        fm_timeline_events(t, i, 0, UINT64_MAX, take_event, &check, &err);
        if (check.open)
            abort(); /* something never ends */
    }
    fm_timeline_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fm_error err = FM_ERROR_INIT;
    fuzz_format(&fm_format_chrome, data, size);
    struct fm_profile *p = fm_format_chrome.load((const char *)data, size, "input", &err);
    if (p)
        check_timeline(p);
    fm_profile_free(p);
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
