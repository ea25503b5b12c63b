/* Waiting for a program and the processes below it; see run_wait.h. */
#include "commands/run/wait.h"

#include <errno.h>
#include <sys/wait.h>

#include "base/clock.h"

#define GRACE_NS 100000000u /* for processes that end just after the program */
#define SLICE_MS 10

/* Is there something to know of the program? Not if it is stopped for a look (--stop), for a
 * moment: that is for the thread that looks to take. */
static bool has_news(pid_t pid)
{
    siginfo_t info = { 0 };
    int status;
    do
        status = waitid(P_PID, (id_t)pid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT);
    while (status < 0 && errno == EINTR);
    return status < 0 || (info.si_pid && info.si_code != CLD_TRAPPED);
}

/* Has the program ended? A stop, by job control, is followed here. */
static bool has_ended(struct fm_relay *relay, pid_t pid, int *ret_status)
{
    while (has_news(pid)) {
        int status;
        pid_t got = waitpid(pid, &status, WNOHANG | WUNTRACED);
        if (got == pid && WIFSTOPPED(status)) {
            fm_relay_stop(relay, WSTOPSIG(status));
        } else if (got != 0 && !(got < 0 && errno == EINTR)) {
            *ret_status = got == pid ? status : 0;
            return true;
        }
    }
    return false;
}

static void wait_for_others(struct fm_watch *watch)
{
    uint64_t until_ns = fm_clock_ns() + GRACE_NS;
    fm_watch_scan(watch);
    while (fm_watch_recording(watch) > 0 && fm_clock_ns() < until_ns)
        fm_watch_wait(watch, -1, SLICE_MS);
    fm_watch_scan(watch);
    fm_watch_ask_statuses(watch);
}

/* Milliseconds to that instant; −1: it never comes. */
static int until_ms(uint64_t due_ns)
{
    uint64_t now_ns = fm_clock_ns();
    if (due_ns == UINT64_MAX)
        return -1;
    return due_ns <= now_ns ? 0 : (int)((due_ns - now_ns) / 1000000 % 3600000) + 1;
}

int fm_run_wait(struct fm_relay *relay, struct fm_watch *watch, pid_t pid,
                const struct fm_run_meanwhile *meanwhile)
{
    int status = 0;
    fm_watch_add(watch, pid);
    while (!has_ended(relay, pid, &status)) {
        fm_watch_wait(watch, relay->fd, until_ms(meanwhile->due_ns(meanwhile->data)));
        if (fm_relay_pass(relay, pid))
            meanwhile->flush(meanwhile->data);
        if (meanwhile->due_ns(meanwhile->data) <= fm_clock_ns())
            meanwhile->do_due(meanwhile->data);
    }
    struct fm_watched *program = &watch->list.data[0]; /* its number may be another's by now */
    if (program->end_ns == 0)
        program->end_ns = fm_clock_ns();
    program->exit_status = fm_exit_status_of_wait(status);
    wait_for_others(watch);
    return status;
}
