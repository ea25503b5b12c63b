/*
 * The bytes of one of memray's files, unpacked as they are read: a file as it is, or in a frame of LZ4; from
 * memory, or from a descriptor, so that a file of any size takes a window of memory.
 *
 * Records are read without asking before each byte: behind the window are FM_MEMRAY_PAD zeros, more than the
 * numbers of one record take, and `fm_memray_whole` says afterwards whether all of it was there. Texts and
 * tables, which have any length, are asked for by functions that say so themselves.
 *
 * A file as it is, of a program that was killed, ends in zeros: memray makes it longer in large steps. They are
 * no part of it.
 */
#ifndef FM_FORMATS_MEMRAY_SOURCE_H
#define FM_FORMATS_MEMRAY_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/varint.h"

#define FM_MEMRAY_WINDOW ((size_t)256 << 10)
#define FM_MEMRAY_PAD    128

struct fm_memray_source {
    const uint8_t *at, *end; /* what was unpacked and not read yet */
    uint64_t unpacked;       /* bytes up to `end` */
    bool ended;              /* there is nothing behind the window */
    const char *broken;      /* NULL, or why it ended early */
    /* internal */
    uint8_t *window;
    const uint8_t *bytes; /* in memory, or NULL */
    uint8_t *packed;      /* what was read of the descriptor and not unpacked */
    size_t packed_at, packed_len;
    int fd;
    uint64_t left; /* of the file */
    struct LZ4F_dctx_s *lz4;
};

/* From memory, or, if `bytes` is NULL, from `fd`, which stands at the beginning. */
void fm_memray_source_init(struct fm_memray_source *s, const void *bytes, int fd, uint64_t len);
void fm_memray_source_release(struct fm_memray_source *s);

void fm_memray_fill(struct fm_memray_source *s);

/* Before each record: all numbers of it are in the window, or it is cut off. False: the end. */
static inline bool fm_memray_next(struct fm_memray_source *s)
{
    if (s->end - s->at < FM_MEMRAY_PAD && !s->ended)
        fm_memray_fill(s);
    return s->at < s->end;
}

/* Was what was read there? */
static inline bool fm_memray_whole(const struct fm_memray_source *s)
{
    return s->at <= s->end;
}

/* memray writes no number of more than ten bytes; what is longer is cut, and the rest of it no record. */
static inline uint64_t fm_memray_varint(struct fm_memray_source *s)
{
    uint64_t value = *s->at & 0x7f;
    for (unsigned shift = 7; *s->at++ & 0x80 && shift < 64; shift += 7)
        value |= (uint64_t)(*s->at & 0x7f) << shift;
    return value;
}

static inline uint64_t fm_memray_delta(struct fm_memray_source *s, uint64_t *last)
{
    return *last += (uint64_t)fm_unzigzag(fm_memray_varint(s));
}

/* A number of so many bytes, least significant first. */
static inline uint64_t fm_memray_fixed(struct fm_memray_source *s, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)s->at[i] << 8 * i;
    s->at += bytes;
    return value;
}

static inline void fm_memray_skip(struct fm_memray_source *s, unsigned bytes)
{
    s->at += bytes;
}

/* Up to the next NUL, or `len` bytes, appended to `out`; false: it is cut off, or longer than `most`. */
bool fm_memray_text(struct fm_memray_source *s, struct fm_buffer *out, size_t most);
bool fm_memray_bytes(struct fm_memray_source *s, struct fm_buffer *out, uint64_t len, size_t most);

#endif
