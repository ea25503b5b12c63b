/* Who allocates; see context.h. */
#include "target/heap/contexts/context.h"

#include <errno.h>
#include <string.h>

#include "target/heap/contexts/codes.h"
#include "target/heap/contexts/nodes.h"
#include "target/heap/contexts/threads.h"
#include "target/heap/contexts/watched.h"

#define MAX_DEPTH      (1u << 16) /* older frames are cut off */
#define ANCHOR_SPACING 8          /* a walk of fewer frames is cheaper than looking for an anchor */
#define LEAST_PATIENCE 8
#define MOST_PATIENCE  4096
#define TOP_PATIENCE   16 /* times as much for an anchor that spares a few frames only */

static inline const void *pointer_at(const void *object, uint32_t offset)
{
    return *(const void *const *)((const char *)object + offset);
}

static inline const void *newest_frame(const void *thread)
{
    const struct fm_heap_layout *l = &fm_heap.layout;
    const void *p = pointer_at(thread, l->thread_frame);
    return l->cframe_frame == UINT32_MAX ? p : pointer_at(p, l->cframe_frame);
}

static inline uint8_t owner_of(const void *frame)
{
    return *((const uint8_t *)frame + fm_heap.layout.frame_owner);
}

/* ---- room ---- */

static bool make_room(struct fm_heap_self *self)
{
    uint32_t room = self->room * 2;
    if (room > MAX_DEPTH)
        return false;
    struct fm_heap_step *steps = fm_heap_map((size_t)room * 2 * sizeof *steps);
    if (!steps)
        return false;
    memcpy(steps, self->steps, self->depth * sizeof *steps);
    memcpy(steps + room, self->fresh, self->room * sizeof *steps);
    fm_heap_unmap(self->steps, (size_t)self->room * 2 * sizeof *steps);
    self->steps = steps;
    self->fresh = steps + room;
    self->room = room;
    return true;
}

/* ---- nodes of frames ---- */

static inline struct fm_heap_guess *guess_at(struct fm_heap_self *self, uint32_t parent,
                                             const void *what)
{
    return &self->guesses[(((uintptr_t)what >> 1) * 31 + parent * 0x9e3779b1u) &
                          (FM_HEAP_GUESSES - 1)];
}

static uint32_t node_of_frame(struct fm_heap_self *self, uint32_t parent, const void *frame,
                              const void *instr)
{
    struct fm_heap_guess *guess = guess_at(self, parent, instr);
    if (FM_LIKELY(guess->instr == instr && guess->parent == parent && guess->era == self->era))
        return guess->node;
    /* Since 3.14 the low bits of the pointer are a tag. */
    const char *code =
        (const char *)((uintptr_t)pointer_at(frame, fm_heap.layout.frame_code) & ~(uintptr_t)7);
    uint32_t number = fm_codes_number(code, FM_HEAP_DEF_CODE);
    uint32_t offset = (uint32_t)((const char *)instr - (code + fm_heap.layout.code_bytecode));
    uint32_t node = number ? fm_nodes_child(self, parent, number, offset) : 0;
    if (!node)
        return 0;
    *guess = (struct fm_heap_guess){ instr, parent, node, self->era };
    return node;
}

uint32_t fm_context_of_type(struct fm_heap_self *self, uint32_t node, const void *type)
{
    struct fm_heap_guess *guess = guess_at(self, node, type);
    if (FM_LIKELY(guess->instr == type && guess->parent == node && guess->era == self->era))
        return guess->node;
    uint32_t number = fm_codes_number(type, FM_HEAP_DEF_TYPE);
    uint32_t child = number ? fm_nodes_child(self, node, number, 0) : 0;
    if (child)
        *guess = (struct fm_heap_guess){ type, node, child, self->era };
    return child;
}

/* ---- anchors ---- */

