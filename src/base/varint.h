/*
 * Variable-length integers (LEB128) and a cursor that reads untrusted bytes.
 *
 * The cursor never runs past its end: a read beyond it, or an integer of more than 64 bits, sets
 * `failed` and yields 0, and every later read yields 0 too. So a decoder may read a whole record
 * and check `failed` once. Signed values travel in zig-zag form.
 *
 * Usable inside a profiled process: inline, no allocation, no libc.
 */
#ifndef FM_BASE_VARINT_H
#define FM_BASE_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FM_VARINT_MAX 10 /* bytes that the longest 64-bit value takes */

static inline size_t fm_varint_put(uint8_t *out, uint64_t value)
{
    size_t n = 0;
    while (value >= 0x80) {
        out[n++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[n++] = (uint8_t)value;
    return n;
}

static inline uint64_t fm_zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static inline int64_t fm_unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

struct fm_cursor {
    const uint8_t *at, *end;
    bool failed;
};

static inline struct fm_cursor fm_cursor_over(const void *bytes, size_t len)
{
    const uint8_t *start = bytes;
    return (struct fm_cursor){ start, start + len, false };
}

static inline size_t fm_cursor_left(const struct fm_cursor *c)
{
    return (size_t)(c->end - c->at);
}

static inline uint64_t fm_cursor_varint(struct fm_cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (c->failed || c->at == c->end)
            break;
        uint8_t byte = *c->at++;
        if (shift == 63 && byte > 1)
            break;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    c->failed = true;
    return 0;
}

/* `len` bytes where they lie, or NULL and `failed`. */
static inline const uint8_t *fm_cursor_bytes(struct fm_cursor *c, uint64_t len)
{
    if (c->failed || len > fm_cursor_left(c)) {
        c->failed = true;
        return NULL;
    }
    const uint8_t *bytes = c->at;
    c->at += len;
    return bytes;
}

#endif
