/* Texts of pickle protocol 0; see pickle_text.h. */
#include "record/formats/python/pickle_text.h"

#include <stdint.h>
#include <string.h>

static void put_utf8(struct fm_buffer *out, uint32_t c)
{
    if (c >= 0x10000) {
        fm_buffer_add_char(out, (char)(0xf0 | c >> 18));
        fm_buffer_add_char(out, (char)(0x80 | (c >> 12 & 0x3f)));
    } else if (c >= 0x800) {
        fm_buffer_add_char(out, (char)(0xe0 | c >> 12));
    }
    if (c >= 0x800)
        fm_buffer_add_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
    else if (c >= 0x80)
        fm_buffer_add_char(out, (char)(0xc0 | c >> 6));
    fm_buffer_add_char(out, (char)(c < 0x80 ? c : 0x80 | (c & 0x3f)));
}

/* The character of "\uXXXX", "\UXXXXXXXX" or "\xXX" (after the letter), or UINT32_MAX. */
static uint32_t read_hex(const char *text, size_t digits)
{
    uint32_t c = 0;
    for (size_t i = 0; i < digits; i++) {
        char d = text[i];
        uint32_t digit = d >= '0' && d <= '9'   ? (uint32_t)(d - '0')
                         : d >= 'a' && d <= 'f' ? (uint32_t)(d - 'a' + 10)
                         : d >= 'A' && d <= 'F' ? (uint32_t)(d - 'A' + 10)
                                                : 16;
        if (digit == 16)
            return UINT32_MAX;
        c = c << 4 | digit;
    }
    return c <= 0x10ffff ? c : UINT32_MAX;
}

bool fm_pickle_unescape(const char *s, size_t len, bool unicode, struct fm_buffer *out)
{
    static const char letters[] = "ntr\\'\"", meanings[] = "\n\t\r\\'\"";
    for (size_t i = 0; i < len; i++) {
        char next = i + 1 < len ? s[i + 1] : '\0';
        size_t digits = unicode ? (next == 'u' ? 4 : next == 'U' ? 8 : 0) : next == 'x' ? 2 : 0;
        const char *letter = next && !unicode ? strchr(letters, next) : NULL;
        if (s[i] == '\\' && digits) {
            uint32_t c = len - i >= digits + 2 ? read_hex(s + i + 2, digits) : UINT32_MAX;
            if (c == UINT32_MAX)
                return false;
            if (unicode)
                put_utf8(out, c);
            else
                fm_buffer_add_char(out, (char)c);
            i += digits + 1;
        } else if (s[i] == '\\' && letter) {
            fm_buffer_add_char(out, meanings[letter - letters]);
            i++;
        } else if (unicode) {
            put_utf8(out, (uint8_t)s[i]);
        } else {
            fm_buffer_add_char(out, s[i]);
        }
    }
    return true;
}
