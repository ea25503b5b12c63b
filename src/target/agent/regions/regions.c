/* Regions of the program; see regions.h. */
#define FM_PYTHON_FRAMES
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
#include "target/agent/regions/alone.h"
#include "target/agent/regions/c_regions.h"
#include "target/agent/regions/foreign.h"
#include "target/agent/regions/records.h"
#include "target/agent/regions/region_frames.h"
#include "target/agent/regions/region_nodes.h"
#include "target/agent/regions/sampled_run.h"
#include "target/agent/regions/traced.h"
#include "target/agent/regions/visits.h"
#include "target/agent/start.h"
#include "target/agent/trace/trace.h"

static struct {
    uint32_t era; /* of the store that all this is in */
    uint32_t meter_count;
    struct fm_region_thread *ended; /* atomic: threads put themselves here */
    pthread_key_t ending;
    bool has_key;
} regions;

static struct fm_collector *collector; /* whose store it is; set once */
static const char by_c;                /* its address owns what C code enters */
uint8_t fm_regions_recorded;

static __thread struct fm_region_thread *this_thread __attribute__((tls_model("initial-exec")));

/* ---- stores and threads ------------------------------------------------------------------ */

static void thread_ends(void *thread)
{
    struct fm_region_thread *t = thread;
    if (t->newest)
        return; /* what it was in stays open until the end */
    if (t->counts)
        fm_line_memory_meter_at(NULL); /* its last frees are not the next one's */
    struct fm_region_thread *first = __atomic_load_n(&regions.ended, __ATOMIC_RELAXED);
    do
        t->next = first;
    while (!__atomic_compare_exchange_n(&regions.ended, &first, t, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED));
}

/* Only one at a time takes one, so none can come back between the two looks. */
static struct fm_region_thread *take_ended(void)
{
    struct fm_region_thread *t = __atomic_load_n(&regions.ended, __ATOMIC_ACQUIRE);
    while (t && !__atomic_compare_exchange_n(&regions.ended, &t, t->next, true, __ATOMIC_ACQUIRE,
                                             __ATOMIC_ACQUIRE))
        ;
    return t;
}

/* What was known is of another store: that of the parent, after a fork. */
static void forget(uint32_t era)
{
    fm_region_records_forget();
    regions.meter_count = 0;
    regions.ended = NULL;
    fm_visits_forget();
    regions.era = era;
}

/* A store of this process, begun if need be. The GIL. */
static void begin_store(struct fm_collector *c)
{
    if (c->running)
        fm_collector_thread(c); /* which begins the store, and opens the calls again */
    else
        fm_fork_begin(c);
}

/* The collector, with a store of this process; NULL if there is none. Held. */
static struct fm_collector *collector_now(void)
{
    struct fm_collector *c = collector;
    if (!c || !c->store.header || c->forked)
        return NULL;
    if (__builtin_expect(regions.era != c->era, 0))
        forget(c->era);
    return c;
}

/* The same for who has the GIL, and is about to hold regions. */
static struct fm_collector *hold(void)
{
    struct fm_collector *c = collector;
    if (__builtin_expect(c && c->forked, 0))
        begin_store(c);
    fm_regions_hold();
    return collector_now();
}

/* The heap library counts there from now on, if there is one; whoever has the old place is told. */
static void place_meter(struct fm_region_thread *t)
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

