/*
 * Writes words of a trace (capture/live_trace.h) for tests: what an agent would, of one thread.
 *
 *     struct trace_words w = { .pack = pack, .thread = 1, .shift = 3 };
 *     words_begin(&w, ticks);
 *     words_call(&w, ticks, func); words_return(&w, ticks); …
 *     words_hand_over(&w);
 */
#ifndef FM_TESTS_TRACE_WORDS_H
#define FM_TESTS_TRACE_WORDS_H

#include <string.h>

#include "record/capture/live_trace.h"
#include "record/model/trace/pack/pack.h"

#define WORDS_ROOM (FM_TRACE_CHUNK_BYTES / 2)

struct trace_words {
    struct fm_trace_pack *pack;
    uint32_t thread, tid;
    unsigned shift;
    uint64_t last;        /* ticks, as told */
    uint64_t chunk_ticks; /* before the first word */
    double ns_per_tick;   /* 0: 1 */
    uint64_t ns_base;
    uint16_t words[WORDS_ROOM];
    size_t count;
};

static inline uint64_t words_ns(const struct trace_words *w, uint64_t ticks)
{
    return w->ns_base + (uint64_t)((double)ticks * (w->ns_per_tick > 0 ? w->ns_per_tick : 1));
}

static inline void words_hand_over(struct trace_words *w)
{
    if (w->count)
        fm_trace_pack_chunk(w->pack, w->thread, w->tid, w->chunk_ticks, words_ns(w, w->chunk_ticks),
                            w->words, w->count);
    memset(w->words, 0, sizeof w->words);
    w->count = 0;
    w->chunk_ticks = w->last;
}

static inline void words_put(struct trace_words *w, unsigned op, uint64_t units)
{
    w->words[w->count++] = (uint16_t)(op | (units + 1) << 2);
    w->last += units << w->shift;
}

static inline void words_escape_now(struct trace_words *w, unsigned kind, const uint16_t *payload,
                                    unsigned n)
{
    w->words[w->count++] = FM_TRACE_ESCAPE | 1 << 2;
    w->words[w->count++] = (uint16_t)(kind | n << 8);
    memcpy(w->words + w->count, payload, n * sizeof *payload);
    w->count += n;
}

static inline void words_time(struct trace_words *w, uint64_t ticks)
{
    const uint16_t payload[] = { (uint16_t)ticks, (uint16_t)(ticks >> 16), (uint16_t)(ticks >> 32),
                                 (uint16_t)(ticks >> 48) };
    words_escape_now(w, FM_TRACE_TIME, payload, 4);
    w->last = ticks;
}

static inline void words_begin(struct trace_words *w, uint64_t ticks)
{
    w->last = w->chunk_ticks = ticks;
    words_time(w, ticks);
}

/* Room for a record, and the units since the last one. */
static inline uint64_t words_advance(struct trace_words *w, uint64_t ticks)
{
    if (WORDS_ROOM - w->count < 2 * FM_TRACE_LONGEST)
        words_hand_over(w);
    uint64_t units = (ticks - w->last) >> w->shift;
    if (units > FM_TRACE_TIME_MAX) {
        words_time(w, ticks);
        units = 0;
    }
    return units;
}

static inline void words_call_as(struct trace_words *w, uint64_t ticks, uint32_t func, bool resumes)
{
    words_put(w, FM_TRACE_CALL, words_advance(w, ticks));
    if (func < FM_TRACE_WIDE_FUNCTION) {
        w->words[w->count++] = (uint16_t)(func | (resumes ? FM_TRACE_RESUME : 0));
        return;
    }
    w->words[w->count++] = (uint16_t)(FM_TRACE_WIDE_FUNCTION | (resumes ? FM_TRACE_RESUME : 0));
    w->words[w->count++] = (uint16_t)func;
    w->words[w->count++] = (uint16_t)(func >> 16);
}

static inline void words_call(struct trace_words *w, uint64_t ticks, uint32_t func)
{
    words_call_as(w, ticks, func, false);
}

static inline void words_return(struct trace_words *w, uint64_t ticks)
{
    words_put(w, FM_TRACE_RETURN, words_advance(w, ticks));
}

static inline void words_yield(struct trace_words *w, uint64_t ticks)
{
    words_put(w, FM_TRACE_YIELD, words_advance(w, ticks));
}

/* An escape with up to four numbers of 32 bits, or (`wide`) the last one of 64. */
static inline void words_escape(struct trace_words *w, uint64_t ticks, unsigned kind,
                                const uint32_t *numbers, unsigned count)
{
    uint16_t payload[16];
    uint64_t units = words_advance(w, ticks);
    for (unsigned i = 0; i < count; i++) {
        payload[2 * i] = (uint16_t)numbers[i];
        payload[2 * i + 1] = (uint16_t)(numbers[i] >> 16);
    }
    words_put(w, FM_TRACE_ESCAPE, units);
    w->words[w->count++] = (uint16_t)(kind | (2 * count) << 8);
    memcpy(w->words + w->count, payload, 2 * count * sizeof *payload);
    w->count += 2 * count;
}

#endif
