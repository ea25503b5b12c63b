/*
 * Reading pickle; see pickle.h.
 *
 * The facts relied on (CPython's Lib/pickletools.py): a stack of values; a mark on it begins a
 * group; lists and dicts are made empty, then filled, in one go or several; PUT and MEMOIZE number
 * the value on top so that GET may push it again (MEMOIZE by the number of values numbered so far);
 * a frame is only a hint about how to read. Protocol 0 has numbers and texts as lines, protocols 0
 * and 1 make objects by copyreg._reconstructor(class, object, None).
 *
 * One function per group of instructions; the table `instructions` is the whole of what is
 * accepted.
 */
#include "record/formats/python/pickle.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/vec.h"
#include "record/formats/python/pickle_text.h"

#define PROTOCOL_MAX 5

struct container {
    FM_VEC(struct fm_pickle_value) items;
};

struct fm_pickle {
    const uint8_t *start, *at, *end;
    const char *const *classes;
    FM_VEC(struct fm_pickle_value) stack;
    FM_VEC(size_t) marks; /* heights of the stack */
    FM_VEC(struct container) containers;
    FM_VEC(struct fm_pickle_value) memo;
    struct fm_map memo_index; /* number in the file → memo */
    FM_VEC(char *) recoded;   /* texts that are not as in the file */
    bool stopped;
    struct fm_error *err;
};

/* ---- the input ---- */

static int fail(struct fm_pickle *p, const char *what)
{
    return fm_error_set(p->err, FM_DAMAGED, "byte %zu: %s", (size_t)(p->at - p->start), what);
}

static const uint8_t *take(struct fm_pickle *p, uint64_t bytes)
{
    if ((size_t)(p->end - p->at) < bytes) {
        fail(p, "the file ends early");
        return NULL;
    }
    const uint8_t *place = p->at;
    p->at += bytes;
    return place;
}

/* A little-endian number of `width` bytes. */
static int take_number(struct fm_pickle *p, unsigned width, uint64_t *value)
{
    const uint8_t *b = take(p, width);
    if (!b)
        return p->err->status;
    *value = 0;
    for (unsigned i = 0; i < width; i++)
        *value |= (uint64_t)b[i] << 8 * i;
    return 0;
}

/* The rest of the line, without its end. */
static int take_line(struct fm_pickle *p, const char **line, size_t *len)
{
    *line = "";
    *len = 0;
    const uint8_t *newline = memchr(p->at, '\n', (size_t)(p->end - p->at));
    if (!newline)
        return fail(p, "the file ends in the middle of a line");
    *line = (const char *)p->at;
    *len = (size_t)(newline - p->at);
    p->at = newline + 1;
    return 0;
}

/* ---- the stack ---- */

static int push(struct fm_pickle *p, struct fm_pickle_value v)
{
    fm_vec_push(&p->stack, v);
    return 0;
}

/* Values above the last mark. */
static size_t group(const struct fm_pickle *p)
{
    return p->stack.len - (p->marks.len ? p->marks.data[p->marks.len - 1] : 0);
}

static int need(struct fm_pickle *p, size_t values)
{
    return group(p) < values ? fail(p, "a value is missing") : 0;
}

static struct fm_pickle_value *top(struct fm_pickle *p, size_t below)
{
    return &p->stack.data[p->stack.len - 1 - below];
}

static int need_mark(struct fm_pickle *p)
{
    return p->marks.len ? 0 : fail(p, "a mark is missing");
}

static int push_text(struct fm_pickle *p, enum fm_pickle_type type, const char *text, size_t len)
{
    if (len > UINT32_MAX)
        return fail(p, "a text is too long");
    return push(p, (struct fm_pickle_value){ .type = type, .bytes = (uint32_t)len, .text = text });
}

/* A text made here; it is kept until the end. */
static int push_recoded(struct fm_pickle *p, enum fm_pickle_type type, struct fm_buffer *text)
{
    size_t len = text->len;
    char *kept = fm_buffer_detach(text);
    fm_vec_push(&p->recoded, kept);
    return push_text(p, type, kept, len);
}

/* ---- numbers ---- */

static int read_constant(struct fm_pickle *p, uint8_t op)
{
    if (op == 'N')
        return push(p, (struct fm_pickle_value){ .type = FM_PICKLE_NONE });
    return push(p, (struct fm_pickle_value){ .type = FM_PICKLE_BOOL, .integer = op == 0x88 });
}

