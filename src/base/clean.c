/* Text of others where people read it; see clean.h. */
#include "base/clean.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* Formatting characters of Unicode that show nothing themselves, the separators of lines and
 * paragraphs, tags, and what is no character at all. */
bool fm_clean_is_hidden(uint32_t c)
{
    if (c < 0xa0)
        return c < 0x20 || c >= 0x7f;
    return c == 0xad || c == 0x61c || c == 0x180e || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) ||
           fm_utf8_is_surrogate(c) || c == 0xfeff || (c >= 0xfff0 && c <= 0xfffb) ||
           (c >= 0xe0000 && c <= 0xe0fff) || (c & 0xfffe) == 0xfffe;
}

void fm_clean_add_escape(struct fm_buffer *out, uint32_t c)
{
    if (c == '\n' || c == '\r' || c == '\t')
        fm_buffer_add_char(out, c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
    else
        fm_buffer_addf(out, c < 0x100 ? "x%02x" : c < 0x10000 ? "u%04x" : "U%08x", c);
}

/* Bytes at the start that are visible ASCII: nearly all of nearly every text. */
static size_t plain_bytes(const char *text, size_t len)
{
    size_t n = 0;
    while (n < len && text[n] >= 0x20 && text[n] < 0x7f)
        n++;
    return n;
}

void fm_clean_add(struct fm_buffer *out, const char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        size_t plain = plain_bytes(text + at, len - at);
        fm_buffer_add(out, text + at, plain);
        at += plain;
        if (at == len)
            break;
        size_t bytes = fm_utf8_char(text + at, len - at);
        uint32_t c = bytes ? fm_utf8_decode(text + at, bytes) : (uint8_t)text[at];
        if (bytes && !fm_clean_is_hidden(c)) {
            fm_buffer_add(out, text + at, bytes);
        } else {
            fm_buffer_add_char(out, '\\');
            fm_clean_add_escape(out, c);
        }
        at += bytes ? bytes : 1;
    }
}

void fm_clean_put(FILE *out, const char *text)
{
    fm_autobuffer clean = FM_BUFFER_INIT;
    fm_clean_add(&clean, text, strlen(text));
    fputs(fm_buffer_text(&clean), out);
}

void fm_clean_say(FILE *out, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    if (len < 0)
        return;
    fm_clean_put(out, text);
    fputc('\n', out);
    free(text);
}
