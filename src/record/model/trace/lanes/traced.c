/* Lanes of traced threads: what their blocks hold, and bodies on demand; see lanes.h. */
#include <string.h>

#include "base/memory.h"
#include "record/capture/format.h"
#include "record/model/trace/lanes/lanes.h"

#define HEAD_BYTES 128u /* enough for all facts but those of functions */

/* ---- reading ---- */

static bool read_payload(struct fm_timeline *t, const struct fm_trace *trace, uint32_t block,
                         size_t most)
{
    const struct fm_trace_block *at = &trace->blocks.data[block];
    size_t bytes = at->bytes < most ? at->bytes : most;
    fm_buffer_clear(&t->payload);
    fm_buffer_reserve(&t->payload, bytes);
    t->payload.len = bytes;
    return trace->source->read(trace->source->context, at->at, t->payload.data, bytes);
}

static struct fm_kept_body *oldest(struct fm_timeline *t)
{
    struct fm_kept_body *oldest = &t->kept[0];
    for (int i = 1; i < FM_TIMELINE_KEPT; i++)
        if (t->kept[i].used < oldest->used)
            oldest = &t->kept[i];
    return oldest;
}

const struct fm_kept_body *fm_timeline_body(struct fm_timeline *t, uint32_t trace, uint32_t block)
{
    struct fm_payload payload;
    for (int i = 0; i < FM_TIMELINE_KEPT; i++) {
        struct fm_kept_body *kept = &t->kept[i];
        if (kept->used && kept->trace == trace && kept->block == block) {
            kept->used = ++t->uses;
            return kept;
        }
    }
    const struct fm_trace *of = &t->p->traces.list.data[trace];
    const struct fm_given_block *given = NULL;
    if (of->blocks.data[block].away && !(given = fm_timeline_given(t, trace, block)))
        return NULL;
    struct fm_kept_body *kept = oldest(t);
    kept->used = 0;
    t->blocks_read++;
    if ((!given && !read_payload(t, of, block, SIZE_MAX)) ||
        !fm_payload_parse(&payload, given ? given->bytes : t->payload.data,
                          given ? given->len : t->payload.len) ||
        !fm_payload_unpack(&payload, &kept->body)) {
        t->damaged++;
        return NULL;
    }
    fm_buffer_clear(&kept->head);
    fm_buffer_add(&kept->head, payload.head, payload.head_len);
    kept->trace = trace;
    kept->block = block;
    kept->used = ++t->uses;
    return kept;
}

bool fm_timeline_head(struct fm_timeline *t, uint32_t trace, uint32_t block)
{
    const struct fm_trace *of = &t->p->traces.list.data[trace];
    size_t at, len;
    if (!read_payload(t, of, block, HEAD_BYTES) ||
        !fm_payload_head(t->payload.data, t->payload.len, &at, &len))
        return false;
    if (len > t->payload.len - at &&
        (!read_payload(t, of, block, at + len) || len > t->payload.len - at))
        return false;
    memmove(t->payload.data, t->payload.data + at, len);
    t->payload.len = len;
    return true;
}

/* ---- names ---- */

uint32_t fm_timeline_function(const struct fm_timeline *t, uint32_t trace, uint32_t subject)
{
    const struct fm_trace *of = &t->p->traces.list.data[trace];
    uint32_t id = subject >> 1, func = FM_NONE;
    if (!(subject & 1)) {
        func = id < of->functions.len ? of->functions.data[id] : FM_NONE;
    } else {
        uint32_t name = id & 1 ? 0 : id >> 1;
        func = name < of->regions.len ? of->regions.data[name] : FM_NONE;
    }
    return func == FM_NONE ? t->traces.data[trace].unknown : func;
}

uint32_t fm_timeline_name(const struct fm_timeline *t, uint32_t trace, uint32_t name)
{
    const struct fm_trace *of = &t->p->traces.list.data[trace];
    return name < of->names.len && of->names.data[name] != FM_NONE ? of->names.data[name] : 0;
}

/* ---- opening ---- */

