/*
 * Reading pstats; see pstats.c for the format.
 *
 * One pass over the bytes: the numbers of an entry go straight into a row, those of a caller into
 * an edge. Only what the file may refer to again is kept as a tree of values (marshal.h), and read
 * from there. Functions are known by the order in which the file names them, be it as an entry or
 * as a caller, until the end of the file shows which of them have an entry.
 */
#include <math.h>
#include <stdlib.h>

#include "base/map.h"
#include "record/formats/python/marshal.h"
#include "record/formats/python/pstats.h"

/* A key as it stands in the file; its number is the order of first appearance. */
struct pstats_key {
    uint32_t file, name, line; /* file and name are string ids */
    uint32_t row;              /* FM_NONE while only callers have named it */
};

/* What is known about a text of the file, by its number there. */
struct known {
    uint32_t string;          /* its string id + 1, or 0 */
    uint32_t key, file, line; /* the number + 1 (or 0) of the last key it was the name of */
};

struct pstats_loader {
    struct fm_marshal *m;
    struct fm_profile *p;
    struct fm_flat *flat;
    FM_VEC(struct pstats_key) keys;
    uint32_t *index; /* hash table of keys: number + 1, or 0 */
    size_t index_cap;
    FM_VEC(struct known) texts;
    uint32_t tilde; /* string id of "~" */
    size_t edges_max;
    int64_t all_calls, all_ns; /* of everything: no sum over the file can overflow */
    bool uncounted;            /* there are numbers of calls that nobody counted */
    struct fm_error *err;
};

static int take_count(struct pstats_loader *l, const struct fm_marshal_value *v, int64_t *count)
{
    if (v->type != FM_MARSHAL_INT || v->integer < 0 ||
        __builtin_add_overflow(l->all_calls, v->integer, &l->all_calls))
        return fm_error_set(l->err, FM_DAMAGED, "a number of calls is none");
    *count = v->integer;
    return 0;
}

static bool is_uncounted(const struct fm_marshal_value *v)
{
    return v->type == FM_MARSHAL_INT && v->integer == -1;
}

/* Two numbers of calls; pyinstrument, which counts none, writes -1 for both. */
static int take_counts(struct pstats_loader *l, const struct fm_marshal_value *v, int64_t *first,
                       int64_t *second)
{
    if (is_uncounted(&v[0]) && is_uncounted(&v[1])) {
        l->uncounted = true;
        return 0;
    }
    return take_count(l, &v[0], first) < 0 ? l->err->status : take_count(l, &v[1], second);
}

/* llround, whose call would cost more than it does: what the cast cuts off is exact. */
static int64_t round_half_away(double x)
{
    int64_t whole = (int64_t)x;
    double rest = x - (double)whole;
    return whole + (rest >= 0.5) - (rest <= -0.5);
}

static int take_seconds(struct pstats_loader *l, const struct fm_marshal_value *v, int64_t *ns)
{
    double seconds;
    if (!fm_marshal_real(v, &seconds) || !(fabs(seconds) < 9e9))
        return fm_error_set(l->err, FM_DAMAGED, "a time is none");
    *ns = round_half_away(seconds * 1e9);
    if (__builtin_add_overflow(l->all_ns, llabs(*ns), &l->all_ns))
        return fm_error_set(l->err, FM_DAMAGED, "the times add up to more than 292 years");
    return 0;
}

/* A text as a string id. Files name each function many times, by references to one text. */
static struct known *take_text(struct pstats_loader *l, const struct fm_marshal_value *v)
{
    while (l->texts.len <= v->first)
        fm_vec_push(&l->texts, ((struct known){ 0 }));
    struct known *known = &l->texts.data[v->first];
    if (!known->string) {
        size_t len;
        const char *text = fm_marshal_text(l->m, v, &len);
        known->string = fm_strings_add(l->p->strings, text, len) + 1;
    }
    return known;
}

/* A code object in the place of a name, as a string id. */
static int take_code(struct pstats_loader *l, const struct fm_marshal_value *v, uint32_t *name)
{
    const struct fm_marshal_value *code = fm_marshal_items(l->m, v);
    if (v->type != FM_MARSHAL_CODE || code[0].type != FM_MARSHAL_TEXT ||
        code[1].type != FM_MARSHAL_TEXT)
        return fm_error_set(l->err, FM_DAMAGED, "a key is not (file, line, name)");
    size_t file_len, name_len;
    const char *file_text = fm_marshal_text(l->m, &code[0], &file_len);
    const char *name_text = fm_marshal_text(l->m, &code[1], &name_len);
    fm_autobuffer text = FM_BUFFER_INIT;
    fm_buffer_addf(&text, "<code object %.*s, file \"%.*s\", line %lld>", (int)name_len, name_text,
                   (int)file_len, file_text, (long long)code[2].integer);
    *name = fm_strings_add(l->p->strings, text.data, text.len);
    return 0;
}

