/* Objects of the target as text; see render.h. */
#include "watch/cpython/render.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 16, INT_DIGITS = 16 };

struct renderer {
    const struct fm_heap *t;
    const struct fm_render_limits *limits;
    struct fm_buffer *out;
    size_t end;                 /* where `out` shall end at the latest */
    fm_addr parents[MAX_DEPTH]; /* the containers that are open */
    unsigned depth;
};

static void render(struct renderer *r, fm_addr at);

static bool is_full(const struct renderer *r)
{
    return r->out->len >= r->end;
}

/* ---- scalars ---- */

static void add_unreadable(struct renderer *r, fm_addr at)
{
    fm_buffer_addf(r->out, "<unreadable at 0x%llx>", (unsigned long long)at);
}

/* An int of any size in decimal, by dividing the digits of 30 bits by 10⁹ again and again. */
static void add_digits(struct renderer *r, uint32_t *digits, uint64_t n, bool negative)
{
    char text[INT_DIGITS * 10 + 16];
    size_t at = sizeof text;
    text[--at] = 0;
    do {
        uint64_t rest = 0;
        for (uint64_t i = n; i-- > 0;) {
            rest = rest << 30 | digits[i];
            digits[i] = (uint32_t)(rest / 1000000000);
            rest %= 1000000000;
        }
        while (n && !digits[n - 1])
            n--;
        for (int k = 0; k < 9 && (n || rest || k == 0); k++, rest /= 10)
            text[--at] = (char)('0' + rest % 10);
    } while (n);
    if (negative)
        text[--at] = '-';
    fm_buffer_add_text(r->out, text + at);
}

static void render_int(struct renderer *r, fm_addr at, bool is_bool)
{
    const struct fm_layout *l = r->t->layout;
    bool tagged = fm_layout_minor(l) >= 12;
    uint64_t tag = 0;
    uint32_t digits[INT_DIGITS];
    if (fm_remote_read(r->t->remote, at + l->long_tag, &tag, 8) < 0) {
        add_unreadable(r, at);
        return;
    }
    bool negative = tagged ? (tag & 3) == 2 : (int64_t)tag < 0;
    uint64_t n = tagged ? tag >> 3 : negative ? -tag : tag;
    if (n > INT_DIGITS) {
        fm_buffer_addf(r->out, "<int of about %llu bits>", (unsigned long long)n * 30);
        return;
    }
    if (n && fm_remote_read(r->t->remote, at + l->long_digits, digits, n * 4) < 0) {
        add_unreadable(r, at);
        return;
    }
    for (uint64_t i = 0; i < n; i++)
        digits[i] &= 0x3fffffff;
    if (is_bool)
        fm_buffer_add_text(r->out, n && digits[0] ? "True" : "False");
    else
        add_digits(r, digits, n, negative);
}

