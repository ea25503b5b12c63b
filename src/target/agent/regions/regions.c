/* Regions of the program; see regions.h. */
#include "target/agent/regions/regions.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "target/agent/collector.h"
#include "target/agent/fork.h"
#include "target/agent/lines/line_memory.h"
#include "target/agent/regions/region_frames.h"
#include "target/agent/start.h"
#include "target/agent/table.h"

#define MOST_REGIONS   50000u /* names made of numbers must not fill the memory */
#define MOST_KEPT      50000u /* visits of all regions */
#define MOST_KEPT_EACH 1000u  /* … and of one */

struct region_thread;

/* A visit that is open, or one that was and waits to be used again. */
struct region_visit {
    struct fm_live_visit *live;
    struct fm_live_region *region;
    uint64_t hash; /* of its name */
    bool inner;    /* of a region that the thread is in already */
    const void *owner;
    const void *frame;            /* of the generator or coroutine that is in it, or NULL */
    struct region_thread *thread; /* NULL while suspended */
    struct region_visit *older,
        *newer; /* in its thread's list; of those suspended, and of free ones: `older` */
};

/* A thread that was in a region. Never freed: the next one takes it over. */
struct region_thread {
    struct region_visit *newest;
    struct fm_live_meter *meter; /* NULL: no memory for it */
    uint32_t number;             /* of the meter */
    uint32_t tid, era;
    bool counts; /* the heap library counts in the meter */
    struct region_thread *next;
};

static struct {
    uint32_t era; /* of the store that all this is in */
    uint32_t region_count, meter_count, kept;
    uint64_t order;
    struct fm_agent_table by_name; /* hash of name and parent → struct fm_live_region */
    struct fm_live_region *more;   /* for all that have no record of their own, or NULL */
    struct region_visit *suspended, *free;
    struct region_thread *ended; /* atomic: threads put themselves here, the GIL takes them */
    pthread_key_t ending;
    bool has_key;
} regions;

static __thread struct region_thread *this_thread __attribute__((tls_model("initial-exec")));

bool fm_regions_on(void)
{
    return fm_start_collector() != NULL;
}

/* ---- stores and threads ------------------------------------------------------------------ */

static void thread_ends(void *thread)
{
    struct region_thread *t = thread;
    if (t->newest)
        return; /* what it was in stays open until the end */
    if (t->counts)
        fm_line_memory_meter_at(NULL); /* its last frees are not the next one's */
    struct region_thread *first = __atomic_load_n(&regions.ended, __ATOMIC_RELAXED);
    do
        t->next = first;
    while (!__atomic_compare_exchange_n(&regions.ended, &first, t, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED));
}

/* Only whoever has the GIL takes one, so none can come back between the two looks. */
static struct region_thread *take_ended(void)
{
    struct region_thread *t = __atomic_load_n(&regions.ended, __ATOMIC_ACQUIRE);
    while (t && !__atomic_compare_exchange_n(&regions.ended, &t, t->next, true, __ATOMIC_ACQUIRE,
                                             __ATOMIC_ACQUIRE))
        ;
    return t;
}

/* What was known is of another store: that of the parent, after a fork. */
static void forget(uint32_t era)
{
    fm_agent_table_release(&regions.by_name);
    regions.region_count = regions.meter_count = regions.kept = 0;
    regions.more = NULL;
    regions.suspended = regions.free = NULL;
    regions.ended = NULL;
    regions.era = era;
}

/* The collector, with a store of this process; NULL if there is none. */
static struct fm_collector *collector_now(void)
{
    struct fm_collector *c = fm_start_collector();
    if (!c)
        return NULL;
    if (__builtin_expect(c->forked, 0)) {
        if (c->running)
            fm_collector_thread(c); /* which begins the store, and opens the calls again */
        else
            fm_fork_begin(c);
    }
    if (!c->store.header || c->forked)
        return NULL;
    if (__builtin_expect(regions.era != c->era, 0))
        forget(c->era);
    return c;
}

