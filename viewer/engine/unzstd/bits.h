/*
 * Bits of a zstd stream, and its tables of finite state entropy; private to this folder.
 *
 * Streams of codes are read from their end backwards: `at` is how many bits are left. Reading more than
 * there are gives zeros and leaves `at` negative, which is looked at once at the end.
 */
#ifndef FM_ENGINE_UNZSTD_BITS_H
#define FM_ENGINE_UNZSTD_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FM_FSE_LOG_MAX 9

struct fm_bits {
    const uint8_t *in;
    size_t len;
    int64_t at;
};

/* The last byte has a 1 above the first bit that counts. */
static inline bool fm_bits_begin(struct fm_bits *b, const uint8_t *in, size_t len)
{
    if (!len || !in[len - 1])
        return false;
    *b = (struct fm_bits){ in, len,
                           (int64_t)len * 8 - 1 - (__builtin_clz((unsigned)in[len - 1]) - 24) };
    return true;
}

/* The `n` bits (at most 56) that come next, as a number; those that are not there are zeros. */
static inline uint64_t fm_bits_peek(const struct fm_bits *b, unsigned n)
{
    int64_t from = b->at - (int64_t)n;
    uint64_t value = 0;
    unsigned missing = 0;
    if (from < 0) {
        missing = (unsigned)-from;
        if (missing >= n)
            return 0;
        from = 0;
    }
    size_t byte = (size_t)from >> 3;
    if (byte + 8 <= b->len)
        memcpy(&value, b->in + byte, 8);
    else
        for (size_t i = byte; i < b->len; i++)
            value |= (uint64_t)b->in[i] << 8 * (i - byte);
    value = value >> (from & 7) & (((uint64_t)1 << (n - missing)) - 1);
    return value << missing;
}

static inline uint64_t fm_bits_take(struct fm_bits *b, unsigned n)
{
    uint64_t value = n ? fm_bits_peek(b, n) : 0;
    b->at -= n;
    return value;
}

struct fm_fse_entry {
    uint16_t base;
    uint8_t symbol, bits;
};

struct fm_fse {
    unsigned log; /* of its size */
    struct fm_fse_entry table[1u << FM_FSE_LOG_MAX];
};

/* A table by how often (of 1 << log in all) each symbol comes; −1: less than once. */
bool fm_fse_build(struct fm_fse *fse, const int16_t *counts, unsigned symbols, unsigned log);
/* A table of one symbol. */
void fm_fse_single(struct fm_fse *fse, uint8_t symbol);
/* A table as it is described in a stream: how many bytes that took, or −1. */
int64_t fm_fse_read(struct fm_fse *fse, const uint8_t *in, size_t len, unsigned max_log,
                    unsigned max_symbols);

/* ---- literals: literals.c ---- */

struct fm_huffman {
    unsigned log; /* 0: there is no table yet */
    struct {
        uint8_t symbol, bits;
    } table[1u << 11];
};

struct fm_literals {
    const uint8_t *bytes;
    size_t len;
};

/* The section of literals at the begin of a block: how many bytes it took, or −1. `room` is memory for
 * 1 << 17 of them. */
int64_t fm_literals_read(struct fm_literals *l, struct fm_huffman *h, uint8_t *room,
                         const uint8_t *in, size_t len);

#endif
