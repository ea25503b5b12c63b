/* New processes, noticed cheaply; see newborn.h. */
#include "watch/os/run/newborn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "watch/os/procfs.h"

#define IDS_AT_ONCE 2000 /* beyond, one listing costs less */
/* An id is given some µs before its task can be seen; longer if the parent is interrupted there. */
#define FIRST_STEP_NS    (200 * 1000LL)
#define LAST_STEP_NS     (200 * 1000000LL)
#define IDS_TO_DOUBT     64
#define TASKS_TO_ASK     64 /* for their children; beyond, one listing of /proc costs less */
#define LISTING_EVERY_NS (100 * 1000000LL)

static uint64_t now_ticks(void)
{
    long hertz = sysconf(_SC_CLK_TCK); /* 100 */
    return fm_clock_read_ns(CLOCK_BOOTTIME) / (1000000000u / (hertz > 0 ? hertz : 100));
}

/* "0.52 0.58 0.59 2/812 12345": the last word; 0 if it cannot be read. */
static pid_t newest_id(const struct fm_newborn *nb)
{
    char text[128];
    ssize_t len = nb->fd < 0 ? -1 : pread(nb->fd, text, sizeof text - 1, 0);
    if (len <= 0)
        return 0;
    text[len] = '\0';
    const char *last = strrchr(text, ' ');
    long id = last ? strtol(last + 1, NULL, 10) : 0;
    return id > 0 ? id : 0;
}

void fm_newborn_init(struct fm_newborn *nb)
{
    struct statfs fs;
    *nb = (struct fm_newborn){ .fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC) };
    if (nb->fd >= 0 && (fstatfs(nb->fd, &fs) || fs.f_type != PROC_SUPER_MAGIC)) {
        close(nb->fd);
        nb->fd = -1;
    }
    nb->looked_ticks = now_ticks();
    nb->listed_ns = (int64_t)fm_clock_ns();
    nb->last = newest_id(nb);
}

void fm_newborn_release(struct fm_newborn *nb)
{
    if (nb->fd >= 0)
        close(nb->fd);
    nb->fd = -1;
    fm_vec_release(&nb->pending);
}

enum kind { KIND_NONE, KIND_THREAD, KIND_PROCESS };

/* Signal 0 only looks. tgkill finds the id only as a process, kill as a thread too; two calls of a
 * few hundred ns, where /proc/ID/status takes twenty µs. */
static enum kind kind_of(pid_t id)
{
    if (syscall(SYS_tgkill, id, id, 0) == 0 || errno == EPERM)
        return KIND_PROCESS;
    return kill(id, 0) == 0 || errno == EPERM ? KIND_THREAD : KIND_NONE;
}

static bool describe(pid_t pid, struct fm_newborn_process *process)
{
    struct fm_process_kin kin;
    if (fm_process_kin(&kin, pid) || kin.state == 'Z' || kin.state == 'X')
        return false;
    *process = (struct fm_newborn_process){
        .pid = pid,
        .parent = kin.parent,
        .group = kin.group,
        .session = kin.session,
        .start_ticks = kin.start_ticks,
    };
    return true;
}

/* *seen: was there anything under this id? */
static int look_at(pid_t id, bool *seen, fm_newborn_fn report, void *data)
{
    struct fm_newborn_process process;
    enum kind kind = kind_of(id);
    *seen = kind != KIND_NONE;
    if (kind != KIND_PROCESS || !describe(id, &process))
        return 0;
    return report(&process, data);
}

static void add_pending(struct fm_newborn *nb, pid_t id, int64_t now)
{
    struct fm_newborn_pending p = { id, now + FIRST_STEP_NS, FIRST_STEP_NS };
    fm_vec_push(&nb->pending, p);
}

static bool any_due(const struct fm_newborn *nb, int64_t now)
{
    for (size_t i = 0; i < nb->pending.len; i++)
        if (nb->pending.data[i].next_ns <= now)
            return true;
    return false;
}

/* Each id is looked at in ever longer steps, then given up: its task has ended, or never came. */
static int poll_pending(struct fm_newborn *nb, int64_t now, fm_newborn_fn report, void *data)
{
    size_t kept = 0;
    int status = 0;
    for (size_t i = 0; i < nb->pending.len; i++) {
        struct fm_newborn_pending p = nb->pending.data[i];
        if (p.next_ns <= now && !status) {
            bool seen;
            status = look_at(p.id, &seen, report, data);
            if (seen || p.step_ns > LAST_STEP_NS)
                continue;
            p.step_ns *= 2;
            p.next_ns = now + p.step_ns;
        }
        nb->pending.data[kept++] = p;
    }
    nb->pending.len = kept;
    return status;
}

