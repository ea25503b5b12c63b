/*
 * Reading marshal; see marshal.h.
 *
 * The CPython facts relied on (Python/marshal.c, unchanged since 3.4): a value with FLAG_REF takes
 * the next reference number when its type byte is read, containers before their items; 'r' names
 * such a number. 'a', 'A', 'z' and 'Z' hold Latin-1; 'u' and 't' hold UTF-8 with surrogatepass. In
 * Python 2 every 't' takes the next number of a second list, and 'R' names it; 's' is its text.
 *
 * A code object is a row of numbers and values that changed in 3.11: six numbers before, five
 * since, in front of the bytecode, which is bytes ('s') or a reference to some.
 */
#include "record/formats/python/marshal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "base/vec.h"

#define FLAG_REF  0x80
#define DEPTH_MAX 32

/* What a reference number stands for, in 32 bits, since a file has as many numbers as functions and
 * refers to them all over: two bits say what the others are. */
enum ref_tag {
    REF_TEXT,  /* the number of a text */
    REF_INT,   /* a small integer that is not negative */
    REF_VALUE, /* the place of any other value in `shared` */
    REF_OPEN,  /* a container that is still being read */
};
#define REF_MAX (UINT32_MAX >> 2)

struct text {
    const char *bytes;
    size_t len;
};

struct fm_marshal {
    const uint8_t *start, *at, *end;
    FM_VEC(struct fm_marshal_value) items; /* of complete containers */
    FM_VEC(struct fm_marshal_value) stack; /* of the containers that are still open */
    FM_VEC(uint32_t) refs;
    FM_VEC(struct fm_marshal_value) shared;
    FM_VEC(size_t) interned; /* numbers of texts */
    FM_VEC(struct text) texts;
    FM_VEC(char *) recoded; /* the texts that are not as in the file */
    size_t kept;            /* items below this are referred to, or may be */
    bool keep;              /* a container above it may be referred to */
    struct fm_error *err;
};

static int fail(struct fm_marshal *r, const char *what)
{
    return fm_error_set(r->err, FM_DAMAGED, "byte %zu: %s", (size_t)(r->at - r->start), what);
}

static const uint8_t *take(struct fm_marshal *r, size_t bytes)
{
    if ((size_t)(r->end - r->at) < bytes)
        return NULL;
    const uint8_t *place = r->at;
    r->at += bytes;
    return place;
}

static uint32_t get_u32(const uint8_t *b)
{
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static double get_double(const uint8_t *b)
{
    uint64_t bits = (uint64_t)get_u32(b + 4) << 32 | get_u32(b);
    double real;
    memcpy(&real, &bits, sizeof real);
    return real;
}

static int take_int32(struct fm_marshal *r, int32_t *value)
{
    const uint8_t *b = take(r, 4);
    if (!b)
        return fail(r, "the file ends in the middle of a number");
    *value = (int32_t)get_u32(b);
    return 0;
}

static bool utf8_valid(const uint8_t *s, size_t len)
{
    for (size_t i = 0, step; i < len; i += step) {
        step = fm_utf8_char((const char *)s + i, len - i);
        if (!step)
            return false;
    }
    return true;
}

static bool is_ascii(const uint8_t *s, size_t len)
{
    for (; len >= 8; s += 8, len -= 8) {
        uint64_t eight;
        memcpy(&eight, s, 8);
        if (eight & 0x8080808080808080u)
            return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (s[i] & 0x80)
            return false;
    }
    return true;
}

static const char *recode_latin1(struct fm_marshal *r, const uint8_t *s, size_t len,
                                 size_t *out_len)
{
    char *text = fm_malloc(len * 2 + 1);
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (s[i] & 0x80) {
            text[n++] = (char)(0xc0 | s[i] >> 6);
            text[n++] = (char)(0x80 | (s[i] & 0x3f));
        } else {
            text[n++] = (char)s[i];
        }
    }
    fm_vec_push(&r->recoded, text);
    *out_len = n;
    return text;
}

