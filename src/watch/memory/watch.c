/*
 * The memory of a run over time; see watch.h.
 *
 * A heap store is read, not mapped: its counters are two words, and a file that its process cut short
 * would kill whoever touches the mapping.
 */
#include "watch/memory/watched.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "record/capture/live_heap.h"
#include "record/model/curve.h"
#include "watch/memory/cgroup.h"
#include "watch/memory/event_log.h"
#include "watch/memory/residence.h"
#include "watch/memory/resident.h"
#include "watch/memory/slicer.h"
#include "watch/memory/together.h"
#include "watch/os/path.h"
#include "watch/os/procfs.h"
#include "watch/os/run/folder.h"
#include "watch/os/run/newborn.h"

#define SHARES_NS    100000000u  /* between two rounds of shares, at least */
#define LIMIT_NS     1000000000u /* how often a limit is looked up */
#define NEAR_PERCENT 95          /* of its limit: then a group is close to it */
#define INTO_NS      200000000u  /* how often it is looked into a process that does not grow */
#define COST_SHARE   100u        /* looks take at most that part of the time */
#define SLICES_SHARE 200u        /* … and slices at most that */
#define WAKE_MOST_NS 100000u /* of the time between two looks, what counts as waking up for one */

/* ---- who ---- */

static struct memory_watched *find(const struct fm_memory_watch *w, pid_t pid)
{
    const uint32_t *at = fm_map_find(&w->by_pid, (uint64_t)pid);
    return at ? &w->list.data[*at] : NULL;
}

static void ask_names(struct memory_watched *watched)
{
    free(watched->exe);
    free(watched->command);
    watched->exe = fm_process_exe(watched->pid);
    watched->command = fm_process_command(watched->pid);
}

static struct memory_watched *add(struct fm_memory_watch *w, pid_t pid, pid_t parent)
{
    struct memory_watched *known = find(w, pid);
    if (fm_memory_runs(known))
        return known;
    int fd = fm_resident_open(pid);
    if (fd < 0)
        return NULL;
    struct memory_watched fresh = {
        .pid = pid, .parent = parent, .resident = fd, .heap = -1, .more = -1
    };
    uint32_t index = (uint32_t)w->list.len;
    fm_vec_push(&w->list, fresh);
    fm_vec_push(&w->running, index);
    *fm_map_at(&w->by_pid, (uint64_t)pid, index, NULL) = index;
    return &w->list.data[index];
}

/* Its own parent may have ended; who leads its group or session then still tells. */
static int add_newborn(const struct fm_newborn_process *born, void *data)
{
    struct fm_memory_watch *w = data;
    if (fm_memory_runs(find(w, born->parent)) || find(w, born->group) || find(w, born->session))
        add(w, born->pid, born->parent);
    return 0;
}

/* The store that is watched is that of a program that is no more. */
static void end_past(struct memory_watched *watched)
{
    fm_event_log_drain(watched->log, watched->heap, true);
    fm_event_log_free(watched->log);
    fm_slicer_free(watched->slicer);
    watched->log = NULL;
    watched->slicer = NULL;
}

/* The store "PID.N.heap" is there: of a new process, or of what a known one executed. */
/* A process that was over before it could be looked at: what it had is gone, too. */
static void bury_unseen(const struct fm_memory_watch *w, pid_t pid, const char *name)
{
    if (kill(pid, 0) == 0 || errno != ESRCH)
        return;
    fm_autofree char *path = fm_path_join(w->folder, name);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return;
    fm_together_bury(w->folder, fd);
    close(fd);
}

static void see_store(struct fm_memory_watch *w, const char *name)
{
    int pid, end = 0;
    unsigned number;
    if (sscanf(name, "%d.%u%n", &pid, &number, &end) != 2 || !end ||
        strcmp(name + end, FM_HEAP_SUFFIX) != 0)
        return;
    struct fm_process_kin kin = { 0 };
    fm_process_kin(&kin, pid);
    struct memory_watched *watched = add(w, pid, kin.parent);
    if (!watched)
        bury_unseen(w, pid, name);
    if (!watched || (watched->heap >= 0 && number <= watched->heap_number))
        return;
    fm_autofree char *path = fm_path_join(w->folder, name);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return;
    end_past(watched);
    if (watched->heap >= 0)
        close(watched->heap);
    if (watched->more >= 0)
        close(watched->more);
    watched->heap = fd;
    watched->more = -1;
    watched->heap_number = number;
    if (w->options.events)
        watched->log = fm_event_log_new(w->folder, pid, number);
    else
        watched->slicer = fm_slicer_new(w->folder, pid, number);
}