static int read_int(struct fm_pickle *p, uint8_t op)
{
    uint64_t value;
    if (take_number(p, op == 'K' ? 1 : op == 'M' ? 2 : 4, &value) < 0)
        return p->err->status;
    int64_t integer = op == 'J' ? (int32_t)(uint32_t)value : (int64_t)value;
    return push(p, (struct fm_pickle_value){ .type = FM_PICKLE_INT, .integer = integer });
}

/* LONG1, LONG4: two's complement in as many bytes as it says. */
static int read_long(struct fm_pickle *p, uint8_t op)
{
    uint64_t bytes, value = 0;
    if (take_number(p, op == 0x8a ? 1 : 4, &bytes) < 0)
        return p->err->status;
    if (bytes > 8)
        return fail(p, "a number has more than 64 bits");
    if (take_number(p, (unsigned)bytes, &value) < 0)
        return p->err->status;
    if (bytes && bytes < 8 && value >> (8 * bytes - 1))
        value |= UINT64_MAX << 8 * bytes;
    return push(p, (struct fm_pickle_value){ .type = FM_PICKLE_INT, .integer = (int64_t)value });
}

/* INT, LONG, FLOAT of protocol 0: as text. */
static int read_number_line(struct fm_pickle *p, uint8_t op)
{
    const char *line;
    char copy[64], *rest;
    size_t len;
    struct fm_pickle_value v = { .type = FM_PICKLE_INT };
    if (take_line(p, &line, &len) < 0)
        return p->err->status;
    if (op == 'L' && len && line[len - 1] == 'L')
        len--;
    if (!len || len >= sizeof copy)
        return fail(p, "a number is none");
    memcpy(copy, line, len);
    copy[len] = '\0';
    errno = 0;
    if (op == 'F') {
        v.type = FM_PICKLE_FLOAT;
        v.real = strtod(copy, &rest);
    } else {
        v.integer = strtoll(copy, &rest, 10);
        if (errno)
            return fail(p, "a number has more than 64 bits");
    }
    if (*rest)
        return fail(p, "a number is none");
    if (op == 'I' && len == 2 && copy[0] == '0')
        v.type = FM_PICKLE_BOOL;
    return push(p, v);
}

static int read_float(struct fm_pickle *p, uint8_t op)
{
    const uint8_t *b = take(p, 8);
    uint64_t bits = 0;
    struct fm_pickle_value v = { .type = FM_PICKLE_FLOAT };
    (void)op;
    if (!b)
        return p->err->status;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | b[i];
    memcpy(&v.real, &bits, sizeof bits);
    return push(p, v);
}

/* ---- texts ---- */

static int read_text(struct fm_pickle *p, uint8_t op)
{
    unsigned width = 4;
    enum fm_pickle_type type = FM_PICKLE_TEXT;
    uint64_t len;
    if (op == 0x8c || op == 'C' || op == 'U')
        width = 1;
    else if (op == 0x8d || op == 0x8e)
        width = 8;
    if (op == 'B' || op == 'C' || op == 0x8e)
        type = FM_PICKLE_BYTES;
    if (take_number(p, width, &len) < 0)
        return p->err->status;
    const uint8_t *text = take(p, len);
    return text ? push_text(p, type, (const char *)text, (size_t)len) : p->err->status;
}

static int read_text_line(struct fm_pickle *p, uint8_t op)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    const char *line;
    size_t len;
    if (take_line(p, &line, &len) < 0)
        return p->err->status;
    if (op == 'S') {
        if (len < 2 || (line[0] != '\'' && line[0] != '"') || line[len - 1] != line[0])
            return fail(p, "a text has no quotes");
        line++;
        len -= 2;
    }
    if (!fm_pickle_unescape(line, len, op == 'V', &text))
        return fail(p, "a text has a broken escape");
    return push_recoded(p, FM_PICKLE_TEXT, &text);
}

/* ---- containers ---- */

static struct container *container_of(struct fm_pickle *p, const struct fm_pickle_value *v)
{
    return &p->containers.data[v->container];
}

/* A new container of the topmost `count` values, which leave the stack. */
static int push_container(struct fm_pickle *p, enum fm_pickle_type type, size_t count)
{
    struct container c = { 0 };
    struct fm_pickle_value v = { .type = type, .container = p->containers.len };
    if (count)
        fm_vec_reserve(&c.items, count);
    for (size_t i = 0; i < count; i++)
        fm_vec_push(&c.items, *top(p, count - 1 - i));
    p->stack.len -= count;
    fm_vec_push(&p->containers, c);
    return push(p, v);
}

