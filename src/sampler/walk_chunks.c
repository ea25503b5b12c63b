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

#include "sampler/walk_parts.h"

#define CO_MAKES_GENERATOR (0x20 | 0x80 | 0x200) /* co_flags: generator, coroutine, asynchronous generator */

#define MAX_IDLE 4000u /* for how many looks a chunk that is not in use stays in the plan */
#define OTHER_NS 2000000u /* for how long what is no frame is not looked at again */
#define RESUMED_DEPTH 3 /* how far from the top of the value stack a generator is that is being resumed */

enum fate { ENDED, MAYBE, ALIVE, EXECUTING };

struct found {
    struct fm_frame_view f;
    fm_addr at;
    const uint8_t *bytes; /* NULL for a loose frame */
    enum fate fate;
};

/* One walk up. */
struct climb {
    struct fm_walk *w;
    struct fm_walk_context *c;
    FM_VEC(struct found) stack; /* oldest first */
    fm_addr newest;             /* what the thread state said shortly before: a hint */
    fm_addr changed;            /* what lies there and above was changed while it was read; 0: nothing was */
    bool again;                 /* something is not in the copies */
    bool crowded;               /* … and there is no room for more: most are of another time */
    bool missing;               /* generators below an entry frame were not found */
    bool unsure;                /* the older part is certain, the newest end is not */
    bool between;               /* no frame executes just now */
};

static const struct fm_known_code *code_of(const struct climb *k, const struct fm_frame_view *f)
{
    return &k->c->codes->list.data[f->number];
}

static unsigned opcode_kind(const struct climb *k, const struct fm_frame_view *f)
{
    const struct fm_code *code = &code_of(k, f)->code;
    if (f->offset < 0 || (uint32_t)f->offset >= code->bytecode_len)
        return 0;
    return fm_layout_opcode_kind(k->c->layout, code->bytecode[f->offset]);
}

/* Of the frame in a slot of a chunk. */
static enum fate fate_of(const struct climb *k, const struct found *x)
{
    const struct fm_layout *l = k->c->layout;
    uint32_t locals = code_of(k, &x->f)->locals;
    if (code_of(k, &x->f)->code.flags & CO_MAKES_GENERATOR)
        return ENDED; /* in a chunk it does nothing but make the generator, and is not cleared then */
    if (fm_layout_minor(l) < 14) {
        int32_t top;
        memcpy(&top, x->bytes + l->frame_stackpointer, sizeof top);
        if (top == -1)
            return EXECUTING;
        if (top < 0 || (uint32_t)top > code_of(k, &x->f)->frame_bytes / 8)
            return ENDED;
        if (opcode_kind(k, &x->f) & (FM_OPCODE_RETURNS | FM_OPCODE_MAKES_GENERATOR))
            return ENDED; /* what is left of a call that returned */
        return fm_layout_minor(l) == 13 && top == 0 && locals ? ENDED : MAYBE;
    }
    fm_addr sp = fm_word(x->bytes, l->frame_stackpointer), base = x->at + l->frame_localsplus;
    if (sp < base || sp > x->at + code_of(k, &x->f)->frame_bytes)
        return ENDED;
    if (sp == base && (locals || opcode_kind(k, &x->f) & FM_OPCODE_RETURNS))
        return ENDED;
    return ALIVE;
}

/* Sets its fate. Where the stack ends is decided by codes that are on no stack: these are compared with the
 * target here, or one that took the place of another would hide its frames for ever. */
static bool lives(const struct climb *k, struct found *x)
{
    x->fate = fate_of(k, x);
    if (x->fate == ENDED && fm_walk_renew(k->c, &x->f, false))
        x->fate = fate_of(k, x);
    return x->fate != ENDED;
}

/* Both copies of a loose frame, if they agree on what matters. */
static bool view_loose(const struct climb *k, const struct fm_loose *loose, struct fm_frame_view *f)
{
    struct fm_frame_view later;
    const uint8_t *bytes = k->w->buffer.data;
    if (!loose->copies[1])
        return false; /* it is to be copied from the next time on */
    bool plausible = fm_walk_decode(k->c, bytes + loose->copies[0], f);
    fm_walk_decode(k->c, bytes + loose->copies[1], &later);
    return plausible && f->previous == later.previous && f->code_at == later.code_at &&
           f->owner == later.owner;
}

