/* Threads of the program as a collector sees them; see threads.h. */
#include "target/agent/threads.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target/agent/fork.h"
#include "target/agent/functions.h"
#include "target/agent/lines/lines.h"
#include "target/agent/regions/alone.h"
#include "target/agent/regions/region_nodes.h"
#include "target/agent/start.h"
#include "target/agent/trace/trace.h"

#define FIRST_FRAMES 1024u
#define MAX_TREES    4096u /* threads beyond these share one tree */
#define PATIENCE     1000  /* attempts to get the lock where waiting could be for ever */

__thread struct fm_agent_thread *fm_current[FM_SLOTS] __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t ending;
static bool prepared;

void fm_threads_lock(void)
{
    pthread_mutex_lock(&lock);
}

void fm_threads_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

bool fm_threads_try_lock(void)
{
    for (int i = 0; i < PATIENCE; i++) {
        if (pthread_mutex_trylock(&lock) == 0)
            return true;
        sched_yield();
    }
    return false;
}

/* GIL and lock: lines and nodes are shared with other threads. */
static void close_calls(struct fm_collector *c, struct fm_agent_thread *t, uint64_t now)
{
    if (t->beyond) {
        t->beyond = 0;
        t->top--;
    }
    if (c->trace) {
        fm_trace_thread_ends(c, t, now);
        t->top = t->base;
    }
    while (t->top > t->base) {
        fm_region_nodes_close(t, now);
        if (c->lines_on)
            fm_line_leave(t, now);
        fm_pop(t, now);
    }
    fm_region_nodes_close(t, now);
    t->live->last_ticks = now;
    t->live->end_ticks = 0;
}

/* Lock. */
static void look_at_cpu(struct fm_agent_thread *t)
{
    struct timespec ts;
    if (clock_gettime(t->cpu_clock, &ts) < 0)
        return;
    uint64_t cpu_ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
    t->live->cpu_ns = cpu_ns - t->live->cpu_start_ns;
    t->live->last_ticks = fm_clock_ticks();
}

static void put(struct fm_agent_thread **list, struct fm_agent_thread *t)
{
    t->next = *list;
    *list = t;
}

/* Take `t` off its collector's list of running threads, and put it in another. Lock. */
static void retire(struct fm_collector *c, struct fm_agent_thread *t, struct fm_agent_thread **list)
{
    struct fm_agent_thread **link = &c->threads;
    while (*link && *link != t)
        link = &(*link)->next;
    if (*link)
        *link = t->next;
    *t->current = NULL;
    put(list, t);
}

/* What the heap library has of the thread is about to be another's, or gone. */
static void keep_meter(struct fm_agent_thread *t)
{
    if (!t->meter)
        return;
    t->last_meter = *t->meter;
    t->meter = &t->last_meter;
}

/* A thread ends: without the GIL, while others run and may be anywhere in a tree or on a line. If it
 * has open calls (pthread_exit, a daemon thread when the interpreter ends), the time is noted, and
 * they are closed by the next one who comes by with the GIL; by the reader if nobody does. */
static void thread_ends(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    for (int slot = 0; slot < FM_SLOTS; slot++) {
        struct fm_agent_thread *t = fm_current[slot];
        if (!t)
            continue;
        struct fm_collector *c = t->collector;
        bool open_calls = t->top > t->base;
        if (!c->forked && c->store.header) {
            look_at_cpu(t);
            t->live->last_ticks = fm_clock_ticks();
            if (open_calls && !c->timer)
                t->live->end_ticks = t->live->last_ticks;
            if (c->trace)
                fm_trace_thread_ends(c, t, t->live->last_ticks);
        }
        keep_meter(t);
        retire(c, t, open_calls ? &c->ended_threads : &c->free_threads);
    }
    pthread_mutex_unlock(&lock);
}

/* Close the calls of threads that ended with some open, so that their records are free. GIL and
 * lock. Those timed by the program's own timer stay open: it cannot be asked for the past. */
static void close_ended(struct fm_collector *c)
{
    while (c->ended_threads) {
        struct fm_agent_thread *t = c->ended_threads;
        c->ended_threads = t->next;
        if (t->live->end_ticks && !c->forked && c->store.header)
            close_calls(c, t, t->live->end_ticks);
        put(&c->free_threads, t);
    }
}

/* ---- fork -------------------------------------------------------------------------------- */

/* The thread that forks need not have the GIL. */
static void before_fork(void)
{
    pthread_mutex_lock(&lock);
    for (int slot = 0; slot < FM_SLOTS; slot++)
        if (fm_collector_at(slot))
            fm_fork_remember(fm_collector_at(slot), fm_current[slot]);
}

static void after_fork_in_parent(void)
{
    for (int slot = 0; slot < FM_SLOTS; slot++)
        if (fm_collector_at(slot))
            fm_fork_forget(fm_collector_at(slot));
    pthread_mutex_unlock(&lock);
}

