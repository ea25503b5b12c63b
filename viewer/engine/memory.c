/*
 * Curves of memory and counts of blocks, for the page; see engine.h.
 *
 * A run of days has more looks at its memory than a page needs. Of as many neighbours as it takes, the one
 * with the most memory is kept: so peaks stay.
 */
#include <string.h>

#include "engine.h"
#include "record/capture/live_heap.h"

#define MAX_POINTS 50000u
#define MAX_MARKS  2000u /* more cannot be told apart */

static int64_t height(const struct fm_memory_point *point)
{
    return point->heap > point->rss ? point->heap : point->rss;
}

/* Of the points from `i` on that are of one process, at most `step`, the highest; `i` moves behind them. */
static const struct fm_memory_point *take_highest(const struct fm_memory *memory, size_t *i,
                                                  size_t step)
{
    const struct fm_memory_point *best = &memory->points.data[*i];
    for (size_t end = *i + step; *i < end && *i < memory->points.len; ++*i) {
        const struct fm_memory_point *point = &memory->points.data[*i];
        if (point->process != best->process)
            break;
        if (height(point) > height(best))
            best = point;
    }
    return best;
}

static void fill_points(struct fm_result *out, const struct fm_memory *memory)
{
    size_t step = memory->points.len / MAX_POINTS + 1, count = 0, i;
    for (i = 0; i < memory->points.len; count++)
        take_highest(memory, &i, step);
    fm_result_begin(out, (uint32_t)count);
    uint32_t *process = fm_result_u32(out);
    double *number[6];
    for (int k = 0; k < 6; k++)
        number[k] = fm_result_f64(out);
    i = 0;
    for (size_t row = 0; row < count; row++) {
        const struct fm_memory_point *point = take_highest(memory, &i, step);
        const double numbers[6] = {
            (double)point->at_ns, (double)point->heap, (double)point->rss,
            (double)point->pss,   (double)point->swap, (double)point->limit
        };
        process[row] = point->process;
        for (int k = 0; k < 6; k++)
            number[k][row] = numbers[k];
    }
}

/* What a bucket holds: from the first to below the second; nothing of kinds, which have names. */
static double bucket_from(uint32_t table, uint32_t bucket)
{
    if (table == FM_HEAP_SIZES)
        return bucket ? (double)((uint64_t)1 << bucket / 2 % 64) * (bucket % 2 ? 1.5 : 1) : 0;
    return table == FM_HEAP_LIVES && bucket ? (double)((uint64_t)1 << (bucket - 1) % 64) : 0;
}

static void fill_counts(struct fm_result *out, const struct fm_memory *memory)
{
    size_t count = memory->counts.len < FM_ENGINE_ROWS ? memory->counts.len : FM_ENGINE_ROWS;
    fm_result_begin(out, (uint32_t)count);
    uint32_t *process = fm_result_u32(out), *table = fm_result_u32(out);
    uint32_t *bucket = fm_result_u32(out);
    double *from = fm_result_f64(out), *to = fm_result_f64(out);
    double *blocks = fm_result_f64(out), *bytes = fm_result_f64(out);
    for (size_t i = 0; i < count; i++) {
        const struct fm_heap_count *c = &memory->counts.data[i];
        process[i] = c->process;
        table[i] = c->table;
        bucket[i] = c->bucket;
        from[i] = bucket_from(c->table, c->bucket);
        to[i] = bucket_from(c->table, c->bucket + 1);
        blocks[i] = (double)c->blocks;
        bytes[i] = (double)c->bytes;
    }
}

/* Calls and regions, and their names as text, each with a NUL behind it. */
static void fill_marks(struct fm_engine *e, const struct fm_profile *p)
{
    const struct fm_memory *memory = &p->memory;
    struct fm_result *out = &e->results[2];
    size_t count = memory->marks.len < MAX_MARKS ? memory->marks.len : MAX_MARKS;
    fm_result_begin(out, (uint32_t)count);
    uint32_t *process = fm_result_u32(out), *level = fm_result_u32(out);
    double *begin = fm_result_f64(out), *end = fm_result_f64(out);
    fm_buffer_clear(&e->text);
    for (size_t i = 0; i < count; i++) {
        const struct fm_memory_mark *mark = &memory->marks.data[i];
        process[i] = mark->process;
        level[i] = mark->level == FM_MARK_NO_LEVEL ? 0 : mark->level;
        begin[i] = (double)mark->begin_ns;
        end[i] = (double)mark->end_ns;
        const char *name = fm_profile_text(p, mark->name);
        fm_buffer_add(&e->text, name, strlen(name) + 1);
    }
}

int fm_engine_memory(struct fm_engine *e, int recording)
{
    struct fm_recording *r = fm_engine_recording(e, recording);
    if (!r)
        return -1;
    fill_points(&e->results[0], &r->p->memory);
    fill_counts(&e->results[1], &r->p->memory);
    fill_marks(e, r->p);
    return 0;
}
