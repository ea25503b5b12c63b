/* Making payloads of blocks of a trace; see payload.h. */
#include <zstd.h>

#include "record/capture/format.h"
#include "record/model/trace/pack/payload.h"

#define LEVEL 1 /* higher ones gain nothing on these columns */

void *fm_payload_packer_new(void)
{
    return ZSTD_createCCtx();
}

void fm_payload_packer_free(void *packer)
{
    ZSTD_freeCCtx(packer);
}

void fm_payload_make(void *packer, const struct fm_buffer *head, const struct fm_buffer *body,
                     struct fm_buffer *into)
{
    static const char no_trace[4] = { 0 };
    fm_buffer_clear(into);
    fm_buffer_add(into, no_trace, sizeof no_trace);
    fm_buffer_add_varint(into, head->len);
    fm_buffer_add(into, head->data, head->len);
    size_t before = into->len, stored = 0;
    if (packer && body->len) {
        size_t bound = ZSTD_compressBound(body->len);
        fm_buffer_add_char(into, FM_CODEC_ZSTD);
        fm_buffer_add_varint(into, body->len);
        fm_buffer_reserve(into, bound);
        stored =
            ZSTD_compressCCtx(packer, into->data + into->len, bound, body->data, body->len, LEVEL);
    }
    if (stored && !ZSTD_isError(stored) && stored < body->len) {
        into->len += stored;
        return;
    }
    into->len = before;
    fm_buffer_add_char(into, FM_CODEC_NONE);
    fm_buffer_add_varint(into, body->len);
    fm_buffer_add(into, body->data, body->len);
}
