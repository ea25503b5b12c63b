/* What a packer gives out; see pack.h, packing.h. */
#include <stdlib.h>

#include "record/capture/format.h"
#include "record/model/trace/pack/packing.h"

#define BUCKET_NS  256000.0 /* of the first level of detail */
#define TICK_NS    0.4      /* while the clock is not known */
#define GRID_NS    12.5     /* times in blocks are at least this exact */
#define CELLS_FULL 8192u
#define MARKS_FULL 4096u

/* ---- streams ---- */

static unsigned bucket_width(const struct fm_trace_pack *pack)
{
    double ticks = BUCKET_NS / (pack->clock.pace > 0 ? pack->clock.pace : TICK_NS);
    unsigned width = 4;
    while (width < 40 && (double)((uint64_t)2 << width) <= ticks)
        width++;
    return width;
}

struct fm_stream *fm_pack_stream(struct fm_trace_pack *pack, uint32_t thread, uint32_t tid)
{
    bool is_new;
    uint32_t index = *fm_map_at(&pack->stream_of, thread, (uint32_t)pack->streams.len, &is_new);
    if (!is_new)
        return pack->streams.data[index];
    struct fm_stream *s = fm_calloc(1, sizeof *s);
    struct fm_trace_thread known = { .thread = thread, .tid = tid };
    s->thread = thread;
    s->tid = tid;
    s->index = index;
    s->levels.width = bucket_width(pack);
    if (!pack->grid)
        fm_pack_set_grid(pack);
    known.root = fm_pack_root(pack, index);
    fm_vec_push(&pack->streams, s);
    fm_vec_push(&pack->threads, known);
    return s;
}

void fm_pack_stream_free(struct fm_stream *s)
{
    if (!s)
        return;
    fm_vec_release(&s->frames);
    fm_stretch_writer_release(&s->stretch);
    fm_vec_release(&s->subjects);
    fm_vec_release(&s->told);
    fm_levels_release(&s->levels);
    fm_trace_marks_release(&s->marks);
    fm_vec_release(&s->orphans);
    fm_vec_release(&s->lost_frames);
    free(s);
}

/* Blocks have times to about ten nanoseconds, if the words are not exact themselves: finer ones would be
 * as many bytes as all the rest, and reading a clock takes as long. */
void fm_pack_set_grid(struct fm_trace_pack *pack)
{
    double ticks = GRID_NS / (pack->clock.pace > 0 ? pack->clock.pace : TICK_NS);
    unsigned bits = pack->shift;
    while (pack->shift && bits < 16 && (double)((uint64_t)2 << bits) <= ticks)
        bits++;
    pack->grid = ~(((uint64_t)1 << bits) - 1);
}

void fm_pack_keyframe(struct fm_stream *s, uint64_t ticks)
{
    fm_stretch_begin(&s->stretch, ticks);
    for (size_t i = 0; i < s->frames.len; i++) {
        struct fm_open_frame frame = { s->frames.data[i].begin, s->frames.data[i].code };
        fm_vec_push(&s->stretch.frames, frame);
    }
    s->stretch.depth = (uint32_t)s->frames.len;
    s->stretch_number++;
    s->told.len = 0;
    s->some_untold = false;
}

/* ---- blocks ---- */

static void give(struct fm_trace_pack *pack, uint16_t type)
{
    fm_payload_make(pack->packer, &pack->head, &pack->body, &pack->payload);
    pack->sink(pack->context, type, pack->payload.data, pack->payload.len);
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void make_head(struct fm_trace_pack *pack, struct fm_stream *s)
{
    const struct fm_stretch_writer *w = &s->stretch;
    const uint64_t facts[] = { s->thread, w->begin, w->last - w->begin, w->deltas.len,
                               w->spans,  w->depth, !s->some_untold,    s->told.len };
    uint32_t last = 0;
    fm_buffer_clear(&pack->head);
    for (size_t i = 0; i < FM_COUNT(facts); i++)
        fm_buffer_add_varint(&pack->head, facts[i]);
    if (s->told.len)
        qsort(s->told.data, s->told.len, sizeof *s->told.data, compare_ids);
    for (size_t i = 0; i < s->told.len; i++) {
        uint32_t subject = s->told.data[i];
        fm_buffer_add_varint(&pack->head, subject - last);
        fm_buffer_add_varint(&pack->head, s->subjects.data[subject].spans);
        fm_buffer_add_varint(&pack->head, s->subjects.data[subject].longest);
        last = subject;
    }
}

static void emit_clock(struct fm_trace_pack *pack)
{
    fm_buffer_clear(&pack->head);
    fm_buffer_clear(&pack->body);
    fm_buffer_add_varint(&pack->head, pack->clock.points.len - pack->clock_told);
    for (; pack->clock_told < pack->clock.points.len; pack->clock_told++) {
        const struct fm_clock_point *point = &pack->clock.points.data[pack->clock_told];
        fm_buffer_add_varint(&pack->head, point->ticks);
        fm_buffer_add_varint(&pack->head, point->ns);
    }
    give(pack, FM_BLOCK_TRACE_CLOCK);
}

static void emit_stretch(struct fm_trace_pack *pack, struct fm_stream *s)
{
    if (pack->clock_told < pack->clock.points.len)
        emit_clock(pack); /* first: whoever goes on from here needs it */
    if (!s->stretch.deltas.len)
        return;
    make_head(pack, s);
    fm_stretch_body(&s->stretch, &pack->body);
    give(pack, FM_BLOCK_TRACE_EVENTS);
    fm_pack_keyframe(s, s->stretch.last);
}

/* All of it is older than what is told. */
static void drop(struct fm_stream *s)
{
    fm_pack_keyframe(s, s->stretch.last);
    for (unsigned top = 1; top <= FM_LEVELS; top++)
        s->levels.done[top].cells.len = 0;
    fm_trace_marks_clear(&s->marks);
}

void fm_pack_emit(struct fm_trace_pack *pack, struct fm_stream *s, bool all)
{
    if (s->before) {
        drop(s);
        return;
    }
    emit_stretch(pack, s);
    for (unsigned top = 1; top <= FM_LEVELS; top++) {
        size_t cells = s->levels.done[top].cells.len;
        if (!cells || (!all && cells < CELLS_FULL))
            continue;
        fm_level_block(&s->levels, s->thread, top, &pack->head, &pack->body);
        give(pack, FM_BLOCK_TRACE_LEVELS);
    }
    if (s->marks.list.len && (all || s->marks.list.len >= MARKS_FULL)) {
        fm_trace_marks_block(&s->marks, s->thread, &pack->head, &pack->body);
        give(pack, FM_BLOCK_TRACE_MARKS);
    }
    fm_pack_emit_process(pack, all);
}

void fm_pack_emit_process(struct fm_trace_pack *pack, bool all)
{
    if (pack->clock_told < pack->clock.points.len)
        emit_clock(pack);
    if (pack->tasks.list.len && (all || pack->tasks.list.len >= MARKS_FULL)) {
        fm_trace_tasks_block(&pack->tasks, &pack->head, &pack->body);
        give(pack, FM_BLOCK_TRACE_TASKS);
    }
}
