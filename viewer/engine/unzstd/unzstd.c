/* Frames, blocks and sequences of zstd; see unzstd.h. Sections are those of RFC 8878. */
#include "unzstd.h"

#include "bits.h"

#define MAGIC        0xfd2fb528u
#define BLOCK_MAX    (1u << 17)
#define LENGTH_CODES 36
#define MATCH_CODES  53
#define OFFSET_CODES 32

enum { LENGTHS, OFFSETS, MATCHES };

struct state {
    uint8_t *out;
    size_t room, len;
    uint32_t repeated[3]; /* the offsets used last */
    struct fm_huffman huffman;
    struct fm_fse fse[3];
    bool has[3];
    uint8_t literals[BLOCK_MAX];
};

/* There is one engine in the page, and one frame at a time. */
static struct state the_state;

/* ---- 3.1.1.3.2: codes of sequences ---- */

static const uint32_t length_base[LENGTH_CODES] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,   9,   10,  11,   12,   13,   14,   15,    16,    18,
    20, 22, 24, 28, 32, 40, 48, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536
};
static const uint8_t length_bits[LENGTH_CODES] = { 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  0,  0,
                                                   0, 0, 0, 0, 1, 1,  1,  1,  2,  2,  3,  3,
                                                   4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
static const uint8_t match_bits[MATCH_CODES] = { 0, 0, 0, 0, 0,  0,  0,  0,  0,  0,  0, 0, 0, 0,
                                                 0, 0, 0, 0, 0,  0,  0,  0,  0,  0,  0, 0, 0, 0,
                                                 0, 0, 0, 0, 1,  1,  1,  1,  2,  2,  3, 3, 4, 4,
                                                 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
static uint32_t match_base[MATCH_CODES]; /* filled once */

static const int16_t usual_lengths[LENGTH_CODES] = { 4, 3, 2, 2, 2, 2, 2, 2, 2,  2,  2,  2,
                                                     2, 1, 1, 1, 2, 2, 2, 2, 2,  2,  2,  2,
                                                     2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1 };
static const int16_t usual_matches[MATCH_CODES] = { 1, 4, 3, 2, 2,  2,  2,  2,  2,  1,  1, 1, 1, 1,
                                                    1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1, 1, 1,
                                                    1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1, 1, 1,
                                                    1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1 };
static const int16_t usual_offsets[29] = { 1, 1, 1, 1, 1, 1, 2, 2, 2, 1,  1,  1,  1,  1, 1,
                                           1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1 };

static void fill_match_base(void)
{
    uint32_t base = 3;
    for (int i = 0; i < MATCH_CODES; i++) {
        match_base[i] = base;
        base += 1u << match_bits[i];
    }
}

static void use_usual(struct state *s, int kind)
{
    if (kind == LENGTHS)
        fm_fse_build(&s->fse[kind], usual_lengths, LENGTH_CODES, 6);
    else if (kind == OFFSETS)
        fm_fse_build(&s->fse[kind], usual_offsets, 29, 5);
    else
        fm_fse_build(&s->fse[kind], usual_matches, MATCH_CODES, 6);
}

/* One of the three tables of a block, by its mode; how many bytes it took, or −1. */
static int64_t read_table(struct state *s, int kind, unsigned mode, const uint8_t *in, size_t len)
{
    static const unsigned codes[3] = { LENGTH_CODES, OFFSET_CODES, MATCH_CODES };
    static const unsigned logs[3] = { 9, 8, 9 };
    int64_t took = 0;
    if (mode == 3)
        return s->has[kind] ? 0 : -1;
    if (mode == 0)
        use_usual(s, kind);
    if (mode == 1) {
        if (!len || in[0] >= codes[kind])
            return -1;
        fm_fse_single(&s->fse[kind], in[0]);
        took = 1;
    }
    if (mode == 2)
        took = fm_fse_read(&s->fse[kind], in, len, logs[kind], codes[kind]);
    s->has[kind] = took >= 0;
    return took;
}

/* ---- 3.1.1.5: offsets that come again ---- */

static uint32_t offset_of(struct state *s, uint64_t value, bool no_literals)
{
    uint32_t *r = s->repeated, offset;
    if (value > 3) {
        offset = value - 3 <= UINT32_MAX ? (uint32_t)(value - 3) : 0;
        r[2] = r[1];
        r[1] = r[0];
        return r[0] = offset;
    }
    unsigned which = (unsigned)value - 1 + no_literals;
    if (which == 0)
        return r[0];
    offset = which == 3 ? r[0] - 1 : r[which];
    if (which > 1)
        r[2] = r[1];
    r[1] = r[0];
    return r[0] = offset;
}

/* ---- sequences ---- */

static bool put(struct state *s, const uint8_t *from, size_t len)
{
    if (len > s->room - s->len)
        return false;
    memcpy(s->out + s->len, from, len);
    s->len += len;
    return true;
}

static bool copy_match(struct state *s, uint32_t offset, size_t len)
{
    if (!offset || offset > s->len || len > s->room - s->len)
        return false;
    uint8_t *to = s->out + s->len;
    const uint8_t *from = to - offset;
    s->len += len;
    if (offset >= len)
        memcpy(to, from, len);
    else
        for (size_t i = 0; i < len; i++)
            to[i] = from[i];
    return true;
}

static bool run_sequences(struct state *s, struct fm_literals *l, size_t count, struct fm_bits *b)
{
    const struct fm_fse *fse = s->fse;
    uint64_t at[3];
    for (int kind = 0; kind < 3; kind++)
        at[kind] = fm_bits_take(b, fse[kind].log);
    for (size_t i = 0; i < count; i++) {
        const struct fm_fse_entry *e[3];
        for (int kind = 0; kind < 3; kind++)
            e[kind] = &fse[kind].table[at[kind]];
        unsigned lc = e[LENGTHS]->symbol, oc = e[OFFSETS]->symbol, mc = e[MATCHES]->symbol;
        if (lc >= LENGTH_CODES || oc >= OFFSET_CODES || mc >= MATCH_CODES)
            return false;
        uint64_t offset = ((uint64_t)1 << oc) + fm_bits_take(b, oc);
        size_t match = match_base[mc] + (size_t)fm_bits_take(b, match_bits[mc]);
        size_t length = length_base[lc] + (size_t)fm_bits_take(b, length_bits[lc]);
        if (i + 1 < count) {
            at[LENGTHS] = e[LENGTHS]->base + fm_bits_take(b, e[LENGTHS]->bits);
            at[MATCHES] = e[MATCHES]->base + fm_bits_take(b, e[MATCHES]->bits);
            at[OFFSETS] = e[OFFSETS]->base + fm_bits_take(b, e[OFFSETS]->bits);
        }
        if (b->at < 0 || length > l->len || !put(s, l->bytes, length))
            return false;
        l->bytes += length;
        l->len -= length;
        if (!copy_match(s, offset_of(s, offset, !length), match))
            return false;
    }
    return b->at == 0;
}

static bool read_block(struct state *s, const uint8_t *in, size_t len)
{
    struct fm_literals l;
    struct fm_bits b;
    int64_t took = fm_literals_read(&l, &s->huffman, s->literals, in, len);
    if (took < 0 || (size_t)took >= len)
        return false;
    in += took;
    len -= (size_t)took;
    size_t count = in[0], head = 1;
    if (count >= 128) {
        head = count == 255 ? 3 : 2;
        if (len < head)
            return false;
        count = head == 3 ? (in[1] | (size_t)in[2] << 8) + 0x7f00 : (count - 128) << 8 | in[1];
    }
    in += head;
    len -= head;
    if (!count)
        return len == 0 && put(s, l.bytes, l.len);
    if (!len)
        return false;
    unsigned modes = *in++;
    len--;
    for (int kind = 0; kind < 3; kind++) {
        took = read_table(s, kind, modes >> (6 - 2 * kind) & 3, in, len);
        if (took < 0 || (size_t)took > len)
            return false;
        in += took;
        len -= (size_t)took;
    }
    return fm_bits_begin(&b, in, len) && run_sequences(s, &l, count, &b) && put(s, l.bytes, l.len);
}

/* ---- 3.1.1: frames ---- */

/* How many bytes the header took, or 0. */
static size_t read_header(const uint8_t *in, size_t len, uint64_t *ret_size)
{
    static const uint8_t size_bytes[4] = { 0, 2, 4, 8 }, dictionary_bytes[4] = { 0, 1, 2, 4 };
    if (len < 6 || (in[0] | in[1] << 8 | in[2] << 16 | (uint32_t)in[3] << 24) != MAGIC)
        return 0;
    unsigned flags = in[4], single = flags >> 5 & 1;
    size_t at = 5 + !single, width = size_bytes[flags >> 6];
    if (!width)
        width = single;
    for (unsigned i = 0; i < dictionary_bytes[flags & 3]; i++)
        if (at >= len || in[at++])
            return 0;
    if (!width || (flags & 8) || len - at < width)
        return 0;
    *ret_size = width == 2 ? 256 : 0;
    for (size_t i = 0; i < width; i++)
        *ret_size += (uint64_t)in[at + i] << 8 * i;
    return at + width;
}

bool fm_unzstd_size(const void *in, size_t len, uint64_t *ret_size)
{
    return read_header(in, len, ret_size) > 0;
}

int64_t fm_unzstd(void *out, size_t room, const void *bytes, size_t len)
{
    struct state *s = &the_state;
    const uint8_t *in = bytes;
    uint64_t size;
    size_t at = read_header(in, len, &size);
    bool last = false;
    if (!at || size > room)
        return -1;
    if (!match_base[0])
        fill_match_base();
    s->out = out;
    s->room = (size_t)size;
    s->len = 0;
    s->huffman.log = 0;
    s->has[0] = s->has[1] = s->has[2] = false;
    s->repeated[0] = 1;
    s->repeated[1] = 4;
    s->repeated[2] = 8;
    while (!last) {
        if (len - at < 3)
            return -1;
        uint32_t head = in[at] | in[at + 1] << 8 | (uint32_t)in[at + 2] << 16;
        size_t block = head >> 3, kind = head >> 1 & 3, stored = kind == 1 ? 1 : block;
        last = head & 1;
        at += 3;
        if (kind == 3 || block > BLOCK_MAX || stored > len - at ||
            (kind != 2 && block > s->room - s->len))
            return -1;
        if (kind == 0)
            put(s, in + at, block);
        if (kind == 1) {
            memset(s->out + s->len, in[at], block);
            s->len += block;
        }
        if (kind == 2 && !read_block(s, in + at, stored))
            return -1;
        at += stored;
    }
    return s->len == size ? (int64_t)size : -1;
}
