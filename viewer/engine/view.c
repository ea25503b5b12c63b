/* Views and their columns of numbers; see view.h. */
#include "view.h"

#include <string.h>

#include "base/memory.h"
#include "reversed.h"

/* ---- making and freeing ---- */

static void view_free(struct fm_view *v)
{
    if (!v)
        return;
    for (int i = 0; i < 2; i++) {
        struct fm_view_side *s = &v->side[i];
        if (s->owned)
            fm_profile_free(s->p);
        free(s->node_of);
        for (unsigned m = 0; m < FM_ENGINE_METRICS; m++) {
            free(s->values[m].self);
            free(s->values[m].total);
        }
    }
    free(v->parent);
    free(v->func);
    free(v->end);
    free(v->outermost);
    fm_vec_release(&v->edges);
    fm_map_release(&v->edge_index);
    free(v->edge_of);
    free(v->edge_outermost);
    fm_reversed_free(v->reversed);
    free(v);
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
        for (int k = 0; k < FM_VIEW_RECENT; k++)
            v->side[i].recent[k] = FM_ENGINE_METRICS;
    if (fm_view_shape(v) < 0)
        return -1;
    fm_view_build(v);
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

double *fm_view_column(const struct fm_view *v, int side, uint32_t columns)
{
    const struct fm_view_side *s = &v->side[side];
    double *sums = fm_calloc(v->nodes, sizeof *sums);
    for (int m = 0; s->recording && m < FM_METRIC_COUNT; m++) {
        const int64_t *data = columns >> m & 1 ? s->p->columns[m].data : NULL;
        for (size_t i = 0; data && i < s->p->nodes.len; i++)
            if (data[i] > 0 && s->node_of[i] != FM_NONE)
                sums[s->node_of[i]] += (double)data[i];
    }
    return sums;
}

/* Numbers that include callees: a node that became one with its caller adds nothing to it. */
static void fill_from_totals(const struct fm_view *v, const struct fm_view_side *s,
                             struct fm_view_values *values)
{
    const int64_t *data = s->p->columns[FM_METRIC_TOTAL].data;
    double *total = values->total, *self = values->self;
    for (size_t i = 0; data && i < s->p->nodes.len; i++) {
        uint32_t node = s->node_of[i], up = s->p->nodes.data[i].parent;
        if (node != FM_NONE && data[i] > 0 && (up == FM_NONE || s->node_of[up] != node))
            total[node] += (double)data[i];
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

struct fm_view_values fm_view_values(struct fm_view *v, int side, unsigned metric)
{
    struct fm_view_side *s = &v->side[side];
    if (!s->recording)
        return (struct fm_view_values){ 0 };
    if (metric >= FM_ENGINE_METRICS)
        metric = FM_ENGINE_TOTAL;
    remember(s, metric);
    struct fm_view_values *values = &s->values[metric];
    if (values->total)
        return *values;
    if (metric == FM_ENGINE_TOTAL) {
        values->self = fm_calloc(v->nodes, sizeof *values->self);
        values->total = fm_calloc(v->nodes, sizeof *values->total);
        fill_from_totals(v, s, values);
    } else {
        values->self = fm_view_column(v, side, fm_engine_metric_columns(metric));
        values->total = fm_malloc(v->nodes * sizeof *values->total);
        fill_from_selves(v, values);
    }
    return *values;
}
