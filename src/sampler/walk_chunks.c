/*
 * The stack of a running thread of 3.11 and later, from one copy of its datastack chunks; see walk.h.
 *
 * Going up. A frame begins where its caller ends, so the copy is read slot by slot from the oldest
 * frame. Whether the frame in a slot is alive, or what an ended call left there, is told by its stack
 * pointer (see fate_of). A frame whose `previous` is not the frame below was called through C (then
 * `previous` is an entry frame on the C stack, a "shim") or by a generator, which is put in between.
 *
 * CPython facts relied on:
 *  - _PyThreadState_PushFrame hands out the space right behind the newest frame; only when it does not
 *    fit begins a new chunk, and then the old one's `top` says how far it is used;
 *  - every return goes through _PyFrame_ClearLocals or sets the stack pointer before popping;
 *  - `previous` of a generator's frame is NULL while it is suspended;
 *  - RETURN_GENERATOR copies the new frame away and leaves the original as if alive;
 *  - a frame that ended is unlinked first, then its variables are cleared, then its slot is free.
 */
#include <string.h>

#include "sampler/walk_climb.h"

#define CO_MAKES_GENERATOR (0x20 | 0x80 | 0x200) /* co_flags: generator, coroutine, asynchronous generator */

#define MAX_HOPS 8 /* from the newest frame by the thread state to one in the chunks */
#define MAX_IDLE_LOOSE 50u /* for how many looks a frame that is not on the stack stays in the plan */

/* Of the frame in a slot of a chunk. */
static enum fm_fate fate_of(const struct fm_climb *k, const struct fm_found *x)
{
    const struct fm_layout *l = k->c->layout;
    uint32_t locals = fm_climb_code(k, &x->f)->code.locals;
    if (fm_climb_code(k, &x->f)->code.flags & CO_MAKES_GENERATOR)
        return FM_ENDED; /* in a chunk it does nothing but make the generator, and is not cleared then */
    if (fm_layout_minor(l) < 14) {
        int32_t top;
        memcpy(&top, x->bytes + l->frame_stackpointer, sizeof top);
        if (top == -1)
            return FM_EXECUTING;
        if (top < 0 || (uint32_t)top > fm_climb_code(k, &x->f)->frame_bytes / 8)
            return FM_ENDED;
        if (fm_climb_opcode_kind(k, &x->f) & (FM_OPCODE_RETURNS | FM_OPCODE_MAKES_GENERATOR))
            return FM_ENDED; /* what is left of a call that returned */
        return fm_layout_minor(l) == 13 && top == 0 && locals ? FM_ENDED : FM_MAYBE;
    }
    fm_addr sp = fm_word(x->bytes, l->frame_stackpointer), base = x->at + l->frame_localsplus;
    if (sp < base || sp > x->at + fm_climb_code(k, &x->f)->frame_bytes)
        return FM_ENDED;
    if (sp == base && (locals || fm_climb_opcode_kind(k, &x->f) & FM_OPCODE_RETURNS))
        return FM_ENDED;
    return FM_ALIVE;
}

/* Sets its fate. Where the stack ends is decided by codes that are on no stack: these are compared with the
 * target here, or one that took the place of another would hide its frames for ever. */
static bool lives(const struct fm_climb *k, struct fm_found *x)
{
    x->fate = fate_of(k, x);
    if (x->fate == FM_ENDED && fm_walk_renew(k->c, &x->f, false))
        x->fate = fate_of(k, x);
    return x->fate != FM_ENDED;
}

/* A frame whose variables are being cleared is no part of the stack any more, but its slot is not free
 * yet: what that calls (__del__) stands on the frame below. */
static bool stands_below_cleared(struct fm_climb *k, fm_addr previous)
{
    size_t len = k->stack.len;
    if (len < 2 || k->stack.data[len - 1].fate != FM_MAYBE || k->stack.data[len - 2].at != previous)
        return false;
    k->stack.len--;
    return true;
}

/* Is `previous` of the frame in a slot what a callee of the newest frame so far would have? */
static bool link_down(struct fm_climb *k, const struct fm_frame_view *f)
{
    fm_addr previous = f->previous;
    if (previous == fm_climb_newest(k) || stands_below_cleared(k, previous))
        return true;
    if (fm_walk_is_shim(k->w, previous))
        return fm_climb_push_below_entry(k, previous);
    if (fm_walk_chunk_of(k->w, previous))
        return false; /* of another time */
    if (fm_walk_loose(k->w, previous))
        return fm_climb_push_generators(k, previous, f);
    return fm_climb_is_entry(k, previous) && fm_climb_push_below_entry(k, previous);
}

/* Up to 3.13 a frame that calls another in the same loop of the interpreter first saves its stack pointer:
 * while it executes, only what C called can stand on it. That begins a loop of its own, which 3.11 marks in
 * the frame (is_entry, before owner) and later versions by an entry frame in between. */