static int read_empty(struct fm_pickle *p, uint8_t op)
{
    return push_container(p,
                          op == ')'   ? FM_PICKLE_TUPLE
                          : op == ']' ? FM_PICKLE_LIST
                                      : FM_PICKLE_DICT,
                          0);
}

static int read_mark(struct fm_pickle *p, uint8_t op)
{
    (void)op;
    fm_vec_push(&p->marks, p->stack.len);
    return 0;
}

/* TUPLE, LIST, DICT: of everything above the mark. */
static int read_group(struct fm_pickle *p, uint8_t op)
{
    if (need_mark(p) < 0)
        return p->err->status;
    size_t count = group(p);
    if (op == 'd' && count % 2)
        return fail(p, "a dict has a key without a value");
    p->marks.len--;
    return push_container(p,
                          op == 't'   ? FM_PICKLE_TUPLE
                          : op == 'l' ? FM_PICKLE_LIST
                                      : FM_PICKLE_DICT,
                          count);
}

static int read_small_tuple(struct fm_pickle *p, uint8_t op)
{
    size_t count = op - 0x84u;
    return need(p, count) < 0 ? p->err->status : push_container(p, FM_PICKLE_TUPLE, count);
}

/* Move the topmost `count` values into the list or dict below them. */
static int fill(struct fm_pickle *p, enum fm_pickle_type type, size_t count)
{
    if (need(p, count + 1) < 0)
        return p->err->status;
    struct fm_pickle_value *into = top(p, count);
    if (into->type != type)
        return fail(p, "items for something that is no list or dict");
    struct container *c = container_of(p, into);
    for (size_t i = 0; i < count; i++)
        fm_vec_push(&c->items, *top(p, count - 1 - i));
    p->stack.len -= count;
    return 0;
}

static int read_append(struct fm_pickle *p, uint8_t op)
{
    return fill(p, op == 'a' ? FM_PICKLE_LIST : FM_PICKLE_DICT, op == 'a' ? 1 : 2);
}

static int read_appends(struct fm_pickle *p, uint8_t op)
{
    if (need_mark(p) < 0)
        return p->err->status;
    size_t count = group(p);
    if (op == 'u' && count % 2)
        return fail(p, "a dict has a key without a value");
    p->marks.len--;
    return fill(p, op == 'e' ? FM_PICKLE_LIST : FM_PICKLE_DICT, count);
}

/* ---- the stack and the memo ---- */

static int read_pop(struct fm_pickle *p, uint8_t op)
{
    if (op == '1' || (op == '0' && p->marks.len && !group(p))) {
        if (need_mark(p) < 0)
            return p->err->status;
        p->stack.len = p->marks.data[--p->marks.len];
        return 0;
    }
    if (need(p, 1) < 0)
        return p->err->status;
    struct fm_pickle_value v = *top(p, 0);
    if (op == '2')
        return push(p, v);
    p->stack.len--;
    return 0;
}

static int take_memo_number(struct fm_pickle *p, uint8_t op, uint64_t *number)
{
    const char *line;
    size_t len;
    if (op == 'q' || op == 'h')
        return take_number(p, 1, number);
    if (op == 'r' || op == 'j')
        return take_number(p, 4, number);
    if (take_line(p, &line, &len) < 0)
        return p->err->status;
    *number = 0;
    for (size_t i = 0; i < len; i++) {
        if (line[i] < '0' || line[i] > '9' || i >= 10)
            return fail(p, "a number of a value is none");
        *number = *number * 10 + (uint64_t)(line[i] - '0');
    }
    return 0;
}

static int read_put(struct fm_pickle *p, uint8_t op)
{
    uint64_t number = p->memo.len;
    if (op != 0x94 && take_memo_number(p, op, &number) < 0)
        return p->err->status;
    if (need(p, 1) < 0)
        return p->err->status;
    bool is_new;
    uint32_t at = *fm_map_at(&p->memo_index, number, (uint32_t)p->memo.len, &is_new);
    if (is_new)
        fm_vec_push(&p->memo, *top(p, 0));
    else
        p->memo.data[at] = *top(p, 0);
    return 0;
}

static int read_get(struct fm_pickle *p, uint8_t op)
{
    uint64_t number;
    if (take_memo_number(p, op, &number) < 0)
        return p->err->status;
    const uint32_t *at = fm_map_find(&p->memo_index, number);
    return at ? push(p, p->memo.data[*at]) : fail(p, "a value is used before it is there");
}

/* ---- classes and objects ---- */

static bool text_is(const struct fm_pickle_value *v, const char *text)
{
    return v->bytes == strlen(text) && memcmp(v->text, text, v->bytes) == 0;
}