static void add_double(struct fm_buffer *out, double value)
{
    char text[40];
    if (!isfinite(value)) {
        fm_buffer_add_text(out, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    fm_buffer_add_text(out, text);
    if (!strpbrk(text, ".e"))
        fm_buffer_add_text(out, ".0");
}

static void render_float(struct renderer *r, fm_addr at)
{
    double value;
    if (fm_remote_read(r->t->remote, at + r->t->layout->float_value, &value, 8) < 0)
        add_unreadable(r, at);
    else
        add_double(r->out, value);
}

/* One byte of text in quotes. */
static void add_escaped(struct fm_buffer *out, unsigned char c, bool utf8)
{
    if (c == '\n' || c == '\r' || c == '\t')
        fm_buffer_addf(out, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
    else if (c == '\\' || c == '\'')
        fm_buffer_addf(out, "\\%c", c);
    else if (c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8))
        fm_buffer_addf(out, "\\x%02x", c);
    else
        fm_buffer_add_char(out, (char)c);
}

static void render_str(struct renderer *r, fm_addr at)
{
    char text[512];
    size_t room = is_full(r) ? 8 : r->end - r->out->len + 8;
    if (!fm_object_text(r->t, at, text, room < sizeof text ? room : sizeof text)) {
        add_unreadable(r, at);
        return;
    }
    fm_buffer_add_char(r->out, '\'');
    for (const char *c = text; *c; c++) {
        /* C1 control characters (U+0080–U+009F) could steer a terminal. */
        if ((unsigned char)*c == 0xc2 && (unsigned char)c[1] >= 0x80 && (unsigned char)c[1] < 0xa0)
            fm_buffer_addf(r->out, "\\x%02x", (unsigned char)*++c);
        else
            add_escaped(r->out, (unsigned char)*c, true);
    }
    fm_buffer_add_char(r->out, '\'');
}

static void render_bytes(struct renderer *r, fm_addr at)
{
    const struct fm_layout *l = r->t->layout;
    uint64_t len = 0;
    char bytes[256];
    size_t room = is_full(r) ? 8 : r->end - r->out->len + 8;
    if (fm_remote_read(r->t->remote, at + l->var_size, &len, 8) < 0 || len > 1ull << 48) {
        add_unreadable(r, at);
        return;
    }
    size_t n = len < sizeof bytes ? len : sizeof bytes;
    n = n < room ? n : room;
    if (n && fm_remote_read(r->t->remote, at + l->bytes_data, bytes, n) < 0) {
        add_unreadable(r, at);
        return;
    }
    fm_buffer_add_text(r->out, "b'");
    for (size_t i = 0; i < n; i++)
        add_escaped(r->out, (unsigned char)bytes[i], false);
    fm_buffer_add_text(r->out, n < len ? "…'" : "'");
}

/* ---- containers ---- */

static bool enter(struct renderer *r, fm_addr at)
{
    for (unsigned i = 0; i < r->depth; i++) {
        if (r->parents[i] == at)
            return false;
    }
    if (r->depth >= MAX_DEPTH || r->depth >= r->limits->depth)
        return false;
    r->parents[r->depth++] = at;
    return true;
}

/* The elements, "…" for those that are left out. */
static void add_elements(struct renderer *r, const struct fm_addrs *items, int64_t total)
{
    size_t i;
    for (i = 0; i < items->len && !is_full(r); i++) {
        if (i)
            fm_buffer_add_text(r->out, ", ");
        render(r, items->data[i]);
    }
    if ((int64_t)i < total)
        fm_buffer_add_text(r->out, i ? ", …" : "…");
}

static void render_sequence(struct renderer *r, fm_addr at, bool tuple)
{
    struct fm_addrs items = { 0 };
    int64_t total = fm_sequence_items(r->t, at, r->limits->items, &items);
    if (total < 0) {
        add_unreadable(r, at);
    } else if (!enter(r, at)) {
        fm_buffer_add_text(r->out, total == 0 ? (tuple ? "()" : "[]") : tuple ? "(…)" : "[…]");
    } else {
        fm_buffer_add_char(r->out, tuple ? '(' : '[');
        add_elements(r, &items, total);
        fm_buffer_add_text(r->out, tuple ? (total == 1 ? ",)" : ")") : "]");
        r->depth--;
    }
    fm_vec_release(&items);
}

static void render_set(struct renderer *r, fm_addr at, bool frozen)
{
    struct fm_addrs items = { 0 };
    int64_t total = fm_set_count(r->t, at);
    if (total < 0) {
        add_unreadable(r, at);
        return;
    }
    if (total == 0) {
        fm_buffer_add_text(r->out, frozen ? "frozenset()" : "set()");
        return;
    }
    fm_buffer_add_text(r->out, frozen ? "frozenset({" : "{");
    if (enter(r, at)) {
        fm_set_items(r->t, at, r->limits->items, &items);
        add_elements(r, &items, total);
        r->depth--;
    } else {
        fm_buffer_add_text(r->out, "…");
    }
    fm_buffer_add_text(r->out, frozen ? "})" : "}");
    fm_vec_release(&items);
}

static void render_dict(struct renderer *r, fm_addr at)
{
    struct fm_items items = { 0 };
    int64_t total = fm_dict_count(r->t, at);
    if (total < 0) {
        add_unreadable(r, at);
        return;
    }
    fm_buffer_add_char(r->out, '{');
    if (total && enter(r, at)) {
        fm_dict_items(r->t, at, r->limits->items, &items);
        size_t i;
        for (i = 0; i < items.len && !is_full(r); i++) {
            if (i)
                fm_buffer_add_text(r->out, ", ");
            render(r, items.data[i].key);
            fm_buffer_add_text(r->out, ": ");
            render(r, items.data[i].value);
        }
        if ((int64_t)i < total)
            fm_buffer_add_text(r->out, i ? ", …" : "…");
        r->depth--;
    } else if (total) {
        fm_buffer_add_text(r->out, "…");
    }
    fm_buffer_add_char(r->out, '}');
    fm_vec_release(&items);
}

/* ---- everything else ---- */

void fm_type_render(const struct fm_heap *t, fm_addr type, struct fm_buffer *out)
{
    char name[128], module[128];
    if (!fm_type_name(t, type, name, sizeof name)) {
        fm_buffer_add_text(out, "?");
        return;
    }
    /* tp_name of a class made by Python lacks the module; tp_dict stands behind tp_flags. */
    enum { DICT_BEHIND_FLAGS = 264 - 168 };
    if (fm_type_flags(t, type) & FM_TYPE_HEAP && !strchr(name, '.')) {
        fm_addr at = type + t->layout->type_flags + DICT_BEHIND_FLAGS;
        fm_addr dict = fm_remote_pointer(t->remote, at);
        fm_addr value = fm_dict_find(t, dict, "__module__");
        if (value && fm_object_text(t, value, module, sizeof module) &&
            strcmp(module, "builtins") != 0)
            fm_buffer_addf(out, "%s.", module);
    }
    fm_buffer_add_text(out, name);
}

static void render_function(struct renderer *r, fm_addr at)
{
    const struct fm_layout *l = r->t->layout;
    char name[128];
    /* func_qualname */
    fm_addr where = at + l->object_size + (fm_layout_minor(l) < 10 ? 104 - 16 : 40 - 16);
    if (fm_object_text(r->t, fm_remote_pointer(r->t->remote, where), name, sizeof name))
        fm_buffer_addf(r->out, "<function %s at 0x%llx>", name, (unsigned long long)at);
    else
        fm_buffer_addf(r->out, "<function at 0x%llx>", (unsigned long long)at);
}

static void render_module(struct renderer *r, fm_addr at)
{
    char name[128];
    if (fm_object_text(r->t, fm_module_attribute(r->t, at, "__name__"), name, sizeof name))
        fm_buffer_addf(r->out, "<module '%s'>", name);
    else
        fm_buffer_addf(r->out, "<module at 0x%llx>", (unsigned long long)at);
}

static bool render_named(struct renderer *r, fm_addr at, const char *name)
{
    if (strcmp(name, "NoneType") == 0)
        fm_buffer_add_text(r->out, "None");
    else if (strcmp(name, "ellipsis") == 0)
        fm_buffer_add_text(r->out, "Ellipsis");
    else if (strcmp(name, "NotImplementedType") == 0)
        fm_buffer_add_text(r->out, "NotImplemented");
    else if (strcmp(name, "bool") == 0)
        render_int(r, at, true);
    else if (strcmp(name, "float") == 0)
        render_float(r, at);
    else if (strcmp(name, "set") == 0 || strcmp(name, "frozenset") == 0)
        render_set(r, at, *name == 'f');
    else if (strcmp(name, "function") == 0)
        render_function(r, at);
    else if (strcmp(name, "module") == 0)
        render_module(r, at);
    else
        return false;
    return true;
}

/* By what the type derives from; false if that is nothing that is known. */
static bool render_kind(struct renderer *r, fm_addr at, uint64_t flags)
{
    if (flags & FM_TYPE_LONG)
        render_int(r, at, false);
    else if (flags & FM_TYPE_STR)
        render_str(r, at);
    else if (flags & FM_TYPE_BYTES)
        render_bytes(r, at);
    else if (flags & (FM_TYPE_LIST | FM_TYPE_TUPLE))
        render_sequence(r, at, flags & FM_TYPE_TUPLE);
    else if (flags & FM_TYPE_DICT)
        render_dict(r, at);
    else
        return false;
    return true;
}

static void render(struct renderer *r, fm_addr at)
{
    char name[64];
    fm_addr type = fm_object_type(r->t, at);
    uint64_t flags = fm_type_flags(r->t, type);
    if (!type || !fm_type_name(r->t, type, name, sizeof name)) {
        add_unreadable(r, at);
    } else if (flags & FM_TYPE_TYPE) {
        fm_buffer_add_text(r->out, "<class '");
        fm_type_render(r->t, at, r->out);
        fm_buffer_add_text(r->out, "'>");
    } else if (!(flags & FM_TYPE_HEAP)) {
        if (render_named(r, at, name) || render_kind(r, at, flags))
            return;
        fm_buffer_addf(r->out, "<%s at 0x%llx>", name, (unsigned long long)at);
    } else {
        enum {
            KNOWN = FM_TYPE_LONG | FM_TYPE_STR | FM_TYPE_BYTES | FM_TYPE_LIST | FM_TYPE_TUPLE |
                    FM_TYPE_DICT
        };
        bool known = flags & KNOWN & 0xffffffffu;
        fm_buffer_add_text(r->out, known ? "" : "<");
        fm_type_render(r->t, type, r->out);
        if (known) {
            fm_buffer_add_char(r->out, '(');
            render_kind(r, at, flags);
            fm_buffer_add_char(r->out, ')');
        } else {
            fm_buffer_addf(r->out, " at 0x%llx>", (unsigned long long)at);
        }
    }
}

/* Cut the text at `end`, not inside a character. */
static void cut(struct fm_buffer *out, size_t end)
{
    if (out->len <= end)
        return;
    while (end && ((unsigned char)out->data[end] & 0xc0) == 0x80)
        end--;
    out->len = end;
    out->data[end] = 0;
    fm_buffer_add_text(out, "…");
}

void fm_object_render(const struct fm_heap *t, fm_addr at, const struct fm_render_limits *limits,
                      struct fm_buffer *out)
{
    struct renderer r = { t, limits, out, out->len + limits->bytes, { 0 }, 0 };
    render(&r, at);
    cut(out, r.end);
}
