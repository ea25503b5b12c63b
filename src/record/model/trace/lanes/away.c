/*
 * Blocks of events that are away: wanted when they are needed, given by whoever fetched them; see
 * timeline.h, traces.h.
 */
#include <stdlib.h>

#include "record/model/trace/lanes/lanes.h"

static uint64_t key_of(uint32_t trace, uint32_t block)
{
    return fm_map_pair(trace, block);
}

const struct fm_given_block *fm_timeline_given(struct fm_timeline *t, uint32_t trace,
                                               uint32_t block)
{
    struct fm_away_blocks *away = &t->away;
    const struct fm_trace_block *of = &t->p->traces.list.data[trace].blocks.data[block];
    const uint32_t *given = fm_map_find(&away->given, key_of(trace, block));
    bool is_new;
    if (given)
        return &away->list.data[*given];
    if (!of->away_bytes) {
        away->nowhere = true;
        return NULL;
    }
    fm_map_at(&away->asked, key_of(trace, block), 0, &is_new);
    if (is_new)
        fm_vec_push(&away->wanted,
                    ((struct fm_wanted_block){ trace, block, of->away_bytes, of->away_at }));
    return NULL;
}

bool fm_timeline_events_here(struct fm_timeline *t, const struct fm_traced_lane *lane,
                             uint64_t from, uint64_t to)
{
    const struct fm_lane_blocks *blocks = &lane->stretches;
    bool here = true;
    for (size_t i = fm_lane_blocks_from(blocks, from); i < blocks->list.len; i++) {
        const struct fm_lane_block *block = &blocks->list.data[i];
        if (block->begin >= to)
            break;
        if (t->p->traces.list.data[lane->trace].blocks.data[block->block].away &&
            !fm_timeline_given(t, lane->trace, block->block))
            here = false;
    }
    return here;
}

size_t fm_timeline_wanted(const struct fm_timeline *t, const struct fm_wanted_block **list)
{
    *list = t->away.wanted.data;
    return t->away.wanted.len;
}

void fm_timeline_forget_wanted(struct fm_timeline *t)
{
    fm_map_release(&t->away.asked);
    t->away.asked = (struct fm_map){ 0 };
    t->away.wanted.len = 0;
    t->away.nowhere = false;
}

void fm_timeline_give(struct fm_timeline *t, uint32_t trace, uint32_t block, void *bytes,
                      size_t len)
{
    bool is_new = false;
    if (trace < t->p->traces.list.len && block < t->p->traces.list.data[trace].blocks.len)
        fm_map_at(&t->away.given, key_of(trace, block), (uint32_t)t->away.list.len, &is_new);
    if (is_new)
        fm_vec_push(&t->away.list, ((struct fm_given_block){ bytes, len }));
    else
        free(bytes);
}

bool fm_timeline_left_out(const struct fm_timeline *t)
{
    return t->away.nowhere;
}

void fm_away_release(struct fm_away_blocks *away)
{
    for (size_t i = 0; i < away->list.len; i++)
        free(away->list.data[i].bytes);
    fm_vec_release(&away->list);
    fm_vec_release(&away->wanted);
    fm_map_release(&away->given);
    fm_map_release(&away->asked);
}

void fm_timeline_blocks_between(struct fm_timeline *t, uint64_t from_ns, uint64_t to_ns,
                                fm_block_place_fn *each, void *context)
{
    for (size_t i = 0; i < t->traced.len; i++) {
        const struct fm_traced_lane *lane = &t->traced.data[i];
        const struct fm_trace *trace = &t->p->traces.list.data[lane->trace];
        const struct fm_trace_clock *clock = fm_timeline_clock(t, lane->trace);
        uint64_t from = fm_trace_clock_ticks(clock, from_ns + t->start_ns);
        uint64_t to = fm_trace_clock_ticks(clock, to_ns + t->start_ns);
        for (size_t k = fm_lane_blocks_from(&lane->stretches, from); k < lane->stretches.list.len;
             k++) {
            const struct fm_lane_block *block = &lane->stretches.list.data[k];
            if (block->begin > to)
                break;
            each(context, trace->blocks.data[block->block].at,
                 trace->blocks.data[block->block].bytes);
        }
    }
}
