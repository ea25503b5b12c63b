/* Records of a trace that are no plain calls; see pack.h, packing.h and capture/live_trace.h. */
#include <string.h>

#include "record/model/trace/lanes/timeline.h"
#include "record/model/trace/pack/packing.h"

#define TEXTS_FULL ((size_t)1 << 20) /* bytes of values that wait */
#define ASYNC_MAX  65536u            /* spans that may be open at once, over all threads */

static bool is_name(const struct fm_trace_pack *pack, uint32_t name)
{
    return name && name <= pack->names && name < FM_EVENT_ID_MAX / 2;
}

static bool is_function(const struct fm_trace_pack *pack, uint32_t func)
{
    return func && func <= pack->functions && func < FM_EVENT_ID_MAX;
}

static uint32_t name_of(struct fm_trace_pack *pack, const struct fm_word *word, unsigned at)
{
    uint32_t name = fm_word_u32(word, at);
    if (is_name(pack, name))
        return name;
    pack->broken++;
    return 0;
}

/* Where it happens: the innermost open call, + 1. */
static uint32_t place_of(const struct fm_stream *s)
{
    for (size_t i = s->frames.len; i; i--)
        if (fm_event_is_call(s->frames.data[i - 1].code))
            return fm_event_subject(s->frames.data[i - 1].code) + 1;
    return 0;
}

void fm_pack_mark(struct fm_stream *s, const struct fm_trace_mark *mark)
{
    fm_vec_push(&s->marks.list, *mark);
}

static void instant(struct fm_trace_pack *pack, struct fm_stream *s, enum fm_mark_kind kind,
                    uint32_t name, uint64_t ticks, uint64_t value)
{
    (void)pack;
    struct fm_trace_mark mark = { .begin = ticks,
                                  .end = ticks,
                                  .kind = (uint32_t)kind,
                                  .name = name,
                                  .subject = place_of(s),
                                  .value = value };
    fm_pack_mark(s, &mark);
}

/* ---- regions and collections ---- */

/* An end without a begin: no wonder, if something was lost before. */
static void miss_begin(struct fm_trace_pack *pack, const struct fm_stream *s)
{
    pack->broken += !pack->threads.data[s->index].lost && !s->lost_some;
}

/* The region that is innermost of all. It may have been lost. */
static void end_innermost_region(struct fm_trace_pack *pack, struct fm_stream *s, uint64_t ticks)
{
    uint32_t code = s->frames.len ? s->frames.data[s->frames.len - 1].code : 0;
    if (s->frames.len && !fm_event_is_call(code) && !(fm_event_id(code) & 1))
        fm_pack_end_frame(pack, s, FM_EVENT_REGION_END, ticks);
}

static void end_region(struct fm_trace_pack *pack, struct fm_stream *s, uint32_t name,
                       uint64_t ticks)
{
    uint32_t code = fm_event_begin(name * 2, FM_EVENT_OTHER);
    if (!name) {
        end_innermost_region(pack, s, ticks);
        return;
    }
    struct fm_trace_mark mark = { .end = ticks, .kind = FM_MARK_REGION, .name = name };
    if (s->frames.len && s->frames.data[s->frames.len - 1].code == code) {
        fm_pack_end_frame(pack, s, FM_EVENT_REGION_END, ticks);
        return;
    }
    for (size_t i = s->frames.len; i; i--) {
        struct fm_pack_frame *frame = &s->frames.data[i - 1];
        if (frame->code != code || frame->flags & FM_FRAME_ENDED)
            continue;
        frame->flags |= FM_FRAME_ENDED;
        mark.begin = frame->begin;
        fm_pack_mark(s, &mark);
        return;
    }
    for (size_t i = s->orphans.len; i; i--) {
        if (s->orphans.data[i - 1].name != name)
            continue;
        mark.begin = s->orphans.data[i - 1].begin;
        s->orphans.data[i - 1] = s->orphans.data[--s->orphans.len];
        fm_pack_mark(s, &mark);
        return;
    }
    miss_begin(pack, s);
}

static void end_collection(struct fm_trace_pack *pack, struct fm_stream *s,
                           const struct fm_word *word, uint64_t ticks)
{
    size_t at = s->frames.len;
    while (at && (fm_event_is_call(s->frames.data[at - 1].code) ||
                  !(fm_event_id(s->frames.data[at - 1].code) & 1)))
        at--;
    if (!at) {
        miss_begin(pack, s);
        return;
    }
    while (s->frames.len > at)
        fm_pack_end_frame(pack, s, FM_EVENT_CLOSE, ticks);
    const struct fm_pack_frame *frame = &s->frames.data[at - 1];
    struct fm_trace_mark mark = { .begin = frame->begin,
                                  .end = ticks,
                                  .kind = FM_MARK_COLLECTION,
                                  .value = fm_event_id(frame->code) / 2,
                                  .other = fm_word_u32(word, 0) };
    fm_pack_end_frame(pack, s, FM_EVENT_GC_END, ticks);
    mark.subject = place_of(s);
    fm_pack_mark(s, &mark);
}