static bool is_left_behind(const struct fm_climb *k, const struct fm_found *x)
{
    const struct fm_layout *l = k->c->layout;
    const struct fm_found *top = k->stack.len ? &k->stack.data[k->stack.len - 1] : NULL;
    if (!top || top->fate != FM_EXECUTING || x->f.previous != top->at)
        return false;
    return fm_layout_minor(l) > 11 || !x->bytes[l->frame_owner - 1];
}

/* The frame in the slot at `at`, if there is a live one on top of what was found so far. */
static bool try_slot(struct fm_climb *k, const struct fm_chunk *chunk, fm_addr at, fm_addr end)
{
    const struct fm_layout *l = k->c->layout;
    struct fm_found x = { .at = at };
    if (at + l->frame_size > end)
        return false;
    if (k->stack.len && k->stack.data[k->stack.len - 1].bytes &&
        k->stack.data[k->stack.len - 1].f.offset < 0)
        return false; /* who has not begun has called nobody: that is of an earlier time */
    if (at + l->frame_size > chunk->at + chunk->copied) {
        fm_walk_reach(k->w, at + l->frame_size);
        k->again = true;
        return false;
    }
    x.bytes = k->w->buffer.data + chunk->copy + (at - chunk->at);
    size_t len = k->stack.len;
    bool missing = k->missing;
    if (!fm_walk_decode(k->c, x.bytes, &x.f) || x.f.owner == l->owner_generator ||
        x.f.owner >= l->owner_boundary || is_left_behind(k, &x))
        return false;
    if (!link_down(k, &x.f) || !fm_walk_identify(k->c, &x.f) || !lives(k, &x)) {
        k->stack.len = len; /* its generators are not part of this either */
        k->missing = missing;
        return false;
    }
    if (!fm_climb_may_have_called(k, &x.f)) {
        k->unsure = true;
        return false;
    }
    fm_vec_push(&k->stack, x);
    return true;
}

/* Where the slot behind the one at `at` begins, if that holds a frame that is being cleared and, as the
 * thread state says, there are more behind it; else 0. */
static fm_addr behind_cleared(struct fm_climb *k, const struct fm_chunk *chunk, fm_addr at, fm_addr end)
{
    const struct fm_layout *l = k->c->layout;
    struct fm_frame_view f;
    if (k->again || k->newest <= at || k->newest >= end ||
        at + l->frame_size > chunk->at + chunk->copied)
        return 0;
    const uint8_t *bytes = k->w->buffer.data + chunk->copy + (at - chunk->at);
    if (!fm_walk_decode(k->c, bytes, &f) || !fm_walk_identify(k->c, &f))
        return 0;
    at += fm_climb_code(k, &f)->frame_bytes;
    return k->newest >= at ? at : 0;
}

/* How far the chunk is used: exactly known for all but the newest. */
static fm_addr chunk_end(const struct fm_climb *k, size_t i)
{
    const struct fm_layout *l = k->c->layout;
    const struct fm_chunk *chunk = &k->w->chunks.data[i];
    if ((i + 1 < k->w->in_use || !k->w->complete) && l->chunk_bytes + 16 <= l->chunk_header) {
        uint64_t top = fm_word(k->w->buffer.data + chunk->copy, l->chunk_bytes + 8);
        if (top <= (chunk->bytes - l->chunk_header) / 8)
            return chunk->at + l->chunk_header + top * 8;
    }
    return chunk->at + chunk->bytes;
}

/* A stack over several chunks takes several copies, one after the other. Up to the first chunk that has changed
 * until the newest was copied, older ones are as they were when that one was copied: this instant counts then. */
static void find_changes(struct fm_climb *k)
{
    const uint8_t *buffer = k->w->buffer.data;
    uint32_t i = 0;
    for (; i + 1 < k->w->in_use; i++) {
        const struct fm_chunk *chunk = &k->w->chunks.data[i];
        uint64_t len = chunk_end(k, i) - chunk->at;
        len = len < chunk->copied ? len : chunk->copied;
        if (memcmp(buffer + chunk->copy, buffer + chunk->again, len) != 0)
            break;
    }
    k->certain = i + 1 < k->w->in_use ? i + 1 : k->w->in_use;
}

/* A word is left free at the beginning of the very first chunk. */
static fm_addr first_slot(const struct fm_climb *k, const struct fm_chunk *chunk)
{
    const struct fm_layout *l = k->c->layout;
    bool first = fm_word(k->w->buffer.data + chunk->copy, l->chunk_previous) == 0;
    return chunk->at + l->chunk_header + (first ? 8 : 0);
}

