/*
 * Generators and coroutines on the stack of a running thread of 3.11 and later; see walk.h.
 *
 * Their frames lie in their objects, outside the chunks. Each is copied before and after the chunks and counts
 * if both copies agree. `previous` of one that runs leads to the frame that resumed it, or to the entry
 * frame of the interpreter's loop in between; of one that is suspended it is NULL.
 */
#include <string.h>

#include "sampler/walk_climb.h"

#define BELIEF_TIMES 3u
#define BELIEF_NS 20000000u
#define OTHER_NS 2000000u /* for how long what is no frame is not looked at again */
#define STACK_BYTES (8u << 20)
#define RESUMED_DEPTH 3   /* how far from the top of the value stack a generator is that is being resumed */

/* Both copies of a loose frame, if they agree on what matters. */
static bool view_loose(const struct fm_climb *k, const struct fm_loose *loose, struct fm_frame_view *f)
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

/* Two generators were copied at one place, one before the chunks and one after. The one that was there when the
 * chunks were copied called `callee`: known if one of them has always been its only caller. */
static bool view_caller(const struct fm_climb *k, const struct fm_loose *loose, const struct fm_frame_view *callee,
                        struct fm_frame_view *f)
{
    struct fm_frame_view called = *callee;
    const uint32_t *caller = NULL;
    if (fm_walk_identify(k->c, &called))
        caller = fm_map_find(&k->w->callers, called.number);
    for (int i = 0; i < 2 && caller && *caller != FM_SEVERAL_CALLERS; i++) {
        if (fm_walk_decode(k->c, k->w->buffer.data + loose->copies[i], f) && f->previous &&
            f->owner == k->c->layout->owner_generator && fm_walk_identify(k->c, f) && f->number == *caller)
            return true;
    }
    return false;
}

/* An entry frame that generators which must have been running stood on, in its place on the C stack, where something
 * else was before or after. It stood on the newest frame so far, if that is what such frames there stand on. */
static bool view_entry(const struct fm_climb *k, const struct fm_loose *loose, struct fm_frame_view *f)
{
    const struct fm_layout *l = k->c->layout;
    fm_addr below = fm_climb_newest(k);
    for (int i = 0; i < 2; i++) {
        fm_walk_decode(k->c, k->w->buffer.data + loose->copies[i], f);
        if (f->owner >= l->owner_boundary && f->previous == below)
            return true;
    }
    f->owner = l->owner_boundary;
    f->previous = below;
    return fm_walk_is_shim(k->w, loose->at) == FM_SHIM_PLAIN;
}

/* As view_loose(), of a generator that must have been running when the chunks were copied, as it called what was
 * found there. It may have been resumed after the first copy, or suspended before the second: then the other one
 * tells who resumed it, or what was known before. */
static bool view_running(const struct fm_climb *k, struct fm_loose *loose, const struct fm_frame_view *callee,
                         struct fm_frame_view *f)
{
    struct fm_frame_view later;
    const uint8_t *bytes = k->w->buffer.data;
    if (!loose->copies[1])
        return false;
    if (fm_walk_is_shim(k->w, loose->at))
        return view_entry(k, loose, f);
    bool plausible = fm_walk_decode(k->c, bytes + loose->copies[0], f);
    fm_walk_decode(k->c, bytes + loose->copies[1], &later);
    if (!plausible || f->code_at != later.code_at || f->owner != later.owner)
        return view_caller(k, loose, callee, f);
    if (f->owner != k->c->layout->owner_generator)
        return f->previous == later.previous;
    if (f->previous && later.previous && f->previous != later.previous)
        return false;
    f->previous = f->previous ? f->previous : later.previous;
    if (!f->previous && loose->code == f->code_at)
        f->previous = loose->caller;
    loose->code = f->code_at; /* another generator may come to lie there */
    loose->caller = f->previous;
    return true;
}

/* `caller` called `callee`; both are identified. */
static void note_caller(struct fm_walk *w, uint32_t caller, uint32_t callee)
{
    uint32_t *known = fm_map_at(&w->callers, callee, caller, NULL);
    if (*known != caller)
        *known = FM_SEVERAL_CALLERS;
}

/* While a frame is made in the place of an earlier one, its words are of both for an instant: the new caller and the
 * old code. Who calls what has always been another's callee is believed when that is seen several times in short
 * order. */
