/*
 * From recordings to the tree of a view; see view.h.
 *
 * Folding, keeping and rooting are the model's (model/edit.h). What is done here: the scope,
 * threads or recordings united, modules in the place of functions, and the numbering.
 */
#include <string.h>

#include "base/memory.h"
#include "model/edit.h"
#include "view.h"

/* ---- reshaping by the model ---- */

/* By function of the profile: does it match? */
struct matches {
    const bool *is;
};

static bool match(const struct fm_profile *p, uint32_t func, void *data)
{
    (void)p;
    return ((const struct matches *)data)->is[func];
}

static bool *matches_new(const struct fm_view *v, const struct fm_view_side *s,
                         const fm_view_patterns *patterns, bool libraries)
{
    const struct fm_recording *r = s->recording;
    bool *is = fm_calloc(s->p->functions.len, sizeof *is);
    for (uint32_t f = 0; f < s->p->functions.len; f++) {
        uint32_t id = r->func_of[f];
        is[f] = libraries && v->engine->functions.data[id].library;
        for (size_t i = 0; i < patterns->len && !is[f]; i++) {
            const struct fm_view_pattern *pattern = &patterns->data[i];
            is[f] = pattern->glob ? fm_function_glob(s->p, f, (void *)(uintptr_t)pattern->glob)
                                  : pattern->func == id ||
                                        v->engine->functions.data[id].module_func == pattern->func;
        }
    }
    return is;
}

typedef struct fm_profile *reshape(const struct fm_profile *p, fm_function_match *match,
                                   void *data);

static void side_reshape(struct fm_view *v, struct fm_view_side *s, reshape *how,
                         const fm_view_patterns *patterns, bool libraries)
{
    if (!patterns->len && !libraries)
        return;
    fm_autofree bool *is = matches_new(v, s, patterns, libraries);
    struct fm_profile *p = how(s->p, match, &(struct matches){ is });
    if (s->owned)
        fm_profile_free(s->p);
    s->p = p;
    s->owned = true;
}

static bool is_reshaped(const struct fm_view_options *o)
{
    return o->fold.len || o->fold_libraries || o->keep.len || o->root.len || o->by_module;
}

int fm_view_shape(struct fm_view *v)
{
    const struct fm_view_options *o = &v->options;
    for (int i = 0; i < 2; i++) {
        struct fm_view_side *s = &v->side[i];
        if (!s->recording)
            continue;
        s->p = s->recording->p;
        side_reshape(v, s, fm_profile_fold, &o->fold, o->fold_libraries);
        side_reshape(v, s, fm_profile_filter, &o->keep, false);
        side_reshape(v, s, fm_profile_root, &o->root, false);
        if (s->p->flat && !is_reshaped(o) && o->process == FM_NONE && o->thread == FM_NONE)
            s->table = s->p->flat;
    }
    return 0;
}

/* ---- the tree ---- */

struct builder {
    struct fm_view *v;
    FM_VEC(uint32_t) parent;
    FM_VEC(uint32_t) func;
    struct fm_map children; /* (parent, func) → node, if paths are to be united */
    bool unite;
};

static uint32_t node_new(struct builder *b, uint32_t parent, uint32_t func)
{
    uint32_t node = (uint32_t)b->parent.len;
    if (b->unite) {
        bool is_new;
        uint32_t known = *fm_map_at(&b->children, fm_map_pair(parent, func), node, &is_new);
        if (!is_new)
            return known;
    }
    fm_vec_push(&b->parent, parent);
    fm_vec_push(&b->func, func);
    return node;
}

static bool in_scope(const struct fm_view *v, const struct fm_profile *p, uint32_t thread)
{
    const struct fm_view_options *o = &v->options;
    return (o->thread == FM_NONE || o->thread == thread) &&
           (o->process == FM_NONE || o->process == p->threads.data[thread].process);
}

