/*
 * The stack of a running thread of 3.9 and 3.10, whose frames are objects anywhere in memory; see walk.h.
 *
 * What helps here: a function's frame is kept with its code when it returns and serves its next call, so a frame
 * lies where it lay, and keeps code and caller of its last call until the next. All frames that were met lately
 * are copied, the oldest first; then the thread state, which names the newest; then the frames once more, in
 * reverse. What both copies of a frame agree on held when the thread state was copied, and those that change most
 * were copied next to it.
 *
 * The first look counts. A frame whose copies differ, or that was never met, is no reason for another: that would
 * favour whatever is slow. What is certain of the older frames counts then.
 *
 * Which instruction a frame stood at may differ between the copies although its caller and callee do not. Then
 * one is taken at which that callee was called before.
 */
#include <errno.h>
#include <string.h>

#include "cpython/stack.h"
#include "sampler/walk_parts.h"

#define CO_GENERATORS (0x20 | 0x80 | 0x200)
#define MAX_IDLE 50u     /* for how many looks a frame that is not on the stack stays in the plan: the longer that
                          * is, the longer a copy takes */
#define MAX_IDLE_ONCE 16u /* … if it was not met there again since it was found */
#define NOW_FRAMES 24    /* a stack of so many frames may be read one by one */
#define MAX_DISTANCE 40  /* in the plan, from the thread state to a frame that may be any function's */
#define MAX_SITES 65536u /* of calls that are remembered */

/* --- the copy ----------------------------------------------------------------------------------- */

/* Oldest frames first, the thread state, the same backwards. */
static int make_plan(struct fm_walk *w, const struct fm_layout *l, struct fm_span *spans)
{
    uint32_t offsets[2 * FM_WALK_MAX_LOOSE + 1];
    int n = 0, last = 2 * (int)w->loose.len;
    w->buffer.len = 0;
    for (; n < (int)w->loose.len; n++) {
        struct fm_loose *loose = &w->loose.data[n];
        loose->copies[0] = offsets[n] = fm_walk_place(w, &spans[n], loose->at, l->frame_size);
        loose->copies[1] = offsets[last - n] = fm_walk_place(w, &spans[last - n], loose->at, l->frame_size);
    }
    w->head = offsets[n] = fm_walk_place(w, &spans[n], w->thread, l->thread_size);
    for (int i = 0; i <= last; i++)
        spans[i].into = w->buffer.data + offsets[i];
    return last + 1;
}

static enum fm_walk_result copy(struct fm_walk *w, const struct fm_walk_context *c)
{
    struct fm_span spans[2 * FM_WALK_MAX_LOOSE + 1];
    int n = make_plan(w, c->layout, spans), middle = (int)w->loose.len;
    uint64_t begin_ns = fm_clock_ns();
    int got = fm_remote_read_spans(c->remote, spans, n);
    w->copied_ns = fm_clock_ns();
    uint64_t took_ns = w->copied_ns - begin_ns;
    w->read_ns = begin_ns + took_ns / 2;
    w->torn = fm_walk_is_late(&w->usual[0], n, w->buffer.len, took_ns);
    if (got == n)
        return FM_WALK_OK;
    if (got == -ESRCH || got == -EPERM || got == middle || !middle)
        return FM_WALK_GONE;
    got = got < 0 ? 0 : got;
    fm_walk_forget(w, (size_t)(got < middle ? got : 2 * middle - got)); /* its memory was given back */
    return FM_WALK_AGAIN;
}

/* --- the plan ----------------------------------------------------------------------------------- */

static void make_room(struct fm_walk *w)
{
    size_t oldest = 0;
    for (size_t i = 1; i < w->loose.len; i++) {
        if (w->loose.data[i].idle > w->loose.data[oldest].idle)
            oldest = i;
    }
    if (w->loose.len == FM_WALK_MAX_LOOSE)
        fm_walk_forget(w, oldest);
}

/* A frame lies at `at`, so deep. */
static void note_frame(struct fm_walk *w, fm_addr at, uint32_t depth)
{
    struct fm_loose *known = fm_walk_loose(w, at);
    struct fm_loose loose = known ? *known : (struct fm_loose){ .at = at };
    size_t i;
    if (known && known->depth == depth) {
        known->idle = 0;
        return;
    }
    if (known)
        fm_walk_forget(w, (size_t)(known - w->loose.data));
    else
        make_room(w);
    loose.depth = depth;
    loose.idle = 0;
    fm_vec_push(&w->loose, loose);
    for (i = w->loose.len - 1; i > 0 && w->loose.data[i - 1].depth > depth; i--)
        w->loose.data[i] = w->loose.data[i - 1];
    w->loose.data[i] = loose;
}

