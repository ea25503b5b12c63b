/* Making a stretch of events; see stretch.h. */
#include <string.h>

#include "record/model/trace/stretch.h"

void fm_stretch_writer_release(struct fm_stretch_writer *w)
{
    fm_vec_release(&w->frames);
    fm_vec_release(&w->deltas);
    fm_buffer_release(&w->codes);
    fm_buffer_release(&w->extras);
    fm_buffer_release(&w->longs);
}

void fm_stretch_begin(struct fm_stretch_writer *w, uint64_t ticks)
{
    w->frames.len = 0;
    w->deltas.len = 0;
    fm_buffer_clear(&w->codes);
    fm_buffer_clear(&w->extras);
    fm_buffer_clear(&w->longs);
    w->begin = w->last = ticks;
    w->spans = 0;
    w->depth = 0;
}

void fm_stretch_add_long(struct fm_stretch_writer *w, uint64_t delta)
{
    fm_vec_push(&w->deltas, 0xffff);
    fm_buffer_add_varint(&w->longs, delta);
}

/* What all short steps of time have in common: the counter counts in larger steps than one. */
static uint32_t common_step(const uint16_t *deltas, size_t count)
{
    uint32_t step = 0;
    for (size_t i = 0; i < count && step != 1; i++) {
        uint32_t a = deltas[i];
        if (a == 0xffff || !a)
            continue;
        for (uint32_t b = step; b;) {
            uint32_t rest = a % b;
            a = b;
            b = rest;
        }
        step = a;
    }
    return step ? step : 1;
}

/* Times as bytes; those that are too long for one join the others in `longs`. */
static void add_times(const struct fm_stretch_writer *w, uint32_t step, struct fm_buffer *body,
                      struct fm_buffer *longs)
{
    struct fm_cursor c = fm_cursor_over(w->longs.data, w->longs.len);
    fm_buffer_reserve(body, w->deltas.len);
    uint8_t *out = (uint8_t *)body->data + body->len;
    unsigned shift = (unsigned)__builtin_ctz(step);
    bool power = step == 1u << shift;
    for (size_t i = 0; i < w->deltas.len; i++) {
        uint32_t delta = w->deltas.data[i], steps = power ? delta >> shift : delta / step;
        if (delta != 0xffff && steps < FM_STRETCH_LONG) {
            out[i] = (uint8_t)steps;
            continue;
        }
        out[i] = FM_STRETCH_LONG;
        fm_buffer_add_varint(longs, delta == 0xffff ? fm_cursor_varint(&c) : delta);
    }
    body->len += w->deltas.len;
}

static void add_part(struct fm_buffer *body, const struct fm_buffer *part)
{
    fm_buffer_add_varint(body, part->len);
    fm_buffer_add(body, part->data, part->len);
}

void fm_stretch_body(const struct fm_stretch_writer *w, struct fm_buffer *body)
{
    fm_autobuffer longs = FM_BUFFER_INIT;
    uint32_t step = common_step(w->deltas.data, w->deltas.len);
    fm_buffer_clear(body);
    fm_buffer_add_varint(body, w->frames.len);
    for (size_t i = 0; i < w->frames.len; i++) {
        fm_buffer_add_varint(body, w->frames.data[i].code);
        fm_buffer_add_varint(body, w->begin - w->frames.data[i].begin);
    }
    fm_buffer_add_varint(body, w->deltas.len);
    fm_buffer_add_varint(body, step);
    add_part(body, &w->codes);
    add_times(w, step, body, &longs);
    add_part(body, &longs);
    add_part(body, &w->extras);
}
