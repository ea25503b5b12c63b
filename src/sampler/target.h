/*
 * One process being watched: its interpreters' threads, their stacks and states, and all counts.
 *
 * fm_target_round() looks at every thread once. A thread that was blocked and has not been given a
 * processor since (the kernel counts that in /proc/PID/task/TID/schedstat) is not looked at again.
 *
 * A thread that cannot be read spoils only itself: it is counted as lost for that round.
 *
 * Threads: belongs to the thread that samples, or to whoever holds the sampler's lock.
 */
#ifndef FM_SAMPLER_TARGET_H
#define FM_SAMPLER_TARGET_H

#include "base/strings.h"
#include "cpython/runtime.h"
#include "cpython/tasks.h"
#include "sampler/codes.h"
#include "sampler/descriptors.h"
#include "sampler/state.h"
#include "sampler/tally.h"

/* What one asyncio task did at the last sample of its thread. */
struct fm_task_sample {
    uint32_t row; /* of the tally */
    enum fm_state state;
};

struct fm_watched_thread {
    fm_addr at; /* of its thread state */
    uint32_t number;
    pid_t tid;
    uint64_t ident;  /* pthread_t, by which Python knows it */
    uint64_t native; /* the kernel's id as Python knows it: that of its own namespace; 0 before 3.11 */
    int syscall_fd, switches_fd;
    bool opens_anew; /* descriptors are scarce: its files are opened for each look */
    pid_t pid;
    uint64_t start_ns, end_ns;
    bool gone;
    uint32_t folded;   /* how many ended threads this record stands for (fold.h); 0: one thread */
    uint32_t tasks_of; /* number + 1 of the thread whose asyncio tasks these are; 0: a real thread */
    uint32_t tasks_in; /* number + 1 of the thread that stands for its asyncio tasks; 0: none yet */
    struct fm_walk walk;
    /* The last sample. */
    bool still;        /* blocked; holds while `switches` does */
    uint64_t switches; /* how often it was given a processor */
    enum fm_state state;
    uint32_t row;  /* of the tally */
    uint32_t wait; /* of the tally's waits, or UINT32_MAX */
    bool waits_for_gil;
    FM_VEC(struct fm_task_sample) tasks; /* with --tasks: where its tasks were */
    char *name;    /* NULL until known */
    bool named;    /* by Python, not by the kernel */
};

/* An interpreter; its newest thread state stands first in its list. */
struct fm_watched_interp {
    fm_addr at, newest_thread, gil;
    fm_addr last_holder;   /* of the GIL, even if nobody holds it now */
    uint64_t gil_switches; /* how often it went from one thread to another */
    uint32_t quiet_rounds; /* in a row without that */
    bool quiet;            /* none since every thread was looked at, which was not long ago */
};

struct fm_target_counts {
    uint64_t rounds, samples, partial, lost;
    uint64_t running, gil; /* threads in these states in the last round */
};

struct fm_target {
    pid_t pid, parent;
    uint64_t start_ticks; /* tells it from a later process of the same number */
    uint64_t stack_start; /* fm_target_stack_start() */
    int namespaces;       /* of process ids that it is in: 1, 2 for more; 0: not asked yet */
    struct fm_remote remote;
    struct fm_runtime runtime;
    struct fm_codes codes;
    struct fm_tally tally;
    struct fm_fd_kinds *fds;
    struct fm_strings *details; /* texts of waits */
    struct fm_map detail_of;    /* identity of a wait → text */
    FM_VEC(struct fm_watched_interp) interps;
    FM_VEC(struct fm_watched_thread *) threads; /* gone ones included, in order of number */
    FM_VEC(uint32_t) live;                      /* numbers */
    struct fm_task_reader *tasks; /* NULL: not asked for */
    struct fm_tasks task_list;
    FM_VEC(struct fm_raw_frame) task_stack;
    char *exe, *command, *cwd;
    uint64_t start_ns, end_ns, last_round_ns, last_list_ns, last_glance_ns;
    uint64_t seen_ns; /* when what the last round saw was so */
    uint64_t read_ns; /* when the first running thread of this round was read; 0: none was yet */
    uint64_t list_wait_ns; /* until threads are listed again, as one had not begun yet; 0: there was none */
    uint64_t next_names_ns; /* when to look for names of threads; UINT64_MAX: all are known */
    size_t ended_kept, rows_kept; /* records of ended threads, rows of the tally: after the last folding */
    FM_VEC(fm_addr) gil_holders; /* thread states that held a GIL at the last glance */
    bool only_gil;               /* only they are looked at */
    bool gone;
    struct fm_target_counts counts;
};

/* NULL with an error as of fm_runtime_find(). */
struct fm_target *fm_target_new(pid_t pid, bool tasks, struct fm_error *err);
void fm_target_free(struct fm_target *t);

/* Where the kernel put the stack of a process when it was executed: at random, so that of all running
 * processes only its forks have the same. 0 if it is not told. */
uint64_t fm_target_stack_start(pid_t pid);

/* Which threads count. */
enum fm_target_mode { FM_TARGET_ALL, FM_TARGET_RUNNING, FM_TARGET_GIL };

/* Look at every thread. What it sees has the time since the round before; the very first one has `first_ns`.
 * False if the process is gone, or is no Python any more. */
bool fm_target_round(struct fm_target *t, enum fm_target_mode mode, uint64_t now_ns, uint64_t first_ns);


#endif
