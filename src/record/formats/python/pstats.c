/*
 * pstats, the format of cProfile, profile, profiling.sampling and yappi: a marshalled dict
 *
 *     {(file, line, name): (cc, nc, tt, ct, {(file, line, name): (nc, cc, tt, ct), ...}), ...}
 *
 * cc primitive calls, nc calls, tt self seconds, ct total seconds. In the callers the first two are
 * the other way round. The `profile` module and the sampler of 3.15 write a plain number of calls
 * there; the sampler also adds the key ("__sampled__",). yappi puts nc before cc in the outer tuple:
 * noticed by a function with more primitive calls than calls, which cannot be, and put right.
 * pyinstrument, which counts no calls, writes -1: read as 0.
 *
 * `python -m profile` names its outermost entry by a code object instead of a text, which Python
 * shows as "<code object NAME at ADDRESS, file …>"; here it is called so without the address.
 *
 * Samples are written as calls: both counts are of samples with the function on the stack, the times
 * are theirs, and there is no mark, because no pstats before 3.15 opens a file that has it.
 *
 * A builtin is ('~', 0, '<built-in ...>') there and a C function without a file in the model. A
 * caller that has no entry of its own becomes a row of zeros.
 *
 * Here: recognising, writing, and what both directions share. pstats_read.c reads.
 */
#include "record/formats/python/pstats.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "record/formats/format.h"
#include "record/formats/python/marshal.h"
#include "record/model/derive/label.h"

#define FEW 16

static bool recognise(const void *bytes, size_t len)
{
    const uint8_t *b = bytes;
    if (len < 2 || (b[0] & 0x7f) != '{')
        return false;
    int next = b[1] & 0x7f;
    return next == '(' || next == ')' || (len == 2 && b[1] == '0');
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

/* As qsort, without its overhead, which is most of the work when there are few. */
static void sort_few(struct fm_flat_edge *edges, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct fm_flat_edge e = edges[i];
        size_t at = i;
        for (; at > 0 && compare_edges(&edges[at - 1], &e) > 0; at--)
            edges[at] = edges[at - 1];
        edges[at] = e;
    }
}

void fm_pstats_sort_edges(struct fm_flat *flat)
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
        if (end - first > FEW)
            qsort(all + first, end - first, sizeof *all, compare_edges);
        else
            sort_few(all + first, end - first);
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

struct fm_flat *fm_pstats_combine(const struct fm_profile *p, const struct fm_flat *flat)
{
    fm_autofree uint32_t *row_of = fm_calloc(flat->rows.len, sizeof *row_of);
    if (number_labels(p, flat, row_of) == flat->rows.len)
        return NULL;
    struct fm_flat *combined = fm_calloc(1, sizeof *combined);
    for (size_t i = 0; i < flat->rows.len; i++) {
        if (row_of[i] == combined->rows.len)
            fm_vec_push(&combined->rows, flat->rows.data[i]);
        else
            add_row_up(&combined->rows.data[row_of[i]], &flat->rows.data[i]);
    }
    fm_vec_reserve(&combined->edges, flat->edges.len);
    for (size_t i = 0; i < flat->edges.len; i++) {
        struct fm_flat_edge e = flat->edges.data[i];
        e.caller = row_of[e.caller];
        e.callee = row_of[e.callee];
        fm_vec_push(&combined->edges, e);
    }
    fm_pstats_sort_edges(combined);
    combined->sampled = flat->sampled;
    return combined;
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

/* The table as it is written: labels are unique, samples are calls. */
static struct fm_flat *table_of(const struct fm_profile *p)
{
    struct fm_flat *flat = fm_flat_new(p, NULL);
    if (flat->states)
        fm_flat_count_samples(flat);
    for (size_t i = 0; flat->sampled && i < flat->rows.len; i++)
        flat->rows.data[i].primitive = flat->rows.data[i].calls; /* a sample counts once */
    for (size_t i = 0; flat->states && i < flat->edges.len; i++)
        flat->edges.data[i].primitive = flat->edges.data[i].calls;
    struct fm_flat *combined = fm_pstats_combine(p, flat);
    if (combined)
        fm_flat_free(flat);
    return combined ? combined : flat;
}

static int save(const struct fm_profile *p, struct fm_buffer *out, struct fm_error *err)
{
    (void)err;
    struct fm_flat *flat = table_of(p);
    size_t e = 0;
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
    .load = fm_pstats_load,
    .save = save,
};
