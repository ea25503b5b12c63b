/* Fuzzes the reader of collapsed; what loads must be written and read again. */
#include "fuzz.h"

#include "fuzz_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_format(&fm_format_collapsed, data, size);
    return 0;
}

bool fuzz_seed(unsigned n, struct fm_buffer *out)
{
    static const char *const seeds[] = {
        "process 12:\"python -c a;b\";thread (0x7FFF00000010): w;f (a.py:1);A.g (b.py) 1\n"
        "process 12:\"x\";process 13:\"child\";thread (13);f (a.py:3);f (a.py:3) 2\r\n 7\n<no Python frame> 8\n",
        "# austin: 3.7.0\n# interval: 5000\n# mode: full\n\nP12;T0:34;/a.py:<module>:5;/a.py:A.f:9 "
        "5001,0,-77\nP12;T0:35;:INVALID: 100,1,0\nP12;T0:35 50,0,0\n# duration: 9151\n",
        "tid:3531;<frozen runpy>:_run_code:87;prog.py:main:17;<GC> 405\ntid:3531;x 2.5\n",
        "a;b;c (/lib/x (y).so) 10 12\na;std::vec<a b> 3 0\n",
        "# metric: peak\nf (a.py:1);g (a.py:7) 4096\nf (a.py:2);g (a.py:7) 512\n",
    };
    fm_buffer_clear(out);
    if (n < 5)
        fm_buffer_add_text(out, seeds[n]);
    return n < 5;
}
