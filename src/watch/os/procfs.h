/*
 * Facts about a process from /proc, each read with a bound.
 *
 * Nothing here is a promise: a process may end, execute another program or be replaced by another
 * one with the same number between two reads. Its start time tells two processes of one number
 * apart.
 */
#ifndef FM_OS_PROCFS_H
#define FM_OS_PROCFS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/vec.h"

/* A small file of /proc (or /sys) whole, at most `limit` bytes; 0 or a negative error number. The
 * buffer is emptied first. */
int fm_procfs_read(const char *path, size_t limit, struct fm_buffer *into);

/* The same of /proc/PID/NAME. */
int fm_procfs_read_of(pid_t pid, const char *name, size_t limit, struct fm_buffer *into);

struct fm_proc {
    pid_t pid;  /* as asked */
    pid_t tgid; /* its process: another number means that `pid` is one of its threads */
    pid_t parent;
    pid_t inner_pid;   /* its number in its own, innermost pid namespace; tgid if it has none */
    bool in_namespace; /* it lives in a pid namespace below ours */
    pid_t session, group;
    uid_t uid, euid; /* real and effective */
    char state;      /* R S D T t Z X I */
    char name[64];   /* comm */
    int threads;
    uint64_t start_ticks; /* since boot, in clock ticks */
    uint64_t cap_effective;
    int seccomp; /* 0 none, 1 strict, 2 filter; -1 unknown */
    bool kernel_thread;
};

/* 0, or a negative error number: −ENOENT or −ESRCH if there is none (or /proc hides it). */
int fm_process_read(struct fm_proc *process, pid_t pid);

/* Only what decides kinship: tgid, parent, group, session, state, start; one file read. */
struct fm_process_kin {
    pid_t parent, group, session;
    char state;
    uint64_t start_ticks;
};
int fm_process_kin(struct fm_process_kin *kin, pid_t pid);

/* When a process of this start began, in ns since the epoch; 0 if unknown. */
int64_t fm_process_start_ns(uint64_t start_ticks);

/* Links and texts, malloc'ed, NULL if they cannot be read. */
char *fm_process_exe(pid_t pid); /* " (deleted)" is kept off */
char *fm_process_cwd(pid_t pid);
char *fm_process_command(pid_t pid); /* arguments joined by spaces; "[name]" if there are none */

/* The thread ids of a process, ascending; 0 or a negative error number. */
struct fm_pids {
    FM_VEC(pid_t) list;
};
int fm_process_tasks(pid_t pid, struct fm_pids *tasks);

/* The same, each also by the number that it has in the process's own pid namespace: the same one
 * unless it lives in a container. Those that end meanwhile are left out. */
struct fm_tid {
    pid_t outer, inner;
};
struct fm_tids {
    FM_VEC(struct fm_tid) list;
    pid_t process; /* the outer number of the first thread */
};
int fm_process_tids(pid_t pid, struct fm_tids *tids);
void fm_tids_release(struct fm_tids *tids);

/* Every process that /proc shows, ascending. */
int fm_procfs_pids(struct fm_pids *pids);
void fm_pids_release(struct fm_pids *pids);

/* Where field `number` of a stat file begins, as proc(5) counts them from 1; only of those behind the
 * name, which may hold anything. NULL if there are not so many. */
const char *fm_procfs_stat_field(const char *text, int number);

/* The first line of a text that begins with `key` (as "Uid:"): what follows it, without the blanks
 * in front; or NULL. */
const char *fm_procfs_field(const char *text, const char *key);

#endif
