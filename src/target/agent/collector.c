/* The calls collector: life cycle and slow paths; see collector.h. */
#include "target/agent/collector.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "target/agent/functions.h"
#include "target/agent/hooks/hooks.h"
#include "target/agent/lines/lines.h"
#include "target/agent/regions/region_nodes.h"
#include "target/agent/sources.h"
#include "target/agent/start.h"
#include "target/agent/threads.h"
#include "target/agent/trace/trace.h"

#define DEFAULT_NODE_LIMIT 32000000u /* 2 GB of contexts; far more than any view can use */

/* Matches no function: ids of functions are small. */
const struct fm_live_node fm_no_child = { .func = UINT32_MAX };

/* The one piece of global state: which collectors exist. Changed with the GIL and the lock of
 * threads.h, so that either is enough to look. */
static struct fm_collector *collectors[FM_SLOTS];

struct fm_collector *fm_collector_at(int slot)
{
    return collectors[slot];
}

/* ---- life cycle -------------------------------------------------------------------------- */

static int take_slot(void)
{
    for (int slot = 0; slot < FM_SLOTS; slot++)
        if (!collectors[slot])
            return slot;
    for (int slot = 0; slot < FM_SLOTS; slot++) {
        struct fm_collector *c = collectors[slot];
        if (!c->running && c->give_up)
            return c->give_up(c) < 0 ? -1 : slot;
    }
    PyErr_SetString(PyExc_ValueError, "Another profiling tool is already active");
    return -1;
}

static void copy_path(char *out, size_t size, const char *path)
{
    out[0] = '\0';
    if (path && strlen(path) < size)
        memcpy(out, path, strlen(path) + 1);
}

static void set_collector(int slot, struct fm_collector *c)
{
    fm_threads_lock();
    collectors[slot] = c;
    fm_threads_unlock();
}

void fm_collector_forget(struct fm_collector *c)
{
    fm_threads_lock();
    fm_store_close(&c->store);
    fm_trace_chunks_close(&c->trace_chunks);
    c->ended_threads = c->free_threads = NULL; /* their stacks lay in the store */
    fm_threads_unlock();
    c->era++;
    fm_functions_reset(c);
    fm_sources_reset(c);
    fm_agent_table_release(&c->children);
    fm_agent_table_release(&c->pauses);
    c->last_pause = NULL;
    if (c->trace)
        fm_trace_forget();
    c->thread_count = 0;
    c->overflow_root = c->spare_root = NULL;
    c->nowhere.last_child = (uintptr_t)&fm_no_child;
}

int fm_collector_open(struct fm_collector *c)
{
    const char *more = c->more_folder[0] ? c->more_folder : NULL;
    fm_threads_lock();
    int rc = fm_store_open(&c->store, c->folder[0] ? c->folder : NULL, more);
    if (rc == 0 && c->trace)
        rc = fm_trace_chunks_open(&c->trace_chunks, c->folder[0] ? c->store.path : NULL,
                                  c->trace_drop);
    fm_threads_unlock();
    return rc;
}