static uint32_t *index_place(const struct pstats_loader *l, const struct pstats_key *k)
{
    uint64_t hash = fm_mix64(fm_map_pair(k->file, k->name) ^ (uint64_t)k->line << 40);
    for (size_t i = (size_t)hash & (l->index_cap - 1);; i = (i + 1) & (l->index_cap - 1)) {
        uint32_t number = l->index[i];
        if (!number)
            return &l->index[i];
        const struct pstats_key *old = &l->keys.data[number - 1];
        if (old->name == k->name && old->file == k->file && old->line == k->line)
            return &l->index[i];
    }
}

static uint32_t intern_key(struct pstats_loader *l, const struct pstats_key *k)
{
    if (l->keys.len * 2 >= l->index_cap) {
        free(l->index);
        l->index_cap = l->index_cap ? l->index_cap * 2 : 1024;
        l->index = fm_calloc(l->index_cap, sizeof *l->index);
        for (uint32_t i = 0; i < l->keys.len; i++)
            *index_place(l, &l->keys.data[i]) = i + 1;
    }
    uint32_t *place = index_place(l, k);
    if (!*place) {
        fm_vec_push(&l->keys, *k);
        *place = (uint32_t)l->keys.len;
    }
    return *place - 1;
}

/* The number of the key made of these three. */
static int take_key_parts(struct pstats_loader *l, const struct fm_marshal_value *v,
                          uint32_t *number)
{
    struct pstats_key k = { .row = FM_NONE };
    struct known *name = NULL;
    if (v[0].type != FM_MARSHAL_TEXT || v[1].type != FM_MARSHAL_INT)
        return fm_error_set(l->err, FM_DAMAGED, "a key is not (file, line, name)");
    if (v[1].integer < 0 || v[1].integer > UINT32_MAX)
        return fm_error_set(l->err, FM_DAMAGED, "line %lld is none", (long long)v[1].integer);
    k.line = (uint32_t)v[1].integer;
    k.file = take_text(l, &v[0])->string - 1;
    if (v[2].type == FM_MARSHAL_TEXT) {
        name = take_text(l, &v[2]);
        k.name = name->string - 1;
        if (name->key && name->file == k.file && name->line == k.line) {
            *number = name->key - 1;
            return 0;
        }
    } else if (take_code(l, &v[2], &k.name) < 0) {
        return l->err->status;
    }
    *number = intern_key(l, &k);
    if (name) {
        name->key = *number + 1;
        name->file = k.file;
        name->line = k.line;
    }
    return 0;
}

static int take_key(struct pstats_loader *l, const struct fm_marshal_value *key, uint32_t *number)
{
    if (key->type != FM_MARSHAL_TUPLE || key->count != 3)
        return fm_error_set(l->err, FM_DAMAGED, "a key is not (file, line, name)");
    return take_key_parts(l, fm_marshal_items(l->m, key), number);
}

static int push_edge(struct pstats_loader *l, const struct fm_flat_edge *edge)
{
    if (l->flat->edges.len >= l->edges_max)
        return fm_error_set(l->err, FM_DAMAGED, "more callers than the file can hold");
    fm_vec_push(&l->flat->edges, *edge);
    return 0;
}

/* The numbers of an edge whose callee and caller are set. */
static int take_edge_parts(struct pstats_loader *l, struct fm_flat_edge *edge,
                           const struct fm_marshal_value *v)
{
    if (take_counts(l, v, &edge->calls, &edge->primitive) < 0 ||
        take_seconds(l, &v[2], &edge->self_ns) < 0 || take_seconds(l, &v[3], &edge->total_ns) < 0)
        return l->err->status;
    return push_edge(l, edge);
}

static int take_edge(struct pstats_loader *l, struct fm_flat_edge *edge,
                     const struct fm_marshal_value *v)
{
    if (v->type == FM_MARSHAL_INT)
        return take_count(l, v, &edge->calls) < 0 ? l->err->status : push_edge(l, edge);
    if (v->type != FM_MARSHAL_TUPLE || v->count != 4)
        return fm_error_set(l->err, FM_DAMAGED, "a caller is not (nc, cc, tt, ct)");
    return take_edge_parts(l, edge, fm_marshal_items(l->m, v));
}