/* Follow the frames as they are now; of a deep stack the newest are kept. */
static enum fm_walk_result learn(struct fm_walk *w, struct fm_walk_context *c)
{
    const struct fm_layout *l = c->layout;
    fm_addr at, chain[FM_WALK_MAX_LOOSE];
    uint8_t bytes[FM_FRAME_MAX_BYTES];
    uint32_t n = 0;
    if (l->frame_size > sizeof bytes || fm_remote_read(c->remote, w->thread + l->thread_frame, &at, 8) < 0)
        return FM_WALK_GONE;
    for (; at && n < FM_WALK_MAX_LOOSE; n++) {
        struct fm_frame_view f;
        if ((at & 7) || fm_remote_read(c->remote, at, bytes, l->frame_size) < 0)
            break;
        fm_walk_decode(c, bytes, &f);
        chain[n] = at;
        at = f.previous;
    }
    for (uint32_t i = 0; i < n; i++)
        note_frame(w, chain[i], n - 1 - i);
    return FM_WALK_AGAIN;
}

/* Those that were not on the stack for long are dropped. Which serve several functions is noticed. */
static void age(struct fm_walk *w, const struct fm_layout *l)
{
    for (size_t i = w->loose.len; i-- > 0;) {
        struct fm_loose *loose = &w->loose.data[i];
        fm_addr code = fm_word(w->buffer.data + loose->copies[0], l->frame_code);
        loose->shared = loose->shared || (loose->code && loose->code != code);
        loose->code = code;
        if (++loose->idle > (loose->met ? MAX_IDLE : MAX_IDLE_ONCE))
            fm_walk_forget(w, i);
    }
}

/* --- the stack ---------------------------------------------------------------------------------- */

static bool executes(const struct fm_walk *w, const struct fm_walk_context *c, uint32_t copy)
{
    return fm_stack_frame_executes(c->layout, w->buffer.data + copy);
}

static uint64_t site_key(uint32_t caller, uint32_t callee)
{
    return fm_map_pair(caller, callee);
}

/* Has it been seen to call itself? */
static bool recurs(const struct fm_walk *w, uint32_t code)
{
    return fm_map_find(&w->sites, site_key(code, code)) != NULL;
}

/* Both copies of a frame, made one. */
struct both {
    struct fm_frame_view f;
    int executed; /* in how many of them */
    bool shared;  /* it has served other functions, or its function calls itself */
    bool steady;  /* in both, at the same instruction */
};

/* Recursions have no frame of their own: theirs serve any function, at any depth. Where the copies lie far apart
 * in time they may be of two calls with a third one in between. */
static bool is_far(const struct fm_walk *w, const struct fm_loose *loose)
{
    return loose->shared && (size_t)(loose - w->loose.data) + MAX_DISTANCE < w->loose.len;
}

/* Who called a frame is certain if both copies say so. A generator that is not being resumed has no caller:
 * then what the other copy says is that of its turn at this time. */
static bool view(const struct fm_walk *w, const struct fm_walk_context *c, struct fm_loose *loose,
                 struct both *ret)
{
    struct fm_frame_view later;
    int32_t later_offset;
    if (is_far(w, loose) || !fm_walk_decode(c, w->buffer.data + loose->copies[0], &ret->f) ||
        !fm_walk_decode(c, w->buffer.data + loose->copies[1], &later) ||
        ret->f.code_at != later.code_at || !fm_walk_identify(c, &ret->f))
        return false;
    const struct fm_code *code = &c->codes->list.data[ret->f.number].code;
    if (!fm_code_offset(code, c->layout, later.instr, &later_offset))
        return false;
    if (ret->f.previous != later.previous) {
        if (!(code->flags & CO_GENERATORS) || (ret->f.previous && later.previous))
            return false;
        ret->f.previous = ret->f.previous ? ret->f.previous : later.previous;
    }
    bool before = executes(w, c, loose->copies[0]), after = executes(w, c, loose->copies[1]);
    ret->executed = before + after;
    ret->shared = loose->shared || recurs(w, ret->f.number);
    ret->steady = ret->executed == 2 && ret->f.instr == later.instr;
    if (!before && after)
        ret->f.offset = later_offset;
    return true;
}

/* Where did `caller` stand when it called `callee`? */
static bool find_site(struct fm_walk *w, struct both *caller, uint32_t callee)
{
    uint64_t key = site_key(caller->f.number, callee);
    if (caller->steady) {
        if (w->sites.len > MAX_SITES)
            fm_map_release(&w->sites);
        *fm_map_at(&w->sites, key, 0, NULL) = (uint32_t)caller->f.offset;
        return true;
    }
    const uint32_t *known = fm_map_find(&w->sites, key);
    if (!known)
        return false;
    caller->f.offset = (int32_t)*known;
    return true;
}

/* May the frame have been on the stack as it was copied? The oldest is there all the time, others at least in
 * one copy. Of the newest that is not asked, as a short call is over in both; but if code objects or functions in
 * this frame come and go, it may have been another's. */
