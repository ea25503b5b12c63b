/*
 * Curves of memory and counts of blocks, for the page; see engine.h.
 *
 * A run of days has more looks at its memory than a page needs. Of as many neighbours as it takes, the one
 * with the most memory is kept: so peaks stay.
 */
#include "engine.h"
#include "json.h"
#include "record/capture/live_heap.h"
#include "record/model/regions.h"

#define MAX_POINTS    50000u
#define MAX_VISITS    2000u /* more cannot be told apart */
#define MAX_PROCESSES 64u   /* whose regions are listed one by one */
#define MAX_REGIONS   5000u
#define MAX_RESIDENTS 1000u

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

/* ---- regions ---- */

/* Visits, and into the text what they are called. */
static void fill_marks(struct fm_result *out, struct fm_buffer *text, const struct fm_profile *p)
{
    size_t count = p->memory.marks.len < MAX_VISITS ? p->memory.marks.len : MAX_VISITS;
    struct fm_map names = { 0 };
    fm_result_begin(out, (uint32_t)count);
    uint32_t *process = fm_result_u32(out), *name = fm_result_u32(out);
    uint32_t *level = fm_result_u32(out), *thread = fm_result_u32(out);
    double *begin = fm_result_f64(out), *end = fm_result_f64(out);
    double *begin_bytes = fm_result_f64(out), *end_bytes = fm_result_f64(out);
    json_key(text, "names");
    fm_buffer_add_char(text, '[');
    for (size_t i = 0; i < count; i++) {
        const struct fm_memory_mark *mark = &p->memory.marks.data[i];
        bool is_new;
        process[i] = mark->process;
        name[i] = *fm_map_at(&names, mark->name, (uint32_t)names.len, &is_new);
        level[i] = mark->level == FM_MARK_NO_LEVEL ? 0 : mark->level;
        thread[i] = mark->thread;
        begin[i] = (double)mark->begin_ns;
        end[i] = (double)mark->end_ns;
        begin_bytes[i] = (double)mark->begin_bytes;
        end_bytes[i] = (double)mark->end_bytes;
        if (!is_new)
            continue;
        json_next(text);
        json_text(text, fm_profile_text(p, mark->name), fm_strings_len(p->strings, mark->name));
    }
    json_close(text, ']');
    fm_map_release(&names);
}

/* Of one process, or with FM_NONE of all together: each followed by those inside of it. */
static void write_regions(struct fm_buffer *out, const struct fm_profile *p, uint32_t process)
{
    struct fm_regions regions = fm_regions_combined(p, process);
    for (size_t i = 0; i < regions.rows.len && i < MAX_REGIONS; i++) {
        const struct fm_region_row *row = &regions.rows.data[i];
        json_open(out, '{');
        json_int(out, "process", process == FM_NONE ? -1 : (int64_t)process);
        json_int(out, "around", row->around == FM_NONE ? -1 : (int64_t)row->around);
        json_string(out, "name", p->strings, row->name);
        json_int(out, "entered", row->entered);
        json_int(out, "open", row->open);
        json_int(out, "ns", row->ns);
        json_bool(out, "memory", row->memory);
        json_int(out, "allocated", row->allocated);
        json_int(out, "freed", row->freed);
        json_int(out, "aboveMost", row->above_most);
        json_close(out, '}');
    }
    fm_regions_release(&regions);
}

static void write_all_regions(struct fm_buffer *out, const struct fm_profile *p)
{
    bool any = p->regions.rows.len > 0;
    json_key(out, "regions");
    fm_buffer_add_char(out, '[');
    if (any)
        write_regions(out, p, FM_NONE);
    for (uint32_t i = 0; any && i < p->processes.len && i < MAX_PROCESSES; i++)
        write_regions(out, p, i);
    json_close(out, ']');
}

/* ---- what resident memory was made of ---- */

static void write_residents(struct fm_buffer *out, const struct fm_memory *memory)
{
    json_key(out, "parts");
    fm_buffer_add_char(out, '[');
    for (int part = 0; part < FM_RESIDENT_PARTS; part++)
        fm_buffer_addf(out, "%s\"%s\"", part ? "," : "",
                       fm_resident_title((enum fm_resident_part)part));
    json_close(out, ']');
    json_key(out, "residents");
    fm_buffer_add_char(out, '[');
    for (size_t i = 0; i < memory->residents.len && i < MAX_RESIDENTS; i++) {
        const struct fm_resident *account = &memory->residents.data[i];
        json_open(out, '{');
        json_int(out, "process", account->process);
        json_bool(out, "highest", account->when == FM_RESIDENT_HIGHEST);
        json_int(out, "ns", (int64_t)(account->at_ns & INT64_MAX));
        json_int(out, "rss", account->rss);
        json_int(out, "untouched", account->untouched);
        json_key(out, "bytes");
        fm_buffer_add_char(out, '[');
        for (int part = 0; part < FM_RESIDENT_PARTS; part++)
            fm_buffer_addf(out, "%s%lld", part ? "," : "", (long long)account->parts[part]);
        json_close(out, ']');
        json_close(out, '}');
    }
    json_close(out, ']');
}

int fm_engine_memory(struct fm_engine *e, int recording)
{
    struct fm_recording *r = fm_engine_recording(e, recording);
    if (!r)
        return -1;
    fill_points(&e->results[0], &r->p->memory);
    fill_counts(&e->results[1], &r->p->memory);
    fm_buffer_clear(&e->text);
    fm_buffer_add_char(&e->text, '{');
    fill_marks(&e->results[2], &e->text, r->p);
    write_all_regions(&e->text, r->p);
    write_residents(&e->text, &r->p->memory);
    fm_buffer_add_char(&e->text, '}');
    return 0;
}
