/*
 * The tree of a view: what the page asks for in words of the model. How trees are reshaped and combined
 * is model/derive/shape.h's.
 */
#include <string.h>

#include "base/memory.h"
#include "record/model/derive/edit.h"
#include "view.h"

static bool is_in_scope(const struct fm_view_options *o, const struct fm_profile *p,
                        uint32_t thread)
{
    return (o->thread == FM_NONE || o->thread == thread) &&
           (o->process == FM_NONE || o->process == p->threads.data[thread].process);
}

/* The function that a line is of. */
static uint32_t whole(const struct fm_engine *e, uint32_t func)
{
    return func < e->functions.len && e->functions.data[func].at ? e->functions.data[func].of
                                                                 : func;
}

static bool matches(const struct fm_engine *e, const struct fm_recording *r, uint32_t func,
                    const fm_view_patterns *patterns)
{
    uint32_t id = r->func_of[func];
    for (size_t i = 0; i < patterns->len; i++) {
        const struct fm_view_pattern *pattern = &patterns->data[i];
        if (pattern->glob ? fm_function_glob(r->p, func, (void *)(uintptr_t)pattern->glob)
                          : whole(e, pattern->func) == id ||
                                e->functions.data[id].module_func == pattern->func)
            return true;
    }
    return false;
}

static unsigned asks(const struct fm_view_options *o)
{
    return (o->fold.len || o->fold_libraries ? FM_ASK_FOLD : 0u) |
           (o->keep.len ? FM_ASK_KEEP : 0u) | (o->root.len ? FM_ASK_ROOT : 0u);
}

/* By function of the profile. Caller frees. */
static uint8_t *asked_new(const struct fm_engine *e, const struct fm_recording *r,
                          const struct fm_view_options *o)
{
    const struct fm_profile *p = r->p;
    uint8_t *asked = fm_calloc(p->functions.len + 1, 1);
    for (uint32_t f = 0; f < p->functions.len; f++) {
        if (p->functions.data[f].kind == FM_FUNCTION_ROOT)
            continue;
        if ((o->fold_libraries && e->functions.data[r->func_of[f]].library) ||
            matches(e, r, f, &o->fold))
            asked[f] = FM_ASK_FOLD;
        else
            asked[f] = (uint8_t)((matches(e, r, f, &o->keep) ? FM_ASK_KEEP : 0) |
                                 (matches(e, r, f, &o->root) ? FM_ASK_ROOT : 0));
    }
    return asked;
}

/* What functions are called in the view: as they are, or as their modules. Caller frees. */
static uint32_t *functions_new(struct fm_engine *e, const struct fm_recording *r, bool by_module)
{
    size_t n = r->p->functions.len;
    uint32_t *functions = fm_malloc((n + 1) * sizeof *functions);
    for (size_t i = 0; i < n; i++)
        functions[i] = by_module ? fm_engine_module_of(e, r->func_of[i]) : r->func_of[i];
    return functions;
}

/* What contexts are called: a line, or a function where no line is known. Caller frees. */
static uint32_t *lines_new(struct fm_engine *e, const struct fm_recording *r)
{
    size_t n = r->p->nodes.len;
    uint32_t *names = fm_malloc((n + 1) * sizeof *names);
    struct fm_map known = { 0 };
    for (size_t i = 0; i < n; i++) {
        const struct fm_node *node = &r->p->nodes.data[i];
        bool is_new;
        names[i] = r->func_of[node->func];
        if (!node->line)
            continue;
        uint32_t *name = fm_map_at(&known, fm_map_pair(names[i], node->line), 0, &is_new);
        if (is_new)
            *name = fm_engine_line_of(e, names[i], node->line);
        names[i] = *name;
    }
    fm_map_release(&known);
    return names;
}

static uint32_t *threads_new(const struct fm_recording *r, const struct fm_view_options *o)
{
    uint32_t *threads = fm_malloc((r->p->threads.len + 1) * sizeof *threads);
    for (uint32_t t = 0; t < r->p->threads.len; t++)
        threads[t] = is_in_scope(o, r->p, t) ? r->thread_of[t] : FM_NONE;
    return threads;
}

static void side_shape(struct fm_view *v, struct fm_view_side *s)
{
    const struct fm_view_options *o = &v->options;
    struct fm_recording *r = s->recording;
    s->of.p = r->p;
    if (!r->links.first_child) { /* all views of it use the same */
        fm_links_init(&r->links, r->p);
        r->timeless = fm_flat_timeless_new(r->p);
    }
    s->of.links = &r->links;
    if (asks(o)) {
        fm_autofree uint8_t *asked = asked_new(v->engine, r, o);
        s->of.part = fm_parts_new(r->p, &r->links, asked, asks(o));
        s->of.partly = asks(o) & FM_ASK_KEEP; /* threads have what is below them in any case */
    }
    s->of.func = functions_new(v->engine, r, o->by_module);
    if (o->by_line && !o->by_module && r->p->has_lined_nodes)
        s->of.name = lines_new(v->engine, r);
    s->of.thread = threads_new(r, o);
    if (r->p->flat && !asks(o) && !o->by_module && o->process == FM_NONE && o->thread == FM_NONE)
        s->table = r->p->flat;
}

void fm_view_shape(struct fm_view *v)
{
    const struct fm_view_options *o = &v->options;
    struct fm_shape_source source[2] = { 0 };
    struct fm_shape shape;
    for (int i = 0; i < 2 && v->side[i].recording; i++) {
        side_shape(v, &v->side[i]);
        source[i] = v->side[i].of;
    }
    uint32_t functions = (uint32_t)v->engine->functions.len;
    fm_shape_init(&shape, source,
                  &(struct fm_shape_options){ .together = o->together,
                                              .joins = o->by_module,
                                              .folds = asks(o) & FM_ASK_FOLD,
                                              .functions = functions });
    for (int i = 0; i < 2; i++) {
        struct fm_shape_source *of = &v->side[i].of;
        of->node_of = source[i].node_of;
        free((void *)(uintptr_t)of->func);
        free((void *)(uintptr_t)of->name);
        free((void *)(uintptr_t)of->thread);
        of->func = of->name = of->thread = NULL;
    }
    v->nodes = shape.nodes;
    v->depth = shape.depth;
    v->parent = shape.parent;
    v->func = shape.func;
    v->end = shape.end;
    v->outermost = fm_shape_outermost_new(&shape, functions);
}