/* Begin a new, empty store. */
static int open_store(struct fm_collector *c)
{
    if (fm_collector_open(c) < 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    fm_start_describe_process(c, 0);
    return 0;
}

struct fm_collector *fm_collector_new(const struct fm_options *options)
{
    int slot = take_slot();
    if (slot >= 0 && options->trace && slot != FM_TRACE_SLOT) {
        PyErr_SetString(PyExc_ValueError, "another collector runs in the place of the trace's");
        return NULL;
    }
    if (slot < 0 || fm_functions_prepare(slot) < 0)
        return NULL;
    struct fm_collector *c = PyMem_RawCalloc(1, sizeof *c);
    if (!c || fm_threads_prepare() < 0) {
        PyMem_RawFree(c);
        PyErr_NoMemory();
        return NULL;
    }
    c->slot = slot;
    c->calls = options->calls;
    c->lines_waiting = options->lines_wait;
    c->c_calls = options->c_calls && options->calls;
    c->lines_on = options->lines != NULL;
    c->lines_split = options->lines_split;
    copy_path(c->lines_patterns, sizeof c->lines_patterns, options->lines);
    c->keep_code = options->keep_code;
    c->redact = options->redact;
    c->timer = Py_XNewRef(options->timer);
    c->timer_unit = options->timer_unit;
    c->next_func = c->era = 1;
    c->node_limit = DEFAULT_NODE_LIMIT;
    c->nowhere = (struct fm_live_node){ .last_child = (uintptr_t)&fm_no_child, .id = UINT32_MAX };
    fm_trace_prepare(c, options);
    copy_path(c->folder, sizeof c->folder, options->folder);
    copy_path(c->more_folder, sizeof c->more_folder, options->more_folder);
    set_collector(slot, c);
    fm_functions_forget_choice(c);
    if (open_store(c) < 0) {
        fm_collector_free(c);
        return NULL;
    }
    return c;
}

int fm_collector_begin_again(struct fm_collector *c, const struct fm_options *options)
{
    c->c_calls = options->c_calls && options->calls;
    c->redact = options->redact;
    fm_trace_prepare(c, options);
    copy_path(c->folder, sizeof c->folder, options->folder);
    copy_path(c->more_folder, sizeof c->more_folder, options->more_folder);
    fm_functions_forget_choice(c);
    return open_store(c);
}

void fm_collector_free(struct fm_collector *c)
{
    if (!c || c->in_timer)
        return; /* in a timer: leaked rather than taken away under its caller */
    struct fm_raised raised = fm_python_put_aside(); /* objects die while exceptions are raised */
    if (fm_collector_stop(c) < 0)
        PyErr_Clear();
    set_collector(c->slot, NULL);
    c->keep_code = false; /* forgetting drops what was held for getstats() */
    fm_collector_forget(c);
    Py_XDECREF(c->timer);
    Py_XDECREF(c->marked);
    PyMem_RawFree(c);
    fm_python_put_back(raised);
}

int fm_collector_start(struct fm_collector *c)
{
    if (c->trace)
        fm_trace_starts(c);
    if (!c->hooked && fm_hooks_install(c) < 0)
        return -1;
    c->hooked = c->running = true;
    return 0;
}

/* What the timer's caller is working on must stay: −1 with an exception from inside a timer. */
static int refuse_in_timer(const struct fm_collector *c)
{
    if (c->in_timer)
        PyErr_SetString(PyExc_RuntimeError, "the profiler cannot be changed from inside its timer");
    return c->in_timer ? -1 : 0;
}

int fm_collector_stop(struct fm_collector *c)
{
    bool was_running = c->running;
    if (!c->hooked)
        return 0;
    if (refuse_in_timer(c) < 0)
        return -1;
    c->hooked = c->running = false;
    int rc = fm_hooks_remove(c);
    fm_threads_detach_all(c);
    if (c->trace)
        fm_trace_stops(c);
    if (was_running)
        fm_collector_mark_end(c);
    return rc;
}

int fm_collector_pause(struct fm_collector *c)
{
    if (!FM_HAS_MONITORING || !c->lines_on || c->calls || c->lines_patterns[0])
        return fm_collector_stop(c);
    if (!c->running)
        return 0;
    if (refuse_in_timer(c) < 0)
        return -1;
    c->running = false;
    fm_threads_detach_all(c);
    fm_collector_mark_end(c);
    return 0;
}

int fm_collector_clear(struct fm_collector *c)
{
    if (refuse_in_timer(c) < 0)
        return -1;
    fm_threads_detach_all(c);
    fm_collector_forget(c);
    return open_store(c);
}

static void mark_end_locked(struct fm_collector *c)
{
    struct fm_live_header *header = c->store.header;
    if (!header || c->forked)
        return;
    fm_threads_look(c);
    struct fm_clock_pair now = fm_clock_pair_now();
    header->later_ticks = now.ticks;
    header->later_ns = now.ns;
    header->end_ticks = now.ticks;
    header->flags |= FM_LIVE_ENDED;
}

void fm_collector_mark_end(struct fm_collector *c)
{
    fm_threads_lock();
    mark_end_locked(c);
    fm_threads_unlock();
}

void fm_collector_mark_end_of_process(struct fm_collector *c)
{
    if (!fm_threads_try_lock())
        return;
    /* A child of vfork shares this memory but is another process, and ends nothing. */
    if (c->store.header && c->store.header->pid == (uint32_t)getpid())
        mark_end_locked(c);
    fm_threads_unlock();
}

/* With a timer of the program's own a tick is what it counts: tell the reader its length. */
static void describe_timer(struct fm_collector *c)
{
    struct fm_live_header *header = c->store.header;
    double tick_seconds = c->timer_unit > 0 ? c->timer_unit : 1e-9;
    header->later_ticks = header->start_ticks + 1000000000u;
    header->later_ns = header->start_ns + (uint64_t)(tick_seconds * 1e18);
    header->end_ticks = c->running ? fm_collector_timer(c) : 0;
}

PyObject *fm_collector_snapshot(struct fm_collector *c)
{
    if (!c->store.header)
        return PyErr_NoMemory();
    if (c->running)
        fm_collector_mark_end(c);
    if (c->timer)
        describe_timer(c);
    size_t bytes = FM_LIVE_PAGE;
    for (uint32_t i = 0; i < c->store.chunk_count; i++)
        bytes += c->store.chunks[i]->bytes;
    PyObject *result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bytes);
    if (!result)
        return NULL;
    char *out = PyBytes_AS_STRING(result);
    memcpy(out, c->store.header, FM_LIVE_PAGE);
    out += FM_LIVE_PAGE;
    for (uint32_t i = 0; i < c->store.chunk_count; i++) {
        memcpy(out, c->store.chunks[i], c->store.chunks[i]->bytes);
        out += c->store.chunks[i]->bytes;
    }
    return result;
}