/* ---- spans that need not nest ---- */

/* The span of a token that has begun, or (chunks of another thread may come first) has ended; NULL: neither. */
static struct fm_async_span *find_async(struct fm_trace_pack *pack, uint32_t token, bool ended)
{
    for (size_t i = pack->async.len; i; i--)
        if (pack->async.data[i - 1].token == token && pack->async.data[i - 1].ended == ended)
            return &pack->async.data[i - 1];
    return NULL;
}

static void keep_async(struct fm_trace_pack *pack, struct fm_async_span span)
{
    if (pack->async.len < ASYNC_MAX)
        fm_vec_push(&pack->async, span);
    else
        pack->broken++;
}

static void mark_async(struct fm_trace_pack *pack, struct fm_stream *s, struct fm_async_span *span,
                       uint32_t name, uint64_t begin, uint64_t end)
{
    struct fm_trace_mark mark = { .begin = begin < end ? begin : end,
                                  .end = end,
                                  .kind = FM_MARK_REGION,
                                  .name = name,
                                  .value = span->token };
    *span = pack->async.data[--pack->async.len];
    fm_pack_mark(s, &mark);
}

static void begin_async(struct fm_trace_pack *pack, struct fm_stream *s, const struct fm_word *word,
                        uint64_t ticks)
{
    uint32_t name = name_of(pack, word, 0), token = fm_word_u32(word, 2);
    struct fm_async_span *span = find_async(pack, token, true);
    if (span)
        mark_async(pack, s, span, name, ticks, span->ticks);
    else
        keep_async(pack, (struct fm_async_span){ name, token, ticks, false });
}

static void end_async(struct fm_trace_pack *pack, struct fm_stream *s, const struct fm_word *word,
                      uint64_t ticks)
{
    uint32_t token = fm_word_u32(word, 0);
    struct fm_async_span *span = find_async(pack, token, false);
    if (span)
        mark_async(pack, s, span, span->name, span->ticks, ticks);
    else
        keep_async(pack, (struct fm_async_span){ 0, token, ticks, true });
}

/* ---- tasks ---- */

void fm_pack_end_step(struct fm_stream *s, uint64_t ticks)
{
    struct fm_trace_mark mark = {
        .begin = s->task_begin, .end = ticks, .kind = FM_MARK_TASK, .value = s->task
    };
    if (s->task)
        fm_pack_mark(s, &mark);
    s->task = 0;
}

static void take_task(struct fm_trace_pack *pack, struct fm_stream *s, const struct fm_word *word,
                      uint64_t ticks)
{
    struct fm_trace_task task = { .task = fm_word_u32(word, 0) };
    if (word->escape == FM_TRACE_TASK_STEP) {
        fm_pack_end_step(s, ticks);
        s->task = task.task;
        s->task_begin = ticks;
        return;
    }
    if (word->escape == FM_TRACE_TASK_AWAITS) {
        instant(pack, s, FM_MARK_AWAIT, 0, ticks, task.task);
        s->marks.list.data[s->marks.list.len - 1].other = fm_word_u32(word, 2);
        return;
    }
    if (word->escape == FM_TRACE_TASK_NEW) {
        task.name = fm_word_u32(word, 2) ? name_of(pack, word, 2) : 0; /* not every task tells it */
        task.creator = fm_word_u32(word, 4);
        task.created = ticks;
        task.thread = s->thread;
    } else if (word->escape == FM_TRACE_TASK_NAME) {
        task.name = name_of(pack, word, 2);
    } else {
        task.done = ticks;
        task.ended = fm_word_u32(word, 2);
    }
    fm_vec_push(&pack->tasks.list, task);
}

/* ---- losses ---- */

/* Nothing is known of the time between; calls that are open are told again, and are other spans from then
 * on. Regions are not: those whose ends come have their whole length as marks. */
static void lose(struct fm_trace_pack *pack, struct fm_stream *s, uint64_t events, uint64_t from,
                 uint64_t ticks)
{
    from = from < s->ticks ? s->ticks : from > ticks ? ticks : from;
    struct fm_trace_mark mark = {
        .begin = from, .end = ticks, .kind = FM_MARK_LOST, .value = events
    };
    pack->threads.data[s->index].lost += events;
    s->lost_frames.len = 0;
    for (size_t i = 0; i < s->frames.len; i++)
        fm_vec_push(&s->lost_frames, s->frames.data[i]);
    s->beyond = 0;
    s->instant = 0;
    s->orphans.len = 0;
    fm_pack_end_step(s, from);
    for (size_t i = 0; i < s->frames.len; i++)
        fm_pack_orphan(s, &s->frames.data[i]);
    while (s->frames.len) {
        s->frames.data[s->frames.len - 1].flags |= FM_FRAME_LOST;
        fm_pack_end_frame(pack, s, FM_EVENT_CLOSE, from);
    }
    s->lost_from = from;
    s->reopening = true;
    fm_pack_mark(s, &mark);
}

