/* Fuzzes the reader of collapsed; what loads must be written and read again. */
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
    fm_format_collapsed.recognise(data, size);
    struct fm_profile *p = fm_format_collapsed.load(data, size, "input", &err);
    if (!p && !err.text[0])
        abort(); /* a refusal must say why */
    if (!p)
        return 0;
    check(p);
    struct fm_profile *q = NULL;
    int status = fm_format_collapsed.save(p, &again, &err);
    if (status == 0 && !(q = fm_format_collapsed.load(again.data, again.len, "again", &err)))
        abort(); /* what we write we read */
    if (status < 0 && status != FM_UNSUPPORTED)
        abort();
    if (q)
        check(q);
    fm_profile_free(q);
    fm_profile_free(p);
    return 0;
}

bool fuzz_seed(unsigned n, struct fm_buffer *out)
{
    static const char *const seeds[] = {
        "process 12:\"python -c a;b\";thread (0x7FFF00000010): w;f (a.py:1);A.g (b.py) 1\n"
        "process 12:\"x\";process 13:\"child\";thread (13);f (a.py:3);f (a.py:3) 2\r\n 7\n",
        "# austin: 3.7.0\n# interval: 5000\n# mode: full\n\nP12;T0:34;/a.py:<module>:5;/a.py:A.f:9 "
        "5001,0,-77\nP12;T0:35;:INVALID: 100,1,0\nP12;T0:35 50,0,0\n# duration: 9151\n",
        "tid:3531;<frozen runpy>:_run_code:87;prog.py:main:17;<GC> 405\ntid:3531;x 2.5\n",
        "a;b;c (/lib/x (y).so) 10 12\na;std::vec<a b> 3 0\n",
    };
    fm_buffer_clear(out);
    if (n < 4)
        fm_buffer_add_text(out, seeds[n]);
    return n < 4;
}
