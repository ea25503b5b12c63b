/* Waiting for a program and the processes below it; see run_wait.h. */
#include "commands/run_wait.h"

#include <errno.h>
#include <sys/wait.h>

#include "base/clock.h"

#define GRACE_NS 100000000u /* for processes that end just after the program */
#define SLICE_MS 10

/* Has the program ended? A stop, by job control, is followed here. */
static bool has_ended(struct fm_relay *relay, pid_t pid, int *ret_status)
{
    for (;;) {
        int status;
        pid_t got = waitpid(pid, &status, WNOHANG | WUNTRACED);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == pid && WIFSTOPPED(status)) {
            fm_relay_stop(relay, WSTOPSIG(status));
            continue;
        }
        *ret_status = got == pid ? status : 0;
        return got != 0;
    }
}

static void wait_for_others(struct fm_relay *relay, struct fm_watch *watch)
{
    uint64_t until_ns = fm_clock_ns() + GRACE_NS;
    fm_watch_scan(watch);
    while (fm_watch_recording(watch) > 0 && fm_clock_ns() < until_ns)
        fm_watch_wait(watch, -1, SLICE_MS);
    fm_watch_scan(watch);
    fm_watch_ask_statuses(watch);
    (void)relay;
}

int fm_run_wait(struct fm_relay *relay, struct fm_watch *watch, pid_t pid)
{
    int status = 0;
    fm_watch_add(watch, pid);
    while (!has_ended(relay, pid, &status)) {
        fm_watch_wait(watch, relay->fd, -1);
        fm_relay_pass(relay, pid);
    }
    struct fm_watched *program = fm_watch_add(watch, pid);
    if (program->end_ns == 0)
        program->end_ns = fm_clock_ns();
    program->exit_status = fm_watch_shell_status(status);
    wait_for_others(relay, watch);
    return status;
}
