/*
 * UTF-8 as Python reads and writes it with "surrogatepass": lone surrogates are allowed, and whoever
 * cannot take them asks. Names come from programs and files of others, so any byte may come.
 */
#ifndef FM_BASE_UTF8_H
#define FM_BASE_UTF8_H

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

/* The character of these `bytes` bytes, as fm_utf8_char counted them. */
static inline uint32_t fm_utf8_decode(const char *text, size_t bytes)
{
    const uint8_t *s = (const uint8_t *)text;
    if (bytes == 1)
        return s[0];
    uint32_t c = s[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++)
        c = c << 6 | (s[i] & 0x3f);
    return c;
}

static inline bool fm_utf8_is_surrogate(uint32_t c)
{
    return c >= 0xd800 && c < 0xe000;
}

/* Append `text` as UTF-8 that Python reads: what is none becomes a lone surrogate (0xff: U+DCFF), as
 * in Python's own names of such files ("surrogateescape"). Texts that differ stay different. */
static inline void fm_utf8_add_python(struct fm_buffer *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        uint8_t c = (uint8_t)text[i];
        size_t n = fm_utf8_char(text + i, len - i);
        if (n)
            fm_buffer_add(out, text + i, n);
        else
            fm_buffer_add(
                out, (char[]){ (char)0xed, (char)(0xb0 | c >> 6), (char)(0x80 | (c & 0x3f)) }, 3);
        i += n ? n : 1;
    }
}

/* Append the bytes of a file's name as Python has it: the other way round. */
static inline void fm_utf8_add_file_name(struct fm_buffer *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t n = fm_utf8_char(text + i, len - i);
        uint32_t c = n ? fm_utf8_decode(text + i, n) : 0;
        if (c >= 0xdc80 && c <= 0xdcff)
            fm_buffer_add_char(out, (char)c);
        else
            fm_buffer_add(out, text + i, n ? n : 1);
        i += n ? n : 1;
    }
}

/* Append `text` as UTF-8 that everybody reads: what is none, and surrogates, become U+FFFD. */
static inline void fm_utf8_add_valid(struct fm_buffer *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t n = fm_utf8_char(text + i, len - i);
        if (n && !fm_utf8_is_surrogate(fm_utf8_decode(text + i, n)))
            fm_buffer_add(out, text + i, n);
        else
            fm_buffer_add_text(out, "\xef\xbf\xbd");
        i += n ? n : 1;
    }
}

#endif