/* A name of the input in a message: short, and in one line. */
static int refuse_name(struct fm_pickle *p, const struct fm_pickle_value *v)
{
    char name[128];
    size_t n = 0;
    if (v->type != FM_PICKLE_GLOBAL)
        return fail(p, "it calls something that is no class");
    for (; n < v->bytes && n < sizeof name - 1; n++)
        name[n] = v->text[n] >= ' ' && v->text[n] <= '~' ? v->text[n] : '?';
    name[n] = '\0';
    return fm_error_set(p->err, FM_NOT_RECORDING,
                        "the pickle asks for %s, which no profile needs; nothing in it was run",
                        name);
}

static bool is_class(const struct fm_pickle *p, const struct fm_pickle_value *v)
{
    for (const char *const *c = p->classes; v->type == FM_PICKLE_GLOBAL && *c; c++)
        if (text_is(v, *c))
            return true;
    return false;
}

static int read_global(struct fm_pickle *p, uint8_t op)
{
    fm_autobuffer name = FM_BUFFER_INIT;
    const char *part;
    size_t len;
    if (op == 'c') {
        for (int i = 0; i < 2; i++) {
            if (take_line(p, &part, &len) < 0)
                return p->err->status;
            fm_buffer_add_text(&name, i ? "." : "");
            fm_buffer_add(&name, part, len);
        }
        return push_recoded(p, FM_PICKLE_GLOBAL, &name);
    }
    if (need(p, 2) < 0)
        return p->err->status;
    const struct fm_pickle_value *module = top(p, 1), *attribute = top(p, 0);
    if (module->type != FM_PICKLE_TEXT || attribute->type != FM_PICKLE_TEXT)
        return fail(p, "a class has no name");
    fm_buffer_add(&name, module->text, module->bytes);
    fm_buffer_add_char(&name, '.');
    fm_buffer_add(&name, attribute->text, attribute->bytes);
    p->stack.len -= 2;
    return push_recoded(p, FM_PICKLE_GLOBAL, &name);
}

/* Is this copyreg._reconstructor(class, object, None), as protocols 0 and 1 write it? */
static bool is_reconstruction(const struct fm_pickle *p, const struct fm_pickle_value *callable,
                              const struct fm_pickle_value *arguments)
{
    size_t count;
    const struct fm_pickle_value *item = fm_pickle_items(p, arguments, &count);
    return callable->type == FM_PICKLE_GLOBAL &&
           (text_is(callable, "copy_reg._reconstructor") ||
            text_is(callable, "copyreg._reconstructor")) &&
           count == 3 && is_class(p, &item[0]) && item[1].type == FM_PICKLE_GLOBAL &&
           (text_is(&item[1], "__builtin__.object") || text_is(&item[1], "builtins.object")) &&
           item[2].type == FM_PICKLE_NONE;
}

/* NEWOBJ, REDUCE: a class and a tuple of arguments become an object, which is made nowhere. */
static int read_object(struct fm_pickle *p, uint8_t op)
{
    if (need(p, 2) < 0)
        return p->err->status;
    const struct fm_pickle_value *callable = top(p, 1), *arguments = top(p, 0);
    if (arguments->type != FM_PICKLE_TUPLE)
        return fail(p, "an object's arguments are no tuple");
    bool again = op == 'R' && is_reconstruction(p, callable, arguments);
    if (!again && !is_class(p, callable))
        return refuse_name(p, callable);
    struct fm_pickle_value made = *arguments, none = { .type = FM_PICKLE_NONE };
    p->stack.len -= 2;
    push(p, again ? none : made);
    push(p, none);
    return push_container(p, FM_PICKLE_OBJECT, 2);
}

static int read_build(struct fm_pickle *p, uint8_t op)
{
    (void)op;
    if (need(p, 2) < 0)
        return p->err->status;
    if (top(p, 1)->type != FM_PICKLE_OBJECT)
        return fail(p, "a state for something that is no object");
    struct fm_pickle_value *state = &container_of(p, top(p, 1))->items.data[1];
    if (state->type != FM_PICKLE_NONE)
        return fail(p, "an object has two states");
    *state = *top(p, 0);
    p->stack.len--;
    return 0;
}

/* ---- the whole ---- */

static int read_protocol(struct fm_pickle *p, uint8_t op)
{
    uint64_t value;
    if (take_number(p, op == 0x80 ? 1 : 8, &value) < 0)
        return p->err->status;
    if (op == 0x80 && value > PROTOCOL_MAX)
        return fm_error_set(p->err, FM_NEWER, "pickle protocol %d, this Fathom reads up to %d",
                            (int)value, PROTOCOL_MAX);
    return 0;
}

