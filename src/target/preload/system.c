/*
 * system() and popen(), which start their shell inside the C library with the bare `environ`.
 *
 * Outside a run, and in programs whose `environ` still has the variables, the C library's own are
 * called. Inside a Python system() is written out here, as POSIX describes it, because the shell's
 * environment cannot be handed to the real one. popen() needs the C library's own bookkeeping for
 * pclose(), so `environ` points at the larger environment while it starts the shell, which takes
 * microseconds; a program that changes its environment in another thread just then is in a race of
 * its own making with popen() anyway.
 */
#include "target/preload/preload.h"

#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    int (*system)(const char *);
    FILE *(*popen)(const char *, const char *);
} real;

/* Calls of system() under way, and the dispositions they found: the last one restores them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int running;
static struct sigaction found_int, found_quit;

__attribute__((constructor(101))) static void look_up_all(void)
{
    real.system = (__typeof__(real.system))dlsym(RTLD_NEXT, "system");
    real.popen = (__typeof__(real.popen))dlsym(RTLD_NEXT, "popen");
}

static bool environment_needs_help(void)
{
    struct fm_environment plan;
    fm_environment_plan(&plan, environ);
    return plan.bytes != 0;
}

static void ignore_interrupts(void)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    pthread_mutex_lock(&lock);
    if (running++ == 0) {
        sigaction(SIGINT, &ignore, &found_int);
        sigaction(SIGQUIT, &ignore, &found_quit);
    }
    pthread_mutex_unlock(&lock);
}

static void restore_interrupts(void)
{
    pthread_mutex_lock(&lock);
    if (--running == 0) {
        sigaction(SIGINT, &found_int, NULL);
        sigaction(SIGQUIT, &found_quit, NULL);
    }
    pthread_mutex_unlock(&lock);
}

/* Start the shell with the caller's mask and dispositions; 0 or an error number. */
static int start_shell(pid_t *pid, const char *command, const sigset_t *mask)
{
    posix_spawnattr_t attributes;
    sigset_t defaults;
    sigemptyset(&defaults);
    if (found_int.sa_handler != SIG_IGN)
        sigaddset(&defaults, SIGINT);
    if (found_quit.sa_handler != SIG_IGN)
        sigaddset(&defaults, SIGQUIT);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, mask);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    char *argv[] = { "sh", "-c", (char *)command, NULL };
    /* Through our own posix_spawn, which adds the variables. */
    int rc = posix_spawn(pid, "/bin/sh", NULL, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    return rc;
}

static int run_shell(const char *command)
{
    sigset_t child, mask;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    ignore_interrupts();
    pthread_sigmask(SIG_BLOCK, &child, &mask);

    pid_t pid;
    int status = 127 << 8; /* what a shell that cannot be started is reported as */
    int rc = start_shell(&pid, command, &mask);
    if (rc == 0) {
        pid_t got;
        do
            got = waitpid(pid, &status, 0);
        while (got < 0 && errno == EINTR);
        if (got != pid) {
            status = -1;
            rc = errno;
        }
    }
    restore_interrupts();
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    if (rc)
        errno = rc;
    return status;
}

FM_PRELOAD_EXPORT int system(const char *command)
{
    if (real.system && (!command || !environment_needs_help()))
        return real.system(command);
    /* A thread cancelled here would leave the interrupts ignored; it is cancelled afterwards. */
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    int status = command ? run_shell(command) : run_shell("exit 0") == 0;
    pthread_setcancelstate(cancel_state, NULL);
    return status;
}

FM_PRELOAD_EXPORT FILE *popen(const char *command, const char *mode)
{
    if (!real.popen) {
        errno = ENOSYS;
        return NULL;
    }
    FILE *file;
    char **before = environ;
    FM_WITH_ENVIRONMENT(env, before, {
        environ = (char **)env;
        file = real.popen(command, mode);
        if (environ == (char **)env)
            environ = before;
    });
    return file;
}
