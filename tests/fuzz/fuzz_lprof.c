/* Fuzzes the readers of pickle and .lprof; what loads must be written and read again. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "record/formats/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fm_error err = FM_ERROR_INIT;
    fm_autobuffer again = FM_BUFFER_INIT;
    fm_format_lprof.recognise(data, size);
    struct fm_profile *p = fm_format_lprof.load(data, size, "input", &err);
    if (!p && !err.text[0])
        abort(); /* a refusal must say why */
    if (!p)
        return 0;
    struct fm_profile *q = NULL;
    if (fm_format_lprof.save(p, &again, &err) < 0 ||
        !(q = fm_format_lprof.load(again.data, again.len, "again", &err)))
        abort(); /* what we write we read */
    fm_profile_free(q);
    fm_profile_free(p);
    return 0;
}

#define LINES                                                                                      \
    "(K\x08K\x01M\xe7\x03\x87K\x09M\x2d\x01J\xff\x99\0\0\x87"                                      \
    "e"

bool fuzz_seed(unsigned n, struct fm_buffer *out)
{
    /* as version 4 writes it */
    static const char newest[] =
        "\x80\x05\x95\xff\0\0\0\0\0\0\0\x8c\x1cline_profiler._line_"
        "profiler\x94\x8c\x09LineStats\x94"
        "\x93\x94)\x81\x94}\x94(\x8c\x07timings\x94}\x94(\x8c\x04"
        "a.py\x94K\x06\x8c\x03"
        "A.f\x94"
        "\x87\x94]\x94" LINES
        "h\x07K\x0c\x8c\x01g\x87]\x94u\x8c\x04unit\x94G>\x11.\x0b\xe8&\xd6\x95"
        "ub.";
    /* protocol 0 */
    static const char oldest[] =
        "ccopy_reg\n_reconstructor\np0\n(cline_profiler._line_profiler\nLineStats\np1\n"
        "c__builtin__\nobject\np2\nNtp3\nRp4\n(dp5\nVtimings\np6\n(dp7\n(V\\u00e9.py\np8\nI6\nS'f'"
        "\n"
        "p9\ntp10\n(lp11\n(I8\nI1\nL999L\ntp12\na(I9\nI301\nI39423\ntag11\n0ssVunit\np13\nF1e-06\n"
        "sb.";
    static const char hostile[] = "\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R.";
    static const struct {
        const char *bytes;
        size_t len;
    } seeds[] = { { newest, sizeof newest - 1 },
                  { oldest, sizeof oldest - 1 },
                  { hostile, sizeof hostile - 1 } };
    fm_buffer_clear(out);
    if (n < 3)
        fm_buffer_add(out, seeds[n].bytes, seeds[n].len);
    return n < 3;
}