static int read_stop(struct fm_pickle *p, uint8_t op)
{
    (void)op;
    p->stopped = true;
    return need(p, 1);
}

typedef int instruction(struct fm_pickle *p, uint8_t op);

/* clang-format off */
static instruction *const instructions[256] = {
    [0x80] = read_protocol, [0x95] = read_protocol, ['.'] = read_stop,
    ['N'] = read_constant, [0x88] = read_constant, [0x89] = read_constant,
    ['J'] = read_int, ['K'] = read_int, ['M'] = read_int, [0x8a] = read_long, [0x8b] = read_long,
    ['I'] = read_number_line, ['L'] = read_number_line, ['F'] = read_number_line,
    ['G'] = read_float,
    ['X'] = read_text, [0x8c] = read_text, [0x8d] = read_text, ['T'] = read_text, ['U'] = read_text,
    ['B'] = read_text, ['C'] = read_text, [0x8e] = read_text,
    ['V'] = read_text_line, ['S'] = read_text_line,
    [')'] = read_empty, [']'] = read_empty, ['}'] = read_empty, ['('] = read_mark,
    ['t'] = read_group, ['l'] = read_group, ['d'] = read_group,
    [0x85] = read_small_tuple, [0x86] = read_small_tuple, [0x87] = read_small_tuple,
    ['a'] = read_append, ['s'] = read_append, ['e'] = read_appends, ['u'] = read_appends,
    ['0'] = read_pop, ['1'] = read_pop, ['2'] = read_pop,
    ['p'] = read_put, ['q'] = read_put, ['r'] = read_put, [0x94] = read_put,
    ['g'] = read_get, ['h'] = read_get, ['j'] = read_get,
    ['c'] = read_global, [0x93] = read_global,
    [0x81] = read_object, ['R'] = read_object, ['b'] = read_build,
};
/* clang-format on */

static int decode(struct fm_pickle *p)
{
    while (!p->stopped) {
        const uint8_t *op = take(p, 1);
        if (!op)
            return p->err->status;
        if (!instructions[*op])
            return fm_error_set(p->err, FM_NOT_RECORDING,
                                "byte %zu: a pickle instruction (0x%02x) that no profile needs",
                                (size_t)(op - p->start), *op);
        if (instructions[*op](p, *op) < 0)
            return p->err->status;
    }
    return 0;
}

struct fm_pickle *fm_pickle_open(const void *bytes, size_t len, const char *const *classes,
                                 struct fm_error *err)
{
    struct fm_pickle *p = fm_calloc(1, sizeof *p);
    p->start = p->at = bytes;
    p->end = p->start + len;
    p->classes = classes;
    p->err = err;
    if (decode(p) == 0)
        return p;
    fm_pickle_free(p);
    return NULL;
}

void fm_pickle_free(struct fm_pickle *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->containers.len; i++)
        fm_vec_release(&p->containers.data[i].items);
    for (size_t i = 0; i < p->recoded.len; i++)
        free(p->recoded.data[i]);
    fm_vec_release(&p->stack);
    fm_vec_release(&p->marks);
    fm_vec_release(&p->containers);
    fm_vec_release(&p->memo);
    fm_map_release(&p->memo_index);
    fm_vec_release(&p->recoded);
    free(p);
}

const struct fm_pickle_value *fm_pickle_root(const struct fm_pickle *p)
{
    return &p->stack.data[p->stack.len - 1];
}

const struct fm_pickle_value *fm_pickle_items(const struct fm_pickle *p,
                                              const struct fm_pickle_value *v, size_t *count)
{
    *count = 0;
    if (v->type < FM_PICKLE_TUPLE)
        return NULL;
    const struct container *c = &p->containers.data[v->container];
    *count = c->items.len;
    return c->items.data;
}

const struct fm_pickle_value *fm_pickle_find(const struct fm_pickle *p,
                                             const struct fm_pickle_value *dict, const char *key)
{
    size_t count;
    const struct fm_pickle_value *items = fm_pickle_items(p, dict, &count);
    for (size_t i = count; dict->type == FM_PICKLE_DICT && i >= 2; i -= 2)
        if (items[i - 2].type == FM_PICKLE_TEXT && text_is(&items[i - 2], key))
            return &items[i - 1]; /* of two equal keys the later one counts */
    return NULL;
}
