/*
 * asyncio tasks as await stacks; see tasks.h.
 *
 * A coroutine that waits has, on top of its value stack, what it waits for: mostly another
 * coroutine, whose frame is the next of the stack. A coroutine that runs is found in the stack of
 * its thread: what is newer there belongs to the task as well.
 */
#include "watch/cpython/tasks.h"

#include <string.h>

#include "watch/cpython/frame.h"
#include "watch/cpython/stack.h"
#include "watch/cpython/tasks_find.h"

enum { MAX_AWAITS = 1000 };

struct fm_task_reader {
    const struct fm_runtime *runtime;
    struct fm_task_finder *finder;
};

struct fm_task_reader *fm_task_reader_new(const struct fm_runtime *runtime,
                                          const struct fm_remote *remote, struct fm_error *err)
{
    struct fm_task_finder *finder = fm_task_finder_new(runtime, remote, err);
    if (!finder)
        return NULL;
    struct fm_task_reader *reader = fm_calloc(1, sizeof *reader);
    *reader = (struct fm_task_reader){ runtime, finder };
    return reader;
}

void fm_task_reader_free(struct fm_task_reader *reader)
{
    if (!reader)
        return;
    fm_task_finder_free(reader->finder);
    free(reader);
}

void fm_tasks_release(struct fm_tasks *tasks)
{
    fm_vec_release(&tasks->list);
    fm_vec_release(&tasks->frames);
}

/* ---- from a coroutine to the next ---- */

/* What runs code among the things that can be awaited; others wrap one, as their first field. */
static fm_addr generator_of(const struct fm_heap *t, fm_addr awaited)
{
    static const char *const wrappers[] = { "coroutine_wrapper", "async_generator_asend",
                                            "async_generator_athrow" };
    static const char *const generators[] = { "coroutine", "generator", "async_generator" };
    for (int depth = 0; depth < 4; depth++) {
        char name[32];
        if (!fm_type_name(t, fm_object_type(t, awaited), name, sizeof name))
            return 0;
        for (size_t i = 0; i < FM_COUNT(generators); i++) {
            if (strcmp(name, generators[i]) == 0)
                return awaited;
        }
        bool wraps = false;
        for (size_t i = 0; i < FM_COUNT(wrappers); i++)
            wraps |= strcmp(name, wrappers[i]) == 0;
        if (!wraps)
            return 0;
        awaited = fm_remote_pointer(t->remote, awaited + t->layout->object_size);
    }
    return 0;
}

/* Its frame; false if it has ended. */
static bool frame_of(const struct fm_heap *t, fm_addr generator, struct fm_stack_frame *frame)
{
    const struct fm_layout *l = t->layout;
    fm_addr at = generator + l->gen_frame;
    if (l->frames == FM_FRAMES_HEAP)
        at = fm_remote_pointer(t->remote, at);
    if (!at)
        return false;
    frame->at = at;
    frame->owner = 0;
    frame->code = fm_remote_pointer(t->remote, at + l->frame_code) & ~(uint64_t)l->code_tag_mask;
    frame->instr = 0;
    if (l->frames == FM_FRAMES_HEAP) {
        int32_t last = -1;
        if (fm_remote_read(t->remote, at + l->frame_instr, &last, sizeof last) < 0)
            return false;
        frame->instr = (uint64_t)(int64_t)last;
    } else {
        frame->instr = fm_remote_pointer(t->remote, at + l->frame_instr);
        if (l->frame_owner != FM_ABSENT &&
            (fm_remote_read(t->remote, at + l->frame_owner, &frame->owner, 1) < 0 ||
             frame->owner != l->owner_generator))
            return false; /* cleared, or not what it seemed */
    }
    return frame->code && !(frame->code & 7);
}

/* Does this code stop only to wait for something: a coroutine, or a generator used as one? */
static bool always_awaits(const struct fm_heap *t, fm_addr code)
{
    enum { CO_COROUTINE = 0x80, CO_ITERABLE_COROUTINE = 0x100, CO_ASYNC_GENERATOR = 0x200 };
    uint32_t flags = 0;
    fm_remote_read(t->remote, code + t->layout->code_flags, &flags, sizeof flags);
    return flags & (CO_COROUTINE | CO_ITERABLE_COROUTINE | CO_ASYNC_GENERATOR);
}

/* What a frame that waits has on its stack, at the top or, since 3.15, below an empty slot. */
static fm_addr awaited_by_frame(const struct fm_heap *t, const struct fm_stack_frame *frame)
{
    struct fm_frame_slots slots;
    fm_addr found = 0;
    if (!always_awaits(t, frame->code) || !fm_frame_slots(t, frame, &slots))
        return 0;
    if (slots.exact) {
        for (size_t i = slots.slots.len, tries = 0; i-- > slots.n_variables && tries < 2; tries++) {
            found = generator_of(t, slots.slots.data[i]);
            if (found || slots.slots.data[i])
                break;
        }
    }
    fm_frame_slots_release(&slots);
    return found;
}

/* ---- one task ---- */

