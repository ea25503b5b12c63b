/*
 * A tree for a profile that came without one (pstats): an estimate, and called so wherever it is
 * shown.
 *
 * A table knows how much time a callee took when called from each of its callers, but not what the
 * caller had been called for. The estimate takes every call of a function as the average one: a
 * context that has the share s of its function's time has the share s of all that the function
 * called. A function is not entered again below itself; that time stays with the one that would
 * have called it. What is less than a 100,000th of the whole is left out, and stays with the caller
 * too.
 */
#include <string.h>

#include "base/memory.h"
#include "engine.h"
#include "record/model/derive/label.h"

#define SMALLEST_SHARE 1e-5
#define MAX_NODES      200000u
#define MAX_DEPTH      100u

struct estimate {
    struct fm_profile *p;
    const struct fm_flat *flat;
    double *edge_ns;     /* by edge: time of the callee from this caller */
    uint32_t *out_edges; /* edges by caller: from first_out[row] to first_out[row + 1] */
    uint32_t *first_out;
    double smallest_ns;
    FM_VEC(uint32_t) row_of; /* by new node */
    FM_VEC(uint32_t) depth;
    FM_VEC(double) ns;
    uint32_t first_node;
};

static void weigh_edges(struct estimate *s)
{
    for (size_t i = 0; i < s->flat->edges.len; i++) {
        int64_t ns = fm_edge_time(s->flat, &s->flat->edges.data[i]);
        s->edge_ns[i] = ns > 0 ? (double)ns : 0;
    }
}

static void order_edges(struct estimate *s)
{
    const struct fm_flat *flat = s->flat;
    for (size_t i = 0; i < flat->edges.len; i++)
        s->first_out[flat->edges.data[i].caller + 1]++;
    for (size_t i = 0; i < flat->rows.len; i++)
        s->first_out[i + 1] += s->first_out[i];
    fm_autofree uint32_t *next = fm_calloc(flat->rows.len, sizeof *next);
    for (size_t i = 0; i < flat->edges.len; i++) {
        uint32_t caller = flat->edges.data[i].caller;
        s->out_edges[s->first_out[caller] + next[caller]++] = (uint32_t)i;
    }
}

static int64_t whole(double value)
{
    return value < 9e18 ? (int64_t)(value + 0.5) : INT64_MAX;
}

static void add_node(struct estimate *s, uint32_t parent, uint32_t row, double ns, double calls,
                     uint32_t depth)
{
    uint32_t node = fm_profile_node(s->p, parent, s->flat->rows.data[row].func);
    fm_profile_add(s->p, FM_METRIC_TOTAL, node, whole(ns));
    fm_profile_add(s->p, FM_METRIC_CALLS, node, whole(calls));
    fm_vec_push(&s->row_of, row);
    fm_vec_push(&s->depth, depth);
    fm_vec_push(&s->ns, ns);
}

static bool is_on_path(const struct estimate *s, uint32_t node, uint32_t func)
{
    for (; node >= s->first_node && node != FM_NONE; node = s->p->nodes.data[node].parent)
        if (s->p->nodes.data[node].func == func)
            return true;
    return false;
}

/* What the i-th new node called. */
static void expand(struct estimate *s, size_t i)
{
    uint32_t row = s->row_of.data[i], node = s->first_node + (uint32_t)i;
    double total = (double)s->flat->rows.data[row].total_ns, left = s->ns.data[i];
    double share = total > 0 ? s->ns.data[i] / total : 0;
    share = share > 1 ? 1 : share;
    for (uint32_t at = s->first_out[row]; at < s->first_out[row + 1]; at++) {
        const struct fm_flat_edge *edge = &s->flat->edges.data[s->out_edges[at]];
        double ns = s->edge_ns[s->out_edges[at]] * share;
        ns = ns < left ? ns : left;
        if (ns < s->smallest_ns || s->p->nodes.len >= MAX_NODES ||
            is_on_path(s, node, s->flat->rows.data[edge->callee].func))
            continue;
        left -= ns;
        add_node(s, node, edge->callee, ns, (double)edge->calls * share, s->depth.data[i] + 1);
    }
}

/* Functions with time that no caller accounts for begin the tree. */
static double add_tops(struct estimate *s, uint32_t root, bool measure)
{
    const struct fm_flat *flat = s->flat;
    fm_autofree double *from_callers = fm_calloc(flat->rows.len, sizeof *from_callers);
    double sum = 0;
    for (size_t i = 0; i < flat->edges.len; i++)
        if (flat->edges.data[i].caller != flat->edges.data[i].callee)
            from_callers[flat->edges.data[i].callee] += s->edge_ns[i];
    for (uint32_t i = 0; i < flat->rows.len; i++) {
        const struct fm_flat_row *row = &flat->rows.data[i];
        double ns = (double)row->total_ns - from_callers[i];
        if (ns <= 0 || (!measure && ns < s->smallest_ns))
            continue;
        if (!measure)
            add_node(s, root, i, ns, (double)row->calls * ns / (double)row->total_ns, 0);
        sum += ns;
    }
    return sum;
}

void fm_recording_estimate(struct fm_recording *r)
{
    struct fm_profile *p = r->p;
    struct estimate s = { .p = p, .flat = p->flat };
    s.edge_ns = fm_calloc(p->flat->edges.len, sizeof *s.edge_ns);
    s.out_edges = fm_calloc(p->flat->edges.len, sizeof *s.out_edges);
    s.first_out = fm_calloc(p->flat->rows.len + 1, sizeof *s.first_out);
    weigh_edges(&s);
    order_edges(&s);
    uint32_t process = fm_profile_process(p, &(struct fm_process){ .exit_status = -1 });
    uint32_t thread = fm_profile_thread(p, &(struct fm_thread){ .process = process });
    uint32_t root = p->threads.data[thread].root;
    s.smallest_ns = add_tops(&s, root, true) * SMALLEST_SHARE;
    s.first_node = (uint32_t)p->nodes.len;
    fm_profile_add(p, FM_METRIC_TOTAL, root, whole(add_tops(&s, root, false)));
    for (size_t i = 0; i < s.row_of.len; i++)
        if (s.depth.data[i] < MAX_DEPTH)
            expand(&s, i);
    r->estimated = true;
    free(s.edge_ns);
    free(s.out_edges);
    free(s.first_out);
    fm_vec_release(&s.row_of);
    fm_vec_release(&s.depth);
    fm_vec_release(&s.ns);
}