bool fm_climb_may_have_called(struct fm_climb *k, const struct fm_frame_view *callee)
{
    const struct fm_found *top = k->stack.len ? &k->stack.data[k->stack.len - 1] : NULL;
    if (!top || top->bytes)
        return true;
    struct fm_walk *w = k->w;
    uint32_t caller = top->f.number, *known = fm_map_at(&w->callers, callee->number, caller, NULL);
    size_t slot = callee->number % FM_COUNT(w->unusual);
    if (*known == caller || *known == FM_SEVERAL_CALLERS)
        return true;
    bool again = w->unusual[slot].callee == callee->number && w->unusual[slot].caller == caller &&
                 k->c->now_ns - w->unusual[slot].seen_ns < BELIEF_NS;
    w->unusual[slot].times = again ? w->unusual[slot].times + 1 : 1;
    w->unusual[slot].callee = callee->number;
    w->unusual[slot].caller = caller;
    w->unusual[slot].seen_ns = k->c->now_ns;
    if (w->unusual[slot].times < BELIEF_TIMES)
        return false;
    *known = FM_SEVERAL_CALLERS;
    return true;
}

static void copy_too(struct fm_climb *k, fm_addr at)
{
    k->again = true;
    if (k->w->loose.len < FM_WALK_MAX_LOOSE)
        fm_vec_push(&k->w->loose, (struct fm_loose){ .at = at });
    else
        k->crowded = true;
}

/* May it be on the C stack, where entry frames come and go? */
static bool is_near_stack(const struct fm_walk *w, fm_addr at)
{
    bool any = false;
    for (size_t i = 0; i < FM_COUNT(w->shims); i++) {
        any = any || w->shims[i];
        if (w->shims[i] && at - w->shims[i] + STACK_BYTES < 2 * STACK_BYTES)
            return true;
    }
    return !any;
}

/* What lies at `at`, which is in no chunk: an entry frame, or a frame to be copied from now on? */
bool fm_climb_is_entry(struct fm_climb *k, fm_addr at)
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
    } else if (!is_near_stack(k->w, at)) {
        k->w->others[slot].at = at;
        k->w->others[slot].read_ns = k->c->now_ns;
    }
    return false;
}