static struct fm_traced_lane *lane_of(struct fm_timeline *t, size_t first, uint32_t number)
{
    for (size_t i = first; i < t->traced.len; i++)
        if (t->traced.data[i].number == number)
            return &t->traced.data[i];
    return NULL;
}

static void take_clock(struct fm_timeline_trace *trace, uint64_t shift_ns, struct fm_cursor *head)
{
    for (uint64_t count = fm_cursor_varint(head); count && !head->failed; count--) {
        uint64_t ticks = fm_cursor_varint(head), ns = fm_cursor_varint(head);
        if (!head->failed)
            fm_trace_clock_append(&trace->clock, ticks, ns + shift_ns);
    }
}

static bool take_stretch(struct fm_timeline *t, size_t first, struct fm_cursor *head,
                         struct fm_lane_block *block)
{
    struct fm_stretch_facts facts;
    struct fm_traced_lane *lane;
    if (!fm_stretch_facts(&facts, head) || !(lane = lane_of(t, first, facts.thread)))
        return false;
    block->begin = facts.begin;
    block->end = facts.end;
    block->count = facts.events;
    block->depth = facts.depth;
    lane->end = facts.end > lane->end ? facts.end : lane->end;
    fm_vec_push(&lane->stretches.list, *block);
    return true;
}

static bool take_level(struct fm_timeline *t, size_t first, struct fm_cursor *head,
                       struct fm_lane_block *block)
{
    struct fm_level_facts facts;
    struct fm_traced_lane *lane;
    if (!fm_level_facts(&facts, head) || !(lane = lane_of(t, first, facts.thread)))
        return false;
    block->begin = facts.begin;
    block->end = facts.end;
    block->count = facts.cells;
    block->top = (uint8_t)facts.top;
    block->width = (uint8_t)facts.width;
    fm_vec_push(&lane->levels.list, *block);
    return true;
}

static bool take_marks(struct fm_timeline *t, size_t first, struct fm_cursor *head,
                       struct fm_lane_block *block)
{
    struct fm_mark_facts facts;
    struct fm_traced_lane *lane;
    if (!fm_mark_facts(&facts, head) || !(lane = lane_of(t, first, facts.thread)))
        return false;
    block->begin = facts.begin;
    block->end = facts.end;
    block->count = facts.marks;
    block->kinds = facts.kinds;
    fm_vec_push(&lane->marks.list, *block);
    return true;
}

/* A clock's head is all there is of it; of others the beginning is enough. */
static bool take_block(struct fm_timeline *t, uint32_t number, uint32_t index, size_t first)
{
    const struct fm_trace *trace = &t->p->traces.list.data[number];
    struct fm_timeline_trace *known = &t->traces.data[number];
    uint16_t type = trace->blocks.data[index].type;
    struct fm_lane_block block = { .block = index };
    size_t at, len;
    if (type == FM_BLOCK_TRACE_TASKS) {
        fm_vec_push(&known->task_blocks, index);
        return true;
    }
    if (!read_payload(t, trace, index, type == FM_BLOCK_TRACE_CLOCK ? SIZE_MAX : HEAD_BYTES) ||
        !fm_payload_head(t->payload.data, t->payload.len, &at, &len))
        return false;
    len = len < t->payload.len - at ? len : t->payload.len - at;
    struct fm_cursor head = fm_cursor_over(t->payload.data + at, len);
    switch (type) {
    case FM_BLOCK_TRACE_EVENTS:
        return take_stretch(t, first, &head, &block);
    case FM_BLOCK_TRACE_LEVELS:
        return take_level(t, first, &head, &block);
    case FM_BLOCK_TRACE_MARKS:
        return take_marks(t, first, &head, &block);
    case FM_BLOCK_TRACE_CLOCK:
        take_clock(known, fm_run_clocks_shift_ns(&t->clocks, t->p, trace->process), &head);
        return true;
    default:
        return true;
    }
}

static int compare_blocks(const void *a, const void *b)
{
    const struct fm_lane_block *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->block < y->block ? -1 : x->block > y->block;
}