static void copy_too(struct climb *k, fm_addr at)
{
    k->again = true;
    if (k->w->loose.len < FM_WALK_MAX_LOOSE)
        fm_vec_push(&k->w->loose, (struct fm_loose){ .at = at });
    else
        k->crowded = true;
}

/* What lies at `at`, which is in no chunk: an entry frame, or a frame to be copied from now on? */
static bool is_entry(struct climb *k, fm_addr at)
{
    const struct fm_layout *l = k->c->layout;
    uint8_t bytes[FM_FRAME_MAX_BYTES];
    struct fm_frame_view f;
    if (fm_walk_is_shim(k->w, at))
        return true;
    size_t slot = at >> 4 & (FM_COUNT(k->w->others) - 1);
    bool known = k->w->others[slot].at == at && k->c->now_ns - k->w->others[slot].read_ns < OTHER_NS;
    if (!at || (at & 7) || known || l->frame_size > sizeof bytes ||
        fm_remote_read(k->c->remote, at, bytes, l->frame_size) < 0)
        return false;
    fm_walk_decode(k->c, bytes, &f);
    if (f.owner >= l->owner_boundary) {
        fm_walk_add_shim(k->w, at, f.previous);
        return true;
    }
    if (f.owner == l->owner_generator) {
        copy_too(k, at);
    } else {
        k->w->others[slot].at = at;
        k->w->others[slot].read_ns = k->c->now_ns;
    }
    return false;
}

static fm_addr newest_at(const struct climb *k)
{
    return k->stack.len ? k->stack.data[k->stack.len - 1].at : 0;
}

/* Put the generators from `at` down to the newest frame so far on the stack. */
static bool push_generators(struct climb *k, fm_addr at)
{
    fm_addr below = newest_at(k);
    struct found chain[FM_WALK_MAX_LOOSE];
    uint32_t n = 0;
    for (uint32_t steps = 0; at != below; steps++) {
        struct fm_loose *loose = fm_walk_loose(k->w, at);
        struct found x = { .at = at, .fate = ALIVE };
        if (steps == FM_WALK_MAX_LOOSE)
            return false; /* a circle */
        if (!loose) {
            if (!is_entry(k, at))
                return false;
            copy_too(k, at); /* it alone says on what the generators stand */
            if (!k->c->last_try)
                return false;
            break;
        }
        if (!view_loose(k, loose, &x.f)) {
            k->again = true;
            return false;
        }
        if (x.f.owner < k->c->layout->owner_boundary) {
            if (!fm_walk_identify(k->c, &x.f))
                return false;
            chain[n++] = x;
        }
        at = x.f.previous;
        if (!at && below)
            return false; /* suspended by now */
    }
    while (n-- > 0)
        fm_vec_push(&k->stack, chain[n]);
    return true;
}

/* Where in a frame what is i-th from the top of its value stack lies; 0 if there is none or it is not
 * saved. */
static uint32_t stack_offset(const struct climb *k, const struct found *x, int i)
{
    const struct fm_layout *l = k->c->layout;
    const struct fm_chunk *chunk = fm_walk_chunk_of(k->w, x->at);
    fm_addr sp;
    if (fm_layout_minor(l) < 14) {
        int32_t depth;
        memcpy(&depth, x->bytes + l->frame_stackpointer, sizeof depth);
        if (depth < 0)
            return 0;
        sp = x->at + l->frame_localsplus + (uint32_t)depth * 8;
    } else {
        sp = fm_word(x->bytes, l->frame_stackpointer);
    }
    if (sp < x->at + l->frame_localsplus + 8 * (fm_addr)i || sp > chunk->at + chunk->copied)
        return 0;
    return (uint32_t)(sp - 8 * (fm_addr)i - x->at);
}

static fm_addr stack_object(const struct climb *k, const struct found *x, int i)
{
    uint32_t offset = stack_offset(k, x, i);
    return offset ? fm_word(x->bytes, offset) & ~(uint64_t)k->c->layout->code_tag_mask : 0;
}

/* May the newest frame so far have resumed this generator, which says so? Another frame may have been in its
 * slot when the generator was copied. Since 3.12 there is an entry frame between, unless a loop or an await
 * resumed it, which has the generator on its value stack. */
