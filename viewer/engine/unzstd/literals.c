/* Literals of a zstd block and their Huffman codes, RFC 8878 sections 3.1.1.3.1 and 4.2; see bits.h. */
#include "bits.h"

#define LITERALS_MAX (1u << 17)
#define CODE_MAX     11

enum { RAW, REPEATED, PACKED, PACKED_AS_BEFORE };

/* ---- the table of codes ---- */

static bool build(struct fm_huffman *h, uint8_t *weights, unsigned count)
{
    uint32_t sum = 0, start[CODE_MAX + 2] = { 0 };
    for (unsigned i = 0; i < count; i++) {
        if (weights[i] > CODE_MAX)
            return false;
        sum += weights[i] ? 1u << (weights[i] - 1) : 0;
    }
    if (!sum)
        return false;
    unsigned log = 32 - (unsigned)__builtin_clz(sum);
    uint32_t left = (1u << log) - sum;
    if (log > CODE_MAX || (left & (left - 1)))
        return false;
    /* The last symbol has what is left. */
    weights[count++] = (uint8_t)(32 - (unsigned)__builtin_clz(left));
    for (unsigned i = 0; i < count; i++)
        if (weights[i])
            start[weights[i] + 1] += 1u << (weights[i] - 1);
    for (unsigned w = 1; w <= CODE_MAX + 1; w++)
        start[w] += start[w - 1];
    for (unsigned i = 0; i < count; i++) {
        unsigned w = weights[i];
        for (uint32_t k = 0; w && k < 1u << (w - 1); k++, start[w]++) {
            h->table[start[w]].symbol = (uint8_t)i;
            h->table[start[w]].bits = (uint8_t)(log + 1 - w);
        }
    }
    h->log = log;
    return true;
}

/* Weights that are packed themselves, by two states in turns. How many, or 0. */
static unsigned read_packed_weights(uint8_t *weights, const uint8_t *in, size_t len)
{
    struct fm_fse fse;
    struct fm_bits b;
    unsigned count = 0;
    int64_t head = fm_fse_read(&fse, in, len, 6, 12 + 1);
    if (head < 0 || !fm_bits_begin(&b, in + head, len - (size_t)head))
        return 0;
    uint64_t state[2] = { fm_bits_take(&b, fse.log), fm_bits_take(&b, fse.log) };
    if (b.at < 0)
        return 0;
    for (unsigned turn = 0;; turn ^= 1) {
        if (count >= 254)
            return 0;
        const struct fm_fse_entry *e = &fse.table[state[turn]];
        weights[count++] = e->symbol;
        state[turn] = e->base + fm_bits_take(&b, e->bits);
        if (b.at < 0) { /* the other state has the last one */
            weights[count++] = fse.table[state[turn ^ 1]].symbol;
            return count;
        }
    }
}

/* How many bytes the description of a table took, or −1. */
static int64_t read_table(struct fm_huffman *h, const uint8_t *in, size_t len)
{
    uint8_t weights[256];
    if (!len)
        return -1;
    size_t size = in[0] < 128 ? in[0] : (in[0] - 127u + 1) / 2;
    unsigned count = 0;
    if (size > len - 1)
        return -1;
    if (in[0] < 128)
        count = read_packed_weights(weights, in + 1, size);
    else
        for (; count < in[0] - 127u; count++)
            weights[count] = count % 2 ? in[1 + count / 2] & 15 : in[1 + count / 2] >> 4;
    return count && build(h, weights, count) ? (int64_t)size + 1 : -1;
}

/* ---- streams ---- */

static bool decode(const struct fm_huffman *h, uint8_t *out, size_t count, const uint8_t *in,
                   size_t len)
{
    struct fm_bits b;
    if (!fm_bits_begin(&b, in, len))
        return false;
    for (size_t i = 0; i < count; i++) {
        uint64_t code = fm_bits_peek(&b, h->log);
        out[i] = h->table[code].symbol;
        b.at -= h->table[code].bits;
    }
    return b.at == 0;
}

static bool decode_four(const struct fm_huffman *h, uint8_t *out, size_t count, const uint8_t *in,
                        size_t len)
{
    size_t each = (count + 3) / 4, at = 6, sizes[4];
    if (len < 10 || count < 4 || each * 3 > count)
        return false;
    sizes[3] = len - 6;
    for (int i = 0; i < 3; i++) {
        sizes[i] = in[2 * i] | (size_t)in[2 * i + 1] << 8;
        if (sizes[i] > sizes[3])
            return false;
        sizes[3] -= sizes[i];
    }
    for (size_t i = 0; i < 4; i++) {
        size_t n = i < 3 ? each : count - 3 * each;
        if (!decode(h, out + i * each, n, in + at, sizes[i]))
            return false;
        at += sizes[i];
    }
    return true;
}

/* ---- the section ---- */

static int64_t read_plain(struct fm_literals *l, uint8_t *room, const uint8_t *in, size_t len)
{
    unsigned format = in[0] >> 2 & 3;
    size_t head = format == 1 ? 2 : format == 3 ? 3 : 1;
    if (len < head)
        return -1;
    size_t size = format == 1   ? in[0] >> 4 | (size_t)in[1] << 4
                  : format == 3 ? in[0] >> 4 | (size_t)in[1] << 4 | (size_t)in[2] << 12
                                : in[0] >> 3;
    bool repeated = (in[0] & 3) == REPEATED;
    size_t stored = repeated ? 1 : size;
    if (size > LITERALS_MAX || stored > len - head)
        return -1;
    if (repeated)
        memset(room, in[head], size);
    *l = (struct fm_literals){ repeated ? room : in + head, size };
    return (int64_t)(head + stored);
}

int64_t fm_literals_read(struct fm_literals *l, struct fm_huffman *h, uint8_t *room,
                         const uint8_t *in, size_t len)
{
    if (!len)
        return -1;
    if ((in[0] & 3) < PACKED)
        return read_plain(l, room, in, len);
    unsigned format = in[0] >> 2 & 3, bits = format < 2 ? 10 : format == 2 ? 14 : 18;
    size_t head = format < 2 ? 3 : format + 2u, table = 0;
    uint64_t value = 0;
    if (len < head)
        return -1;
    for (size_t i = 0; i < head; i++)
        value |= (uint64_t)in[i] << 8 * i;
    size_t size = value >> 4 & ((1u << bits) - 1),
           stored = value >> (4 + bits) & ((1u << bits) - 1);
    if (size > LITERALS_MAX || stored > len - head)
        return -1;
    if ((in[0] & 3) == PACKED) {
        int64_t took = read_table(h, in + head, stored);
        if (took < 0)
            return -1;
        table = (size_t)took;
    }
    const uint8_t *stream = in + head + table;
    if (!h->log || !(format ? decode_four(h, room, size, stream, stored - table)
                            : decode(h, room, size, stream, stored - table)))
        return -1;
    *l = (struct fm_literals){ room, size };
    return (int64_t)(head + stored);
}
