/*
 * One process being watched: its interpreters' threads, their stacks and states, and what was
 * counted since it was last handed over (account.h).
 *
 * fm_target_round() looks at every thread once, first at the one that holds the GIL: while we sit
 * on its processor, nobody else's frames change either. A thread that was blocked and has not been
 * given a processor since (the kernel counts that in /proc/PID/task/TID/schedstat) is not looked at
 * again.
 *
 * A thread that cannot be read spoils only itself: it is counted as lost for that round.
 *
 * Threads: belongs to the thread that samples, or to whoever holds the sampler's lock.
 */
#ifndef FM_SAMPLER_TARGET_H
#define FM_SAMPLER_TARGET_H

#include "base/strings.h"
#include "watch/cpython/runtime.h"
#include "watch/cpython/tasks.h"
#include "watch/os/run/exit_status.h"
#include "watch/sampler/codes.h"
#include "watch/sampler/descriptors.h"
#include "watch/sampler/look.h"
#include "watch/sampler/open_regions.h"
#include "watch/sampler/order.h"
#include "watch/sampler/syscalls.h"
#include "watch/sampler/tally.h"
#include "watch/sampler/way.h"

/* What one asyncio task did at the last sample of its thread. */
struct fm_task_sample {
    uint32_t row; /* of the tally */
    enum fm_state state;
};

struct fm_watched_thread {
    struct fm_looked look; /* where its stack is */
    uint32_t number;       /* never given again */
    pid_t tid, pid;
    uint64_t ident; /* pthread_t, by which Python knows the thread */
    /* The kernel's id as Python knows it: that of its own namespace; 0 before 3.11. */
    uint64_t native;
    int syscall_fd, switches_fd;
    bool opens_anew; /* descriptors are scarce: its files are opened for each look */
    uint64_t start_ns, end_ns;
    bool gone;
    struct fm_watched_thread
        *tasks_of; /* the thread whose asyncio tasks these are; NULL: a real thread */
    struct fm_watched_thread *tasks_in; /* what stands for its asyncio tasks; NULL: none yet */
    uint64_t cpu_first_ns, cpu_ns;      /* on a processor, by the kernel: at first, and last … */
    uint64_t cpu_read_ns;               /* … and when that was read */
    /* The last sample. */
    bool still;        /* blocked; holds while `switches` does */
    uint64_t switches; /* how often the thread was given a processor */
    enum fm_state state;
    uint32_t row;               /* of the tally */
    uint32_t wait;              /* of the tally's waits, or UINT32_MAX */
    struct fm_raw_frame newest; /* where the thread was */
    bool has_newest, waits_for_gil;
    enum fm_proof proof;
    bool in_turn;                        /* the thread held the GIL when the round began */
    FM_VEC(struct fm_task_sample) tasks; /* with --tasks: where its tasks were */
    struct fm_snapshot_hints task_hints;
    struct fm_thread_order order;
    char *name; /* NULL until known */
    bool named; /* by Python, not by the kernel */
};

/* An interpreter; its newest thread state stands first in its list. */
struct fm_watched_interp {
    fm_addr at, newest_thread;
    struct fm_look_gil
        gil;             /* as of the last glance; at 0: there is none, or nobody to fight for it */
    fm_addr holder;      /* of the GIL; 0: nobody */
    fm_addr last_holder; /* … even if nobody holds it now */
    uint64_t gil_switches; /* how often it went from one thread to another */
    uint32_t quiet_rounds; /* in a row without that */
    bool quiet;            /* none since every thread was looked at, which was not long ago */
};

struct fm_target_counts {
    uint64_t rounds, samples, partial, lost;
    uint64_t proofs[FM_PROOF_COUNT]; /* samples by what proves them */
    uint64_t looks_late;             /* rounds that came too late to be fair (sampler.c) */
    uint64_t running, gil;           /* threads in these states in the last round */
};

/* Which threads count. */
enum fm_target_mode { FM_TARGET_ALL, FM_TARGET_RUNNING, FM_TARGET_GIL };

struct fm_target_options {
    enum fm_target_mode mode;
    enum fm_way way;
    bool tasks;           /* asyncio: the await stack of each task too */
    bool timeline;        /* keep the order of samples */
    uint64_t interval_ns; /* between two rounds; 0: as fast as it goes */
    const char *folder;   /* of the run, where regions of processes are found; NULL: nowhere */
};

struct fm_target {
    struct fm_target_options options;
    bool outruns_us; /* the process has a thread of a real-time priority that goes before ours */
    uint64_t round;  /* of the sampler in which it was last looked at */
    int seat_refused,
        stop_refused; /* the error number for which a way is not taken; 0: it is not refused */
    pid_t pid, parent;
    uint64_t start_ticks; /* tells the process from a later one of the same number */
    uint64_t stack_start; /* fm_target_stack_start() */
    struct fm_remote remote;
    struct fm_runtime runtime;
    int64_t
        cpu_distance; /* of a thread's processor from its pthread_t (os/still/rseq.h); 0: not known */
    struct fm_codes codes;
    struct fm_looker looker;
    struct fm_tally tally; /* what was counted since fm_account_take() */
    struct fm_target_order order;
    struct fm_open_regions regions;
    struct fm_woven woven; /* the last stack with its regions */
    struct fm_fd_kinds *fds;
    struct fm_strings *details; /* texts of waits */
    struct fm_map detail_of;    /* identity of a wait → text */
    FM_VEC(struct fm_watched_interp) interps;
    FM_VEC(struct fm_watched_thread *)
    live, ended;                  /* in order of number; ended ones until they are handed over */
    uint32_t n_threads;           /* numbers given so far */
    struct fm_task_reader *tasks; /* NULL: not asked for */
    struct fm_tasks task_list;
    FM_VEC(struct fm_raw_frame) task_stack;
    char *exe, *command, *cwd;
    uint64_t start_ns, end_ns, last_round_ns, last_list_ns, last_glance_ns;
    uint64_t seen_ns; /* when what the last round saw was so */
    uint64_t read_ns; /* when the first running thread of this round was read; 0: none was yet */
    /* Until threads are listed again, as one had not begun yet; 0: there was none. */
    uint64_t list_wait_ns;
    uint64_t next_names_ns; /* when to look for names of threads; UINT64_MAX: all are known */
    bool gone;
    struct fm_exit_watch exit;
    struct fm_target_counts counts;
};

/* NULL with an error as of fm_runtime_find(). */
struct fm_target *fm_target_new(pid_t pid, const struct fm_target_options *options,
                                struct fm_error *err);
void fm_target_free(struct fm_target *t);

/* Where the kernel put the stack of a process when it was executed: at random, so that of all
 * running processes only its forks have the same. 0 if it is not told. */
uint64_t fm_target_stack_start(pid_t pid);

/* Look at every thread. What the round sees has the time since the round before; the very first one
 * has that of an interval. False if the process is gone, or is no Python any more. */
bool fm_target_round(struct fm_target *t, struct fm_seat *seat, uint64_t now_ns);

/* Hand over what was counted and begin anew. */
struct fm_tally fm_target_take(struct fm_target *t);

#endif