static bool may_have_resumed(const struct climb *k, fm_addr generator)
{
    const struct found *top = k->stack.len ? &k->stack.data[k->stack.len - 1] : NULL;
    if (!top || !top->bytes)
        return true;
    if (fm_layout_minor(k->c->layout) < 12 &&
        (top->fate == EXECUTING || !(opcode_kind(k, &top->f) & FM_OPCODE_RESUMES)))
        return true;
    for (int i = 1; i <= RESUMED_DEPTH; i++) {
        if (stack_object(k, top, i) == generator - k->c->layout->gen_frame)
            return true;
    }
    return false;
}

/* A generator that runs on top of frame `at`, directly or through C. */
static struct fm_loose *loose_above(struct climb *k, fm_addr at, struct fm_frame_view *f)
{
    for (size_t i = 0; i < k->w->loose.len; i++) {
        struct fm_loose *loose = &k->w->loose.data[i];
        struct fm_frame_view shim;
        if (!view_loose(k, loose, f) || f->owner != k->c->layout->owner_generator || !f->previous)
            continue;
        if (f->previous == at && at == newest_at(k) && !may_have_resumed(k, loose->at))
            continue;
        if (f->previous == at)
            return loose;
        struct fm_loose *entry = fm_walk_loose(k->w, f->previous);
        if (entry && view_loose(k, entry, &shim) && shim.owner >= k->c->layout->owner_boundary &&
            shim.previous == at)
            return loose;
    }
    return NULL;
}

/* A frame was called through C, by the entry frame at `at`. If generators run on top of the newest frame so
 * far, it is they who called; a stack is one line. If the entry was on top of generators when it was last
 * looked at, and there are none, they are still to be found. */
static bool push_below_entry(struct climb *k, fm_addr at)
{
    struct fm_frame_view f;
    struct fm_loose *loose;
    size_t n = 0;
    while (n <= k->w->loose.len && (loose = loose_above(k, newest_at(k), &f))) {
        struct found x = { .f = f, .at = loose->at, .fate = ALIVE };
        if (n++ == k->w->loose.len || !fm_walk_identify(k->c, &x.f))
            return false;
        fm_vec_push(&k->stack, x);
    }
    if (!n && fm_walk_is_shim(k->w, at) == FM_SHIM_OF_GENERATOR)
        k->missing = true;
    return true;
}

/* A frame whose variables are being cleared is no part of the stack any more, but its slot is not free
 * yet: what that calls (__del__) stands on the frame below. */
static bool stands_below_cleared(struct climb *k, fm_addr previous)
{
    size_t len = k->stack.len;
    if (len < 2 || k->stack.data[len - 1].fate != MAYBE || k->stack.data[len - 2].at != previous)
        return false;
    k->stack.len--;
    return true;
}

/* Is `previous` of a frame in a slot what a callee of the newest frame so far would have? */
static bool link_down(struct climb *k, fm_addr previous)
{
    if (previous == newest_at(k) || stands_below_cleared(k, previous))
        return true;
    if (fm_walk_is_shim(k->w, previous))
        return push_below_entry(k, previous);
    if (fm_walk_chunk_of(k->w, previous))
        return false; /* of another time */
    if (fm_walk_loose(k->w, previous))
        return push_generators(k, previous);
    return is_entry(k, previous) && push_below_entry(k, previous);
}

/* Up to 3.13 a frame that calls another in the same loop of the interpreter first saves its stack pointer:
 * while it executes, only what C called can stand on it. That begins a loop of its own, which 3.11 marks in
 * the frame (is_entry, before owner) and later versions by an entry frame in between. */
static bool is_left_behind(const struct climb *k, const struct found *x)
{
    const struct fm_layout *l = k->c->layout;
    const struct found *top = k->stack.len ? &k->stack.data[k->stack.len - 1] : NULL;
    if (!top || top->fate != EXECUTING || x->f.previous != top->at)
        return false;
    return fm_layout_minor(l) > 11 || !x->bytes[l->frame_owner - 1];
}

/* The frame in the slot at `at`, if there is a live one on top of what was found so far. */
static bool try_slot(struct climb *k, const struct fm_chunk *chunk, fm_addr at, fm_addr end)
{
    const struct fm_layout *l = k->c->layout;
    struct found x = { .at = at };
    if (at + l->frame_size > end)
        return false;
    if (k->stack.len && k->stack.data[k->stack.len - 1].bytes &&
        k->stack.data[k->stack.len - 1].f.offset < 0)
        return false; /* who has not begun has called nobody: that is of an earlier time */
    if (k->changed >= chunk->at && k->changed < chunk->at + chunk->bytes && at + l->frame_size > k->changed)
        return false;
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
    if (!link_down(k, x.f.previous) || !fm_walk_identify(k->c, &x.f) || !lives(k, &x)) {
        k->stack.len = len; /* its generators are not part of this either */
        k->missing = missing;
        return false;
    }
    fm_vec_push(&k->stack, x);
    return true;
}

