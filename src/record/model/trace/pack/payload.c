/* Reading payloads of blocks of a trace; see payload.h. Making them is payload_make.c. */
#include "record/model/trace/pack/payload.h"

#include <zstd.h>

#include "record/capture/format.h"

bool fm_payload_head(const void *bytes, size_t len, size_t *at, size_t *head_len)
{
    struct fm_cursor c = fm_cursor_over(bytes, len);
    fm_cursor_bytes(&c, 4);
    uint64_t length = fm_cursor_varint(&c);
    if (c.failed || length > FM_PAYLOAD_HEAD_MAX)
        return false;
    *at = (size_t)(c.at - (const uint8_t *)bytes);
    *head_len = (size_t)length;
    return true;
}

bool fm_payload_parse(struct fm_payload *p, const void *bytes, size_t len)
{
    const uint8_t *in = bytes;
    size_t at;
    *p = (struct fm_payload){ 0 };
    if (!fm_payload_head(bytes, len, &at, &p->head_len) || p->head_len >= len - at)
        return false;
    p->trace = in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
    p->head = in + at;
    struct fm_cursor c = fm_cursor_over(p->head + p->head_len, len - at - p->head_len);
    p->codec = *fm_cursor_bytes(&c, 1);
    uint64_t raw = fm_cursor_varint(&c);
    p->body = c.at;
    p->body_len = fm_cursor_left(&c);
    p->raw_len = (uint32_t)raw;
    return !c.failed && raw <= FM_PAYLOAD_BODY_MAX &&
           (p->codec == FM_CODEC_ZSTD || (p->codec == FM_CODEC_NONE && raw == p->body_len));
}

bool fm_payload_unpack(const struct fm_payload *p, struct fm_buffer *into)
{
    fm_buffer_clear(into);
    if (p->codec == FM_CODEC_NONE) {
        fm_buffer_add(into, p->body, p->body_len);
        return true;
    }
    if (ZSTD_getFrameContentSize(p->body, p->body_len) != p->raw_len)
        return false;
    void *context = ZSTD_createDCtx();
    fm_buffer_reserve(into, p->raw_len);
    size_t got = context
                     ? ZSTD_decompressDCtx(context, into->data, p->raw_len, p->body, p->body_len)
                     : (size_t)-1;
    ZSTD_freeDCtx(context);
    if (got != p->raw_len)
        return false;
    into->len = got;
    return true;
}
