/*
 * Watches the processes of a run end, to know exactly when each did.
 *
 * Model. Processes make themselves known by files "PID.…" in the run's folder. For each process id
 * that appears, a pidfd is opened, which becomes readable at the instant the process ends, whoever
 * its parent is; exit_status.h asks it how. Where something is too old or refused, ends and
 * statuses just stay unknown.
 *
 * A number may be given to another process later on: a process is its number and its start. So a
 * run may have several processes of one number here, in the order in which they began.
 *
 * Threads: none.
 */
#ifndef FM_OS_WATCH_H
#define FM_OS_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "watch/os/run/exit_status.h"

struct fm_watched {
    pid_t pid;
    uint64_t start_ticks;      /* since boot; 0 if it had ended when it was first heard of */
    struct fm_exit_watch exit; /* closed once there is nothing more to learn from it */
    uint64_t end_ns;           /* CLOCK_MONOTONIC; 0 while it runs, or if it ended unseen */
    int32_t exit_status;       /* as a shell shows it; −1 if unknown */
    bool records;              /* it has a live store */
    long seen[3];              /* the next number of its files, of each kind; see watch.c */
};

struct fm_watch {
    char *folder;
    int inotify_fd;   /* −1 if unavailable: then only fm_watch_scan finds processes */
    int inotify_name; /* of the folder, in that */
    FM_VEC(struct fm_watched) list;
};

void fm_watch_init(struct fm_watch *watch, const char *folder);
void fm_watch_release(struct fm_watch *watch);

/* Know the process that has the number `pid` now, or had it last. The record's address holds until
 * the next call. */
struct fm_watched *fm_watch_add(struct fm_watch *watch, pid_t pid);

/* Look at the folder once, for what the notifications missed. */
void fm_watch_scan(struct fm_watch *watch);

/* Sleep until something happens: a process of the list ends, a new one appears, `extra_fd` becomes
 * readable, or `timeout_ms` passed (−1: no limit). Returns 1 if extra_fd is readable, else 0. */
int fm_watch_wait(struct fm_watch *watch, int extra_fd, int timeout_ms);

/* From now on only fm_watch_scan finds processes. The kernel takes 10 to 50 ms to forget a folder
 * that it was asked to watch, and whoever closes the descriptor meanwhile waits for that: so say it
 * when there is something to do before fm_watch_release. */
void fm_watch_end_names(struct fm_watch *watch);

/* How many of those that record are still running. */
size_t fm_watch_recording(const struct fm_watch *watch);

/* Ask once more for the exit statuses that were not known when the processes ended. */
void fm_watch_ask_statuses(struct fm_watch *watch);

#endif