/* Where the slot behind the one at `at` begins, if that holds a frame that is being cleared and, as the
 * thread state says, there are more behind it; else 0. */
static fm_addr behind_cleared(struct climb *k, const struct fm_chunk *chunk, fm_addr at, fm_addr end)
{
    const struct fm_layout *l = k->c->layout;
    struct fm_frame_view f;
    if (k->again || k->newest <= at || k->newest >= end ||
        at + l->frame_size > chunk->at + chunk->copied)
        return 0;
    const uint8_t *bytes = k->w->buffer.data + chunk->copy + (at - chunk->at);
    if (!fm_walk_decode(k->c, bytes, &f) || !fm_walk_identify(k->c, &f))
        return 0;
    at += code_of(k, &f)->frame_bytes;
    return k->newest >= at ? at : 0;
}

/* How far the chunk is used: exactly known for all but the newest. */
static fm_addr chunk_end(const struct climb *k, size_t i)
{
    const struct fm_layout *l = k->c->layout;
    const struct fm_chunk *chunk = &k->w->chunks.data[i];
    if (i + 1 < k->w->in_use && l->chunk_bytes + 16 <= l->chunk_header) {
        uint64_t top = fm_word(k->w->buffer.data + chunk->copy, l->chunk_bytes + 8);
        if (top <= (chunk->bytes - l->chunk_header) / 8)
            return chunk->at + l->chunk_header + top * 8;
    }
    return chunk->at + chunk->bytes;
}

static uint64_t first_difference(const uint8_t *a, const uint8_t *b, uint64_t len)
{
    uint64_t i = 0;
    while (i < len && memcmp(a + i, b + i, len - i < 64 ? len - i : 64) == 0)
        i += 64;
    while (i < len && a[i] == b[i])
        i++;
    return i < len ? i : len;
}

/* A stack over several chunks takes several copies, one after the other. Where an older one changed until the
 * newest was copied, the stack is certain up to there. */
static void find_changes(struct climb *k)
{
    const uint8_t *buffer = k->w->buffer.data;
    for (size_t i = 0; i + 1 < k->w->in_use && !k->changed; i++) {
        const struct fm_chunk *chunk = &k->w->chunks.data[i];
        uint64_t len = chunk_end(k, i) - chunk->at;
        len = len < chunk->copied ? len : chunk->copied;
        uint64_t same = first_difference(buffer + chunk->copy, buffer + chunk->again, len);
        if (same < len)
            k->changed = chunk->at + (same & ~(uint64_t)7);
    }
}

/* A word is left free at the beginning of the very first chunk. */
static fm_addr first_slot(const struct climb *k, const struct fm_chunk *chunk)
{
    const struct fm_layout *l = k->c->layout;
    bool first = fm_word(k->w->buffer.data + chunk->copy, l->chunk_previous) == 0;
    return chunk->at + l->chunk_header + (first ? 8 : 0);
}

/* Every slot from the oldest on. */
static void climb_chunks(struct climb *k)
{
    for (size_t i = 0; i < k->w->in_use; i++) {
        const struct fm_chunk *chunk = &k->w->chunks.data[i];
        fm_addr at = first_slot(k, chunk), end = chunk_end(k, i);
        while (at && k->stack.len < FM_WALK_MAX_FRAMES) {
            if (try_slot(k, chunk, at, end))
                at += code_of(k, &k->stack.data[k->stack.len - 1].f)->frame_bytes;
            else
                at = behind_cleared(k, chunk, at, end);
        }
        if (k->again || (k->changed >= chunk->at && k->changed < chunk->at + chunk->bytes))
            return;
    }
}

/* Keep what is below the newest frame by the thread state; without that, only the oldest is certain. */
static void cut_as_told(struct climb *k)
{
    for (size_t i = k->stack.len; i-- > 0;) {
        if (k->stack.data[i].at == k->newest) {
            k->stack.len = i + 1;
            return;
        }
    }
    k->unsure = true;
    k->stack.len = 1;
}

