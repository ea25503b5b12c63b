/*
 * What the next packer of a process has to know to go on where this one is; see pack.h, packing.h.
 *
 * Blocks tell what happened. What is open follows from them only as long as all blocks of a thread are there:
 * with --window those of one that is quiet are gone, while its calls are still open. And blocks have no word of
 * what did not end yet beside calls: spans that need not nest, the step of a task, a region whose call is over.
 *
 *     state  := streams, then of each: thread, tid, ticks, lost, suspended, reopening, lost from, beyond, task,
 *               its begin; frames, then of each: begin since that of the one around it, code, flags; regions
 *               without a call, then of each: begin, name.
 *               Then spans that need not nest, and of each: name, token, ticks, ended
 *
 * All numbers are varints.
 */
#include "record/model/trace/lanes/timeline.h"
#include "record/model/trace/pack/packing.h"

#define KEPT_FLAGS ((uint32_t)(FM_FRAME_ENDED | FM_FRAME_LOST))

static void add_all(struct fm_buffer *to, const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fm_buffer_add_varint(to, numbers[i]);
}

/* ---- telling ---- */

static void tell_frames(const struct fm_stream *s, struct fm_buffer *into)
{
    uint64_t last = 0;
    fm_buffer_add_varint(into, s->frames.len);
    for (size_t i = 0; i < s->frames.len; i++) {
        const struct fm_pack_frame *frame = &s->frames.data[i];
        add_all(into,
                (const uint64_t[]){ fm_zigzag((int64_t)(frame->begin - last)), frame->code,
                                    frame->flags & KEPT_FLAGS },
                3);
        last = frame->begin;
    }
}

static void tell_stream(const struct fm_trace_pack *pack, const struct fm_stream *s,
                        struct fm_buffer *into)
{
    const uint64_t facts[] = { s->thread,    s->tid,
                               s->ticks,     pack->threads.data[s->index].lost,
                               s->suspended, s->reopening,
                               s->lost_from, s->beyond,
                               s->task,      s->task_begin };
    add_all(into, facts, FM_COUNT(facts));
    tell_frames(s, into);
    fm_buffer_add_varint(into, s->orphans.len);
    for (size_t i = 0; i < s->orphans.len; i++)
        add_all(into, (const uint64_t[]){ s->orphans.data[i].begin, s->orphans.data[i].name }, 2);
}

static bool is_told(const struct fm_stream *s)
{
    return s && s->begun;
}

void fm_trace_pack_tell_state(const struct fm_trace_pack *pack, struct fm_buffer *into)
{
    uint64_t count = 0;
    for (size_t i = 0; i < pack->streams.len; i++)
        count += is_told(pack->streams.data[i]);
    fm_buffer_add_varint(into, count);
    for (size_t i = 0; i < pack->streams.len; i++)
        if (is_told(pack->streams.data[i]))
            tell_stream(pack, pack->streams.data[i], into);
    fm_buffer_add_varint(into, pack->async.len);
    for (size_t i = 0; i < pack->async.len; i++) {
        const struct fm_async_span *span = &pack->async.data[i];
        add_all(into, (const uint64_t[]){ span->name, span->token, span->ticks, span->ended }, 4);
    }
}

/* ---- taking ---- */

/* How many follow, of at least so many bytes each. */
static uint64_t take_count(struct fm_cursor *c, size_t bytes)
{
    uint64_t count = fm_cursor_varint(c);
    if (count > fm_cursor_left(c) / bytes)
        c->failed = true;
    return c->failed ? 0 : count;
}

struct told_frames {
    FM_VEC(struct fm_open_frame) list;
    FM_VEC(uint32_t) flags;
};