static void sort_blocks(struct fm_lane_blocks *blocks)
{
    if (blocks->list.len)
        qsort(blocks->list.data, blocks->list.len, sizeof *blocks->list.data, compare_blocks);
}

static void find_lanes(struct fm_timeline *t, uint32_t number)
{
    const struct fm_trace *trace = &t->p->traces.list.data[number];
    uint64_t shift_ns = fm_run_clocks_shift_ns(&t->clocks, t->p, trace->process);
    for (size_t i = 0; i < trace->streams.len; i++) {
        const struct fm_trace_stream *s = &trace->streams.data[i];
        struct fm_lane lane = { .kind = FM_LANE_TRACED,
                                .process = trace->process,
                                .thread = s->thread,
                                .begin_ns = s->begin_ns + shift_ns,
                                .end_ns =
                                    (s->end_ns > s->begin_ns ? s->end_ns : s->begin_ns) + shift_ns,
                                .events = s->events,
                                .lost = s->lost,
                                .depth = s->depth };
        struct fm_traced_lane traced = { .trace = number, .number = s->number };
        fm_vec_push(&t->lanes, lane);
        fm_vec_push(&t->traced, traced);
    }
}

/* Ticks of a trace without pairs are ns; they are moved as others. */
static void move_clock(struct fm_timeline *t, uint32_t number)
{
    struct fm_trace_clock *clock = &t->traces.data[number].clock;
    uint32_t process = t->p->traces.list.data[number].process;
    uint64_t shift_ns = fm_run_clocks_shift_ns(&t->clocks, t->p, process);
    if (clock->points.len || !shift_ns)
        return;
    fm_trace_clock_append(clock, 1, 1 + shift_ns);
    fm_trace_clock_append(clock, 1000000001, 1000000001 + shift_ns);
}

void fm_traced_find(struct fm_timeline *t)
{
    const struct fm_profile *p = t->p;
    for (uint32_t number = 0; number < p->traces.list.len; number++) {
        const struct fm_trace *trace = &p->traces.list.data[number];
        struct fm_timeline_trace known = { .unknown = 0 };
        size_t first = t->lanes.len;
        fm_vec_push(&t->traces, known);
        find_lanes(t, number);
        if (first < t->lanes.len)
            t->traces.data[number].unknown =
                p->nodes.data[p->threads.data[t->lanes.data[first].thread].root].func;
        for (uint32_t i = 0; i < trace->blocks.len; i++)
            t->damaged += !take_block(t, number, i, first);
        move_clock(t, number);
        for (size_t i = first; i < t->traced.len; i++) {
            sort_blocks(&t->traced.data[i].stretches);
            sort_blocks(&t->traced.data[i].levels);
            sort_blocks(&t->traced.data[i].marks);
        }
    }
}

void fm_traced_release(struct fm_timeline *t)
{
    for (size_t i = 0; i < t->traced.len; i++) {
        fm_vec_release(&t->traced.data[i].stretches.list);
        fm_vec_release(&t->traced.data[i].levels.list);
        fm_vec_release(&t->traced.data[i].marks.list);
    }
    for (size_t i = 0; i < t->traces.len; i++) {
        fm_trace_clock_release(&t->traces.data[i].clock);
        fm_vec_release(&t->traces.data[i].tasks.list);
        fm_vec_release(&t->traces.data[i].task_blocks);
    }
    for (int i = 0; i < FM_TIMELINE_KEPT; i++) {
        fm_buffer_release(&t->kept[i].head);
        fm_buffer_release(&t->kept[i].body);
    }
    fm_away_release(&t->away);
    fm_vec_release(&t->traced);
    fm_vec_release(&t->traces);
    fm_vec_release(&t->frames);
    fm_buffer_release(&t->payload);
}

size_t fm_lane_blocks_from(const struct fm_lane_blocks *blocks, uint64_t ticks)
{
    size_t low = 0, high = blocks->list.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (blocks->list.data[middle].end < ticks)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
