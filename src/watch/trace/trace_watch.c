/* The traces of a run; see trace_watch.h. */
#include "watch/trace/trace_watch.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/vec.h"
#include "record/capture/live_trace.h"

#define SOON_MS  2  /* while something comes */
#define LATER_MS 20 /* … less and less */

struct traced {
    pid_t pid;
    unsigned number;
    int pidfd; /* −1: it has ended, or cannot be watched */
    bool ended;
    struct fm_trace_log *log;
};

struct fm_trace_watch {
    char *folder;
    uint64_t window_ns;
    int inotify, stop; /* stop: an eventfd */
    pthread_t thread;
    pthread_mutex_t lock; /* of all that follows */
    bool started;
    FM_VEC(struct traced) list;
    FM_VEC(struct pollfd) polled;
};

/* ---- finding ---- */

/* −1 with errno ESRCH: it has ended. */
static int watch_process(pid_t pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0);
#else
    (void)pid;
    errno = ENOSYS;
    return -1;
#endif
}

/* Another program of the same process: the one before is no more. */
static void end_older(struct fm_trace_watch *w, pid_t pid, unsigned number)
{
    for (size_t i = 0; i < w->list.len; i++) {
        struct traced *t = &w->list.data[i];
        if (t->pid != pid || t->number >= number || t->ended)
            continue;
        fm_trace_log_end(t->log, 0);
        t->ended = true;
        if (t->pidfd >= 0)
            close(t->pidfd);
        t->pidfd = -1;
    }
}

static struct traced *find(const struct fm_trace_watch *w, pid_t pid, unsigned number)
{
    for (size_t i = 0; i < w->list.len; i++)
        if (w->list.data[i].pid == pid && w->list.data[i].number == number)
            return &w->list.data[i];
    return NULL;
}

static void see(struct fm_trace_watch *w, const char *name)
{
    int pid, end = 0;
    unsigned number;
    if (sscanf(name, "%d.%u%n", &pid, &number, &end) != 2 || !end ||
        strcmp(name + end, FM_TRACE_SUFFIX) != 0 || find(w, pid, number))
        return;
    struct traced t = { .pid = pid, .number = number, .pidfd = watch_process(pid) };
    t.log = fm_trace_log_new(w->folder, pid, number);
    fm_trace_log_forget(t.log, w->window_ns);
    end_older(w, pid, number);
    fm_vec_push(&w->list, t);
}

static void see_all(struct fm_trace_watch *w)
{
    DIR *dir = opendir(w->folder);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));)
        see(w, entry->d_name);
    closedir(dir);
}

static void see_new(struct fm_trace_watch *w)
{
    _Alignas(struct inotify_event) char bytes[4096];
    ssize_t len;
    if (w->inotify < 0)
        see_all(w);
    while (w->inotify >= 0 && (len = read(w->inotify, bytes, sizeof bytes)) > 0) {
        for (char *at = bytes; at < bytes + len;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            if (event->mask & IN_Q_OVERFLOW)
                see_all(w);
            else if (event->len)
                see(w, event->name);
            at += sizeof *event + event->len;
        }
    }
}

/* ---- emptying ---- */

static bool is_readable(int fd)
{
    struct pollfd one = { fd, POLLIN, 0 };
    return poll(&one, 1, 0) > 0;
}

static bool has_ended(const struct traced *t)
{
    if (t->pidfd >= 0)
        return is_readable(t->pidfd);
    return kill(t->pid, 0) != 0 && errno == ESRCH;
}

/* Some of one process. True if there may be more. */
static bool visit(struct traced *t)
{
    uint64_t now_ticks = fm_clock_ticks();
    if (t->ended)
        return false;
    if (!has_ended(t))
        return fm_trace_log_drain(t->log);
    fm_trace_log_end(t->log, t->pidfd >= 0 ? now_ticks : 0);
    t->ended = true;
    if (t->pidfd >= 0)
        close(t->pidfd);
    t->pidfd = -1;
    return true;
}

/* Once around. */
static bool visit_all(struct fm_trace_watch *w)
{
    bool more = false;
    see_new(w);
    for (size_t i = 0; i < w->list.len; i++)
        more = visit(&w->list.data[i]) || more;
    return more;
}

