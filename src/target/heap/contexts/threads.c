/* Threads; see threads.h. */
#include "target/heap/contexts/threads.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target/heap/blocks/ranges.h"
#include "target/heap/fork.h"
#include "target/heap/store.h"

#define MANY       256 /* threads: from here on records of dead ones are used again */
#define MOST_ASKED 16  /* … if one of so many is dead: to ask is a system call */
#define FIRST_ROOM 64  /* steps */

static struct {
    struct fm_heap_self *all, *asked; /* `asked`: the last one, the next is first next time */
    uint32_t count;
    uint32_t beginning; /* threads that are about to be in the list */
    fm_heap_lock lock;
} threads;

struct fm_heap_self *fm_threads_all(void)
{
    return __atomic_load_n(&threads.all, __ATOMIC_ACQUIRE);
}

/* ---- names ---- */

#define MOST_TRIES 12 /* each twice as late as the one before */

/* The system's name is for now, if the thread has one of its own. The main thread is asked for none. */
static void expect_name(struct fm_heap_self *self)
{
    bool main = self->tid == (uint32_t)getpid();
    prctl(PR_GET_NAME, self->record->name, 0, 0, 0); /* 16 bytes */
    self->name_in = !main;
    self->name_tries = 0;
}

void fm_threads_learn_name(struct fm_heap_self *self)
{
    char name[sizeof self->record->name];
    void *thread = fm_heap.has_layout ? fm_heap.layout.current_thread() : NULL;
    uint32_t bytes = thread ? fm_heap.layout.thread_name(thread, name, sizeof name - 1) : 0;
    if (bytes) {
        name[bytes] = '\0';
        memcpy(self->record->name, name, bytes + 1);
        self->record->flags |= FM_HEAP_THREAD_NAMED;
    } else if (++self->name_tries < MOST_TRIES) {
        self->name_in = 1u << self->name_tries;
    }
}

/* What a thread calls itself for the system; what others call it is not heard of. */
FM_HEAP_EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
    static int (*real)(pthread_t, const char *);
    if (!real)
        real = (int (*)(pthread_t, const char *))dlsym(RTLD_NEXT, "pthread_setname_np");
    int rc = real ? real(thread, name) : ENOSYS;
    struct fm_heap_self *self =
        rc == 0 && pthread_equal(thread, pthread_self()) ? fm_heap_self : NULL;
    if (self && fm_heap_is_here() && !(self->record->flags & FM_HEAP_THREAD_NAMED)) {
        snprintf(self->record->name, sizeof self->record->name, "%s", name);
        self->record->flags |= FM_HEAP_THREAD_CALLED;
    }
    return rc;
}

/* Room for its stack, and its place in the store. */
static bool prepare(struct fm_heap_self *self)
{
    struct fm_heap_thread *record = fm_heap_store_thread(&self->number);
    if (!record)
        return false;
    if (!self->steps) {
        self->steps = fm_heap_map(2 * FIRST_ROOM * sizeof *self->steps);
        if (!self->steps)
            return false;
        self->fresh = self->steps + FIRST_ROOM;
        self->room = FIRST_ROOM;
    }
    self->root = fm_heap_store_node(0, 0, 0, self->number);
    self->patience = 8;
    self->record = record;
    record->root = self->root;
    record->tid = self->tid;
    expect_name(self);
    return self->root != 0;
}

static struct fm_heap_self *make(uint32_t tid)
{
    struct fm_heap_self *self = fm_heap_map(sizeof *self);
    if (!self)
        return NULL;
    self->tid = tid;
    self->meter = &self->own_meter;
    if (!prepare(self)) {
        fm_heap_unmap(self, sizeof *self);
        return NULL;
    }
    fm_heap_lock_take(&threads.lock);
    self->next = threads.all;
    __atomic_store_n(&threads.all, self, __ATOMIC_RELEASE);
    threads.count++;
    fm_heap_lock_give(&threads.lock);
    return self;
}

/* ---- waiting for others ---- */

#define MOST_YIELDS 1000
#define MOST_NAPS   20000 /* of 50 microseconds: a thread may be stopped in an event, by a debugger */

static bool can_await;

