/* What becomes of the nodes of a recording in a view, and the view's tree; see shape.h. */
#include "shape.h"

#include <string.h>

#include "base/memory.h"
#include "record/model/edit.h"

bool fm_view_in_scope(const struct fm_view_options *o, const struct fm_profile *p, uint32_t thread)
{
    return (o->thread == FM_NONE || o->thread == thread) &&
           (o->process == FM_NONE || o->process == p->threads.data[thread].process);
}

/* ---- functions ---- */

/* What is asked of a function, by function of the profile. */
enum { FOLDED = 1, KEPT = 2, ROOT = 4 };

static bool matches(const struct fm_engine *e, const struct fm_recording *r, uint32_t func,
                    const fm_view_patterns *patterns)
{
    uint32_t id = r->func_of[func];
    for (size_t i = 0; i < patterns->len; i++) {
        const struct fm_view_pattern *pattern = &patterns->data[i];
        if (pattern->glob
                ? fm_function_glob(r->p, func, (void *)(uintptr_t)pattern->glob)
                : pattern->func == id || e->functions.data[id].module_func == pattern->func)
            return true;
    }
    return false;
}

/* A function that is folded is not there any more to be kept or to be a root. Caller frees. */
static uint8_t *asked_new(const struct fm_engine *e, const struct fm_recording *r,
                          const struct fm_view_options *o)
{
    const struct fm_profile *p = r->p;
    uint8_t *asked = fm_calloc(p->functions.len, 1);
    for (uint32_t f = 0; f < p->functions.len; f++) {
        if (p->functions.data[f].kind == FM_FUNCTION_ROOT)
            continue;
        if ((o->fold_libraries && e->functions.data[r->func_of[f]].library) ||
            matches(e, r, f, &o->fold))
            asked[f] = FOLDED;
        else
            asked[f] = (uint8_t)((matches(e, r, f, &o->keep) ? KEPT : 0) |
                                 (matches(e, r, f, &o->root) ? ROOT : 0));
    }
    return asked;
}

/* ---- nodes ---- */

static bool folds(const struct fm_view_options *o)
{
    return o->fold.len || o->fold_libraries;
}

static bool is_reshaped(const struct fm_view_options *o)
{
    return folds(o) || o->keep.len || o->root.len || o->by_module;
}

static uint8_t *folded_parts_new(const struct fm_profile *p, const uint8_t *asked)
{
    uint8_t *parts = fm_malloc(p->nodes.len);
    for (size_t i = 0; i < p->nodes.len; i++)
        parts[i] =
            asked[p->nodes.data[i].func] & FOLDED ? FM_SHAPE_MELTS | FM_SHAPE_OWN : FM_SHAPE_WHOLE;
    return parts;
}

/* By node: is it, or does it lead to, what is to be kept? Caller frees. */
static uint8_t *leads_new(const struct fm_profile *p, const uint8_t *asked)
{
    uint8_t *leads = fm_calloc(p->nodes.len, 1);
    for (size_t i = p->nodes.len; i-- > 0;) {
        leads[i] |= (asked[p->nodes.data[i].func] & KEPT) != 0;
        if (leads[i] && p->nodes.data[i].parent != FM_NONE)
            leads[p->nodes.data[i].parent] = 1;
    }
    return leads;
}

/* Folding unites paths, and a path that leads somewhere does so with all that is in it. So the
 * folded tree of each thread decides. */
static void leads_unite(struct fm_engine *e, struct fm_recording *r, const uint8_t *asked,
                        uint8_t *leads)
{
    struct fm_view_options o = { .process = FM_NONE, .thread = FM_NONE, .fold_libraries = true };
    fm_autofree uint8_t *parts = folded_parts_new(r->p, asked);
    struct fm_tree_source source[2] = { { .recording = r, .p = r->p, .part = parts } };
    struct fm_tree tree;
    fm_tree_build(&tree, e, source, &o);
    fm_autofree uint8_t *united = fm_calloc(tree.nodes, 1);
    for (size_t i = 0; i < r->p->nodes.len; i++)
        united[source[0].node_of[i]] |= leads[i];
    for (size_t i = 0; i < r->p->nodes.len; i++)
        leads[i] = united[source[0].node_of[i]];
    free(source[0].node_of);
    free(tree.parent);
    free(tree.func);
    free(tree.end);
}

