/*
 * The payload of a block of a trace: the number of the trace, facts that are read without the rest, and
 * a body that is compressed by itself.
 *
 *     payload := u32 trace, varint length of the head, head, u8 codec, varint raw length, body
 *
 * So a file opens by its heads alone, and blocks are copied from file to file as they are: only their
 * first four bytes change. Everything in one is untrusted.
 */
#ifndef FM_MODEL_TRACE_PAYLOAD_H
#define FM_MODEL_TRACE_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/varint.h"

#define FM_PAYLOAD_BODY_MAX (16u << 20) /* unpacked */
#define FM_PAYLOAD_HEAD_MAX (1u << 20)

struct fm_payload {
    uint32_t trace;
    const uint8_t *head, *body;
    size_t head_len, body_len;
    uint8_t codec; /* enum fm_codec */
    uint32_t raw_len;
};

/* False if it makes no sense. */
bool fm_payload_parse(struct fm_payload *p, const void *bytes, size_t len);

/* Where the head of a payload lies of which only the first `len` bytes were read; false if that cannot be
 * seen in them. The head may reach beyond them. */
bool fm_payload_head(const void *bytes, size_t len, size_t *at, size_t *head_len);

/* The body as it was, in `into`, which is emptied first. */
bool fm_payload_unpack(const struct fm_payload *p, struct fm_buffer *into);

/* Put one together in `into`, which is emptied first; `packer` is of fm_payload_packer_new() or NULL: the
 * body stays as it is. */
void *fm_payload_packer_new(void);
void fm_payload_packer_free(void *packer);
void fm_payload_make(void *packer, const struct fm_buffer *head, const struct fm_buffer *body,
                     struct fm_buffer *into);

#endif
