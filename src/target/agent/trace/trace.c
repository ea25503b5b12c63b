/* The trace collector: what is not simple; see trace.h. */
#include "target/agent/trace/trace.h"

#include <errno.h>

#include "target/agent/functions.h"
#include "target/agent/hooks/hooks.h"
#include "target/agent/threads.h"
#include "target/agent/trace/choose_calls.h"
#include "target/agent/trace/collections.h"
#include "target/agent/trace/imports.h"
#include "target/agent/trace/late.h"
#include "target/agent/trace/marks.h"
#include "target/agent/trace/tasks.h"
#include "target/agent/trace/values.h"

#define NAME_TRIES 64  /* events at which a thread is asked for its name: it gets it late */
#define RETRY      256 /* events that are dropped between two looks for a free chunk */

bool fm_trace_active;
_Alignas(64) struct fm_trace_wait fm_trace_waiting[FM_TRACE_WAITING];
static struct fm_collector *traced;

struct fm_collector *fm_trace_collector(void)
{
    return traced;
}

static void copy_patterns(char *out, size_t size, const char *patterns)
{
    out[0] = '\0';
    if (patterns && strlen(patterns) < size)
        memcpy(out, patterns, strlen(patterns) + 1);
}

/* Ticks of a time, as far as a few milliseconds tell how long a tick is. */
static uint64_t ticks_of(uint64_t ns)
{
    struct fm_clock_pair first = fm_clock_pair_now(), second = first;
    while (ns && second.ns - first.ns < 2000000)
        second = fm_clock_pair_now();
    return ns ? (uint64_t)((double)ns * (double)(second.ticks - first.ticks) /
                           (double)(second.ns - first.ns))
              : 0;
}

void fm_trace_prepare(struct fm_collector *c, const struct fm_options *options)
{
    c->trace = options->trace;
    if (!c->trace)
        return;
    c->trace_drop = options->trace_drop;
    c->trace_exceptions = options->trace_exceptions;
    c->trace_late = options->trace_late;
    c->trace_depth = options->trace_depth;
    c->trace_min_ticks = ticks_of(options->trace_min_ns);
    c->ask = options->ask;
    if (c->ask.args[0] || c->ask.returns[0] || c->ask.watch[0])
        c->ask.second_ticks = ticks_of(1000000000);
    copy_patterns(c->trace_include, sizeof c->trace_include, options->trace_include);
    copy_patterns(c->trace_exclude, sizeof c->trace_exclude, options->trace_exclude);
}

void fm_trace_forget(void)
{
    memset(fm_trace_waiting, 0, sizeof fm_trace_waiting);
}

void fm_trace_starts(struct fm_collector *c)
{
    if (!c->trace_chunks.path[0])
        return; /* one that measures itself; others do not hear of it */
    traced = c;
    fm_trace_active = true;
    fm_trace_collections_watch(); /* before events come */
}

void fm_trace_stops(struct fm_collector *c)
{
    if (traced != c)
        return;
    fm_trace_collections_leave();
    fm_trace_active = false;
    traced = NULL;
}

static bool is_hidden(const struct fm_live_frame *frame)
{
    return frame->key & FM_TRACE_HIDDEN;
}

static struct fm_func *function_of(const struct fm_live_frame *frame)
{
    return (struct fm_func *)(uintptr_t)frame->func;
}

/* ---- chunks ------------------------------------------------------------------------------ */

/* What was written can no longer be taken back. */
static void hand_over(struct fm_collector *c, struct fm_agent_thread *t, bool last)
{
    for (struct fm_live_frame *frame = t->top; c->trace_min_ticks && frame > t->base; frame--)
        frame->node = 0;
    fm_trace_chunks_hand_over(&c->trace_chunks, &t->trace, last);
}

/* Chunks that other threads have begun, and may not go on with for long, are handed over for them. */
static void take_from_others(struct fm_collector *c, const struct fm_agent_thread *self)
{
    fm_threads_lock();
    for (struct fm_agent_thread *t = c->threads; t; t = t->next)
        if (t != self)
            hand_over(c, t, false);
    fm_threads_unlock();
}

