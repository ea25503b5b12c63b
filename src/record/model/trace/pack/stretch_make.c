/* Making a stretch of events; see stretch.h. */
#include <string.h>

#include "record/model/trace/pack/stretch.h"

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

/* What all short steps of time have in common: the counter counts in larger steps than one. The power of
 * two in it is known first, and mostly it is all there is: then few steps are looked at. */
static uint32_t common_step(const uint16_t *deltas, size_t count)
{
    uint32_t bits = 0, step = 0;
    for (size_t i = 0; i < count; i++)
        bits |= deltas[i] == 0xffff ? 0 : deltas[i];
    uint32_t least = bits & -bits;
    for (size_t i = 0; i < count && step != least; i++) {
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
    size_t count = w->deltas.len;
    fm_buffer_reserve(body, count);
    uint8_t *out = (uint8_t *)body->data + body->len;
    const uint16_t *deltas = w->deltas.data;
    unsigned shift = (unsigned)__builtin_ctz(step);
    const uint16_t beyond =
        (uint16_t)(step * FM_STRETCH_LONG < 0xffff ? step * FM_STRETCH_LONG : 0xffff);
    if (step == 1u << shift)
        for (size_t i = 0; i < count; i++)
            out[i] = deltas[i] < beyond ? (uint8_t)(deltas[i] >> shift) : FM_STRETCH_LONG;
    else
        for (size_t i = 0; i < count; i++)
            out[i] = deltas[i] < beyond ? (uint8_t)(deltas[i] / step) : FM_STRETCH_LONG;
    const uint8_t *end = out + count, *at = count ? memchr(out, FM_STRETCH_LONG, count) : NULL;
    for (; at; at = memchr(at + 1, FM_STRETCH_LONG, (size_t)(end - at) - 1)) {
        uint16_t delta = deltas[at - out];
        fm_buffer_add_varint(longs, delta == 0xffff ? fm_cursor_varint(&c) : delta);
    }
    body->len += count;
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
