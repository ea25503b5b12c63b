/* Fuzzes the reader of speedscope; what loads must be written and read again. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "formats/format.h"
#include "model/flat.h"

static void check(const struct fm_profile *p)
{
    for (size_t i = 0; i < p->nodes.len; i++)
        if (p->nodes.data[i].func >= p->functions.len ||
            (p->nodes.data[i].parent != FM_NONE && p->nodes.data[i].parent >= i))
            abort();
    for (size_t i = 0; i < p->lines.rows.len; i++)
        if (p->lines.rows.data[i].func >= p->functions.len)
            abort();
    fm_flat_free(fm_flat_new(p, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fm_error err = FM_ERROR_INIT;
    fm_autobuffer again = FM_BUFFER_INIT;
    fm_format_speedscope.recognise(data, size);
    struct fm_profile *p = fm_format_speedscope.load(data, size, "input", &err);
    if (!p && !err.text[0])
        abort(); /* a refusal must say why */
    if (!p)
        return 0;
    check(p);
    struct fm_profile *q = NULL;
    int status = fm_format_speedscope.save(p, &again, &err);
    if (status == 0 && !(q = fm_format_speedscope.load(again.data, again.len, "again", &err)))
        abort(); /* what we write we read */
    if (status < 0 && status != FM_UNSUPPORTED)
        abort();
    if (q)
        check(q);
    fm_profile_free(q);
    fm_profile_free(p);
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
    };
    fm_buffer_clear(out);
    if (n < 3)
        fm_buffer_add_text(out, seeds[n]);
    return n < 3;
}
