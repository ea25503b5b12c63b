/*
 * The stack of a running thread of 3.9 and 3.10, whose frames are objects anywhere in memory; see
 * walk.h. All frames that the thread had last time are copied twice in one read, with the thread state
 * before and after: if all agree, nothing moved in between.
 *
 * A call takes these versions some 100 ns and more. What keeps changing is counted with the older part
 * of the stack that both copies agree on, marked as partial.
 */
#include <string.h>

#include "base/memory.h"
#include "cpython/stack.h"
#include "sampler/walk_parts.h"

static bool same(const struct fm_frame_view *a, const struct fm_frame_view *b, bool newest)
{
    return a->previous == b->previous && a->code_at == b->code_at &&
           (newest || a->instr == b->instr);
}

static bool executes(const struct fm_walk *w, const struct fm_walk_context *c, uint32_t copy)
{
    return fm_stack_frame_executes(c->layout, w->buffer.data + copy);
}

/* Both copies of the frame at `at`; false if there are none or they differ. */
static bool view(struct fm_walk *w, const struct fm_walk_context *c, fm_addr at, bool newest,
                 struct fm_frame_view *f)
{
    struct fm_loose *loose = fm_walk_loose(w, at);
    struct fm_frame_view later;
    if (!loose || !fm_walk_decode(c, w->buffer.data + loose->copies[0], f) ||
        !fm_walk_decode(c, w->buffer.data + loose->copies[1], &later))
        return false;
    return same(f, &later, newest) && executes(w, c, loose->copies[0]) &&
           executes(w, c, loose->copies[1]) && fm_walk_identify(c, f);
}

/* A generator that has no caller was just suspended: it is no stack of a thread. */
static bool is_suspended(const struct fm_walk_context *c, const struct fm_frame_view *f)
{
    enum { CO_GENERATORS = 0x20 | 0x80 | 0x200 };
    return !f->previous && c->codes->list.data[f->number].code.flags & CO_GENERATORS;
}

/* What is deeper than can be copied, from `at` down: read one by one, so two readings must agree. */
static bool push_older(struct fm_walk *w, struct fm_walk_context *c, fm_addr at)
{
    size_t begin = w->frames.len;
    w->partial = false;
    fm_walk_older(w, c, at);
    size_t n = w->frames.len - begin;
    fm_walk_older(w, c, at);
    bool same = !w->partial && w->frames.len == begin + 2 * n &&
                memcmp(w->frames.data + begin, w->frames.data + begin + n,
                       n * sizeof *w->frames.data) == 0;
    w->frames.len = begin + (same ? n : 0);
    return same;
}

/* From the newest frame down. False if something disagrees. */
static bool descend(struct fm_walk *w, struct fm_walk_context *c, fm_addr at)
{
    w->frames.len = 0;
    for (uint32_t n = 0; at; n++) {
        struct fm_frame_view f;
        if (n == FM_WALK_MAX_LOOSE)
            return push_older(w, c, at);
        if (!view(w, c, at, n == 0, &f) || is_suspended(c, &f))
            return false;
        fm_walk_push(w, c, &f);
        at = f.previous;
    }
    return true;
}

/* What both copies agree on, counted from the oldest frame of the plan up: these frames called the rest
 * and did not change meanwhile. */
static void keep_older(struct fm_walk *w, struct fm_walk_context *c)
{
    fm_addr below = 0;
    w->frames.len = 0;
    w->partial = true;
    for (size_t i = w->loose.len; i-- > 0;) {
        struct fm_frame_view f;
        if (!view(w, c, w->loose.data[i].at, false, &f) || is_suspended(c, &f))
            break;
        if (i + 1 == FM_WALK_MAX_LOOSE && f.previous) { /* deeper than can be copied */
            if (!push_older(w, c, f.previous))
                break;
            fm_walk_reverse(w);
        } else if (f.previous != below) {
            break;
        }
        fm_walk_push(w, c, &f);
        below = w->loose.data[i].at;
    }
    fm_walk_reverse(w);
    w->partial = true;
}

/* It is the first look that counts, even if only the older frames are certain: waiting for the thread to
 * keep still would favour whatever is slow. Where the newest are is found out for the next look. */
static enum fm_walk_result keep_and_learn(struct fm_walk *w, struct fm_walk_context *c)
{
    size_t n = w->frames.len;
    fm_autofree struct fm_raw_frame *kept = fm_malloc((n + 1) * sizeof *kept);
    if (n)
        memcpy(kept, w->frames.data, n * sizeof *kept);
    enum fm_walk_result result = fm_walk_learn(w, c);
    w->frames.len = 0;
    for (size_t i = 0; i < n; i++)
        fm_vec_push(&w->frames, kept[i]);
    w->partial = true;
    return result == FM_WALK_GONE ? FM_WALK_GONE : FM_WALK_OK;
}

enum fm_walk_result fm_walk_finish_heap(struct fm_walk *w, struct fm_walk_context *c, int got)
{
    const struct fm_layout *l = c->layout;
    int planned = 1 + 2 * (int)w->loose.len + (w->loose.len > 0);
    fm_addr newest = fm_word(w->buffer.data + w->head, l->thread_frame);
    if (!newest)
        return FM_WALK_OK;
    if (got >= planned && w->loose.len &&
        fm_word(w->buffer.data + w->tail, l->thread_frame) == newest && descend(w, c, newest))
        return FM_WALK_OK;
    if (got >= planned && w->loose.len)
        keep_older(w, c);
    if (w->frames.len || (c->last_try && got >= planned))
        return keep_and_learn(w, c);
    if (fm_walk_learn(w, c) == FM_WALK_GONE)
        return FM_WALK_GONE;
    w->frames.len = 0;
    return FM_WALK_AGAIN;
}