/* The part of a node that is no thread. `caller` is the part of its caller. */
static unsigned part_of(unsigned asked, unsigned caller, bool leads)
{
    unsigned place = (caller & (FM_SHAPE_INSIDE | FM_SHAPE_ROOTED)) |
                     (asked & KEPT ? FM_SHAPE_INSIDE : 0) | (asked & ROOT ? FM_SHAPE_ROOTED : 0);
    if (!(place & FM_SHAPE_INSIDE) && !leads)
        return 0;
    if (!(place & FM_SHAPE_ROOTED))
        return place | FM_SHAPE_LEADS;
    if (asked & FOLDED) /* its time is part of its caller's already; what is its own goes there */
        return place | FM_SHAPE_MELTS | (caller & FM_SHAPE_OWN);
    /* Above what is kept the time is that of what remains below: fm_view_values sees to it. */
    return place | (place & FM_SHAPE_INSIDE ? FM_SHAPE_WHOLE : FM_SHAPE_NODE | FM_SHAPE_CALLS);
}

/* NULL if all are whole. Caller frees. */
static uint8_t *parts_new(struct fm_engine *e, struct fm_recording *r,
                          const struct fm_view_options *o)
{
    const struct fm_profile *p = r->p;
    if (!folds(o) && !o->keep.len && !o->root.len)
        return NULL;
    fm_autofree uint8_t *asked = asked_new(e, r, o);
    if (!o->keep.len && !o->root.len)
        return folded_parts_new(p, asked);
    fm_autofree uint8_t *leads = o->keep.len ? leads_new(p, asked) : NULL;
    if (leads && folds(o))
        leads_unite(e, r, asked, leads);
    /* A thread has of time what remains below it. */
    unsigned thread =
        FM_SHAPE_NODE | (o->keep.len ? 0 : FM_SHAPE_INSIDE) | (o->root.len ? 0 : FM_SHAPE_ROOTED);
    uint8_t *parts = fm_malloc(p->nodes.len);
    for (size_t i = 0; i < p->nodes.len; i++) {
        const struct fm_node *node = &p->nodes.data[i];
        parts[i] =
            (uint8_t)(node->parent == FM_NONE
                          ? thread
                          : part_of(asked[node->func], parts[node->parent], leads && leads[i]));
    }
    return parts;
}

/* ---- the view ---- */

static void find_outermost(struct fm_view *v)
{
    fm_autofree uint32_t *busy_until = fm_calloc(v->engine->functions.len, sizeof *busy_until);
    v->outermost = fm_malloc(v->nodes);
    for (uint32_t i = 0; i < v->nodes; i++) {
        uint32_t func = v->func[i];
        v->outermost[i] = i >= busy_until[func];
        if (v->outermost[i])
            busy_until[func] = v->end[i];
    }
}

void fm_view_shape(struct fm_view *v)
{
    const struct fm_view_options *o = &v->options;
    struct fm_tree_source source[2] = { 0 };
    struct fm_tree tree;
    for (int i = 0; i < 2 && v->side[i].recording; i++) {
        struct fm_view_side *s = &v->side[i];
        s->p = s->recording->p;
        s->part = parts_new(v->engine, s->recording, o);
        s->partly = o->keep.len > 0;
        if (s->p->flat && !is_reshaped(o) && o->process == FM_NONE && o->thread == FM_NONE)
            s->table = s->p->flat;
        source[i] =
            (struct fm_tree_source){ .recording = s->recording, .p = s->p, .part = s->part };
    }
    fm_tree_build(&tree, v->engine, source, o);
    for (int i = 0; i < 2; i++)
        v->side[i].node_of = source[i].node_of;
    v->nodes = tree.nodes;
    v->depth = tree.depth;
    v->parent = tree.parent;
    v->func = tree.func;
    v->end = tree.end;
    find_outermost(v);
}