static int read_key_parts(struct pstats_loader *l, uint32_t *number)
{
    struct fm_marshal_value v[3];
    bool ok = fm_marshal_values(l->m, v, 3) == 0 && take_key_parts(l, v, number) == 0;
    return ok ? 1 : l->err->status;
}

/* Read one caller: 1; 0 at the end of them. It is a key until all rows are known. */
static int read_edge(struct pstats_loader *l, uint32_t callee)
{
    struct fm_flat_edge edge = { .callee = callee };
    struct fm_marshal_value v[4];
    int status;
    if (fm_marshal_tuple_enter(l->m, 3)) {
        status = read_key_parts(l, &edge.caller);
    } else {
        status = fm_marshal_next(l->m, v);
        if (status == 1 && take_key(l, v, &edge.caller) < 0)
            return l->err->status;
    }
    if (status <= 0)
        return status;
    if (fm_marshal_tuple_enter(l->m, 4))
        status = fm_marshal_values(l->m, v, 4) < 0 ? -1 : take_edge_parts(l, &edge, v);
    else
        status = fm_marshal_values(l->m, v, 1) < 0 ? -1 : take_edge(l, &edge, v);
    return status < 0 ? l->err->status : 1;
}

static int take_callers(struct pstats_loader *l, uint32_t callee,
                        const struct fm_marshal_value *dict)
{
    const struct fm_marshal_value *pairs = fm_marshal_items(l->m, dict);
    for (uint32_t i = 0; i < dict->count; i += 2) {
        struct fm_flat_edge edge = { .callee = callee };
        if (take_key(l, &pairs[i], &edge.caller) < 0 || take_edge(l, &edge, &pairs[i + 1]) < 0)
            return fm_error_context(l->err, "caller %u", i / 2 + 1);
    }
    return 0;
}

static int take_row(struct pstats_loader *l, uint32_t number, const struct fm_marshal_value *v)
{
    struct fm_flat_row row = { .func = number }; /* a key until all rows are known */
    if (l->keys.data[number].row != FM_NONE)
        return fm_error_set(l->err, FM_DAMAGED, "the function comes twice");
    if (take_counts(l, v, &row.primitive, &row.calls) < 0 ||
        take_seconds(l, &v[2], &row.self_ns) < 0 || take_seconds(l, &v[3], &row.total_ns) < 0)
        return l->err->status;
    l->keys.data[number].row = (uint32_t)l->flat->rows.len;
    fm_vec_push(&l->flat->rows, row);
    return 0;
}

static int read_callers(struct pstats_loader *l, uint32_t row)
{
    uint32_t i = 1;
    int status;
    if (!fm_marshal_dict_enter(l->m)) {
        struct fm_marshal_value dict;
        if (fm_marshal_values(l->m, &dict, 1) < 0)
            return l->err->status;
        if (dict.type != FM_MARSHAL_DICT)
            return fm_error_set(l->err, FM_DAMAGED, "a value is not (cc, nc, tt, ct, callers)");
        return take_callers(l, row, &dict);
    }
    while ((status = read_edge(l, row)) > 0)
        i++;
    return status < 0 ? fm_error_context(l->err, "caller %u", i) : 0;
}

/* Read what stands behind the key `number`. */
static int read_row(struct pstats_loader *l, uint32_t number)
{
    struct fm_marshal_value v[4];
    uint32_t row = (uint32_t)l->flat->rows.len;
    if (fm_marshal_tuple_enter(l->m, 5)) {
        bool ok = fm_marshal_values(l->m, v, 4) == 0 && take_row(l, number, v) == 0;
        return ok ? read_callers(l, row) : l->err->status;
    }
    if (fm_marshal_values(l->m, v, 1) < 0)
        return l->err->status;
    const struct fm_marshal_value *items = fm_marshal_items(l->m, v);
    if (v->type != FM_MARSHAL_TUPLE || v->count != 5 || items[4].type != FM_MARSHAL_DICT)
        return fm_error_set(l->err, FM_DAMAGED, "a value is not (cc, nc, tt, ct, callers)");
    return take_row(l, number, items) < 0 ? l->err->status : take_callers(l, row, &items[4]);
}

/* Read what stands behind a key that names no function: only the sampler's mark is such a key. */
static int read_mark(struct pstats_loader *l, const struct fm_marshal_value *key)
{
    struct fm_marshal_value value;
    if (fm_marshal_values(l->m, &value, 1) < 0)
        return l->err->status;
    if (key->type != FM_MARSHAL_TUPLE || key->count != 1 ||
        !fm_marshal_text_is(l->m, fm_marshal_items(l->m, key), "__sampled__"))
        return fm_error_set(l->err, FM_DAMAGED, "a key is not (file, line, name)");
    l->flat->sampled = true;
    return 1;
}

