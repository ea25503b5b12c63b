/*
 * The list of a target's threads, kept in step with its interpreters; see target.h. For target.c.
 */
#ifndef FM_SAMPLER_THREADS_H
#define FM_SAMPLER_THREADS_H

#include "watch/sampler/target.h"

/* Walk the interpreters and their thread states; new ones are added, missing ones are marked gone.
 * False if not even the first interpreter can be read. */
bool fm_threads_refresh(struct fm_target *t, uint64_t now_ns);

/* One read: who holds the GIL, and has a thread been added? Then
 * (and from time to time, for those that ended) the list is refreshed. False as above. */
bool fm_threads_glance(struct fm_target *t, uint64_t now_ns);

/* Look for the names of threads that have none yet. */
void fm_threads_name(struct fm_target *t, uint64_t now_ns);

/* Files that the kernel has for each thread. */
#define FM_THREADS_SYSCALL  "syscall"
#define FM_THREADS_SWITCHES "schedstat"

/* Read one of them, through its descriptor if there is one. As read(2). */
ssize_t fm_threads_file(const struct fm_watched_thread *th, int fd, const char *name, char *into,
                        size_t cap);

/* Who holds the GIL of this interpreter now? */
void fm_threads_see_gil(struct fm_target *t, struct fm_watched_interp *interp);

/* The thread ended; fm_threads_drop_ended() takes ended ones out of the list of the living. */
/* What the kernel has counted of the thread so far: its time on a processor (kept in `cpu_ns`), and
 * how often it was given one. False if the kernel does not say, or it is gone. */
bool fm_threads_switches(struct fm_watched_thread *th, uint64_t *ret);

void fm_threads_end(struct fm_target *t, struct fm_watched_thread *th, uint64_t now_ns);
void fm_threads_drop_ended(struct fm_target *t);
void fm_threads_drop(struct fm_watched_thread *th); /* the record itself */
void fm_threads_free(struct fm_target *t);

/* The pseudo-thread that gathers the asyncio tasks of `th`. */
struct fm_watched_thread *fm_threads_tasks_of(struct fm_target *t, struct fm_watched_thread *th,
                                              uint64_t now_ns);

#endif