static bool may_stand(const struct fm_walk_context *c, const struct both *x, bool newest)
{
    bool calm = c->now_ns - c->codes->replaced_ns > FM_CODES_CHURN_NS;
    bool generator = c->codes->list.data[x->f.number].code.flags & CO_GENERATORS;
    if (!x->f.previous)
        return x->executed == 2 && !generator; /* who resumed a generator is not known if it is suspended in both */
    return x->executed >= (calm && !x->shared ? !newest : 2);
}

/* What is deeper than can be copied, below `above`: read one by one, so two readings must agree, and who was
 * called from there must still be there after that. */
static bool push_older(struct fm_walk *w, struct fm_walk_context *c, const struct fm_loose *above, fm_addr at)
{
    size_t begin = w->frames.len;
    uint8_t bytes[FM_FRAME_MAX_BYTES];
    fm_walk_older(w, c, at);
    size_t n = w->frames.len - begin;
    fm_walk_older(w, c, at);
    bool same = !w->partial && w->frames.len == begin + 2 * n &&
                memcmp(w->frames.data + begin, w->frames.data + begin + n,
                       n * sizeof *w->frames.data) == 0 &&
                fm_remote_read(c->remote, above->at, bytes, c->layout->frame_size) == 0 &&
                memcmp(bytes, w->buffer.data + above->copies[1], c->layout->frame_size) == 0;
    w->frames.len = begin + (same ? n : 0);
    w->partial = false;
    return same;
}

/* Of a whole stack: frames that are met at another depth than before have no fixed place. */
static void note_depths(struct fm_walk *w, const struct fm_layout *l, fm_addr newest)
{
    uint32_t depth = (uint32_t)w->frames.len;
    for (struct fm_loose *loose = fm_walk_loose(w, newest); loose && depth--;) {
        loose->shared = loose->shared || (loose->met && loose->met != depth + 1);
        loose->met = depth + 1;
        loose = fm_walk_loose(w, fm_word(w->buffer.data + loose->copies[0], l->frame_previous));
    }
}

/* Is a stack still as it was copied, but for the end of its newest call? Frames of a recursion change their parts so regularly that
 * two copies may agree by chance: more of them, taken at other distances in time, rarely do. */
static bool is_unchanged(struct fm_walk *w, const struct fm_walk_context *c, fm_addr newest)
{
    const struct fm_layout *l = c->layout;
    struct fm_span spans[FM_WALK_MAX_LOOSE];
    const struct fm_loose *chain[FM_WALK_MAX_LOOSE];
    size_t begin = w->buffer.len;
    int n = 0;
    fm_vec_reserve(&w->buffer, begin + FM_WALK_MAX_LOOSE * (size_t)l->frame_size);
    for (fm_addr at = newest; n < (int)FM_WALK_MAX_LOOSE && (chain[n] = fm_walk_loose(w, at)); n++) {
        spans[n] = (struct fm_span){ at, w->buffer.data + begin + (size_t)n * l->frame_size, l->frame_size };
        at = fm_word(w->buffer.data + chain[n]->copies[0], l->frame_previous);
    }
    if (n && fm_remote_read_spans(c->remote, spans, n) < n)
        return false;
    for (int i = 0; i < n; i++) {
        const uint8_t *then = w->buffer.data + chain[i]->copies[0], *now = spans[i].into;
        if (fm_word(then, l->frame_code) != fm_word(now, l->frame_code) ||
            fm_word(then, l->frame_previous) != fm_word(now, l->frame_previous) ||
            (i && !fm_stack_frame_executes(l, now)))
            return false;
    }
    return true;
}

/* From the newest frame down. False if something disagrees, or a frame is not in the plan. */
static bool descend(struct fm_walk *w, struct fm_walk_context *c, fm_addr newest, bool *ret_unknown)
{
    fm_addr at = newest;
    bool shared = false;
    const struct fm_loose *above = NULL;
    uint32_t callee = FM_NO_CODE;
    w->frames.len = 0;
    for (uint32_t n = 0; at; n++) {
        struct fm_loose *loose = fm_walk_loose(w, at);
        struct both x;
        if (!loose) {
            *ret_unknown = n + 1 < FM_WALK_MAX_LOOSE;
            return above && !*ret_unknown && push_older(w, c, above, at);
        }
        if (n > FM_WALK_MAX_LOOSE || !view(w, c, loose, &x) || !may_stand(c, &x, n == 0))
            return false;
        if (callee != FM_NO_CODE && !find_site(w, &x, callee))
            return false;
        loose->idle = 0;
        shared = shared || (n && (x.shared || x.f.number == callee));
        fm_walk_push(w, c, &x.f);
        callee = x.f.number;
        at = x.f.previous;
        above = loose;
    }
    note_depths(w, c->layout, newest);
    return !shared || (is_unchanged(w, c, newest) && is_unchanged(w, c, newest));
}