/* The newest anchor that still stands for its frame. Others are only taken away with the GIL. */
static struct fm_heap_anchor *newest_anchor(struct fm_heap_self *self, bool gil)
{
    for (uint32_t n = __atomic_load_n(&self->anchor_count, __ATOMIC_RELAXED); n; n--) {
        struct fm_heap_anchor *a = &self->anchors[n - 1];
        if (FM_LIKELY(pointer_at(a->object, fm_heap.layout.object_frame) ==
                      self->steps[a->step].frame))
            return a;
        if (gil)
            self->anchor_count = n - 1;
    }
    return NULL;
}

/* An anchor ends: was it worth its price? */
static void judge(struct fm_heap_self *self, const struct fm_heap_anchor *anchor)
{
    if (anchor->served < anchor->worth && self->patience < MOST_PATIENCE)
        self->patience *= 2;
    else if (anchor->served > anchor->worth * 16 && self->patience > LEAST_PATIENCE)
        self->patience /= 2;
}

bool fm_context_forget(const void *block)
{
    const char *object = (const char *)block + fm_heap.layout.gc_head;
    for (struct fm_heap_self *self = fm_threads_all(); self; self = self->next)
        for (uint32_t i = 0; i < self->anchor_count; i++)
            if (self->anchors[i].object == object) {
                judge(self, &self->anchors[i]);
                __atomic_store_n(&self->anchor_count, i, __ATOMIC_RELAXED);
                if (self != fm_heap_self)
                    fm_threads_await(self); /* it may be looking at the object, without the GIL */
                return true;
            }
    return false;
}

static void put_anchor(struct fm_heap_self *self, uint32_t step, void *thread, uint32_t worth)
{
    const void *frame = self->steps[step].frame;
    if (self->anchor_count == FM_HEAP_ANCHORS || owner_of(frame) == fm_heap.layout.owner_generator)
        return;
    int saved_errno = errno;
    void *object = fm_heap.layout.frame_object_of(thread, frame);
    errno = saved_errno;
    if (!object)
        return;
    fm_watch((const char *)object - fm_heap.layout.gc_head);
    self->anchors[self->anchor_count++] =
        (struct fm_heap_anchor){ .step = step, .worth = worth, .object = object };
    fm_heap.layout.give_up(object);
}

/* The first `common` frames are those of last time. The newest of those that were so for some while is
 * worth an anchor. */
static void consider_anchor(struct fm_heap_self *self, uint32_t common, void *thread)
{
    if (!self->seen || common < self->lasting)
        self->lasting = common;
    if (++self->seen < self->patience)
        return;
    self->seen = 0;
    uint32_t below = self->anchor_count ? self->anchors[self->anchor_count - 1].step : 0;
    if (self->lasting > below + ANCHOR_SPACING / 2)
        put_anchor(self, self->lasting - 1, thread, ANCHOR_SPACING);
}

/* The whole stack was as last time, and short: a loop that allocates, perhaps. */
static void consider_top(struct fm_heap_self *self, void *thread, enum fm_context_holds holds)
{
    uint32_t step = self->depth - 1;
    if (self->steps[step].frame != self->top) {
        self->top = self->steps[step].frame;
        self->top_seen = 0;
        return;
    }
    if (++self->top_seen < self->patience * TOP_PATIENCE)
        return;
    if (holds != FM_CONTEXT_MAY_ANCHOR) {
        self->wants_anchor |= holds == FM_CONTEXT_NO_GIL;
        return;
    }
    self->top_seen = 0;
    put_anchor(self, step, thread, LEAST_PATIENCE * TOP_PATIENCE);
}

/* ---- the stack ---- */

/* Take over the `count` frames of `fresh`, newest first, that stand above step `from`. Returns the node
 * of the newest; 0 without memory. */
