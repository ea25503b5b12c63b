/* Tables of finite state entropy, as RFC 8878 section 4.1 describes them; see bits.h. */
#include "bits.h"

#define MAX_SYMBOLS 256

bool fm_fse_build(struct fm_fse *fse, const int16_t *counts, unsigned symbols, unsigned log)
{
    uint16_t next[MAX_SYMBOLS];
    unsigned size = 1u << log, high = size, at = 0;
    unsigned step = (size >> 1) + (size >> 3) + 3;
    fse->log = log;
    for (unsigned s = 0; s < symbols; s++) {
        next[s] = counts[s] > 0 ? (uint16_t)counts[s] : 1;
        if (counts[s] == -1 && high)
            fse->table[--high].symbol = (uint8_t)s;
    }
    for (unsigned s = 0; s < symbols; s++)
        for (int i = 0; i < counts[s]; i++) {
            fse->table[at].symbol = (uint8_t)s;
            do
                at = (at + step) & (size - 1);
            while (at >= high && high);
        }
    if (at)
        return false;
    for (unsigned i = 0; i < size; i++) {
        struct fm_fse_entry *e = &fse->table[i];
        unsigned state = next[e->symbol]++;
        e->bits = (uint8_t)(log - (31 - (unsigned)__builtin_clz(state)));
        e->base = (uint16_t)((state << e->bits) - size);
    }
    return true;
}

void fm_fse_single(struct fm_fse *fse, uint8_t symbol)
{
    fse->log = 0;
    fse->table[0] = (struct fm_fse_entry){ .symbol = symbol };
}

/* Bits from the front: `n` of them (at most 16) at bit `at`; those behind the end are zeros. */
static unsigned forward(const uint8_t *in, size_t len, size_t at, unsigned n)
{
    uint32_t value = 0;
    for (size_t i = 0; i < 4 && (at >> 3) + i < len; i++)
        value |= (uint32_t)in[(at >> 3) + i] << 8 * i;
    return value >> (at & 7) & ((1u << n) - 1);
}

/* Numbers of symbols that do not come follow in twos of bits; 3: and more. */
static bool skip_zeros(const uint8_t *in, size_t len, size_t *at, int16_t *counts,
                       unsigned *symbols, unsigned max_symbols)
{
    unsigned more;
    do {
        more = forward(in, len, *at, 2);
        *at += 2;
        for (unsigned i = 0; i < more; i++) {
            if (*symbols >= max_symbols)
                return false;
            counts[(*symbols)++] = 0;
        }
    } while (more == 3 && *at <= len * 8);
    return true;
}

int64_t fm_fse_read(struct fm_fse *fse, const uint8_t *in, size_t len, unsigned max_log,
                    unsigned max_symbols)
{
    int16_t counts[MAX_SYMBOLS];
    unsigned symbols = 0, log = forward(in, len, 0, 4) + 5;
    size_t at = 4;
    if (!len || log > max_log)
        return -1;
    int left = 1 << log;
    while (left > 0) {
        unsigned bits = 32 - (unsigned)__builtin_clz((unsigned)left + 1);
        unsigned value = forward(in, len, at, bits);
        /* Small numbers have a bit less: there are not so many left that all would be needed. */
        unsigned low = (1u << (bits - 1)) - 1, few = (1u << bits) - 1 - ((unsigned)left + 1);
        if ((value & low) < few) {
            value &= low;
            at += bits - 1;
        } else {
            if (value > low)
                value -= few;
            at += bits;
        }
        int count = (int)value - 1;
        left -= count < 0 ? 1 : count;
        if (symbols >= max_symbols || at > len * 8 || left < 0)
            return -1;
        counts[symbols++] = (int16_t)count;
        if (!count && !skip_zeros(in, len, &at, counts, &symbols, max_symbols))
            return -1;
    }
    if (at > len * 8 || !fm_fse_build(fse, counts, symbols, log))
        return -1;
    return (int64_t)((at + 7) / 8);
}