/* Of frames that may or may not have ended (3.11 to 3.13), drop those that have: nothing above the last
 * frame that executes, or that a running generator stands on. Between a frame that calls and one that
 * is called, for some nanoseconds, none executes: then all that was found is alive, unless an exception
 * left something behind, which another try will not meet again. While the variables of a frame that ended
 * are cleared none executes either, which may take long: then the thread state is right. */
static void drop_ended(struct climb *k)
{
    struct fm_frame_view f;
    size_t len = k->stack.len;
    while (len && k->stack.data[len - 1].fate != EXECUTING) {
        const struct found *x = &k->stack.data[len - 1];
        if ((x->fate == ALIVE && x->bytes) || loose_above(k, x->at, &f))
            break;
        len--;
    }
    if (len)
        k->stack.len = len;
    else
        k->between = k->stack.len > 0 && k->stack.data[k->stack.len - 1].f.offset >= 0;
    if (k->between && k->c->last_try)
        cut_as_told(k);
}

/* The frame of the generator that lies at `offset` in `top`. It is read now: it counts only if it is still
 * there after that, else it may have died and another be in its place. */
static bool read_resumed(const struct climb *k, const struct found *top, uint32_t offset, fm_addr gen,
                         struct fm_frame_view *f)
{
    const struct fm_layout *l = k->c->layout;
    uint8_t bytes[FM_FRAME_MAX_BYTES], again[FM_FRAME_MAX_BYTES];
    uint64_t slot;
    struct fm_frame_view caller;
    struct fm_span spans[] = { { gen + l->gen_frame, bytes, l->frame_size },
                               { top->at, again, l->frame_size },
                               { top->at + offset, &slot, sizeof slot } };
    if (l->frame_size > sizeof bytes || fm_remote_read_spans(k->c->remote, spans, 3) < 3)
        return false;
    fm_walk_decode(k->c, again, &caller);
    return caller.code_at == top->f.code_at && caller.previous == top->f.previous &&
           slot == fm_word(top->bytes, offset) && fm_walk_decode(k->c, bytes, f) &&
           f->owner == l->owner_generator && fm_walk_identify(k->c, f);
}

/* The generator that the newest frame resumed is on top of its value stack. It may not be known yet, or
 * have been suspended between the copies. */
static bool push_resumed(struct climb *k)
{
    const struct fm_layout *l = k->c->layout;
    struct found x = { .fate = ALIVE }, *top = &k->stack.data[k->stack.len - 1];
    for (int i = 1; i <= RESUMED_DEPTH && top->bytes; i++) {
        fm_addr gen = stack_object(k, top, i);
        if (!gen || (gen & 7) || !read_resumed(k, top, stack_offset(k, top, i), gen, &x.f))
            continue;
        x.at = gen + l->gen_frame;
        fm_vec_push(&k->stack, x);
        return true;
    }
    return false;
}

/* Generators on top of the newest frame of the chunks. */
static void climb_loose(struct climb *k)
{
    struct fm_frame_view f;
    fm_addr at = newest_at(k);
    struct fm_loose *loose;
    for (size_t n = 0; (loose = loose_above(k, at, &f)); n++) {
        struct found x = { .f = f, .at = loose->at, .fate = ALIVE };
        if (n == k->w->loose.len || !fm_walk_identify(k->c, &x.f)) {
            k->unsure = true;
            return;
        }
        fm_vec_push(&k->stack, x);
        at = loose->at;
    }
}

/* Does the newest frame stand at an instruction that resumes a generator, with none on top of it? */
static bool lacks_generator(const struct climb *k)
{
    const struct found *top;
    if (!k->stack.len)
        return false;
    top = &k->stack.data[k->stack.len - 1];
    return top->bytes && top->fate != EXECUTING && opcode_kind(k, &top->f) & FM_OPCODE_RESUMES;
}

/* The newest frame by the copy of the thread state; 0 if it does not tell. */
static fm_addr told_newest(const struct climb *k)
{
    const uint8_t *head = k->w->buffer.data + k->w->head;
    if (k->c->layout->frames != FM_FRAMES_CFRAME)
        return fm_word(head, k->c->layout->thread_frame);
    if (fm_word(head, k->c->layout->thread_frame) != k->w->cframe || !k->w->cframe)
        return 0;
    return fm_word(k->w->buffer.data + k->w->cframe_copy, k->c->layout->cframe_frame);
}

