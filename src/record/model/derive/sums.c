/*
 * Numbers of nodes, functions and calls; see sums.h.
 *
 * In a shape the nodes below one follow it. So whether a function, or a call, is active already is
 * told by where its outermost activation ends, which is what CPython's _lsprof keeps as its
 * recursion levels. Nothing recurses: trees may be as deep as there are nodes.
 */
#include "record/model/derive/sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"

/* A sum that stays in range. */
static inline int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_expect(__builtin_add_overflow(a, b, &sum), 0))
        return a < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

/* What follows is made for sums and for the rest apart: `sum` is known where the loops are. */
#define INLINE static inline __attribute__((always_inline))

INLINE void add(bool sum, enum fm_metric metric, int64_t *number, int64_t value)
{
    *number = sum ? plus(*number, value) : fm_metric_combine(metric, *number, value);
}

/* The metric that says how two numbers become one. */
static enum fm_metric metric_of(const struct fm_numbers_of *o)
{
    return (enum fm_metric)fm_metric_next(o->columns, 0);
}

/* ---- by node ---- */

INLINE void own_loop(int64_t *self, const struct fm_shape_source *s, enum fm_metric metric,
                     bool sum)
{
    const int64_t *data = s->p->columns[metric].data;
    const uint32_t *node_of = s->node_of;
    const uint8_t *parts = s->part;
    unsigned part = fm_part_of(metric);
    size_t nodes = data ? s->p->nodes.len : 0;
    int64_t least = fm_metric_is_difference(metric) ? INT64_MIN : 0;
    for (size_t i = 0; i < nodes; i++)
        if (data[i] > least && node_of[i] != FM_NONE && (!parts || parts[i] & part))
            add(sum, metric, &self[node_of[i]], data[i]);
}

static void gather_own(struct fm_numbers *n, const struct fm_shape_source *s, enum fm_metric metric)
{
    if (fm_metric_is_sum(metric))
        own_loop(n->self, s, metric, true);
    else
        own_loop(n->self, s, metric, false);
}

/* What includes callees: of a node that became one with its caller it is the caller's already. */
static void gather_totals(struct fm_numbers *n, const struct fm_shape_source *s,
                          enum fm_metric metric, const bool *timeless)
{
    const struct fm_node *nodes = s->p->nodes.data;
    const uint32_t *node_of = s->node_of;
    if (!s->p->columns[metric].data)
        return;
    fm_autofree int64_t *remain = s->partly ? fm_shape_totals_new(s, metric) : NULL;
    const int64_t *data = remain ? remain : s->p->columns[metric].data;
    unsigned part = remain ? FM_SHAPE_NODE : fm_part_of(metric);
    for (size_t i = 0; i < s->p->nodes.len; i++) {
        uint32_t node = node_of[i], up = nodes[i].parent;
        if (data[i] > 0 && fm_shape_counts(s, i, part) && (up == FM_NONE || node_of[up] != node) &&
            !(timeless && timeless[nodes[i].thread]))
            n->total[node] = plus(n->total[node], data[i]);
    }
}

/* What totals leave to the nodes themselves. `self` gathers what the callees have, first. */
static void take_callees_off(struct fm_numbers *n, const struct fm_shape *shape)
{
    for (uint32_t i = shape->nodes; i-- > 0;) {
        int64_t below = n->self[i];
        if (n->total[i] < below)
            n->total[i] = below;
        n->self[i] = n->total[i] - below;
        if (i)
            n->self[shape->parent[i]] = plus(n->self[shape->parent[i]], n->total[i]);
    }
}

void fm_numbers_init(struct fm_numbers *n, const struct fm_shape *shape,
                     const struct fm_shape_source *source, const struct fm_numbers_of *o)
{
    enum fm_metric metric = metric_of(o);
    *n = (struct fm_numbers){ .self = fm_calloc(shape->nodes, sizeof *n->self) };
    if (metric < FM_METRIC_COUNT && fm_metric_info(metric)->scope == FM_OF_CALLEES) {
        n->total = fm_calloc(shape->nodes, sizeof *n->total);
        gather_totals(n, source, metric, metric == FM_METRIC_TOTAL ? o->timeless : NULL);
        take_callees_off(n, shape);
        return;
    }
    for (int m = (int)metric; m < FM_METRIC_COUNT; m = fm_metric_next(o->columns, m + 1))
        gather_own(n, source, (enum fm_metric)m);
}

INLINE void up_loop(int64_t *total, const struct fm_shape *shape, enum fm_metric metric, bool sum)
{
    const uint32_t *parent = shape->parent;
    for (uint32_t i = shape->nodes; i-- > 1;)
        add(sum, metric, &total[parent[i]], total[i]);
}

