/*
 * What an earlier packer gave out: it goes out again, and this packer knows what that one knew of calls; the
 * rest is in its state (pack_state.c). See pack.h, packing.h.
 *
 * Blocks go out as they are, but for those in which the time begins that is told (pack_window.c): these are made
 * anew. So are all levels of detail then: their cells reach back over more than one block.
 */
#include "record/capture/format.h"
#include "record/model/trace/lanes/timeline.h"
#include "record/model/trace/pack/packing.h"

struct replayed {
    uint16_t type;
    const void *bytes;
    size_t len;
    struct fm_payload payload;
};

static void give_again(struct fm_trace_pack *pack, const struct replayed *block)
{
    pack->sink(pack->context, block->type, block->bytes, block->len);
}

/* ---- events ---- */

void fm_pack_open_frames(struct fm_trace_pack *pack, struct fm_stream *s,
                         const struct fm_open_frame *frames, size_t count, uint64_t ticks)
{
    bool replaying = pack->replaying;
    pack->replaying = true;
    for (size_t i = 0; i < count; i++) {
        bool is_call = fm_event_is_call(frames[i].code);
        uint32_t code =
            is_call ? fm_event_begin(fm_event_id(frames[i].code), FM_EVENT_OPEN) : frames[i].code;
        fm_pack_begin(pack, s, code, ticks, ticks - frames[i].begin);
        if (s->beyond)
            continue;
        struct fm_pack_frame *frame = &s->frames.data[s->frames.len - 1];
        frame->begin = frames[i].begin; /* the same span as before */
        frame->code = frames[i].code;
    }
    pack->replaying = replaying;
}

static void replay_event(struct fm_trace_pack *pack, struct fm_stream *s,
                         const struct fm_stretch_event *e)
{
    s->suspended = e->code % 4 == FM_EVENT_RESUME ? e->extra : 0;
    if (fm_event_begins(e->code))
        fm_pack_begin(pack, s, e->code, e->ticks, e->extra);
    else if (s->frames.len)
        fm_pack_end_frame(pack, s, e->code, e->ticks);
}

/* From the instant on that is told, events are taken as if they happened now. */
static void replay_stretch(struct fm_trace_pack *pack, struct fm_stream *s,
                           struct fm_stretch *stretch, const struct replayed *block)
{
    struct fm_stretch_event e;
    const struct fm_stretch_facts *facts = &stretch->facts;
    bool first = !s->begun;
    fm_pack_begin_stream(pack, s, facts->begin);
    if (first) /* what was before it is not there any more (--window) */
        fm_pack_open_frames(pack, s, stretch->frames.data, stretch->frames.len, facts->begin);
    bool anew = s->before;
    pack->replaying = true;
    while (fm_stretch_next(stretch, &e)) {
        if (s->before && fm_pack_arrive(pack, s, e.ticks))
            pack->replaying = false;
        replay_event(pack, s, &e);
    }
    pack->replaying = false;
    s->ticks = facts->end;
    pack->threads.data[s->index].last_ticks = facts->end;
    pack->last = facts->end > pack->last ? facts->end : pack->last;
    if (!anew) {
        give_again(pack, block);
        fm_pack_keyframe(s, facts->end);
    }
    if (pack->from)
        fm_pack_emit(pack, s, false);
}

static bool replay_events(struct fm_trace_pack *pack, const struct replayed *block)
{
    struct fm_cursor head = fm_cursor_over(block->payload.head, block->payload.head_len);
    struct fm_stretch_facts facts;
    struct fm_stretch stretch = { 0 };
    if (!fm_stretch_facts(&facts, &head))
        return false;
    if (facts.end < pack->from)
        return true;
    bool sense = fm_payload_unpack(&block->payload, &pack->body) &&
                 fm_stretch_open(&stretch, &facts, &pack->body);
    struct fm_stream *s = sense ? fm_pack_stream(pack, facts.thread, 0) : NULL;
    if (s)
        replay_stretch(pack, s, &stretch, block);
    fm_stretch_release(&stretch);
    return s != NULL;
}

/* ---- what goes with them ---- */

static bool replay_clock(struct fm_trace_pack *pack, const struct replayed *block)
{
    struct fm_cursor head = fm_cursor_over(block->payload.head, block->payload.head_len);
    for (uint64_t count = fm_cursor_varint(&head); count && !head.failed; count--) {
        uint64_t ticks = fm_cursor_varint(&head), ns = fm_cursor_varint(&head);
        if (!head.failed && fm_trace_clock_append(&pack->clock, ticks, ns))
            pack->clock_told = pack->clock.points.len;
    }
    give_again(pack, block);
    return !head.failed;
}

/* Cells that went out: they will be made again, and not given out. */
static bool replay_levels(struct fm_trace_pack *pack, const struct replayed *block)
{
    struct fm_cursor head = fm_cursor_over(block->payload.head, block->payload.head_len);
    struct fm_level_facts facts;
    if (pack->from)
        return true;
    if (!fm_level_facts(&facts, &head))
        return false;
    struct fm_stream *s = fm_pack_stream(pack, facts.thread, 0);
    if (!s)
        return false;
    size_t made = s->levels.done[facts.top].cells.len;
    size_t known = facts.cells < made ? (size_t)facts.cells : made;
    struct fm_level_cell *cells = s->levels.done[facts.top].cells.data;
    for (size_t i = known; i < made; i++)
        cells[i - known] = cells[i];
    s->levels.done[facts.top].cells.len -= known;
    s->levels.skip[facts.top] += facts.cells - known;
    give_again(pack, block);
    return true;
}

static uint64_t lost_in(const struct fm_trace_marks *marks)
{
    uint64_t lost = 0;
    for (size_t i = 0; i < marks->list.len; i++)
        lost += marks->list.data[i].kind == FM_MARK_LOST ? marks->list.data[i].value : 0;
    return lost;
}

static bool replay_marks(struct fm_trace_pack *pack, const struct replayed *block)
{
    struct fm_cursor head = fm_cursor_over(block->payload.head, block->payload.head_len);
    struct fm_mark_facts facts;
    if (!pack->from) {
        give_again(pack, block);
        return true;
    }
    if (!fm_mark_facts(&facts, &head))
        return false;
    struct fm_stream *s = facts.end >= pack->from ? fm_pack_stream(pack, facts.thread, 0) : NULL;
    if (!s)
        return facts.end < pack->from;
    fm_pack_emit(pack, s, true);
    bool sense = fm_payload_unpack(&block->payload, &pack->body) &&
                 fm_trace_marks_read(&facts, &pack->body, &s->marks);
    if (!sense)
        fm_trace_marks_clear(&s->marks);
    fm_pack_cut_marks(pack, s);
    pack->threads.data[s->index].lost += lost_in(&s->marks);
    return sense;
}

bool fm_trace_pack_reopen(struct fm_trace_pack *pack, uint16_t type, const void *payload,
                          size_t bytes)
{
    struct replayed block = { .type = type, .bytes = payload, .len = bytes };
    if (!fm_payload_parse(&block.payload, payload, bytes))
        return false;
    switch (type) {
    case FM_BLOCK_TRACE_EVENTS:
        return replay_events(pack, &block);
    case FM_BLOCK_TRACE_LEVELS:
        return replay_levels(pack, &block);
    case FM_BLOCK_TRACE_MARKS:
        return replay_marks(pack, &block);
    case FM_BLOCK_TRACE_CLOCK:
        return replay_clock(pack, &block);
    default:
        give_again(pack, &block);
        return true;
    }
}