/* Until a process appears or ends, somebody says stop, or it is time again. False: stop. */
static bool pause_for(struct fm_trace_watch *w, int ms)
{
    pthread_mutex_lock(&w->lock);
    w->polled.len = 0;
    fm_vec_push(&w->polled, ((struct pollfd){ w->stop, POLLIN, 0 }));
    fm_vec_push(&w->polled, ((struct pollfd){ w->inotify, POLLIN, 0 }));
    for (size_t i = 0; i < w->list.len; i++)
        if (w->list.data[i].pidfd >= 0)
            fm_vec_push(&w->polled, ((struct pollfd){ w->list.data[i].pidfd, POLLIN, 0 }));
    pthread_mutex_unlock(&w->lock);
    poll(w->polled.data, w->polled.len, ms); /* one that hold() closes meanwhile just wakes it */
    return !(w->polled.data[0].revents & POLLIN);
}

static void *thread_main(void *data)
{
    struct fm_trace_watch *w = data;
    int ms = SOON_MS;
    do {
        pthread_mutex_lock(&w->lock);
        bool more = visit_all(w);
        pthread_mutex_unlock(&w->lock);
        ms = more ? 0 : ms ? (ms * 2 < LATER_MS ? ms * 2 : LATER_MS) : SOON_MS;
    } while (pause_for(w, ms));
    return NULL;
}

/* ---- from start to end ---- */

/* Signals are for the thread that waits for the program. */
static bool start(struct fm_trace_watch *w)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    w->started = pthread_create(&w->thread, NULL, thread_main, w) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return w->started;
}

uint64_t fm_trace_watch_window_ns(const struct fm_trace_watch *w)
{
    return w ? w->window_ns : 0;
}

struct fm_trace_watch *fm_trace_watch_new(const char *folder, uint64_t window_ns)
{
    struct fm_trace_watch *w = fm_calloc(1, sizeof *w);
    w->folder = fm_strdup(folder);
    w->window_ns = window_ns;
    pthread_mutex_init(&w->lock, NULL);
    w->stop = eventfd(0, EFD_CLOEXEC);
    w->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (w->inotify >= 0 && inotify_add_watch(w->inotify, folder, IN_CREATE | IN_MOVED_TO) < 0) {
        close(w->inotify);
        w->inotify = -1;
    }
    see_all(w);
    if (w->stop >= 0 && start(w))
        return w;
    fm_trace_watch_free(w);
    return NULL;
}

void fm_trace_watch_hold(struct fm_trace_watch *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    visit_all(w);
    for (size_t i = 0; i < w->list.len; i++)
        fm_trace_log_commit(w->list.data[i].log);
}

void fm_trace_watch_go_on(struct fm_trace_watch *w)
{
    if (w)
        pthread_mutex_unlock(&w->lock);
}

void fm_trace_watch_stop(struct fm_trace_watch *w)
{
    uint64_t one = 1;
    if (!w || !w->started)
        return;
    if (write(w->stop, &one, sizeof one) == (ssize_t)sizeof one)
        pthread_join(w->thread, NULL);
    w->started = false;
    see_all(w);
    for (size_t i = 0; i < w->list.len; i++)
        if (!has_ended(&w->list.data[i]) && !w->list.data[i].ended)
            fm_trace_log_give_up(w->list.data[i].log);
    while (visit_all(w))
        ;
    for (size_t i = 0; i < w->list.len; i++)
        fm_trace_log_commit(w->list.data[i].log);
}

struct fm_trace_log *fm_trace_watch_find(const struct fm_trace_watch *w, pid_t pid, unsigned number)
{
    struct traced *t = w ? find(w, pid, number) : NULL;
    return t ? t->log : NULL;
}

void fm_trace_watch_free(struct fm_trace_watch *w)
{
    if (!w)
        return;
    fm_trace_watch_stop(w);
    for (size_t i = 0; i < w->list.len; i++) {
        if (w->list.data[i].pidfd >= 0)
            close(w->list.data[i].pidfd);
        fm_trace_log_free(w->list.data[i].log);
    }
    fm_vec_release(&w->list);
    fm_vec_release(&w->polled);
    if (w->inotify >= 0)
        close(w->inotify);
    if (w->stop >= 0)
        close(w->stop);
    pthread_mutex_destroy(&w->lock);
    free(w->folder);
    free(w);
}