static int read_text(struct fm_marshal *r, struct fm_marshal_value *v, int type)
{
    size_t len;
    if (type == 'z' || type == 'Z') {
        const uint8_t *b = take(r, 1);
        if (!b)
            return fail(r, "the file ends in the middle of a text");
        len = *b;
    } else {
        int32_t n = 0;
        if (take_int32(r, &n) < 0)
            return r->err->status;
        if (n < 0)
            return fail(r, "a text has a negative length");
        len = (size_t)n;
    }
    const uint8_t *s = take(r, len);
    if (!s)
        return fail(r, "a text runs past the end");
    /* Python 2 puts file names in as raw bytes: what is no UTF-8 is taken as Latin-1. */
    bool as_is = is_ascii(s, len) || (strchr("sut", type) && utf8_valid(s, len));
    if (!as_is && type == 'u')
        return fail(r, "a text is not UTF-8");
    v->type = FM_MARSHAL_TEXT;
    v->first = r->texts.len;
    struct text text = { (const char *)s, len };
    if (!as_is)
        text.bytes = recode_latin1(r, s, len, &text.len);
    fm_vec_push(&r->texts, text);
    if (type == 't')
        fm_vec_push(&r->interned, v->first);
    return 0;
}

/* 'l': a count of 15-bit digits, negative for a negative number, least digit first. */
static int read_long(struct fm_marshal *r, struct fm_marshal_value *v)
{
    int32_t n = 0;
    if (take_int32(r, &n) < 0)
        return r->err->status;
    size_t digits = n < 0 ? (size_t)(-(int64_t)n) : (size_t)n;
    const uint8_t *b = take(r, digits * 2);
    if (!b)
        return fail(r, "a number runs past the end");
    double real = 0;
    uint64_t magnitude = 0;
    bool huge = false;
    for (size_t i = digits; i-- > 0;) {
        uint32_t digit = (uint32_t)b[2 * i] | (uint32_t)b[2 * i + 1] << 8;
        if (digit > 0x7fff)
            return fail(r, "a number has a bad digit");
        huge = huge || magnitude >> 48;
        magnitude = magnitude << 15 | digit;
        real = real * 32768 + digit;
    }
    if (huge || magnitude > INT64_MAX) {
        v->type = FM_MARSHAL_HUGE;
        v->real = n < 0 ? -real : real;
    } else {
        v->type = FM_MARSHAL_INT;
        v->integer = n < 0 ? -(int64_t)magnitude : (int64_t)magnitude;
    }
    return 0;
}

static int read_float(struct fm_marshal *r, struct fm_marshal_value *v, int type)
{
    v->type = FM_MARSHAL_FLOAT;
    if (type == 'g') {
        const uint8_t *b = take(r, 8);
        if (!b)
            return fail(r, "the file ends in the middle of a number");
        v->real = get_double(b);
        return 0;
    }
    const uint8_t *n = take(r, 1);
    const uint8_t *digits = n ? take(r, *n) : NULL;
    if (!digits)
        return fail(r, "the file ends in the middle of a number");
    char text[256], *rest;
    memcpy(text, digits, *n);
    text[*n] = '\0';
    v->real = strtod(text, &rest);
    if (rest == text || *rest)
        return fail(r, "a number is not one");
    return 0;
}

static int read_value(struct fm_marshal *r, struct fm_marshal_value *v, int depth);

/* Read `n` items, or up to the end mark if `n` is negative, and move them to their final place. */
static int read_items(struct fm_marshal *r, struct fm_marshal_value *v, int64_t n, int depth)
{
    size_t base = r->stack.len;
    for (int64_t i = 0; n < 0 || i < n; i++) {
        struct fm_marshal_value item;
        if (read_value(r, &item, depth + 1) < 0)
            return r->err->status;
        if (item.type == FM_MARSHAL_END) {
            if (n < 0 && i % 2 == 0)
                break;
            return fail(r, "an end mark in the wrong place");
        }
        fm_vec_push(&r->stack, item);
    }
    size_t count = r->stack.len - base;
    if (count > UINT32_MAX)
        return fail(r, "too many items");
    v->first = r->items.len;
    v->count = (uint32_t)count;
    fm_vec_reserve(&r->items, v->first + count);
    if (count)
        memcpy(r->items.data + v->first, r->stack.data + base, count * sizeof *r->stack.data);
    r->items.len += count;
    r->stack.len = base;
    return 0;
}