static struct fm_region_thread *thread_begins(struct fm_collector *c)
{
    struct fm_region_thread *t = this_thread ? this_thread : take_ended();
    if (!regions.has_key && pthread_key_create(&regions.ending, thread_ends) == 0)
        regions.has_key = true;
    if (!t)
        t = fm_regions_alloc(sizeof *t);
    if (!t || !regions.has_key || pthread_setspecific(regions.ending, t))
        return NULL;
    if (t->era != regions.era || !t->meter) {
        *t = (struct fm_region_thread){ .era = regions.era };
        t->meter = fm_store_record(&c->store, FM_LIVE_METERS, sizeof *t->meter);
        t->number = t->meter ? regions.meter_count++ : 0;
        t->open = fm_store_record(&c->store, FM_LIVE_OPEN, sizeof *t->open);
    }
    t->tid = (uint32_t)syscall(SYS_gettid);
    t->clock = fm_region_clock_new(
        (struct fm_clock_pair){ c->store.header->start_ticks, c->store.header->start_ns });
    place_meter(t);
    if (t->open) {
        t->open->tid = t->tid;
        __atomic_add_fetch(&c->store.header->opens, 1, __ATOMIC_RELEASE);
    }
    this_thread = t;
    return t;
}

static struct fm_region_thread *thread_now(struct fm_collector *c)
{
    struct fm_region_thread *t = this_thread;
    return __builtin_expect(t && t->era == regions.era, 1) ? t : thread_begins(c);
}

struct fm_collector *fm_regions_collector(void)
{
    return collector;
}

const struct fm_region_record *fm_regions_first(void)
{
    return collector && regions.era == collector->era ? fm_region_records_first() : NULL;
}

void fm_regions_begin_run(void)
{
    collector = fm_start_collector();
    fm_regions_recorded = collector != NULL;
    if (!collector)
        return;
    fm_c_regions_begin();
    fm_foreign_begin(false);
}

/* Only the regions: no calls, no lines. */
void fm_regions_join_run(void)
{
    char config[4096];
    int saved_errno = errno;
    if (!collector && fm_sampled_run_find(config, sizeof config)) {
        fathom_agent_start(config);
        if (collector)
            fm_foreign_begin(true);
    }
    errno = saved_errno;
}

int fm_regions_count(void)
{
    struct fm_options options = { .redact = true };
    if (collector)
        return 0;
    struct fm_collector *c = fm_collector_new(&options);
    if (!c)
        return -1;
    c->begins_anew = true;
    collector = c;
    fm_regions_recorded = 1;
    fm_c_regions_begin();
    fm_foreign_begin(true);
    return 0;
}

/* ---- what the program does --------------------------------------------------------------- */

/* The visit of that name that runs in the thread, or NULL. */
static const struct fm_region_visit *around(const struct fm_region_thread *t,
                                            const struct fm_region_name *name)
{
    const struct fm_region_visit *v = t->newest;
    while (v && v->name != name)
        v = v->older;
    return v;
}

/* A visit of a region that has just been entered, without a time yet; NULL: it is counted as lost. */
static inline struct fm_region_visit *visit(struct fm_collector *c, struct fm_region_record *region,
                                            struct fm_region_name *name)
{
    struct fm_region_visit *v = region ? fm_visit_new(&c->store) : NULL;
    if (region)
        region->live->entered++;
    if (!v) {
        c->store.header->lost[FM_LIVE_LOST_REGIONS]++;
        return NULL;
    }
    v->region = region;
    v->name = name;
    return v;
}

static inline __attribute__((always_inline)) struct fm_region_visit *
begin_here(struct fm_collector *c, struct fm_region_thread *t, const void *owner,
           struct fm_region_name *name, const void *frame, struct fm_region_place place)
{
    struct fm_region_visit *caller = t->newest;
    const struct fm_region_visit *outer = around(t, name);
    struct fm_region_record *region =
        outer ? outer->region : fm_region_record_find(c, caller ? caller->region : NULL, name);
    struct fm_region_visit *v = visit(c, region, name);
    if (!v)
        return NULL;
    v->inner = outer != NULL;
    v->owner = owner;
    v->frame = frame;
    v->place = place;
    v->live->region = region->live->id;
    v->live->tid = t->tid;
    v->live->level = caller ? caller->live->level + 1 : 0;
    v->live->suspended_ticks = 0;
    if (__builtin_expect(t->counts, 0))
        v->live->heap_begin = fm_line_memory_live();
    fm_visit_run_in(v, t);
    v->had_cpu = (struct fm_region_cpu){ 0 };
    uint64_t now = fm_clock_ticks();
    v->cpu = fm_region_cpu_from(&t->clock, &now);
    v->live->begin_ticks = now;
    if (!v->inner)
        __atomic_store_n(&v->live->state, FM_LIVE_VISIT_RUNS, __ATOMIC_RELEASE);
    return v;
}