/* Its frames, outermost first. */
static void await_chain(const struct fm_heap *t, fm_addr coroutine, struct fm_stack *chain)
{
    fm_addr generator = generator_of(t, coroutine);
    chain->len = 0;
    for (int i = 0; generator && i < MAX_AWAITS; i++) {
        struct fm_stack_frame frame;
        if (!frame_of(t, generator, &frame))
            break;
        for (size_t k = 0; k < chain->len; k++) {
            if (chain->data[k].at == frame.at)
                return; /* a cycle */
        }
        fm_vec_push(chain, frame);
        generator = awaited_by_frame(t, &frame);
    }
}

static void push_frame(struct fm_tasks *tasks, struct fm_task *task,
                       const struct fm_stack_frame *frame)
{
    struct fm_task_frame copy = { frame->code, frame->instr };
    fm_vec_push(&tasks->frames, copy);
    task->n_frames++;
}

/* Where in the thread's stack is this frame? Its index + 1, or 0. */
static size_t in_stack(const struct fm_stack *stack, fm_addr frame)
{
    for (size_t i = 0; i < stack->len; i++) {
        if (stack->data[i].at == frame)
            return i + 1;
    }
    return 0;
}

static void read_task(const struct fm_task_reader *reader, const struct fm_heap *t, fm_addr at,
                      const struct fm_stack *stack, struct fm_stack *chain, bool named,
                      struct fm_tasks *tasks)
{
    struct fm_task task = { .at = at, .first_frame = (uint32_t)tasks->frames.len };
    if (named && !fm_task_name(reader->finder, t, at, task.name, sizeof task.name))
        return;
    await_chain(t, fm_task_coroutine(reader->finder, t, at), chain);
    size_t outermost = chain->len ? in_stack(stack, chain->data[0].at) : 0;
    task.running = outermost > 0;
    for (size_t i = 0; i < outermost; i++)
        push_frame(tasks, &task, &stack->data[i]);
    for (size_t i = chain->len; !task.running && i-- > 0;)
        push_frame(tasks, &task, &chain->data[i]);
    fm_vec_push(&tasks->list, task);
}

struct pairing {
    struct fm_tasks *tasks;
    uint32_t *waiting; /* per task: who waits for it, +1; UINT32_MAX: several */
};

static void pair(void *context, size_t awaited, size_t waiting)
{
    struct pairing *p = context;
    uint32_t *slot = &p->waiting[awaited];
    *slot = *slot && *slot != waiting + 1 ? UINT32_MAX : (uint32_t)waiting + 1;
}

static void find_awaiters(const struct fm_task_reader *reader, const struct fm_heap *t,
                          struct fm_tasks *tasks)
{
    struct fm_addrs addresses = { 0 };
    for (size_t i = 0; i < tasks->list.len; i++)
        fm_vec_push(&addresses, tasks->list.data[i].at);
    struct pairing pairing = { tasks, fm_calloc(tasks->list.len + 1, sizeof(uint32_t)) };
    fm_task_finder_pairs(reader->finder, t, &addresses, pair, &pairing);
    for (size_t i = 0; i < tasks->list.len; i++) {
        uint32_t by = pairing.waiting[i];
        if (by && by != UINT32_MAX)
            memcpy(tasks->list.data[i].awaited_by, tasks->list.data[by - 1].name,
                   sizeof tasks->list.data[i].awaited_by);
    }
    free(pairing.waiting);
    fm_vec_release(&addresses);
}

/* "Task-2" before "Task-10". */
static int by_name(const void *a, const void *b)
{
    const struct fm_task *x = a, *y = b;
    int order = strverscmp(x->name, y->name);
    return order ? order : x->at < y->at ? -1 : x->at > y->at;
}

static int read_tasks(struct fm_task_reader *reader, const struct fm_remote *remote, fm_addr thread,
                      bool named, struct fm_tasks *tasks)
{
    struct fm_heap t = { remote, &reader->runtime->layout };
    struct fm_addrs found = { 0 };
    struct fm_stack stack = { 0 }, chain = { 0 };
    tasks->list.len = tasks->frames.len = 0;
    int status = fm_task_finder_find(reader->finder, &t, thread, &found);
    if (found.len)
        fm_stack_read(reader->runtime, remote, thread, &stack);
    for (size_t i = 0; i < found.len; i++)
        read_task(reader, &t, found.data[i], &stack, &chain, named, tasks);
    if (named && tasks->list.len && !fm_task_finder_is_ordered(reader->finder))
        qsort(tasks->list.data, tasks->list.len, sizeof *tasks->list.data, by_name);
    if (named && tasks->list.len)
        find_awaiters(reader, &t, tasks);
    fm_vec_release(&found);
    fm_stack_release(&stack);
    fm_stack_release(&chain);
    return status;
}

int fm_task_reader_read(struct fm_task_reader *reader, const struct fm_remote *remote,
                        fm_addr thread, struct fm_tasks *tasks)
{
    return read_tasks(reader, remote, thread, true, tasks);
}

int fm_task_reader_stacks(struct fm_task_reader *reader, const struct fm_remote *remote,
                          fm_addr thread, struct fm_tasks *tasks)
{
    return read_tasks(reader, remote, thread, false, tasks);
}
