/*
 * pstats, the format of cProfile, profile, profiling.sampling and yappi: a marshalled dict
 *
 *     {(file, line, name): (cc, nc, tt, ct, {(file, line, name): (nc, cc, tt, ct), ...}), ...}
 *
 * cc primitive calls, nc calls, tt self seconds, ct total seconds. In the callers the first two are
 * the other way round. The `profile` module and the sampler of 3.15 write a plain number of calls
 * there; the sampler also adds the key ("__sampled__",). yappi puts nc before cc in the outer
 * tuple: noticed by a function with more primitive calls than calls, which cannot be, and put
 * right.
 *
 * `python -m profile` names its outermost entry by a code object instead of a text, which Python
 * shows as "<code object NAME at ADDRESS, file …>"; here it is called so without the address.
 *
 * A builtin is ('~', 0, '<built-in ...>') there and a C function without a file in the model. A
 * caller that has no entry of its own becomes a row of zeros.
 */
#include "formats/pstats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "formats/format.h"
#include "formats/marshal.h"
#include "model/label.h"

/* A key as it stands in the file; its number is the order of first appearance. */
struct key {
    uint32_t file, name, line; /* file and name are string ids */
    uint32_t row;              /* FM_NONE while only callers have named it */
};

struct loader {
    struct fm_marshal *m;
    struct fm_profile *p;
    struct fm_flat *flat;
    FM_VEC(struct key) keys;
    uint32_t *index; /* hash table of keys: number + 1, or 0 */
    size_t index_cap;
    FM_VEC(uint32_t) strings; /* by number of the text in the file: its string id + 1, or 0 */
    uint32_t tilde;           /* string id of "~" */
    size_t edges_max;
    int64_t all_calls, all_ns; /* of everything: no sum over the file can overflow */
    struct fm_error *err;
};

static bool recognise(const void *bytes, size_t len)
{
    const uint8_t *b = bytes;
    if (len < 2 || (b[0] & 0x7f) != '{')
        return false;
    int next = b[1] & 0x7f;
    return next == '(' || next == ')' || (len == 2 && b[1] == '0');
}

static int take_count(struct loader *l, const struct fm_marshal_value *v, int64_t *count)
{
    if (v->type != FM_MARSHAL_INT || v->integer < 0 ||
        __builtin_add_overflow(l->all_calls, v->integer, &l->all_calls))
        return fm_error_set(l->err, FM_DAMAGED, "a number of calls is none");
    *count = v->integer;
    return 0;
}

static int take_seconds(struct loader *l, const struct fm_marshal_value *v, int64_t *ns)
{
    double seconds;
    if (!fm_marshal_real(v, &seconds) || !(fabs(seconds) < 9e9))
        return fm_error_set(l->err, FM_DAMAGED, "a time is none");
    *ns = llround(seconds * 1e9);
    if (__builtin_add_overflow(l->all_ns, llabs(*ns), &l->all_ns))
        return fm_error_set(l->err, FM_DAMAGED, "the times add up to more than 292 years");
    return 0;
}

/* A text as a string id. Files name each function many times, by references to one text. */
static uint32_t take_text(struct loader *l, const struct fm_marshal_value *v)
{
    while (l->strings.len <= v->first)
        fm_vec_push(&l->strings, 0);
    uint32_t *known = &l->strings.data[v->first];
    if (!*known)
        *known = fm_strings_add(l->p->strings, fm_marshal_text(l->m, v), v->count) + 1;
    return *known - 1;
}

/* The third part of a key, as a string id. */
static int take_name(struct loader *l, const struct fm_marshal_value *v, uint32_t *name)
{
    if (v->type == FM_MARSHAL_TEXT) {
        *name = take_text(l, v);
        return 0;
    }
    const struct fm_marshal_value *code = fm_marshal_items(l->m, v);
    if (v->type != FM_MARSHAL_CODE || code[0].type != FM_MARSHAL_TEXT ||
        code[1].type != FM_MARSHAL_TEXT)
        return fm_error_set(l->err, FM_DAMAGED, "a key is not (file, line, name)");
    fm_autobuffer text = FM_BUFFER_INIT;
    fm_buffer_addf(&text, "<code object %.*s, file \"%.*s\", line %lld>", (int)code[1].count,
                   fm_marshal_text(l->m, &code[1]), (int)code[0].count,
                   fm_marshal_text(l->m, &code[0]), (long long)code[2].integer);
    *name = fm_strings_add(l->p->strings, text.data, text.len);
    return 0;
}

