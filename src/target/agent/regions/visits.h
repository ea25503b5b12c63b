/*
 * Visits: a thread, a generator or a token that is in a region; see regions.h for the model.
 *
 * The visits that run in a thread form a list, newest last. One that waits (its generator gave up control)
 * is in no thread, and neither is one that was begun with a token.
 *
 * Threads: whoever holds regions (alone.h).
 */
#ifndef FM_AGENT_REGION_VISITS_H
#define FM_AGENT_REGION_VISITS_H

#include <stdbool.h>
#include <stdint.h>

#include "record/capture/live.h"
#include "target/agent/regions/names.h"
#include "target/agent/regions/region_cpu.h"
#include "target/agent/store.h"

struct fm_agent_thread;

/* A name below another region. */
struct fm_region_record {
    struct fm_live_region *live;
    struct fm_region_record *around, *next; /* `next`: the one defined after it */
    const struct fm_region_name *name;
};

/* The call that is in a region; addresses alone, nothing is held. */
struct fm_region_place {
    const void *frame, *code; /* NULL: not known */
};

/* A visit that is open, or one that was and waits to be used again. Never freed. */
struct fm_region_visit {
    struct fm_live_visit *live;
    struct fm_region_record *region;
    struct fm_region_name *name;
    const void *owner;
    const void *frame;               /* of the generator or coroutine that is in it, or NULL */
    struct fm_region_place place;    /* whose it is */
    bool inner;                      /* of a region that the thread is in already */
    struct fm_region_thread *thread; /* NULL while suspended, and of tokens */
    struct fm_region_visit *older,
        *newer;      /* in its thread's list; of those suspended, and of free ones: `older` */
    uint64_t serial; /* of the visit: another one has another */
    uint32_t trace;  /* token of the trace, or 0 */
    /* In the tree of calls, if it is (region_nodes.h). */
    uint32_t depth;               /* of the frame in its thread's stack */
    struct fm_live_node *node;    /* NULL: it is not */
    struct fm_live_node *before;  /* that of the frame without it */
    struct fm_agent_thread *tree; /* whose stack it is */
    struct fm_region_visit *nodes_older;
    uint64_t entered; /* ticks */
    /* Processor time (region_cpu.h): that of its thread when it began or went on, and what it had before that. */
    struct fm_region_cpu cpu, had_cpu;
};

/* A thread that was in a region. Never freed: the next one takes it over. */
struct fm_region_thread {
    struct fm_region_visit *newest;
    struct fm_live_meter *meter; /* NULL: no memory for it */
    struct fm_live_open *open;   /* what it is in, for those who look; or NULL */
    uint32_t number;             /* of the meter */
    uint32_t tid, era;
    bool counts; /* the heap library counts in the meter */
    struct fm_region_clock clock;
    struct fm_region_thread *next;
};

#define FM_VISITS_KEPT      50000u /* visits of all regions */
#define FM_VISITS_KEPT_EACH 1000u  /* … and of one */

struct fm_region_visits {
    struct fm_region_visit *suspended, *free;
    uint64_t order, serial;
    uint32_t kept;
};
extern struct fm_region_visits fm_region_visits;

/* Forget all: another store has begun. */
void fm_visits_forget(void);

/* A visit with a place in the store; NULL if there is no memory. */
struct fm_region_visit *fm_visit_make(struct fm_store *store);
static inline struct fm_region_visit *fm_visit_new(struct fm_store *store)
{
    struct fm_region_visit *v = fm_region_visits.free;
    if (__builtin_expect(!v || !v->live, 0))
        return fm_visit_make(store);
    fm_region_visits.free = v->older;
    v->serial = ++fm_region_visits.serial;
    return v;
}

/* Whoever looks at the thread sees the region once it is whole: the thread does not run then, so that only the
 * order of stores matters. */
