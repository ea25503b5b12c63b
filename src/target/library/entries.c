/* The rows and edges of a profile for getstats(); see entries.h. */
#include "target/library/entries.h"

#include "record/formats/python/marshal.h"
#include "record/model/derive/flat.h"

static void put_string(struct fm_buffer *out, const struct fm_profile *p, uint32_t string)
{
    fm_marshal_put_text(out, fm_strings_get(p->strings, string),
                        fm_strings_len(p->strings, string));
}

static void put_label(struct fm_buffer *out, const struct fm_profile *p, uint32_t func)
{
    const struct fm_function *f = &p->functions.data[func];
    fm_marshal_put_tuple(out, 6);
    put_string(out, p, f->file);
    fm_marshal_put_int(out, f->line);
    put_string(out, p, f->name);
    put_string(out, p, f->qualname);
    fm_marshal_put_int(out, f->twin);
    fm_marshal_put_int(out, f->kind == FM_FUNCTION_C);
}

static void put_numbers(struct fm_buffer *out, int64_t calls, int64_t primitive, int64_t total_ns,
                        int64_t self_ns)
{
    fm_marshal_put_int(out, calls);
    fm_marshal_put_int(out, calls - primitive);
    fm_marshal_put_float(out, (double)total_ns / 1e9);
    fm_marshal_put_float(out, (double)self_ns / 1e9);
}

/* Edges are sorted by callee, getstats() wants them by caller: count, place, then walk. */
static uint32_t *edges_by_caller(const struct fm_flat *flat, uint32_t *starts)
{
    uint32_t *order = fm_calloc(flat->edges.len, sizeof *order);
    for (size_t i = 0; i < flat->edges.len; i++)
        starts[flat->edges.data[i].caller + 1]++;
    for (size_t i = 0; i < flat->rows.len; i++)
        starts[i + 1] += starts[i];
    fm_autofree uint32_t *next = fm_calloc(flat->rows.len + 1, sizeof *next);
    for (size_t i = 0; i < flat->edges.len; i++) {
        uint32_t caller = flat->edges.data[i].caller;
        order[starts[caller] + next[caller]++] = (uint32_t)i;
    }
    return order;
}

int fm_entries_save(const struct fm_profile *p, struct fm_buffer *out)
{
    struct fm_flat_scope all = { FM_NONE, FM_NONE };
    struct fm_flat *flat = fm_flat_new(p, &all);
    fm_autofree uint32_t *starts = fm_calloc(flat->rows.len + 1, sizeof *starts);
    fm_autofree uint32_t *order = edges_by_caller(flat, starts);
    fm_marshal_put_tuple(out, (uint32_t)flat->rows.len);
    for (size_t i = 0; i < flat->rows.len; i++) {
        const struct fm_flat_row *row = &flat->rows.data[i];
        fm_marshal_put_tuple(out, 6);
        put_label(out, p, row->func);
        put_numbers(out, row->calls, row->primitive, row->total_ns, row->self_ns);
        fm_marshal_put_tuple(out, starts[i + 1] - starts[i]);
        for (uint32_t k = starts[i]; k < starts[i + 1]; k++) {
            const struct fm_flat_edge *edge = &flat->edges.data[order[k]];
            fm_marshal_put_tuple(out, 5);
            fm_marshal_put_int(out, edge->callee);
            put_numbers(out, edge->calls, edge->primitive, edge->total_ns, edge->self_ns);
        }
    }
    fm_flat_free(flat);
    return 0;
}
