/*
 * Regions as nodes of the tree; see region_nodes.h.
 *
 * A thread's visits that have a node form a list, newest first (`nodes_older`), by depth of their frames and, on
 * one frame, by nesting. `before` is the node that the frame had when the visit began.
 */
#include "target/agent/regions/region_nodes.h"

#include "target/agent/functions.h"
#include "target/agent/lines/lines.h"

#define FAR 64 /* frames that are looked through for the one of a function */

static struct fm_func *function_of(struct fm_collector *c, struct fm_region_name *name)
{
    if (!name->func)
        name->func = fm_function_of_region(c, name->text, name->len);
    return name->func;
}

static bool is_c(const struct fm_live_frame *frame)
{
    return ((const struct fm_func *)(uintptr_t)frame->func)->flags & FM_LIVE_FUNCTION_C;
}

/* The innermost frame of that code; if it is not recorded, of any Python function. */
static struct fm_live_frame *frame_of(const struct fm_agent_thread *t, const void *code)
{
    struct fm_live_frame *frame = t->top, *python = NULL;
    for (int i = 0; code && i < FAR && frame > t->base; i++, frame--) {
        if (fm_frame_key(frame) == (uintptr_t)code)
            return frame;
        if (!python && !is_c(frame))
            python = frame;
    }
    if (!code)
        return t->top;
    return python ? python : t->base;
}

/* The context of `f` below that one, mostly the one that was entered there last. */
static struct fm_live_node *child_of(struct fm_collector *c, struct fm_agent_thread *t,
                                     struct fm_live_node *parent, struct fm_func *f)
{
    struct fm_live_node *node = (struct fm_live_node *)(uintptr_t)parent->last_child;
    if (__builtin_expect(f->id && node->func == f->id, 1))
        return node;
    return fm_collector_child(c, t, parent, f, NULL);
}

/* The function on that frame is in the region from `since` on; 0: from when that is done. */
static void open_node(struct fm_collector *c, struct fm_agent_thread *t, struct fm_region_visit *v,
                      struct fm_live_frame *frame, bool counted, uint64_t since)
{
    struct fm_func *f = function_of(c, v->name);
    struct fm_live_node *before = (struct fm_live_node *)(uintptr_t)frame->node;
    struct fm_live_node *node = f ? child_of(c, t, before, f) : NULL;
    v->node = NULL;
    if (!node || node == &c->nowhere || node->parent != before->id)
        return;
    v->node = node;
    v->before = before;
    v->tree = t;
    v->depth = (uint32_t)(frame - t->base);
    v->nodes_older = t->regions;
    t->regions = v;
    node->calls += counted;
    v->entered = since ? since : fm_clock_ticks();
    v->live->node = node->id;
    v->live->since_ticks = v->entered;
    frame->node = (uintptr_t)node;
    if (v->depth)
        frame->key |= FM_KEY_IN_REGION;
}

/* Its time is the node's. The newest of its thread. */
static void close_newest(struct fm_agent_thread *t, uint64_t now)
{
    struct fm_region_visit *v = t->regions;
    struct fm_live_frame *frame = t->base + v->depth;
    struct fm_live_node *node = v->node;
    uint64_t ticks = fm_elapsed(v->entered, now);
    node->total_ticks += ticks;
    if (ticks < node->min_ticks)
        node->min_ticks = ticks;
    if (ticks > node->max_ticks)
        node->max_ticks = ticks;
    frame->node = (uintptr_t)v->before;
    t->regions = v->nodes_older;
    if (!t->regions || t->regions->depth != v->depth)
        frame->key &= ~(uint64_t)FM_KEY_IN_REGION;
    v->node = NULL;
    v->live->node = 0;
}

/* Those on frames from `depth` on end; linked by `nodes_older`, the oldest first. */
static struct fm_region_visit *close_from(struct fm_agent_thread *t, uint32_t depth, uint64_t now)
{
    struct fm_region_visit *closed = NULL;
    while (t->regions && t->regions->depth >= depth) {
        struct fm_region_visit *v = t->regions;
        close_newest(t, now);
        v->nodes_older = closed;
        closed = v;
    }
    return closed;
}

/* Those of the list that are on that frame go on there. What is left of the list. */
static struct fm_region_visit *open_again(struct fm_collector *c, struct fm_agent_thread *t,
                                          struct fm_region_visit *closed,
                                          struct fm_live_frame *frame, bool counted, uint64_t since)
{
    uint32_t depth = (uint32_t)(frame - t->base);
    while (closed && closed->depth == depth) {
        struct fm_region_visit *next = closed->nodes_older;
        open_node(c, t, closed, frame, counted, since);
        closed = next;
    }
    return closed;
}

