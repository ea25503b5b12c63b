/* A trace that begins late; see late.h. */
#include "target/agent/trace/late.h"

#include "target/agent/functions.h"
#include "target/agent/hooks/hooks.h"
#include "target/agent/regions/regions.h"
#include "target/agent/start.h"
#include "target/agent/threads.h"
#include "target/agent/trace/choose_calls.h"
#include "target/agent/trace/tasks.h"

/* ---- what is open ------------------------------------------------------------------------ */

size_t fm_running_code(const void **into, size_t cap)
{
    size_t n = 0;
    PyFrameObject *frame = (PyFrameObject *)Py_XNewRef((PyObject *)PyEval_GetFrame());
    while (frame) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        if (n < cap)
            into[n] = code;
        n++;
        Py_DECREF(code);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    return n;
}

static void find_open(struct fm_collector *c, struct fm_agent_thread *t, const void *begins)
{
    size_t frames = fm_running_code(NULL, 0);
    const void **code = frames ? PyMem_RawMalloc(frames * sizeof *code) : NULL;
    if (!code)
        return;
    fm_running_code(code, frames); /* the newest first */
    size_t newest = begins && code[0] == begins;
    for (size_t i = frames; i-- > newest;) {
        struct fm_func *f = fm_function_of_code(c, (PyCodeObject *)code[i]);
        if (f)
            fm_trace_push_open(c, t, f, code[i], i < c->trace_own_frames);
    }
    PyMem_RawFree(code);
}

void fm_trace_find_open(struct fm_collector *c, struct fm_agent_thread *t, const void *begins,
                        bool region_begins)
{
    uint64_t since = fm_clock_ticks();
    t->trace.must_find = false;
    struct fm_raised raised = fm_python_put_aside();
    int collecting = PyGC_Disable(); /* frames become objects: until 3.11 that may run any code */
    find_open(c, t, begins);
    if (collecting)
        PyGC_Enable();
    fm_python_put_back(raised);
    t->trace.must_tell_open = t->top > t->base;
    fm_regions_trace_open(region_begins);
    fm_collector_charge(c, since);
}

/* ---- stopping, and going on -------------------------------------------------------------- */

static void close_thread(struct fm_collector *c, struct fm_agent_thread *t, uint64_t now)
{
    if (t->beyond) {
        t->beyond = 0;
        t->top--;
    }
    fm_trace_thread_rests(c, t, now);
    t->top = t->base;
    t->trace.must_find = true;
}

int fm_trace_pause(struct fm_collector *c)
{
    if (!c->running)
        return 0;
    c->hooked = c->running = false;
    int rc = fm_hooks_remove(c);
    uint64_t now = fm_clock_ticks();
    fm_threads_lock();
    for (struct fm_agent_thread *t = c->threads; t && !c->forked && c->store.header; t = t->next)
        close_thread(c, t, now);
    fm_threads_unlock();
    fm_trace_stops(c);
    fm_trace_forget(); /* generators that go on meanwhile would seem to wait */
    fm_agent_table_release(&c->pauses);
    c->last_pause = NULL;
    c->trace_late = true;
    fm_collector_mark_end(c);
    return rc < 0 ? -1 : 1;
}

static int end_attached(void *unused)
{
    (void)unused;
    fm_start_attached_over();
    return 0;
}

/* Not here, in the middle of an event: when the main thread comes by. */
void fm_trace_nobody_listens(struct fm_collector *c)
{
    const struct fm_trace_header *header = c->trace_chunks.header;
    bool closed = header && __atomic_load_n(&header->closed, __ATOMIC_ACQUIRE);
    if (c->trace_attached && (closed || c->trace_chunks.given_up))
        Py_AddPendingCall(end_attached, NULL); /* if there is no place for it, the next time */
}

int fm_trace_go_on(struct fm_collector *c)
{
    if (c->running)
        return 0;
    c->trace_late = true;
    fm_trace_tasks_forget();
    if (c->store.header && !c->forked)
        c->store.header->flags &= ~(uint32_t)FM_LIVE_ENDED;
    if (fm_collector_start(c) < 0) {
        fm_trace_stops(c);
        return -1;
    }
    struct fm_agent_thread *t = fm_collector_thread(c);
    if (t && t->trace.must_find) /* what is open is known best right here */
        fm_trace_find_open(c, t, NULL, false);
    c->trace_own_frames = 0;
    return 1;
}