static void side_build(struct builder *b, struct fm_view_side *s)
{
    struct fm_view *v = b->v;
    const struct fm_profile *p = s->p;
    const uint32_t *func_of = s->recording->func_of;
    s->node_of = fm_malloc(p->nodes.len * sizeof *s->node_of);
    for (size_t i = 0; i < p->nodes.len; i++) {
        const struct fm_node *node = &p->nodes.data[i];
        uint32_t *place = &s->node_of[i];
        if (node->parent == FM_NONE) {
            *place = FM_NONE;
            if (in_scope(v, p, node->thread))
                *place =
                    v->options.together ? 0 : node_new(b, 0, s->recording->thread_of[node->thread]);
            continue;
        }
        uint32_t up = s->node_of[node->parent], func = func_of[node->func];
        if (up == FM_NONE) {
            *place = FM_NONE;
            continue;
        }
        if (v->options.by_module)
            func = fm_engine_module_of(v->engine, func);
        bool stays = v->options.by_module && up && b->func.data[up] == func;
        *place = stays ? up : node_new(b, up, func);
    }
}

/* Is there anything to unite? Looking siblings up costs more than all the rest. */
static bool has_doubles(const struct fm_view *v)
{
    uint32_t threads = 0;
    const struct fm_profile *p = v->side[0].p;
    for (uint32_t t = 0; t < p->threads.len; t++)
        threads += in_scope(v, p, t);
    return fm_view_is_diff(v) || v->options.by_module ||
           (v->options.together && !v->options.reversed && threads > 1);
}

/* Number the nodes so that those below one follow it directly; children stay in order. */
static uint32_t *new_numbers(struct fm_view *v, const struct builder *b)
{
    uint32_t n = (uint32_t)b->parent.len;
    uint32_t *size = fm_malloc(n * sizeof *size), *number = fm_malloc(n * sizeof *number);
    fm_autofree uint32_t *next = fm_malloc(n * sizeof *next);
    for (uint32_t i = 0; i < n; i++)
        size[i] = 1;
    for (uint32_t i = n; i-- > 1;)
        size[b->parent.data[i]] += size[i];
    number[0] = 0;
    next[0] = 1;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t up = b->parent.data[i];
        number[i] = next[up];
        next[up] += size[i];
        next[i] = number[i] + 1;
    }
    for (uint32_t i = 0; i < n; i++) {
        v->parent[number[i]] = i ? number[b->parent.data[i]] : FM_NONE;
        v->func[number[i]] = b->func.data[i];
        v->end[number[i]] = number[i] + size[i];
    }
    free(size);
    return number;
}

static void measure_depth(struct fm_view *v)
{
    fm_autofree uint32_t *depth = fm_malloc(v->nodes * sizeof *depth);
    depth[0] = 0;
    for (uint32_t i = 1; i < v->nodes; i++) {
        depth[i] = depth[v->parent[i]] + 1;
        if (depth[i] > v->depth)
            v->depth = depth[i];
    }
}

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

void fm_view_build(struct fm_view *v)
{
    struct builder b = { .v = v, .unite = has_doubles(v) };
    fm_vec_reserve(&b.parent, v->side[0].p->nodes.len + 1);
    fm_vec_reserve(&b.func, v->side[0].p->nodes.len + 1);
    fm_vec_push(&b.parent, FM_NONE);
    fm_vec_push(&b.func, 0);
    for (int i = 0; i < 2; i++)
        if (v->side[i].recording)
            side_build(&b, &v->side[i]);
    fm_map_release(&b.children);
    v->nodes = (uint32_t)b.parent.len;
    v->parent = fm_malloc(v->nodes * sizeof *v->parent);
    v->func = fm_malloc(v->nodes * sizeof *v->func);
    v->end = fm_malloc(v->nodes * sizeof *v->end);
    fm_autofree uint32_t *number = new_numbers(v, &b);
    fm_vec_release(&b.parent);
    fm_vec_release(&b.func);
    for (int i = 0; i < 2; i++) {
        struct fm_view_side *s = &v->side[i];
        for (size_t n = 0; s->recording && n < s->p->nodes.len; n++)
            if (s->node_of[n] != FM_NONE)
                s->node_of[n] = number[s->node_of[n]];
    }
    measure_depth(v);
    find_outermost(v);
}