/* Not where every region comes by. */
static __attribute__((noinline)) struct fm_region_visit *
begin(struct fm_collector *c, struct fm_region_thread *t, const void *owner,
      struct fm_region_name *name, const void *frame, struct fm_region_place place)
{
    return begin_here(c, t, owner, name, frame, place);
}

/* … when something is new: the store, the thread, the name, the code that enters; or there is a trace. */
static __attribute__((noinline)) void enter_first(const void *owner, PyObject *text,
                                                  struct fm_region_name **known)
{
    int saved_errno = errno;
    const void *frame = fm_region_frames_watch(); /* before anything is measured */
    struct fm_region_name *name = *known = fm_region_name_of(text);
    struct fm_region_place place = fm_region_frames_owner();
    struct fm_collector *c = hold();
    struct fm_region_thread *t = c && name ? thread_now(c) : NULL;
    struct fm_region_visit *v = t ? begin(c, t, owner, name, frame, place) : NULL;
    fm_regions_release();
    if (v && fm_region_nodes_on(c))
        fm_region_node_enter(c, v, place.code);
    if (t && fm_trace_on())
        fm_trace_region_begin(fm_region_traced_name(name));
    errno = saved_errno;
}

/* Is the store that of this process, and the thread known in it? Then all of this is of that store, too: eras only grow,
 * and the thread has its own from here. */
static inline bool is_current(const struct fm_collector *c, const struct fm_region_thread *t)
{
    return t && t->era == c->era && !c->forked;
}

/* The thread in the trace, if that has the name already; NULL: the other way is right in all cases. */
static inline struct fm_agent_thread *traced_thread(const struct fm_collector *c,
                                                    const struct fm_region_name *name)
{
    return c->trace && name->trace && name->trace_era == c->era ? fm_current[FM_TRACE_SLOT] : NULL;
}

static __attribute__((noinline)) void enter_traced(const void *owner, PyObject *text,
                                                   struct fm_region_name **known)
{
    struct fm_region_thread *t = this_thread;
    struct fm_collector *c = collector;
    struct fm_agent_thread *traced = traced_thread(c, *known);
    if (!traced) {
        enter_first(owner, text, known);
        return;
    }
    fm_regions_hold();
    begin_here(c, t, owner, *known, NULL, fm_region_frames_place(fm_python_frame()));
    uint64_t now = t->newest ? t->newest->live->begin_ticks : 0; /* 0: there was no room for it */
    fm_regions_release();
    if (!fm_trace_mark_simply(traced, FM_TRACE_REGION_BEGIN, (*known)->trace, now))
        fm_trace_region_begin((*known)->trace);
}

void fm_regions_enter(const void *owner, PyObject *text, struct fm_region_name **known)
{
    struct fm_region_thread *t = this_thread;
    struct fm_collector *c = collector;
    if (__builtin_expect(!*known || !is_current(c, t) || !fm_region_frames_is_plain(), 0)) {
        enter_first(owner, text, known);
        return;
    }
    if (__builtin_expect(fm_trace_on(), 0)) {
        enter_traced(owner, text, known);
        return;
    }
    struct fm_region_place place = fm_region_frames_place(fm_python_frame());
    fm_regions_hold();
    struct fm_region_visit *v = begin_here(c, t, owner, *known, NULL, place);
    fm_regions_release();
    if (__builtin_expect(v && fm_region_nodes_on(c), 0))
        fm_region_node_enter(c, v, place.code);
}

/* The newest that this one entered; if there is none in this thread, one that waits: its generator was
 * not heard of when it went on. */