/* The heap library counts there from now on, if there is one; whoever has the old place is told. */
static void place_meter(struct region_thread *t)
{
    struct fm_heap_meter *place =
        t->meter ? fm_line_memory_meter_at((struct fm_heap_meter *)t->meter) : NULL;
    t->counts = place != NULL;
    if (!place)
        return;
    t->meter->on = 1;
    for (int slot = 0; slot < FM_SLOTS; slot++)
        if (fm_current[slot] && fm_current[slot]->meter)
            fm_current[slot]->meter = place;
}

static struct region_thread *thread_begins(struct fm_collector *c)
{
    struct region_thread *t = this_thread ? this_thread : take_ended();
    if (!regions.has_key && pthread_key_create(&regions.ending, thread_ends) == 0)
        regions.has_key = true;
    if (!t)
        t = fm_agent_alloc(sizeof *t);
    if (!t || !regions.has_key || pthread_setspecific(regions.ending, t))
        return NULL;
    if (t->era != regions.era || !t->meter) {
        *t = (struct region_thread){ .era = regions.era };
        t->meter = fm_store_record(&c->store, FM_LIVE_METERS, sizeof *t->meter);
        t->number = t->meter ? regions.meter_count++ : 0;
    }
    t->tid = (uint32_t)syscall(SYS_gettid);
    place_meter(t);
    this_thread = t;
    return t;
}

static struct region_thread *thread_now(struct fm_collector *c)
{
    struct region_thread *t = this_thread;
    return __builtin_expect(t && t->era == regions.era, 1) ? t : thread_begins(c);
}

/* ---- regions ----------------------------------------------------------------------------- */

static uint64_t hash_name(const char *name, size_t len)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)name[i]) * 0x100000001b3u;
    return fm_mix64(hash);
}

static struct fm_live_region *define(struct fm_collector *c, uint32_t parent, const char *name,
                                     size_t len)
{
    uint64_t numbers[2] = { regions.region_count + 1, parent };
    struct fm_store_text text = { name, len };
    struct fm_live_region *region = NULL;
    if (fm_store_define(&c->store, FM_LIVE_DEF_REGION, numbers, 2, &text, 1))
        region = fm_store_record(&c->store, FM_LIVE_REGIONS, sizeof *region);
    if (!region)
        return NULL;
    region->id = ++regions.region_count;
    region->min_ticks = UINT64_MAX;
    return region;
}

/* One record for all that have none of their own. */
static struct fm_live_region *define_more(struct fm_collector *c)
{
    static const char name[] = "<more regions>";
    c->store.header->lost[FM_LIVE_LOST_REGIONS]++;
    if (!regions.more)
        regions.more = define(c, 0, name, sizeof name - 1);
    return regions.more;
}

/* The record of a name below another region, or 0; NULL if there is no memory. */
static struct fm_live_region *find(struct fm_collector *c, uint32_t parent, uint64_t hash,
                                   const char *name, size_t len)
{
    uint64_t key = fm_mix64(hash ^ parent) | 1;
    struct fm_live_region *region = fm_agent_table_find(&regions.by_name, key);
    if (__builtin_expect(region != NULL, 1))
        return region;
    if (regions.region_count < MOST_REGIONS)
        region = define(c, parent, name, len);
    if (region && fm_agent_table_set(&regions.by_name, key, region))
        return region;
    return define_more(c);
}

/* ---- visits ------------------------------------------------------------------------------ */

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t net_of(const struct fm_live_meter *meter)
{
    return (int64_t)(meter->allocated - meter->freed);
}

static struct region_visit *new_visit(struct fm_collector *c)
{
    struct region_visit *v = regions.free;
    if (v)
        regions.free = v->older;
    else
        v = fm_agent_alloc(sizeof *v);
    if (!v)
        return NULL;
    if (!v->live)
        v->live = fm_store_record(&c->store, FM_LIVE_VISITS, sizeof *v->live);
    if (v->live)
        return v;
    v->older = regions.free;
    regions.free = v;
    return NULL;
}

static void free_visit(struct region_visit *v, bool kept)
{
    struct fm_live_visit *live =
        kept ? NULL : v->live; /* one that is kept needs another next time */
    *v = (struct region_visit){ .live = live, .older = regions.free };
    regions.free = v;
}