/* The stack whose newest frame is not in the plan, read one by one. It counts if all of it is the same in a second
 * reading, all at once, and its newest frame is still the newest: then that was so when the thread state was copied. */
static bool read_now(struct fm_walk *w, struct fm_walk_context *c, fm_addr newest)
{
    const struct fm_layout *l = c->layout;
    uint8_t bytes[FM_FRAME_MAX_BYTES], again[NOW_FRAMES][FM_FRAME_MAX_BYTES];
    struct fm_frame_view chain[NOW_FRAMES], f;
    struct fm_span spans[NOW_FRAMES + 1];
    fm_addr at = newest, still = 0;
    int n = 0;
    for (; at; at = chain[n++].previous) {
        if (n == NOW_FRAMES || (at & 7) || l->frame_size > sizeof bytes ||
            fm_remote_read(c->remote, at, bytes, l->frame_size) < 0 ||
            !fm_walk_decode(c, bytes, &chain[n]) || !fm_stack_frame_executes(l, bytes))
            return false;
        spans[n] = (struct fm_span){ at, again[n], l->frame_size };
    }
    spans[n] = (struct fm_span){ w->thread + l->thread_frame, &still, sizeof still };
    if (!n || fm_remote_read_spans(c->remote, spans, n + 1) < n + 1 || still != newest)
        return false;
    for (int i = 0; i < n; i++) {
        fm_walk_decode(c, again[i], &f);
        if (f.code_at != chain[i].code_at || f.previous != chain[i].previous ||
            (i && f.instr != chain[i].instr) || !fm_stack_frame_executes(l, again[i]))
            return false;
    }
    w->frames.len = 0;
    for (int i = 0; i < n; i++) {
        /* Frames of a recursion change their parts so quickly that two readings may agree by chance. */
        if (!fm_walk_identify(c, &chain[i]) || recurs(w, chain[i].number))
            return false;
        fm_walk_push(w, c, &chain[i]);
    }
    for (int i = 0; i < n; i++)
        note_frame(w, spans[i].at, (uint32_t)(n - 1 - i));
    return true;
}

/* The frame that the one at `below` certainly called; NULL if there is none, or more than one. */
static struct fm_loose *certain_callee(struct fm_walk *w, const struct fm_walk_context *c, fm_addr below,
                                       struct both *ret)
{
    struct fm_loose *found = NULL;
    for (size_t i = 0; i < w->loose.len; i++) {
        struct both x;
        if (fm_word(w->buffer.data + w->loose.data[i].copies[0], c->layout->frame_previous) != below ||
            !view(w, c, &w->loose.data[i], &x) || x.executed < 2 || x.f.previous != below)
            continue;
        if (!below && c->codes->list.data[x.f.number].code.flags & CO_GENERATORS)
            continue;
        if (found)
            return NULL;
        found = &w->loose.data[i];
        *ret = x;
    }
    return found;
}

/* What is certain, from the oldest frame up: these frames executed before and after. */
static void keep_older(struct fm_walk *w, const struct fm_walk_context *c)
{
    fm_addr below = 0;
    struct fm_loose *loose;
    struct both x;
    w->frames.len = 0;
    w->partial = true;
    while (w->frames.len < w->loose.len && (loose = certain_callee(w, c, below, &x))) {
        loose->idle = 0;
        fm_walk_push(w, c, &x.f);
        below = loose->at;
        if (!x.steady || x.shared)
            break; /* what it called may have changed, or it may have called more than once */
    }
    fm_walk_reverse(w);
}

enum fm_walk_result fm_walk_heap(struct fm_walk *w, struct fm_walk_context *c)
{
    const struct fm_layout *l = c->layout;
    if (fm_walk_is_cold(w, c))
        copy(w, c);
    enum fm_walk_result result = copy(w, c);
    w->frames.len = 0;
    w->partial = result != FM_WALK_OK;
    if (result != FM_WALK_OK)
        return result == FM_WALK_AGAIN && c->last_try ? FM_WALK_OK : result;
    if (!fm_walk_is_same(w, l, w->buffer.data + w->head))
        return FM_WALK_GONE;
    fm_addr newest = fm_word(w->buffer.data + w->head, l->thread_frame);
    if (!newest)
        return FM_WALK_OK;
    bool unknown = false;
    age(w, l);
    if (descend(w, c, newest, &unknown) || (unknown && read_now(w, c, newest)))
        return FM_WALK_OK;
    keep_older(w, c);
    if (unknown && learn(w, c) == FM_WALK_GONE)
        return FM_WALK_GONE;
    return unknown && !w->frames.len && !c->last_try ? FM_WALK_AGAIN : FM_WALK_OK;
}
