/*
 * From when on a packer tells, and until when; see pack.h, packing.h.
 *
 * What happened before is followed all the same, as far as there are words or payloads of it, so that what is
 * open is known. When a thread arrives at the instant it begins anew: another tree, another stretch whose
 * keyframe has what is open, no levels and no marks of before.
 */
#include "record/model/trace/lanes/timeline.h"
#include "record/model/trace/pack/packing.h"

void fm_trace_pack_cut(struct fm_trace_pack *pack, uint64_t from_ns)
{
    if (!pack->grid)
        fm_pack_set_grid(pack);
    pack->from =
        pack->clock.points.len ? fm_trace_clock_ticks(&pack->clock, from_ns) & pack->grid : 0;
}

void fm_trace_pack_until(struct fm_trace_pack *pack, uint64_t ticks)
{
    pack->until = ticks;
}

void fm_pack_cut_marks(const struct fm_trace_pack *pack, struct fm_stream *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->marks.list.len; i++)
        if (s->marks.list.data[i].end >= pack->from)
            s->marks.list.data[kept++] = s->marks.list.data[i];
    s->marks.list.len = kept;
}

static void begin_anew(struct fm_trace_pack *pack, struct fm_stream *s)
{
    struct fm_trace_thread *thread = &pack->threads.data[s->index];
    s->before = false;
    s->lost_some |= thread->lost != 0;
    fm_pack_new_tree(pack, s, pack->from);
    fm_pack_keyframe(s, pack->from);
    s->levels.rows.len = 0;
    for (unsigned top = 0; top <= FM_LEVELS; top++)
        s->levels.done[top].cells.len = s->levels.skip[top] = 0;
    fm_pack_cut_marks(pack, s);
    thread->first_ticks = pack->from;
    thread->depth = (uint32_t)s->frames.len;
    thread->events = thread->lost = 0;
}

bool fm_pack_arrive(struct fm_trace_pack *pack, struct fm_stream *s, uint64_t ticks)
{
    fm_pack_begin_stream(pack, s, ticks);
    if (s->before && ticks >= pack->from)
        begin_anew(pack, s);
    return !s->before;
}

void fm_pack_leave_out(struct fm_trace_pack *pack, struct fm_stream *s)
{
    struct fm_trace_thread *thread = &pack->threads.data[s->index];
    pack->nodes.data[thread->root].thread = FM_NONE;
    thread->thread = 0;
    thread->events = thread->lost = 0;
}
