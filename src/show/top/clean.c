/* Cleaning text for the terminal; see clean.h. */
#include "show/top/clean.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <wctype.h>

/* Decode one character; what is no UTF-8 gives "?" for one byte. */
static size_t decode(const unsigned char *s, wchar_t *ret)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    *ret = L'?';
    if (n == 0 || s[0] > 0xf4)
        return 1;
    uint32_t value = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) /* the ending NUL, too */
            return 1;
        value = value << 6 | (s[i] & 0x3f);
    }
    if (value < least[n] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
        return 1;
    *ret = (wchar_t)value;
    return n;
}

static bool is_invisible(wchar_t c)
{
    return c == 0xad || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0x61c || c == 0xfeff ||
           (c >= 0xfff0 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe0fff);
}

/* The next character as it is shown, with its width. */
static size_t next(const unsigned char *s, wchar_t *ret, int *width)
{
    size_t n = decode(s, ret);
    *width = *ret < 0x20 || (*ret >= 0x7f && *ret < 0xa0) || is_invisible(*ret) ? -1
             : *ret < 0x7f                                                      ? 1
                                                                                : wcwidth(*ret);
    if (*width < 0) {
        *ret = L'?';
        *width = 1;
    }
    return n;
}

int fm_clean_width(const char *text)
{
    int columns = 0, width;
    wchar_t c;
    for (const unsigned char *s = (const unsigned char *)text; *s; columns += width)
        s += next(s, &c, &width);
    return columns;
}

/* Skip so much in front that the rest takes at most `columns`. */
static const unsigned char *skip_start(const unsigned char *s, int all, int columns)
{
    wchar_t c;
    int width;
    while (*s && all > columns) {
        s += next(s, &c, &width);
        all -= width;
    }
    return s;
}

int fm_clean(wchar_t *out, size_t cap, const char *text, int columns, enum fm_clean_cut cut,
             wchar_t mark)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t len = 0;
    int all = fm_clean_width(text), used = 0, room = columns, width;
    bool shorten = all > columns;
    if (columns < 1 || cap < 2)
        return out[0] = L'\0', 0;
    if (shorten && cut == FM_CLEAN_CUT_START) {
        out[len++] = mark;
        used = 1;
        s = skip_start(s, all, columns - 1);
    } else if (shorten) {
        room--;
    }
    while (*s && len + 2 < cap) {
        wchar_t c;
        s += next(s, &c, &width);
        if (used + width > room)
            break;
        out[len++] = c;
        used += width;
    }
    if (shorten && cut == FM_CLEAN_CUT_END) {
        out[len++] = mark;
        used++;
    }
    out[len] = L'\0';
    return used;
}