uint64_t fm_collector_timer(struct fm_collector *c)
{
    struct fm_raised raised = fm_python_put_aside();
    bool outer = c->in_timer;
    c->in_timer = true;
    PyObject *value = PyObject_CallNoArgs(c->timer);
    c->in_timer = outer;
    uint64_t ticks = 0;
    if (value && c->timer_unit > 0)
        ticks = (uint64_t)PyLong_AsLongLong(value);
    else if (value)
        ticks = (uint64_t)(int64_t)(PyFloat_AsDouble(value) * 1e9);
    if (!value || PyErr_Occurred())
        PyErr_WriteUnraisable(c->timer);
    Py_XDECREF(value);
    fm_python_put_back(raised);
    return ticks;
}

/* ---- nodes ------------------------------------------------------------------------------- */

void fm_collector_lost_call(struct fm_collector *c)
{
    if (c->store.header && c->running)
        c->store.header->lost[FM_LIVE_LOST_CALLS]++;
}

/* The one node for all calls of `f` that have no context of their own; NULL without memory. */
static struct fm_live_node *find_shared(struct fm_collector *c, struct fm_func *f)
{
    uint64_t key = (uint64_t)UINT32_MAX << 32 | f->id;
    struct fm_live_node *node = f->id ? fm_agent_table_find(&c->children, key) : NULL;
    if (node || !f->id)
        return node;
    node = fm_store_node(&c->store, c->overflow_root->id, f->id);
    if (!node || !fm_agent_table_set(&c->children, key, node))
        return NULL;
    node->last_child = (uintptr_t)&fm_no_child;
    return node;
}

/* No room for another context: the calls of `f` are added up in one node for all of them, and if
 * there is no room for that either, nowhere. */
static struct fm_live_node *shared_node(struct fm_collector *c, struct fm_func *f)
{
    struct fm_live_node *node = find_shared(c, f);
    if (!node) {
        fm_collector_lost_call(c);
        return &c->nowhere;
    }
    c->store.header->lost[FM_LIVE_LOST_CONTEXTS]++;
    return node;
}

static struct fm_live_node *new_node(struct fm_collector *c, struct fm_agent_thread *t,
                                     struct fm_live_node *parent, struct fm_func *f)
{
    struct fm_live_node *node = NULL;
    uint64_t key = (uint64_t)parent->id << 32 | f->id;
    if (c->store.next_node < c->node_limit && f->id && parent != &c->nowhere)
        node = fm_store_node(&c->store, parent->id, f->id);
    if (!node)
        return shared_node(c, f);
    node->last_child = (uintptr_t)&fm_no_child;
    fm_agent_table_set(&c->children, key, node);
    if (!t->live->name[0])
        fm_thread_learn_name(t);
    return node;
}

/* `node` is the child called now: remember it, and that it came after the one before. */
static void guess_next(struct fm_live_node *parent, struct fm_live_node *node)
{
    struct fm_live_node *before = (struct fm_live_node *)(uintptr_t)parent->last_child;
    ptrdiff_t distance = node - before;
    if (before != &fm_no_child && distance >= INT32_MIN && distance <= INT32_MAX)
        before->next_hint = (int32_t)distance;
    parent->last_child = (uintptr_t)node;
}

struct fm_live_node *fm_collector_child(struct fm_collector *c, struct fm_agent_thread *t,
                                        struct fm_live_node *parent, struct fm_func *f,
                                        const void *key)
{
    if (__builtin_expect(f->id != 0, 1)) {
        struct fm_live_node *known =
            fm_agent_table_find(&c->children, (uint64_t)parent->id << 32 | f->id);
        if (__builtin_expect(known != NULL, 1)) {
            guess_next(parent, known);
            return known;
        }
    }
    int saved_errno = errno;
    uint64_t since = fm_clock_ticks();
    if (!f->id)
        fm_function_define(c, f, key);
    struct fm_live_node *node = new_node(c, t, parent, f);
    if (node->parent == parent->id && node != &c->nowhere)
        guess_next(parent, node);
    fm_collector_charge(c, since);
    errno = saved_errno;
    return node;
}

/* The innermost call ends, in a region or not. */
static void end_call(struct fm_collector *c, struct fm_agent_thread *t, uint64_t now)
{
    const struct fm_func *f = (const struct fm_func *)(uintptr_t)t->top->func;
    struct fm_region_visit *taken = NULL;
    if (t->top->key & FM_KEY_IN_REGION && f->flags & FM_LIVE_FUNCTION_C)
        taken = fm_region_nodes_take(t, now);
    fm_region_nodes_close(t, now);
    if (c->lines_on)
        fm_line_leave(t, now);
    fm_pop(t, now);
    if (taken)
        fm_region_nodes_go_on(c, t, taken);
}