/* A chunk for the thread, waited for if that is wanted. How long is told in the chunk. */
static bool take_chunk(struct fm_collector *c, struct fm_agent_thread *t)
{
    struct fm_trace_chunks *chunks = &c->trace_chunks;
    if (fm_trace_chunks_take(chunks, &t->trace))
        return true;
    uint64_t since = fm_clock_ticks();
    if (!fm_trace_chunks_any_full(chunks))
        take_from_others(c, t);
    while (!fm_trace_chunks_take(chunks, &t->trace))
        if (chunks->header->drops || chunks->given_up || !fm_trace_chunks_wait(chunks)) {
            fm_trace_nobody_listens(c);
            return false;
        }
    uint64_t now = fm_clock_ticks(), waited = fm_elapsed(since, now);
    chunks->header->waited_ticks += waited;
    fm_trace_put_escape(&t->trace, now, FM_TRACE_WAITED,
                        (uint32_t[]){ (uint32_t)waited, (uint32_t)(waited >> 32) }, 2);
    return true;
}

static bool next_chunk(struct fm_collector *c, struct fm_agent_thread *t)
{
    hand_over(c, t, false);
    return take_chunk(c, t);
}

static void put_open(struct fm_trace_writer *w, uint64_t now, const struct fm_func *f,
                     uint64_t since)
{
    fm_trace_put_escape(w, now, FM_TRACE_OPEN,
                        (uint32_t[]){ f->id, (uint32_t)since, (uint32_t)(since >> 32) }, 3);
}

static void put_lost(struct fm_trace_writer *w)
{
    uint64_t now = fm_clock_ticks(), from = w->lost_from;
    fm_trace_put_escape(w, now, FM_TRACE_LOST,
                        (uint32_t[]){ (uint32_t)w->lost, (uint32_t)(w->lost >> 32), (uint32_t)from,
                                      (uint32_t)(from >> 32), (uint32_t)now,
                                      (uint32_t)(now >> 32) },
                        6);
    w->lost = 0;
    w->lost_from = now;
    if (w->untold)
        *w->untold = (struct fm_trace_untold){ 0 };
    w->untold = NULL;
}

/* What was lost, and the calls that are open, so that readers know where the thread is. */
static bool tell_again(struct fm_collector *c, struct fm_agent_thread *t)
{
    struct fm_trace_writer *w = &t->trace;
    if (w->must_tell)
        put_lost(w);
    for (struct fm_live_frame *frame = t->base + 1; frame <= t->top; frame++) {
        if (is_hidden(frame) || !frame->func)
            continue;
        if (w->cursor >= w->end && !next_chunk(c, t))
            return false;
        /* It began, or was found, then; after a loss readers are beyond that already. */
        put_open(w, frame->enter_ticks, function_of(frame), frame->enter_ticks);
    }
    w->must_tell = w->must_tell_open = false;
    return w->cursor < w->end || next_chunk(c, t);
}

/* A place in the header for what the thread loses until it can tell; NULL if there is none. */
static struct fm_trace_untold *find_untold(struct fm_trace_header *header,
                                           const struct fm_trace_writer *w)
{
    for (unsigned i = 0; i < FM_TRACE_UNTOLD; i++) {
        struct fm_trace_untold *place = &header->untold[i];
        if (place->thread)
            continue;
        place->tid = w->tid;
        place->thread = w->number;
        return place;
    }
    return NULL;
}

static bool lose(struct fm_collector *c, struct fm_trace_writer *w)
{
    struct fm_trace_header *header = c->trace_chunks.header;
    if (!w->must_tell)
        w->lost_from = w->last;
    if (!w->lost)
        w->untold = find_untold(header, w);
    w->must_tell = true;
    w->lost++;
    header->lost_events++;
    if (w->untold) {
        w->untold->ticks = fm_clock_ticks();
        w->untold->events = w->lost;
    }
    return false;
}

/* Until the thread has a name every event comes by here, to look for it. */
static void look_for_name(struct fm_agent_thread *t)
{
    struct fm_trace_writer *w = &t->trace;
    if (w->told_name)
        return;
    fm_thread_learn_name(t);
    w->told_name = t->live->name[0] || ++w->name_tries >= NAME_TRIES;
}

bool fm_trace_room(struct fm_collector *c, struct fm_agent_thread *t)
{
    struct fm_trace_writer *w = &t->trace;
    if (w->cursor < w->room)
        return true;
    if (!c->trace_chunks.header)
        return false; /* there was no room for a trace at all */
    if (w->lost % RETRY)
        return lose(c, w);
    int saved_errno = errno;
    look_for_name(t);
    bool ok = w->cursor < w->end || next_chunk(c, t);
    if (ok && (w->must_tell || w->must_tell_open))
        ok = tell_again(c, t);
    errno = saved_errno;
    if (!ok)
        return lose(c, w);
    w->room = w->told_name ? w->end : w->cursor;
    return true;
}

