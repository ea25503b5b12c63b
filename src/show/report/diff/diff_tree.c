/*
 * The trees of two recordings as one (model/derive/shape.h): equal paths of all threads of both. The branches that changed
 * most come first; those in which nothing changed by more than a share of everything are summed up.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "record/model/derive/sums.h"
#include "show/report/diff/diff.h"

/* A tree of both, and what its nodes have. */
struct diff_trees {
    struct fm_diff *d;
    struct fm_shape shape;
    struct fm_numbers numbers[FM_SIDES];
    int64_t *calls[FM_SIDES];
    uint64_t *most;                 /* by node: the largest change of it and of all below it */
    uint32_t *first, *sibling;      /* children, FM_NONE at the end */
    const struct fm_diff_row **row; /* by name in the shape */
    uint64_t least;
};

static uint64_t distance(int64_t a, int64_t b)
{
    return a > b ? (uint64_t)(a - b) : (uint64_t)(b - a);
}

/* ---- the shape ---- */

/* In a shape 0 is everything, so functions are called one more than in the comparison. */
static void make_shape(struct diff_trees *t)
{
    struct fm_diff *d = t->d;
    struct fm_shape_source source[FM_SIDES] = { 0 };
    struct fm_links links[FM_SIDES];
    uint32_t *names[FM_SIDES], *threads[FM_SIDES];
    const struct fm_diff_key *key = &fm_diff_keys[d->key];
    for (int side = 0; side < FM_SIDES; side++) {
        const struct fm_profile *p = d->side[side].p;
        names[side] = fm_malloc((p->functions.len + 1) * sizeof *names[side]);
        threads[side] = fm_calloc(p->threads.len + 1, sizeof *threads[side]);
        for (size_t i = 0; i < p->functions.len; i++)
            names[side][i] = d->name[side][i] + 1;
        fm_links_init(&links[side], p);
        source[side] = (struct fm_shape_source){
            .p = p, .links = &links[side], .func = names[side], .thread = threads[side]
        };
    }
    fm_shape_init(&t->shape, source,
                  &(struct fm_shape_options){ .together = true, .functions = d->names + 1 });
    for (int side = 0; side < FM_SIDES; side++) {
        const struct fm_profile *p = source[side].p;
        fm_autofree bool *timeless = d->memory ? NULL : fm_flat_timeless_new(p);
        struct fm_numbers_of of = { .columns = 1ull << key->metric, .timeless = timeless };
        fm_numbers_init(&t->numbers[side], &t->shape, &source[side], &of);
        fm_numbers_add_up(&t->numbers[side], &t->shape, &of);
        t->calls[side] = fm_calloc(t->shape.nodes + 1, sizeof *t->calls[side]);
        for (uint32_t i = 0; i < p->nodes.len && !d->memory; i++) {
            uint32_t node = source[side].node_of[i];
            if (node != FM_NONE)
                t->calls[side][node] += fm_profile_value(p, FM_METRIC_CALLS, i) +
                                        fm_profile_value(p, FM_METRIC_RESUMES, i);
        }
        free(source[side].node_of);
        free(names[side]);
        free(threads[side]);
        fm_links_release(&links[side]);
    }
}

static int64_t total_of(const struct diff_trees *t, int side, uint32_t node)
{
    return fm_diff_scaled(t->d, side, t->numbers[side].total[node]);
}

/* Nodes below one follow it, so going backwards meets children first, and of siblings the last. */
static void link_nodes(struct diff_trees *t)
{
    uint32_t nodes = t->shape.nodes;
    t->most = fm_calloc(nodes + 1, sizeof *t->most);
    t->first = fm_malloc((nodes + 1) * sizeof *t->first);
    t->sibling = fm_malloc((nodes + 1) * sizeof *t->sibling);
    memset(t->first, 0xff, (nodes + 1) * sizeof *t->first); /* FM_NONE */
    for (uint32_t i = nodes; i-- > 0;) {
        uint64_t own = distance(total_of(t, FM_NOW, i), total_of(t, FM_BEFORE, i));
        uint32_t parent = t->shape.parent[i];
        t->most[i] = t->most[i] > own ? t->most[i] : own;
        t->sibling[i] = FM_NONE;
        if (!i)
            break;
        t->most[parent] = t->most[parent] > t->most[i] ? t->most[parent] : t->most[i];
        t->sibling[i] = t->first[parent];
        t->first[parent] = i;
    }
}