static int read_container(struct fm_marshal *r, struct fm_marshal_value *v, int type, int depth)
{
    int32_t n = -1;
    if (depth >= DEPTH_MAX)
        return fail(r, "values are nested too deeply");
    if (type == ')') {
        const uint8_t *b = take(r, 1);
        if (!b)
            return fail(r, "the file ends in the middle of a tuple");
        n = *b;
    } else if (type != '{') {
        if (take_int32(r, &n) < 0)
            return r->err->status;
        if (n < 0)
            return fail(r, "a tuple has a negative length");
    }
    if (read_items(r, v, n, depth) < 0)
        return r->err->status;
    v->type = type == '{'                  ? FM_MARSHAL_DICT
              : type == '['                ? FM_MARSHAL_LIST
              : type == '<' || type == '>' ? FM_MARSHAL_OTHER
                                           : FM_MARSHAL_TUPLE;
    return 0;
}

/* Read past `n` values, keeping those numbered `file` and `name`. */
static int skip_values(struct fm_marshal *r, int n, int file, int name,
                       struct fm_marshal_value *kept, int depth)
{
    for (int i = 0; i < n; i++) {
        struct fm_marshal_value v;
        if (read_value(r, &v, depth + 1) < 0)
            return r->err->status;
        if (v.type == FM_MARSHAL_END)
            return fail(r, "an end mark in the wrong place");
        if (i == file || i == name)
            kept[i == name] = v;
    }
    return 0;
}

static int read_code(struct fm_marshal *r, struct fm_marshal_value *v, int depth)
{
    struct fm_marshal_value kept[3] = { 0 };
    size_t left = (size_t)(r->end - r->at);
    int32_t line = 0;
    /* In the older layout byte 24 is the type of the bytecode. In the newer one that is byte 20,
     * and byte 24 ends a length or a reference number, which would be huge were it not 0. */
    bool older = left > 24 && r->at[24] != 0;
    if (depth >= DEPTH_MAX)
        return fail(r, "values are nested too deeply");
    if (!take(r, older ? 24 : 20))
        return fail(r, "the file ends in the middle of a code object");
    /* code consts names varnames freevars cellvars FILE NAME | code consts names localsplusnames
     * localspluskinds FILE NAME qualname; then the first line and one or two tables. */
    if (skip_values(r, 8, older ? 6 : 5, older ? 7 : 6, kept, depth) < 0 ||
        take_int32(r, &line) < 0 || skip_values(r, older ? 1 : 2, -1, -1, kept, depth) < 0)
        return r->err->status;
    kept[2] = (struct fm_marshal_value){ .type = FM_MARSHAL_INT, .integer = line };
    *v = (struct fm_marshal_value){ .type = FM_MARSHAL_CODE, .count = 3 };
    v->first = r->items.len;
    for (int i = 0; i < 3; i++)
        fm_vec_push(&r->items, kept[i]);
    return 0;
}

/* What only code holds: read past it. */
static int read_other(struct fm_marshal *r, struct fm_marshal_value *v, int type, int depth)
{
    struct fm_marshal_value kept[2];
    v->type = FM_MARSHAL_OTHER;
    if (type == 'y')
        return take(r, 16) ? 0 : fail(r, "the file ends in the middle of a number");
    if (type == ':') /* a slice: start, stop, step */
        return depth < DEPTH_MAX ? skip_values(r, 3, -1, -1, kept, depth)
                                 : fail(r, "values are nested too deeply");
    if (type == 'x') {
        struct fm_marshal_value part;
        return read_float(r, &part, 'f') < 0 ? r->err->status : read_float(r, &part, 'f');
    }
    return 0; /* StopIteration, Ellipsis */
}

/* Give the reference number `n` its value. */
static int ref_set(struct fm_marshal *r, size_t n, const struct fm_marshal_value *v)
{
    size_t payload = r->shared.len;
    enum ref_tag tag = REF_VALUE;
    if (v->type == FM_MARSHAL_TEXT) {
        tag = REF_TEXT;
        payload = v->first;
    } else if (v->type == FM_MARSHAL_INT && v->integer >= 0 && v->integer <= REF_MAX) {
        tag = REF_INT;
        payload = (size_t)v->integer;
    } else {
        fm_vec_push(&r->shared, *v);
    }
    if (payload > REF_MAX)
        return fail(r, "too many values");
    r->refs.data[n] = (uint32_t)payload << 2 | tag;
    return 0;
}

