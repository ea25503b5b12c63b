/*
 * Finding asyncio's tasks: which there are, and where a task keeps its coroutine, its name and who
 * waits for it. Two ways, for two families of versions, behind one face; tasks.c makes stacks of
 * what is found.
 *
 *   3.14+  asyncio keeps a list of its tasks in every thread state; where, and what a task looks
 *          like, stands in the section .AsyncioDebug of the file that holds _asyncio. These numbers
 *          change between patch releases, so they are never assumed.
 *   3.9–3.13  weak sets in the module asyncio.tasks; what a task looks like is a table in the code.
 */
#ifndef FM_CPYTHON_TASKS_FIND_H
#define FM_CPYTHON_TASKS_FIND_H

#include "watch/cpython/object.h"
#include "watch/cpython/runtime.h"

#define FM_TASKS_MAX 65536

struct fm_task_finder; /* per target; remembers what was found */

struct fm_task_finder *fm_task_finder_new(const struct fm_runtime *runtime,
                                          const struct fm_remote *remote, struct fm_error *err);
void fm_task_finder_free(struct fm_task_finder *finder);

/* Append the addresses of the tasks of one thread that are not done. 0 or a negative error
 * number; −ENODATA: the description of asyncio's tasks cannot be found. */
int fm_task_finder_find(struct fm_task_finder *finder, const struct fm_heap *t, fm_addr thread,
                        struct fm_addrs *tasks);

/* Are they found in the order in which they were made? */
bool fm_task_finder_is_ordered(const struct fm_task_finder *finder);

/* The coroutine that a task runs; 0 if this is no task of asyncio's own class. */
fm_addr fm_task_coroutine(const struct fm_task_finder *finder, const struct fm_heap *t,
                          fm_addr task);

bool fm_task_name(const struct fm_task_finder *finder, const struct fm_heap *t, fm_addr task,
                  char *into, size_t cap);

/* Tell of each pair "task `waiting` waits for task `awaited`" among `tasks`. */
typedef void fm_task_pair(void *context, size_t awaited, size_t waiting);
void fm_task_finder_pairs(const struct fm_task_finder *finder, const struct fm_heap *t,
                          const struct fm_addrs *tasks, fm_task_pair *tell, void *context);

#endif