/* All that is there: what came before notifications did, or when there were too many. */
static void see_all_stores(struct fm_memory_watch *w)
{
    DIR *dir = opendir(w->folder);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));)
        see_store(w, entry->d_name);
    closedir(dir);
}

static void see_stores(struct fm_memory_watch *w)
{
    _Alignas(struct inotify_event) char bytes[4096];
    ssize_t len;
    while (w->inotify >= 0 && (len = read(w->inotify, bytes, sizeof bytes)) > 0) {
        for (char *at = bytes; at < bytes + len;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            if (event->mask & IN_Q_OVERFLOW)
                see_all_stores(w);
            else if (event->len)
                see_store(w, event->name);
            at += sizeof *event + event->len;
        }
    }
}

static void forget(struct fm_memory_watch *w, size_t at)
{
    struct memory_watched *watched = &w->list.data[w->running.data[at]];
    close(watched->resident);
    watched->resident = -1;
    end_past(watched);
    if (watched->heap >= 0)
        close(watched->heap);
    if (watched->more >= 0)
        close(watched->more);
    watched->heap = watched->more = -1;
    w->running.data[at] = w->running.data[--w->running.len];
}

/* ---- looking ---- */

/* It has ended. */
static void bury(struct fm_memory_watch *w, size_t at)
{
    const struct memory_watched *watched = &w->list.data[w->running.data[at]];
    if (watched->heap >= 0)
        fm_together_bury(w->folder, watched->heap);
    forget(w, at);
}

/* The counters of a store; false while it is not ready. */
static bool read_header(int fd, struct fm_heap_header *h)
{
    ssize_t bytes = offsetof(struct fm_heap_header, pieces);
    return fd >= 0 && pread(fd, h, (size_t)bytes, 0) == bytes &&
           memcmp(h->magic, FM_HEAP_MAGIC, sizeof h->magic) == 0 && h->version == FM_HEAP_VERSION &&
           h->flags & FM_HEAP_READY;
}