/* ---- calls begin ------------------------------------------------------------------------- */

static void push(struct fm_agent_thread *t, const struct fm_func *f, uintptr_t key, const void *at,
                 uint64_t now)
{
    *++t->top = (struct fm_live_frame){
        .node = (uintptr_t)at, .key = key, .enter_ticks = now, .func = (uintptr_t)f
    };
}

/* Units that a generator had waited, before it goes on. */
static void put_waited(struct fm_trace_writer *w, uint64_t now, uint64_t units)
{
    if (units > UINT16_MAX) {
        fm_trace_put_escape(w, now, FM_TRACE_RESUMED_AFTER,
                            (uint32_t[]){ (uint32_t)units, (uint32_t)(units >> 32) },
                            units > UINT32_MAX ? 2 : 1);
        return;
    }
    /* The short form, three words: as a number of 32 bits would be, one less. */
    uint16_t word = (uint16_t)((fm_trace_advance(w, now) + 1) << 2 | FM_TRACE_ESCAPE);
    fm_trace_put16(w->cursor + 2, FM_TRACE_RESUMED_AFTER | 1 << 8);
    fm_trace_put16(w->cursor + 4, (uint16_t)units);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    fm_trace_put16(w->cursor, word);
    w->cursor += 6;
}

static void put_call(struct fm_trace_writer *w, uint64_t now, uint32_t id, bool resumed)
{
    uint32_t word = (uint32_t)(fm_trace_advance(w, now) + 1) << 2 | FM_TRACE_CALL;
    uint32_t flag = resumed ? FM_TRACE_RESUME : 0;
    uint8_t *at = w->cursor;
    bool wide = id >= FM_TRACE_WIDE_FUNCTION;
    if (wide)
        fm_trace_put32(at + 4, id);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    fm_trace_put32(at, word | ((wide ? FM_TRACE_WIDE_FUNCTION : id) | flag) << 16);
    w->cursor = at + (wide ? 8 : 4);
}

/* How long had the generator waited? Its pause ends. */
static uint64_t end_pause(struct fm_collector *c, const struct fm_func *f, const void *frame,
                          uint64_t now)
{
    struct fm_trace_wait *wait = fm_trace_wait_of(frame);
    struct fm_pause *pause = wait->frame == frame ? NULL : fm_pause_find(c, frame);
    uint64_t since = wait->frame == frame ? wait->since : pause ? pause->since_ticks : 0;
    bool same = pause ? pause->func == (uintptr_t)f : wait->func == f;
    *(pause ? &pause->since_ticks : &wait->since) = 0;
    return since && same ? fm_elapsed(since, now) >> FM_TRACE_SHIFT : 0;
}

static void put_begin(struct fm_collector *c, struct fm_agent_thread *t, struct fm_func *f,
                      uintptr_t key, const void *frame, enum fm_trace_begin how)
{
    struct fm_trace_writer *w = &t->trace;
    uint64_t now = how == FM_TRACE_WENT_ON ? w->last : fm_clock_ticks();
    uint64_t waited = how == FM_TRACE_CALLED ? 0 : end_pause(c, f, frame, now);
    fm_trace_settle(w, now); /* what may be taken back begins behind it */
    const uint8_t *at = w->cursor;
    if (waited)
        put_waited(w, now, waited);
    if (how == FM_TRACE_THROWN || how == FM_TRACE_WENT_ON)
        fm_trace_put_escape(w, now, FM_TRACE_THROW, &f->id, 1);
    else
        put_call(w, now, f->id, how == FM_TRACE_RESUMED);
    push(t, f, key, at, w->last);
}

/* Is the call told? */
static bool begin_call(struct fm_collector *c, struct fm_agent_thread *t, struct fm_func *f,
                       const void *key, const void *frame, enum fm_trace_begin how, bool shown)
{
    uintptr_t tagged = (uintptr_t)key;
    if (f->asked && (f->asked->results || f->asked->imports))
        tagged |= FM_TRACE_TELLS;
    if (f->trace_role)
        tagged |= fm_trace_task_enters(c, t, f, frame, how);
    if (t->top + 1 >= t->limit && !fm_thread_grow(c, t))
        return false;
    if (!shown || t->top >= t->trace.deepest) {
        push(t, f, tagged | FM_TRACE_HIDDEN, NULL, fm_clock_ticks());
    } else if (fm_trace_room(c, t)) {
        put_begin(c, t, f, tagged, frame, how);
        return true;
    } else {
        push(t, f, tagged, NULL, fm_clock_ticks());
    }
    return false;
}