void fm_trace_pack_lost(struct fm_trace_pack *pack, uint32_t thread, uint32_t tid, uint64_t ticks,
                        uint64_t events)
{
    struct fm_stream *s = ticks < FM_WORDS_TICKS_MAX ? fm_pack_stream(pack, thread, tid) : NULL;
    if (!s)
        return;
    fm_pack_begin_stream(pack, s, ticks);
    ticks = ticks > s->ticks ? ticks : s->ticks;
    fm_pack_arrive(pack, s, ticks);
    lose(pack, s, events, s->ticks, ticks);
    s->ticks = ticks;
}

static void reopen_call(struct fm_trace_pack *pack, struct fm_stream *s, const struct fm_word *word,
                        uint64_t ticks)
{
    uint32_t func = fm_word_u32(word, 0);
    uint64_t begin = fm_word_u64(word, 2);
    if (!is_function(pack, func)) {
        pack->broken++;
        return;
    }
    fm_pack_begin(pack, s, fm_event_begin(func, FM_EVENT_OPEN), ticks,
                  begin < ticks ? ticks - begin : 0);
}

static uint64_t waited_ticks(const struct fm_trace_pack *pack, const struct fm_word *word)
{
    uint64_t units = word->length == 1  ? word->payload[0]
                     : word->length < 4 ? fm_word_u32(word, 0)
                                        : fm_word_u64(word, 0);
    return units < FM_WORDS_TICKS_MAX >> pack->shift ? units << pack->shift : 0;
}

static void close_calls(struct fm_trace_pack *pack, struct fm_stream *s, uint32_t count,
                        uint64_t ticks)
{
    while (count-- && fm_pack_end_call(pack, s, FM_EVENT_CLOSE, ticks))
        ;
}

/* Calls and what is open. False: it is none of these. */
static bool take_nesting(struct fm_trace_pack *pack, struct fm_stream *s,
                         const struct fm_word *word, uint64_t ticks)
{
    uint32_t first = fm_word_u32(word, 0);
    switch (word->escape) {
    case FM_TRACE_UNWIND:
        pack->broken += !fm_pack_end_call(pack, s, FM_EVENT_UNWIND, ticks);
        return true;
    case FM_TRACE_CLOSE:
        close_calls(pack, s, first, ticks);
        return true;
    case FM_TRACE_THROW:
        if (is_function(pack, first))
            fm_pack_begin(pack, s, fm_event_begin(first, FM_EVENT_RESUME), ticks, s->suspended);
        else
            pack->broken++;
        return true;
    case FM_TRACE_GC_BEGIN:
        fm_pack_begin(pack, s, fm_event_begin((first & 15) * 2 + 1, FM_EVENT_OTHER), ticks, 0);
        return true;
    case FM_TRACE_GC_END:
        end_collection(pack, s, word, ticks);
        return true;
    case FM_TRACE_REGION_BEGIN:
        if (is_name(pack, first))
            fm_pack_begin(pack, s, fm_event_begin(first * 2, FM_EVENT_OTHER), ticks, 0);
        else
            pack->broken++;
        return true;
    case FM_TRACE_REGION_END:
        end_region(pack, s, first, ticks);
        return true;
    case FM_TRACE_LOST:
        lose(pack, s, fm_word_u64(word, 0), fm_word_u64(word, 4), ticks);
        return true;
    case FM_TRACE_OPEN:
        reopen_call(pack, s, word, ticks);
        return true;
    case FM_TRACE_RESUMED_AFTER:
        s->suspended = waited_ticks(pack, word);
        return true;
    default:
        return false;
    }
}

/* ---- values ---- */

/* Where the span of a value begins or ends on the grid of times, and how deep it is; false: it is not there. */
static bool find_span(const struct fm_trace_pack *pack, const struct fm_stream *s, unsigned of,
                      struct fm_trace_mark *mark, uint64_t ticks)
{
    size_t depth = s->frames.len;
    while (of == FM_TRACE_OF_END && depth && !fm_event_is_call(s->frames.data[depth - 1].code))
        depth--;
    if (!depth || s->beyond)
        return false;
    mark->kind = of == FM_TRACE_OF_END ? FM_MARK_RESULT : FM_MARK_VALUE;
    mark->begin = of == FM_TRACE_OF_END ? ticks & pack->grid : s->frames.data[depth - 1].begin;
    mark->end = mark->begin;
    mark->other = depth;
    return true;
}

