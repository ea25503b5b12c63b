/* Stopping one thread; see halt.h. */
#include "watch/os/still/halt.h"

#include <errno.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

int fm_halt_stop(struct fm_halt *halt, pid_t tid)
{
    int status;
    pid_t got;
    if (ptrace(PTRACE_SEIZE, tid, 0, 0) < 0)
        return -errno;
    if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0)
        return -errno;
    do
        got = waitpid(tid, &status, __WALL);
    while (got < 0 && errno == EINTR);
    if (got != tid || !WIFSTOPPED(status))
        return -ESRCH;
    /* It stopped for us (an event of ptrace's own), or with a signal on its way. */
    *halt = (struct fm_halt){ tid, status >> 16 ? 0 : WSTOPSIG(status) };
    return 0;
}

void fm_halt_end(const struct fm_halt *halt)
{
    ptrace(PTRACE_DETACH, halt->tid, 0, (long)halt->signal);
}
