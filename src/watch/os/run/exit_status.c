/* How a process ended; see exit_status.h. */
#include "watch/os/run/exit_status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "watch/os/procfs.h"

#define STAT_MAX_BYTES  4096
#define STATE_FIELD     3
#define EXIT_CODE_FIELD 52 /* of /proc/PID/stat, counted from 1; the state is the third */

/* Linux's struct pidfd_info in its first size; older headers do not have it. */
struct pidfd_info_64 {
    uint64_t mask, cgroup_id;
    uint32_t pid, tgid, ppid, ids[8];
    int32_t exit_code;
};
_Static_assert(sizeof(struct pidfd_info_64) == 64, "the size is part of the request number");
#define GET_PIDFD_INFO       _IOWR(0xFF, 11, struct pidfd_info_64)
#define PIDFD_INFO_WITH_EXIT 8u

int32_t fm_exit_status_of_wait(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

void fm_exit_watch_open(struct fm_exit_watch *w, pid_t pid)
{
    w->fd = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */
}

void fm_exit_watch_close(struct fm_exit_watch *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}

/* Would the kernel show us that field? To others it says 0. */
static bool may_know(pid_t pid)
{
    char path[32], target[1];
    snprintf(path, sizeof path, "/proc/%d/cwd", (int)pid);
    return readlink(path, target, sizeof target) >= 0 || (errno != EACCES && errno != EPERM);
}

/* Of one that its parent has not collected yet: state Z, and its wait status in the last field. */
static bool read_zombie(pid_t pid, int *ret_wait_status)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    if (fm_procfs_read_of(pid, "stat", STAT_MAX_BYTES, &text) < 0)
        return false;
    const char *state = fm_procfs_stat_field(fm_buffer_text(&text), STATE_FIELD);
    const char *code = fm_procfs_stat_field(fm_buffer_text(&text), EXIT_CODE_FIELD);
    if (!state || *state != 'Z' || !code)
        return false;
    *ret_wait_status = (int)strtol(code, NULL, 10);
    return *ret_wait_status != 0 || may_know(pid);
}

bool fm_exit_watch_status(const struct fm_exit_watch *w, pid_t pid, int32_t *ret)
{
    struct pidfd_info_64 info = { .mask = PIDFD_INFO_WITH_EXIT };
    int wait_status;
    if (w->fd < 0)
        return false;
    if (ioctl(w->fd, GET_PIDFD_INFO, &info) == 0 && (info.mask & PIDFD_INFO_WITH_EXIT)) {
        *ret = fm_exit_status_of_wait(info.exit_code);
        return true;
    }
    /* The number is still this process's if it could be signalled after it was read. */
    if (!read_zombie(pid, &wait_status) || syscall(SYS_pidfd_send_signal, w->fd, 0, NULL, 0) != 0)
        return false;
    *ret = fm_exit_status_of_wait(wait_status);
    return true;
}
