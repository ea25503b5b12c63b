/*
 * Shapes of trees; see shape.h.
 *
 * A node of the shape stands for a set of nodes of the profiles, its members. They are known when the
 * node is made, so its children are found at once: the children of all members, put together by
 * function. Nothing has to be looked up by path, and as the walk goes down first, the nodes get
 * their final numbers in the order in which they are made.
 */
#include "record/model/derive/shape.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* ---- children ---- */

void fm_links_init(struct fm_links *links, const struct fm_profile *p)
{
    size_t n = p->nodes.len;
    links->first_child = fm_malloc((n + 1) * sizeof *links->first_child);
    links->next_child = fm_malloc((n + 1) * sizeof *links->next_child);
    memset(links->first_child, 0xff, n * sizeof *links->first_child); /* FM_NONE */
    for (size_t i = n; i-- > 0;) {
        uint32_t parent = p->nodes.data[i].parent;
        links->next_child[i] = FM_NONE;
        if (parent == FM_NONE)
            continue;
        links->next_child[i] = links->first_child[parent];
        links->first_child[parent] = (uint32_t)i;
    }
}

void fm_links_release(struct fm_links *links)
{
    free(links->first_child);
    free(links->next_child);
    *links = (struct fm_links){ 0 };
}

/* A child of a member of the node that is being expanded. */
struct member_kid {
    uint32_t member, func;
};

/* Kids of one function: a child of the view's node. */
struct kid_group {
    uint32_t func, first, count; /* first: the smallest member, which gives the order */
    uint32_t at;                 /* where its members lie while they wait */
};

/* A node that is to be made. One member is the rule; where there are more, they are the topmost
 * `count` of those that wait. */
struct waiting {
    uint32_t parent, func, depth, count;
    uint32_t member; /* if it is the only one */
};

typedef FM_VEC(uint32_t) members;

struct builder {
    struct fm_shape *tree;
    struct fm_shape_source *source;
    uint32_t second; /* members from this one on are of the second source */
    bool joins;
    bool copies;  /* what is below a single member is in the tree as it is */
    members open; /* members of the node that is being expanded */
    members rest; /* members of those that wait and have more than one */
    FM_VEC(struct member_kid) kids;
    FM_VEC(struct kid_group) groups;
    FM_VEC(struct waiting) stack;
    uint32_t *group_of; /* by function; to be believed if that group has the function */
};

uint32_t *fm_names_in_shape_new(const struct fm_profile *p)
{
    size_t n = p->functions.len + p->threads.len;
    uint32_t *names = fm_malloc((n + 1) * sizeof *names);
    for (size_t i = 0; i < n; i++)
        names[i] = (uint32_t)i;
    return names;
}

/* What a node is called in the shape. */
static inline uint32_t name_of(const struct fm_shape_source *s, uint32_t node)
{
    return s->name ? s->name[node] : s->func[s->p->nodes.data[node].func];
}

/* ---- members ---- */

/* The source of a member, which becomes a node of it. */
static struct fm_shape_source *source_of(struct builder *b, uint32_t *member)
{
    bool is_second = *member >= b->second;
    *member -= is_second ? b->second : 0;
    return &b->source[is_second];
}

/* ---- from a node to its children ---- */

static void kid_add(struct builder *b, uint32_t member, uint32_t func)
{
    uint32_t group = b->group_of[func];
    if (group >= b->groups.len || b->groups.data[group].func != func) {
        group = b->group_of[func] = (uint32_t)b->groups.len;
        fm_vec_push(&b->groups, ((struct kid_group){ .func = func, .first = member }));
    }
    struct kid_group *g = &b->groups.data[group];
    g->count++;
    if (member < g->first)
        g->first = member;
    fm_vec_push(&b->kids, ((struct member_kid){ member, func }));
}

/* Put the children of a member into groups. Those that are not nodes of their own become members of
 * `node`, or at least lead on, and so their children are found here, too. */
static void member_expand(struct builder *b, uint32_t node, uint32_t member)
{
    uint32_t offset = member >= b->second ? b->second : 0;
    struct fm_shape_source *s = source_of(b, &member);
    for (uint32_t i = s->links->first_child[member]; i != FM_NONE; i = s->links->next_child[i]) {
        unsigned part = s->part ? s->part[i] : FM_SHAPE_NODE;
        if (part & FM_SHAPE_NODE) {
            uint32_t func = name_of(s, i);
            if (!b->joins || !node || b->tree->func[node] != func) {
                kid_add(b, i + offset, func);
                continue;
            }
            part = FM_SHAPE_MELTS;
        }
        if (part & FM_SHAPE_MELTS)
            s->node_of[i] = node;
        if (part & (FM_SHAPE_MELTS | FM_SHAPE_LEADS))
            fm_vec_push(&b->open, i + offset);
    }
}

