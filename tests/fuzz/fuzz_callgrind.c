/* Fuzzes the reader of callgrind; what loads must be written and read again. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "record/formats/format.h"
#include "record/model/derive/flat.h"

static void check(const struct fm_profile *p)
{
    for (size_t i = 0; i < p->flat->rows.len; i++)
        if (p->flat->rows.data[i].func >= p->functions.len)
            abort();
    for (size_t i = 0; i < p->flat->edges.len; i++)
        if (p->flat->edges.data[i].caller >= p->flat->rows.len ||
            p->flat->edges.data[i].callee >= p->flat->rows.len)
            abort();
    for (size_t i = 0; i < p->lines.rows.len; i++)
        if (p->lines.rows.data[i].func >= p->functions.len)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fm_error err = FM_ERROR_INIT;
    fm_autobuffer again = FM_BUFFER_INIT;
    fm_format_callgrind.recognise(data, size);
    struct fm_profile *p = fm_format_callgrind.load(data, size, "input", &err);
    if (!p && !err.text[0])
        abort(); /* a refusal must say why */
    if (!p)
        return 0;
    check(p);
    struct fm_profile *q = NULL;
    if (fm_format_callgrind.save(p, &again, &err) < 0 ||
        !(q = fm_format_callgrind.load(again.data, again.len, "again", &err)))
        abort(); /* what we write we read */
    check(q);
    fm_profile_free(q);
    fm_profile_free(p);
    return 0;
}

bool fuzz_seed(unsigned n, struct fm_buffer *out)
{
    static const char *const seeds[] = {
        "# callgrind format\nversion: 1\npositions: line\nevents: Ir\nsummary: 820\n"
        "fl=(1) file1.c\nfn=(1) main\n16 20\ncfn=(2) func1\ncalls=1 50\n* 400\n"
        "cfi=(2) file2.c\ncfn=(3) f'2\ncalls=3 20\n* 400\nfn=(2)\n+35 100\ncfi=(2)\ncfn=(3)\n"
        "calls=2 -31\n* 300\nfl=(2)\nfn=(3)\n-31 700\ncfn=(3)\ncalls=2 1\n0x12 7\n",
        "version: 1\r\ncreator: pprofile 1\ncmd: x\npositions: instr line\nevents: Ir hits us\n"
        "ob=(1) /bin/a\nfl=(1) a.py\nfn=(1) f:12\n0x400 5 2 1 3\n+4 +1 1 1\njump=3 0x410 9\n"
        "* *\njcnd=1/2 +4 +1\n* *\nfi=(2) i.h\n* 77 1 1 2\ncob=(2) /lib/b\ncfl=(3) ~\n"
        "cfn=(2) h\ncalls=4 0x500 20\n* * 9 9 4\nfe=(1)\njfi=(7) q\njfn=(8) r\n",
        "events: ns hits\ncreator: fathom 1\nfn=f\n1 5 1\nfn=f'2\n1 3 2\n",
    };
    fm_buffer_clear(out);
    if (n < 3)
        fm_buffer_add_text(out, seeds[n]);
    return n < 3;
}