static uint32_t *index_place(const struct loader *l, const struct key *k)
{
    uint64_t hash = fm_mix64(fm_map_pair(k->file, k->name) ^ (uint64_t)k->line << 40);
    for (size_t i = (size_t)hash & (l->index_cap - 1);; i = (i + 1) & (l->index_cap - 1)) {
        uint32_t number = l->index[i];
        if (!number)
            return &l->index[i];
        const struct key *old = &l->keys.data[number - 1];
        if (old->name == k->name && old->file == k->file && old->line == k->line)
            return &l->index[i];
    }
}

static uint32_t intern_key(struct loader *l, const struct key *k)
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

/* The number of a key. */
static int take_key(struct loader *l, const struct fm_marshal_value *key, uint32_t *number)
{
    const struct fm_marshal_value *v = fm_marshal_items(l->m, key);
    struct key k = { .row = FM_NONE };
    if (key->type != FM_MARSHAL_TUPLE || key->count != 3 || v[0].type != FM_MARSHAL_TEXT ||
        v[1].type != FM_MARSHAL_INT)
        return fm_error_set(l->err, FM_DAMAGED, "a key is not (file, line, name)");
    if (v[1].integer < 0 || v[1].integer > UINT32_MAX)
        return fm_error_set(l->err, FM_DAMAGED, "line %lld is none", (long long)v[1].integer);
    if (take_name(l, &v[2], &k.name) < 0)
        return l->err->status;
    k.file = take_text(l, &v[0]);
    k.line = (uint32_t)v[1].integer;
    *number = intern_key(l, &k);
    return 0;
}

/* The callers of an edge are keys until all rows are known. */
static int load_edge(struct loader *l, uint32_t callee, const struct fm_marshal_value *pair)
{
    struct fm_flat_edge edge = { .callee = callee };
    const struct fm_marshal_value *v = fm_marshal_items(l->m, &pair[1]);
    if (take_key(l, &pair[0], &edge.caller) < 0)
        return l->err->status;
    if (pair[1].type == FM_MARSHAL_INT) {
        if (take_count(l, &pair[1], &edge.calls) < 0)
            return l->err->status;
    } else if (pair[1].type != FM_MARSHAL_TUPLE || pair[1].count != 4) {
        return fm_error_set(l->err, FM_DAMAGED, "a caller is not (nc, cc, tt, ct)");
    } else if (take_count(l, &v[0], &edge.calls) < 0 || take_count(l, &v[1], &edge.primitive) < 0 ||
               take_seconds(l, &v[2], &edge.self_ns) < 0 ||
               take_seconds(l, &v[3], &edge.total_ns) < 0) {
        return l->err->status;
    }
    if (l->flat->edges.len >= l->edges_max)
        return fm_error_set(l->err, FM_DAMAGED, "more callers than the file can hold");
    fm_vec_push(&l->flat->edges, edge);
    return 0;
}

static int load_row(struct loader *l, const struct fm_marshal_value *key,
                    const struct fm_marshal_value *value)
{
    const struct fm_marshal_value *v = fm_marshal_items(l->m, value);
    struct fm_flat_row row = { 0 };
    uint32_t number;
    if (key->type == FM_MARSHAL_TUPLE && key->count == 1 &&
        fm_marshal_text_is(l->m, fm_marshal_items(l->m, key), "__sampled__")) {
        l->flat->sampled = true;
        return 0;
    }
    if (take_key(l, key, &number) < 0)
        return l->err->status;
    if (value->type != FM_MARSHAL_TUPLE || value->count != 5 || v[4].type != FM_MARSHAL_DICT)
        return fm_error_set(l->err, FM_DAMAGED, "a value is not (cc, nc, tt, ct, callers)");
    if (l->keys.data[number].row != FM_NONE)
        return fm_error_set(l->err, FM_DAMAGED, "the function comes twice");
    if (take_count(l, &v[0], &row.primitive) < 0 || take_count(l, &v[1], &row.calls) < 0 ||
        take_seconds(l, &v[2], &row.self_ns) < 0 || take_seconds(l, &v[3], &row.total_ns) < 0)
        return l->err->status;
    uint32_t at = l->keys.data[number].row = (uint32_t)l->flat->rows.len;
    row.func = number; /* a key until all rows are known */
    fm_vec_push(&l->flat->rows, row);
    const struct fm_marshal_value *pairs = fm_marshal_items(l->m, &v[4]);
    for (uint32_t i = 0; i < v[4].count; i += 2) {
        if (load_edge(l, at, &pairs[i]) < 0)
            return fm_error_context(l->err, "caller %u", i / 2 + 1);
    }
    return 0;
}

