/* fork: the child records into a store of its own; see fork.h. */
#include "target/agent/fork.h"

#include <sys/mman.h>

#include "target/agent/functions.h"
#include "target/agent/start.h"
#include "target/agent/trace/late.h"
#include "target/agent/trace/trace.h"

static bool make_room(struct fm_collector *c, size_t calls)
{
    if (calls <= c->inherited_cap)
        return true;
    size_t cap = calls * 2 + 64;
    void *p = mmap(NULL, cap * sizeof *c->inherited, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return false;
    if (c->inherited)
        munmap(c->inherited, c->inherited_cap * sizeof *c->inherited);
    c->inherited = p;
    c->inherited_cap = cap;
    return true;
}

void fm_fork_remember(struct fm_collector *c, const struct fm_agent_thread *t)
{
    c->inherited_len = 0;
    if (!c->store.path[0] || !t || c->forked)
        return;
    size_t calls = (size_t)(t->top - t->base) - (t->beyond > 0);
    if (!make_room(c, calls))
        return;
    for (size_t i = 0; i < calls; i++) {
        const struct fm_live_frame *frame = &t->base[i + 1];
        c->inherited[i] = (struct fm_inherited){ (struct fm_func *)(uintptr_t)frame->func,
                                                 (const void *)(uintptr_t)frame->key };
    }
    c->inherited_len = calls;
}

void fm_fork_forget(struct fm_collector *c)
{
    c->inherited_len = 0;
}

bool fm_fork_abandon(struct fm_collector *c)
{
    if (!c->store.path[0] && !c->begins_anew)
        return false;
    c->forked = true;
    c->threads = c->ended_threads = c->free_threads = NULL; /* their stacks lie in its store */
    return true;
}

void fm_fork_begin(struct fm_collector *c)
{
    fm_collector_forget(c);
    c->forked = false;
    if (fm_collector_open(c) == 0)
        fm_start_describe_process(c, FM_LIVE_FORKED);
}

/* Is `key` among the running code from place `*at` on, towards the newest? Moves behind it. */
static bool is_running(const void **code, size_t *at, const void *key)
{
    for (size_t i = *at; i-- > 0;) {
        if (code[i] == key) {
            *at = i;
            return true;
        }
    }
    return false;
}

/* A call may be open for us that ended without a word (a trace function raised when it returned):
 * its code may be gone. So what is not on the thread's stack now is left out. */
void fm_fork_reopen_calls(struct fm_collector *c, struct fm_agent_thread *t)
{
    uint64_t now = fm_collector_now(c);
    struct fm_raised raised = fm_python_put_aside();
    size_t frames = c->inherited_len ? fm_running_code(NULL, 0) : 0, at = frames;
    const void **code = frames ? PyMem_RawMalloc(frames * sizeof *code) : NULL;
    if (code)
        fm_running_code(code, frames);
    for (size_t i = 0; i < c->inherited_len; i++) {
        const struct fm_inherited *call = &c->inherited[i];
        bool is_c = call->func->flags & FM_LIVE_FUNCTION_C;
        const void *key = (const void *)((uintptr_t)call->key & ~(uintptr_t)FM_TRACE_TAGS);
        if (!is_c && !(code && is_running(code, &at, key)))
            continue;
        if (c->trace) {
            fm_trace_reopen(c, t, call->func, key);
            continue;
        }
        if (fm_push(c, t, call->func, key))
            fm_opened(t, now);
    }
    PyMem_RawFree(code);
    fm_python_put_back(raised);
    c->inherited_len = 0;
}