/* False: the value is not complete. */
static inline bool ref_get(const struct fm_marshal *r, uint32_t n, struct fm_marshal_value *v)
{
    uint32_t ref = r->refs.data[n], payload = ref >> 2;
    switch ((enum ref_tag)(ref & 3)) {
    case REF_TEXT:
        *v = (struct fm_marshal_value){ .type = FM_MARSHAL_TEXT, .first = payload };
        return true;
    case REF_INT:
        *v = (struct fm_marshal_value){ .type = FM_MARSHAL_INT, .integer = payload };
        return true;
    case REF_VALUE:
        *v = r->shared.data[payload];
        return true;
    case REF_OPEN:
        break;
    }
    return false;
}

static int read_reference(struct fm_marshal *r, struct fm_marshal_value *v, int type)
{
    int32_t n = 0;
    if (take_int32(r, &n) < 0)
        return r->err->status;
    size_t len = type == 'r' ? r->refs.len : r->interned.len;
    if (n < 0 || (size_t)n >= len)
        return fail(r, "a reference to nothing");
    if (type == 'R')
        *v = (struct fm_marshal_value){ .type = FM_MARSHAL_TEXT, .first = r->interned.data[n] };
    else if (!ref_get(r, (uint32_t)n, v))
        return fail(r, "a value contains itself");
    return 0;
}

static int read_integer(struct fm_marshal *r, struct fm_marshal_value *v, int type)
{
    int32_t low = 0, high = 0;
    v->type = FM_MARSHAL_INT;
    if (take_int32(r, &low) < 0)
        return r->err->status;
    v->integer = low;
    if (type == 'i')
        return 0;
    if (take_int32(r, &high) < 0)
        return r->err->status;
    v->integer = (int64_t)((uint64_t)(uint32_t)high << 32 | (uint32_t)low);
    return 0;
}

static int read_typed(struct fm_marshal *r, struct fm_marshal_value *v, int type, int depth)
{
    switch (type) {
    case '0':
        v->type = FM_MARSHAL_END;
        return 0;
    case 'N':
        v->type = FM_MARSHAL_NONE;
        return 0;
    case 'T':
    case 'F':
        v->type = FM_MARSHAL_BOOL;
        v->integer = type == 'T';
        return 0;
    case 'i':
    case 'I':
        return read_integer(r, v, type);
    case 'l':
        return read_long(r, v);
    case 'g':
    case 'f':
        return read_float(r, v, type);
    case 's':
    case 't':
    case 'u':
    case 'a':
    case 'A':
    case 'z':
    case 'Z':
        return read_text(r, v, type);
    case '(':
    case ')':
    case '[':
    case '{':
    case '<':
    case '>':
        return read_container(r, v, type, depth);
    case 'r':
    case 'R':
        return read_reference(r, v, type);
    case 'c':
        return read_code(r, v, depth);
    case 'x':
    case 'y':
    case ':':
    case 'S':
    case '.':
        return read_other(r, v, type, depth);
    }
    r->at--;
    return fail(r, "a value of a kind that no profile holds");
}

/* The kinds that a profile is full of, when they are as they should be. False: nothing was read. */
static inline bool read_common(struct fm_marshal *r, struct fm_marshal_value *v)
{
    const uint8_t *b = r->at;
    if (r->end - b < 9)
        return false;
    int type = *b & ~FLAG_REF;
    uint32_t number = get_u32(b + 1);
    if (*b == 'r') {
        if (number >= r->refs.len || !ref_get(r, number, v))
            return false;
        r->at += 5;
        return true;
    }
    if (type == 'i') {
        if (*b & FLAG_REF) {
            if (number > REF_MAX)
                return false;
            fm_vec_push(&r->refs, number << 2 | REF_INT);
        }
        *v = (struct fm_marshal_value){ .type = FM_MARSHAL_INT, .integer = (int32_t)number };
        r->at += 5;
        return true;
    }
    if (*b == 'g') {
        *v = (struct fm_marshal_value){ .type = FM_MARSHAL_FLOAT, .real = get_double(b + 1) };
        r->at += 9;
        return true;
    }
    return false;
}