static int compare_edges(const void *a, const void *b)
{
    const struct fm_flat_edge *x = a, *y = b;
    if (x->callee != y->callee)
        return x->callee < y->callee ? -1 : 1;
    return x->caller < y->caller ? -1 : x->caller > y->caller;
}

static void add_edge(struct fm_flat_edge *sum, const struct fm_flat_edge *e)
{
    sum->calls += e->calls;
    sum->primitive += e->primitive;
    sum->self_ns += e->self_ns;
    sum->total_ns += e->total_ns;
}

/* Sort the edges and unite equal ones. */
static void sort_edges(struct fm_flat *flat)
{
    struct fm_flat_edge *all = flat->edges.data;
    size_t n = flat->edges.len, kept = 0;
    bool sorted = true;
    for (size_t i = 1; i < n && sorted; i++)
        sorted = all[i - 1].callee <= all[i].callee;
    /* Edges of one function lie together in a file: only they need to be put in order. */
    for (size_t first = 0, end; sorted && first < n; first = end) {
        for (end = first + 1; end < n && all[end].callee == all[first].callee;)
            end++;
        if (end - first > 1)
            qsort(all + first, end - first, sizeof *all, compare_edges);
    }
    if (!sorted)
        qsort(all, n, sizeof *all, compare_edges);
    for (size_t i = 1; i < n; i++) {
        if (compare_edges(&all[i], &all[kept]) == 0)
            add_edge(&all[kept], &all[i]);
        else
            all[++kept] = all[i];
    }
    flat->edges.len = n ? kept + 1 : 0;
}

/* yappi's order of the two counts. */
static void correct_swapped(struct loader *l)
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

static uint32_t add_function(struct loader *l, const struct key *k)
{
    struct fm_function f = { .line = k->line, .name = k->name, .qualname = k->name };
    if (k->file == l->tilde && k->line == 0)
        f.kind = FM_FUNCTION_C;
    else
        f.file = k->file;
    return fm_profile_function(l->p, &f);
}

/* Keys become functions, in the order of the dict, which pstats shows; then callers become rows. */
static void settle(struct loader *l)
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
    sort_edges(flat);
}

static int load_all(struct loader *l)
{
    struct fm_marshal_value key, value;
    int status = fm_marshal_enter(l->m);
    for (size_t i = 1; status == 0; i++) {
        status = fm_marshal_next(l->m, &key);
        if (status == 0)
            break;
        if (status < 0 || fm_marshal_next(l->m, &value) < 0)
            return l->err->status;
        status = load_row(l, &key, &value);
        if (status < 0)
            return fm_error_context(l->err, "entry %zu", i);
        fm_marshal_forget(l->m);
    }
    if (status == 0) {
        settle(l);
        correct_swapped(l);
    }
    return status;
}

static struct fm_profile *load(const void *bytes, size_t len, const char *name,
                               struct fm_error *err)
{
    struct loader l = { .p = fm_profile_new(), .err = err, .edges_max = len };
    l.m = fm_marshal_open(bytes, len, err);
    l.flat = l.p->flat = fm_calloc(1, sizeof *l.flat);
    l.tilde = fm_profile_string(l.p, "~");
    int status = load_all(&l);
    fm_vec_release(&l.keys);
    fm_vec_release(&l.strings);
    free(l.index);
    fm_marshal_free(l.m);
    if (status < 0) {
        fm_error_context(err, "reading %s", name);
        fm_profile_free(l.p);
        return NULL;
    }
    return l.p;
}

/* Number the labels in order of appearance; returns how many there are. */
static size_t number_labels(const struct fm_profile *p, const struct fm_flat *flat,
                            uint32_t *row_of)
{
    struct fm_map names = { 0 }, labels = { 0 };
    for (size_t i = 0; i < flat->rows.len; i++) {
        const struct fm_function *f = &p->functions.data[flat->rows.data[i].func];
        uint32_t file = fm_label_is_builtin(p, f) ? UINT32_MAX : f->file;
        uint32_t name = *fm_map_at(&names, fm_map_pair(file, f->name), (uint32_t)names.len, NULL);
        row_of[i] = *fm_map_at(&labels, fm_map_pair(name, f->line), (uint32_t)labels.len, NULL);
    }
    size_t n = labels.len;
    fm_map_release(&names);
    fm_map_release(&labels);
    return n;
}

