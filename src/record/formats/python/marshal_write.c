/* Writing marshal, version 2 without references; see marshal.h. */
#include "record/formats/python/marshal.h"

#include <string.h>

#include "base/utf8.h"

static void put_int32(struct fm_buffer *out, uint32_t value)
{
    uint8_t b[4] = { (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
                     (uint8_t)(value >> 24) };
    fm_buffer_add(out, b, 4);
}

/* Python refuses a whole file for one broken character. */
void fm_marshal_put_text(struct fm_buffer *out, const char *text, size_t len)
{
    fm_autobuffer valid = FM_BUFFER_INIT;
    fm_utf8_add_python(&valid, text, len);
    fm_buffer_add_char(out, 't');
    put_int32(out, (uint32_t)valid.len);
    fm_buffer_add(out, fm_buffer_text(&valid), valid.len);
}

void fm_marshal_put_int(struct fm_buffer *out, int64_t value)
{
    if (value >= INT32_MIN && value <= INT32_MAX) {
        fm_buffer_add_char(out, 'i');
        put_int32(out, (uint32_t)value);
        return;
    }
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    uint8_t digits[10];
    uint32_t n = 0;
    for (; left; left >>= 15, n++) {
        digits[2 * n] = (uint8_t)left;
        digits[2 * n + 1] = (uint8_t)(left >> 8 & 0x7f);
    }
    fm_buffer_add_char(out, 'l');
    put_int32(out, value < 0 ? -n : n);
    fm_buffer_add(out, digits, 2 * n);
}

void fm_marshal_put_float(struct fm_buffer *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    fm_buffer_add_char(out, 'g');
    put_int32(out, (uint32_t)bits);
    put_int32(out, (uint32_t)(bits >> 32));
}

void fm_marshal_put_tuple(struct fm_buffer *out, uint32_t count)
{
    fm_buffer_add_char(out, '(');
    put_int32(out, count);
}

void fm_marshal_put_dict(struct fm_buffer *out)
{
    fm_buffer_add_char(out, '{');
}

void fm_marshal_put_dict_end(struct fm_buffer *out)
{
    fm_buffer_add_char(out, '0');
}
