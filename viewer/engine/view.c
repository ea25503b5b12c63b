/* Views and their columns of numbers; see view.h. */
#include "view.h"

#include <string.h>

#include "base/memory.h"
#include "reversed.h"

/* ---- making and freeing ---- */

static void side_forget(struct fm_view_side *s)
{
    for (unsigned m = 0; m < FM_ENGINE_METRICS; m++) {
        free(s->values[m].self);
        free(s->values[m].total);
        s->values[m] = (struct fm_view_values){ 0 };
    }
    for (int k = 0; k < FM_VIEW_RECENT; k++)
        s->recent[k] = FM_ENGINE_METRICS;
    fm_flat_free(s->flat);
    s->flat = NULL;
}

static void tree_free(struct fm_view *v)
{
    for (int i = 0; i < 2; i++) {
        struct fm_view_side *s = &v->side[i];
        free((void *)(uintptr_t)s->of.part);
        free(s->of.node_of);
        side_forget(s);
    }
    free(v->parent);
    free(v->func);
    free(v->end);
    free(v->outermost);
    free(v->key);
    free(v);
}

static void view_free(struct fm_view *v)
{
    if (!v)
        return;
    fm_vec_release(&v->edges);
    fm_map_release(&v->edge_index);
    free(v->edge_of);
    free(v->edge_outermost);
    fm_reversed_free(v->reversed);
    struct fm_view *owner = v->tree_of;
    if (owner) {
        free(v);
        if (--owner->users == 0 && owner->closed)
            tree_free(owner);
    } else if (v->users) {
        v->closed = true;
    } else {
        tree_free(v);
    }
}

bool fm_view_uses(const struct fm_view *v, const struct fm_recording *r)
{
    return r && (v->side[0].recording == r || v->side[1].recording == r);
}

struct fm_view *fm_engine_view(struct fm_engine *e, int view)
{
    if (view >= 0 && view < FM_ENGINE_VIEWS && e->views[view])
        return e->views[view];
    fm_error_set(&e->err, FM_USAGE, "there is no view %d", view);
    return NULL;
}

void fm_engine_view_free(struct fm_engine *e, int view)
{
    if (view < 0 || view >= FM_ENGINE_VIEWS)
        return;
    view_free(e->views[view]);
    e->views[view] = NULL;
}

/* The view that has the tree made by these options, or NULL. */
static struct fm_view *owner_of_same(struct fm_engine *e, const char *key)
{
    for (int i = 0; i < FM_ENGINE_VIEWS; i++) {
        struct fm_view *v = e->views[i];
        if (v && v->tree_of)
            v = v->tree_of; /* which may be closed */
        if (v && strcmp(v->key, key) == 0)
            return v;
    }
    return NULL;
}

static void tree_share(struct fm_view *v, struct fm_view *owner)
{
    free(v->key);
    v->key = NULL;
    v->tree_of = owner;
    owner->users++;
    v->nodes = owner->nodes;
    v->depth = owner->depth;
    v->parent = owner->parent;
    v->func = owner->func;
    v->end = owner->end;
    v->outermost = owner->outermost;
    for (int i = 0; i < 2; i++) {
        v->side[i].of = owner->side[i].of;
        v->side[i].table = owner->side[i].table;
    }
}

static int view_fill(struct fm_engine *e, struct fm_view *v)
{
    struct fm_view_options *o = &v->options;
    v->engine = e;
    v->side[0].recording = fm_engine_recording(e, o->recording);
    if (!v->side[0].recording)
        return -1;
    if (o->base >= 0 && !(v->side[1].recording = fm_engine_recording(e, o->base)))
        return -1;
    for (int i = 0; i < 2; i++)
        side_forget(&v->side[i]);
    v->key = fm_view_options_key(o);
    struct fm_view *owner = owner_of_same(e, v->key);
    if (owner)
        tree_share(v, owner);
    else
        fm_view_shape(v);
    if (o->reversed)
        v->reversed = fm_reversed_new(v);
    return 0;
}

int fm_engine_view_new(struct fm_engine *e, const char *options, size_t len)
{
    int id = 0;
    while (id < FM_ENGINE_VIEWS && e->views[id])
        id++;
    if (id == FM_ENGINE_VIEWS) {
        fm_error_set(&e->err, FM_UNSUPPORTED, "more than %d views are open", FM_ENGINE_VIEWS);
        return -1;
    }
    struct fm_view *v = fm_calloc(1, sizeof *v);
    int status = fm_view_options_read(&v->options, options, len, &e->err);
    if (status == 0)
        status = view_fill(e, v);
    fm_view_options_release(&v->options); /* their globs are the caller's */
    if (status < 0) {
        view_free(v);
        return -1;
    }
    e->views[id] = v;
    return id;
}

/* ---- numbers ---- */

