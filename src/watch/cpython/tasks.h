/*
 * asyncio tasks of a target: the logical await stack of each, outermost coroutine first in time, i.e.
 * frames[0] is the innermost frame (what it waits in), as in thread stacks.
 *
 * 3.14+: through the lists that asyncio keeps per thread and interpreter (offsets from the
 * AsyncioDebug section of _asyncio); before: through asyncio.tasks._all_tasks / _scheduled_tasks.
 */
#ifndef FM_CPYTHON_TASKS_H
#define FM_CPYTHON_TASKS_H

#include "base/vec.h"
#include "watch/cpython/runtime.h"

struct fm_task_frame {
    fm_addr code;
    uint64_t instr; /* as frame_instr */
};

struct fm_task {
    fm_addr at;
    char name[64];
    char awaited_by[64]; /* name of the task that waits for this one, "" if none or several */
    bool running;        /* it is its loop's current task */
    uint32_t first_frame, n_frames; /* in fm_tasks.frames */
};

struct fm_tasks {
    FM_VEC(struct fm_task) list;
    FM_VEC(struct fm_task_frame) frames;
};

struct fm_task_reader; /* what was found out once about the target's asyncio */

/* NULL with a sentence if this Python's asyncio cannot be read. A program that has not imported
 * asyncio yet is no error: it has no tasks. */
struct fm_task_reader *fm_task_reader_new(const struct fm_runtime *runtime,
                                          const struct fm_remote *remote, struct fm_error *err);
void fm_task_reader_free(struct fm_task_reader *reader);

/* All tasks that are not done, of the thread whose state is at `thread`. Bounded; returns 0 or a
 * negative error number, with what could be read in `tasks` (emptied first). */
int fm_task_reader_read(struct fm_task_reader *reader, const struct fm_remote *remote,
                        fm_addr thread, struct fm_tasks *tasks);

/* The same without names and who awaits whom, in any order: for those who look often. */
int fm_task_reader_stacks(struct fm_task_reader *reader, const struct fm_remote *remote,
                          fm_addr thread, struct fm_tasks *tasks);

void fm_tasks_release(struct fm_tasks *tasks);

#endif