/* The call has another context from `now` on, since its caller has. */
static void move_call(struct fm_collector *c, struct fm_agent_thread *t,
                      struct fm_live_frame *frame, uint64_t now)
{
    struct fm_func *f = (struct fm_func *)(uintptr_t)frame->func;
    struct fm_live_node *node = (struct fm_live_node *)(uintptr_t)frame->node;
    struct fm_live_node *parent = (struct fm_live_node *)(uintptr_t)frame[-1].node;
    uint64_t ticks = fm_elapsed(frame->enter_ticks, now);
    if (!f->id || node->parent == parent->id)
        return;
    node->total_ticks += ticks;
    if (c->lines_on)
        t->lines[frame - t->base - 1].callees += ticks;
    frame->enter_ticks = now;
    frame->node = (uintptr_t)fm_collector_child(c, t, parent, f, NULL);
}

/* The calls above a frame are in other contexts, since it is; `closed` are regions that go on. */
static void move_calls(struct fm_collector *c, struct fm_agent_thread *t,
                       struct fm_live_frame *frame, struct fm_region_visit *closed, uint64_t now)
{
    closed = open_again(c, t, closed, frame, false, now);
    while (frame < t->top) {
        move_call(c, t, ++frame, now);
        closed = open_again(c, t, closed, frame, false, now);
    }
}

static void enter(struct fm_collector *c, struct fm_region_visit *v, const void *code, bool counted)
{
    struct fm_agent_thread *t = fm_collector_thread(c);
    v->node = NULL;
    v->live->node = 0;
    if (!t || t->beyond)
        return;
    struct fm_live_frame *frame = frame_of(t, code);
    if (__builtin_expect(frame == t->top, 1)) {
        open_node(c, t, v, frame, counted, counted ? v->live->begin_ticks : 0);
        return;
    }
    uint64_t now = fm_clock_ticks();
    struct fm_region_visit *deeper = close_from(t, (uint32_t)(frame - t->base) + 1, now);
    open_node(c, t, v, frame, counted, now);
    move_calls(c, t, frame, deeper, now);
}

void fm_region_node_enter(struct fm_collector *c, struct fm_region_visit *v, const void *code)
{
    enter(c, v, code, true);
}

void fm_region_node_resume(struct fm_collector *c, struct fm_region_visit *v, const void *code)
{
    enter(c, v, code, false);
}

/* ---- ends ---- */

/* Without the GIL: what is inside of it stays below it. */
static void unlink_node(struct fm_agent_thread *t, struct fm_region_visit *v, uint64_t now)
{
    struct fm_region_visit **link = &t->regions, *inner = NULL;
    struct fm_live_frame *frame = t->base + v->depth;
    for (; *link && *link != v; link = &(*link)->nodes_older)
        if ((*link)->depth == v->depth)
            inner = *link;
    if (!*link)
        return;
    v->node->total_ticks += fm_elapsed(v->entered, now);
    if (inner)
        inner->before = v->before;
    else
        frame->node = (uintptr_t)v->before;
    *link = v->nodes_older;
    if (!inner && (!v->nodes_older || v->nodes_older->depth != v->depth))
        frame->key &= ~(uint64_t)FM_KEY_IN_REGION;
    v->node = NULL;
    v->live->node = 0;
}

void fm_region_node_leave(struct fm_region_visit *v, uint64_t now, bool has_gil)
{
    struct fm_agent_thread *t = v->tree;
    struct fm_live_frame *frame = t->base + v->depth;
    if (__builtin_expect(t->regions == v && (frame == t->top || !has_gil), 1)) {
        close_newest(t, now);
        return;
    }
    if (!has_gil) {
        unlink_node(t, v, now);
        return;
    }
    /* What began inside of it goes on without it. */
    struct fm_region_visit *inside = NULL;
    while (t->regions && t->regions != v) {
        struct fm_region_visit *w = t->regions;
        close_newest(t, now);
        w->nodes_older = inside;
        inside = w;
    }
    if (t->regions)
        close_newest(t, now);
    move_calls(t->collector, t, frame, inside, now);
}

/* ---- ends of calls ---- */

void fm_region_nodes_close(struct fm_agent_thread *t, uint64_t now)
{
    close_from(t, (uint32_t)(t->top - t->base), now);
}

struct fm_region_visit *fm_region_nodes_take(struct fm_agent_thread *t, uint64_t now)
{
    uint32_t depth = (uint32_t)(t->top - t->base);
    for (struct fm_region_visit *v = t->regions; v && v->depth == depth; v = v->nodes_older) {
        v->node->calls--; /* it is counted where it goes on */
        v->entered = now;
    }
    return close_from(t, depth, now);
}

void fm_region_nodes_go_on(struct fm_collector *c, struct fm_agent_thread *t,
                           struct fm_region_visit *taken)
{
    uint32_t depth = (uint32_t)(t->top - t->base);
    for (struct fm_region_visit *v = taken; v; v = v->nodes_older)
        v->depth = depth;
    open_again(c, t, taken, t->top, true, 0);
}
