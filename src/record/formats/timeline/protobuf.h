/*
 * Bytes of protocol buffers, for writers of large files: a message is made field by field in a buffer. Inner messages
 * are made in buffers of their own, since their size comes first.
 */
#ifndef FM_FORMATS_PROTOBUF_H
#define FM_FORMATS_PROTOBUF_H

#include <string.h>

#include "base/buffer.h"

static inline void fm_proto_number(struct fm_buffer *out, uint32_t field, uint64_t value)
{
    fm_buffer_add_varint(out, (uint64_t)field << 3);
    fm_buffer_add_varint(out, value);
}

static inline void fm_proto_bytes(struct fm_buffer *out, uint32_t field, const void *bytes,
                                  size_t len)
{
    fm_buffer_add_varint(out, (uint64_t)field << 3 | 2);
    fm_buffer_add_varint(out, len);
    fm_buffer_add(out, bytes, len);
}

static inline void fm_proto_text(struct fm_buffer *out, uint32_t field, const char *text)
{
    fm_proto_bytes(out, field, text, strlen(text));
}

static inline void fm_proto_message(struct fm_buffer *out, uint32_t field,
                                    const struct fm_buffer *message)
{
    fm_proto_bytes(out, field, message->len ? message->data : "", message->len);
}

/* Eight bytes as they are: fixed64 and double. */
static inline void fm_proto_fixed64(struct fm_buffer *out, uint32_t field, uint64_t bits)
{
    fm_buffer_add_varint(out, (uint64_t)field << 3 | 1);
    for (int i = 0; i < 8; i++)
        fm_buffer_add_char(out, (char)(bits >> (8 * i)));
}

#endif
