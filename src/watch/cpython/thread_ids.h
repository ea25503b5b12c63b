/*
 * Which thread of the kernel a Python thread is.
 *
 * Python knows its threads by pthread_t: the address of the C library's own record of the thread.
 * Since 3.11 it also notes the kernel's number, once, when the thread begins; a process that an
 * embedding server makes by a plain fork() (uwsgi's workers) inherits the notes of its parent,
 * which are wrong there. The C library keeps its record right in both cases, so where Python has no
 * number, or one that is no thread of this process, it is taken from that record.
 *
 * Where in the record it lies is not said anywhere. It is the place that holds, in the records of
 * all threads, as many different threads of the process as possible: 0 stands there in the record
 * of a thread that has ended. Of equal places the one at which the usual C library has it goes
 * first.
 *
 * Plain C over one remote read per thread; nothing is remembered.
 */
#ifndef FM_CPYTHON_THREAD_IDS_H
#define FM_CPYTHON_THREAD_IDS_H

#include "watch/os/procfs.h"
#include "watch/os/remote/remote.h"

struct fm_thread_id {
    uint64_t ident;  /* pthread_t */
    uint64_t native; /* as Python noted it, in its own pid namespace; 0: not at all */
    pid_t tid;       /* found: as we number it; 0: no thread of the process, or unknown */
};

/* Fill in `tid` of all threads of one process, which stand in Python's order, the newest first. Of
 * two with the same pthread_t the newer has not begun yet: it has none. */
void fm_thread_ids_find(const struct fm_remote *remote, struct fm_thread_id *threads, size_t n,
                        const struct fm_tids *tids);

#endif