/* Read one entry of the outermost dict: 1; 0 at its end. */
static int read_entry(struct pstats_loader *l)
{
    struct fm_marshal_value key;
    uint32_t number;
    int status;
    if (fm_marshal_tuple_enter(l->m, 3)) {
        status = read_key_parts(l, &number);
    } else {
        status = fm_marshal_next(l->m, &key);
        if (status == 1 && (key.type != FM_MARSHAL_TUPLE || key.count != 3))
            return read_mark(l, &key);
        if (status == 1 && take_key(l, &key, &number) < 0)
            return l->err->status;
    }
    if (status <= 0)
        return status;
    status = read_row(l, number);
    fm_marshal_forget(l->m);
    return status < 0 ? status : 1;
}

/* yappi's order of the two counts. */
static void correct_swapped(struct pstats_loader *l)
{
    struct fm_flat_row *rows = l->flat->rows.data;
    bool swapped = false;
    for (size_t i = 0; i < l->flat->rows.len; i++)
        swapped = swapped || rows[i].primitive > rows[i].calls;
    if (!swapped || l->flat->sampled)
        return;
    for (size_t i = 0; i < l->flat->rows.len; i++) {
        int64_t calls = rows[i].primitive;
        rows[i].primitive = rows[i].calls;
        rows[i].calls = calls;
    }
    fm_profile_note(l->p, FM_NONE, "corrected", 0,
                    "the file holds calls and primitive calls the other way round, as yappi writes "
                    "them; they are shown the right way");
}

static uint32_t add_function(struct pstats_loader *l, const struct pstats_key *k)
{
    struct fm_function f = { .line = k->line, .name = k->name, .qualname = k->name };
    if (k->file == l->tilde && k->line == 0)
        f.kind = FM_FUNCTION_C;
    else
        f.file = k->file;
    return fm_profile_function(l->p, &f);
}

/* Keys become functions, in the order of the dict, which pstats shows; then callers become rows. */
static void settle(struct pstats_loader *l)
{
    struct fm_flat *flat = l->flat;
    for (uint32_t i = 0; i < l->keys.len; i++) {
        if (l->keys.data[i].row != FM_NONE)
            continue;
        l->keys.data[i].row = (uint32_t)flat->rows.len;
        fm_vec_push(&flat->rows, ((struct fm_flat_row){ .func = i }));
    }
    for (size_t i = 0; i < flat->rows.len; i++)
        flat->rows.data[i].func = add_function(l, &l->keys.data[flat->rows.data[i].func]);
    for (size_t i = 0; i < flat->edges.len; i++)
        flat->edges.data[i].caller = l->keys.data[flat->edges.data[i].caller].row;
    fm_pstats_sort_edges(flat);
}

static int load_all(struct pstats_loader *l)
{
    int status = fm_marshal_enter(l->m);
    if (status < 0)
        return status;
    for (size_t i = 1; (status = read_entry(l)) != 0; i++) {
        if (status < 0)
            return fm_error_context(l->err, "entry %zu", i);
    }
    settle(l);
    correct_swapped(l);
    if (l->uncounted)
        fm_profile_note(l->p, FM_NONE, "uncounted", 0,
                        "the file has times, but not how often functions were called");
    return 0;
}

struct fm_profile *fm_pstats_load(const void *bytes, size_t len, const char *name,
                                  struct fm_error *err)
{
    struct pstats_loader l = { .p = fm_profile_new(), .err = err, .edges_max = len };
    l.m = fm_marshal_open(bytes, len, err);
    l.flat = l.p->flat = fm_calloc(1, sizeof *l.flat);
    /* Memory that is not touched costs nothing, and growing costs: room for what is usual. */
    fm_vec_reserve(&l.flat->rows, len / 128);
    fm_vec_reserve(&l.flat->edges, len / 40);
    fm_vec_reserve(&l.keys, len / 128);
    l.tilde = fm_profile_string(l.p, "~");
    int status = load_all(&l);
    fm_vec_release(&l.keys);
    fm_vec_release(&l.texts);
    free(l.index);
    fm_marshal_free(l.m);
    if (status < 0) {
        fm_error_context(err, "reading %s", name);
        fm_profile_free(l.p);
        return NULL;
    }
    return l.p;
}
