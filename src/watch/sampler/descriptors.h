/*
 * What the descriptors of a watched process are: files, sockets with their addresses, pipes, …
 *
 * Model. A descriptor number means nothing for long: programs close and reuse them all the time. So
 * what is known of one is a guess that is checked against the link in /proc/PID/fd (2 µs) when the
 * last check is older than 10 ms. Everything is learnt by reading /proc; a descriptor is never
 * taken over (pidfd_getfd would keep a connection open that the program has just closed).
 *
 * Memory is bounded: a fixed number of descriptors and sockets is remembered, newer ones take the
 * place of older ones.
 *
 * Threads: one at a time for each object.
 */
#ifndef FM_SAMPLER_DESCRIPTORS_H
#define FM_SAMPLER_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"

enum fm_fd_kind {
    FM_FD_UNKNOWN, /* not open, or /proc does not let us look */
    FM_FD_FILE,    /* regular; in memory too */
    FM_FD_FOLDER,
    FM_FD_DISK, /* a block device */
    FM_FD_TTY,
    FM_FD_DEVICE, /* any other character device */
    FM_FD_PIPE,   /* and FIFOs */
    FM_FD_SOCKET,
    FM_FD_EPOLL,
    FM_FD_EVENT,   /* eventfd */
    FM_FD_TIMER,   /* timerfd */
    FM_FD_SIGNAL,  /* signalfd */
    FM_FD_NOTIFY,  /* inotify, fanotify */
    FM_FD_PROCESS, /* pidfd */
    FM_FD_RING,    /* io_uring */
    FM_FD_OTHER,
};

/* What a process waits for in epoll. */
enum fm_fd_epoll {
    FM_FD_EPOLL_NOTHING, /* it watches no descriptor */
    FM_FD_EPOLL_WAKEUP,  /* only what other threads wake the loop with: an eventfd, or one end of
                          * an unnamed socket pair, as every asyncio loop has */
    FM_FD_EPOLL_SOCKETS,
    FM_FD_EPOLL_OTHER, /* pipes, terminals, processes */
};

struct fm_fd_kinds;

struct fm_fd_kinds *fm_fd_kinds_new(pid_t pid);
void fm_fd_kinds_free(struct fm_fd_kinds *kinds);

enum fm_fd_kind fm_fd_kind(struct fm_fd_kinds *kinds, int fd);

/* Differs between two things that had the same number one after the other, as far as /proc can tell
 * (it cannot for eventfd, epoll and their like). 0 if the descriptor is not open. */
uint64_t fm_fd_identity(struct fm_fd_kinds *kinds, int fd);

/* What an epoll descriptor waits for, and how many descriptors that are. Listing them takes a lock
 * in the kernel which the program's own epoll calls need, so lists are read seldom: 10 times a
 * second at most, less often the longer the list is. */
enum fm_fd_epoll fm_fd_epoll(struct fm_fd_kinds *kinds, int fd, uint32_t *count);

/* In words, appended: a path, "tcp 127.0.0.1:80 → 10.0.0.1:5432", "tcp 127.0.0.1:80 (listening)",
 * "unix /run/x", "pipe:[123]", "epoll of 12 descriptors", "process 123"; nothing if the descriptor
 * is not open. A socket whose addresses cannot be found is "socket". Finding them may take
 * milliseconds, so at most a hundredth of the time is spent on sockets: false if that is used up
 * and asking again, a second later, may help. */
bool fm_fd_describe(struct fm_fd_kinds *kinds, int fd, struct fm_buffer *out);

/* Is the process stopped (by a signal, or by a debugger)? Known to 10 ms. */
bool fm_fd_kinds_stopped(struct fm_fd_kinds *kinds);

#endif
