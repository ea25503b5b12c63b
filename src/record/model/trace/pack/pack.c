/* The packer of the trace of a process: its chunks, one after the other; see pack.h, packing.h. */
#include "record/model/trace/pack/pack.h"

#include "base/memory.h"
#include "record/capture/format.h"
#include "record/model/trace/lanes/timeline.h"
#include "record/model/trace/pack/packing.h"

struct fm_trace_pack *fm_trace_pack_new(uint32_t shift, fm_trace_sink *sink, void *context)
{
    struct fm_trace_pack *pack = fm_calloc(1, sizeof *pack);
    pack->shift = shift < 32 ? shift : 0;
    pack->sink = sink;
    pack->context = context;
    pack->packer = fm_payload_packer_new();
    pack->functions = pack->names = UINT32_MAX;
    return pack;
}

/* What only packing needs: most of it all, and a run may have thousands of processes that ended. */
static void release_packing(struct fm_trace_pack *pack)
{
    for (size_t i = 0; i < pack->streams.len; i++)
        fm_pack_stream_free(pack->streams.data[i]);
    fm_payload_packer_free(pack->packer);
    pack->packer = NULL;
    fm_buffer_release(&pack->head);
    fm_buffer_release(&pack->body);
    fm_buffer_release(&pack->payload);
    fm_vec_release(&pack->streams);
    fm_map_release(&pack->stream_of);
    fm_map_release(&pack->children);
    fm_vec_release(&pack->tasks.list);
    fm_vec_release(&pack->async);
}

void fm_trace_pack_free(struct fm_trace_pack *pack)
{
    if (!pack)
        return;
    release_packing(pack);
    fm_vec_release(&pack->threads);
    fm_vec_release(&pack->nodes);
    fm_trace_clock_release(&pack->clock);
    fm_vec_release(&pack->region_names);
    free(pack);
}

void fm_trace_pack_clock(struct fm_trace_pack *pack, uint64_t ticks, uint64_t ns)
{
    fm_trace_clock_add(&pack->clock, ticks, ns);
}

void fm_trace_pack_defined(struct fm_trace_pack *pack, uint32_t functions, uint32_t names)
{
    pack->functions = functions;
    pack->names = names;
}

/* ---- chunks ---- */

/* The pair of a chunk: if the clock jumped on the way here, it is marked. */
static void take_pair(struct fm_trace_pack *pack, struct fm_stream *s, uint64_t ticks, uint64_t ns)
{
    size_t count = pack->clock.points.len;
    if (!ticks || !ns || !fm_trace_clock_add(&pack->clock, ticks, ns) || !count)
        return;
    const struct fm_clock_point *points = pack->clock.points.data;
    struct fm_trace_mark mark = { .begin = points[count - 1].ticks,
                                  .end = ticks,
                                  .kind = FM_MARK_CLOCK,
                                  .value = points[count].ns - points[count - 1].ns };
    if (points[count].jump)
        fm_pack_mark(s, &mark);
}

/* One record. False: the rest of the chunk is not to be believed. */
static inline bool take_word(struct fm_trace_pack *pack, struct fm_stream *s,
                             const struct fm_word *word, uint64_t ticks)
{
    if (word->op == FM_TRACE_ESCAPE) {
        fm_pack_escape(pack, s, word, ticks);
        return true;
    }
    s->reopening = false;
    if (word->op == FM_TRACE_CALL) {
        if (word->func > pack->functions || word->func >= FM_EVENT_ID_MAX)
            return false;
        if (!word->resumes)
            fm_pack_call(pack, s, word->func, ticks);
        else
            fm_pack_begin(pack, s, fm_event_begin(word->func, FM_EVENT_RESUME), ticks,
                          s->suspended);
        return true;
    }
    if (!fm_pack_end_call(pack, s, word->op == FM_TRACE_YIELD ? FM_EVENT_YIELD : FM_EVENT_RETURN,
                          ticks))
        pack->broken++;
    return true;
}

void fm_pack_begin_stream(struct fm_trace_pack *pack, struct fm_stream *s, uint64_t ticks)
{
    if (s->begun)
        return;
    s->begun = true;
    s->before = ticks < pack->from;
    s->ticks = ticks;
    pack->threads.data[s->index].first_ticks = ticks & pack->grid;
    fm_pack_keyframe(s, ticks & pack->grid);
}