/* It runs in this thread from now on. */
static void run_in(struct region_visit *v, struct region_thread *t)
{
    struct fm_live_meter *meter = t->meter;
    v->thread = t;
    v->older = t->newest;
    v->newer = NULL;
    if (t->newest) {
        t->newest->newer = v;
        if (t->counts)
            t->newest->live->high = greater(t->newest->live->high, meter->top);
    }
    t->newest = v;
    v->live->order = ++regions.order;
    v->live->meter = t->number;
    if (!t->counts)
        return;
    meter->top = net_of(meter);
    v->live->high = meter->top;
    v->live->allocated = meter->allocated;
    v->live->freed = meter->freed;
}

/* How high it stood above its begin, until now. */
static int64_t above(const struct region_visit *v)
{
    const struct fm_live_visit *live = v->live;
    int64_t own_before = (int64_t)(live->had_allocated - live->had_freed);
    int64_t found = (int64_t)(live->allocated - live->freed), highest = v->thread->meter->top;
    for (const struct region_visit *each = v; each; each = each->newer)
        highest = greater(highest, each->live->high);
    return greater(live->above, highest - found + own_before);
}

/* Take it out of its thread's list, with what it did there. */
static void stop_running(struct region_visit *v)
{
    struct region_thread *t = v->thread;
    struct fm_live_visit *live = v->live;
    if (t->counts) {
        live->above = above(v);
        if (v->older)
            v->older->live->high = greater(
                v->older->live->high, v->newer ? live->high : greater(live->high, t->meter->top));
        live->had_allocated += t->meter->allocated - live->allocated;
        live->had_freed += t->meter->freed - live->freed;
        live->allocated = t->meter->allocated;
        live->freed = t->meter->freed;
    }
    if (v->older)
        v->older->newer = v->newer;
    *(v->newer ? &v->newer->older : &t->newest) = v->older;
    v->thread = NULL;
    v->older = v->newer = NULL;
}

static void wait(struct region_visit *v, uint64_t now)
{
    stop_running(v);
    v->live->since_ticks = now;
    v->older = regions.suspended;
    regions.suspended = v;
    if (!v->inner)
        __atomic_store_n(&v->live->state, FM_LIVE_VISIT_WAITS, __ATOMIC_RELEASE);
}

static void go_on(struct region_visit *v, struct region_thread *t, uint64_t now)
{
    struct region_visit **link = &regions.suspended;
    while (*link != v)
        link = &(*link)->older;
    *link = v->older;
    v->live->suspended_ticks += fm_elapsed(v->live->since_ticks, now);
    run_in(v, t);
    if (!v->inner)
        __atomic_store_n(&v->live->state, FM_LIVE_VISIT_RUNS, __ATOMIC_RELEASE);
}

/* The visit of that name that runs in the thread, or NULL. */
static const struct region_visit *around(const struct region_thread *t, uint64_t hash)
{
    const struct region_visit *v = t->newest;
    while (v && v->hash != hash)
        v = v->older;
    return v;
}

static void begin(struct fm_collector *c, struct region_thread *t, const void *owner,
                  const char *name, size_t len)
{
    const void *frame = fm_region_frames_watch(); /* before anything is measured */
    uint64_t hash = hash_name(name, len);
    const struct region_visit *outer = around(t, hash), *caller = t->newest;
    struct fm_live_region *region =
        outer ? outer->region : find(c, caller ? caller->region->id : 0, hash, name, len);
    struct region_visit *v = region ? new_visit(c) : NULL;
    if (region)
        region->entered++;
    if (!v) {
        c->store.header->lost[FM_LIVE_LOST_REGIONS]++;
        return;
    }
    v->region = region;
    v->hash = hash;
    v->inner = outer != NULL;
    v->owner = owner;
    v->frame = frame;
    *v->live = (struct fm_live_visit){ .region = region->id,
                                       .tid = t->tid,
                                       .level = caller ? caller->live->level + 1 : 0,
                                       .heap_begin = t->counts ? fm_line_memory_live() : 0 };
    run_in(v, t);
    v->live->begin_ticks = fm_clock_ticks();
    if (!v->inner)
        __atomic_store_n(&v->live->state, FM_LIVE_VISIT_RUNS, __ATOMIC_RELEASE);
}

