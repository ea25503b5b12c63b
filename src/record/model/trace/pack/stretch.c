/* Reading a stretch of events; see stretch.h. Making one is stretch_make.c. */
#include "record/model/trace/pack/stretch.h"

#define TICKS_MAX ((uint64_t)1 << 62)

bool fm_stretch_facts(struct fm_stretch_facts *facts, struct fm_cursor *head)
{
    uint64_t thread = fm_cursor_varint(head);
    uint64_t begin = fm_cursor_varint(head), length = fm_cursor_varint(head);
    *facts = (struct fm_stretch_facts){ .thread = (uint32_t)thread, .begin = begin };
    facts->end = begin + length;
    facts->events = fm_cursor_varint(head);
    facts->spans = fm_cursor_varint(head);
    uint64_t depth = fm_cursor_varint(head);
    facts->depth = depth <= FM_TRACE_DEPTH_MAX ? (uint32_t)depth : FM_TRACE_DEPTH_MAX;
    facts->all_functions = fm_cursor_varint(head) & 1;
    uint64_t functions = fm_cursor_varint(head);
    facts->functions = functions <= FM_PAYLOAD_HEAD_MAX ? (uint32_t)functions : 0;
    return !head->failed && thread <= UINT32_MAX && begin < TICKS_MAX && length < TICKS_MAX;
}

bool fm_stretch_span_facts(struct fm_cursor *head, struct fm_span_facts *facts)
{
    uint64_t subject = facts->subject + fm_cursor_varint(head);
    facts->subject = (uint32_t)subject;
    facts->spans = fm_cursor_varint(head);
    facts->longest = fm_cursor_varint(head);
    return !head->failed && subject <= UINT32_MAX;
}

static bool read_frames(struct fm_stretch *s, struct fm_cursor *c)
{
    uint64_t count = fm_cursor_varint(c), last = 0;
    s->frames.len = 0;
    if (c->failed || count > FM_TRACE_DEPTH_MAX || count > fm_cursor_left(c))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t code = fm_cursor_varint(c), ago = fm_cursor_varint(c);
        if (c->failed || code < FM_EVENT_BEGINS || code > UINT32_MAX || ago > s->facts.begin)
            return false;
        struct fm_open_frame frame = { s->facts.begin - ago, (uint32_t)code };
        if (frame.begin < last) /* older than its caller */
            frame.begin = last;
        last = frame.begin;
        fm_vec_push(&s->frames, frame);
    }
    return true;
}

static struct fm_cursor read_part(struct fm_cursor *c)
{
    uint64_t len = fm_cursor_varint(c);
    const uint8_t *bytes = fm_cursor_bytes(c, len);
    return bytes ? fm_cursor_over(bytes, (size_t)len) : (struct fm_cursor){ .failed = true };
}

bool fm_stretch_open(struct fm_stretch *s, const struct fm_stretch_facts *facts,
                     const struct fm_buffer *body)
{
    struct fm_cursor c = fm_cursor_over(body->data, body->len);
    s->facts = *facts;
    s->ticks = facts->begin;
    if (!body->len || !read_frames(s, &c))
        return false;
    s->events_left = fm_cursor_varint(&c);
    s->unit = fm_cursor_varint(&c);
    s->codes = read_part(&c);
    s->times = fm_cursor_bytes(&c, s->events_left);
    s->longs = read_part(&c);
    s->extras = read_part(&c);
    return !c.failed && s->unit <= 0xffff;
}

void fm_stretch_release(struct fm_stretch *s)
{
    fm_vec_release(&s->frames);
}
