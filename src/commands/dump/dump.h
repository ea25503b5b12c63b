/*
 * What `fathom dump` found out about a process or core file, and how it is shown: gathered once
 * (gather.c, state.c), then written as text or as JSON.
 */
#ifndef FM_COMMANDS_DUMP_H
#define FM_COMMANDS_DUMP_H

#include "base/buffer.h"
#include "base/map.h"
#include "record/model/states.h"
#include "watch/cpython/code.h"
#include "watch/cpython/locks.h"
#include "watch/cpython/runtime.h"
#include "watch/cpython/tasks.h"
#include "watch/os/remote/corefile.h"
#include "watch/sampler/syscalls.h"

#define FM_DUMP_LOCALS_FRAMES 50 /* of each thread, the newest */

struct fm_dump_options {
    bool locals, json, tasks;
    const char *python; /* of a core */
};

struct fm_dump_variable {
    char name[64];
    char *value; /* owned */
};

struct fm_dump_frame {
    char *function, *file; /* owned; "?" if the code could not be read */
    struct fm_position position;
    bool readable;
    FM_VEC(struct fm_dump_variable) variables;
    bool has_variables, more_variables;
};

struct fm_dump_frames {
    struct fm_dump_frame *data;
    size_t len, cap;
};

#define FM_DUMP_NOBODY SIZE_MAX

struct fm_dump_thread {
    struct fm_stack_thread raw;
    struct fm_stack stack;
    struct fm_dump_frames frames;
    char *name;             /* owned; "" if unknown */
    struct fm_syscall call; /* what the kernel said, while the stack was read */
    bool state_known;
    enum fm_state state;
    bool without_gil; /* it runs, and not under the GIL */
    bool holds_gil;
    char *detail;        /* owned: path, address …; "" if there is nothing to say */
    fm_addr futex;       /* it is blocked there; 0: no */
    struct fm_lock lock; /* lock.at 0: none is known */
    size_t holder;       /* of the lock or of the GIL: index of a thread, or FM_DUMP_NOBODY */
    int holder_frame;    /* where it took the lock, if known; else −1 */
    bool holder_is_sure;
    int signal; /* core: the signal it died of */
};

/* Threads that wait for each other in a circle. */
struct fm_dump_circle {
    size_t first, len; /* in fm_dump.circled */
    bool is_sure;
};

struct fm_dump_task {
    size_t thread; /* whose loop */
    char name[64], awaited_by[64];
    bool running;
    struct fm_dump_frames frames;
};

struct fm_dump {
    struct fm_remote remote;
    struct fm_runtime runtime;
    struct fm_core *core; /* NULL: a running process */
    const char *core_path;
    pid_t pid;
    char *command; /* owned */
    FM_VEC(struct fm_dump_thread) threads;
    FM_VEC(struct fm_dump_task) tasks;
    FM_VEC(struct fm_dump_circle) circles;
    FM_VEC(size_t) circled; /* threads, each waiting for the next, the last for the first */
    size_t other_threads;   /* of the process, without Python */
    bool partial;           /* the list of threads could not be read to its end */
    char *tasks_note;       /* owned: why tasks are missing; NULL */
    struct fm_map code_numbers;
    FM_VEC(struct fm_code) codes;
};

/* Everything about the process. 0 or a negative status. */
int fm_dump_gather(struct fm_dump *dump, const struct fm_dump_options *options,
                   struct fm_error *err);
void fm_dump_release(struct fm_dump *dump);

/* The code object at `at`, read once; NULL if there is none. */
const struct fm_code *fm_dump_code(struct fm_dump *dump, fm_addr at);

/* What the kernel says of a thread now; false if nothing. */
bool fm_dump_call(const struct fm_dump *dump, struct fm_dump_thread *thread,
                  struct fm_syscall *call);

/* Names, states, locks and holders of all threads (state.c). */
void fm_dump_states(struct fm_dump *dump);

void fm_dump_text(const struct fm_dump *dump, struct fm_buffer *out);
void fm_dump_json(const struct fm_dump *dump, struct fm_buffer *out);

/* "3.15.0b2" */
void fm_dump_version(const struct fm_dump *dump, struct fm_buffer *out);

/* "waiting for the GIL", "running C, without the GIL", … */
const char *fm_dump_state_title(const struct fm_dump_thread *thread);

#endif