void fm_numbers_add_up(struct fm_numbers *n, const struct fm_shape *shape,
                       const struct fm_numbers_of *o)
{
    enum fm_metric metric = metric_of(o);
    if (n->total)
        return;
    n->total = fm_malloc(shape->nodes * sizeof *n->total);
    memcpy(n->total, n->self, shape->nodes * sizeof *n->total);
    if (metric == FM_METRIC_COUNT || fm_metric_is_sum(metric))
        up_loop(n->total, shape, metric, true);
    else
        up_loop(n->total, shape, metric, false);
}

void fm_numbers_release(struct fm_numbers *n)
{
    free(n->self);
    free(n->total);
    *n = (struct fm_numbers){ 0 };
}

/* ---- by group ---- */

/* All in one pass: finding the group is most of it. */
INLINE void group_loop(const struct fm_groups *groups, const struct fm_sums_of *o,
                       struct fm_sums *sums, bool sum)
{
    for (uint32_t k = 0; k < groups->len; k++) {
        uint32_t i = groups->node ? groups->node[k] : k;
        if (groups->of[k] == FM_NONE)
            continue;
        struct fm_sums *group = &sums[groups->of[k]];
        add(sum, o->metric, &group->self, o->numbers.self[i]);
        if (groups->outermost[k])
            add(sum, o->metric, &group->total, o->numbers.total[i]);
        if (o->calls)
            group->calls = plus(group->calls, o->calls[i]);
    }
}

struct fm_sums *fm_sums_new(const struct fm_groups *groups, const struct fm_sums_of *o)
{
    struct fm_sums *sums = fm_calloc(groups->count + 1, sizeof *sums);
    if (fm_metric_is_sum(o->metric))
        group_loop(groups, o, sums, true);
    else
        group_loop(groups, o, sums, false);
    return sums;
}

struct fm_groups fm_groups_of_functions(const struct fm_shape *shape, const uint8_t *outermost,
                                        uint32_t functions)
{
    return (struct fm_groups){
        .of = shape->func, .outermost = outermost, .len = shape->nodes, .count = functions
    };
}

struct fm_groups fm_groups_of_calls(const struct fm_calls *calls)
{
    return (struct fm_groups){ calls->node, calls->of, calls->outermost, calls->nodes,
                               calls->list.len };
}

/* ---- calls ---- */

/* The call that made a node; false if it is not wanted. */
static inline bool call_of(const struct fm_shape *shape, const struct fm_calls_of *o, uint32_t node,
                           struct fm_call *call)
{
    call->callee = shape->func[node];
    call->caller = shape->func[shape->parent[node]];
    if (!o->is_row[call->callee])
        return false;
    if (!o->is_row[call->caller])
        call->caller = o->top;
    return call->caller != FM_NONE &&
           (o->around == FM_NONE || call->caller == o->around || call->callee == o->around);
}

/* Those of one function are few: only their nodes are kept. */
static void keep_node(struct fm_calls *calls, uint32_t *cap, uint32_t node)
{
    if (calls->nodes == *cap) {
        *cap = *cap ? 2 * *cap : 64;
        calls->node = fm_realloc(calls->node, *cap, sizeof *calls->node);
        calls->of = fm_realloc(calls->of, *cap, sizeof *calls->of);
        calls->outermost = fm_realloc(calls->outermost, *cap, 1);
    }
    calls->node[calls->nodes++] = node;
}

void fm_calls_init(struct fm_calls *calls, const struct fm_shape *shape,
                   const struct fm_calls_of *o)
{
    bool all = o->around == FM_NONE;
    uint32_t cap = all ? shape->nodes : 0;
    struct fm_map index = { 0 };
    FM_VEC(uint32_t) busy_until = { 0 }; /* by call: the end of its outermost activation */
    *calls = (struct fm_calls){ .of = fm_malloc((cap + 1) * sizeof *calls->of),
                                .outermost = fm_malloc(cap + 1),
                                .nodes = cap };
    for (uint32_t i = 0; i < shape->nodes; i++) {
        struct fm_call call;
        bool is_new, wanted = i && call_of(shape, o, i, &call);
        if (!wanted) {
            if (all)
                calls->of[i] = FM_NONE;
            continue;
        }
        uint32_t at = *fm_map_at(&index, fm_map_pair(call.caller, call.callee),
                                 (uint32_t)calls->list.len, &is_new);
        if (is_new) {
            fm_vec_push(&calls->list, call);
            fm_vec_push(&busy_until, 0);
        }
        if (!all)
            keep_node(calls, &cap, i);
        uint32_t place = all ? i : calls->nodes - 1;
        bool outermost = i >= busy_until.data[at];
        calls->of[place] = at;
        calls->outermost[place] = outermost;
        if (outermost)
            busy_until.data[at] = shape->end[i];
    }
    fm_vec_release(&busy_until);
    fm_map_release(&index);
}

void fm_calls_release(struct fm_calls *calls)
{
    fm_vec_release(&calls->list);
    free(calls->node);
    free(calls->of);
    free(calls->outermost);
    *calls = (struct fm_calls){ 0 };
}
