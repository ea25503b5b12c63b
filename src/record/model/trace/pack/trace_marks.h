/*
 * Marks of a thread as blocks (TRACE_MARKS): what happened beside calls. Tasks of a process
 * (TRACE_TASKS).
 */
#ifndef FM_MODEL_TRACE_MARKS_H
#define FM_MODEL_TRACE_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/varint.h"
#include "base/vec.h"

/* Kinds are those of timeline.h (enum fm_mark_kind); names and subjects local. */
struct fm_trace_mark {
    uint64_t begin, end; /* ticks */
    uint32_t kind;
    uint32_t name;    /* 0: none */
    uint32_t subject; /* where, + 1; 0: nowhere */
    uint64_t value, other;
    uint32_t text_at, text_len; /* in `texts` of the marks; 0: it has none */
};

struct fm_trace_marks {
    FM_VEC(struct fm_trace_mark) list;
    struct fm_buffer texts;
};

void fm_trace_marks_clear(struct fm_trace_marks *marks);
void fm_trace_marks_release(struct fm_trace_marks *marks);

struct fm_mark_facts {
    uint32_t thread;
    uint64_t begin, end; /* ticks, of all marks */
    uint64_t marks;
    uint64_t kinds; /* a bit each */
};

void fm_trace_marks_block(struct fm_trace_marks *marks, uint32_t thread, struct fm_buffer *head,
                          struct fm_buffer *body);
bool fm_mark_facts(struct fm_mark_facts *facts, struct fm_cursor *head);

/* Append the marks of a block to `into`; false if it makes no sense. */
bool fm_trace_marks_read(const struct fm_mark_facts *facts, const struct fm_buffer *body,
                         struct fm_trace_marks *into);

/* What became known of a task; a later row of the same task adds to an earlier one. */
struct fm_trace_task {
    uint32_t task, name, creator; /* 0: not told here */
    uint32_t thread;              /* on which it was made, 0: not told here */
    uint64_t created, done;       /* ticks, 0: not told here */
    uint32_t ended;               /* enum fm_trace_task_end; with `done` */
};

struct fm_trace_tasks {
    FM_VEC(struct fm_trace_task) list;
};

void fm_trace_tasks_block(struct fm_trace_tasks *tasks, struct fm_buffer *head,
                          struct fm_buffer *body);
bool fm_trace_tasks_read(const struct fm_buffer *body, struct fm_trace_tasks *into);

#endif
