/* Numbers for people; see number.h. */
#include "show/report/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define APART_DIGITS 3 /* more than usual; what is closer is told in bytes */

char *fm_number_time(char *out, int64_t ns)
{
    /* Below one of these, that many digits behind the point, in that unit: 3 to 4 digits in all. */
    static const struct {
        double below_ns, unit_ns;
        int digits;
        const char *unit;
    } steps[] = {
        { 999.5, 1, 0, "ns" },     { 9.995e3, 1e3, 2, "µs" }, { 99.95e3, 1e3, 1, "µs" },
        { 999.5e3, 1e3, 0, "µs" }, { 9.995e6, 1e6, 2, "ms" }, { 99.95e6, 1e6, 1, "ms" },
        { 999.5e6, 1e6, 0, "ms" }, { 9.9995e9, 1e9, 3, "s" }, { 99.995e9, 1e9, 2, "s" },
        { 600e9, 1e9, 1, "s" },
    };
    double size = fabs((double)ns);
    if (ns == 0)
        return memcpy(out, "0", sizeof "0");
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (size < steps[i].below_ns) {
            snprintf(out, FM_NUMBER_BYTES, "%.*f %s", steps[i].digits,
                     (double)ns / steps[i].unit_ns, steps[i].unit);
            return out;
        }
    }
    long long seconds = llround(size / 1e9);
    const char *sign = ns < 0 ? "-" : "";
    if (seconds < 3600)
        snprintf(out, FM_NUMBER_BYTES, "%s%lld min %02lld s", sign, seconds / 60, seconds % 60);
    else
        snprintf(out, FM_NUMBER_BYTES, "%s%lld h %02lld min", sign, seconds / 3600,
                 seconds / 60 % 60);
    return out;
}

/* With so many digits behind the point more than usual. */
static char *print_bytes(char *out, int64_t bytes, int more)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double value = (double)bytes, size = fabs(value);
    size_t unit = 0;
    if (bytes == 0)
        return memcpy(out, "0", sizeof "0");
    for (; unit + 1 < sizeof units / sizeof units[0] && size >= 999.5; unit++, value /= 1024)
        size /= 1024;
    int digits = !unit ? 0 : more + (size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
    snprintf(out, FM_NUMBER_BYTES, "%.*f %s", digits, value, units[unit]);
    return out;
}

char *fm_number_bytes(char *out, int64_t bytes)
{
    return print_bytes(out, bytes, 0);
}

void fm_number_bytes_apart(char *out, int64_t bytes, char *out_other, int64_t other)
{
    for (int more = 0; more <= APART_DIGITS; more++) {
        print_bytes(out, bytes, more);
        print_bytes(out_other, other, more);
        if (bytes == other || strcmp(out, out_other) != 0)
            return;
    }
    char count[FM_NUMBER_BYTES];
    snprintf(out, FM_NUMBER_BYTES, "%.40s B", fm_number_count(count, bytes));
    snprintf(out_other, FM_NUMBER_BYTES, "%.40s B", fm_number_count(count, other));
}

char *fm_number_count(char *out, int64_t count)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%lld", (long long)count), at = 0;
    for (int i = 0; i < n; i++) {
        out[at++] = digits[i];
        if (digits[i] != '-' && i < n - 1 && (n - 1 - i) % 3 == 0)
            out[at++] = ',';
    }
    out[at] = '\0';
    return out;
}

char *fm_number_calls(char *out, int64_t calls, int64_t primitive)
{
    fm_number_count(out, calls);
    if (calls != primitive) {
        size_t n = strlen(out);
        char other[FM_NUMBER_BYTES];
        snprintf(out + n, FM_NUMBER_BYTES - n, "/%s", fm_number_count(other, primitive));
    }
    return out;
}

char *fm_number_percent(char *out, double part, double whole)
{
    double percent = whole > 0 ? part / whole * 100 : 0;
    out[0] = '\0';
    if (percent > 0 && percent < 0.05)
        snprintf(out, FM_NUMBER_BYTES, "<0.1");
    else if (percent != 0)
        snprintf(out, FM_NUMBER_BYTES, "%.1f", percent);
    return out;
}

char *fm_number_repr(char *out, double value)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, FM_NUMBER_BYTES, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            break;
    }
    if (!strpbrk(out, ".e"))
        snprintf(out, FM_NUMBER_BYTES, "%.1f", value);
    return out;
}

/* Decode one character; a byte that is no UTF-8 counts as itself. */
static size_t decode(const unsigned char *s, size_t left, uint32_t *c)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    *c = s[0];
    if (n == 1 || n > left)
        return 1;
    uint32_t value = s[0] & (0xff >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 1;
        value = value << 6 | (s[i] & 0x3f);
    }
    *c = value;
    return n;
}

size_t fm_text_width(const char *text, size_t len)
{
    size_t width = 0;
    for (size_t i = 0; i < len;) {
        uint32_t c;
        i += decode((const unsigned char *)text + i, len - i, &c);
        int w = c < 0x300 ? 1 : wcwidth((wchar_t)c);
        width += w < 0 ? 1 : (size_t)w;
    }
    return width;
}
