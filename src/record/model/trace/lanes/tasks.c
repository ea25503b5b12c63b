/* Tasks of asyncio in a traced process; see timeline.h, trace_marks.h. */
#include <stdlib.h>

#include "record/capture/live_trace.h"
#include "record/model/trace/lanes/lanes.h"

_Static_assert((int)FM_TASK_FAILED == (int)FM_TRACE_TASK_FAILED &&
                   (int)FM_TASK_ENDS == (int)FM_TRACE_TASK_ENDS,
               "files have the numbers of traced programs");

static int compare_tasks(const void *a, const void *b)
{
    const struct fm_trace_task *x = a, *y = b;
    if (x->task != y->task)
        return x->task < y->task ? -1 : 1;
    return 0;
}

/* Rows of one task become one; what was told later holds. */
static void join_rows(struct fm_trace_tasks *tasks)
{
    size_t count = 0;
    if (tasks->list.len)
        qsort(tasks->list.data, tasks->list.len, sizeof *tasks->list.data, compare_tasks);
    for (size_t i = 0; i < tasks->list.len; i++) {
        const struct fm_trace_task row = tasks->list.data[i];
        struct fm_trace_task *known = count ? &tasks->list.data[count - 1] : NULL;
        if (!known || known->task != row.task) {
            tasks->list.data[count++] = row;
            continue;
        }
        known->name = row.name ? row.name : known->name;
        known->creator = row.creator ? row.creator : known->creator;
        known->thread = row.thread ? row.thread : known->thread;
        known->created = row.created ? row.created : known->created;
        known->ended = row.done ? row.ended : known->ended;
        known->done = row.done ? row.done : known->done;
    }
    tasks->list.len = count;
}

static const struct fm_trace_tasks *tasks_of(struct fm_timeline *t, uint32_t trace)
{
    struct fm_timeline_trace *known = &t->traces.data[trace];
    for (size_t i = 0; i < known->task_blocks.len && !known->tasks_read; i++) {
        const struct fm_kept_body *body = fm_timeline_body(t, trace, known->task_blocks.data[i]);
        if (body && !fm_trace_tasks_read(&body->body, &known->tasks))
            t->damaged++;
    }
    if (!known->tasks_read)
        join_rows(&known->tasks);
    known->tasks_read = true;
    return &known->tasks;
}

uint32_t fm_timeline_task_name(struct fm_timeline *t, uint32_t trace, uint32_t task)
{
    const struct fm_trace_tasks *tasks = tasks_of(t, trace);
    size_t low = 0, high = tasks->list.len, likely = (size_t)task - 1;
    if (likely < high && tasks->list.data[likely].task == task) /* they are numbered from 1 on */
        low = high = likely;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tasks->list.data[middle].task < task)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < tasks->list.len && tasks->list.data[low].task == task)
        return fm_timeline_name(t, trace, tasks->list.data[low].name);
    return 0;
}

static uint32_t lane_of(const struct fm_timeline *t, uint32_t trace, uint32_t number)
{
    for (size_t i = 0; i < t->traced.len; i++)
        if (t->traced.data[i].trace == trace && t->traced.data[i].number == number)
            return (uint32_t)i;
    return FM_NONE;
}

static uint64_t since_start(struct fm_timeline *t, uint32_t trace, uint64_t ticks)
{
    uint64_t ns = ticks ? fm_trace_clock_ns(fm_timeline_clock(t, trace), ticks) : t->start_ns;
    return ns > t->start_ns ? ns - t->start_ns : 0;
}

int fm_timeline_tasks(struct fm_timeline *t, fm_traced_task_fn *each, void *context,
                      struct fm_error *err)
{
    (void)err;
    for (uint32_t trace = 0; trace < t->traces.len; trace++) {
        const struct fm_trace_tasks *tasks = tasks_of(t, trace);
        for (size_t i = 0; i < tasks->list.len; i++) {
            const struct fm_trace_task *row = &tasks->list.data[i];
            struct fm_traced_task task = { .process = t->p->traces.list.data[trace].process,
                                           .lane = lane_of(t, trace, row->thread),
                                           .number = row->task,
                                           .name = fm_timeline_name(t, trace, row->name),
                                           .creator = row->creator,
                                           .ended = row->ended,
                                           .created_ns = since_start(t, trace, row->created),
                                           .done_ns = row->done ? since_start(t, trace, row->done)
                                                                : UINT64_MAX };
            if (!each(context, &task))
                return FM_OK;
        }
    }
    return FM_OK;
}
