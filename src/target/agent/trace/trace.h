/*
 * The trace collector: every call that begins or ends, told as words in chunks of shared memory
 * (record/capture/live_trace.h), which the launcher empties.
 *
 * It is a mode of the collector (collector.h) and uses its threads, functions and store, but keeps no
 * tree: of the calls only those that are open, in the same stacks. A frame of the stack has, in trace
 * mode, in `node` where its record begins in the chunk, or 0.
 *
 * Hidden calls. A call that is not to be in the trace (too deep, excluded, or without a definition
 * because the store is full) is pushed with its key | 1. No event names such a key, so its end goes the
 * slow way, and calls that are shown need no test.
 *
 * There is one trace in a process, and its collector has FM_TRACE_SLOT: known when this is compiled, it
 * spares the hot path two loads.
 *
 * Threads: the GIL, unless it says otherwise.
 */
#ifndef FM_AGENT_TRACE_H
#define FM_AGENT_TRACE_H

#include "target/agent/collector.h"

#define FM_TRACE_SLOT   0
#define FM_TRACE_HIDDEN 1u
#define FM_TRACE_STEP   2u /* the end concerns asyncio's tasks; see tasks.h */
#define FM_TRACE_TELLS  4u /* the end tells a value; see values.h */
#define FM_TRACE_TAGS   7u

/* How a call begins, and how it ends. WENT_ON: as thrown, but it did so at the time that was told last. */
enum fm_trace_begin {
    FM_TRACE_CALLED,
    FM_TRACE_RESUMED,
    FM_TRACE_THROWN,
    FM_TRACE_WENT_ON,
    FM_TRACE_OPENED
};
enum fm_trace_end { FM_TRACE_RETURNED, FM_TRACE_UNWOUND, FM_TRACE_YIELDED };

/* The collector of the trace of this process, or NULL. */
struct fm_collector *fm_trace_collector(void);

/* The collector's options, and its beginning and end. */
void fm_trace_prepare(struct fm_collector *c, const struct fm_options *options);
void fm_trace_starts(struct fm_collector *c);
void fm_trace_stops(struct fm_collector *c);
void fm_trace_forget(void); /* what waited did so in another store */

/* The slow ways, which are right in all cases. `key` names the call, `frame` the generator or, if that is at
 * hand, whatever runs in Python; `value` is what it returns or yields, if that is known. */
void fm_trace_enter(struct fm_collector *c, struct fm_agent_thread *t, struct fm_func *f,
                    const void *key, const void *frame, enum fm_trace_begin how);
void fm_trace_leave(struct fm_collector *c, struct fm_agent_thread *t, const void *key,
                    const void *frame, uint64_t now, enum fm_trace_end how, PyObject *value);

/* Is there room for a record? Takes another chunk, waits for one, or tells what was lost. False: the
 * event is lost, and has been counted. */
bool fm_trace_room(struct fm_collector *c, struct fm_agent_thread *t);

/* A mark in the thread's trace. */
void fm_trace_mark(struct fm_collector *c, struct fm_agent_thread *t, enum fm_trace_escape kind,
                   const uint32_t *numbers, unsigned count);

/* A value in it, of the time `at`; with the token of OF_TOKEN, else 0. */
void fm_trace_mark_value(struct fm_collector *c, struct fm_agent_thread *t, uint64_t at,
                         uint32_t name, enum fm_trace_value_of of, uint32_t token, const char *text,
                         size_t len);

/* A call was open already when the thread came into the trace. */
void fm_trace_reopen(struct fm_collector *c, struct fm_agent_thread *t, struct fm_func *f,
                     const void *key);

/* A call was open already, and is to be told so with the others of its thread (late.h). `own`: it is Fathom's,
 * and hidden with all that it calls. */
void fm_trace_push_open(struct fm_collector *c, struct fm_agent_thread *t, struct fm_func *f,
                        const void *key, bool own);

/* The trace stops: all that is open in the thread ends there. The lock and the GIL. */
void fm_trace_thread_rests(struct fm_collector *c, struct fm_agent_thread *t, uint64_t now);

/* The thread's record is a new thread's: it writes its own trace. Also when its stack has grown. */
void fm_trace_thread_begins(struct fm_collector *c, struct fm_agent_thread *t, uint32_t id);
void fm_trace_stack_moved(struct fm_collector *c, struct fm_agent_thread *t);

/* The thread writes no more; its open calls end with it. The lock, not the GIL. */
void fm_trace_thread_ends(struct fm_collector *c, struct fm_agent_thread *t, uint64_t now);

/* Generators that wait, the latest of those that share a place; others are in the collector's table. */
#define FM_TRACE_WAITING 1024u /* a power of two */

/* A power of two of bytes: found by a shift, and in one cache line. */
struct fm_trace_wait {
    const void *frame;
    const struct fm_func *func;
    uint64_t since; /* ticks; 0: nobody waits */
    uint64_t unused;
};

extern struct fm_trace_wait fm_trace_waiting[FM_TRACE_WAITING]
    __attribute__((visibility("hidden")));

static inline struct fm_trace_wait *fm_trace_wait_of(const void *frame)
{
    uintptr_t bits = (uintptr_t)frame;
    return &fm_trace_waiting[(bits >> 4 ^ bits >> 12) & (FM_TRACE_WAITING - 1)];
}

