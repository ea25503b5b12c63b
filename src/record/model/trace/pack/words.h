/*
 * Reads the words of a chunk (capture/live_trace.h), one record after the other. Pure and bounded: a
 * chunk is untrusted, whoever wrote it may have been killed in the middle.
 *
 *     struct fm_words w = fm_words_over(words, count, shift, ticks);
 *     while (fm_words_next(&w, &word)) …
 *
 * It ends at the first word that is 0, at a word that no writer makes, and at a record of which the end
 * is missing; `bad` counts the latter two. Time never goes back.
 */
#ifndef FM_MODEL_TRACE_WORDS_H
#define FM_MODEL_TRACE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/capture/live_trace.h"

/* Times beyond this are no times: a century of the fastest clock. */
#define FM_WORDS_TICKS_MAX ((uint64_t)1 << 62)

struct fm_words {
    const uint16_t *at, *end;
    uint64_t ticks; /* of the record given out last */
    unsigned shift;
    uint64_t bad;
};

struct fm_word {
    uint8_t op;              /* enum fm_trace_op */
    uint8_t escape;          /* … ESCAPE: enum fm_trace_escape, or a kind of a later version */
    uint8_t length;          /* … words of payload */
    bool resumes;            /* CALL: a generator goes on */
    uint32_t func;           /* CALL */
    const uint16_t *payload; /* ESCAPE */
};

static inline struct fm_words fm_words_over(const uint16_t *words, size_t count, unsigned shift,
                                            uint64_t ticks)
{
    return (struct fm_words){ words, words + count, ticks, shift < 32 ? shift : 0, 0 };
}

static inline uint32_t fm_word_u32(const struct fm_word *word, unsigned at)
{
    return at + 2 <= word->length ? word->payload[at] | (uint32_t)word->payload[at + 1] << 16 : 0;
}

static inline uint64_t fm_word_u64(const struct fm_word *word, unsigned at)
{
    return fm_word_u32(word, at) | (uint64_t)fm_word_u32(word, at + 2) << 32;
}

static inline bool fm_words_end(struct fm_words *w)
{
    w->bad++;
    w->end = w->at;
    return false;
}

static inline bool fm_words_escape(struct fm_words *w, struct fm_word *out)
{
    if (w->at == w->end)
        return fm_words_end(w);
    uint16_t head = *w->at++;
    out->escape = head & 0xff;
    out->length = (uint8_t)(head >> 8);
    if ((size_t)(w->end - w->at) < out->length)
        return fm_words_end(w);
    out->payload = w->at;
    w->at += out->length;
    if (out->escape == FM_TRACE_TIME) {
        uint64_t ticks = fm_word_u64(out, 0);
        if (ticks > w->ticks && ticks < FM_WORDS_TICKS_MAX)
            w->ticks = ticks;
    }
    return true;
}

static inline bool fm_words_call(struct fm_words *w, struct fm_word *out)
{
    if (w->at == w->end)
        return fm_words_end(w);
    uint16_t head = *w->at++;
    out->resumes = head & FM_TRACE_RESUME;
    out->func = head & FM_TRACE_WIDE_FUNCTION;
    if (out->func == FM_TRACE_WIDE_FUNCTION) {
        if (w->end - w->at < 2)
            return fm_words_end(w);
        out->func = w->at[0] | (uint32_t)w->at[1] << 16;
        w->at += 2;
    }
    return out->func ? true : fm_words_end(w); /* 0: killed before it was there */
}

static inline bool fm_words_next(struct fm_words *w, struct fm_word *out)
{
    if (w->at == w->end || !*w->at)
        return false;
    uint16_t head = *w->at++;
    uint32_t units = head >> 2;
    if (!units)
        return fm_words_end(w);
    w->ticks += (uint64_t)(units - 1) << w->shift;
    out->op = head & 3;
    if (out->op == FM_TRACE_CALL)
        return fm_words_call(w, out);
    return out->op != FM_TRACE_ESCAPE || fm_words_escape(w, out);
}

#endif
