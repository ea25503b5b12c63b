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
#include <sys/epoll.h>
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
#define LANES    4u /* threads, at most */
#define FOUND    64u

struct traced {
    pid_t pid;
    unsigned number;
    int pidfd;          /* −1: it has ended, or cannot be watched */
    uint64_t end_ticks; /* when it ended; 0: not yet. Set by who waits for that */
    bool ended;
    struct fm_trace_log *log;
};

/* A thread and its processes: those whose numbers have the same rest, so that programs which one process
 * executes after another are in one lane. */
struct trace_lane {
    struct fm_trace_watch *watch;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* of the list; who takes several does so in their order */
    FM_VEC(struct traced *) list;
};

struct fm_trace_watch {
    char *folder;
    uint64_t window_ns;
    int inotify, stop; /* stop: an eventfd */
    int inotify_name;  /* of the folder, in inotify */
    /* Open calls last until their process ends, so that instant is to be exact however much there is to
     * pack: a thread waits for nothing else. */
    pthread_t ends_thread;
    int ends;                                /* an epoll; −1: processes are asked one by one */
    bool over;                               /* no thread is started any more */
    const struct fm_trigger_rules *triggers; /* NULL: none */
    pthread_mutex_t found_lock;
    size_t found_count;
    uint64_t found_more;
    struct fm_trigger found[FOUND];
    struct trace_lane
        lanes[LANES]; /* the first one finds new traces; others are started when needed */
};

static struct trace_lane *lane_of(struct fm_trace_watch *w, pid_t pid)
{
    return &w->lanes[(unsigned)pid % LANES];
}

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
static void end_older(struct trace_lane *lane, pid_t pid, unsigned number)
{
    for (size_t i = 0; i < lane->list.len; i++) {
        struct traced *t = lane->list.data[i];
        if (t->pid == pid && t->number < number && !t->ended) {
            fm_trace_log_end(t->log, 0);
            t->ended = true;
        }
    }
}

static struct traced *find(const struct trace_lane *lane, pid_t pid, unsigned number)
{
    for (size_t i = 0; i < lane->list.len; i++)
        if (lane->list.data[i]->pid == pid && lane->list.data[i]->number == number)
            return lane->list.data[i];
    return NULL;
}

static bool start(struct trace_lane *lane);

static void on_trigger(void *context, const struct fm_trigger *trigger)
{
    struct fm_trace_watch *w = context;
    pthread_mutex_lock(&w->found_lock);
    if (w->found_count < FOUND)
        w->found[w->found_count++] = *trigger;
    else
        w->found_more++;
    pthread_mutex_unlock(&w->found_lock);
}

bool fm_trace_watch_triggered(struct fm_trace_watch *w, struct fm_trigger *trigger, uint64_t *more)
{
    *more = 0;
    if (!w)
        return false;
    pthread_mutex_lock(&w->found_lock);
    bool any = w->found_count > 0;
    if (any) {
        *trigger = w->found[0];
        memmove(w->found, w->found + 1, --w->found_count * sizeof *w->found);
    }
    *more = w->found_more;
    w->found_more = 0;
    pthread_mutex_unlock(&w->found_lock);
    return any;
}

static void add(struct trace_lane *lane, pid_t pid, unsigned number)
{
    struct traced *t = fm_calloc(1, sizeof *t);
    struct epoll_event end = { .events = EPOLLIN, .data.ptr = t };
    *t = (struct traced){ .pid = pid, .number = number, .pidfd = watch_process(pid) };
    t->log = fm_trace_log_new(lane->watch->folder, pid, number);
    fm_trace_log_forget(t->log, lane->watch->window_ns);
    if (lane->watch->triggers)
        fm_trace_log_watch_for(t->log, lane->watch->triggers, on_trigger, lane->watch);
    end_older(lane, pid, number);
    fm_vec_push(&lane->list, t);
    if (t->pidfd >= 0 && lane->watch->ends >= 0)
        epoll_ctl(lane->watch->ends, EPOLL_CTL_ADD, t->pidfd, &end);
}