static void add_row_up(struct fm_flat_row *sum, const struct fm_flat_row *row)
{
    sum->calls += row->calls;
    sum->primitive += row->primitive;
    sum->resumes += row->resumes;
    sum->self_ns += row->self_ns;
    sum->total_ns += row->total_ns;
    sum->suspended_ns += row->suspended_ns;
    if (row->min_ns && (!sum->min_ns || row->min_ns < sum->min_ns))
        sum->min_ns = row->min_ns;
    if (row->max_ns > sum->max_ns)
        sum->max_ns = row->max_ns;
}

struct fm_flat *fm_pstats_unite(const struct fm_profile *p, const struct fm_flat *flat)
{
    fm_autofree uint32_t *row_of = fm_calloc(flat->rows.len, sizeof *row_of);
    if (number_labels(p, flat, row_of) == flat->rows.len)
        return NULL;
    struct fm_flat *united = fm_calloc(1, sizeof *united);
    for (size_t i = 0; i < flat->rows.len; i++) {
        if (row_of[i] == united->rows.len)
            fm_vec_push(&united->rows, flat->rows.data[i]);
        else
            add_row_up(&united->rows.data[row_of[i]], &flat->rows.data[i]);
    }
    fm_vec_reserve(&united->edges, flat->edges.len);
    for (size_t i = 0; i < flat->edges.len; i++) {
        struct fm_flat_edge e = flat->edges.data[i];
        e.caller = row_of[e.caller];
        e.callee = row_of[e.callee];
        fm_vec_push(&united->edges, e);
    }
    sort_edges(united);
    united->sampled = flat->sampled;
    return united;
}

static void put_key(const struct fm_profile *p, uint32_t func, struct fm_buffer *out)
{
    const struct fm_function *f = &p->functions.data[func];
    fm_marshal_put_tuple(out, 3);
    if (fm_label_is_builtin(p, f))
        fm_marshal_put_text(out, "~", 1);
    else
        fm_marshal_put_text(out, fm_profile_text(p, f->file), fm_strings_len(p->strings, f->file));
    fm_marshal_put_int(out, f->line);
    fm_marshal_put_text(out, fm_profile_text(p, f->name), fm_strings_len(p->strings, f->name));
}

static void put_numbers(struct fm_buffer *out, int64_t first, int64_t second, int64_t self_ns,
                        int64_t total_ns)
{
    fm_marshal_put_int(out, first);
    fm_marshal_put_int(out, second);
    fm_marshal_put_float(out, fm_label_seconds(self_ns));
    fm_marshal_put_float(out, fm_label_seconds(total_ns));
}

static int save(const struct fm_profile *p, struct fm_buffer *out, struct fm_error *err)
{
    (void)err;
    struct fm_flat *flat = fm_flat_new(p, NULL), *united = fm_pstats_unite(p, flat);
    size_t e = 0;
    if (united) {
        fm_flat_free(flat);
        flat = united;
    }
    fm_marshal_put_dict(out);
    for (size_t i = 0; i < flat->rows.len; i++) {
        const struct fm_flat_row *row = &flat->rows.data[i];
        put_key(p, row->func, out);
        fm_marshal_put_tuple(out, 5);
        put_numbers(out, row->primitive, row->calls, row->self_ns, row->total_ns);
        fm_marshal_put_dict(out);
        for (; e < flat->edges.len && flat->edges.data[e].callee == i; e++) {
            const struct fm_flat_edge *edge = &flat->edges.data[e];
            put_key(p, flat->rows.data[edge->caller].func, out);
            if (fm_edge_counts_only(edge)) {
                fm_marshal_put_int(out, edge->calls);
                continue;
            }
            fm_marshal_put_tuple(out, 4);
            put_numbers(out, edge->calls, edge->primitive, edge->self_ns, edge->total_ns);
        }
        fm_marshal_put_dict_end(out);
    }
    if (flat->sampled) {
        fm_marshal_put_tuple(out, 1);
        fm_marshal_put_text(out, "__sampled__", 11);
        fm_marshal_put_true(out);
    }
    fm_marshal_put_dict_end(out);
    fm_flat_free(flat);
    return 0;
}

static const char *const suffixes[] = { ".pstats", ".prof", ".pstat", ".profile", NULL };

const struct fm_format fm_format_pstats = {
    .name = "pstats",
    .title = "cProfile's pstats",
    .suffixes = suffixes,
    .recognise = recognise,
    .load = load,
    .save = save,
};
