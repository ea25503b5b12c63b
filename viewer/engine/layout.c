/*
 * Boxes for flame graphs, icicles and sunbursts, and the rows of trees; see view.h.
 *
 * The tree of a view and the tree of callers are walked alike: `kids_of` gathers the children of a
 * node, with their numbers, and sorts them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "reversed.h"

struct laid_kid {
    uint32_t node, func;
    double width, value, self, base, base_self;
    const char *name;
};

struct layout_walk {
    struct fm_view *v;
    struct fm_numbers after, before; /* before: NULLs if nothing is compared */
    int order, by;
    FM_VEC(struct laid_kid) kids;
};

static bool walk_init(struct layout_walk *w, struct fm_view *v, unsigned metric, int order, int by)
{
    if (!fm_engine_metric_is_drawn(metric)) {
        fm_error_set(&v->engine->err, FM_USAGE, "there is no metric %u", metric);
        return false;
    }
    *w =
        (struct layout_walk){ .v = v, .order = order, .by = fm_view_is_diff(v) ? by : FM_BY_VALUE };
    w->after = fm_view_values(v, 0, metric);
    w->before = fm_view_values(v, 1, metric);
    return true;
}

static bool node_exists(struct fm_view *v, uint32_t node)
{
    if (node < (v->reversed ? v->reversed->nodes.len : v->nodes))
        return true;
    fm_error_set(&v->engine->err, FM_USAGE, "there is no node %u", node);
    return false;
}

static uint32_t func_of(const struct fm_view *v, uint32_t node)
{
    return v->reversed ? v->reversed->nodes.data[node].func : v->func[node];
}

uint32_t fm_view_parent(struct fm_view *v, uint32_t node)
{
    if (!node_exists(v, node))
        return FM_NONE;
    return v->reversed ? v->reversed->nodes.data[node].parent : v->parent[node];
}

static double value_of(const struct layout_walk *w, uint32_t node, const struct fm_numbers *values)
{
    if (!values->total)
        return 0;
    if (!w->v->reversed)
        return (double)values->total[node];
    return fm_reversed_sum(w->v, node,
                           w->v->options.callers_of == FM_NONE ? values->self : values->total);
}

static void numbers_of(const struct layout_walk *w, struct laid_kid *kid)
{
    kid->func = func_of(w->v, kid->node);
    kid->value = value_of(w, kid->node, &w->after);
    kid->base = value_of(w, kid->node, &w->before);
    kid->self = kid->base_self = 0;
    if (!w->v->reversed) {
        kid->self = (double)w->after.self[kid->node];
        kid->base_self = w->before.self ? (double)w->before.self[kid->node] : 0;
    }
    kid->width = w->by == FM_BY_BASE   ? kid->base
                 : w->by == FM_BY_BOTH ? kid->value + kid->base
                                       : kid->value;
}

