/* Fuzzes the reader of mprofile_*.dat; what loads must be written and read again. */
#include "fuzz.h"

#include "fuzz_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_format(&fm_format_mprofile, data, size);
    return 0;
}

bool fuzz_seed(unsigned n, struct fm_buffer *out)
{
    static const char *const seeds[] = {
        "CMDLINE python app.py\nMEM 10.000000 1700000000.0000\nCHLD 4711 3.500000 1700000000.1002\n"
        "FUNC app.work 12.3457 1700000000.1000 60.0000 1700000000.2500 1\n",
        "FUNC f 1 2 3 4\r\nMEM 0 0\r\nCHLD 0 0 0\nNEWS\n\nMEM -1 5\n",
    };
    fm_buffer_clear(out);
    if (n < 2)
        fm_buffer_add_text(out, seeds[n]);
    return n < 2;
}