static int by_first(const void *left, const void *right)
{
    const struct kid_group *a = left, *b = right;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* Children stand in the order of the recording. They mostly come in it. */
static bool in_order(const struct builder *b)
{
    for (size_t i = 1; i < b->groups.len; i++)
        if (b->groups.data[i].first < b->groups.data[i - 1].first)
            return false;
    return true;
}

static void groups_sort(struct builder *b)
{
    if (in_order(b))
        return;
    qsort(b->groups.data, b->groups.len, sizeof *b->groups.data, by_first);
    for (size_t i = 0; i < b->groups.len; i++)
        b->group_of[b->groups.data[i].func] = (uint32_t)i;
}

/* Let the groups wait, the first one on top. */
static void groups_wait(struct builder *b, uint32_t node, uint32_t depth)
{
    uint32_t at = (uint32_t)b->rest.len;
    groups_sort(b);
    for (size_t i = b->groups.len; i-- > 0;) {
        struct kid_group *g = &b->groups.data[i];
        g->at = at;
        at += g->count > 1 ? g->count : 0;
        fm_vec_push(&b->stack, ((struct waiting){ node, g->func, depth, g->count, g->first }));
    }
    if (at == b->rest.len)
        return;
    fm_vec_reserve(&b->rest, at);
    b->rest.len = at;
    for (size_t i = 0; i < b->kids.len; i++) {
        struct kid_group *g = &b->groups.data[b->group_of[b->kids.data[i].func]];
        if (g->count > 1)
            b->rest.data[g->at++] = b->kids.data[i].member;
    }
}

static void node_expand(struct builder *b, uint32_t node, uint32_t depth)
{
    for (size_t i = 0; i < b->open.len; i++)
        member_expand(b, node, b->open.data[i]);
    groups_wait(b, node, depth + 1);
    b->kids.len = b->groups.len = 0;
}

static uint32_t node_add(struct fm_shape *tree, uint32_t parent, uint32_t func, uint32_t depth)
{
    tree->parent[tree->nodes] = parent;
    tree->func[tree->nodes] = func;
    if (depth > tree->depth)
        tree->depth = depth;
    return tree->nodes++;
}

/* ---- from a member to all below it ---- */

/* The next node after `i` in a walk through what is below `top`, which leaves out what is not in
 * the tree; FM_NONE at the end. `depth` follows. */
static uint32_t walk_on(const struct fm_shape_source *s, uint32_t top, uint32_t i, uint32_t *depth)
{
    uint32_t next = s->links->first_child[i];
    ++*depth;
    for (;;) {
        while (next != FM_NONE && s->part && !s->part[next])
            next = s->links->next_child[next];
        if (next != FM_NONE || i == top)
            return next;
        next = s->links->next_child[i];
        i = s->p->nodes.data[i].parent;
        --*depth;
    }
}

/* Where nothing is put together any more, the tree is a copy. */
static void member_copy(struct builder *b, struct fm_shape_source *s, uint32_t top,
                        const struct waiting *w)
{
    uint32_t depth = w->depth;
    s->node_of[top] = node_add(b->tree, w->parent, w->func, depth);
    for (uint32_t i = walk_on(s, top, top, &depth); i != FM_NONE; i = walk_on(s, top, i, &depth)) {
        uint32_t up = s->p->nodes.data[i].parent;
        s->node_of[i] = node_add(b->tree, s->node_of[up], name_of(s, i), depth);
    }
}

/* ---- the whole ---- */

static void member_open(struct builder *b, uint32_t node, uint32_t member)
{
    fm_vec_push(&b->open, member);
    struct fm_shape_source *s = source_of(b, &member);
    s->node_of[member] = node;
}

/* Below a thread there may be new roots; below any other node nothing but copies. */
static bool is_copied(struct builder *b, const struct waiting *w)
{
    uint32_t member = w->member;
    const struct fm_shape_source *s = source_of(b, &member);
    return b->copies && w->count == 1 && s->p->nodes.data[member].parent != FM_NONE;
}

/* Make the node that waits on top, and have its children wait. */
static void node_make(struct builder *b)
{
    struct waiting w = b->stack.data[--b->stack.len];
    if (is_copied(b, &w)) {
        struct fm_shape_source *s = source_of(b, &w.member);
        member_copy(b, s, w.member, &w);
        return;
    }
    uint32_t node = node_add(b->tree, w.parent, w.func, w.depth);
    b->open.len = 0;
    if (w.count == 1) {
        member_open(b, node, w.member);
    } else {
        b->rest.len -= w.count;
        for (uint32_t i = 0; i < w.count; i++)
            member_open(b, node, b->rest.data[b->rest.len + i]);
    }
    node_expand(b, node, w.depth);
}

static void root_make(struct builder *b, bool together)
{
    node_add(b->tree, FM_NONE, 0, 0);
    for (int i = 0; i < 2 && b->source[i].p; i++) {
        struct fm_shape_source *s = &b->source[i];
        for (uint32_t t = 0; t < s->p->threads.len; t++) {
            uint32_t root = s->p->threads.data[t].root, member = root + (i ? b->second : 0);
            if (s->thread[t] == FM_NONE)
                continue;
            if (together)
                member_open(b, 0, member);
            else
                kid_add(b, member, s->thread[t]);
        }
    }
    node_expand(b, 0, 0);
}

static void find_ends(struct fm_shape *tree)
{
    tree->end = fm_malloc(tree->nodes * sizeof *tree->end);
    for (uint32_t i = 0; i < tree->nodes; i++)
        tree->end[i] = i + 1;
    for (uint32_t i = tree->nodes; i-- > 1;)
        if (tree->end[tree->parent[i]] < tree->end[i])
            tree->end[tree->parent[i]] = tree->end[i];
}

/* May children of one parent have one function? */
static bool has_lines(const struct fm_shape_source *s)
{
    return s->p && s->p->has_lined_nodes;
}

void fm_shape_init(struct fm_shape *shape, struct fm_shape_source source[2],
                   const struct fm_shape_options *o)
{
    struct builder b = { .tree = shape, .source = source, .joins = o->joins };
    /* Else nodes below a single member may still become one. */
    b.copies = !o->joins && !o->folds && !has_lines(&source[0]) && !has_lines(&source[1]);
    size_t most = 1;
    b.second = (uint32_t)source[0].p->nodes.len;
    for (int i = 0; i < 2 && source[i].p; i++) {
        size_t n = source[i].p->nodes.len;
        source[i].node_of = fm_malloc((n + 1) * sizeof *source[i].node_of);
        memset(source[i].node_of, 0xff, n * sizeof *source[i].node_of); /* FM_NONE */
        most += n;
    }
    *shape = (struct fm_shape){ .parent = fm_malloc(most * sizeof *shape->parent),
                                .func = fm_malloc(most * sizeof *shape->func) };
    b.group_of = fm_calloc(o->functions + 1, sizeof *b.group_of);
    root_make(&b, o->together);
    while (b.stack.len)
        node_make(&b);
    shape->parent = fm_realloc(shape->parent, shape->nodes, sizeof *shape->parent);
    shape->func = fm_realloc(shape->func, shape->nodes, sizeof *shape->func);
    free(b.group_of);
    fm_vec_release(&b.open);
    fm_vec_release(&b.rest);
    fm_vec_release(&b.kids);
    fm_vec_release(&b.groups);
    fm_vec_release(&b.stack);
    find_ends(shape);
}

void fm_shape_release(struct fm_shape *shape)
{
    free(shape->parent);
    free(shape->func);
    free(shape->end);
    *shape = (struct fm_shape){ 0 };
}

uint8_t *fm_shape_outermost_new(const struct fm_shape *shape, uint32_t functions)
{
    fm_autofree uint32_t *busy_until = fm_calloc(functions + 1, sizeof *busy_until);
    uint8_t *outermost = fm_malloc(shape->nodes);
    for (uint32_t i = 0; i < shape->nodes; i++) {
        uint32_t func = shape->func[i];
        outermost[i] = i >= busy_until[func];
        if (outermost[i])
            busy_until[func] = shape->end[i];
    }
    return outermost;
}

int64_t *fm_shape_totals_new(const struct fm_shape_source *s, enum fm_metric metric)
{
    const int64_t *data = s->p->columns[metric].data;
    int64_t *totals = fm_calloc(s->p->nodes.len + 1, sizeof *totals);
    for (size_t i = s->p->nodes.len; data && i-- > 0;) {
        uint32_t up = s->p->nodes.data[i].parent;
        if (!s->part || s->part[i] & FM_SHAPE_REST)
            totals[i] = data[i];
        if (up != FM_NONE)
            totals[up] = fm_sum(totals[up], totals[i]);
    }
    return totals;
}