void fm_trace_pack_chunk(struct fm_trace_pack *pack, uint32_t thread, uint32_t tid, uint64_t ticks,
                         uint64_t ns, const uint16_t *words, size_t count)
{
    struct fm_stream *s = count && words[0] ? fm_pack_stream(pack, thread, tid) : NULL;
    struct fm_word word;
    if (!s || ticks >= FM_WORDS_TICKS_MAX)
        return;
    take_pair(pack, s, ticks, ns);
    if (s->begun && ticks < s->ticks)
        ticks = s->ticks;
    struct fm_words w = fm_words_over(words, count, pack->shift, ticks);
    bool there = s->begun && !s->before && !pack->until;
    while (fm_words_next(&w, &word)) {
        if (__builtin_expect(!there, 0)) {
            s->stopped = pack->until && w.ticks > pack->until;
            if (s->stopped)
                break;
            there = fm_pack_arrive(pack, s, w.ticks) && !pack->until;
        }
        if (!take_word(pack, s, &word, w.ticks)) {
            pack->broken++;
            break;
        }
    }
    pack->broken += w.bad;
    struct fm_trace_thread *known = &pack->threads.data[s->index];
    known->last_ticks = s->ticks & pack->grid;
    pack->last = s->ticks > pack->last ? s->ticks : pack->last;
}

/* ---- ends ---- */

static void end_stream(struct fm_trace_pack *pack, struct fm_stream *s, uint64_t ticks)
{
    if (!s)
        return;
    ticks = ticks > s->ticks ? ticks : s->ticks;
    if (s->begun && ticks >= pack->from)
        fm_pack_arrive(pack, s, ticks);
    fm_pack_end_step(s, ticks);
    s->beyond = 0;
    while (s->frames.len)
        fm_pack_end_frame(pack, s, FM_EVENT_CLOSE, ticks);
    pack->threads.data[s->index].last_ticks = s->ticks & pack->grid;
    fm_levels_end(&s->levels);
    fm_pack_emit(pack, s, true);
    if (s->before || (s->stopped && !s->begun))
        fm_pack_leave_out(pack, s);
    pack->streams.data[s->index] = NULL;
    fm_pack_stream_free(s);
}

static struct fm_stream *find_stream(const struct fm_trace_pack *pack, uint32_t thread)
{
    const uint32_t *index = fm_map_find(&pack->stream_of, thread);
    return index && *index < pack->streams.len ? pack->streams.data[*index] : NULL;
}

void fm_trace_pack_thread_end(struct fm_trace_pack *pack, uint32_t thread)
{
    struct fm_stream *s = find_stream(pack, thread);
    if (s && !s->stopped)
        end_stream(pack, s, s->ticks);
}

void fm_trace_pack_flush(struct fm_trace_pack *pack)
{
    for (size_t i = 0; i < pack->streams.len; i++)
        if (pack->streams.data[i] && pack->streams.data[i]->begun)
            fm_pack_emit(pack, pack->streams.data[i], true);
    fm_pack_emit_process(pack, true);
}

void fm_trace_pack_end(struct fm_trace_pack *pack, uint64_t end_ticks)
{
    uint64_t ticks = end_ticks && end_ticks < FM_WORDS_TICKS_MAX ? end_ticks : pack->last;
    ticks = ticks > pack->from ? ticks : pack->from;
    for (size_t i = 0; i < pack->streams.len; i++)
        end_stream(pack, pack->streams.data[i], ticks);
    fm_pack_emit_process(pack, true);
    release_packing(pack);
}

/* ---- what is known ---- */

const struct fm_trace_node *fm_trace_pack_nodes(const struct fm_trace_pack *pack, size_t *count)
{
    *count = pack->nodes.len;
    return pack->nodes.data;
}

const struct fm_trace_thread *fm_trace_pack_threads(const struct fm_trace_pack *pack, size_t *count)
{
    *count = pack->threads.len;
    return pack->threads.data;
}

uint64_t fm_trace_pack_lost_nodes(const struct fm_trace_pack *pack)
{
    return pack->lost_nodes;
}

bool fm_trace_pack_goes_on(const struct fm_trace_pack *pack, uint32_t thread)
{
    return find_stream(pack, thread) != NULL;
}

uint64_t fm_trace_pack_broken(const struct fm_trace_pack *pack)
{
    return pack->broken;
}

const uint8_t *fm_trace_pack_region_names(const struct fm_trace_pack *pack, size_t *count)
{
    *count = pack->region_names.len;
    return pack->region_names.data;
}

uint64_t fm_trace_pack_instant_ns(const struct fm_trace_pack *pack, uint64_t ticks)
{
    struct fm_trace_clock clock = pack->clock;
    return fm_trace_clock_ns(&clock, ticks);
}

uint64_t fm_trace_pack_length_ns(const struct fm_trace_pack *pack, uint64_t ticks)
{
    return fm_trace_clock_length_ns(&pack->clock, ticks);
}

void fm_trace_pack_credit_open(const struct fm_trace_pack *pack, struct fm_trace_node *nodes,
                               uint64_t ticks)
{
    for (size_t i = 0; i < pack->streams.len; i++) {
        const struct fm_stream *s = pack->streams.data[i];
        for (size_t k = 0; s && k < s->frames.len; k++) {
            const struct fm_pack_frame *frame = &s->frames.data[k];
            if (!(frame->flags & FM_FRAME_NO_NODE) && frame->entered < ticks)
                nodes[frame->node].total_ticks += ticks - frame->entered;
        }
    }
}