static void find_rows(struct diff_trees *t)
{
    struct fm_diff *d = t->d;
    t->row = fm_calloc(d->names + 1, sizeof *t->row);
    for (size_t i = 0; i < d->rows.len; i++) {
        const struct fm_diff_row *row = &d->rows.data[i];
        for (int side = 0; side < FM_SIDES; side++)
            if (row->row[side] != FM_NONE) {
                uint32_t func = d->side[side].flat->rows.data[row->row[side]].func;
                t->row[d->name[side][func]] = row;
            }
    }
}

/* ---- the walk ---- */

static int compare_nodes(const void *a, const void *b, void *data)
{
    const struct diff_trees *t = data;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (t->most[x] != t->most[y])
        return t->most[x] > t->most[y] ? -1 : 1;
    return x < y ? -1 : 1;
}

/* A node that is to be shown, or what is left out of its siblings. */
struct open_node {
    uint32_t node; /* FM_NONE: what is left out */
    int depth;
    uint64_t lasts;
    struct fm_diff_step rest;
};

typedef FM_VEC(struct open_node) open_nodes;

/* The children of a node that are shown, and one for the rest, so that the first comes out first. */
static void open_children(struct diff_trees *t, open_nodes *open, const struct open_node *at)
{
    FM_VEC(uint32_t) shown = { 0 };
    struct open_node rest = { .node = FM_NONE, .depth = at->depth + 1 };
    bool deep = t->d->depth_max >= 0 && at->depth >= t->d->depth_max;
    for (uint32_t i = t->first[at->node]; i != FM_NONE && !deep; i = t->sibling[i]) {
        if (t->most[i] >= t->least && t->most[i] > 0) {
            fm_vec_push(&shown, i);
            continue;
        }
        rest.rest.hidden++;
        for (int side = 0; side < FM_SIDES; side++)
            rest.rest.total[side] = fm_sum(rest.rest.total[side], total_of(t, side, i));
    }
    if (shown.len)
        qsort_r(shown.data, shown.len, sizeof *shown.data, compare_nodes, t);
    bool hides = rest.rest.hidden && shown.len;
    uint64_t last = at->lasts | (at->depth + 1 < 64 ? 1ull << (at->depth + 1) : 0);
    rest.lasts = last;
    if (hides)
        fm_vec_push(open, rest);
    for (size_t i = shown.len; i-- > 0;)
        fm_vec_push(
            open, ((struct open_node){ .node = shown.data[i],
                                       .depth = at->depth + 1,
                                       .lasts = i + 1 == shown.len && !hides ? last : at->lasts }));
    fm_vec_release(&shown);
}

static void show_node(struct diff_trees *t, const struct open_node *at, fm_diff_show *show,
                      void *data)
{
    struct fm_diff_step step = at->rest;
    step.depth = at->depth;
    step.lasts = at->lasts;
    if (at->node != FM_NONE) {
        uint32_t name = t->shape.func[at->node];
        step.row = name ? t->row[name - 1] : NULL;
        for (int side = 0; side < FM_SIDES; side++) {
            step.total[side] = total_of(t, side, at->node);
            step.self[side] = fm_diff_scaled(t->d, side, t->numbers[side].self[at->node]);
            step.calls[side] = fm_diff_scaled(t->d, side, t->calls[side][at->node]);
        }
    }
    show(&step, data);
}

void fm_diff_walk(struct fm_diff *d, fm_diff_show *show, void *data)
{
    struct diff_trees t = { .d = d };
    open_nodes open = { 0 };
    make_shape(&t);
    link_nodes(&t);
    find_rows(&t);
    int64_t all = total_of(&t, FM_BEFORE, 0), now = total_of(&t, FM_NOW, 0);
    t.least = (uint64_t)((double)(all > now ? all : now) * d->min_percent / 100);
    fm_vec_push(&open, ((struct open_node){ .node = 0 }));
    while (open.len) {
        struct open_node at = open.data[--open.len];
        show_node(&t, &at, show, data);
        if (at.node != FM_NONE)
            open_children(&t, &open, &at);
    }
    fm_vec_release(&open);
    for (int side = 0; side < FM_SIDES; side++) {
        fm_numbers_release(&t.numbers[side]);
        free(t.calls[side]);
    }
    fm_shape_release(&t.shape);
    free(t.most);
    free(t.first);
    free(t.sibling);
    free(t.row);
}
