/* Fuzzes the reader of pprof; what loads must be written and read again. */
#include "fuzz.h"

#include "fuzz_format.h"
#include "record/formats/stacks/pprof.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_format(&fm_format_pprof, data, size);
    return 0;
}

/* Two stacks with samples, states and calls, as Fathom writes them; compressed, and not. */
static void write_seed(struct fm_buffer *out)
{
    struct fm_profile *p = fm_profile_new();
    struct fm_process process = { .pid = 7, .sampled = true, .sample_interval_ns = 9 };
    process.exe = fm_profile_string(p, "/usr/bin/python3");
    struct fm_thread thread = { .process = fm_profile_process(p, &process), .tid = 8 };
    thread.name = fm_profile_string(p, "w");
    fm_profile_thread(p, &thread);
    uint32_t node = p->threads.data[0].root;
    for (uint32_t i = 0; i < 3; i++) {
        struct fm_function f = { .line = i + 1, .file = fm_profile_string(p, "a.py") };
        f.name = f.qualname = fm_profile_string(p, i == 1 ? "f" : "A.g");
        node = fm_profile_node(p, node, fm_profile_function(p, &f));
        fm_profile_add(p, FM_METRIC_CALLS, node, 2);
        fm_profile_add(p, FM_METRIC_SAMPLES, node, 3);
        fm_profile_add(p, FM_METRIC_STATE_PYTHON, node, 4);
        fm_profile_add(p, FM_METRIC_STATE_LOCK, node, 6);
        fm_profile_add(p, FM_METRIC_TOTAL, node, 30 - 10 * (int64_t)i);
    }
    fm_profile_fact(p, "command", "app.py");
    fm_format_pprof.save(p, out, NULL);
    fm_profile_free(p);
}

bool fuzz_seed(unsigned n, struct fm_buffer *out)
{
    fm_autobuffer packed = FM_BUFFER_INIT;
    fm_buffer_clear(out);
    if (n >= 4)
        return false;
    write_seed(&packed);
    if (n == 0)
        fm_buffer_add(out, packed.data, packed.len);
    else /* three times of four: mutations of compressed bytes seldom get far */
        fm_gzip_unpack(packed.data, packed.len, 0, out, NULL);
    return true;
}