double *fm_view_column(const struct fm_view *v, int side, uint64_t columns)
{
    const struct fm_view_side *s = &v->side[side];
    double *sums = fm_calloc(v->nodes, sizeof *sums);
    for (int m = 0; s->recording && m < FM_METRIC_COUNT; m++) {
        const int64_t *data = columns >> m & 1 ? s->of.p->columns[m].data : NULL;
        unsigned part = fm_part_of((enum fm_metric)m);
        for (size_t i = 0; data && i < s->of.p->nodes.len; i++)
            if (data[i] > 0 && fm_shape_counts(&s->of, i, part))
                sums[s->of.node_of[i]] += (double)data[i];
    }
    return sums;
}

/* Numbers that include callees: a node that became one with its caller adds nothing to it. */
static void fill_from_totals(const struct fm_view *v, const struct fm_view_side *s,
                             enum fm_metric metric, struct fm_view_values *values)
{
    const struct fm_profile *p = s->of.p;
    const int64_t *data = p->columns[metric].data;
    fm_autofree int64_t *remain = data && s->of.partly ? fm_shape_totals_new(&s->of, metric) : NULL;
    const int64_t *totals = remain ? remain : data;
    unsigned part = remain ? FM_SHAPE_NODE : fm_part_of(metric);
    double *total = values->total, *self = values->self;
    for (size_t i = 0; data && i < p->nodes.len; i++) {
        uint32_t node = s->of.node_of[i], up = p->nodes.data[i].parent;
        if (totals[i] > 0 && fm_shape_counts(&s->of, i, part) &&
            (up == FM_NONE || s->of.node_of[up] != node))
            total[node] += (double)totals[i];
    }
    /* `self` gathers what the children have, first. */
    for (uint32_t i = v->nodes; i-- > 0;) {
        double below = self[i];
        if (total[i] < below)
            total[i] = below;
        self[i] = total[i] - below;
        if (i)
            self[v->parent[i]] += total[i];
    }
}

static void fill_from_selves(const struct fm_view *v, struct fm_view_values *values)
{
    memcpy(values->total, values->self, v->nodes * sizeof *values->total);
    for (uint32_t i = v->nodes; i-- > 1;)
        values->total[v->parent[i]] += values->total[i];
}

/* Numbers are most of a view and quickly made again: only the views used last keep theirs. */
void fm_view_use(struct fm_view *v)
{
    struct fm_engine *e = v->engine;
    if (v->used && v->used == e->used)
        return;
    v->used = ++e->used;
    for (int i = 0; i < FM_ENGINE_VIEWS; i++) {
        struct fm_view *other = e->views[i];
        uint32_t later = 0;
        for (int k = 0; other && other != v && k < FM_ENGINE_VIEWS; k++)
            later += e->views[k] && e->views[k]->used > other->used;
        if (later >= FM_ENGINE_NUMBERS)
            for (int side = 0; side < 2; side++)
                side_forget(&other->side[side]);
    }
}

/* Keep the last metrics of a side: switching to and fro is free, memory stays bounded. No call uses
 * more than two at once. */
static void remember(struct fm_view_side *s, unsigned metric)
{
    unsigned at = 0;
    while (at < FM_VIEW_RECENT - 1 && s->recent[at] != metric)
        at++;
    unsigned oldest = s->recent[at];
    if (oldest != metric && oldest < FM_ENGINE_METRICS) {
        free(s->values[oldest].self);
        free(s->values[oldest].total);
        s->values[oldest] = (struct fm_view_values){ 0 };
    }
    memmove(s->recent + 1, s->recent, at * sizeof *s->recent);
    s->recent[0] = metric;
}

/* What a side keeps of a metric, with its selves at least. */
static struct fm_view_values *values_of(struct fm_view *v, int side, unsigned metric)
{
    v = v->tree_of ? v->tree_of : v;
    struct fm_view_side *s = &v->side[side];
    struct fm_view_values *values = &s->values[metric];
    fm_view_use(v);
    remember(s, metric);
    if (values->self)
        return values;
    if (fm_engine_metric_info(metric).scope == FM_OF_CALLEES) {
        values->self = fm_calloc(v->nodes, sizeof *values->self);
        values->total = fm_calloc(v->nodes, sizeof *values->total);
        fill_from_totals(v, s, (enum fm_metric)metric, values);
    } else {
        values->self = fm_view_column(v, side, fm_engine_metric_columns(metric));
    }
    return values;
}

const double *fm_view_selves(struct fm_view *v, int side, unsigned metric)
{
    return v->side[side].recording ? values_of(v, side, metric)->self : NULL;
}

struct fm_view_values fm_view_values(struct fm_view *v, int side, unsigned metric)
{
    if (!v->side[side].recording)
        return (struct fm_view_values){ 0 };
    struct fm_view_values *values =
        values_of(v, side, fm_engine_metric_is_drawn(metric) ? metric : FM_ENGINE_TOTAL);
    if (!values->total) {
        values->total = fm_malloc(v->nodes * sizeof *values->total);
        fill_from_selves(v, values);
    }
    return *values;
}
