/*
 * The lines of a live store; see live_lines.h.
 *
 * As everywhere in a live store, each record is copied once and only the copy is used. A line that
 * was prepared but never begun has no row. The store's buckets are of ticks: what a bucket counted
 * goes to the bucket of nanoseconds that holds its middle.
 */
#include "record/model/live/live_lines.h"

#include <string.h>

#include "record/capture/live.h"

static int64_t clamp(unsigned __int128 value)
{
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static int64_t ticks_ns(const struct fm_live_lines *l, uint64_t ticks)
{
    return clamp((unsigned __int128)ticks * l->rate_ns / l->rate_ticks);
}

/* The middle of a bucket of ticks: 1.25 or 1.75 times a power of two. */
static int64_t bucket_middle_ns(const struct fm_live_lines *l, unsigned bucket)
{
    unsigned __int128 quarters = (unsigned __int128)(bucket % 2 ? 7 : 5) << bucket / 2;
    return clamp(quarters * l->rate_ns / ((unsigned __int128)l->rate_ticks * 4));
}

static void add_visits(const struct fm_live_lines *l, struct fm_line *row, const uint32_t *visits)
{
    for (unsigned b = 0; b < FM_LIVE_LINE_BUCKETS; b++) {
        if (!visits[b])
            continue;
        struct fm_line_histogram *histogram = fm_lines_histogram(&l->p->lines, row);
        uint32_t *to = &histogram->buckets[fm_line_bucket(bucket_middle_ns(l, b))];
        if (__builtin_add_overflow(*to, visits[b], to))
            *to = UINT32_MAX;
    }
}

static void add_line(struct fm_live_lines *l, const struct fm_live_line *live)
{
    uint32_t func = live->func < l->function_count ? l->functions[live->func] : FM_NONE;
    if (func == FM_NONE || live->line == UINT32_MAX) {
        l->broken++;
        return;
    }
    struct fm_line *row = fm_lines_add(&l->p->lines, l->process, func, live->line, false);
    row->hits = clamp(live->hits);
    row->total_ns = ticks_ns(l, live->total_ticks);
    row->self_ns = ticks_ns(l, live->self_ticks);
    row->suspended_ns = ticks_ns(l, live->suspended_ticks);
    row->max_ns = ticks_ns(l, live->max_ticks);
    if (live->min_ticks != UINT64_MAX) {
        /* 0 means "none ended", so a visit shorter than a nanosecond took one. */
        int64_t min_ns = ticks_ns(l, live->min_ticks);
        row->min_ns = min_ns ? min_ns : 1;
        row->max_ns = row->max_ns ? row->max_ns : 1;
    }
    /* A recording that is over, or has only begun, has nothing alive. */
    row->memory = live->heap_after || live->heap_most || live->allocated || live->freed;
    row->allocated = clamp(live->allocated);
    row->freed = clamp(live->freed);
    row->heap_after = live->heap_after;
    row->heap_most = live->heap_most;
    row->above_most = live->above_most;
    add_visits(l, row, live->buckets);
}

void fm_live_lines_read(struct fm_live_lines *l, const struct fm_live_piece *chunk)
{
    for (uint32_t at = 0; chunk->used - at >= sizeof(struct fm_live_line);
         at += sizeof(struct fm_live_line)) {
        struct fm_live_line live;
        memcpy(&live, chunk->payload + at, sizeof live);
        if (live.hits || live.total_ticks)
            add_line(l, &live);
    }
}
