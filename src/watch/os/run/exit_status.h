/*
 * How a process ended that is somebody else's child.
 *
 * A pidfd that was opened while the process was there keeps its end: since Linux 6.15 the kernel
 * tells the exit status through it, from the moment the parent has collected it. Before that, and
 * on older kernels, what the parent has not collected yet stands in /proc/PID/stat. Where neither
 * is to be had, the status stays unknown.
 *
 * Costs one descriptor per process. Threads: none; a watch belongs to one thread at a time.
 */
#ifndef FM_OS_EXIT_STATUS_H
#define FM_OS_EXIT_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct fm_exit_watch {
    int fd; /* pidfd; −1 if there is none: nothing can be told then */
};

/* To be called while the process lives, or before its number can be another's. */
void fm_exit_watch_open(struct fm_exit_watch *w, pid_t pid);

/* Has it ended, and how? As a shell shows it: the exit status, or 128 + signal. False: it runs, or
 * nobody can tell (any more, or yet: worth asking again later). */
bool fm_exit_watch_status(const struct fm_exit_watch *w, pid_t pid, int32_t *ret);

void fm_exit_watch_close(struct fm_exit_watch *w);

/* A wait status (as from waitpid) as a shell shows it. */
int32_t fm_exit_status_of_wait(int wait_status);

#endif