static struct fm_region_visit *entered_by(const void *owner, struct fm_region_thread *t)
{
    for (struct fm_region_visit *v = t->newest; v; v = v->older)
        if (v->owner == owner)
            return v;
    for (struct fm_region_visit *v = fm_region_visits.suspended; v; v = v->older)
        if (v->owner == owner)
            return v;
    return NULL;
}

/* The name of what was left, or NULL. If it waited in between, `*since` is when it began, else 0. */
static struct fm_region_name *leave(const void *owner, struct fm_collector *c, uint64_t now,
                                    bool has_gil, uint64_t *since)
{
    struct fm_region_thread *t = c ? thread_now(c) : NULL;
    struct fm_region_visit *v = t ? entered_by(owner, t) : NULL;
    if (!v)
        return NULL;
    if (!v->thread)
        fm_visit_go_on(v, t, now);
    struct fm_region_name *name = v->name;
    *since = v->live->suspended_ticks ? v->live->begin_ticks : 0;
    if (v->node)
        fm_region_node_leave(v, now, has_gil);
    fm_visit_end(v, now);
    return name;
}

static __attribute__((noinline)) void leave_other(const void *owner, uint64_t now)
{
    int saved_errno = errno;
    struct fm_collector *c = hold();
    uint64_t since = 0;
    struct fm_region_name *name = leave(owner, c, now, true, &since);
    fm_regions_release();
    if (fm_trace_on())
        fm_trace_region_end_since(fm_region_traced_name(name), since);
    errno = saved_errno;
}

static __attribute__((noinline)) void leave_traced(const void *owner, uint64_t now)
{
    struct fm_region_visit *v = this_thread->newest;
    const struct fm_region_name *name = v->name;
    struct fm_agent_thread *traced = traced_thread(collector, name);
    if (!traced || v->live->suspended_ticks) { /* its whole length is told, too */
        leave_other(owner, now);
        return;
    }
    fm_regions_hold();
    if (!fm_visit_end_simply(v, now))
        fm_visit_end(v, now);
    fm_regions_release();
    if (!fm_trace_mark_simply(traced, FM_TRACE_REGION_END, name->trace, now))
        fm_trace_region_end(name->trace);
}

void fm_regions_leave(const void *owner)
{
    uint64_t now = fm_clock_ticks();
    struct fm_region_thread *t = this_thread;
    if (__builtin_expect(!is_current(collector, t) || !t->newest || t->newest->owner != owner, 0)) {
        leave_other(owner, now);
        return;
    }
    if (__builtin_expect(fm_trace_on(), 0)) {
        leave_traced(owner, now);
        return;
    }
    if (__builtin_expect(t->newest->node != NULL, 0))
        fm_region_node_leave(t->newest, now, true);
    fm_regions_hold();
    if (!fm_visit_end_simply(t->newest, now))
        fm_visit_end(t->newest, now);
    fm_regions_release();
}

int64_t fm_regions_peak(void)
{
    const struct fm_region_thread *t = this_thread;
    const struct fm_collector *c = collector;
    bool known = t && c && !c->forked && t->era == c->era && t->newest && t->counts;
    return known ? fm_visit_above(t->newest) : -1;
}

/* ---- what C code does -------------------------------------------------------------------- */

/* Whoever has no GIL cannot begin a store. */
static struct fm_collector *hold_for_c(bool has_gil, bool *ret_held)
{
    *ret_held = true;
    if (has_gil)
        return hold();
    *ret_held = fm_regions_hold_foreign();
    return *ret_held ? collector_now() : NULL;
}

static void release_for_c(bool has_gil, bool held)
{
    if (has_gil)
        fm_regions_release();
    else if (held)
        fm_regions_unlock();
}