/* The mark that a value is of: when it began. The thread may have stood still for room since then. */
static void find_mark(struct fm_trace_pack *pack, const struct fm_stream *s, unsigned of,
                      const struct fm_word *word, struct fm_trace_mark *mark)
{
    mark->kind = FM_MARK_VALUE;
    if (of == FM_TRACE_OF_TOKEN) {
        mark->value = fm_word_u32(word, 3);
        const struct fm_async_span *span = find_async(pack, (uint32_t)mark->value, false);
        mark->begin = mark->end = span ? span->ticks : mark->begin;
    } else if (s->instant) {
        mark->begin = mark->end = s->instant;
    }
}

/* False: it is nobody's. */
static bool find_owner(struct fm_trace_pack *pack, const struct fm_stream *s, unsigned of,
                       const struct fm_word *word, struct fm_trace_mark *mark, uint64_t ticks)
{
    if (of == FM_TRACE_OF_BEGIN || of == FM_TRACE_OF_END)
        return find_span(pack, s, of, mark, ticks);
    if (of != FM_TRACE_OF_VARIABLE)
        find_mark(pack, s, of, word, mark);
    return true;
}

static void take_value(struct fm_trace_pack *pack, struct fm_stream *s, const struct fm_word *word,
                       uint64_t ticks)
{
    struct fm_trace_mark mark = { .begin = ticks, .end = ticks, .kind = FM_MARK_VARIABLE };
    unsigned head = word->length > 2 ? word->payload[2] : 0, of = head & 15;
    size_t len = head >> 4, text_at = of == FM_TRACE_OF_TOKEN ? 5 : 3;
    mark.name = name_of(pack, word, 0);
    if (!mark.name || len > FM_TRACE_VALUE_BYTES || (len + 1) / 2 + text_at != word->length ||
        of >= FM_TRACE_OF_COUNT) {
        pack->broken += mark.name != 0;
        return;
    }
    if (!find_owner(pack, s, of, word, &mark, ticks))
        return;
    mark.subject = place_of(s);
    mark.text_at = (uint32_t)s->marks.texts.len;
    mark.text_len = (uint32_t)len;
    fm_buffer_add(&s->marks.texts, word->payload + text_at, len);
    fm_pack_mark(s, &mark);
    if (s->marks.texts.len >= TEXTS_FULL)
        fm_pack_emit(pack, s, true);
}

/* A mark of which only its name and one number are known. */
static void take_mark(struct fm_trace_pack *pack, struct fm_stream *s, const struct fm_word *word,
                      uint64_t ticks)
{
    struct fm_trace_mark waited = { .end = ticks, .kind = FM_MARK_WAITED };
    switch (word->escape) {
    case FM_TRACE_RAISE:
        instant(pack, s, FM_MARK_EXCEPTION, name_of(pack, word, 0), ticks, 0);
        break;
    case FM_TRACE_COUNTER:
        instant(pack, s, FM_MARK_COUNTER, name_of(pack, word, 0), ticks, fm_word_u64(word, 2));
        break;
    case FM_TRACE_INSTANT:
        instant(pack, s, FM_MARK_INSTANT, name_of(pack, word, 0), ticks, 0);
        s->instant = ticks;
        break;
    case FM_TRACE_VALUE:
        take_value(pack, s, word, ticks);
        break;
    case FM_TRACE_FORK:
        instant(pack, s, FM_MARK_FORK, 0, ticks, fm_word_u32(word, 0));
        break;
    case FM_TRACE_WAITED:
        waited.value = fm_word_u64(word, 0);
        waited.begin = waited.value < ticks ? ticks - waited.value : 0;
        fm_pack_mark(s, &waited);
        break;
    default: /* a later version's */
        break;
    }
}

void fm_pack_escape(struct fm_trace_pack *pack, struct fm_stream *s, const struct fm_word *word,
                    uint64_t ticks)
{
    if (word->escape != FM_TRACE_OPEN && word->escape != FM_TRACE_TIME)
        s->reopening = false;
    if (take_nesting(pack, s, word, ticks))
        return;
    switch (word->escape) {
    case FM_TRACE_ASYNC_BEGIN:
        begin_async(pack, s, word, ticks);
        break;
    case FM_TRACE_ASYNC_END:
        end_async(pack, s, word, ticks);
        break;
    case FM_TRACE_TASK_NEW:
    case FM_TRACE_TASK_STEP:
    case FM_TRACE_TASK_AWAITS:
    case FM_TRACE_TASK_DONE:
    case FM_TRACE_TASK_NAME:
        take_task(pack, s, word, ticks);
        break;
    default:
        take_mark(pack, s, word, ticks);
        break;
    }
}