/* If that cannot be, its variables are not told. */
static void listen_to_lines(struct fm_collector *c, PyCodeObject *code)
{
    struct fm_raised raised = fm_python_put_aside();
    if (fm_hooks_mark(c, code) < 0)
        PyErr_Clear();
    fm_python_put_back(raised);
}

/* A call begins of which something is asked. Its arguments come first: repr() may run anything. */
static __attribute__((noinline)) void begin_asked(struct fm_collector *c, struct fm_agent_thread *t,
                                                  struct fm_func *f, PyCodeObject *code,
                                                  const void *frame, bool shown)
{
    struct fm_trace_arguments arguments;
    if (f->asked->watches && c == traced)
        listen_to_lines(c, code);
    fm_trace_arguments_look(c, f, code, frame, &arguments);
    PyObject *first = f->asked->imports ? fm_trace_variable(code, frame, 0) : NULL;
    if (!c->running || !begin_call(c, t, f, code, frame, FM_TRACE_CALLED, shown))
        return;
    fm_trace_arguments_tell(c, t, f, code, &arguments);
    if (f->asked->imports)
        fm_trace_import_begins(c, t, first);
}

void fm_trace_enter(struct fm_collector *c, struct fm_agent_thread *t, struct fm_func *f,
                    const void *key, const void *frame, enum fm_trace_begin how)
{
    bool shown = fm_trace_is_shown(c, f, key); /* first: it may run the program's code, on 3.11 */
    if (__builtin_expect(t->trace.must_find, 0))
        fm_trace_find_open(c, t, key, false);
    if (f->asked && frame && how == FM_TRACE_CALLED)
        begin_asked(c, t, f, (PyCodeObject *)key, frame, shown);
    else
        begin_call(c, t, f, key, frame, how, shown);
}

void fm_trace_reopen(struct fm_collector *c, struct fm_agent_thread *t, struct fm_func *f,
                     const void *key)
{
    const void *plain = (const void *)((uintptr_t)key & ~(uintptr_t)FM_TRACE_TAGS);
    bool shown = fm_trace_is_shown(c, f, plain);
    if (t->top + 1 >= t->limit && !fm_thread_grow(c, t))
        return;
    if (!shown || t->top >= t->trace.deepest) {
        push(t, f, (uintptr_t)plain | FM_TRACE_HIDDEN, NULL, fm_clock_ticks());
        return;
    }
    uint64_t now = fm_clock_ticks();
    if (fm_trace_room(c, t))
        put_open(&t->trace, now, f, now);
    push(t, f, (uintptr_t)plain, NULL, now);
}

void fm_trace_push_open(struct fm_collector *c, struct fm_agent_thread *t, struct fm_func *f,
                        const void *key, bool own)
{
    bool shown = !own && fm_trace_is_shown(c, f, key);
    if (t->top + 1 >= t->limit && !fm_thread_grow(c, t))
        return;
    uintptr_t hidden = shown && t->top < t->trace.deepest ? 0 : FM_TRACE_HIDDEN;
    push(t, f, (uintptr_t)key | hidden, NULL, fm_clock_ticks());
    if (own && !t->trace.own_above) { /* nothing that it calls is the program's */
        t->trace.own_above = true;
        t->trace.deepest = t->top;
    }
}

/* ---- calls end --------------------------------------------------------------------------- */

/* The length of the records by which a call begins, there being nothing behind them; 0 if not. Their
 * units are added to `*units`. */
static size_t length_of_begin(const uint8_t *at, size_t most, uint64_t *units)
{
    uint16_t word, next;
    if (most < 4)
        return 0;
    memcpy(&word, at, sizeof word);
    memcpy(&next, at + 2, sizeof next);
    *units += (uint64_t)(word >> 2) - 1;
    size_t payload = (size_t)(next >> 8) * 2;
    switch (word & 3) {
    case FM_TRACE_CALL:
        return (next & FM_TRACE_WIDE_FUNCTION) == FM_TRACE_WIDE_FUNCTION ? 8 : 4;
    case FM_TRACE_ESCAPE:
        if ((next & 0xff) == FM_TRACE_THROW)
            return 4 + payload;
        if ((next & 0xff) == FM_TRACE_RESUMED_AFTER && most > 4 + payload)
            return 4 + payload + length_of_begin(at + 4 + payload, most - 4 - payload, units);
        return 0;
    default:
        return 0;
    }
}