/* In the lane of its process; in the first one, if that has no thread. */
static void see(struct fm_trace_watch *w, const char *name)
{
    int pid, end = 0;
    unsigned number;
    if (sscanf(name, "%d.%u%n", &pid, &number, &end) != 2 || !end ||
        strcmp(name + end, FM_TRACE_SUFFIX) != 0)
        return;
    struct trace_lane *lane = lane_of(w, pid);
    if (!lane->started && !w->over && !start(lane))
        lane = &w->lanes[0];
    pthread_mutex_lock(&lane->lock);
    if (!find(lane, pid, number))
        add(lane, pid, number);
    pthread_mutex_unlock(&lane->lock);
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

/* Has it ended, and when? That is 0 if nobody saw it. */
static bool has_ended(const struct fm_trace_watch *w, const struct traced *t, uint64_t *end_ticks)
{
    *end_ticks = __atomic_load_n(&t->end_ticks, __ATOMIC_ACQUIRE);
    if (*end_ticks || t->pidfd < 0)
        return *end_ticks || (kill(t->pid, 0) != 0 && errno == ESRCH);
    if (w->ends >= 0 && !w->over)
        return false; /* it will be told */
    *end_ticks = fm_clock_ticks();
    return is_readable(t->pidfd);
}

/* Some of one process. True if there may be more. */
static bool visit(const struct fm_trace_watch *w, struct traced *t)
{
    uint64_t end_ticks;
    if (t->ended) {
        if (!w->over)
            fm_trace_log_expire(t->log);
        return false;
    }
    if (!has_ended(w, t, &end_ticks))
        return fm_trace_log_drain(t->log);
    fm_trace_log_end(t->log, end_ticks);
    t->ended = true;
    if (t->end_ticks && t->pidfd >= 0) { /* who waited for that is done with it */
        close(t->pidfd);
        t->pidfd = -1;
    }
    return true;
}

/* Once around. */
static bool visit_lane(struct trace_lane *lane)
{
    bool more = false;
    pthread_mutex_lock(&lane->lock);
    if (lane == lane->watch->lanes)
        see_new(lane->watch);
    for (size_t i = 0; i < lane->list.len; i++)
        more = visit(lane->watch, lane->list.data[i]) || more;
    pthread_mutex_unlock(&lane->lock);
    return more;
}

/* Until a process appears, somebody says stop, or it is time again. False: stop. */
static bool pause_for(const struct trace_lane *lane, int ms)
{
    const struct fm_trace_watch *w = lane->watch;
    struct pollfd fds[] = { { w->stop, POLLIN, 0 }, { w->inotify, POLLIN, 0 } };
    poll(fds, lane == w->lanes ? 2 : 1, ms);
    return !(fds[0].revents & POLLIN);
}

/* The one of the ends: until somebody says stop. */
static void *ends_main(void *data)
{
    const struct fm_trace_watch *w = data;
    struct epoll_event event;
    while (epoll_wait(w->ends, &event, 1, -1) != 0) {
        struct traced *t = event.data.ptr;
        if (!t)
            break;
        epoll_ctl(w->ends, EPOLL_CTL_DEL, t->pidfd, NULL);
        __atomic_store_n(&t->end_ticks, fm_clock_ticks(), __ATOMIC_RELEASE);
    }
    return NULL;
}

static void *thread_main(void *data)
{
    struct trace_lane *lane = data;
    int ms = SOON_MS;
    do {
        bool more = visit_lane(lane);
        ms = more ? 0 : ms ? (ms * 2 < LATER_MS ? ms * 2 : LATER_MS) : SOON_MS;
    } while (pause_for(lane, ms));
    return NULL;
}

/* ---- from start to end ---- */

/* Signals are for the thread that waits for the program. */
static bool start_thread(pthread_t *thread, void *(*main)(void *), void *data)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(thread, NULL, main, data) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static bool start(struct trace_lane *lane)
{
    lane->started = start_thread(&lane->thread, thread_main, lane);
    return lane->started;
}

static void start_ends(struct fm_trace_watch *w)
{
    struct epoll_event stop = { .events = EPOLLIN };
    w->ends = epoll_create1(EPOLL_CLOEXEC);
    if (w->ends >= 0 && epoll_ctl(w->ends, EPOLL_CTL_ADD, w->stop, &stop) == 0 &&
        start_thread(&w->ends_thread, ends_main, w))
        return;
    if (w->ends >= 0)
        close(w->ends);
    w->ends = -1;
}

/* Several of one thread: see() takes that of the lane around it again. */
static void init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(lock, &kind);
    pthread_mutexattr_destroy(&kind);
}