/* What the visit did goes to its region. */
static void add_up(struct region_visit *v, uint64_t ticks)
{
    const struct fm_live_visit *live = v->live;
    struct fm_live_region *region = v->region;
    region->ended++;
    region->total_ticks += ticks;
    region->suspended_ticks += live->suspended_ticks;
    if (ticks < region->min_ticks)
        region->min_ticks = ticks;
    if (ticks > region->max_ticks)
        region->max_ticks = ticks;
    region->allocated += live->had_allocated;
    region->freed += live->had_freed;
    region->above_most = greater(region->above_most, live->above);
}

static void end(struct region_visit *v, uint64_t now)
{
    bool counts = v->thread->counts, kept = false;
    struct fm_live_visit *live = v->live;
    stop_running(v);
    live->heap_end = counts ? fm_line_memory_live() : 0;
    live->end_ticks = now;
    if (!v->inner) {
        kept = regions.kept < MOST_KEPT && v->region->kept < MOST_KEPT_EACH;
        regions.kept += kept;
        v->region->kept += kept;
        __atomic_store_n(&live->state, kept ? FM_LIVE_VISIT_ENDED : FM_LIVE_VISIT_FREE,
                         __ATOMIC_RELEASE);
        add_up(v, fm_elapsed(live->begin_ticks, now));
    }
    free_visit(v, kept);
}

/* ---- what the program does --------------------------------------------------------------- */

void fm_regions_enter(const void *owner, const char *name, size_t len)
{
    int saved_errno = errno;
    struct fm_collector *c = collector_now();
    struct region_thread *t = c ? thread_now(c) : NULL;
    if (t)
        begin(c, t, owner, name, len);
    errno = saved_errno;
}

/* The newest that this one entered; if there is none in this thread, one that waits: its generator was
 * not heard of when it went on. */
static struct region_visit *entered_by(const void *owner, struct region_thread *t)
{
    for (struct region_visit *v = t->newest; v; v = v->older)
        if (v->owner == owner)
            return v;
    for (struct region_visit *v = regions.suspended; v; v = v->older)
        if (v->owner == owner)
            return v;
    return NULL;
}

void fm_regions_leave(const void *owner)
{
    uint64_t now = fm_clock_ticks();
    int saved_errno = errno;
    struct fm_collector *c = collector_now();
    struct region_thread *t = c ? thread_now(c) : NULL;
    struct region_visit *v = t ? entered_by(owner, t) : NULL;
    if (v && !v->thread)
        go_on(v, t, now);
    if (v)
        end(v, now);
    errno = saved_errno;
}

int64_t fm_regions_peak(void)
{
    const struct region_thread *t = this_thread;
    const struct fm_collector *c = fm_start_collector();
    bool known = t && c && !c->forked && t->era == c->era && t->newest && t->counts;
    return known ? above(t->newest) : -1;
}

/* ---- what generators do ------------------------------------------------------------------ */

void fm_regions_suspend(const void *frame)
{
    uint64_t now = fm_clock_ticks();
    struct region_thread *t = this_thread;
    struct fm_collector *c = fm_start_collector();
    if (!t || !c || c->forked || t->era != c->era)
        return;
    for (struct region_visit *v = t->newest, *older; v; v = older) {
        older = v->older;
        if (v->frame == frame)
            wait(v, now);
    }
}

void fm_regions_resume(const void *frame)
{
    uint64_t now = fm_clock_ticks();
    int saved_errno = errno;
    struct fm_collector *c = regions.suspended ? collector_now() : NULL;
    struct region_thread *t = c ? thread_now(c) : NULL;
    for (struct region_visit *v = t ? regions.suspended : NULL, *next; v; v = next) {
        next = v->older;
        if (v->frame == frame)
            go_on(v, t, now);
    }
    errno = saved_errno;
}