/* The other threads are not in the child: their records are free, their variables are not ours. */
static void keep_only(struct fm_collector *c, struct fm_agent_thread *own)
{
    struct fm_agent_thread *all = c->threads;
    c->threads = NULL;
    while (all) {
        struct fm_agent_thread *t = all;
        all = t->next;
        if (t == own) {
            t->next = NULL;
            c->threads = t;
            continue;
        }
        t->live->depth = 0;
        put(&c->free_threads, t);
    }
}

static void after_fork_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    fm_regions_alone_forked();
    for (int slot = 0; slot < FM_SLOTS; slot++) {
        struct fm_collector *c = fm_collector_at(slot);
        if (c && fm_fork_abandon(c))
            fm_current[slot] = NULL;
        else if (c)
            keep_only(c, fm_current[slot]);
        if (fm_current[slot] && fm_current[slot]->meter)
            fm_current[slot]->meter = fm_line_memory_meter(); /* it was in the parent's store */
    }
}

int fm_threads_prepare(void)
{
    if (prepared)
        return 0;
    if (pthread_key_create(&ending, thread_ends) ||
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child))
        return -1;
    prepared = true;
    return 0;
}

/* ---- attaching --------------------------------------------------------------------------- */

/* The root of a new tree, or of the shared one when there are too many. */
static struct fm_live_node *root_of_new_thread(struct fm_collector *c)
{
    struct fm_live_node *root = NULL;
    if (c->spare_root)
        return c->spare_root;
    if (c->thread_count < MAX_TREES)
        root = fm_store_node(&c->store, 0, 0);
    else if (c->overflow_root)
        c->store.header->lost[FM_LIVE_LOST_THREADS]++;
    if (root) {
        root->last_child = (uintptr_t)&fm_no_child;
        c->thread_count++;
        c->overflow_root = root; /* the last one that could be had serves the rest */
    }
    return root ? root : c->overflow_root;
}

static bool give_stack(struct fm_collector *c, struct fm_agent_thread *t, uint32_t frames)
{
    uint32_t number;
    struct fm_live_frame *stack = fm_store_stack(&c->store, frames, &number);
    if (!stack)
        return false;
    size_t open_frames = t->base ? (size_t)(t->top - t->base) + 1 : 1;
    if (t->base)
        memcpy(stack, t->base, open_frames * sizeof *stack);
    t->base = stack;
    t->top = stack + open_frames - 1;
    t->limit = stack + frames - 1; /* the last place is the lid's */
    t->stack = number;
    if (c->trace)
        fm_trace_stack_moved(c, t);
    return true;
}

static uint32_t frames_of(const struct fm_agent_thread *t)
{
    return (uint32_t)(t->limit - t->base) + 1;
}

bool fm_thread_grow(struct fm_collector *c, struct fm_agent_thread *t)
{
    int saved_errno = errno;
    uint32_t frames = frames_of(t) * 2;
    bool ok =
        !t->beyond && (!c->lines_on || fm_lines_make_room(t, frames)) && give_stack(c, t, frames);
    if (ok) {
        t->live->stack = t->stack;
    } else {
        fm_collector_lost_call(c);
        if (!t->beyond++)
            *++t->top = (struct fm_live_frame){ .node = (uintptr_t)&c->nowhere };
    }
    errno = saved_errno;
    return ok;
}

/* What costs most comes first: what was had when the rest is refused is used the next time, and the
 * store is not filled with roots and threads that never were. */
static bool fill_record(struct fm_collector *c, struct fm_agent_thread *t)
{
    uint32_t id;
    t->beyond = 0;
    t->top = t->base; /* a free record comes with the stack of its last owner */
    if (!t->base && !give_stack(c, t, FIRST_FRAMES))
        return false;
    if (c->lines_on && !fm_lines_make_room(t, frames_of(t)))
        return false;
    struct fm_live_node *root = root_of_new_thread(c);
    struct fm_live_thread *live = root ? fm_store_thread(&c->store, &id) : NULL;
    c->spare_root = live ? NULL : root;
    if (!live)
        return false;
    live->root = root->id;
    live->tid = (uint32_t)syscall(SYS_gettid);
    live->start_ticks = live->last_ticks = c->timer ? 0 : fm_clock_ticks();
    live->stack = t->stack;
    t->live = live;
    t->base[0] = (struct fm_live_frame){ .node = (uintptr_t)root };
    t->collector = c;
    fm_trace_thread_begins(c, t, id);
    fm_agent_table_release(&t->abroad); /* it names lines of its last owner */
    t->abroad_open = 0;
    if (pthread_getcpuclockid(pthread_self(), &t->cpu_clock))
        t->cpu_clock = CLOCK_THREAD_CPUTIME_ID;
    live->cpu_start_ns = fm_clock_read_ns(t->cpu_clock);
    return true;
}

