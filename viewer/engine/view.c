/* Views, and how long they keep the numbers that the model makes for them; see view.h. */
#include "view.h"

#include <string.h>

#include "base/memory.h"
#include "reversed.h"

/* ---- making and freeing ---- */

static void side_forget(struct fm_view_side *s)
{
    for (unsigned m = 0; m < FM_VIEW_METRICS; m++)
        fm_numbers_release(&s->values[m]);
    for (int k = 0; k < FM_VIEW_RECENT; k++)
        s->recent[k] = FM_VIEW_METRICS;
    fm_flat_free(s->flat);
    s->flat = NULL;
}

/* All that is quickly made again. */
static void numbers_forget(struct fm_view *v)
{
    for (int i = 0; i < 2; i++)
        side_forget(&v->side[i]);
    fm_calls_release(&v->calls);
    fm_calls_release(&v->calls_around);
}

static void tree_free(struct fm_view *v)
{
    numbers_forget(v);
    for (int i = 0; i < 2; i++) {
        free((void *)(uintptr_t)v->side[i].of.part);
        free(v->side[i].of.node_of);
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
    numbers_forget(v);
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

static struct fm_numbers_of numbers_of(const struct fm_view_side *s, unsigned metric)
{
    bool table_time = metric == FM_VIEW_TABLE_TIME;
    return (struct fm_numbers_of){
        .columns = fm_engine_metric_columns(table_time ? FM_ENGINE_TOTAL : metric),
        .timeless = table_time ? s->recording->timeless : NULL,
    };
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
            numbers_forget(other);
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
    if (oldest != metric && oldest < FM_VIEW_METRICS)
        fm_numbers_release(&s->values[oldest]);
    memmove(s->recent + 1, s->recent, at * sizeof *s->recent);
    s->recent[0] = metric;
}

void fm_view_forget_moments(struct fm_view *v)
{
    v = v->tree_of ? v->tree_of : v;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < FM_MOMENT_COLUMNS; k++)
            fm_numbers_release(&v->side[i].values[FM_METRIC_THEN + k]);
}

/* What a side keeps of a metric; totals only if they are asked for, or what was recorded. */
static struct fm_numbers values_of(struct fm_view *v, int side, unsigned metric, bool totals)
{
    if (!v->side[side].recording)
        return (struct fm_numbers){ 0 };
    v = v->tree_of ? v->tree_of : v;
    struct fm_view_side *s = &v->side[side];
    struct fm_numbers *values = &s->values[metric];
    struct fm_numbers_of of = numbers_of(s, metric);
    struct fm_shape tree = fm_view_tree(v);
    fm_view_use(v);
    remember(s, metric);
    if (!values->self) {
        /* Against itself a recording is shown as it was at the earlier instant. */
        bool earlier =
            side == 1 && fm_engine_is_moment(metric) && s->recording == v->side[0].recording;
        if (earlier)
            fm_recording_swap_moments(s->recording);
        fm_numbers_init(values, &tree, &s->of, &of);
        if (earlier)
            fm_recording_swap_moments(s->recording);
    }
    if (totals)
        fm_numbers_add_up(values, &tree, &of);
    return *values;
}

const int64_t *fm_view_selves(struct fm_view *v, int side, unsigned metric)
{
    return values_of(v, side, metric, false).self;
}

struct fm_numbers fm_view_values(struct fm_view *v, int side, unsigned metric)
{
    return values_of(v, side, fm_engine_metric_is_drawn(metric) ? metric : FM_ENGINE_TOTAL, true);
}

struct fm_numbers fm_view_table_values(struct fm_view *v, int side, unsigned metric)
{
    const struct fm_recording *r = v->side[side].recording;
    bool differs = r && r->timeless && v->options.thread == FM_NONE;
    return metric == FM_ENGINE_TOTAL && differs ? values_of(v, side, FM_VIEW_TABLE_TIME, true)
                                                : fm_view_values(v, side, metric);
}
