/*
 * asyncio's tasks in a trace: made by whom, when each runs on which thread, what it
 * waits for, and its end. Nothing of the program is replaced.
 *
 * A step of a task is a coroutine that begins or goes on without another one awaiting it: then asyncio
 * says which task runs. Its frame is pushed with its key | FM_TRACE_STEP, so that its end comes by here,
 * with what it yields: what the task waits for. The value that BaseEventLoop.create_task returns is a
 * new task; one that was made in another way, or that began within it (eager), is found at its first step.
 *
 * What a task waited for may raise: then that is thrown into the innermost coroutine, and those that await
 * it go on one after the other, each by itself. Each of them is a step, and the task has ended only with
 * the coroutine that it was made for.
 *
 * A task is known by its address, and by having begun or ended: addresses are used again.
 *
 * Threads: the GIL.
 */
#ifndef FM_AGENT_TRACE_TASKS_H
#define FM_AGENT_TRACE_TASKS_H

#include "target/agent/trace/trace.h"

/* A function of a role is about to be entered, in a way that is told after this: what its key is tagged
 * with. */
unsigned fm_trace_task_enters(struct fm_collector *c, struct fm_agent_thread *t,
                              const struct fm_func *f, const void *frame, enum fm_trace_begin how);

/* A frame that was tagged has ended, with that value, or NULL. */
void fm_trace_task_leaves(struct fm_collector *c, struct fm_agent_thread *t,
                          const struct fm_func *f, PyObject *value, enum fm_trace_end how);

/* What is known of tasks may be out of date: the trace had stopped. */
void fm_trace_tasks_forget(void);

/* What part has code in the life of tasks? enum fm_trace_role. */
uint8_t fm_trace_role_of(PyCodeObject *code, uint32_t flags);

#endif
