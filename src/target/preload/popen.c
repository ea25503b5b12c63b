/*
 * popen(), pclose(), and fclose() for those who end a pipe with that.
 *
 * The C library's own popen() hands `environ` to the shell, and nothing else can be handed to it. To
 * point `environ` elsewhere for a moment is no way: any other thread may be looking through it. So
 * in a Python, whose `environ` lacks the run's variables, popen() is written out here as the C
 * library has it: a pipe, a stream on one end of it, and a shell that gets the other end and an
 * environment of its own; and the streams still open, because POSIX wants them closed in every
 * later shell. Elsewhere, and for streams that are not from here, the C library's own are called.
 *
 * Threads: `lock` guards the list from looking at it to having added to it, with the shell started
 * in between, as in the C library: another popen() must not miss a descriptor. It is held over a
 * fork, so that the child finds the list whole. Nothing here is a cancellation point.
 */
#include "target/preload/preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    FILE *(*popen)(const char *, const char *);
    int (*pclose)(FILE *);
    int (*fclose)(FILE *);
} real;

/* A stream that was opened here, and its shell. */
struct stream {
    FILE *file;
    pid_t pid;
    int fd;
    ino_t pipe; /* `fd` is this pipe, unless the program has put something else in its place */
    struct stream *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct stream *streams;  /* guarded by `lock` */
static _Atomic unsigned opened; /* how many are in the list: fclose() asks without the lock */

__attribute__((constructor(101))) static void look_up_all(void)
{
    real.popen = (__typeof__(real.popen))dlsym(RTLD_NEXT, "popen");
    real.pclose = (__typeof__(real.pclose))dlsym(RTLD_NEXT, "pclose");
    real.fclose = (__typeof__(real.fclose))dlsym(RTLD_NEXT, "fclose");
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
}

static void keep_over_fork(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* What popen()'s mode says; false if it says nothing sensible. */
struct mode {
    bool reads, keeps; /* the program reads; its end stays open in programs that it executes */
};

static bool parse_mode(const char *text, struct mode *mode)
{
    bool reads = false, writes = false;
    *mode = (struct mode){ .keeps = true };
    for (; *text; text++) {
        if (*text == 'r')
            reads = true;
        else if (*text == 'w')
            writes = true;
        else if (*text == 'e')
            mode->keeps = false;
        else
            return false;
    }
    mode->reads = reads;
    return reads != writes;
}

static bool is_still_the_pipe(const struct stream *s)
{
    struct stat st;
    return fstat(s->fd, &st) == 0 && S_ISFIFO(st.st_mode) && st.st_ino == s->pipe;
}

/* Start the shell with `fd` as its standard input or output; 0 or an error number. */
static int start_shell(pid_t *pid, const char *command, int fd, int as)
{
    char *words[FM_SHELL_WORDS];
    posix_spawn_file_actions_t actions;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc)
        return rc;
    rc = posix_spawn_file_actions_adddup2(&actions, fd, as);
    for (const struct stream *s = streams; s && !rc; s = s->next)
        if (s->fd != as && is_still_the_pipe(s))
            rc = posix_spawn_file_actions_addclose(&actions, s->fd);
    fm_shell_words(command, words);
    if (!rc) /* through our own posix_spawn, which adds the variables */
        rc = posix_spawn(pid, FM_SHELL, &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/* The pipe's ends: `ends[0]` the program's, `ends[1]` the shell's, which is never `as` itself:
 * giving a descriptor its own number would not take close-on-exec away from it everywhere. */
static int open_pipe(const struct mode *mode, int as, int ends[2])
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -1;
    ends[0] = fds[mode->reads ? 0 : 1];
    ends[1] = fds[mode->reads ? 1 : 0];
    if (ends[1] != as)
        return 0;
    ends[1] = fcntl(as, F_DUPFD_CLOEXEC, 0);
    int failure = errno;
    close(as);
    if (ends[1] >= 0)
        return 0;
    close(ends[0]);
    errno = failure;
    return -1;
}

/* Fill `s` and put it in the list; 0 or an error number, with nothing left open. */
static int open_stream(struct stream *s, const char *command, const struct mode *mode)
{
    struct stat st;
    int ends[2], as = mode->reads ? STDOUT_FILENO : STDIN_FILENO;
    if (open_pipe(mode, as, ends) < 0)
        return errno;
    s->fd = ends[0];
    s->pipe = fstat(s->fd, &st) == 0 ? st.st_ino : 0;
    s->file = fdopen(s->fd, mode->reads ? "r" : "w");
    int rc = s->file ? 0 : errno;
    if (rc) {
        close(ends[0]);
        close(ends[1]);
        return rc;
    }
    pthread_mutex_lock(&lock);
    rc = start_shell(&s->pid, command, ends[1], as);
    close(ends[1]);
    if (!rc) {
        if (mode->keeps)
            fcntl(s->fd, F_SETFD, 0);
        s->next = streams;
        streams = s;
        opened++;
    }
    pthread_mutex_unlock(&lock);
    if (rc)
        real.fclose(s->file);
    return rc;
}

FM_PRELOAD_EXPORT FILE *popen(const char *command, const char *text)
{
    struct mode mode;
    if (real.popen && !fm_environment_differs())
        return real.popen(command, text);
    if (!real.fclose || !real.pclose || !parse_mode(text, &mode)) {
        errno = EINVAL;
        return NULL;
    }
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    pthread_once(&once, keep_over_fork);
    struct stream *s = malloc(sizeof *s);
    int rc = s ? open_stream(s, command, &mode) : ENOMEM;
    FILE *file = rc ? NULL : s->file;
    if (rc) {
        free(s);
        errno = rc;
    }
    pthread_setcancelstate(cancel_state, NULL);
    return file;
}

/* Take the stream out of the list; NULL if it is not from here. */
static struct stream *take(FILE *file)
{
    struct stream *s = NULL;
    if (!opened)
        return NULL;
    pthread_mutex_lock(&lock);
    for (struct stream **link = &streams; *link; link = &(*link)->next) {
        if ((*link)->file == file) {
            s = *link;
            *link = s->next;
            opened--;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return s;
}

/* Close the pipe, wait for the shell, say how it ended. If the program has closed the descriptor
 * by itself, that is all: the C library does not wait then either. */
static int end_stream(struct stream *s)
{
    int cancel_state, status = -1;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    bool open = fcntl(s->fd, F_GETFD) >= 0;
    int closed = real.fclose(s->file);
    if (open) {
        pid_t got;
        do
            got = waitpid(s->pid, &status, 0);
        while (got < 0 && errno == EINTR);
        if (got < 0)
            status = -1;
        else if (status == 0)
            status = closed; /* what was still to be written could not be */
    }
    free(s);
    pthread_setcancelstate(cancel_state, NULL);
    return status;
}

FM_PRELOAD_EXPORT int pclose(FILE *file)
{
    struct stream *s = take(file);
    if (s)
        return end_stream(s);
    if (!real.pclose) {
        errno = ENOSYS;
        return -1;
    }
    return real.pclose(file);
}

FM_PRELOAD_EXPORT int fclose(FILE *file)
{
    struct stream *s = take(file);
    if (s)
        return end_stream(s);
    if (!real.fclose && !(real.fclose = (__typeof__(real.fclose))dlsym(RTLD_NEXT, "fclose"))) {
        errno = ENOSYS;
        return EOF;
    }
    return real.fclose(file);
}