/* Put the generators from `at` down to the newest frame so far on the stack. */
bool fm_climb_push_generators(struct fm_climb *k, fm_addr at, const struct fm_frame_view *callee)
{
    fm_addr below = fm_climb_newest(k);
    struct fm_found chain[FM_WALK_MAX_LOOSE];
    uint32_t n = 0;
    for (uint32_t steps = 0; at != below; steps++) {
        struct fm_loose *loose = fm_walk_loose(k->w, at);
        struct fm_found x = { .at = at, .fate = FM_ALIVE };
        if (steps == FM_WALK_MAX_LOOSE)
            return false; /* a circle */
        if (!loose) {
            if (!fm_climb_is_entry(k, at))
                return false;
            copy_too(k, at); /* it alone says on what the generators stand */
            if (!k->c->last_try)
                return false;
            break;
        }
        if (!view_running(k, loose, n ? &chain[n - 1].f : callee, &x.f)) {
            k->unsure = true;
            return false;
        }
        loose->idle = 0;
        if (x.f.owner < k->c->layout->owner_boundary) {
            if (!fm_walk_identify(k->c, &x.f))
                return false;
            if (n)
                note_caller(k->w, x.f.number, chain[n - 1].f.number);
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
static uint32_t stack_offset(const struct fm_climb *k, const struct fm_found *x, int i)
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

static fm_addr stack_object(const struct fm_climb *k, const struct fm_found *x, int i)
{
    uint32_t offset = stack_offset(k, x, i);
    return offset ? fm_word(x->bytes, offset) & ~(uint64_t)k->c->layout->code_tag_mask : 0;
}

/* May the newest frame so far have resumed this generator, which says so? Another frame may have been in its
 * slot when the generator was copied. Since 3.12 there is an entry frame between, unless a loop or an await
 * resumed it, which has the generator on its value stack. */
static bool may_have_resumed(const struct fm_climb *k, fm_addr generator)
{
    const struct fm_found *top = k->stack.len ? &k->stack.data[k->stack.len - 1] : NULL;
    if (!top || !top->bytes)
        return true;
    if (fm_layout_minor(k->c->layout) < 12 &&
        (top->fate == FM_EXECUTING || !(fm_climb_opcode_kind(k, &top->f) & FM_OPCODE_RESUMES)))
        return true;
    for (int i = 1; i <= RESUMED_DEPTH; i++) {
        if (stack_object(k, top, i) == generator - k->c->layout->gen_frame)
            return true;
    }
    return false;
}

/* A generator that runs on top of frame `at`, directly or through C. */
struct fm_loose *fm_climb_generator_on(struct fm_climb *k, fm_addr at, struct fm_frame_view *f)
{
    for (size_t i = 0; i < k->w->loose.len; i++) {
        struct fm_loose *loose = &k->w->loose.data[i];
        struct fm_frame_view shim;
        if (!view_loose(k, loose, f) || f->owner != k->c->layout->owner_generator || !f->previous)
            continue;
        if (f->previous == at && at == fm_climb_newest(k) && !may_have_resumed(k, loose->at))
            continue;
        if (f->previous == at)
            return loose;
        struct fm_loose *entry = fm_walk_loose(k->w, f->previous);
        if (entry && view_loose(k, entry, &shim) && shim.owner >= k->c->layout->owner_boundary &&
            shim.previous == at) {
            entry->idle = 0;
            return loose;
        }
    }
    return NULL;
}

/* A frame was called through C, by the entry frame at `at`. If generators run on top of the newest frame so
 * far, it is they who called; a stack is one line. If the entry was on top of generators when it was last
 * looked at, and there are none, they are still to be found. */
bool fm_climb_push_below_entry(struct fm_climb *k, fm_addr at)
{
    struct fm_frame_view f;
    struct fm_loose *loose;
    size_t n = 0;
    while (n <= k->w->loose.len && (loose = fm_climb_generator_on(k, fm_climb_newest(k), &f))) {
        struct fm_found x = { .f = f, .at = loose->at, .fate = FM_ALIVE };
        if (n++ == k->w->loose.len || !fm_walk_identify(k->c, &x.f))
            return false;
        fm_vec_push(&k->stack, x);
    }
    if (!n && fm_walk_is_shim(k->w, at) == FM_SHIM_OF_GENERATOR)
        k->missing = true;
    return true;
}

/* The frame of the generator that lies at `offset` in `top`. It is read now: it counts only if it is still
 * there after that, else it may have died and another be in its place. */
static bool read_resumed(const struct fm_climb *k, const struct fm_found *top, uint32_t offset, fm_addr gen,
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
bool fm_climb_push_resumed(struct fm_climb *k)
{
    const struct fm_layout *l = k->c->layout;
    struct fm_found x = { .fate = FM_ALIVE }, *top = &k->stack.data[k->stack.len - 1];
    for (int i = 1; i <= RESUMED_DEPTH && top->bytes; i++) {
        fm_addr gen = stack_object(k, top, i);
        if (!gen || (gen & 7) || !read_resumed(k, top, stack_offset(k, top, i), gen, &x.f))
            continue;
        x.at = gen + l->gen_frame;
        if (!fm_walk_loose(k->w, x.at))
            copy_too(k, x.at);
        fm_vec_push(&k->stack, x);
        return true;
    }
    return false;
}

/* Generators on top of the newest frame of the chunks. */
void fm_climb_generators(struct fm_climb *k)
{
    struct fm_frame_view f;
    fm_addr at = fm_climb_newest(k);
    struct fm_loose *loose;
    for (size_t n = 0; (loose = fm_climb_generator_on(k, at, &f)); n++) {
        struct fm_found x = { .f = f, .at = loose->at, .fate = FM_ALIVE };
        if (n == k->w->loose.len || !fm_walk_identify(k->c, &x.f)) {
            k->unsure = true;
            return;
        }
        fm_vec_push(&k->stack, x);
        at = loose->at;
    }
}

/* Does the newest frame stand at an instruction that resumes a generator, with none on top of it? */
bool fm_climb_lacks_generator(const struct fm_climb *k)
{
    const struct fm_found *top;
    if (!k->stack.len)
        return false;
    top = &k->stack.data[k->stack.len - 1];
    return top->bytes && top->fate != FM_EXECUTING && fm_climb_opcode_kind(k, &top->f) & FM_OPCODE_RESUMES;
}