static uint32_t take_over(struct fm_heap_self *self, uint32_t from, uint32_t count, void *thread,
                          bool anchors)
{
    const struct fm_heap_step *fresh = self->fresh;
    struct fm_heap_step *steps = self->steps;
    uint32_t at = from, end = from + count, known = self->depth < end ? self->depth : end;
    while (at < known && steps[at].frame == fresh[end - 1 - at].frame &&
           steps[at].instr == fresh[end - 1 - at].instr)
        at++;
    uint32_t common = at; /* and one more, if only its instruction differs */
    if (at < known && steps[at].frame == fresh[end - 1 - at].frame)
        common++;
    uint32_t parent = at ? steps[at - 1].node : self->root;
    for (; at < end; at++) {
        const struct fm_heap_step *step = &fresh[end - 1 - at];
        uint32_t node = node_of_frame(self, parent, step->frame, step->instr);
        if (!node) {
            self->depth = at;
            return 0;
        }
        steps[at] = (struct fm_heap_step){ step->frame, step->instr, node };
        parent = node;
    }
    self->depth = end;
    if (anchors)
        consider_anchor(self, common, thread);
    else if (common >= from + ANCHOR_SPACING)
        self->wants_anchor = true;
    return parent;
}

/* The newest frame is at another instruction than it was; 0 without memory. */
static uint32_t node_of_moved_top(struct fm_heap_self *self, struct fm_heap_step *top,
                                  const void *instr)
{
    uint32_t parent = self->depth > 1 ? top[-1].node : self->root;
    uint32_t node = node_of_frame(self, parent, top->frame, instr);
    if (node)
        *top = (struct fm_heap_step){ top->frame, instr, node };
    return node;
}

/* The steps from the newest down to the anchor, or to the bottom, are the stack as it is; but the newest
 * may be at another instruction. Returns its node; 0: they are not. */
static inline uint32_t node_of_same_stack(struct fm_heap_self *self, const void *newest,
                                          const void *anchored)
{
    const struct fm_heap_layout *l = &fm_heap.layout;
    const struct fm_heap_step *step = self->steps + self->depth;
    const void *f = newest, *instr = NULL;
    for (;; f = pointer_at(f, l->frame_previous)) {
        if (f && FM_UNLIKELY(owner_of(f) >= l->owner_foreign))
            continue;
        if (!f || step == self->steps)
            break;
        const void *at = pointer_at(f, l->frame_instr);
        step--;
        if (step->frame != f || (FM_UNLIKELY(step->instr != at) && instr))
            return 0;
        if (!instr)
            instr = at;
        if (f == anchored)
            break;
    }
    if (!instr || (f != anchored && (f || step != self->steps)))
        return 0;
    struct fm_heap_step *top = &self->steps[self->depth - 1];
    return FM_LIKELY(top->instr == instr) ? top->node : node_of_moved_top(self, top, instr);
}

/* The node of a stack whose newest frame is anchored, and was the newest last time: a loop that allocates.
 * 0: it may be any other. */
static inline uint32_t node_of_same_top(struct fm_heap_self *self, const void *thread)
{
    uint32_t n = __atomic_load_n(&self->anchor_count, __ATOMIC_RELAXED);
    if (!n || self->walked != thread)
        return 0;
    struct fm_heap_anchor *anchor = &self->anchors[n - 1];
    if (anchor->step + 1 != self->depth)
        return 0;
    struct fm_heap_step *top = &self->steps[anchor->step];
    const void *newest = newest_frame(thread);
    if (newest != top->frame || pointer_at(anchor->object, fm_heap.layout.object_frame) != newest ||
        self->era != __atomic_load_n(&fm_heap.era, __ATOMIC_RELAXED))
        return 0;
    anchor->served++;
    const void *instr = pointer_at(newest, fm_heap.layout.frame_instr);
    return FM_LIKELY(top->instr == instr) ? top->node : node_of_moved_top(self, top, instr);
}

