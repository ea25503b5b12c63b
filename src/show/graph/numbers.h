/*
 * Numbers and constants into a buffer, inlined: printf would take most of the time of a large
 * graph. The buffer lacks its final NUL until somebody else adds to it or sets it.
 */
#ifndef FM_GRAPH_NUMBERS_H
#define FM_GRAPH_NUMBERS_H

#include <math.h>
#include <string.h>

#include "base/buffer.h"

static inline void fm_put(struct fm_buffer *out, const char *bytes, size_t len)
{
    if (out->cap - out->len <= len)
        fm_buffer_reserve(out, len);
    memcpy(out->data + out->len, bytes, len);
    out->len += len;
}

static inline void fm_put_count(struct fm_buffer *out, int64_t value)
{
    char digits[24];
    size_t at = sizeof digits;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        digits[--at] = (char)('0' + left % 10);
    } while (left /= 10);
    if (value < 0)
        digits[--at] = '-';
    fm_put(out, digits + at, sizeof digits - at);
}

/* Two decimals, rounded as printf does: only near a tie does it have to be asked. */
static inline void fm_put_hundredths(struct fm_buffer *out, double value)
{
    double scaled = value * 100, whole = floor(scaled), rest = scaled - whole;
    if (!(value >= 0 && value < 1e12) || fabs(rest - 0.5) < 1e-4) {
        fm_buffer_addf(out, "%.2f", value);
        return;
    }
    int64_t n = (int64_t)whole + (rest > 0.5);
    char cents[3] = { '.', (char)('0' + n / 10 % 10), (char)('0' + n % 10) };
    fm_put_count(out, n / 100);
    fm_put(out, cents, sizeof cents);
}

#endif
