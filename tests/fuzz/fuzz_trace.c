/*
 * Fuzzes traces: the words of a chunk, and the payloads of blocks. The first byte says what the rest is:
 * words given to a packer, or the payload of a block (by type) that a timeline reads.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "../unit/trace_profile.h"
#include "../unit/trace_words.h"
#include "record/capture/format.h"
#include "record/model/trace/lanes/timeline.h"
#include "record/model/trace/pack/payload.h"

struct checks {
    uint64_t last_ns, open;
};

static bool check_event(void *context, const struct fm_lane_event *event)
{
    struct checks *c = context;
    if (event->span.end_ns < event->span.begin_ns)
        abort();
    if (event->ends && (!c->open-- || event->at_ns < c->last_ns))
        abort(); /* ends come in order, and nothing ends that did not begin */
    c->open += !event->ends;
    c->last_ns = event->ends ? event->at_ns : c->last_ns;
    return true;
}

static bool check_mark(void *context, const struct fm_mark *mark)
{
    (void)context;
    if (mark->end_ns < mark->begin_ns)
        abort();
    return true;
}

static bool check_task(void *context, const struct fm_traced_task *task)
{
    (void)context, (void)task;
    return true;
}

static void ask(struct fm_timeline *t, size_t lane)
{
    struct fm_cells cells = { 0 };
    struct fm_durations durations;
    struct fm_call_groups groups;
    struct checks checks = { 0 };
    uint64_t length = fm_timeline_length_ns(t);
    fm_timeline_events(t, lane, 0, UINT64_MAX, check_event, &checks, NULL);
    if (checks.open)
        abort();
    for (uint64_t cell = 1; cell < length && cell < (uint64_t)1 << 50; cell *= 1000)
        fm_timeline_cells(t, lane, 0, length, cell, &cells, NULL);
    fm_timeline_cells(t, lane, length / 3, length / 2, 1, &cells, NULL);
    fm_cells_release(&cells);
    fm_timeline_slowest(t, FM_NONE, 0, UINT64_MAX, 3, &durations, NULL);
    fm_durations_release(&durations);
    fm_timeline_groups(t, 1, 0, UINT64_MAX, &groups, NULL);
    fm_call_groups_release(&groups);
}

static void ask_all(struct fm_profile *p)
{
    struct fm_timeline *t = fm_timeline_open(p, NULL);
    for (size_t lane = 0; t && lane < fm_timeline_lanes(t); lane++)
        ask(t, lane);
    if (t) {
        fm_timeline_marks(t, FM_NONE, 0, UINT64_MAX, check_mark, NULL, NULL);
        fm_timeline_tasks(t, check_task, NULL, NULL);
    }
    fm_timeline_free(t);
}

static void try_words(const uint8_t *data, size_t size)
{
    struct trace_packed packed = trace_packed_new();
    struct fm_trace_pack *pack = fm_trace_pack_new(3, trace_sink, &packed);
    struct fm_profile *p = fm_profile_new();
    size_t count = size / 2, half = count / 2;
    uint16_t *words = calloc(count + 1, sizeof *words);
    memcpy(words, data, count * 2);
    fm_trace_pack_defined(pack, 100, 20);
    fm_trace_pack_clock(pack, 1000, 1000);
    fm_trace_pack_clock(pack, 2000, 1500);
    fm_trace_pack_chunk(pack, 1, 1, 1000, 1000, words, half);
    fm_trace_pack_chunk(pack, 2, 1, 3000, 2000, words + half, count - half);
    fm_trace_pack_flush(pack);
    fm_trace_pack_chunk(pack, 1, 1, 0, 0, words + half, count - half);
    fm_trace_pack_end(pack, 0);
    trace_add(p, pack, &packed, 7, 100, 20);
    ask_all(p);
    fm_profile_free(p);
    fm_trace_pack_free(pack);
    free(words);
}