static inline void fm_visit_show(const struct fm_region_visit *v, struct fm_live_open *open,
                                 uint32_t n)
{
    if (n < FM_LIVE_OPEN_MOST)
        open->regions[n] = (struct fm_live_open_region){ .frame = (uintptr_t)v->place.frame,
                                                         .code = (uintptr_t)v->place.code,
                                                         .region = v->live->region };
    __atomic_store_n(&open->n, n + 1, __ATOMIC_RELEASE);
}

/* The newest of the thread is over, or waits. */
static inline void fm_visit_hide_newest(struct fm_live_open *open)
{
    if (__builtin_expect(open != NULL, 1))
        __atomic_store_n(&open->n, open->n - 1, __ATOMIC_RELEASE);
}

/* It runs in this thread from now on. */
void fm_visit_meter(struct fm_region_visit *v, struct fm_region_thread *t);
static inline void fm_visit_run_in(struct fm_region_visit *v, struct fm_region_thread *t)
{
    v->thread = t;
    v->older = t->newest;
    v->newer = NULL;
    v->live->order = ++fm_region_visits.order;
    v->live->meter = t->number;
    if (__builtin_expect(t->counts, 0))
        fm_visit_meter(v, t);
    if (t->newest)
        t->newest->newer = v;
    t->newest = v;
    if (__builtin_expect(t->open != NULL, 1))
        fm_visit_show(v, t->open, t->open->n);
}

/* It waits from now on, and goes on in a thread. */
void fm_visit_wait(struct fm_region_visit *v, uint64_t now);
void fm_visit_go_on(struct fm_region_visit *v, struct fm_region_thread *t, uint64_t now);

/* How high it stood above its begin, until now. */
int64_t fm_visit_above(const struct fm_region_visit *v);

/* It ends; what it did goes to its region. */
void fm_visit_end(struct fm_region_visit *v, uint64_t now);

/* Is it kept when it ends? */
static inline bool fm_visit_is_kept(const struct fm_live_region *region)
{
    return region->kept < FM_VISITS_KEPT_EACH && fm_region_visits.kept < FM_VISITS_KEPT;
}

static inline void fm_visit_add_time(struct fm_live_region *region, uint64_t ticks)
{
    region->ended++;
    region->total_ticks += ticks;
    if (ticks < region->min_ticks)
        region->min_ticks = ticks;
    if (ticks > region->max_ticks)
        region->max_ticks = ticks;
}

static inline void fm_visit_add_cpu(struct fm_live_region *region, const struct fm_region_visit *v)
{
    region->cpu_ns += v->had_cpu.ns;
    region->cpu_ticks += v->had_cpu.ticks;
    region->cpu_ended++;
}

static inline void fm_visit_free(struct fm_region_visit *v)
{
    v->serial = 0;
    v->owner = v->frame = NULL;
    v->thread = NULL;
    v->older = fm_region_visits.free;
    fm_region_visits.free = v;
}

/* The same for the newest of its thread, in the usual case: it never waited, is not kept, and nobody counts memory.
 * False: nothing has happened. */
static inline bool fm_visit_end_simply(struct fm_region_visit *v, uint64_t now)
{
    struct fm_region_thread *t = v->thread;
    struct fm_live_visit *live = v->live;
    struct fm_live_region *region = v->region->live;
    if (__builtin_expect(v->inner || t->counts || live->suspended_ticks ||
                             fm_visit_is_kept(region) || fm_region_clock_is_old(&t->clock, now),
                         0))
        return false;
    uint64_t ticks = (int64_t)(now - live->begin_ticks) > 0 ? now - live->begin_ticks : 0;
    fm_region_cpu_add(&v->had_cpu, v->cpu, fm_region_cpu_at(&t->clock, now));
    t->newest = v->older;
    if (v->older)
        v->older->newer = NULL;
    fm_visit_hide_newest(t->open);
    live->end_ticks = now;
    __atomic_store_n(&live->state, FM_LIVE_VISIT_FREE, __ATOMIC_RELEASE);
    fm_visit_add_time(region, ticks);
    fm_visit_add_cpu(region, v);
    fm_visit_free(v);
    return true;
}

#endif