/* Every slot from the oldest on. */
static void climb_chunks(struct fm_climb *k)
{
    for (size_t i = 0; i < k->certain && !k->again; i++) {
        const struct fm_chunk *chunk = &k->w->chunks.data[i];
        fm_addr at = first_slot(k, chunk), end = chunk_end(k, i);
        while (at && k->stack.len < FM_WALK_MAX_FRAMES) {
            if (try_slot(k, chunk, at, end))
                at += fm_climb_code(k, &k->stack.data[k->stack.len - 1].f)->frame_bytes;
            else
                at = behind_cleared(k, chunk, at, end);
        }
    }
}

/* Keep what is below the newest frame by the thread state. If that is a generator, what is below those that it
 * stood on. False if it is not found. */
static bool cut_as_told(struct fm_climb *k)
{
    fm_addr at = k->newest;
    for (int hops = 0; at && hops < MAX_HOPS; hops++) {
        for (size_t i = k->stack.len; i-- > 0;) {
            if (k->stack.data[i].at == at) {
                k->stack.len = i + 1;
                k->unsure = k->unsure || hops > 0;
                return true;
            }
        }
        const struct fm_loose *loose = fm_walk_loose(k->w, at);
        if (loose && loose->copies[1])
            at = fm_word(k->w->buffer.data + loose->copies[0], k->c->layout->frame_previous);
        else if (fm_walk_is_shim(k->w, at))
            at = fm_remote_pointer(k->c->remote, at + k->c->layout->frame_previous);
        else
            return false;
    }
    return false;
}

/* Keep what the stack has in common with the last one in which no frame executed: what both show is alive. */
static void keep_common(struct fm_climb *k)
{
    const struct fm_walk *w = k->w;
    size_t n = 0;
    while (n < k->stack.len && n < w->doubted.len && k->stack.data[n].at == w->doubted.data[n].at &&
           k->stack.data[n].f.code_at == w->doubted.data[n].code)
        n++;
    k->stack.len = n > 1 ? n : 1; /* the oldest is certain */
    k->unsure = true;
}

static void remember_doubted(struct fm_climb *k)
{
    k->w->doubted.len = 0;
    for (size_t i = 0; i < k->stack.len; i++)
        fm_vec_push(&k->w->doubted, ((struct fm_walk_mark){ k->stack.data[i].at, k->stack.data[i].f.code_at }));
}

/* Of frames that may or may not have ended (3.11 to 3.13), drop those that have: nothing above the last
 * frame that executes, or that a running generator stands on. Between a frame that calls and one that
 * is called, for some nanoseconds, none executes: then all that was found is alive, unless an exception
 * left something behind, which another try will not meet again. While the variables of a frame that ended
 * are cleared none executes either, which may take long: then the thread state is right. */
static void drop_ended(struct fm_climb *k)
{
    struct fm_frame_view f;
    size_t len = k->stack.len;
    while (len && k->stack.data[len - 1].fate != FM_EXECUTING) {
        const struct fm_found *x = &k->stack.data[len - 1];
        if ((x->fate == FM_ALIVE && x->bytes) || fm_climb_generator_on(k, x->at, &f))
            break;
        len--;
    }
    if (len)
        k->stack.len = len;
    else
        k->between = k->stack.len > 0 && k->stack.data[k->stack.len - 1].f.offset >= 0;
    if (k->between && cut_as_told(k)) {
        k->between = false;
    } else if (k->between && k->c->last_try) {
        keep_common(k);
    } else if (k->between) {
        remember_doubted(k);
    }
}

/* The newest frame by the copy of the thread state; 0 if it does not tell. */
static fm_addr told_newest(const struct fm_climb *k)
{
    const uint8_t *head = k->w->buffer.data + k->w->head;
    if (k->c->layout->frames != FM_FRAMES_CFRAME)
        return fm_word(head, k->c->layout->thread_frame);
    if (fm_word(head, k->c->layout->thread_frame) != k->w->cframe || !k->w->cframe)
        return 0;
    return fm_word(k->w->buffer.data + k->w->cframe_copy, k->c->layout->cframe_frame);
}

/* Does the thread state name a newest frame outside the chunks that is not known? */
static bool has_unknown_newest(const struct fm_climb *k)
{
    return k->newest && !fm_walk_chunk_of(k->w, k->newest) && !fm_walk_is_shim(k->w, k->newest) &&
           !fm_walk_loose(k->w, k->newest);
}

/* Frames outside the chunks that are on the stack move to the end of the plan, the newest last: next to the
 * chunks. Others leave it after a while. */
