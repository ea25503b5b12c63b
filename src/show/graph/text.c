/* Names as text in the dot language; see text.h. */
#include "show/graph/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/clean.h"
#include "base/utf8.h"

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

static void add_hidden(struct fm_buffer *out, uint32_t c, enum fm_graph_text_kind kind)
{
    add_backslash(out, kind);
    fm_clean_add_escape(out, c);
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
    uint32_t c = fm_utf8_decode(text, bytes);
    if (c == '\\')
        add_backslash(out, kind);
    else if (c == '"')
        fm_buffer_add_text(out, "\\\"");
    else if (c == '&' && is_entity(text, len))
        fm_buffer_add_text(out, "&amp;");
    else if (fm_clean_is_hidden(c))
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