static void take_frames(struct fm_cursor *c, uint64_t ticks, struct told_frames *frames)
{
    uint64_t begin = 0;
    for (uint64_t count = take_count(c, 3); count && !c->failed; count--) {
        begin += (uint64_t)fm_unzigzag(fm_cursor_varint(c));
        uint64_t code = fm_cursor_varint(c), flags = fm_cursor_varint(c);
        c->failed |= begin > ticks || code > UINT32_MAX || !fm_event_begins((uint32_t)code) ||
                     frames->list.len >= FM_TRACE_DEPTH_MAX;
        if (c->failed)
            return;
        fm_vec_push(&frames->list, ((struct fm_open_frame){ begin, (uint32_t)code }));
        fm_vec_push(&frames->flags, (uint32_t)flags & KEPT_FLAGS);
    }
}

static bool are_open(const struct fm_stream *s, const struct told_frames *frames)
{
    if (s->frames.len != frames->list.len)
        return false;
    for (size_t i = 0; i < s->frames.len; i++)
        if (s->frames.data[i].code != frames->list.data[i].code)
            return false;
    return true;
}

/* What payloads have told already is there, in its context; else nothing of it was in them. */
static void set_frames(struct fm_trace_pack *pack, struct fm_stream *s,
                       const struct told_frames *frames, uint64_t ticks)
{
    fm_pack_begin_stream(pack, s, ticks);
    ticks = ticks > s->ticks ? ticks : s->ticks;
    if (!are_open(s, frames)) {
        s->frames.len = 0;
        fm_pack_open_frames(pack, s, frames->list.data, frames->list.len, ticks);
        fm_pack_keyframe(s, ticks & pack->grid);
    }
    for (size_t i = 0; i < s->frames.len; i++)
        s->frames.data[i].flags |= frames->flags.data[i];
    s->ticks = ticks;
    pack->last = ticks > pack->last ? ticks : pack->last;
    struct fm_trace_thread *thread = &pack->threads.data[s->index];
    thread->last_ticks = ticks & pack->grid;
}

static void take_orphans(struct fm_cursor *c, struct fm_stream *s)
{
    for (uint64_t count = take_count(c, 2); count && !c->failed; count--) {
        uint64_t begin = fm_cursor_varint(c), name = fm_cursor_varint(c);
        if (s && !c->failed && name < FM_EVENT_ID_MAX)
            fm_vec_push(&s->orphans, ((struct fm_pack_orphan){ begin, (uint32_t)name }));
    }
}

static void take_stream(struct fm_trace_pack *pack, struct fm_cursor *c)
{
    uint64_t facts[10];
    struct told_frames frames = { 0 };
    for (size_t i = 0; i < FM_COUNT(facts); i++)
        facts[i] = fm_cursor_varint(c);
    c->failed |= facts[0] > UINT32_MAX || facts[2] >= FM_WORDS_TICKS_MAX;
    take_frames(c, facts[2], &frames);
    struct fm_stream *s =
        c->failed ? NULL : fm_pack_stream(pack, (uint32_t)facts[0], (uint32_t)facts[1]);
    if (s) {
        struct fm_trace_thread *thread = &pack->threads.data[s->index];
        set_frames(pack, s, &frames, facts[2]);
        s->tid = thread->tid = (uint32_t)facts[1];
        s->lost_some = facts[3] != 0;
        thread->lost = pack->from ? thread->lost : facts[3];
        s->suspended = facts[4];
        s->reopening = facts[5] != 0;
        s->lost_from = facts[6];
        s->beyond = facts[7];
        s->task = (uint32_t)facts[8];
        s->task_begin = facts[9];
    }
    take_orphans(c, s);
    fm_vec_release(&frames.list);
    fm_vec_release(&frames.flags);
}

bool fm_trace_pack_take_state(struct fm_trace_pack *pack, struct fm_cursor *c)
{
    for (uint64_t count = take_count(c, 10); count && !c->failed; count--)
        take_stream(pack, c);
    for (uint64_t count = take_count(c, 4); count && !c->failed; count--) {
        uint64_t name = fm_cursor_varint(c), token = fm_cursor_varint(c);
        uint64_t ticks = fm_cursor_varint(c), ended = fm_cursor_varint(c);
        struct fm_async_span span = { (uint32_t)name, (uint32_t)token, ticks, ended != 0 };
        if (!c->failed)
            fm_vec_push(&pack->async, span);
    }
    return !c->failed;
}
