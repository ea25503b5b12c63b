/* Visits of regions; see visits.h. */
#include "target/agent/regions/visits.h"

#include "target/agent/collector.h"
#include "target/agent/lines/line_memory.h"
#include "target/agent/regions/alone.h"

struct fm_region_visits fm_region_visits;
#define visits fm_region_visits

void fm_visits_forget(void)
{
    visits.suspended = visits.free = NULL; /* they lie in another store */
    visits.kept = 0;
}

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t net_of(const struct fm_live_meter *meter)
{
    return (int64_t)(meter->allocated - meter->freed);
}

struct fm_region_visit *fm_visit_make(struct fm_store *store)
{
    struct fm_region_visit *v = visits.free;
    if (v)
        visits.free = v->older;
    else
        v = fm_regions_alloc(sizeof *v);
    if (!v)
        return NULL;
    if (!v->live)
        v->live = fm_store_record(store, FM_LIVE_VISITS, sizeof *v->live);
    if (v->live) {
        v->serial = ++visits.serial;
        return v;
    }
    v->older = visits.free;
    visits.free = v;
    return NULL;
}

/* Nobody else writes there: a visit finds zeros. */
static void clear_memory(struct fm_live_visit *live)
{
    live->allocated = live->freed = live->had_allocated = live->had_freed = 0;
    live->high = live->above = live->heap_begin = live->heap_end = 0;
}

static void give_back(struct fm_region_visit *v, bool kept, bool memory)
{
    if (kept)
        v->live = NULL; /* one that is kept needs another next time */
    else if (__builtin_expect(memory, 0))
        clear_memory(v->live);
    fm_visit_free(v);
}

void fm_visit_meter(struct fm_region_visit *v, struct fm_region_thread *t)
{
    struct fm_live_meter *meter = t->meter;
    if (t->newest)
        t->newest->live->high = greater(t->newest->live->high, meter->top);
    meter->top = net_of(meter);
    v->live->high = meter->top;
    v->live->allocated = meter->allocated;
    v->live->freed = meter->freed;
}

int64_t fm_visit_above(const struct fm_region_visit *v)
{
    const struct fm_live_visit *live = v->live;
    int64_t own_before = (int64_t)(live->had_allocated - live->had_freed);
    int64_t found = (int64_t)(live->allocated - live->freed), highest = v->thread->meter->top;
    for (const struct fm_region_visit *each = v; each; each = each->newer)
        highest = greater(highest, each->live->high);
    return greater(live->above, highest - found + own_before);
}

/* Memory of what it did in its thread. */
static void count_memory(struct fm_region_visit *v, const struct fm_live_meter *meter)
{
    struct fm_live_visit *live = v->live;
    live->above = fm_visit_above(v);
    if (v->older)
        v->older->live->high =
            greater(v->older->live->high, v->newer ? live->high : greater(live->high, meter->top));
    live->had_allocated += meter->allocated - live->allocated;
    live->had_freed += meter->freed - live->freed;
    live->allocated = meter->allocated;
    live->freed = meter->freed;
}

/* All that the thread is in, anew: the oldest first. */
static void show_all(const struct fm_region_thread *t)
{
    const struct fm_region_visit *v = t->newest;
    __atomic_store_n(&t->open->n, 0, __ATOMIC_RELEASE);
    while (v && v->older)
        v = v->older;
    for (uint32_t n = 0; v; n++, v = v->newer)
        fm_visit_show(v, t->open, n);
}

/* It is out of its thread's list. */
static void hide(const struct fm_region_thread *t, bool was_newest)
{
    if (was_newest)
        fm_visit_hide_newest(t->open);
    else if (t->open)
        show_all(t);
}

/* Take it out of its thread's list, with what it did there. */
static void stop_running(struct fm_region_visit *v, uint64_t now)
{
    struct fm_region_thread *t = v->thread;
    fm_region_cpu_add(&v->had_cpu, v->cpu, fm_region_cpu_at(&t->clock, now));
    if (t->counts)
        count_memory(v, t->meter);
    if (v->older)
        v->older->newer = v->newer;
    *(v->newer ? &v->newer->older : &t->newest) = v->older;
    hide(t, !v->newer);
    v->thread = NULL;
    v->older = v->newer = NULL;
}

void fm_visit_wait(struct fm_region_visit *v, uint64_t now)
{
    stop_running(v, now);
    v->live->since_ticks = now;
    v->older = visits.suspended;
    visits.suspended = v;
    if (!v->inner)
        __atomic_store_n(&v->live->state, FM_LIVE_VISIT_WAITS, __ATOMIC_RELEASE);
}

void fm_visit_go_on(struct fm_region_visit *v, struct fm_region_thread *t, uint64_t now)
{
    struct fm_region_visit **link = &visits.suspended;
    while (*link != v)
        link = &(*link)->older;
    *link = v->older;
    v->live->suspended_ticks += fm_elapsed(v->live->since_ticks, now);
    fm_visit_run_in(v, t);
    v->cpu = fm_region_cpu_at(&t->clock, now);
    if (!v->inner)
        __atomic_store_n(&v->live->state, FM_LIVE_VISIT_RUNS, __ATOMIC_RELEASE);
}

/* What the visit did goes to its region. */
static void add_up(struct fm_region_visit *v, uint64_t ticks)
{
    const struct fm_live_visit *live = v->live;
    struct fm_live_region *region = v->region->live;
    fm_visit_add_time(region, ticks);
    region->suspended_ticks += live->suspended_ticks;
    region->allocated += live->had_allocated;
    region->freed += live->had_freed;
    region->above_most = greater(region->above_most, live->above);
}

void fm_visit_end(struct fm_region_visit *v, uint64_t now)
{
    bool ran = v->thread, counts = ran && v->thread->counts, kept = false;
    struct fm_live_visit *live = v->live;
    if (v->thread)
        stop_running(v, now);
    if (counts)
        live->heap_end = fm_line_memory_live();
    live->end_ticks = now;
    if (!v->inner) {
        kept = fm_visit_is_kept(v->region->live);
        visits.kept += kept;
        v->region->live->kept += kept;
        __atomic_store_n(&live->state, kept ? FM_LIVE_VISIT_ENDED : FM_LIVE_VISIT_FREE,
                         __ATOMIC_RELEASE);
        add_up(v, fm_elapsed(live->begin_ticks, now));
        if (ran)
            fm_visit_add_cpu(v->region->live, v);
    }
    give_back(v, kept, counts);
}