/* Does the thread state name a newest frame outside the chunks that is not known? */
static bool has_unknown_newest(const struct climb *k)
{
    return k->newest && !fm_walk_chunk_of(k->w, k->newest) && !fm_walk_is_shim(k->w, k->newest) &&
           !fm_walk_loose(k->w, k->newest);
}

static enum fm_walk_result deliver(struct climb *k)
{
    struct fm_walk *w = k->w;
    w->frames.len = 0;
    for (size_t i = k->stack.len; i-- > 0;)
        fm_walk_push(w, k->c, &k->stack.data[i].f);
    w->partial = k->unsure;
    return FM_WALK_OK;
}

static enum fm_walk_result climb(struct climb *k)
{
    const struct fm_layout *l = k->c->layout;
    find_changes(k);
    climb_chunks(k);
    if (k->again && !k->c->last_try)
        return FM_WALK_AGAIN;
    k->unsure = k->unsure || k->again || k->missing || k->changed || k->stack.len >= FM_WALK_MAX_FRAMES;
    /* It is the first look that counts: what is deep and quick would get away. */
    if (k->changed || k->stack.len >= FM_WALK_MAX_FRAMES)
        return deliver(k);
    if (fm_layout_minor(l) < 14)
        drop_ended(k);
    climb_loose(k);
    if (lacks_generator(k)) {
        if (!k->c->last_try) {
            fm_walk_learn(k->w, k->c);
            return FM_WALK_AGAIN;
        }
        push_resumed(k);
    } else if ((k->unsure || has_unknown_newest(k)) && !k->c->last_try) {
        fm_walk_learn(k->w, k->c);
        return FM_WALK_AGAIN;
    } else if (k->between && !k->c->last_try) {
        return FM_WALK_AGAIN;
    }
    return deliver(k);
}

/* Is it the chunk behind that in the plan, and does it hold a frame? The memory may serve another purpose by
 * now. Since 3.14 one chunk that is not in use is kept: there an ended frame is known as such. */
static bool is_in_use(const struct climb *k, size_t i)
{
    const struct fm_layout *l = k->c->layout;
    const struct fm_chunk *chunk = &k->w->chunks.data[i];
    const uint8_t *copy = k->w->buffer.data + chunk->copy;
    struct found x = { .at = chunk->at + l->chunk_header, .bytes = copy + l->chunk_header };
    if (chunk->copied < l->chunk_header + l->frame_size || fm_word(copy, l->chunk_bytes) != chunk->bytes ||
        fm_word(copy, l->chunk_previous) != chunk[-1].at)
        return false;
    if (fm_layout_minor(l) < 14)
        return true;
    return fm_walk_decode(k->c, x.bytes, &x.f) && fm_walk_identify(k->c, &x.f) && lives(k, &x);
}

/* How many of the chunks are in use. Others are kept in the plan for a while. */
static void count_chunks(const struct climb *k)
{
    struct fm_walk *w = k->w;
    uint32_t n = w->chunks.len > 0;
    while (n < w->in_use && is_in_use(k, n))
        n++;
    w->in_use = n;
    for (size_t i = 0; i < w->chunks.len; i++) {
        struct fm_chunk *chunk = &w->chunks.data[i];
        chunk->idle = i < n ? 0 : chunk->idle + 1;
        if (chunk->idle > MAX_IDLE)
            w->chunks.len = i;
    }
}

static bool has_chunk(const struct fm_walk *w, fm_addr at)
{
    for (size_t i = 0; i < w->chunks.len; i++) {
        if (w->chunks.data[i].at == at)
            return true;
    }
    return false;
}

enum fm_walk_result fm_walk_finish_chunks(struct fm_walk *w, struct fm_walk_context *c)
{
    struct climb k = { .w = w, .c = c };
    const struct fm_layout *l = c->layout;
    fm_addr newest = fm_word(w->buffer.data + w->head, l->thread_chunk);
    if (!newest)
        return FM_WALK_OK; /* it has not run any Python yet */
    if (!w->complete || !has_chunk(w, newest)) {
        if (fm_walk_learn(w, c) == FM_WALK_GONE)
            return FM_WALK_GONE;
        w->frames.len = 0;
        w->partial = c->last_try;
        return c->last_try ? FM_WALK_OK : FM_WALK_AGAIN;
    }
    count_chunks(&k);
    if (l->interp_code_generation != FM_ABSENT)
        w->generation = fm_word(w->buffer.data, w->generation_copy);
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