static void order_loose(struct fm_climb *k)
{
    struct fm_walk *w = k->w;
    for (size_t i = 0; i < k->stack.len; i++) {
        struct fm_loose *loose = k->stack.data[i].bytes ? NULL : fm_walk_loose(w, k->stack.data[i].at);
        if (!loose)
            continue;
        struct fm_loose moved = *loose;
        moved.idle = 0;
        size_t at = (size_t)(loose - w->loose.data);
        memmove(loose, loose + 1, (w->loose.len - at - 1) * sizeof *loose);
        w->loose.data[w->loose.len - 1] = moved;
    }
    size_t kept = 0;
    for (size_t i = 0; i < w->loose.len; i++) {
        if (++w->loose.data[i].idle <= MAX_IDLE_LOOSE)
            w->loose.data[kept++] = w->loose.data[i];
    }
    w->loose.len = kept;
}

static enum fm_walk_result deliver(struct fm_climb *k)
{
    struct fm_walk *w = k->w;
    w->frames.len = 0;
    for (size_t i = k->stack.len; i-- > 0;)
        fm_walk_push(w, k->c, &k->stack.data[i].f);
    w->partial = k->unsure;
    w->doubted.len = 0;
    order_loose(k);
    return FM_WALK_OK;
}

/* There are more chunks, which were not copied at that instant: what was found called what is there, unless a
 * frame executes, which is then the newest. */
static enum fm_walk_result deliver_older(struct fm_climb *k)
{
    for (size_t i = k->stack.len; i-- > 0;) {
        if (k->stack.data[i].fate == FM_EXECUTING) {
            k->stack.len = i + 1;
            break;
        }
    }
    k->unsure = true;
    if (k->w->unfit)
        fm_walk_learn(k->w, k->c); /* for the next look */
    return deliver(k);
}

static enum fm_walk_result climb(struct fm_climb *k)
{
    const struct fm_layout *l = k->c->layout;
    find_changes(k);
    climb_chunks(k);
    if (k->again && !k->c->last_try)
        return FM_WALK_AGAIN;
    /* It is the first look that counts: what is deep and quick would get away. */
    if (!k->w->complete || k->certain < k->w->in_use)
        return deliver_older(k);
    k->unsure = k->unsure || k->again || k->missing || k->stack.len >= FM_WALK_MAX_FRAMES;
    if (k->stack.len >= FM_WALK_MAX_FRAMES)
        return deliver(k);
    if (fm_layout_minor(l) < 14)
        drop_ended(k);
    if (k->between && !k->c->last_try)
        return FM_WALK_AGAIN;
    fm_climb_generators(k);
    bool lacks = fm_climb_lacks_generator(k), unknown = has_unknown_newest(k);
    if (lacks)
        fm_climb_push_resumed(k);
    k->unsure = k->unsure || lacks || unknown;
    if (unknown) /* to be copied from the next look on: this one counts */
        fm_climb_is_entry(k, k->newest);
    return deliver(k);
}

/* Is it the chunk behind that in the plan? The memory may serve another purpose by now. */
static bool is_next_chunk(const struct fm_walk *w, const struct fm_layout *l, size_t i)
{
    const struct fm_chunk *chunk = &w->chunks.data[i];
    const uint8_t *copy = w->buffer.data + chunk->copy;
    return chunk->copied >= l->chunk_header && fm_word(copy, l->chunk_bytes) == chunk->bytes &&
           fm_word(copy, l->chunk_previous) == chunk[-1].at;
}

/* Of the chunks that were copied, those that are the stack's. */
static void count_chunks(struct fm_walk *w, const struct fm_layout *l)
{
    uint32_t n = w->in_use > 0;
    while (n < w->in_use && is_next_chunk(w, l, n))
        n++;
    if (n < w->in_use) {
        w->complete = false;
        w->unfit = true;
    }
    w->in_use = n;
}

enum fm_walk_result fm_walk_finish_chunks(struct fm_walk *w, struct fm_walk_context *c)
{
    struct fm_climb k = { .w = w, .c = c };
    const struct fm_layout *l = c->layout;
    fm_addr newest = fm_word(w->buffer.data + w->head, l->thread_chunk);
    if (!newest)
        return FM_WALK_OK; /* it has not run any Python yet */
    count_chunks(w, l);
    if (!w->in_use) {
        if (fm_walk_learn(w, c) == FM_WALK_GONE)
            return FM_WALK_GONE;
        w->frames.len = 0;
        w->partial = c->last_try;
        return c->last_try ? FM_WALK_OK : FM_WALK_AGAIN;
    }
    if (l->interp_code_generation != FM_ABSENT)
        w->generation = w->generation_copy
                            ? fm_word(w->buffer.data, w->generation_copy)
                            : fm_remote_pointer(c->remote, w->interp + l->interp_code_generation);
    k.stack.data = w->scratch;
    k.stack.cap = w->scratch_cap;
    k.newest = told_newest(&k);
    enum fm_walk_result result = climb(&k);
    w->scratch = k.stack.data;
    w->scratch_cap = k.stack.cap;
    if (k.crowded)
        w->loose.len = 0; /* those in use are found again */
    return result;
}
