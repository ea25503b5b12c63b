/*
 * Asking a running CPython 3.14 or later to run a script of ours (PEP 768).
 *
 * A thread state has room for the path of a script and a mark that one waits. The thread looks at it
 * when its eval breaker is set, between two instructions of bytecode: one that is blocked in C does so
 * when it comes back.
 *
 * The main thread's state lies in the runtime and stays. That of another thread is freed when the
 * thread ends, so nothing is written there unless the thread is held still (os/still/halt.h) and its state
 * is still in the list; only one that runs is chosen.
 */
#ifndef FM_CPYTHON_REMOTE_CALL_H
#define FM_CPYTHON_REMOTE_CALL_H

#include "watch/cpython/runtime.h"

struct fm_remote_call {
    const struct fm_remote *remote;
    const struct fm_runtime *runtime;
    uint64_t main_at; /* in an interpreter */
    /* In a thread state: */
    uint64_t breaker, pending, path;
    uint64_t path_size;
    fm_addr main;  /* thread state */
    fm_addr other; /* … that was asked as well; 0: none */
    pid_t other_tid;
    int taken; /* marks that other threads have seen */
};

/* Errors: FM_UNSUPPORTED, a Python that has no such thing; FM_REMOTE_OFF, it is switched off;
 * FM_DAMAGED; FM_NOT_READY. The remote and the runtime must stay. */
int fm_remote_call_find(struct fm_remote_call *call, const struct fm_remote *remote,
                        const struct fm_runtime *runtime, struct fm_error *err);

/* Have the main thread run the script at `path`, as the process sees it. */
int fm_remote_call_post(struct fm_remote_call *call, const char *path, struct fm_error *err);

/* The same of a thread that runs, if there is one: for when the main thread does not come back. Then
 * both may run it. */
void fm_remote_call_post_other(struct fm_remote_call *call, const char *path);

/* No thread but the main one is asked any more … */
void fm_remote_call_spare_other(struct fm_remote_call *call);
/* … nor that. How many threads had seen the mark before: they have run the script, or are about to. */
int fm_remote_call_take_back(struct fm_remote_call *call);

#endif