void fm_collector_leave_unmatched(struct fm_collector *c, struct fm_agent_thread *t,
                                  const void *key, uint64_t now)
{
    struct fm_live_frame *frame = t->top;
    if (t->beyond) { /* one that has no frame, see fm_thread_grow() */
        if (--t->beyond == 0)
            t->top--;
        return;
    }
    if (frame == t->base)
        return; /* entered before recording began: not ours to count */
    while (frame > t->base && fm_frame_key(frame) != (uintptr_t)key)
        frame--;
    if (frame == t->base) {
        c->store.header->lost[FM_LIVE_LOST_EVENTS]++;
        return;
    }
    /* Calls above it ended without telling: close them now. */
    while (t->top >= frame) {
        c->store.header->lost[FM_LIVE_LOST_EVENTS] += t->top > frame;
        end_call(c, t, now);
    }
}

/* ---- generators -------------------------------------------------------------------------- */

static struct fm_live_resumed *resumed_of(struct fm_collector *c, struct fm_live_node *node)
{
    if (node == &c->nowhere)
        return NULL;
    if (!node->resumed)
        node->resumed = (uintptr_t)fm_store_resumed(&c->store, node->id);
    return (struct fm_live_resumed *)(uintptr_t)node->resumed;
}

struct fm_pause *fm_pause_find(struct fm_collector *c, const void *frame)
{
    if (c->last_pause && c->last_pause->frame == frame)
        return c->last_pause;
    struct fm_pause *pause = fm_agent_table_find(&c->pauses, (uint64_t)(uintptr_t)frame);
    if (pause)
        c->last_pause = pause;
    return pause;
}

struct fm_pause *fm_pause_find_or_make(struct fm_collector *c, const void *frame)
{
    struct fm_pause *pause = fm_pause_find(c, frame);
    if (pause)
        return pause;
    pause = fm_agent_alloc(sizeof *pause);
    if (!pause || !fm_agent_table_set(&c->pauses, (uint64_t)(uintptr_t)frame, pause))
        return NULL;
    pause->frame = frame;
    return pause;
}

void fm_yield(struct fm_collector *c, struct fm_agent_thread *t, const void *key, const void *frame,
              uint64_t now)
{
    if (fm_frame_key(t->top) == (uintptr_t)key)
        fm_region_nodes_close(t, now);
    struct fm_live_node *node = (struct fm_live_node *)(uintptr_t)t->top->node;
    uint64_t func = t->top->func;
    struct fm_live_line *line = NULL;
    int last_line = 0;
    bool matched = t->top->key == (uintptr_t)key;
    if (c->lines_on && matched) {
        line = fm_line_frame_of(t)->line;
        last_line = fm_line_frame_of(t)->last;
        fm_line_leave(t, now);
    }
    fm_leave(c, t, key, now);
    if (!matched)
        return;
    struct fm_pause *pause = fm_pause_find_or_make(c, frame);
    if (pause) {
        pause->node = node;
        pause->func = func;
        pause->line = line;
        pause->last_line = last_line;
        pause->since_ticks = now;
    }
}

void fm_resume(struct fm_collector *c, struct fm_agent_thread *t, struct fm_func *f,
               const void *key, const void *frame, uint64_t began)
{
    struct fm_live_node *node = fm_push(c, t, f, key);
    if (!node)
        return;
    struct fm_live_resumed *resumed = resumed_of(c, node);
    if (resumed)
        resumed->resumes++;
    else if (node != &c->nowhere) /* which has been counted as lost already */
        fm_collector_lost_call(c);
    struct fm_pause *pause = fm_pause_find(c, frame);
    uint64_t now = began ? began : fm_collector_now(c);
    if (pause && pause->func != t->top->func)
        pause->node = NULL; /* of another generator that was dropped; this one has its address */
    if (pause && pause->node) {
        struct fm_live_resumed *paused = resumed_of(c, pause->node);
        if (paused)
            paused->suspended_ticks += fm_elapsed(pause->since_ticks, now);
        if (pause->line)
            pause->line->suspended_ticks += fm_elapsed(pause->since_ticks, now);
    }
    fm_opened(t, now);
    if (c->lines_on) {
        *fm_line_frame_of(t) = (struct fm_line_frame){ 0 };
        if (pause && pause->node && pause->line) /* the line it waited on goes on: no new hit */
            fm_line_resume(t, fm_line_frame_of(t), pause, now);
    }
    if (pause)
        pause->node = NULL;
}