static void try_block(uint16_t type, const uint8_t *data, size_t size)
{
    struct trace_packed packed = trace_packed_new();
    struct fm_trace_pack *pack = fm_trace_pack_new(3, trace_sink, &packed);
    struct fm_profile *p = fm_profile_new();
    const uint16_t words[] = { FM_TRACE_CALL | 400, 1, FM_TRACE_RETURN | 400 };
    fm_trace_pack_clock(pack, 1000, 1000);
    fm_trace_pack_chunk(pack, 1, 1, 1000, 1000, words, 3);
    if (size & 1)
        fm_trace_pack_cut(pack, 1200);
    if (!fm_trace_pack_reopen(pack, type, data, size))
        trace_sink(&packed, type, data, size);
    struct fm_cursor state = fm_cursor_over(data, size);
    fm_trace_pack_take_state(pack, &state);
    fm_trace_pack_end(pack, 0);
    trace_add(p, pack, &packed, 7, 100, 20);
    ask_all(p);
    fm_profile_free(p);
    fm_trace_pack_free(pack);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint16_t types[] = { FM_BLOCK_TRACE_EVENTS, FM_BLOCK_TRACE_LEVELS,
                                      FM_BLOCK_TRACE_MARKS, FM_BLOCK_TRACE_TASKS,
                                      FM_BLOCK_TRACE_CLOCK };
    if (!size)
        return 0;
    if (data[0] % 6 == 0)
        try_words(data + 1, size - 1);
    else
        try_block(types[data[0] % 6 - 1], data + 1, size - 1);
    return 0;
}

/* ---- seeds ---- */

static void keep_payload(void *context, uint16_t type, const void *payload, size_t bytes)
{
    struct fm_buffer *kept = (struct fm_buffer *)context + (type - FM_BLOCK_TRACE_EVENTS);
    fm_autobuffer head = FM_BUFFER_INIT, body = FM_BUFFER_INIT;
    struct fm_payload parts;
    if (!fm_payload_parse(&parts, payload, bytes) || !fm_payload_unpack(&parts, &body))
        abort();
    fm_buffer_add(&head, parts.head, parts.head_len);
    fm_payload_make(NULL, &head, &body, kept); /* not compressed, so that mutations meet it */
}

static void make_words(struct trace_words *w)
{
    uint64_t now = 1000;
    words_begin(w, now);
    words_call(w, now += 80, 1);
    for (uint32_t i = 0; i < 400; i++) {
        words_call(w, now += 160, 2 + i % 30);
        words_escape(w, now += 8, FM_TRACE_REGION_BEGIN, (const uint32_t[]){ 1 + i % 5 }, 1);
        if (i % 7 == 0)
            words_escape(w, now, FM_TRACE_COUNTER, (const uint32_t[]){ 3, i, 7 }, 3);
        words_escape(w, now += 8, FM_TRACE_TASK_STEP, (const uint32_t[]){ i % 4 }, 1);
        words_escape(w, now += 400000, FM_TRACE_REGION_END, (const uint32_t[]){ 1 + i % 5 }, 1);
        words_return(w, now += 800);
    }
    words_escape(w, now, FM_TRACE_TASK_NEW, (const uint32_t[]){ 1, 2, 0 }, 3);
    words_escape(w, now, FM_TRACE_LOST, (const uint32_t[]){ 9, 0, (uint32_t)now, 0, 0, 0 }, 6);
    words_escape(w, now += 80, FM_TRACE_OPEN, (const uint32_t[]){ 1, 1000, 0 }, 3);
    words_escape(w, now += 80, FM_TRACE_UNWIND, NULL, 0);
}

bool fuzz_seed(unsigned n, struct fm_buffer *out)
{
    static const unsigned block_of[] = { 0, 0, 1, 2, 5, 6 }; /* by first byte: type − EVENTS */
    struct fm_buffer kept[8] = { 0 };
    struct trace_words *w = calloc(1, sizeof *w);
    if (n >= 6) {
        free(w);
        return false;
    }
    w->pack = fm_trace_pack_new(3, keep_payload, kept);
    w->thread = 1;
    w->shift = 3;
    fm_trace_pack_clock(w->pack, 1000, 1000);
    fm_trace_pack_clock(w->pack, 2000, 1500);
    make_words(w);
    fm_buffer_add_char(out, (char)n);
    if (!n) {
        fm_buffer_add(out, w->words, w->count * 2);
    } else {
        words_hand_over(w);
        fm_trace_pack_end(w->pack, 0);
        fm_buffer_add(out, kept[block_of[n]].data, kept[block_of[n]].len);
    }
    for (int i = 0; i < 8; i++)
        fm_buffer_release(&kept[i]);
    fm_trace_pack_free(w->pack);
    free(w);
    return true;
}
