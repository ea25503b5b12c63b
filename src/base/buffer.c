/* A growable run of bytes; see buffer.h. */
#include "base/buffer.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/varint.h"

void fm_buffer_release(struct fm_buffer *buf)
{
    free(buf->data);
    buf->data = NULL;
    buf->len = buf->cap = 0;
}

void fm_buffer_clear(struct fm_buffer *buf)
{
    buf->len = 0;
    if (buf->data)
        buf->data[0] = '\0';
}

void fm_buffer_reserve(struct fm_buffer *buf, size_t extra)
{
    size_t need = buf->len + extra + 1;
    if (need <= buf->cap)
        return;
    size_t cap = buf->cap ? buf->cap * 2 : 64;
    if (cap < need)
        cap = need;
    buf->data = fm_realloc(buf->data, cap, 1);
    buf->cap = cap;
}

void fm_buffer_add(struct fm_buffer *buf, const void *bytes, size_t len)
{
    fm_buffer_reserve(buf, len);
    if (len)
        memcpy(buf->data + buf->len, bytes, len);
    buf->len += len;
    buf->data[buf->len] = '\0';
}

void fm_buffer_add_text(struct fm_buffer *buf, const char *text)
{
    fm_buffer_add(buf, text, strlen(text));
}

void fm_buffer_add_char(struct fm_buffer *buf, char c)
{
    fm_buffer_add(buf, &c, 1);
}

void fm_buffer_add_varint(struct fm_buffer *buf, uint64_t value)
{
    uint8_t bytes[FM_VARINT_MAX];
    fm_buffer_add(buf, bytes, fm_varint_put(bytes, value));
}

void fm_buffer_addf(struct fm_buffer *buf, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len > 0) {
        fm_buffer_reserve(buf, (size_t)len);
        vsnprintf(buf->data + buf->len, (size_t)len + 1, format, again);
        buf->len += (size_t)len;
    }
    va_end(again);
}

const char *fm_buffer_text(const struct fm_buffer *buf)
{
    return buf->data ? buf->data : "";
}

char *fm_buffer_detach(struct fm_buffer *buf)
{
    char *text = buf->data ? buf->data : fm_strdup("");
    buf->data = NULL;
    buf->len = buf->cap = 0;
    return text;
}