static int by_width(const void *left, const void *right)
{
    const struct laid_kid *a = left, *b = right;
    if (a->width != b->width)
        return a->width > b->width ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

static int by_name(const void *left, const void *right)
{
    const struct laid_kid *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order ? order : by_width(left, right);
}

/* Gather the children that are at least `least` wide into w->kids; gives the number of the others.
 */
static uint32_t kids_of(struct layout_walk *w, uint32_t node, double least)
{
    struct fm_view *v = w->v;
    uint32_t omitted = 0, next, end;
    w->kids.len = 0;
    if (v->reversed) {
        if (!fm_reversed_expand(v, node))
            return 0;
        next = v->reversed->nodes.data[node].first_child;
        end = next + v->reversed->nodes.data[node].children;
    } else {
        next = node + 1;
        end = v->end[node];
    }
    while (next < end) {
        struct laid_kid kid = { .node = next };
        next = v->reversed ? next + 1 : v->end[next];
        numbers_of(w, &kid);
        if (kid.width < least || !(kid.value > 0 || kid.base > 0)) {
            omitted++;
            continue;
        }
        if (w->order == FM_ORDER_NAME)
            kid.name =
                fm_strings_get(v->engine->strings, v->engine->functions.data[kid.func].qualname);
        fm_vec_push(&w->kids, kid);
    }
    if (w->kids.len && w->order != FM_ORDER_RECORDED)
        qsort(w->kids.data, w->kids.len, sizeof *w->kids.data,
              w->order == FM_ORDER_NAME ? by_name : by_width);
    return omitted;
}

/* ---- boxes ---- */

struct box {
    struct laid_kid kid;
    uint32_t parent, depth;
    double start;
};
typedef FM_VEC(struct box) boxes;

static bool has_kids(const struct fm_view *v, uint32_t node)
{
    return v->reversed ? v->reversed->nodes.data[node].items > 0 : v->end[node] > node + 1;
}

/* In a tree of callers a node's own part is what no caller of it has. */
static void take_from_self(const struct layout_walk *w, struct box *box)
{
    if (!w->v->reversed)
        return;
    box->kid.self = box->kid.value;
    box->kid.base_self = box->kid.base;
    for (size_t i = 0; i < w->kids.len; i++) {
        box->kid.self -= w->kids.data[i].value;
        box->kid.base_self -= w->kids.data[i].base;
    }
}

static void fill_boxes(struct fm_result *r, const boxes *all, bool diff)
{
    uint32_t *node = fm_result_u32(r), *func = fm_result_u32(r), *depth = fm_result_u32(r),
             *parent = fm_result_u32(r);
    double *start = fm_result_f64(r), *width = fm_result_f64(r), *value = fm_result_f64(r),
           *self = fm_result_f64(r);
    double *base = diff ? fm_result_f64(r) : NULL, *base_self = diff ? fm_result_f64(r) : NULL;
    for (size_t i = 0; i < all->len; i++) {
        const struct box *box = &all->data[i];
        node[i] = box->kid.node;
        func[i] = box->kid.func;
        depth[i] = box->depth;
        parent[i] = box->parent;
        start[i] = box->start;
        width[i] = box->kid.width;
        value[i] = box->kid.value;
        self[i] = box->kid.self;
        if (diff) {
            base[i] = box->kid.base;
            base_self[i] = box->kid.base_self;
        }
    }
}

int fm_view_layout(struct fm_view *v, const struct fm_layout_query *q)
{
    struct layout_walk w;
    struct fm_result *r = &v->engine->results[0];
    if (!walk_init(&w, v, q->metric, q->order, q->by) || !node_exists(v, q->root))
        return -1;
    uint32_t limit = q->limit && q->limit < FM_ENGINE_ROWS ? q->limit : FM_ENGINE_ROWS;
    boxes all = { 0 };
    struct box top = { .kid = { .node = q->root }, .parent = FM_NONE };
    double omitted = 0, deeper = 0, truncated = 0;
    numbers_of(&w, &top.kid);
    fm_vec_push(&all, top);
    double least = top.kid.width * (q->cut > 0 ? q->cut : 0);
    for (size_t i = 0; i < all.len; i++) {
        struct box box = all.data[i];
        if (box.depth >= q->depth) {
            deeper += has_kids(v, box.kid.node);
            continue;
        }
        omitted += kids_of(&w, box.kid.node, least);
        take_from_self(&w, &all.data[i]);
        double start = box.start;
        for (size_t k = 0; k < w.kids.len; k++) {
            if (all.len >= limit) {
                truncated = 1;
                omitted++;
                continue;
            }
            fm_vec_push(&all, ((struct box){ w.kids.data[k], (uint32_t)i, box.depth + 1, start }));
            start += w.kids.data[k].width;
        }
    }
    fm_result_begin(r, (uint32_t)all.len);
    fill_boxes(r, &all, fm_view_is_diff(v));
    r->scalars[0] = omitted;
    r->scalars[1] = deeper;
    r->scalars[2] = truncated;
    fm_vec_release(&all);
    fm_vec_release(&w.kids);
    return 0;
}

/* ---- rows of trees ---- */

static double calls_of(const struct fm_view *v, uint32_t node, const int64_t *calls)
{
    return v->reversed ? fm_reversed_sum(v, node, calls) : (double)calls[node];
}

static uint32_t count_kids(struct fm_view *v, uint32_t node)
{
    uint32_t count = 0;
    if (v->reversed)
        return fm_reversed_has_callers(v, node);
    for (uint32_t next = node + 1; next < v->end[node]; next = v->end[next])
        count++;
    return count;
}

static void fill_rows(struct fm_view *v, const struct laid_kid *kids, uint32_t rows)
{
    struct fm_result *r = &v->engine->results[0];
    bool diff = fm_view_is_diff(v);
    const int64_t *calls = fm_view_selves(v, 0, FM_ENGINE_CALLS);
    const int64_t *calls_before = fm_view_selves(v, 1, FM_ENGINE_CALLS);
    fm_result_begin(r, rows);
    uint32_t *node = fm_result_u32(r), *func = fm_result_u32(r), *children = fm_result_u32(r);
    double *value = fm_result_f64(r), *self = fm_result_f64(r), *count = fm_result_f64(r);
    double *base = diff ? fm_result_f64(r) : NULL, *base_self = diff ? fm_result_f64(r) : NULL,
           *base_calls = diff ? fm_result_f64(r) : NULL;
    for (uint32_t i = 0; i < rows; i++) {
        node[i] = kids[i].node;
        func[i] = kids[i].func;
        children[i] = count_kids(v, kids[i].node);
        value[i] = kids[i].value;
        self[i] = kids[i].self;
        count[i] = calls_of(v, kids[i].node, calls);
        if (diff) {
            base[i] = kids[i].base;
            base_self[i] = kids[i].base_self;
            base_calls[i] = calls_of(v, kids[i].node, calls_before);
        }
    }
}

int fm_view_children(struct fm_view *v, uint32_t node, unsigned metric, uint32_t limit, bool only)
{
    struct layout_walk w;
    if (!walk_init(&w, v, metric, FM_ORDER_HEAVY, FM_BY_BOTH) || !node_exists(v, node))
        return -1;
    double omitted = 0;
    if (only) {
        fm_vec_push(&w.kids, (struct laid_kid){ .node = node });
        numbers_of(&w, &w.kids.data[0]);
    } else {
        omitted = kids_of(&w, node, 0);
    }
    uint32_t rows = w.kids.len < limit ? (uint32_t)w.kids.len : limit;
    rows = rows < FM_ENGINE_ROWS ? rows : FM_ENGINE_ROWS;
    omitted += (double)(w.kids.len - rows);
    fill_rows(v, w.kids.data, rows);
    v->engine->results[0].scalars[0] = omitted;
    fm_vec_release(&w.kids);
    return 0;
}

int fm_view_info(struct fm_view *v)
{
    struct fm_result *r = &v->engine->results[0];
    fm_result_begin(r, 0);
    r->scalars[0] = v->nodes;
    r->scalars[1] = v->depth;
    r->scalars[2] = fm_view_is_diff(v);
    r->scalars[3] =
        v->side[0].recording->estimated || (fm_view_is_diff(v) && v->side[1].recording->estimated);
    return 0;
}

int fm_view_totals(struct fm_view *v, unsigned metric)
{
    struct layout_walk w;
    struct fm_result *r = &v->engine->results[0];
    if (!walk_init(&w, v, metric, FM_ORDER_HEAVY, FM_BY_VALUE))
        return -1;
    fm_result_begin(r, 0);
    r->scalars[0] = value_of(&w, 0, &w.after);
    r->scalars[1] = value_of(&w, 0, &w.before);
    return 0;
}

int fm_view_error(struct fm_view *v, uint32_t node, unsigned metric)
{
    struct layout_walk w;
    struct fm_result *r = &v->engine->results[0];
    struct laid_kid kid = { .node = node };
    unsigned error = fm_view_error_metric(v, metric);
    if (!node_exists(v, node))
        return -1;
    if (error < FM_METRIC_COUNT && walk_init(&w, v, error, FM_ORDER_HEAVY, FM_BY_VALUE))
        numbers_of(&w, &kid);
    fm_result_begin(r, 0);
    r->scalars[0] = (double)fm_profile_error_bytes(v->side[0].of.p, (int64_t)kid.value);
    r->scalars[1] = (double)fm_profile_error_bytes(v->side[0].of.p, (int64_t)kid.self);
    return 0;
}

int fm_view_path(struct fm_view *v, uint32_t node)
{
    struct fm_result *r = &v->engine->results[0];
    uint32_t len = 0;
    if (!node_exists(v, node))
        return -1;
    for (uint32_t at = node; at; at = fm_view_parent(v, at))
        len++;
    fm_result_begin(r, len);
    uint32_t *funcs = fm_result_u32(r);
    for (uint32_t at = node; at; at = fm_view_parent(v, at))
        funcs[--len] = func_of(v, at);
    return 0;
}

uint32_t fm_view_find(struct fm_view *v, const uint32_t *path, uint32_t len)
{
    uint32_t node = 0;
    for (uint32_t i = 0; i < len; i++) {
        uint32_t next, end, found = FM_NONE;
        if (v->reversed && !fm_reversed_expand(v, node))
            break;
        next = v->reversed ? v->reversed->nodes.data[node].first_child : node + 1;
        end = v->reversed ? next + v->reversed->nodes.data[node].children : v->end[node];
        for (; next < end && found == FM_NONE; next = v->reversed ? next + 1 : v->end[next])
            if (func_of(v, next) == path[i])
                found = next;
        if (found == FM_NONE)
            break;
        node = found;
    }
    return node;
}