struct fm_trace_watch *fm_trace_watch_new(const char *folder, uint64_t window_ns,
                                          const struct fm_trigger_rules *triggers)
{
    struct fm_trace_watch *w = fm_calloc(1, sizeof *w);
    w->folder = fm_strdup(folder);
    w->window_ns = window_ns;
    w->triggers = triggers && triggers->count ? triggers : NULL;
    pthread_mutex_init(&w->found_lock, NULL);
    for (unsigned i = 0; i < LANES; i++) {
        w->lanes[i].watch = w;
        init_lock(&w->lanes[i].lock);
    }
    w->stop = eventfd(0, EFD_CLOEXEC);
    w->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (w->inotify >= 0)
        w->inotify_name = inotify_add_watch(w->inotify, folder, IN_CREATE | IN_MOVED_TO);
    if (w->inotify >= 0 && w->inotify_name < 0) {
        close(w->inotify);
        w->inotify = -1;
    }
    start_ends(w);
    pthread_mutex_lock(&w->lanes[0].lock);
    see_all(w);
    bool started = w->stop >= 0 && (w->lanes[0].started || start(&w->lanes[0]));
    pthread_mutex_unlock(&w->lanes[0].lock);
    if (started)
        return w;
    fm_trace_watch_free(w);
    return NULL;
}

void fm_trace_watch_hold(struct fm_trace_watch *w)
{
    for (unsigned i = 0; w && i < LANES; i++)
        pthread_mutex_lock(&w->lanes[i].lock);
    for (unsigned i = 0; w && i < LANES; i++) {
        visit_lane(&w->lanes[i]);
        for (size_t k = 0; k < w->lanes[i].list.len; k++)
            fm_trace_log_commit(w->lanes[i].list.data[k]->log);
    }
}

void fm_trace_watch_go_on(struct fm_trace_watch *w)
{
    for (unsigned i = 0; w && i < LANES; i++)
        pthread_mutex_unlock(&w->lanes[LANES - 1 - i].lock);
}

/* What ended is taken whole; what goes on is told first, or there would be no end of it. */
static void finish_lane(struct trace_lane *lane)
{
    uint64_t end_ticks;
    for (size_t i = 0; i < lane->list.len; i++)
        if (!lane->list.data[i]->ended && !has_ended(lane->watch, lane->list.data[i], &end_ticks))
            fm_trace_log_give_up(lane->list.data[i]->log);
    while (visit_lane(lane))
        ;
    for (size_t i = 0; i < lane->list.len; i++)
        fm_trace_log_commit(lane->list.data[i]->log);
}

/* The first lane ends first: it is the one that starts others. */
void fm_trace_watch_stop(struct fm_trace_watch *w)
{
    uint64_t one = 1;
    if (!w || w->over)
        return;
    bool told = w->stop >= 0 && write(w->stop, &one, sizeof one) == (ssize_t)sizeof one;
    for (unsigned i = 0; i < LANES && told; i++)
        if (w->lanes[i].started)
            pthread_join(w->lanes[i].thread, NULL);
    if (w->ends >= 0 && told)
        pthread_join(w->ends_thread, NULL);
    w->over = true;
    see_all(w);
    for (unsigned i = 0; i < LANES; i++)
        finish_lane(&w->lanes[i]);
    if (w->inotify >= 0) /* now, or closing it would wait: see fm_watch_end_names */
        inotify_rm_watch(w->inotify, w->inotify_name);
}

bool fm_trace_watch_goes_on(const struct fm_trace_watch *w)
{
    return w && !w->over;
}

struct fm_trace_log *fm_trace_watch_find(const struct fm_trace_watch *w, pid_t pid, unsigned number)
{
    struct traced *t = NULL;
    for (unsigned i = 0; w && i < LANES && !t; i++)
        t = find(&w->lanes[i], pid, number);
    return t ? t->log : NULL;
}

static void release_lane(struct trace_lane *lane)
{
    for (size_t i = 0; i < lane->list.len; i++) {
        struct traced *t = lane->list.data[i];
        if (t->pidfd >= 0)
            close(t->pidfd);
        fm_trace_log_free(t->log);
        free(t);
    }
    fm_vec_release(&lane->list);
    pthread_mutex_destroy(&lane->lock);
}

void fm_trace_watch_free(struct fm_trace_watch *w)
{
    if (!w)
        return;
    fm_trace_watch_stop(w);
    for (unsigned i = 0; i < LANES; i++)
        release_lane(&w->lanes[i]);
    if (w->inotify >= 0)
        close(w->inotify);
    if (w->stop >= 0)
        close(w->stop);
    if (w->ends >= 0)
        close(w->ends);
    pthread_mutex_destroy(&w->found_lock);
    free(w->folder);
    free(w);
}