/* Begin a call of a function that has a word, if that is simple: there is room, and the time since the last word
 * fits. Else nothing has happened. */
static inline bool fm_trace_call(struct fm_agent_thread *t, const struct fm_func *f, uint32_t word,
                                 const void *key)
{
    struct fm_trace_writer *w = &t->trace;
    uint8_t *at = w->cursor;
    if (__builtin_expect(at >= w->room || t->top >= w->deepest, 0))
        return false;
    uint64_t units = fm_trace_units(w, fm_clock_ticks());
    if (__builtin_expect(units > FM_TRACE_TIME_MAX, 0))
        return false;
    fm_trace_put32(at, word + ((uint32_t)(units + 1) << 2));
    fm_trace_ask_ahead(at);
    w->cursor = at + 4;
    w->last += units << FM_TRACE_SHIFT;
    struct fm_live_frame *frame = ++t->top;
    frame->node = (uintptr_t)at;
    frame->key = (uintptr_t)key;
    frame->enter_ticks = w->last;
    frame->func = (uintptr_t)f;
    return true;
}

/* End the innermost call, if that is simple. */
static inline bool fm_trace_return(struct fm_agent_thread *t, const void *key, uint64_t now)
{
    struct fm_trace_writer *w = &t->trace;
    uint8_t *at = w->cursor;
    uint64_t units = fm_trace_units(w, now);
    if (__builtin_expect(
            at >= w->room || t->top->key != (uintptr_t)key || units > FM_TRACE_TIME_MAX, 0))
        return false;
    fm_trace_put16(at, (uint16_t)((units + 1) << 2 | FM_TRACE_RETURN));
    w->cursor = at + 2;
    w->last += units << FM_TRACE_SHIFT;
    t->top--;
    return true;
}

/* A mark with one number, if that is simple: there is room, and the time since the last word fits. */
static inline bool fm_trace_mark_simply(struct fm_agent_thread *t, enum fm_trace_escape kind,
                                        uint32_t number, uint64_t now)
{
    struct fm_trace_writer *w = &t->trace;
    uint8_t *at = w->cursor;
    uint64_t units = fm_trace_units(w, now);
    if (__builtin_expect(at >= w->room || units > FM_TRACE_TIME_MAX, 0))
        return false;
    uint64_t words = (units + 1) << 2 | FM_TRACE_ESCAPE | (uint64_t)(kind | 2u << 8) << 16 |
                     (uint64_t)number << 32;
    memcpy(at, &words, sizeof words);
    w->cursor = at + sizeof words;
    w->last += units << FM_TRACE_SHIFT;
    return true;
}

/* A generator goes on, if that is simple: two records, RESUMED_AFTER of one word and CALL. */
static inline bool fm_trace_resume(struct fm_agent_thread *t, const struct fm_func *f,
                                   uint32_t word, const void *key, const void *generator)
{
    struct fm_trace_writer *w = &t->trace;
    struct fm_trace_wait *wait = fm_trace_wait_of(generator);
    uint8_t *at = w->cursor;
    if (__builtin_expect(at >= w->room || t->top >= w->deepest || wait->frame != generator ||
                             wait->func != f,
                         0))
        return false;
    uint64_t now = fm_clock_ticks(), units = fm_trace_units(w, now);
    uint64_t waited = (now - wait->since) >> FM_TRACE_SHIFT;
    if (__builtin_expect(units > FM_TRACE_TIME_MAX || waited - 1 >= UINT16_MAX || !wait->since, 0))
        return false;
    wait->since = 0;
    uint64_t words = (units + 1) << 2 | FM_TRACE_ESCAPE |
                     (uint64_t)(FM_TRACE_RESUMED_AFTER | 1 << 8) << 16 | waited << 32 |
                     (uint64_t)(1 << 2 | FM_TRACE_CALL) << 48;
    fm_trace_put16(at + 8, (uint16_t)(word >> 16 | FM_TRACE_RESUME));
    __atomic_signal_fence(__ATOMIC_RELEASE);
    memcpy(at, &words, sizeof words);
    fm_trace_ask_ahead(at);
    w->cursor = at + 10;
    w->last += units << FM_TRACE_SHIFT;
    *++t->top = (struct fm_live_frame){
        .node = (uintptr_t)at, .key = (uintptr_t)key, .enter_ticks = w->last, .func = (uintptr_t)f
    };
    return true;
}

/* A generator gives up control, if that is simple. */
static inline bool fm_trace_yield(struct fm_agent_thread *t, const void *key, const void *generator,
                                  uint64_t now)
{
    struct fm_trace_writer *w = &t->trace;
    struct fm_trace_wait *wait = fm_trace_wait_of(generator);
    uint8_t *at = w->cursor;
    uint64_t units = fm_trace_units(w, now);
    if (__builtin_expect(at >= w->room || t->top->key != (uintptr_t)key ||
                             units > FM_TRACE_TIME_MAX || (wait->since && wait->frame != generator),
                         0))
        return false;
    wait->frame = generator;
    wait->func = (const struct fm_func *)(uintptr_t)t->top->func;
    wait->since = now;
    fm_trace_put16(at, (uint16_t)((units + 1) << 2 | FM_TRACE_YIELD));
    w->cursor = at + 2;
    w->last += units << FM_TRACE_SHIFT;
    t->top--;
    return true;
}

#endif
