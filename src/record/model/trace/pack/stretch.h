/*
 * A stretch: consecutive events of one thread as a block (TRACE_EVENTS) that decodes alone.
 *
 * The head tells which time of which thread it is, and of each function whose spans end in it how many
 * there are and how long the longest took. The body begins with what was open (a keyframe); then come
 * columns: what happened (events.h) as varints, when (a byte each: ticks since the event before, divided
 * by what all of them have in common; 255: the ticks are in a list of their own), that list, and extras of
 * some begins.
 */
#ifndef FM_MODEL_TRACE_STRETCH_H
#define FM_MODEL_TRACE_STRETCH_H

#include "base/buffer.h"
#include "base/vec.h"
#include "record/model/trace/pack/events.h"
#include "record/model/trace/pack/payload.h"

#define FM_STRETCH_LONG 255 /* byte of time: it is in the list */

/* ---- the head ---- */

struct fm_stretch_facts {
    uint32_t thread;     /* number in the process */
    uint32_t depth;      /* the most that was open */
    uint64_t begin, end; /* ticks */
    uint64_t events;     /* begins and ends */
    uint64_t spans;      /* that begin */
    uint32_t functions;  /* facts about spans that follow */
    bool all_functions;  /* false: some are not told */
};

/* The facts, and behind them the cursor is at those of functions. */
bool fm_stretch_facts(struct fm_stretch_facts *facts, struct fm_cursor *head);

struct fm_span_facts {
    uint32_t subject; /* events.h; ascending */
    uint64_t spans;   /* that end in the stretch */
    uint64_t longest; /* ticks */
};
bool fm_stretch_span_facts(struct fm_cursor *head, struct fm_span_facts *facts); /* the next */

/* ---- making one ---- */

struct fm_stretch_writer {
    FM_VEC(struct fm_open_frame) frames; /* keyframe */
    struct fm_buffer codes, extras, longs;
    FM_VEC(uint16_t) deltas; /* ticks; 0xffff: in `longs` */
    uint64_t begin, last;
    uint64_t spans;
    uint32_t depth;
};

void fm_stretch_writer_release(struct fm_stretch_writer *w);

/* Begin anew at `ticks`, with these frames open. */
void fm_stretch_begin(struct fm_stretch_writer *w, uint64_t ticks);

void fm_stretch_add_long(struct fm_stretch_writer *w, uint64_t delta);

static inline void fm_stretch_add(struct fm_stretch_writer *w, uint32_t code, uint64_t ticks)
{
    uint8_t bytes[FM_VARINT_MAX];
    uint64_t delta = ticks - w->last;
    w->last = ticks;
    if (delta < 0xffff)
        fm_vec_push(&w->deltas, (uint16_t)delta);
    else
        fm_stretch_add_long(w, delta);
    if (w->codes.cap - w->codes.len < sizeof bytes + 1)
        fm_buffer_reserve(&w->codes, 65536);
    w->codes.len += fm_varint_put((uint8_t *)w->codes.data + w->codes.len, code);
    w->spans += fm_event_begins(code);
}

/* About how large it is by now, unpacked. */
static inline size_t fm_stretch_bytes(const struct fm_stretch_writer *w)
{
    return w->codes.len + w->deltas.len + w->extras.len + w->longs.len;
}

/* The body; columns of times are made in `scratch`. */
void fm_stretch_body(const struct fm_stretch_writer *w, struct fm_buffer *body);

/* ---- reading one ---- */

struct fm_stretch {
    struct fm_stretch_facts facts;
    FM_VEC(struct fm_open_frame) frames; /* open at its begin, outermost first */
    uint64_t unit, ticks, events_left;
    struct fm_cursor codes, longs, extras;
    const uint8_t *times;
};

struct fm_stretch_event {
    uint64_t ticks;
    uint32_t code;
    uint64_t extra; /* RESUME, OPEN */
};

/* `body` (unpacked) outlives the stretch. False if it makes no sense. `frames` is used again. */
bool fm_stretch_open(struct fm_stretch *s, const struct fm_stretch_facts *facts,
                     const struct fm_buffer *body);
void fm_stretch_release(struct fm_stretch *s);

static inline bool fm_stretch_next(struct fm_stretch *s, struct fm_stretch_event *e)
{
    if (!s->events_left)
        return false;
    s->events_left--;
    uint8_t time = *s->times++;
    s->ticks += time < FM_STRETCH_LONG ? time * s->unit : fm_cursor_varint(&s->longs);
    uint64_t code = fm_cursor_varint(&s->codes);
    e->ticks = s->ticks;
    e->code = (uint32_t)code;
    e->extra = 0;
    if (s->codes.failed || s->longs.failed || code > UINT32_MAX || s->ticks > s->facts.end)
        return false;
    if (fm_event_begins(e->code) && (e->code & 1)) { /* RESUME, OPEN */
        e->extra = fm_cursor_varint(&s->extras);
        return !s->extras.failed;
    }
    return true;
}

#endif
