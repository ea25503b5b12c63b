/* Writing pickle by protocol 2; see pickle.h. */
#include <string.h>

#include "base/utf8.h"
#include "record/formats/python/pickle.h"

static void put_le(struct fm_buffer *out, uint64_t value, unsigned width)
{
    for (unsigned i = 0; i < width; i++)
        fm_buffer_add_char(out, (char)(value >> 8 * i));
}

void fm_pickle_put_start(struct fm_buffer *out)
{
    fm_buffer_add(out, "\x80\x02", 2);
}

/* Python refuses a pickle with broken UTF-8. */
void fm_pickle_put_text(struct fm_buffer *out, const char *text, size_t len)
{
    fm_autobuffer valid = FM_BUFFER_INIT;
    fm_utf8_add_python(&valid, text, len);
    fm_buffer_add_char(out, 'X');
    put_le(out, valid.len, 4);
    fm_buffer_add(out, fm_buffer_text(&valid), valid.len);
}

void fm_pickle_put_int(struct fm_buffer *out, int64_t value)
{
    if (value >= 0 && value <= UINT8_MAX) {
        fm_buffer_add_char(out, 'K');
        put_le(out, (uint64_t)value, 1);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        fm_buffer_add_char(out, 'J');
        put_le(out, (uint64_t)value, 4);
    } else {
        fm_buffer_add(out, "\x8a\x08", 2);
        put_le(out, (uint64_t)value, 8);
    }
}

void fm_pickle_put_float(struct fm_buffer *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    fm_buffer_add_char(out, 'G');
    for (int i = 7; i >= 0; i--)
        fm_buffer_add_char(out, (char)(bits >> 8 * i));
}
