/* The owner of the C world; see alone.h. */
#include "target/heap/worlds/alone.h"

#include <sys/single_threaded.h>
#include <time.h>

#define HURRIED_NS     200000 /* who is owner for less pays more for it than he saves */
#define LONG_NS        10000000
#define MOST_HURRIED   4
#define LOOK_EVERY     64 /* events of a world without an owner */
#define LEAST_PATIENCE 16 /* looks in a row that find no other thread */
#define MOST_PATIENCE  4096

static struct {
    fm_heap_lock lock;
    uint64_t since_ns; /* there is this owner */
    uint32_t hurried;  /* owners in a row who were so for a moment only */
    uint32_t patience;
    const struct fm_heap_self *last; /* who was seen last in a world without an owner */
} world = { .patience = LEAST_PATIENCE };

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* In a world without an owner: has this thread been by itself for long? */
static bool is_by_itself(struct fm_heap_self *self)
{
    if (++self->shared_events % LOOK_EVERY != 0)
        return false;
    if (__atomic_load_n(&world.last, __ATOMIC_RELAXED) != self) {
        __atomic_store_n(&world.last, self, __ATOMIC_RELAXED);
        self->by_itself = 0;
        return false;
    }
    return ++self->by_itself >= __atomic_load_n(&world.patience, __ATOMIC_RELAXED);
}

/* Is the world to have an owner, or did the last ones have it for moments only? With the lock. */
static bool is_worth_it(uint64_t now)
{
    uint64_t had = now - world.since_ns;
    world.hurried = had < HURRIED_NS ? world.hurried + 1 : 0;
    uint32_t patience = had > LONG_NS ? LEAST_PATIENCE : world.patience;
    bool worth = world.hurried < MOST_HURRIED;
    if (!worth) {
        world.hurried = 0;
        patience = patience < MOST_PATIENCE ? patience * 2 : patience;
    }
    __atomic_store_n(&world.patience, patience, __ATOMIC_RELAXED);
    return worth;
}

/* Become the owner, or let nobody be. Outside. */
static void take(struct fm_heap_self *self)
{
    fm_heap_lock_take(&world.lock);
    struct fm_heap_self *old = __atomic_load_n(&fm_heap.owner, __ATOMIC_RELAXED);
    if (old != self) {
        uint64_t now = now_ns();
        bool worth = !old || is_worth_it(now);
        world.since_ns = now;
        self->by_itself = 0;
        /* As long as the old one may be inside nobody else is, so there is an owner. */
        __atomic_store_n(&fm_heap.owner, self, __ATOMIC_RELEASE);
        fm_threads_await(old); /* of a world without an owner: everybody */
        if (!worth)
            __atomic_store_n(&fm_heap.owner, NULL, __ATOMIC_RELEASE);
    }
    fm_heap_lock_give(&world.lock);
}

bool fm_alone_slowly(struct fm_heap_self *self)
{
    for (;;) {
        bool here = __atomic_load_n(fm_heap.here, __ATOMIC_ACQUIRE) || fm_fork_is_quiet();
        struct fm_heap_self *owner = __atomic_load_n(&fm_heap.owner, __ATOMIC_ACQUIRE);
        if (here && owner == self)
            return true;
        if (here && !fm_threads_can_await())
            return __libc_single_threaded;
        if (here && !owner && !is_by_itself(self))
            return false;
        fm_event_outside(self);
        if (here)
            take(self);
        else
            fm_fork_wait();
        fm_event_say_inside(self);
    }
}

void fm_alone_hold(void)
{
    fm_heap_lock_take(&world.lock);
    if (fm_threads_can_await())
        __atomic_store_n(&fm_heap.owner, fm_heap_self, __ATOMIC_RELEASE);
}

void fm_alone_release(void)
{
    fm_heap_lock_give(&world.lock);
}
