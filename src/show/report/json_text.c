/* Writing JSON; see json_text.h. */
#include "show/report/json_text.h"

#include <string.h>

#include "base/clean.h"
#include "base/utf8.h"

/* A character that JSON, or a terminal that shows it, cannot take as it is. */
static void add_escaped(struct fm_buffer *out, uint32_t c)
{
    if (c >= 0x10000)
        fm_buffer_addf(out, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + (c & 0x3ff));
    else
        fm_buffer_addf(out, "\\u%04x", c);
}

/* Bytes that stand for themselves: nearly all of nearly every text. */
static size_t plain_bytes(const char *text, size_t len)
{
    size_t n = 0;
    while (n < len && text[n] >= 0x20 && text[n] < 0x7f && text[n] != '"' && text[n] != '\\')
        n++;
    return n;
}

void fm_json_add_text(struct fm_buffer *out, const char *text)
{
    size_t left = strlen(text);
    fm_buffer_add_char(out, '"');
    for (size_t n; left; text += n, left -= n) {
        n = plain_bytes(text, left);
        if (n) {
            fm_buffer_add(out, text, n);
            continue;
        }
        size_t bytes = fm_utf8_char(text, left);
        uint32_t c = bytes ? fm_utf8_decode(text, bytes) : (uint8_t)*text;
        n = bytes ? bytes : 1;
        if (!bytes || fm_utf8_is_surrogate(c)) { /* no character: its escape is the text */
            fm_buffer_add_text(out, "\\\\");
            fm_clean_add_escape(out, c);
        } else if (c == '"' || c == '\\') {
            fm_buffer_addf(out, "\\%c", (int)c);
        } else if (fm_clean_is_hidden(c)) {
            add_escaped(out, c);
        } else {
            fm_buffer_add(out, text, n);
        }
    }
    fm_buffer_add_char(out, '"');
}

void fm_json_add_key(struct fm_buffer *out, const char *key)
{
    char last = out->len ? out->data[out->len - 1] : '{';
    fm_buffer_addf(out, "%s\"%s\": ", last == '{' || last == '[' ? "" : ", ", key);
}

void fm_json_add_text_member(struct fm_buffer *out, const char *key, const char *text)
{
    fm_json_add_key(out, key);
    fm_json_add_text(out, text);
}

void fm_json_add_member(struct fm_buffer *out, const char *key, int64_t value)
{
    fm_json_add_key(out, key);
    fm_buffer_addf(out, "%lld", (long long)value);
}

void fm_json_add_function(struct fm_buffer *out, const struct fm_profile *p, uint32_t func)
{
    const struct fm_function *f = &p->functions.data[func];
    fm_json_add_text_member(out, "name", fm_profile_text(p, f->name));
    fm_json_add_text_member(out, "qualname",
                            fm_profile_text(p, f->qualname ? f->qualname : f->name));
    fm_json_add_text_member(out, "file", fm_profile_text(p, f->file));
    fm_json_add_member(out, "line", f->line);
    if (f->twin)
        fm_json_add_member(out, "twin", f->twin);
}

void fm_json_add_states(struct fm_buffer *out, const char *key,
                        const int64_t state_ns[FM_STATE_COUNT])
{
    fm_json_add_key(out, key);
    fm_buffer_add_char(out, '{');
    for (int s = 0; s < FM_STATE_COUNT; s++)
        fm_json_add_member(out, fm_state_name((enum fm_state)s), state_ns[s]);
    fm_buffer_add_char(out, '}');
}