static int read_value(struct fm_marshal *r, struct fm_marshal_value *v, int depth)
{
    if (read_common(r, v))
        return 0;
    const uint8_t *b = take(r, 1);
    if (!b)
        return fail(r, "the file ends in the middle of a value");
    memset(v, 0, sizeof *v);
    size_t ref = r->refs.len;
    bool referable = *b & FLAG_REF;
    if (referable)
        fm_vec_push(&r->refs, REF_OPEN);
    if (read_typed(r, v, *b & ~FLAG_REF, depth) < 0)
        return r->err->status;
    if (!referable)
        return 0;
    r->keep = r->keep || (v->type >= FM_MARSHAL_TUPLE && v->count);
    return ref_set(r, ref, v);
}

struct fm_marshal *fm_marshal_open(const void *bytes, size_t len, struct fm_error *err)
{
    struct fm_marshal *m = fm_calloc(1, sizeof *m);
    m->start = m->at = bytes;
    m->end = m->start + len;
    m->err = err;
    fm_vec_reserve(&m->refs, len / 32);
    return m;
}

int fm_marshal_enter(struct fm_marshal *m)
{
    const uint8_t *b = take(m, 1);
    if (!b || (*b & ~FLAG_REF) != '{')
        return fail(m, "not a dict");
    if (*b & FLAG_REF)
        fm_vec_push(&m->refs, REF_OPEN);
    return 0;
}

int fm_marshal_next(struct fm_marshal *m, struct fm_marshal_value *v)
{
    if (read_value(m, v, 1) < 0)
        return m->err->status;
    return v->type != FM_MARSHAL_END;
}

int fm_marshal_values(struct fm_marshal *m, struct fm_marshal_value *v, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (read_value(m, &v[i], 1) < 0)
            return m->err->status;
        if (v[i].type == FM_MARSHAL_END)
            return fail(m, "an end mark in the wrong place");
    }
    return 0;
}

bool fm_marshal_tuple_enter(struct fm_marshal *m, uint8_t count)
{
    size_t left = (size_t)(m->end - m->at);
    if (left >= 2 && m->at[0] == ')' && m->at[1] == count)
        m->at += 2;
    else if (left >= 5 && m->at[0] == '(' && get_u32(m->at + 1) == count)
        m->at += 5;
    else
        return false;
    return true;
}

bool fm_marshal_dict_enter(struct fm_marshal *m)
{
    if (m->at == m->end || *m->at != '{')
        return false;
    m->at++;
    return true;
}

void fm_marshal_forget(struct fm_marshal *m)
{
    if (m->keep)
        m->kept = m->items.len;
    m->items.len = m->kept;
    m->keep = false;
}

void fm_marshal_free(struct fm_marshal *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->recoded.len; i++)
        free(m->recoded.data[i]);
    fm_vec_release(&m->recoded);
    fm_vec_release(&m->texts);
    fm_vec_release(&m->interned);
    fm_vec_release(&m->shared);
    fm_vec_release(&m->refs);
    fm_vec_release(&m->stack);
    fm_vec_release(&m->items);
    free(m);
}

const struct fm_marshal_value *fm_marshal_items(const struct fm_marshal *m,
                                                const struct fm_marshal_value *v)
{
    bool container = v->type >= FM_MARSHAL_TUPLE && v->type < FM_MARSHAL_END;
    return container && v->count ? m->items.data + v->first : NULL;
}

bool fm_marshal_real(const struct fm_marshal_value *v, double *real)
{
    if (v->type == FM_MARSHAL_FLOAT || v->type == FM_MARSHAL_HUGE)
        *real = v->real;
    else if (v->type == FM_MARSHAL_INT || v->type == FM_MARSHAL_BOOL)
        *real = (double)v->integer;
    else
        return false;
    return true;
}

const char *fm_marshal_text(const struct fm_marshal *m, const struct fm_marshal_value *v,
                            size_t *len)
{
    *len = m->texts.data[v->first].len;
    return m->texts.data[v->first].bytes;
}

bool fm_marshal_text_is(const struct fm_marshal *m, const struct fm_marshal_value *v,
                        const char *text)
{
    if (v->type != FM_MARSHAL_TEXT)
        return false;
    const struct text *t = &m->texts.data[v->first];
    return t->len == strlen(text) && memcmp(t->bytes, text, t->len) == 0;
}
