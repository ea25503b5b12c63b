/* What becomes of the nodes of a profile; see shape.h. */
#include "base/memory.h"
#include "record/model/derive/shape.h"

static uint8_t *folded_parts_new(const struct fm_profile *p, const uint8_t *asked)
{
    uint8_t *parts = fm_malloc(p->nodes.len + 1);
    for (size_t i = 0; i < p->nodes.len; i++)
        parts[i] = asked[p->nodes.data[i].func] & FM_ASK_FOLD ? FM_SHAPE_MELTS | FM_SHAPE_OWN
                                                              : FM_SHAPE_WHOLE;
    return parts;
}

/* By node: is it, or does it lead to, what is to be kept? Caller frees. */
static uint8_t *leads_new(const struct fm_profile *p, const uint8_t *asked)
{
    uint8_t *leads = fm_calloc(p->nodes.len + 1, 1);
    for (size_t i = p->nodes.len; i-- > 0;) {
        leads[i] |= (asked[p->nodes.data[i].func] & FM_ASK_KEEP) != 0;
        if (leads[i] && p->nodes.data[i].parent != FM_NONE)
            leads[p->nodes.data[i].parent] = 1;
    }
    return leads;
}

/* Folding combines paths, and a path that leads somewhere does so with all that is in it. So the folded
 * tree of each thread decides. */
static void leads_combine(const struct fm_profile *p, const struct fm_links *links,
                          const uint8_t *asked, uint8_t *leads)
{
    fm_autofree uint8_t *parts = folded_parts_new(p, asked);
    fm_autofree uint32_t *names = fm_names_in_shape_new(p);
    struct fm_shape_options o = { .folds = true,
                                  .functions = (uint32_t)(p->functions.len + p->threads.len) };
    struct fm_shape_source source[2] = {
        { .p = p, .links = links, .part = parts, .func = names, .thread = names + p->functions.len }
    };
    struct fm_shape shape;
    fm_shape_init(&shape, source, &o);
    fm_autofree uint32_t *node_of = source[0].node_of;
    fm_autofree uint8_t *combined = fm_calloc(shape.nodes, 1);
    for (size_t i = 0; i < p->nodes.len; i++)
        combined[node_of[i]] |= leads[i];
    for (size_t i = 0; i < p->nodes.len; i++)
        leads[i] = combined[node_of[i]];
    fm_shape_release(&shape);
}

/* The part of a node that is no thread. `caller` is the part of its caller. */
static unsigned part_of(unsigned asked, unsigned caller, bool leads)
{
    unsigned place = (caller & (FM_SHAPE_INSIDE | FM_SHAPE_ROOTED)) |
                     (asked & FM_ASK_KEEP ? FM_SHAPE_INSIDE : 0) |
                     (asked & FM_ASK_ROOT ? FM_SHAPE_ROOTED : 0);
    if (!(place & FM_SHAPE_INSIDE) && !leads)
        return 0;
    if (!(place & FM_SHAPE_ROOTED))
        return place | FM_SHAPE_LEADS;
    if (asked &
        FM_ASK_FOLD) /* its time is part of its caller's already; what is its own goes there */
        return place | FM_SHAPE_MELTS | (caller & FM_SHAPE_OWN);
    /* Above what is kept the time is that of what remains below: fm_shape_totals_new sees to it. */
    return place | (place & FM_SHAPE_INSIDE ? FM_SHAPE_WHOLE : FM_SHAPE_NODE | FM_SHAPE_CALLS);
}

uint8_t *fm_parts_new(const struct fm_profile *p, const struct fm_links *links,
                      const uint8_t *asked, unsigned kinds)
{
    bool keeps = kinds & FM_ASK_KEEP, roots = kinds & FM_ASK_ROOT;
    if (!kinds)
        return NULL;
    if (!keeps && !roots)
        return folded_parts_new(p, asked);
    fm_autofree uint8_t *leads = keeps ? leads_new(p, asked) : NULL;
    if (leads && kinds & FM_ASK_FOLD)
        leads_combine(p, links, asked, leads);
    /* A thread has of time what remains below it. */
    unsigned thread = FM_SHAPE_NODE | (keeps ? 0 : FM_SHAPE_INSIDE) | (roots ? 0 : FM_SHAPE_ROOTED);
    uint8_t *parts = fm_malloc(p->nodes.len + 1);
    for (size_t i = 0; i < p->nodes.len; i++) {
        const struct fm_node *node = &p->nodes.data[i];
        parts[i] =
            (uint8_t)(node->parent == FM_NONE
                          ? thread
                          : part_of(asked[node->func], parts[node->parent], leads && leads[i]));
    }
    return parts;
}