/* Take back the call, which was too short, if nothing came after its begin. What it called was shorter
 * and has been taken back, but for calls across the border of a chunk, and marks: these keep it. */
static bool take_back(struct fm_trace_writer *w, const struct fm_live_frame *frame)
{
    uint8_t *at = (uint8_t *)(uintptr_t)frame->node;
    if (!at || at < w->begin || at >= w->cursor)
        return false;
    uint64_t units = 0;
    uint8_t *behind = at + length_of_begin(at, (size_t)(w->cursor - at), &units);
    bool time_follows = w->after_time == w->cursor && behind + FM_TRACE_TIME_BYTES == w->cursor;
    if (behind == at || (behind != w->cursor && !time_follows))
        return false;
    memset(at, 0, (size_t)(w->cursor - at));
    w->last = frame->enter_ticks - (units << FM_TRACE_SHIFT);
    w->cursor = at;
    if (w->after_time > at)
        w->after_time = NULL;
    return true;
}

static void put_end(struct fm_trace_writer *w, uint64_t now, enum fm_trace_end how)
{
    if (how == FM_TRACE_UNWOUND) {
        fm_trace_put_escape(w, now, FM_TRACE_UNWIND, NULL, 0);
        return;
    }
    uint16_t op = how == FM_TRACE_YIELDED ? FM_TRACE_YIELD : FM_TRACE_RETURN;
    uint16_t word = (uint16_t)((fm_trace_advance(w, now) + 1) << 2 | op);
    fm_trace_put16(w->cursor, word);
    w->cursor += 2;
}

/* Calls above `frame` ended without telling. */
static void close_above(struct fm_collector *c, struct fm_agent_thread *t,
                        const struct fm_live_frame *frame, uint64_t now)
{
    uint32_t shown = 0;
    for (const struct fm_live_frame *each = t->top; each > frame; each--)
        shown += !is_hidden(each) && each->func;
    if (c->store.header)
        c->store.header->lost[FM_LIVE_LOST_EVENTS] += (uint64_t)(t->top - frame);
    if (shown && fm_trace_room(c, t))
        fm_trace_put_escape(&t->trace, now, FM_TRACE_CLOSE, &shown, 1);
    t->top = t->base + (frame - t->base);
}

/* Make the call that is named the innermost one; false if it is not open. */
static bool find_call(struct fm_collector *c, struct fm_agent_thread *t, const void *key,
                      uint64_t now)
{
    const struct fm_live_frame *frame = t->top;
    while (frame > t->base && (frame->key & ~(uint64_t)FM_TRACE_TAGS) != (uintptr_t)key)
        frame--;
    if (frame == t->base) {
        if (t->top > t->base && c->store.header && !c->trace_late) /* C that was open nobody saw */
            c->store.header->lost[FM_LIVE_LOST_EVENTS]++; /* else entered before recording began */
        return false;
    }
    if (frame < t->top)
        close_above(c, t, frame, now);
    return true;
}

/* Whoever waited in that place goes to the table. */
static void begin_pause(struct fm_collector *c, const struct fm_live_frame *frame,
                        const void *generator, uint64_t now)
{
    struct fm_trace_wait *wait = fm_trace_wait_of(generator);
    struct fm_pause *pause =
        wait->since && wait->frame != generator ? fm_pause_find_or_make(c, wait->frame) : NULL;
    if (pause) {
        pause->func = (uintptr_t)wait->func;
        pause->since_ticks = wait->since;
    }
    *wait = (struct fm_trace_wait){ .frame = generator, .func = function_of(frame), .since = now };
}

/* The innermost call ends. */
static void end_call(struct fm_collector *c, struct fm_agent_thread *t, const void *frame,
                     uint64_t now, enum fm_trace_end how)
{
    bool room = fm_trace_room(c, t); /* which tells of this call, too */
    struct fm_live_frame *top = t->top;
    if (how == FM_TRACE_YIELDED)
        begin_pause(c, top, frame, now);
    bool brief = fm_elapsed(top->enter_ticks, now) < c->trace_min_ticks;
    if (room && !(brief && take_back(&t->trace, top)))
        put_end(&t->trace, now, how);
}

