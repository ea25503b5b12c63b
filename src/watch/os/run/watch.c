/* Watches the processes of a run end; see watch.h. */
#include "watch/os/run/watch.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/clock.h"
#include "watch/os/procfs.h"

#define MAX_STATUS_FDS 256 /* ended processes whose descriptor is kept for their status */

void fm_watch_init(struct fm_watch *watch, const char *folder)
{
    *watch = (struct fm_watch){ .folder = fm_strdup(folder) };
    watch->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch->inotify_fd < 0)
        return;
    watch->inotify_name = inotify_add_watch(watch->inotify_fd, folder, IN_CREATE);
    if (watch->inotify_name < 0) {
        close(watch->inotify_fd);
        watch->inotify_fd = -1;
    }
}

void fm_watch_end_names(struct fm_watch *watch)
{
    if (watch->inotify_fd >= 0)
        inotify_rm_watch(watch->inotify_fd, watch->inotify_name);
}

void fm_watch_release(struct fm_watch *watch)
{
    for (size_t i = 0; i < watch->list.len; i++)
        fm_exit_watch_close(&watch->list.data[i].exit);
    fm_vec_release(&watch->list);
    if (watch->inotify_fd >= 0)
        close(watch->inotify_fd);
    free(watch->folder);
    *watch = (struct fm_watch){ .inotify_fd = -1 };
}

/* Has it neither been seen to end nor been too late to watch? */
static int is_running(const struct fm_watched *watched)
{
    return watched->exit.fd >= 0 && watched->end_ns == 0;
}

/* The last process of that number; NULL if there was none. */
static struct fm_watched *find(struct fm_watch *watch, pid_t pid)
{
    for (size_t i = watch->list.len; i > 0; i--)
        if (watch->list.data[i - 1].pid == pid)
            return &watch->list.data[i - 1];
    return NULL;
}

struct fm_watched *fm_watch_add(struct fm_watch *watch, pid_t pid)
{
    struct fm_watched *known = find(watch, pid);
    struct fm_process_kin kin;
    uint64_t start_ticks = fm_process_kin(&kin, pid) == 0 ? kin.start_ticks : 0;
    if (known && (start_ticks == 0 || start_ticks == known->start_ticks))
        return known;
    if (known && known->end_ns == 0) /* nobody had the time to look at its descriptor */
        known->end_ns = fm_clock_ns();
    struct fm_watched watched = { .pid = pid, .start_ticks = start_ticks, .exit_status = -1 };
    fm_exit_watch_open(&watched.exit, pid);
    if (known)
        memcpy(watched.seen, known->seen, sizeof watched.seen);
    fm_vec_push(&watch->list, watched);
    return &watch->list.data[watch->list.len - 1];
}

/* A file "PID.N.live", "PID.N.heap" or "PID.N.unprofiled" is there. Processes number theirs upwards, so what is
 * below the number to come was seen before, and is perhaps of another process that had the same
 * number. */
static void see_name(struct fm_watch *watch, const char *name)
{
    char *end, *dot;
    errno = 0;
    long pid = strtol(name, &dot, 10);
    if (dot == name || *dot != '.' || errno != 0 || pid <= 0 || pid > INT32_MAX)
        return;
    long number = strtol(dot + 1, &end, 10);
    int kind = strstr(end, ".live") ? 1 : strstr(end, ".heap") ? 2 : 0;
    const struct fm_watched *known = find(watch, (pid_t)pid);
    if (known && number < known->seen[kind])
        return;
    struct fm_watched *watched = fm_watch_add(watch, (pid_t)pid);
    watched->seen[kind] = number + 1;
    watched->records |= kind != 0;
}

void fm_watch_scan(struct fm_watch *watch)
{
    DIR *dir = opendir(watch->folder);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));)
        see_name(watch, entry->d_name);
    closedir(dir);
}

static void read_names(struct fm_watch *watch)
{
    _Alignas(struct inotify_event) char bytes[4096];
    ssize_t len;
    while ((len = read(watch->inotify_fd, bytes, sizeof bytes)) > 0) {
        for (char *at = bytes; at < bytes + len;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            if (event->mask & IN_Q_OVERFLOW)
                fm_watch_scan(watch);
            else if (event->len)
                see_name(watch, event->name);
            at += sizeof *event + event->len;
        }
    }
}

static void ask_status(struct fm_watched *watched)
{
    if (watched->exit_status < 0 &&
        fm_exit_watch_status(&watched->exit, watched->pid, &watched->exit_status))
        fm_exit_watch_close(&watched->exit);
}

void fm_watch_ask_statuses(struct fm_watch *watch)
{
    for (size_t i = 0; i < watch->list.len; i++)
        if (watch->list.data[i].end_ns)
            ask_status(&watch->list.data[i]);
}

/* Note who ended; their descriptors are kept for a while if the status is still unknown. */
static void see_ends(struct fm_watch *watch, const struct pollfd *fds, const size_t *who,
                     size_t count, uint64_t now_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct fm_watched *watched = &watch->list.data[who[i]];
        if (fds[i].revents) {
            watched->end_ns = now_ns;
            ask_status(watched);
        }
    }
    for (size_t i = watch->list.len; i > 0; i--) {
        struct fm_watched *watched = &watch->list.data[i - 1];
        if (watched->end_ns && watched->exit.fd >= 0 && ++kept > MAX_STATUS_FDS)
            fm_exit_watch_close(&watched->exit);
    }
}

int fm_watch_wait(struct fm_watch *watch, int extra_fd, int timeout_ms)
{
    size_t count = 0;
    struct pollfd *fds = fm_calloc(watch->list.len + 2, sizeof *fds);
    size_t *who = fm_calloc(watch->list.len + 1, sizeof *who);
    for (size_t i = 0; i < watch->list.len; i++)
        if (is_running(&watch->list.data[i])) {
            who[count] = i;
            fds[count++] = (struct pollfd){ .fd = watch->list.data[i].exit.fd, .events = POLLIN };
        }
    struct pollfd *inotify = &fds[count], *extra = &fds[count + 1];
    *inotify = (struct pollfd){ .fd = watch->inotify_fd, .events = POLLIN };
    *extra = (struct pollfd){ .fd = extra_fd, .events = POLLIN };
    int ready = poll(fds, count + 2, timeout_ms);
    uint64_t now_ns = fm_clock_ns();
    int is_extra = 0;
    if (ready > 0) {
        is_extra = extra->revents != 0;
        see_ends(watch, fds, who, count, now_ns);
        if (inotify->revents)
            read_names(watch);
    }
    free(fds);
    free(who);
    return is_extra;
}

size_t fm_watch_recording(const struct fm_watch *watch)
{
    size_t running = 0;
    for (size_t i = 0; i < watch->list.len; i++)
        running += watch->list.data[i].records && is_running(&watch->list.data[i]);
    return running;
}
