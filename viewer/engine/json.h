/*
 * Writing JSON for the page: any bytes become valid text between quotes. Bytes that are no UTF-8 go
 * as they are: the browser's decoder replaces them.
 */
#ifndef FM_ENGINE_JSON_H
#define FM_ENGINE_JSON_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/strings.h"

static inline void json_text(struct fm_buffer *out, const char *text, size_t len)
{
    size_t from = 0;
    fm_buffer_add_char(out, '"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        fm_buffer_add(out, text + from, i - from);
        fm_buffer_addf(out, "\\u%04x", c);
        from = i + 1;
    }
    fm_buffer_add(out, text + from, len - from);
    fm_buffer_add_char(out, '"');
}

/* A comma, unless an object or array was just opened. */
static inline void json_next(struct fm_buffer *out)
{
    char last = out->len ? out->data[out->len - 1] : '{';
    if (last != '{' && last != '[' && last != ':')
        fm_buffer_add_char(out, ',');
}

static inline void json_key(struct fm_buffer *out, const char *key)
{
    json_next(out);
    fm_buffer_addf(out, "\"%s\":", key);
}

static inline void json_string(struct fm_buffer *out, const char *key,
                               const struct fm_strings *strings, uint32_t string)
{
    json_key(out, key);
    json_text(out, fm_strings_get(strings, string), fm_strings_len(strings, string));
}

static inline void json_int(struct fm_buffer *out, const char *key, int64_t value)
{
    json_key(out, key);
    fm_buffer_addf(out, "%lld", (long long)value);
}

static inline void json_bool(struct fm_buffer *out, const char *key, bool value)
{
    json_key(out, key);
    fm_buffer_add_text(out, value ? "true" : "false");
}

static inline void json_open(struct fm_buffer *out, char bracket)
{
    json_next(out);
    fm_buffer_add_char(out, bracket);
}

static inline void json_close(struct fm_buffer *out, char bracket)
{
    fm_buffer_add_char(out, bracket);
}

#endif
