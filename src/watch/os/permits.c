/* What this system lets us do; see permits.h. */
#include "watch/os/permits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "watch/os/procfs.h"
#include "watch/os/remote/remote.h"
#include "watch/os/still/halt.h"
#include "watch/os/still/seat.h"

#define SMALL_BYTES  (64u << 10)
#define MOUNTS_BYTES (4u << 20)

static int number_in(const char *path)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    char *past;
    if (fm_procfs_read(path, SMALL_BYTES, &text) || !text.len)
        return FM_PERMITS_UNKNOWN;
    long value = strtol(text.data, &past, 10);
    return past == text.data ? FM_PERMITS_UNKNOWN : (int)value;
}

/* The options of the last proc mounted at /proc: "proc /proc proc rw,nosuid,hidepid=2 0 0". */
static int read_hidepid(void)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    int hidepid = 0;
    if (fm_procfs_read("/proc/self/mounts", MOUNTS_BYTES, &text) || !text.len)
        return FM_PERMITS_UNKNOWN;
    for (char *rest = text.data, *line; (line = strsep(&rest, "\n"));) {
        const char *at = strstr(line, " /proc proc ");
        const char *option = at ? strstr(at, "hidepid=") : NULL;
        if (!at)
            continue;
        hidepid = 0;
        if (!option)
            continue;
        option += strlen("hidepid=");
        if (strncmp(option, "invisible", 9) == 0)
            hidepid = 2;
        else if (strncmp(option, "noaccess", 8) == 0)
            hidepid = 1;
        else if (strncmp(option, "ptraceable", 10) == 0)
            hidepid = 4;
        else
            hidepid = (int)strtol(option, NULL, 10);
    }
    return hidepid;
}

static void detect_container(struct fm_permits *p)
{
    const char *named = getenv("container"); /* systemd-nspawn, podman, lxc say so */
    fm_autobuffer groups = FM_BUFFER_INIT;
    fm_procfs_read("/proc/1/cgroup", SMALL_BYTES, &groups);
    const char *text = fm_buffer_text(&groups);
    const char *kind = "";
    if (getenv("KUBERNETES_SERVICE_HOST") || strstr(text, "kubepods"))
        kind = "kubernetes";
    else if (access("/.dockerenv", F_OK) == 0 || strstr(text, "docker"))
        kind = "docker";
    else if (access("/run/.containerenv", F_OK) == 0 || strstr(text, "libpod"))
        kind = "podman";
    else if (strstr(text, "/lxc"))
        kind = "lxc";
    else if (named && *named)
        kind = "container";
    snprintf(p->container, sizeof p->container, "%s", kind);
}

/* "0 0 4294967295": every user of the machine is in the namespace. */
static bool in_user_namespace(void)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    unsigned long inside, outside, count;
    if (fm_procfs_read("/proc/self/uid_map", SMALL_BYTES, &text) ||
        sscanf(fm_buffer_text(&text), "%lu %lu %lu", &inside, &outside, &count) != 3)
        return false;
    return inside != 0 || outside != 0 || count != 4294967295UL;
}

void fm_permits_read(struct fm_permits *p)
{
    struct fm_proc self;
    *p = (struct fm_permits){ .seccomp = -1 };
    p->proc = fm_process_read(&self, getpid()) == 0;
    p->hidepid = read_hidepid();
    p->yama_scope = number_in("/proc/sys/kernel/yama/ptrace_scope");
    p->perf_paranoid = number_in("/proc/sys/kernel/perf_event_paranoid");
    p->root = geteuid() == 0;
    if (p->proc) {
        p->capabilities = self.cap_effective;
        p->seccomp = self.seccomp;
        p->inner_pids = self.in_namespace;
    }
    p->ptrace_capable = p->capabilities >> CAP_SYS_PTRACE & 1;
    p->user_namespace = in_user_namespace();
    detect_container(p);
}

int fm_permits_read_self(void)
{
    volatile char from = 'x';
    char into = 0;
    struct iovec here = { &into, 1 }, there = { (void *)&from, 1 };
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1 ? 0 : errno ? errno : EIO;
}

static int try_file(pid_t pid, const char *name)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    return -fm_procfs_read_of(pid, name, SMALL_BYTES, &text);
}

static int try_perf(pid_t pid)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_SW_TASK_CLOCK,
        .disabled = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    int fd = syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

/* In a thread of its own, as it stays where it sits. */
static void *try_seat(void *data)
{
    struct fm_permits *p = data;
    struct fm_seat seat;
    fm_seat_init(&seat, true);
    p->seat = fm_seat_take(&seat, sched_getcpu()) ? 0 : seat.refused ? seat.refused : EINVAL;
    p->prompt = seat.prompt;
    return NULL;
}

static void try_seat_apart(struct fm_permits *p)
{
    pthread_t thread;
    p->seat = pthread_create(&thread, NULL, try_seat, p);
    if (!p->seat)
        pthread_join(thread, NULL);
}

static int try_stop(pid_t pid)
{
    struct fm_halt halt;
    int status = fm_halt_stop(&halt, pid);
    if (status == 0)
        fm_halt_end(&halt);
    return -status;
}

void fm_permits_try(struct fm_permits *p)
{
    static char byte = 'x'; /* at the same address in the child */
    fm_permits_read(p);
    p->read_self = fm_permits_read_self();
    try_seat_apart(p);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    if (child < 0) {
        p->read_child = p->read_syscall = p->read_schedstat = p->open_perf = p->stop = errno;
        return;
    }
    char into = 0;
    struct fm_remote remote;
    fm_remote_live(&remote, child);
    p->read_child = -fm_remote_read(&remote, (uintptr_t)&byte, &into, 1);
    p->read_syscall = try_file(child, "syscall");
    p->read_schedstat = try_file(child, "schedstat");
    p->open_perf = try_perf(child);
    p->stop = try_stop(child);
    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* The files of a process that may not be looked at belong to root, whoever the process is. */
bool fm_permits_hidden(pid_t pid, uid_t euid)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    return stat(path, &st) == 0 && st.st_uid != euid;
}

const char *fm_permits_user(uid_t uid)
{
    static char name[64];
    const struct passwd *entry = getpwuid(uid);
    if (entry)
        snprintf(name, sizeof name, "%s", entry->pw_name);
    else
        snprintf(name, sizeof name, "%u", (unsigned)uid);
    return name;
}