/* The node of the stack of `thread`. */
static uint32_t node_of_stack(struct fm_heap_self *self, void *thread, enum fm_context_holds holds)
{
    const struct fm_heap_layout *l = &fm_heap.layout;
    uint32_t era = __atomic_load_n(&fm_heap.era, __ATOMIC_RELAXED), count = 0, from = 0;
    if (FM_UNLIKELY(thread != self->walked)) {
        self->walked = thread;
        self->anchor_count = self->depth = 0;
    }
    struct fm_heap_anchor *anchor = newest_anchor(self, holds != FM_CONTEXT_NO_GIL);
    if (FM_UNLIKELY(self->era != era)) {
        /* Another code object may be where one was; but what is below an anchor lives. */
        self->era = era;
        self->depth = anchor ? anchor->step + 1 : 0;
    }
    const void *anchored = anchor ? self->steps[anchor->step].frame : NULL, *f,
               *newest = newest_frame(thread);
    uint32_t above = self->depth - (anchor ? anchor->step : 0);
    if (FM_LIKELY(above < ANCHOR_SPACING)) { /* else it is worth an anchor */
        uint32_t node = node_of_same_stack(self, newest, anchored);
        if (FM_LIKELY(node != 0)) {
            if (anchor)
                anchor->served++;
            if (above > 1)
                consider_top(self, thread, holds);
            return node;
        }
    }
    for (f = newest; f; f = pointer_at(f, l->frame_previous)) {
        if (FM_UNLIKELY(owner_of(f) >= l->owner_foreign))
            continue;
        if (FM_UNLIKELY(count == self->room) && !make_room(self)) {
            fm_heap_count_lost(FM_HEAP_LOST_DEEP);
            break;
        }
        self->fresh[count++] = (struct fm_heap_step){ f, pointer_at(f, l->frame_instr), 0 };
        if (f == anchored) {
            from = anchor->step;
            anchor->served++;
            break;
        }
    }
    if (FM_UNLIKELY(!f && anchored))
        self->anchor_count = 0;       /* it lives, on a stack that was put aside: a greenlet's */
    while (from + count > self->room) /* deep, and found by an anchor */
        if (!make_room(self))
            return 0;
    if (!count) {
        self->depth = 0;
        return self->root;
    }
    return take_over(self, from, count, thread, holds == FM_CONTEXT_MAY_ANCHOR);
}

/* Not if the interpreter ends in another thread: it frees the frames of this one. */
static void *thread_of_this(void)
{
    if (FM_UNLIKELY(!fm_heap.has_layout))
        return NULL;
    void *thread = fm_heap.layout.thread_of_this();
    const void *ends = __atomic_load_n(fm_heap.layout.finalizing, __ATOMIC_RELAXED);
    return FM_LIKELY(!ends) || ends == thread ? thread : NULL;
}

static inline uint32_t node_of(struct fm_heap_self *self, void *thread, enum fm_context_holds holds)
{
    if (FM_LIKELY(thread != NULL)) {
        uint32_t node = node_of_same_top(self, thread);
        return node ? node : node_of_stack(self, thread, holds);
    }
    return FM_LIKELY(fm_heap.has_layout) ? self->root : fm_heap.before;
}

uint32_t fm_context_account(struct fm_heap_self *self, int world, void *thread,
                            enum fm_context_holds holds)
{
    uint32_t node = node_of(self, thread, holds);
    if (FM_UNLIKELY(!node)) {
        fm_heap_count_lost(FM_HEAP_LOST_CONTEXTS);
        node = self->root;
    }
    return fm_nodes_account(node, world);
}

uint32_t fm_context_account_c(struct fm_heap_self *self)
{
    return fm_context_account(self, FM_HEAP_WORLD_C, thread_of_this(), FM_CONTEXT_NO_GIL);
}

void fm_context_refused(struct fm_heap_self *self, uint64_t bytes, void *thread,
                        enum fm_context_holds holds)
{
    struct fm_heap_header *h = fm_heap.header;
    uint32_t node = node_of(self, thread, holds);
    __atomic_add_fetch(&h->refused, 1, __ATOMIC_RELAXED);
    if (bytes >= h->refused_bytes && node) {
        h->refused_bytes = bytes;
        h->refused_node = node;
    }
}

void fm_context_refused_c(struct fm_heap_self *self, uint64_t bytes)
{
    fm_context_refused(self, bytes, thread_of_this(), FM_CONTEXT_NO_GIL);
}

void fm_context_anchor(struct fm_heap_self *self, void *thread)
{
    node_of_stack(self, thread, FM_CONTEXT_MAY_ANCHOR);
}
