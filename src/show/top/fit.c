/* Text in the columns of a screen; see fit.h. */
#include "show/top/fit.h"

#include <stdbool.h>
#include <string.h>
#include <wctype.h>

#include "base/clean.h"
#include "base/utf8.h"

/* The next character of clean text, with its width; one that this system does not know is a "?". */
static size_t next(const char *s, const char *end, wchar_t *ret, int *width)
{
    size_t bytes = fm_utf8_char(s, (size_t)(end - s));
    *ret = (wchar_t)fm_utf8_decode(s, bytes);
    *width = *ret < 0x7f ? 1 : wcwidth(*ret);
    if (*width < 0) {
        *ret = L'?';
        *width = 1;
    }
    return bytes;
}

static int width_of(const char *s, const char *end)
{
    int columns = 0, width;
    wchar_t c;
    for (; s < end; columns += width)
        s += next(s, end, &c, &width);
    return columns;
}

int fm_fit_width(const char *text)
{
    fm_autobuffer clean = FM_BUFFER_INIT;
    fm_clean_add(&clean, text, strlen(text));
    const char *s = fm_buffer_text(&clean);
    return width_of(s, s + clean.len);
}

/* Skip so much in front that the rest takes at most `columns`. */
static const char *skip_start(const char *s, const char *end, int all, int columns)
{
    wchar_t c;
    int width;
    while (s < end && all > columns) {
        s += next(s, end, &c, &width);
        all -= width;
    }
    return s;
}

int fm_fit(wchar_t *out, size_t cap, const char *text, int columns, enum fm_fit_cut cut,
           wchar_t mark)
{
    fm_autobuffer clean = FM_BUFFER_INIT;
    fm_clean_add(&clean, text, strlen(text));
    const char *s = fm_buffer_text(&clean), *end = s + clean.len;
    size_t len = 0;
    int all = width_of(s, end), used = 0, room = columns, width;
    bool shorten = all > columns;
    if (columns < 1 || cap < 2)
        return out[0] = L'\0', 0;
    if (shorten && cut == FM_FIT_CUT_START) {
        out[len++] = mark;
        used = 1;
        s = skip_start(s, end, all, columns - 1);
    } else if (shorten) {
        room--;
    }
    while (s < end && len + 2 < cap) {
        wchar_t c;
        s += next(s, end, &c, &width);
        if (used + width > room)
            break;
        out[len++] = c;
        used += width;
    }
    if (shorten && cut == FM_FIT_CUT_END) {
        out[len++] = mark;
        used++;
    }
    out[len] = L'\0';
    return used;
}