static void tell_end(struct fm_collector *c, struct fm_agent_thread *t, const struct fm_func *f,
                     uint64_t now, enum fm_trace_end how, PyObject *value)
{
    if (f->asked && f->asked->results)
        fm_trace_result_tell(c, t, f, value, now, how);
    if (f->asked && f->asked->imports)
        fm_trace_import_ends(c, t, now);
}

void fm_trace_leave(struct fm_collector *c, struct fm_agent_thread *t, const void *key,
                    const void *frame, uint64_t now, enum fm_trace_end how, PyObject *value)
{
    if (__builtin_expect(t->trace.must_find, 0))
        fm_trace_find_open(c, t, NULL, false);
    if (t->beyond) { /* one that has no frame, see fm_thread_grow() */
        if (--t->beyond == 0)
            t->top--;
        return;
    }
    if ((t->top->key & ~(uint64_t)FM_TRACE_TAGS) != (uintptr_t)key && !find_call(c, t, key, now))
        return;
    const struct fm_func *f = function_of(t->top);
    bool step = t->top->key & FM_TRACE_STEP;
    if ((t->top->key & (FM_TRACE_TELLS | FM_TRACE_HIDDEN)) == FM_TRACE_TELLS)
        tell_end(c, t, f, now, how, value);
    if (!is_hidden(t->top))
        end_call(c, t, frame, now, how);
    t->top--;
    if (__builtin_expect(t->trace.own_above && t->top < t->trace.deepest, 0)) {
        t->trace.own_above = false;
        fm_trace_stack_moved(c, t);
    }
    if (step)
        fm_trace_task_leaves(c, t, f, value, how);
}

/* ---- marks, threads ---------------------------------------------------------------------- */

void fm_trace_mark(struct fm_collector *c, struct fm_agent_thread *t, enum fm_trace_escape kind,
                   const uint32_t *numbers, unsigned count)
{
    if (__builtin_expect(t->trace.must_find, 0)) {
        fm_trace_find_open(c, t, NULL, kind == FM_TRACE_REGION_BEGIN);
        if (kind == FM_TRACE_REGION_END || kind == FM_TRACE_GC_END)
            return; /* of what is not open any more */
    }
    if (fm_trace_room(c, t))
        fm_trace_put_escape(&t->trace, fm_clock_ticks(), kind, numbers, count);
}

void fm_trace_mark_value(struct fm_collector *c, struct fm_agent_thread *t, uint64_t at,
                         uint32_t name, enum fm_trace_value_of of, uint32_t token, const char *text,
                         size_t len)
{
    if (fm_trace_room(c, t))
        fm_trace_put_value(&t->trace, at, name, of, token, text, len);
}

void fm_trace_stack_moved(struct fm_collector *c, struct fm_agent_thread *t)
{
    struct fm_live_frame *deepest = t->limit - 1;
    if (c->trace_depth && c->trace_depth < (uint64_t)(deepest - t->base))
        deepest = t->base + c->trace_depth;
    t->trace.deepest = deepest;
}

void fm_trace_thread_begins(struct fm_collector *c, struct fm_agent_thread *t, uint32_t id)
{
    t->trace = (struct fm_trace_writer){ .number = id + 1,
                                         .tid = t->live->tid,
                                         .must_find = c->trace_late };
    if (c->trace)
        fm_trace_stack_moved(c, t);
}

static void close_all(struct fm_agent_thread *t, uint64_t now)
{
    struct fm_trace_writer *w = &t->trace;
    uint32_t open = 0;
    for (const struct fm_live_frame *frame = t->top; frame > t->base; frame--)
        open += !is_hidden(frame) && frame->func;
    if (open && w->cursor < w->end && !w->must_tell_open)
        fm_trace_put_escape(w, now, FM_TRACE_CLOSE, &open, 1);
}

void fm_trace_thread_rests(struct fm_collector *c, struct fm_agent_thread *t, uint64_t now)
{
    struct fm_trace_writer *w = &t->trace;
    if (!c->trace_chunks.header)
        return;
    uint32_t nobody = 0;
    if (w->task && w->cursor < w->end)
        fm_trace_put_escape(w, now, FM_TRACE_TASK_STEP, &nobody, 1);
    w->task = NULL;
    close_all(t, now);
    w->must_tell_open = false;
    hand_over(c, t, false);
}

void fm_trace_thread_ends(struct fm_collector *c, struct fm_agent_thread *t, uint64_t now)
{
    if (!c->trace_chunks.header)
        return;
    close_all(t, now);
    hand_over(c, t, true);
}