void fm_regions_enter_c(const char *text, bool has_gil)
{
    int saved_errno = errno;
    bool held;
    struct fm_region_place place = fm_region_frames_innermost();
    struct fm_collector *c = hold_for_c(has_gil, &held);
    struct fm_region_name *name = c ? fm_region_name_find(text, strlen(text)) : NULL;
    struct fm_region_thread *t = name ? thread_now(c) : NULL;
    struct fm_region_visit *v = t ? begin(c, t, &by_c, name, NULL, place) : NULL;
    release_for_c(has_gil, held);
    if (v && has_gil && fm_region_nodes_on(c))
        fm_region_node_enter(c, v, NULL);
    if (t && has_gil && fm_trace_on())
        fm_trace_region_begin(fm_region_traced_name(name));
    errno = saved_errno;
}

void fm_regions_leave_c(bool has_gil)
{
    uint64_t now = fm_clock_ticks();
    int saved_errno = errno;
    bool held;
    struct fm_collector *c = hold_for_c(has_gil, &held);
    uint64_t since = 0;
    struct fm_region_name *name = leave(&by_c, c, now, has_gil, &since);
    release_for_c(has_gil, held);
    if (has_gil && fm_trace_on())
        fm_trace_region_end_since(fm_region_traced_name(name), since);
    errno = saved_errno;
}

/* ---- tokens ------------------------------------------------------------------------------ */

static struct fm_region_token open_visit(struct fm_collector *c, struct fm_region_name *name)
{
    struct fm_region_thread *t = thread_now(c);
    struct fm_region_visit *v = visit(c, fm_region_record_find(c, NULL, name), name);
    if (!v)
        return (struct fm_region_token){ 0 };
    v->inner = false;
    v->trace = 0;
    v->older = v->newer = NULL;
    *v->live = (struct fm_live_visit){ .region = v->region->live->id,
                                       .tid = t ? t->tid : 0,
                                       .meter = FM_LIVE_NO_METER };
    v->live->begin_ticks = fm_clock_ticks();
    __atomic_store_n(&v->live->state, FM_LIVE_VISIT_RUNS, __ATOMIC_RELEASE);
    return (struct fm_region_token){ v, v->serial, regions.era };
}

struct fm_region_token fm_regions_open(PyObject *text)
{
    struct fm_region_token token = { 0 };
    int saved_errno = errno;
    struct fm_region_name *name = fm_region_name_of(text);
    struct fm_collector *c = hold();
    if (c && name)
        token = open_visit(c, name);
    fm_regions_release();
    if (token.visit && fm_trace_on())
        token.visit->trace = fm_trace_async_begin(fm_region_traced_name(name));
    errno = saved_errno;
    return token;
}

/* Its token of the trace, or 0. */
static uint32_t close_visit(const struct fm_collector *c, struct fm_region_token token,
                            uint64_t now)
{
    if (!c || !token.visit || token.era != regions.era || token.visit->serial != token.serial)
        return 0;
    uint32_t trace = token.visit->trace;
    fm_visit_end(token.visit, now);
    return trace;
}

void fm_regions_close(struct fm_region_token token)
{
    uint64_t now = fm_clock_ticks();
    int saved_errno = errno;
    struct fm_collector *c = hold();
    uint32_t trace = close_visit(c, token, now);
    fm_regions_release();
    if (trace)
        fm_trace_async_end(trace);
    errno = saved_errno;
}

struct fm_region_token fm_regions_open_c(const char *text, bool has_gil)
{
    struct fm_region_token token = { 0 };
    int saved_errno = errno;
    bool held;
    struct fm_collector *c = hold_for_c(has_gil, &held);
    struct fm_region_name *name = c ? fm_region_name_find(text, strlen(text)) : NULL;
    if (name)
        token = open_visit(c, name);
    release_for_c(has_gil, held);
    if (token.visit && has_gil && fm_trace_on())
        token.visit->trace = fm_trace_async_begin(fm_region_traced_name(name));
    errno = saved_errno;
    return token;
}