/* Events set `inside` without a fence: the kernel makes one for all processors, at our price. */
void fm_threads_init(void)
{
    can_await = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

bool fm_threads_can_await(void)
{
    return can_await;
}

static bool await_zero(const uint32_t *word)
{
    for (int i = 0; i < MOST_YIELDS + MOST_NAPS; i++) {
        if (!__atomic_load_n(word, __ATOMIC_ACQUIRE))
            return true;
        fm_heap_nap(i < MOST_YIELDS);
    }
    return false;
}

static bool await_one(const struct fm_heap_self *one)
{
    return one == fm_heap_self || await_zero(&one->inside);
}

bool fm_threads_await(const struct fm_heap_self *one)
{
    int saved_errno = errno;
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    bool outside = !one || await_one(one);
    for (struct fm_heap_self *self = fm_threads_all(); self && !one; self = self->next)
        outside &= await_one(self);
    errno = saved_errno;
    return outside;
}

bool fm_threads_await_beginning(void)
{
    int saved_errno = errno;
    bool begun = await_zero(&threads.beginning);
    errno = saved_errno;
    return begun;
}

/* ---- beginning ---- */

static bool has_ended(uint32_t tid)
{
    return syscall(SYS_tgkill, getpid(), tid, 0) != 0 && errno == ESRCH;
}

void fm_threads_meter_at(struct fm_heap_self *self, struct fm_heap_meter *place)
{
    struct fm_heap_meter *to = place ? place : &self->own_meter;
    if (self->meter == to)
        return;
    *to = *self->meter;
    self->meter = to;
}

/* The record of a thread that is no more. */
static struct fm_heap_self *take_over(uint32_t tid)
{
    struct fm_heap_self *self = NULL;
    fm_heap_lock_take(&threads.lock);
    for (int i = 0; i < MOST_ASKED && threads.count >= MANY && !self; i++) {
        struct fm_heap_self *last = threads.asked;
        threads.asked = last && last->next ? last->next : threads.all;
        if (has_ended(threads.asked->tid))
            self = threads.asked;
    }
    if (self) {
        __atomic_store_n(&self->tid, tid, __ATOMIC_RELAXED);
        self->depth = self->anchor_count = 0;
        self->thread = self->walked = NULL;
        fm_threads_meter_at(self, NULL);
        self->name_in = 0; /* it has that of the first of them */
    }
    fm_heap_lock_give(&threads.lock);
    return self;
}

/* Where its stack is, for who looks at resident memory: a page of it, by which that finds the rest. To
 * ask for all of it (pthread_getattr_np) needs a lock, within which the C library allocates: this may
 * be that allocation. The first thread's is known without. */
static void tell_stack(uint32_t tid)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)4095;
    if (tid != (uint32_t)getpid())
        fm_ranges_add(FM_HEAP_RANGE_STACK, here, 4096, tid);
}

struct fm_heap_self *fm_threads_begin(void)
{
    int saved_errno = errno;
    uint32_t tid = (uint32_t)syscall(SYS_gettid);
    for (;;) {
        __atomic_add_fetch(&threads.beginning, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(fm_heap.here, __ATOMIC_SEQ_CST) || fm_fork_is_quiet())
            break;
        __atomic_sub_fetch(&threads.beginning, 1, __ATOMIC_SEQ_CST);
        fm_fork_wait();
    }
    struct fm_heap_self *self = take_over(tid);
    fm_heap_self = self ? self : make(tid);
    if (fm_heap_self) {
        fm_heap_self->errno_at = &errno;
        tell_stack(tid);
    }
    __atomic_sub_fetch(&threads.beginning, 1, __ATOMIC_SEQ_CST);
    errno = saved_errno;
    return fm_heap_self;
}

/* As if the thread had never allocated, and new to the store. */
static bool renew(struct fm_heap_self *self)
{
    memset(self->guesses, 0, sizeof self->guesses);
    if (self->child_room)
        memset(self->children, 0, self->child_room * sizeof *self->children);
    self->child_count = self->depth = self->anchor_count = 0;
    self->seen = 0;
    self->last.block = NULL;
    return prepare(self);
}

bool fm_threads_begin_again(void)
{
    struct fm_heap_self **place = &threads.all;
    threads.asked = NULL;
    while (*place) {
        struct fm_heap_self *self = *place;
        bool ended = self != fm_heap_self && has_ended(self->tid);
        if (!ended && !renew(self))
            return false;
        if (!ended) {
            place = &self->next;
            continue;
        }
        *place = self->next;
        threads.count--;
        fm_heap_unmap(self, sizeof *self); /* its tables are small, and threads few */
    }
    return true;
}

void fm_threads_reset(void)
{
    struct fm_heap_self *self = fm_heap_self;
    threads.lock = (fm_heap_lock){ 0 };
    threads.all = threads.asked =
        NULL; /* the others are not in this process: their memory is left to it */
    threads.count = 0;
    if (!self)
        return;
    self->tid = (uint32_t)syscall(SYS_gettid);
    self->next = NULL;
    threads.beginning = 0;
    if (renew(self)) {
        threads.all = self;
        threads.count = 1;
    } else {
        fm_heap_self = NULL;
    }
}
