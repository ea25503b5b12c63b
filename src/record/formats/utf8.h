/* UTF-8 as Python reads and writes it with "surrogatepass": lone surrogates are allowed. */
#ifndef FM_FORMATS_UTF8_H
#define FM_FORMATS_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* The number of bytes of the character at `s`, of which `left` > 0 bytes are there, or 0. */
static inline size_t fm_utf8_char(const char *text, size_t left)
{
    const uint8_t *s = (const uint8_t *)text;
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (!n || n > left || s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    /* Longer than needed, or beyond the last character. */
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

/* Append `text` as UTF-8 that everybody reads: what is none, and surrogates, become U+FFFD. */
static inline void fm_utf8_add_clean(struct fm_buffer *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t n = fm_utf8_char(text + i, len - i);
        bool surrogate = n == 3 && (uint8_t)text[i] == 0xed && (uint8_t)text[i + 1] >= 0xa0;
        if (n && !surrogate)
            fm_buffer_add(out, text + i, n);
        else
            fm_buffer_add_text(out, "\xef\xbf\xbd");
        i += n ? n : 1;
    }
}

#endif