static int open_second(const struct fm_memory_watch *w, const struct memory_watched *watched)
{
    char name[128];
    snprintf(name, sizeof name, FM_FOLDER_MORE_LINK "/%d.%u" FM_HEAP_SUFFIX FM_HEAP_MORE_SUFFIX,
             (int)watched->pid, watched->heap_number);
    fm_autofree char *path = fm_path_join(w->folder, name);
    return open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

/* The first file of the store is empty: there was no room for the header, which is in the second. */
static void take_second(const struct fm_memory_watch *w, struct memory_watched *watched)
{
    struct stat st;
    if (watched->heap < 0 || fstat(watched->heap, &st) != 0 || st.st_size)
        return;
    int fd = open_second(w, watched);
    if (fd < 0)
        return;
    close(watched->heap);
    watched->heap = fd;
}

/* What the process has allocated; −1 while its store is not ready. */
static int64_t read_heap(const struct fm_memory_watch *w, struct memory_watched *watched)
{
    struct fm_heap_header h;
    if (!read_header(watched->heap, &h)) {
        take_second(w, watched);
        return -1;
    }
    int64_t live = fm_sum(h.worlds[FM_HEAP_WORLD_PYTHON].live, h.worlds[FM_HEAP_WORLD_C].live);
    return live > 0 ? live : 0;
}

static void add_known(int64_t *sum, int64_t value)
{
    if (value >= 0)
        *sum = fm_sum(*sum < 0 ? 0 : *sum, value);
}

/* False: it has ended. */
static bool look_at(const struct fm_memory_watch *w, struct memory_watched *watched, bool shares,
                    struct fm_memory_point *sum)
{
    uint64_t now_ns = sum->at_ns;
    int64_t code = 0;
    int64_t rss = fm_resident_read(watched->resident, &code);
    if (rss < 0)
        return false;
    if (!watched->first_ns)
        watched->first_ns = now_ns;
    watched->last_ns = now_ns;
    if (code != watched->code) /* another program */
        ask_names(watched);
    watched->code = code;
    struct fm_memory_point point = { .at_ns = now_ns,
                                     .heap = read_heap(w, watched),
                                     .rss = rss,
                                     .pss = -1,
                                     .swap = -1,
                                     .limit = -1,
                                     .group = -1 };
    if (shares)
        fm_resident_shares(watched->pid, &point.pss, &point.swap);
    fm_curve_add(&watched->curve, &point);
    add_known(&sum->heap, point.heap);
    add_known(&sum->rss, point.rss);
    add_known(&sum->pss, point.pss);
    add_known(&sum->swap, point.swap);
    return true;
}

static void look_at_group(struct fm_memory_watch *w, struct fm_memory_point *sum)
{
    if (sum->at_ns >= w->limit_ns) {
        w->limit = fm_cgroup_limit(&w->group);
        w->limit_ns = sum->at_ns + LIMIT_NS;
    }
    int64_t own = w->options.limit;
    sum->limit = own > 0 && (w->limit < 0 || own < w->limit) ? own : w->limit;
    sum->group = fm_cgroup_usage(&w->group);
    if (w->limit <= 0 || sum->group < w->limit / 100 * NEAR_PERCENT || sum->group <= w->near)
        return;
    /* What is cached of files can be given up at once, and fills every group in time. */
    int64_t cache = fm_cgroup_cache(&w->group), needed = sum->group - (cache > 0 ? cache : 0);
    if (needed >= w->limit / 100 * NEAR_PERCENT && needed > w->near) {
        w->near = needed;
        w->near_limit = w->limit;
    }
}

/* What the memory of a process is made of: whenever that is clearly more than it ever was, and now and
 * then. A look takes milliseconds, so there is one at a time, and then none for a hundred times as long. */
static void look_into(struct fm_memory_watch *w, uint64_t now_ns)
{
    for (size_t i = 0; i < w->running.len && now_ns >= w->into_ns; i++) {
        struct memory_watched *watched =
            &w->list.data[w->running.data[(w->into_next + i) % w->running.len]];
        int64_t rss = watched->heap >= 0 ? fm_resident_read(watched->resident, NULL) : -1;
        bool higher = rss > watched->highest.account.rss / 50 * 51;
        if (rss <= 0 || (!higher && now_ns - watched->last.account.at_ns < INTO_NS))
            continue;
        if (watched->more < 0)
            watched->more = open_second(w, watched);
        uint64_t begin_ns = fm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
        int stores[] = { watched->heap, watched->more };
        /* The round may have begun before the process did. */
        if (fm_residence_read(&watched->last, watched->pid, stores, rss, fm_clock_ns()) &&
            rss > watched->highest.account.rss)
            fm_residence_copy(&watched->highest, &watched->last);
        uint64_t cost_ns = fm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
        w->into_ns = now_ns + cost_ns * COST_SHARE;
        w->into_next += i + 1;
        break;
    }
}

/* When to look again: what the last one cost, with waking up for it, is a hundredth of the time. */
static void plan(struct fm_memory_watch *w, uint64_t woke_ns, uint64_t begin_ns)
{
    uint64_t done_ns = fm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t wake_ns = w->cpu_ns && woke_ns > w->cpu_ns ? woke_ns - w->cpu_ns : 0;
    uint64_t cost_ns = done_ns - woke_ns + (wake_ns < WAKE_MOST_NS ? wake_ns : WAKE_MOST_NS);
    uint64_t least_ns = cost_ns * COST_SHARE;
    w->due_ns = begin_ns + (least_ns > FM_MEMORY_INTERVAL_NS ? least_ns : FM_MEMORY_INTERVAL_NS);
    w->cpu_ns = done_ns;
}

/* Rings are emptied at every look: a process whose ring is full stands still. */
static void drain(struct fm_memory_watch *w)
{
    for (size_t i = 0; i < w->running.len; i++) {
        const struct memory_watched *watched = &w->list.data[w->running.data[i]];
        fm_event_log_drain(watched->log, watched->heap, false);
    }
}

void fm_memory_watch_drain(struct fm_memory_watch *w)
{
    if (!w || !w->options.events || !w->folder)
        return;
    see_stores(w);
    drain(w);
    for (size_t i = 0; i < w->running.len;) {
        const struct memory_watched *watched = &w->list.data[w->running.data[i]];
        if (fm_resident_read(watched->resident, NULL) >= 0)
            i++;
        else
            bury(w, i);
    }
    fm_event_log_sweep(w->folder);
}

/* Slices of what is alive are rounds of their own as well, after all that a look costs. */
static void take_slices(struct fm_memory_watch *w, uint64_t now_ns)
{
    if (now_ns < w->slices_ns)
        return;
    for (size_t i = 0; i < w->running.len; i++) {
        struct memory_watched *watched = &w->list.data[w->running.data[i]];
        if (fm_slicer_is_due(watched->slicer, now_ns))
            fm_slicer_take(watched->slicer, watched->heap, fm_clock_ns());
    }
    uint64_t done_ns = fm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    w->slices_ns = now_ns + (done_ns - w->cpu_ns) * SLICES_SHARE;
    w->cpu_ns = done_ns;
}

void fm_memory_watch_look(struct fm_memory_watch *w)
{
    uint64_t woke_ns = fm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t now_ns = fm_clock_ns();
    if (w->options.children)
        fm_newborn_poll(&w->newborn, add_newborn, w);
    see_stores(w);
    bool shares = w->options.shares && now_ns >= w->shares_ns;
    struct fm_memory_point sum = { FM_NONE, now_ns, -1, -1, -1, -1, -1, -1 };
    for (size_t i = 0; i < w->running.len;) {
        if (look_at(w, &w->list.data[w->running.data[i]], shares, &sum))
            i++;
        else
            bury(w, i);
    }
    if (w->running.len) {
        look_at_group(w, &sum);
        fm_curve_add(&w->sum, &sum);
    }
    if (shares) { /* a round of its own */
        uint64_t done_ns = fm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
        uint64_t least_ns = (done_ns - woke_ns) * COST_SHARE;
        w->shares_ns = now_ns + (least_ns > SHARES_NS ? least_ns : SHARES_NS);
        woke_ns = done_ns;
    }
    plan(w, woke_ns, now_ns);
    take_slices(w, now_ns);
    if (w->folder) { /* with a budget of its own */
        look_into(w, now_ns);
        w->cpu_ns = fm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    }
    if (w->options.events) {
        drain(w);
        w->due_ns = now_ns + FM_MEMORY_INTERVAL_NS;
        w->cpu_ns = fm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    }
}

/* ---- from start to end ---- */

struct fm_memory_watch *fm_memory_watch_new(const struct fm_memory_watch_options *options,
                                            pid_t pid)
{
    struct fm_memory_watch *w = fm_calloc(1, sizeof *w);
    w->options = *options;
    w->inotify = -1;
    w->limit = -1;
    fm_newborn_init(&w->newborn);
    fm_cgroup_open(&w->group, pid);
    w->kills = fm_cgroup_kills(&w->group);
    w->machine_kills = fm_machine_kills();
    if (options->folder) {
        w->folder = fm_strdup(options->folder);
        w->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (w->inotify >= 0)
            inotify_add_watch(w->inotify, options->folder, IN_CREATE | IN_MOVED_TO);
    }
    add(w, pid, 0);
    if (options->children)
        fm_newborn_descendants(pid, add_newborn, w);
    if (w->folder)
        see_all_stores(w);
    return w;
}

void fm_memory_watch_free(struct fm_memory_watch *w)
{
    if (!w)
        return;
    while (w->running.len)
        forget(w, 0);
    for (size_t i = 0; i < w->list.len; i++) {
        fm_curve_release(&w->list.data[i].curve);
        fm_residence_release(&w->list.data[i].last);
        fm_residence_release(&w->list.data[i].highest);
        free(w->list.data[i].exe);
        free(w->list.data[i].command);
    }
    fm_vec_release(&w->list);
    fm_vec_release(&w->running);
    fm_map_release(&w->by_pid);
    fm_curve_release(&w->sum);
    fm_cgroup_close(&w->group);
    fm_newborn_release(&w->newborn);
    if (w->inotify >= 0)
        close(w->inotify);
    free(w->folder);
    free(w);
}

uint64_t fm_memory_watch_due_ns(const struct fm_memory_watch *w)
{
    return w ? w->due_ns : UINT64_MAX;
}

void fm_memory_watch_ask(struct fm_memory_watch *w, pid_t except)
{
    for (size_t i = 0; i < w->running.len; i++) {
        struct memory_watched *watched = &w->list.data[w->running.data[i]];
        if (!watched->asked && watched->pid != except)
            kill(watched->pid, SIGTERM);
        watched->asked = true;
    }
}

void fm_memory_watch_kill(const struct fm_memory_watch *w)
{
    for (size_t i = 0; i < w->running.len; i++)
        kill(w->list.data[w->running.data[i]].pid, SIGKILL);
}

bool fm_memory_watch_is_over(const struct fm_memory_watch *w)
{
    return w->running.len == 0;
}