void fm_regions_close_c(struct fm_region_token token, bool has_gil)
{
    uint64_t now = fm_clock_ticks();
    int saved_errno = errno;
    bool held;
    struct fm_collector *c = hold_for_c(has_gil, &held);
    uint32_t trace = close_visit(c, token, now);
    release_for_c(has_gil, held);
    if (trace && has_gil)
        fm_trace_async_end(trace);
    errno = saved_errno;
}

/* ---- counters and instants --------------------------------------------------------------- */

void fm_regions_counter(PyObject *name, double value)
{
    if (fm_trace_on())
        fm_trace_counter(fm_region_traced_name(fm_region_name_of(name)), value);
}

void fm_regions_instant(PyObject *name)
{
    if (fm_trace_on())
        fm_trace_instant(fm_region_traced_name(fm_region_name_of(name)));
}

void fm_regions_counter_c(const char *name, double value)
{
    if (fm_trace_on())
        fm_trace_counter(fm_trace_name(name, strlen(name)), value);
}

void fm_regions_instant_c(const char *name)
{
    if (fm_trace_on())
        fm_trace_instant(fm_trace_name(name, strlen(name)));
}

/* ---- what generators do ------------------------------------------------------------------ */

void fm_regions_suspend(const void *frame)
{
    uint64_t now = fm_clock_ticks();
    struct fm_region_thread *t = this_thread;
    struct fm_collector *c = collector;
    if (!t || !c || c->forked || t->era != c->era)
        return;
    for (struct fm_region_visit *v = fm_trace_on() ? t->newest : NULL; v; v = v->older)
        if (v->frame == frame)
            fm_trace_region_end(fm_region_traced_name(v->name));
    for (struct fm_region_visit *v = t->newest; v; v = v->older)
        if (v->frame == frame && v->node)
            fm_region_node_leave(v, now, true);
    fm_regions_hold();
    for (struct fm_region_visit *v = t->newest, *older; v; v = older) {
        older = v->older;
        if (v->frame == frame)
            fm_visit_wait(v, now);
    }
    fm_regions_release();
}

/* The outermost first. */
static void trace_open(const struct fm_region_visit *v)
{
    if (!v)
        return;
    trace_open(v->older);
    fm_trace_region_begin(fm_region_traced_name(v->name));
}

void fm_regions_trace_open(bool but_newest)
{
    const struct fm_region_thread *t = this_thread;
    const struct fm_collector *c = collector;
    if (t && c && !c->forked && t->era == c->era && fm_trace_on())
        trace_open(t->newest && but_newest ? t->newest->older : t->newest);
}

/* The outermost first. They are the newest of their thread. */
static void trace_resumed(const struct fm_region_visit *v, const void *frame, uint64_t now)
{
    if (!v || v->frame != frame)
        return;
    trace_resumed(v->older, frame, now);
    fm_trace_region_resume(fm_region_traced_name(v->name), fm_elapsed(v->live->since_ticks, now));
}

static void resume_nodes(struct fm_collector *c, struct fm_region_visit *v, const void *frame)
{
    if (!v || v->frame != frame)
        return;
    resume_nodes(c, v->older, frame);
    fm_region_node_resume(c, v, fm_region_frames_code(frame));
}

void fm_regions_resume(const void *frame)
{
    uint64_t now = fm_clock_ticks();
    int saved_errno = errno;
    if (!fm_region_visits.suspended)
        return;
    struct fm_collector *c = hold();
    struct fm_region_thread *t = c ? thread_now(c) : NULL;
    for (struct fm_region_visit *v = t ? fm_region_visits.suspended : NULL, *next; v; v = next) {
        next = v->older;
        if (v->frame == frame)
            fm_visit_go_on(v, t, now);
    }
    fm_regions_release();
    if (t && fm_region_nodes_on(c))
        resume_nodes(c, t->newest, frame);
    if (t && fm_trace_on())
        trace_resumed(t->newest, frame, now);
    errno = saved_errno;
}
