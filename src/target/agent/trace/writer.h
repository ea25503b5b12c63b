/*
 * What a thread keeps to write its trace, and the words themselves (record/capture/live_trace.h).
 *
 * The writer puts words at `cursor` as long as that is below `room`. Whatever asks for more than a
 * store of four bytes moves `room` down, so that the hot path has one comparison for all of it: a chunk
 * that is full, none at all, a thread whose name is not known yet.
 *
 * Threads: a writer is its thread's, with the GIL; another thread touches it with the GIL and the lock
 * of threads.h, and so does, without the GIL, its own when it ends or forks.
 */
#ifndef FM_AGENT_TRACE_WRITER_H
#define FM_AGENT_TRACE_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "record/capture/live.h"
#include "record/capture/live_trace.h"

/* The unit of time: 2 to 4 ns with the counters of x86, whose words reach 30 to 60 µs. Counters of
 * other machines are slow enough. */
#if defined(__x86_64__)
#define FM_TRACE_SHIFT 3u
#else
#define FM_TRACE_SHIFT 0u
#endif

#define FM_TRACE_TIME_BYTES 12u
#define FM_TRACE_MARGIN     256u /* bytes: whatever is written at once fits, with a TIME before it */

struct fm_trace_writer {
    uint8_t *cursor, *room;
    uint64_t last; /* ticks: the time that readers have reached */
    /* A call on top of this frame goes the slow way: the stack ends, or the depth that is wanted. */
    struct fm_live_frame *deepest;
    /* What the hot path does not touch. */
    struct fm_trace_chunk *chunk; /* that it fills, or NULL */
    uint8_t *begin, *end;         /* of the chunk; a record begins below `end` */
    uint8_t *after_time;          /* behind the last TIME in the chunk, or NULL */
    uint64_t sequence;
    uint64_t lost, lost_from; /* events that were dropped since the last LOST, and from when on */
    struct fm_trace_untold *untold; /* where these are counted, or NULL */
    bool must_find;                 /* what is open has to be found first; see late.h */
    bool own_above;                 /* what runs above `deepest` is Fathom's own script */
    bool must_tell_open;            /* … and is to be told, outermost first */
    bool must_tell; /* readers do not know the stack: LOST comes first, then all of it */
    bool told_name;
    uint8_t name_tries;
    uint32_t number, tid;
    struct fm_agent_task *task; /* that runs on the thread, or NULL; see tasks.h */
};

static inline void fm_trace_put32(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, sizeof value);
}

static inline void fm_trace_put16(uint8_t *at, uint16_t value)
{
    memcpy(at, &value, sizeof value);
}

/* The launcher has cleared the chunk, so its lines are in another processor's cache: ask for the next one before it is
 * written to. Within the chunk, as FM_TRACE_MARGIN is behind `room`. */
static inline void fm_trace_ask_ahead(uint8_t *at)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(at[64])); /* the compiler's own asks for a shared one */
#else
    __builtin_prefetch(at + 64, 1);
#endif
}

/* The time of the next word: units since the last. Beyond what a word can say, and before the last
 * (clocks of different cores may disagree), it is more than FM_TRACE_TIME_MAX. */
static inline uint64_t fm_trace_units(const struct fm_trace_writer *w, uint64_t now)
{
    return (now - w->last) >> FM_TRACE_SHIFT;
}

/* A TIME, if there is too much time before `now` for a word. The margin has room for it. */
void fm_trace_settle(struct fm_trace_writer *w, uint64_t now);

/* Units for the word that is written next, at `now`, and after a TIME if need be. */
uint16_t fm_trace_advance(struct fm_trace_writer *w, uint64_t now);

/* An escape with `count` numbers of 32 bits. */
void fm_trace_put_escape(struct fm_trace_writer *w, uint64_t now, enum fm_trace_escape kind,
                         const uint32_t *numbers, unsigned count);

/* A value: text of at most FM_TRACE_VALUE_BYTES bytes; `token` is that of OF_TOKEN, and nobody else's. */
void fm_trace_put_value(struct fm_trace_writer *w, uint64_t now, uint32_t name,
                        enum fm_trace_value_of of, uint32_t token, const char *text, size_t len);

#endif
