/* Signals of a process that stands in for its child; see relay.h. */
#include "watch/os/run/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* What is taken: everything that people and programs send on purpose. Left alone are the signals
 * by which the kernel reports this process's own faults, and the two that nobody can catch. */
static void fill_taken(sigset_t *set)
{
    static const int left[] = { SIGILL, SIGTRAP, SIGABRT, SIGBUS,  SIGFPE,  SIGSEGV,
                                SIGSYS, SIGPIPE, SIGXCPU, SIGXFSZ, SIGKILL, SIGSTOP };
    sigfillset(set);
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++)
        sigdelset(set, left[i]);
}

int fm_relay_init(struct fm_relay *relay, struct fm_error *err)
{
    sigset_t taken;
    struct sigaction standard = { .sa_handler = SIG_DFL };
    fill_taken(&taken);
    sigemptyset(&relay->early);
    /* With SIGCHLD ignored, which is inherited, the kernel would drop the program's exit status. */
    sigaction(SIGCHLD, &standard, &relay->found_child);
    sigprocmask(SIG_BLOCK, &taken, &relay->found_mask);
    relay->fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    if (relay->fd >= 0)
        return 0;
    int errnum = errno;
    fm_relay_undo(relay);
    return fm_error_set_errno(err, FM_SYSTEM, errnum, "signals cannot be watched");
}

void fm_relay_undo(const struct fm_relay *relay)
{
    sigaction(SIGCHLD, &relay->found_child, NULL);
    sigprocmask(SIG_SETMASK, &relay->found_mask, NULL);
}

void fm_relay_release(struct fm_relay *relay)
{
    if (relay->fd >= 0)
        close(relay->fd);
    relay->fd = -1;
}

/* Was it sent to this process by another one, rather than by the kernel to a whole group? */
static int is_meant_for_us(const struct signalfd_siginfo *info)
{
    return info->ssi_code <= 0 && info->ssi_pid != 0;
}

void fm_relay_mark(struct fm_relay *relay)
{
    sigpending(&relay->early);
}

bool fm_relay_pass(struct fm_relay *relay, pid_t pid)
{
    struct signalfd_siginfo info;
    bool kept = false;
    while (read(relay->fd, &info, sizeof info) == (ssize_t)sizeof info) {
        int number = (int)info.ssi_signo;
        if (number == relay->kept) {
            kept = true;
            continue;
        }
        bool missed = sigismember(&relay->early, number) == 1;
        /* The program signalling its parent does not mean itself. */
        if (number == SIGCHLD || !(is_meant_for_us(&info) || missed) || (pid_t)info.ssi_pid == pid)
            continue;
        kill(pid, number);
    }
    sigemptyset(&relay->early);
    return kept;
}

/* Is this process's group the one the terminal listens to? */
static int is_foreground(void)
{
    int tty = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (tty < 0)
        return 0;
    int foreground = tcgetpgrp(tty) == getpgrp();
    close(tty);
    return foreground;
}

void fm_relay_stop(struct fm_relay *relay, int signal_number)
{
    /* Programs that tidy up on ^Z stop themselves by SIGSTOP in the end. Elsewhere SIGSTOP is
     * somebody's private matter with the program: if he continues it, nobody continues us. */
    if (signal_number == SIGSTOP && !is_foreground())
        return;
    sigset_t one, before;
    struct sigaction standard = { .sa_handler = SIG_DFL }, found;
    sigemptyset(&one);
    sigaddset(&one, signal_number);
    sigaction(signal_number, &standard, &found);
    raise(signal_number);
    sigprocmask(SIG_UNBLOCK, &one, &before); /* here it stops, until SIGCONT */
    sigprocmask(SIG_SETMASK, &before, NULL);
    sigaction(signal_number, &found, NULL);
    (void)relay;
}

void fm_relay_die(int signal_number)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) == 0) {
        limit.rlim_cur = 0;
        setrlimit(RLIMIT_CORE, &limit);
    }
    prctl(PR_SET_DUMPABLE, 0);
    struct sigaction standard = { .sa_handler = SIG_DFL };
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal_number);
    sigaction(signal_number, &standard, NULL);
    raise(signal_number);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
}
