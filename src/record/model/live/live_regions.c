/*
 * The regions of a live store; see live_regions.h, and target/agent/regions/regions.h for what the records mean.
 *
 * Invariants:
 *  1. A region's id is one more than that of the one defined before it, and the one around it was defined
 *     before. So there are no cycles, and no memory is taken by what a number claims.
 *  2. A visit that runs names its meter. The highest that the meter stood since it began is the
 *     greatest `high` of those that began or went on in the same thread no earlier, and `top`.
 */
#include "record/model/live/live_regions.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct reading {
    struct fm_live_loader *l;
    size_t first_row; /* of this process, in the profile */
    FM_VEC(struct fm_live_meter) meters;
    FM_VEC(struct fm_live_visit) visits;
};

static int64_t clamp(uint64_t value)
{
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

void fm_live_define_region(struct fm_live_loader *l, struct fm_cursor *c)
{
    uint64_t id = fm_cursor_varint(c);
    uint64_t around = fm_cursor_varint(c);
    uint64_t len = fm_cursor_varint(c);
    const uint8_t *name = fm_cursor_bytes(c, len);
    if (c->failed || id != l->regions + 1 || around >= id) {
        l->broken_records++;
        return;
    }
    uint32_t first = (uint32_t)(l->p->regions.rows.len - l->regions);
    struct fm_region_row row = {
        .process = l->process_id,
        .around = around ? first + (uint32_t)around - 1 : FM_NONE,
        .name = len ? fm_strings_add(l->p->strings, name, (size_t)len) : 0,
    };
    fm_vec_push(&l->p->regions.rows, row);
    l->regions++;
}

/* The row of a region by its id; NULL if it was never defined. */
static struct fm_region_row *row_of(const struct reading *r, uint32_t id)
{
    return id && id <= r->l->regions ? &r->l->p->regions.rows.data[r->first_row + id - 1] : NULL;
}

/* Ticks since a reading of the clock may be less than none: what was taken for running was a wait. At least 1, as 0
 * means that it is not known, and no more than the time. */
static int64_t cpu_of(const struct reading *r, const struct fm_live_region *live, int64_t total_ns)
{
    int64_t ticks = live->cpu_ticks == INT64_MIN ? INT64_MAX : live->cpu_ticks;
    int64_t since = fm_live_ticks_ns(r->l, (uint64_t)(ticks < 0 ? -ticks : ticks));
    int64_t ns = fm_sum(live->cpu_ns, ticks < 0 ? -since : since);
    if (!live->cpu_ended)
        return 0;
    ns = ns < total_ns ? ns : total_ns;
    return ns > 0 ? ns : 1;
}

static void add_region(struct reading *r, const struct fm_live_region *live)
{
    struct fm_region_row *row = row_of(r, live->id);
    if (!row || row->entered) {
        r->l->broken_records++;
        return;
    }
    row->entered = clamp(live->entered);
    row->ns = fm_live_ticks_ns(r->l, live->total_ticks);
    row->suspended_ns = fm_live_ticks_ns(r->l, live->suspended_ticks);
    row->max_ns = fm_live_ticks_ns(r->l, live->max_ticks);
    if (live->ended && live->min_ticks != UINT64_MAX) {
        int64_t min_ns = fm_live_ticks_ns(r->l, live->min_ticks);
        row->min_ns = min_ns ? min_ns : 1; /* 0 means "none" */
        row->max_ns = row->max_ns ? row->max_ns : 1;
    }
    row->cpu_ns = cpu_of(r, live, row->ns);
    row->memory = r->meters.len && r->meters.data[0].on;
    row->allocated = clamp(live->allocated);
    row->freed = clamp(live->freed);
    row->above_most = live->above_most;
}

/* ---- visits ---- */

/* Those that run in one thread stand together, the newest first. */
static int compare_visits(const void *a, const void *b)
{
    const struct fm_live_visit *x = a, *y = b;
    bool x_runs = x->state == FM_LIVE_VISIT_RUNS, y_runs = y->state == FM_LIVE_VISIT_RUNS;
    if (x_runs != y_runs)
        return x_runs ? -1 : 1;
    if (x_runs && x->meter != y->meter)
        return x->meter < y->meter ? -1 : 1;
    if (x->order != y->order)
        return x->order > y->order ? -1 : 1;
    return 0;
}

/* What an open visit has of memory, with what it does now. */
static void add_open_memory(struct reading *r, struct fm_region_row *row,
                            const struct fm_live_visit *visit, int64_t highest)
{
    uint64_t allocated = visit->had_allocated, freed = visit->had_freed;
    int64_t above = visit->above;
    if (visit->state == FM_LIVE_VISIT_RUNS && visit->meter < r->meters.len) {
        const struct fm_live_meter *meter = &r->meters.data[visit->meter];
        int64_t found = (int64_t)(visit->allocated - visit->freed);
        int64_t before = (int64_t)(visit->had_allocated - visit->had_freed);
        int64_t stood = (int64_t)((uint64_t)highest - (uint64_t)found + (uint64_t)before);
        above = stood > above ? stood : above;
        allocated += meter->allocated - visit->allocated;
        freed += meter->freed - visit->freed;
    }
    row->allocated = fm_sum(row->allocated, clamp(allocated));
    row->freed = fm_sum(row->freed, clamp(freed));
    row->above_most = above > row->above_most ? above : row->above_most;
}

/* An open visit lasts until the end of the process. */
static void add_open(struct reading *r, const struct fm_live_visit *visit, int64_t highest)
{
    struct fm_live_loader *l = r->l;
    struct fm_region_row *row = row_of(r, visit->region);
    uint64_t end = l->end_ticks, suspended = visit->suspended_ticks;
    if (visit->state == FM_LIVE_VISIT_WAITS && end > visit->since_ticks)
        suspended += end - visit->since_ticks;
    row->open++;
    if (end > visit->begin_ticks)
        row->ns = fm_sum(row->ns, fm_live_ticks_ns(l, end - visit->begin_ticks));
    row->suspended_ns = fm_sum(row->suspended_ns, fm_live_ticks_ns(l, suspended));
    add_open_memory(r, row, visit, highest);
}

static void add_mark(struct reading *r, const struct fm_live_visit *visit)
{
    struct fm_live_loader *l = r->l;
    bool ended = visit->state == FM_LIVE_VISIT_ENDED;
    struct fm_memory_mark mark = {
        .process = l->process_id,
        .name = row_of(r, visit->region)->name,
        .level = visit->level,
        .thread = visit->tid,
        .begin_ns = fm_live_instant_ns(l, visit->begin_ticks),
        .end_ns = ended ? fm_live_instant_ns(l, visit->end_ticks) : l->process.end_ns,
        .begin_bytes = visit->heap_begin > 0 ? visit->heap_begin : -1,
        .end_bytes = ended && visit->heap_end > 0 ? visit->heap_end : -1,
    };
    if (mark.end_ns >= mark.begin_ns && mark.level < FM_MARK_NO_LEVEL)
        fm_vec_push(&l->p->memory.marks, mark);
    else
        l->broken_records++;
}

static int compare_marks(const void *a, const void *b)
{
    const struct fm_memory_mark *x = a, *y = b;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    return x->level < y->level ? -1 : x->level > y->level;
}

static void add_visits(struct reading *r)
{
    size_t first_mark = r->l->p->memory.marks.len;
    int64_t highest = 0;
    if (r->visits.len)
        qsort(r->visits.data, r->visits.len, sizeof *r->visits.data, compare_visits);
    for (size_t i = 0; i < r->visits.len; i++) {
        const struct fm_live_visit *visit = &r->visits.data[i];
        bool runs = visit->state == FM_LIVE_VISIT_RUNS;
        if (runs && (i == 0 || r->visits.data[i - 1].meter != visit->meter))
            highest = visit->meter < r->meters.len ? r->meters.data[visit->meter].top : visit->high;
        highest = runs && visit->high > highest ? visit->high : highest;
        if (visit->state != FM_LIVE_VISIT_ENDED)
            add_open(r, visit, highest);
        add_mark(r, visit);
    }
    if (r->l->p->memory.marks.len > first_mark)
        qsort(r->l->p->memory.marks.data + first_mark, r->l->p->memory.marks.len - first_mark,
              sizeof *r->l->p->memory.marks.data, compare_marks);
}

/* ---- records ---- */

static void read_meters(struct reading *r, const struct fm_live_piece *chunk)
{
    struct fm_live_meter meter;
    for (uint32_t at = 0; chunk->used - at >= sizeof meter; at += sizeof meter) {
        memcpy(&meter, chunk->payload + at, sizeof meter);
        fm_vec_push(&r->meters, meter);
    }
}

static void read_regions(struct reading *r, const struct fm_live_piece *chunk)
{
    struct fm_live_region live;
    for (uint32_t at = 0; chunk->used - at >= sizeof live; at += sizeof live) {
        memcpy(&live, chunk->payload + at, sizeof live);
        if (live.entered)
            add_region(r, &live);
    }
}

static void read_visits(struct reading *r, const struct fm_live_piece *chunk)
{
    struct fm_live_visit visit;
    for (uint32_t at = 0; chunk->used - at >= sizeof visit; at += sizeof visit) {
        memcpy(&visit, chunk->payload + at, sizeof visit);
        if (visit.state == FM_LIVE_VISIT_FREE)
            continue;
        if (visit.state <= FM_LIVE_VISIT_ENDED && row_of(r, visit.region))
            fm_vec_push(&r->visits, visit);
        else
            r->l->broken_records++;
    }
}

static void read_kind(struct reading *r, enum fm_live_kind kind,
                      void (*read)(struct reading *r, const struct fm_live_piece *chunk))
{
    for (size_t i = 0; i < r->l->chunks.all.len; i++)
        if (r->l->chunks.all.data[i].kind == kind)
            read(r, &r->l->chunks.all.data[i]);
}

void fm_live_read_regions(struct fm_live_loader *l)
{
    struct reading r = { .l = l, .first_row = l->p->regions.rows.len - l->regions };
    if (!l->regions)
        return;
    read_kind(&r, FM_LIVE_METERS, read_meters);
    read_kind(&r, FM_LIVE_REGIONS, read_regions);
    read_kind(&r, FM_LIVE_VISITS, read_visits);
    add_visits(&r);
    fm_vec_release(&r.meters);
    fm_vec_release(&r.visits);
}
