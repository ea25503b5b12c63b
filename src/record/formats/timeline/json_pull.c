/* JSON read piece by piece; see json_pull.h. */
#include "record/formats/timeline/json_pull.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_NS 2000000000000000000 /* 63 years since 1970, or before */

void fm_pull_init(struct fm_pull *p, const char *text, size_t len)
{
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        len -= 3;
    }
    *p = (struct fm_pull){ .begin = text, .at = text, .end = text + len };
}

void fm_pull_release(struct fm_pull *p)
{
    fm_buffer_release(&p->unescaped);
}

static void fail(struct fm_pull *p)
{
    p->bad = true;
    p->end = p->at;
}

/* The next byte that is no space, comma or colon; 0 at the end. */
static char next_byte(struct fm_pull *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == ',' || *p->at == '\n' || *p->at == '\r' ||
                              *p->at == '\t' || *p->at == ':'))
        p->at++;
    if (p->at < p->end)
        return *p->at;
    p->cut = true;
    return 0;
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '+' || c == '.';
}

char fm_pull_kind(struct fm_pull *p)
{
    char c = next_byte(p);
    return is_word(c) ? '0' : c;
}

bool fm_pull_enter(struct fm_pull *p, char kind)
{
    if (next_byte(p) != kind)
        return false;
    p->at++;
    return true;
}

bool fm_pull_item(struct fm_pull *p)
{
    char c = next_byte(p);
    if (c == ']' || c == '}')
        p->at++;
    return c && c != ']' && c != '}';
}

/* ---- text ---- */

/* Where a string's closing quote is, from behind the opening one; NULL if it has none. */
static const char *find_quote(const char *at, const char *end, bool *escapes)
{
    *escapes = false;
    while (at < end) {
        size_t left = (size_t)(end - at);
        const char *quote = memchr(at, '"', left);
        const char *slash = memchr(at, '\\', quote ? (size_t)(quote - at) : left);
        if (!slash)
            return quote;
        *escapes = true;
        at = slash + 2;
    }
    return NULL;
}

static int hex4(const char *at, const char *end)
{
    int value = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

static void add_utf8(struct fm_buffer *out, uint32_t c)
{
    char bytes[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        bytes[i] = (char)(0x80 | (c & 0x3f));
    bytes[0] = (char)(n == 1 ? c : (0xf00u >> n & 0xff) | c);
    fm_buffer_add(out, bytes, n);
}

/* \uXXXX, or two of them for one character; how many bytes behind "\u" it took. */
static size_t add_unicode(struct fm_buffer *out, const char *at, const char *end)
{
    int high = hex4(at, end), low;
    if (high < 0) {
        fm_buffer_add_text(out, "\xef\xbf\xbd");
        return 0;
    }
    if (high >= 0xd800 && high < 0xdc00 && end - at >= 10 && at[4] == '\\' && at[5] == 'u' &&
        (low = hex4(at + 6, end)) >= 0xdc00 && low < 0xe000) {
        add_utf8(out, 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00));
        return 10;
    }
    add_utf8(out, (uint32_t)high);
    return 4;
}

static void unescape(struct fm_buffer *out, const char *at, const char *end)
{
    static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    fm_buffer_clear(out);
    while (at < end) {
        const char *slash = memchr(at, '\\', (size_t)(end - at));
        fm_buffer_add(out, at, (size_t)((slash ? slash : end) - at));
        if (!slash || slash + 1 >= end)
            return;
        char c = slash[1];
        const char *name = c ? strchr(names, c) : NULL;
        at = slash + 2;
        if (c == 'u')
            at += add_unicode(out, at, end);
        else
            fm_buffer_add_char(out, name ? bytes[name - names] : c);
    }
}

/* A string, behind whose quote `at` stands. */
static bool take_string(struct fm_pull *p, struct fm_slice *text)
{
    bool escapes;
    const char *begin = p->at + 1, *quote = find_quote(begin, p->end, &escapes);
    if (!quote) {
        p->at = p->end;
        p->cut = true;
        return false;
    }
    p->at = quote + 1;
    *text = (struct fm_slice){ begin, (size_t)(quote - begin) };
    if (escapes) {
        unescape(&p->unescaped, begin, quote);
        *text = (struct fm_slice){ fm_buffer_text(&p->unescaped), p->unescaped.len };
    }
    return true;
}

bool fm_pull_key(struct fm_pull *p, struct fm_slice *key)
{
    char c = next_byte(p);
    if (c == '"')
        return take_string(p, key);
    if (c)
        fail(p);
    return false;
}

bool fm_pull_text(struct fm_pull *p, struct fm_slice *text)
{
    char kind = fm_pull_kind(p);
    if (kind == '"')
        return take_string(p, text);
    if (kind != '0') {
        fm_pull_skip(p);
        return false;
    }
    const char *begin = p->at;
    while (p->at < p->end && is_word(*p->at))
        p->at++;
    if (p->at == p->end)
        p->cut = true; /* there may have been more of it */
    *text = (struct fm_slice){ begin, (size_t)(p->at - begin) };
    return true;
}

void fm_pull_skip(struct fm_pull *p)
{
    size_t depth = 0;
    struct fm_slice text;
    do {
        char kind = fm_pull_kind(p);
        if (kind == '"' || kind == '0') {
            bool escapes;
            const char *quote = kind == '"' ? find_quote(p->at + 1, p->end, &escapes) : p->at;
            if (kind == '0')
                fm_pull_text(p, &text);
            else
                p->at = quote ? quote + 1 : p->end;
        } else if (kind == '{' || kind == '[') {
            depth++;
            p->at++;
        } else if ((kind == '}' || kind == ']') && depth) {
            depth--;
            p->at++;
        } else {
            if (kind)
                fail(p);
            return;
        }
    } while (depth);
}

/* ---- numbers ---- */

bool fm_slice_double(const struct fm_slice *s, double *value)
{
    char text[64], *end;
    if (!s->len || s->len >= sizeof text)
        return false;
    memcpy(text, s->text, s->len);
    text[s->len] = 0;
    *value = strtod(text, &end);
    return end != text && !*end && isfinite(*value);
}

bool fm_slice_thousandths(const struct fm_slice *s, int64_t *value)
{
    const char *at = s->text, *end = at + s->len;
    bool negative = at < end && *at == '-';
    int64_t whole = 0;
    unsigned digits = 0, part = 0, places = 0;
    double number;
    for (at += negative; at < end && *at >= '0' && *at <= '9' && digits < 16; at++, digits++)
        whole = whole * 10 + (*at - '0');
    if (digits && at < end && *at == '.')
        for (at++; at < end && *at >= '0' && *at <= '9'; at++, places++) {
            if (places < 3)
                part = part * 10 + (unsigned)(*at - '0');
            else if (places == 3)
                part += *at >= '5';
        }
    if (digits && at == end && whole < LARGEST_NS / 1000) {
        for (unsigned i = places < 3 ? places : 3; i < 3; i++)
            part *= 10;
        *value = whole * 1000 + part;
        *value = negative ? -*value : *value;
        return true;
    }
    if (!fm_slice_double(s, &number) || fabs(number) * 1000 > (double)LARGEST_NS)
        return false;
    *value = llround(number * 1000);
    return true;
}
