/*
 * Stopping one thread for the some ten microseconds that a look takes: where sitting on its
 * processor (seat.h) is refused, or asked for by --stop.
 *
 * By ptrace, which is let go of after each look: a thread that stays seized would wait for us with
 * each signal it gets. If we die the kernel detaches it and it goes on. A thread has one tracer
 * only: with a debugger there this is refused. A signal that arrives meanwhile is handed on. Only
 * threads that run are to be stopped: one that is blocked in a system call might see EINTR.
 */
#ifndef FM_OS_HALT_H
#define FM_OS_HALT_H

#include <stdbool.h>
#include <sys/types.h>

struct fm_halt {
    pid_t tid;
    int signal; /* to be handed on */
};

/* Stop the thread. 0, or a negative error number: it is refused, or the thread has ended. */
int fm_halt_stop(struct fm_halt *halt, pid_t tid);
/* Let it go on. */
void fm_halt_end(const struct fm_halt *halt);

#endif