static struct fm_agent_thread *attach_locked(struct fm_collector *c)
{
    close_ended(c);
    struct fm_agent_thread *t = c->free_threads;
    if (t)
        c->free_threads = t->next;
    else
        t = fm_agent_alloc(sizeof *t);
    if (!t)
        return NULL;
    /* Any non-NULL value asks for the destructor. Without it we would not hear of the thread's end,
     * and would go on writing to what was its memory. */
    if (pthread_setspecific(ending, &ending) || !fill_record(c, t)) {
        put(&c->free_threads, t);
        return NULL;
    }
    t->current = &fm_current[c->slot];
    put(&c->threads, t);
    fm_current[c->slot] = t;
    return t;
}

static bool wants_meter(const struct fm_collector *c)
{
    return c->lines_on && !(c == fm_start_collector() && fm_line_memory_is_late());
}

struct fm_agent_thread *fm_thread_attach(struct fm_collector *c)
{
    int saved_errno = errno;
    uint64_t since = fm_clock_ticks();
    struct fm_agent_thread *t = NULL;
    bool in_child = c->forked;
    if (in_child)
        fm_fork_begin(c);
    if (c->store.header) {
        pthread_mutex_lock(&lock);
        t = attach_locked(c);
        pthread_mutex_unlock(&lock);
    }
    if (t)
        t->meter = wants_meter(c) ? fm_line_memory_meter() : NULL;
    if (t && in_child)
        fm_fork_reopen_calls(c, t);
    if (t)
        fm_thread_learn_name(t);
    fm_collector_charge(c, since);
    errno = saved_errno;
    return t;
}

void fm_threads_detach_all(struct fm_collector *c)
{
    uint64_t now = fm_collector_now(c); /* before the lock: a timer may run the program's code */
    pthread_mutex_lock(&lock);
    close_ended(c);
    while (c->threads) {
        struct fm_agent_thread *t = c->threads;
        if (!c->forked && c->store.header) {
            look_at_cpu(t);
            close_calls(c, t, now);
        }
        retire(c, t, &c->free_threads);
    }
    pthread_mutex_unlock(&lock);
}

void fm_threads_look(struct fm_collector *c)
{
    for (struct fm_agent_thread *t = c->threads; t; t = t->next)
        look_at_cpu(t);
}

/* ---- names ------------------------------------------------------------------------------- */

/* Has the type, or one that it is made from, something of this name? Asking the object could then
 * run the program's code. */
static bool type_has(PyTypeObject *type, const char *name)
{
    PyObject *mro = type->tp_mro;
    for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *dict = fm_python_type_dict((PyTypeObject *)PyTuple_GET_ITEM(mro, i));
        if (dict && PyDict_GetItemString(dict, name))
            return true;
    }
    return !mro;
}

PyObject *fm_thread_name_of(PyObject *thread)
{
    PyObject *key = !type_has(Py_TYPE(thread), "_name") ? PyUnicode_FromString("_name") : NULL;
    PyObject *found = key ? PyObject_GenericGetAttr(thread, key) : NULL;
    Py_XDECREF(key);
    return found;
}

/* threading._active[ident]._name, read without running any of the program's code. New, or NULL. */
static PyObject *threading_name(void)
{
    PyObject *name = PyUnicode_FromString("threading");
    PyObject *module = name ? PyImport_GetModule(name) : NULL;
    PyObject *dict = module && PyModule_Check(module) ? PyModule_GetDict(module) : NULL;
    PyObject *active = dict ? PyDict_GetItemString(dict, "_active") : NULL;
    PyObject *ident = PyLong_FromUnsignedLong(PyThread_get_thread_ident());
    PyObject *thread = NULL;
    if (active && PyDict_CheckExact(active) && ident)
        thread = PyDict_GetItemWithError(active, ident);
    PyObject *found = thread ? fm_thread_name_of(thread) : NULL;
    Py_XDECREF(ident);
    Py_XDECREF(module);
    Py_XDECREF(name);
    return found;
}

void fm_thread_learn_name(struct fm_agent_thread *t)
{
    struct fm_raised raised = fm_python_put_aside();
    /* Until 3.11 an allocation may collect garbage, whose code may be the end of `t`. */
    int collecting = PyGC_Disable();
    PyObject *name = threading_name();
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (text)
        snprintf(t->live->name, sizeof t->live->name, "%s", text);
    else if (t->live->tid == (uint32_t)getpid())
        snprintf(t->live->name, sizeof t->live->name, "MainThread");
    Py_XDECREF(name);
    PyErr_Clear();
    if (collecting)
        PyGC_Enable();
    fm_python_put_back(raised);
}
