/*
 * system(), which starts its shell inside the C library with the bare `environ`.
 *
 * Outside a run, and in programs whose `environ` still has the variables, the C library's own is
 * called. Inside a Python it is written out here, as POSIX describes it, because the shell's
 * environment cannot be handed to the real one.
 *
 * Threads: `lock` guards the count of calls under way; what they found is written by the first and
 * stays until the last has ended.
 */
#include "target/preload/preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int (*real_system)(const char *);

/* Calls of system() under way, and the dispositions they found: the last one restores them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int running;
static struct sigaction found_int, found_quit;

__attribute__((constructor(101))) static void look_up_all(void)
{
    real_system = (__typeof__(real_system))dlsym(RTLD_NEXT, "system");
}

/* From 2.38 on the C library's own put "--" in front of the command. */
static bool has_dashes(void)
{
    char *end;
    long major = strtol(gnu_get_libc_version(), &end, 10);
    long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    return major > 2 || (major == 2 && minor >= 38);
}

void fm_shell_words(const char *command, char *words[FM_SHELL_WORDS])
{
    *words++ = "sh";
    *words++ = "-c";
    if (has_dashes())
        *words++ = "--";
    *words++ = (char *)command;
    *words = NULL;
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
    char *words[FM_SHELL_WORDS];
    fm_shell_words(command, words);
    /* Through our own posix_spawn, which adds the variables. */
    int rc = posix_spawn(pid, FM_SHELL, NULL, &attributes, words, environ);
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
    if (real_system && (!command || !fm_environment_differs()))
        return real_system(command);
    /* A thread cancelled here would leave the interrupts ignored; it is cancelled afterwards. */
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    int status = command ? run_shell(command) : run_shell("exit 0") == 0;
    pthread_setcancelstate(cancel_state, NULL);
    return status;
}