static int poll_ids(struct fm_newborn *nb, pid_t newest, int64_t now, fm_newborn_fn report,
                    void *data)
{
    int status = 0;
    for (pid_t id = nb->last + 1; id <= newest && !status; id++) {
        bool seen;
        status = look_at(id, &seen, report, data);
        if (!seen)
            add_pending(nb, id, now);
    }
    return status;
}

/* Everything that started since the last look; a tick of tolerance on either side. */
static int poll_listing(uint64_t since_ticks, fm_newborn_fn report, void *data)
{
    struct fm_pids pids;
    int status = 0;
    if (fm_procfs_pids(&pids))
        return 0;
    for (size_t i = 0; i < pids.list.len && !status; i++) {
        struct fm_newborn_process process;
        if (describe(pids.list.data[i], &process) && process.start_ticks + 1 >= since_ticks)
            status = report(&process, data);
    }
    fm_pids_release(&pids);
    return status;
}

int fm_newborn_poll(struct fm_newborn *nb, fm_newborn_fn report, void *data)
{
    pid_t newest = newest_id(nb);
    if (newest && newest == nb->last && !nb->pending.len)
        return 0;
    int64_t now = (int64_t)fm_clock_ns();
    if (newest && newest == nb->last && !any_due(nb, now))
        return 0;
    if (!newest && now - nb->listed_ns < LISTING_EVERY_NS)
        return 0;
    uint64_t since_ticks = nb->looked_ticks;
    nb->looked_ticks = now_ticks();
    int status = poll_pending(nb, now, report, data);
    if (status)
        return status;
    if (newest && newest >= nb->last && newest - nb->last <= IDS_AT_ONCE) {
        status = poll_ids(nb, newest, now, report, data);
    } else {
        status = poll_listing(since_ticks, report, data);
        nb->listed_ns = now;
        for (pid_t id = newest; id > 0 && id > newest - IDS_TO_DOUBT; id--)
            if (kind_of(id) == KIND_NONE) /* given, but not in the listing yet */
                add_pending(nb, id, now);
    }
    nb->last = newest;
    return status;
}

/* ---- descendants ---- */

struct relative {
    struct fm_newborn_process process;
    bool reported;
};

/* The place of a pid in a list that ascends, or NULL. */
static struct relative *relative_of(struct relative *list, size_t n, pid_t pid)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].process.pid == pid)
            return &list[middle];
        if (list[middle].process.pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Numbers wrap around, so a child may stand before its parent: pass after pass until none is new. */
static int report_descendants(struct relative *list, size_t n, pid_t ancestor, fm_newborn_fn report,
                              void *data)
{
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < n; i++) {
            struct relative *r = &list[i], *parent = relative_of(list, n, r->process.parent);
            if (r->reported || r->process.pid == ancestor ||
                !(r->process.parent == ancestor || (parent && parent->reported)))
                continue;
            r->reported = more = true;
            int status = report(&r->process, data);
            if (status)
                return status;
        }
    }
    return 0;
}

/* The kernel lists the children of each thread. Such a list may lack some while others end, but an empty one
 * is certain. */
static bool is_childless(pid_t pid)
{
    struct fm_pids tasks = { 0 };
    bool childless = fm_process_tasks(pid, &tasks) == 0 && tasks.list.len <= TASKS_TO_ASK;
    for (size_t i = 0; i < tasks.list.len && childless; i++) {
        char path[64], byte;
        snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)tasks.list.data[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        childless = fd >= 0 && read(fd, &byte, 1) == 0;
        if (fd >= 0)
            close(fd);
    }
    fm_pids_release(&tasks);
    return childless;
}

int fm_newborn_descendants(pid_t pid, fm_newborn_fn report, void *data)
{
    struct fm_pids pids;
    FM_VEC(struct relative) list = { 0 };
    if (is_childless(pid) || fm_procfs_pids(&pids))
        return 0;
    for (size_t i = 0; i < pids.list.len; i++) {
        struct relative r = { 0 };
        if (describe(pids.list.data[i], &r.process))
            fm_vec_push(&list, r);
    }
    int status = report_descendants(list.data, list.len, pid, report, data);
    fm_vec_release(&list);
    fm_pids_release(&pids);
    return status;
}
