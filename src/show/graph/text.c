/* Names as text in the dot language; see text.h. */
#include "show/graph/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "record/formats/utf8.h"

static void add_backslash(struct fm_buffer *out, enum fm_graph_text_kind kind)
{
    fm_buffer_add_text(out, kind == FM_GRAPH_LABEL ? "\\\\" : "\\\\\\\\");
}

/* Is what stands here an entity, which Graphviz would replace: "&lt;", "&#60;"? */
static bool is_entity(const char *text, size_t len)
{
    size_t i = 1;
    while (i < len && (isalnum((unsigned char)text[i]) || text[i] == '#'))
        i++;
    return i > 1 && i < len && text[i] == ';';
}

static uint32_t decode(const char *text, size_t bytes)
{
    const uint8_t *s = (const uint8_t *)text;
    if (bytes == 1)
        return s[0];
    uint32_t c = s[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++)
        c = c << 6 | (s[i] & 0x3f);
    return c;
}

/* Characters that have no place of their own in a line, that XML forbids, or that turn the
 * direction of what follows. */
static bool is_hidden(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200b || c == 0x200e ||
           c == 0x200f || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) ||
           (c >= 0xd800 && c < 0xe000) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
           (c & 0xfffe) == 0xfffe || (c >= 0xe0000 && c < 0xe1000);
}

static void add_hidden(struct fm_buffer *out, uint32_t c, enum fm_graph_text_kind kind)
{
    char text[16];
    if (c == '\n' || c == '\t' || c == '\r')
        snprintf(text, sizeof text, "%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
    else
        snprintf(text, sizeof text, c < 0x100 ? "x%02x" : c < 0x10000 ? "u%04x" : "U%08x", c);
    add_backslash(out, kind);
    fm_buffer_add_text(out, text);
}

/* One character; returns its bytes. */
static size_t add_char(struct fm_buffer *out, const char *text, size_t len,
                       enum fm_graph_text_kind kind)
{
    size_t bytes = fm_utf8_char(text, len);
    if (!bytes) {
        add_hidden(out, (uint8_t)*text, kind);
        return 1;
    }
    uint32_t c = decode(text, bytes);
    if (c == '\\')
        add_backslash(out, kind);
    else if (c == '"')
        fm_buffer_add_text(out, "\\\"");
    else if (c == '&' && is_entity(text, len))
        fm_buffer_add_text(out, "&amp;");
    else if (is_hidden(c))
        add_hidden(out, c, kind);
    else
        fm_buffer_add(out, text, bytes);
    return bytes;
}

/* Bytes that stand for themselves and are a character each. */
static size_t plain_bytes(const char *text, size_t len)
{
    size_t n = 0;
    while (n < len && text[n] >= 0x20 && text[n] < 0x7f && text[n] != '\\' && text[n] != '"' &&
           text[n] != '&')
        n++;
    return n;
}

/* The bytes of the text that are shown; fewer than all if an ellipsis must follow. */
static size_t shown_bytes(const char *text, size_t len, size_t max)
{
    size_t at = 0, cut = 0;
    if (len <= max)
        return len;
    for (size_t chars = 0; at < len; chars++) {
        if (chars + 1 == max)
            cut = at;
        if (chars == max)
            return cut;
        size_t bytes = fm_utf8_char(text + at, len - at);
        at += bytes ? bytes : 1;
    }
    return len;
}

void fm_graph_text(struct fm_buffer *out, const char *text, size_t len, size_t max,
                   enum fm_graph_text_kind kind)
{
    size_t shown = shown_bytes(text, len, max);
    for (size_t at = 0; at < shown;) {
        size_t plain = plain_bytes(text + at, shown - at);
        fm_buffer_add(out, text + at, plain);
        at += plain;
        if (at < shown)
            at += add_char(out, text + at, shown - at, kind);
    }
    if (shown < len)
        fm_buffer_add_text(out, "…");
}

/* The bytes up to and with the next place where a name may be broken. */
static size_t piece_bytes(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] && strchr(" .:,_/-", text[i]))
            return i + 1;
    return len;
}

void fm_graph_text_wrap(struct fm_buffer *out, const char *text, size_t len, size_t max,
                        size_t columns)
{
    size_t shown = shown_bytes(text, len, max), column = 0;
    for (size_t at = 0, piece; at < shown; at += piece) {
        piece = piece_bytes(text + at, shown - at);
        if (column && column + piece > columns) {
            fm_buffer_add_text(out, "\\n");
            column = 0;
        }
        fm_graph_text(out, text + at, piece, piece, FM_GRAPH_LABEL);
        column += piece;
    }
    if (shown < len)
        fm_buffer_add_text(out, "…");
}
