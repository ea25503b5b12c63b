/* Facts about a process from /proc; see procfs.h. */
#include "watch/os/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"

#define SMALL_BYTES   (64u << 10)
#define COMMAND_BYTES (256u << 10)

int fm_procfs_read(const char *path, size_t limit, struct fm_buffer *into)
{
    fm_buffer_clear(into);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -errno;
    int status = 0;
    for (size_t step = 4096;;) {
        fm_buffer_reserve(into, step);
        into->data[into->len] = '\0'; /* also of an empty file */
        ssize_t got = read(fd, into->data + into->len, step);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            status = -errno;
        if (got <= 0)
            break;
        into->len += got;
        into->data[into->len] = '\0';
        if (into->len > limit) {
            status = -EFBIG;
            break;
        }
        if (step < 1u << 20)
            step *= 2;
    }
    close(fd);
    return status;
}

int fm_procfs_read_of(pid_t pid, const char *name, size_t limit, struct fm_buffer *into)
{
    char path[128];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    return fm_procfs_read(path, limit, into);
}

const char *fm_procfs_stat_field(const char *text, int number)
{
    const char *at = strrchr(text, ')'); /* the end of the second field */
    for (int field = 2; at && field < number; field++)
        at = strchr(at + 1, ' ');
    return at ? at + 1 : NULL;
}

const char *fm_procfs_field(const char *text, const char *key)
{
    size_t len = strlen(key);
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        if (*line == '\n')
            line++;
        if (strncmp(line, key, len) == 0) {
            line += len;
            return line + strspn(line, " \t");
        }
    }
    return NULL;
}

static long long number_of(const char *status, const char *key, int base, long long otherwise)
{
    const char *value = fm_procfs_field(status, key);
    return value ? (long long)strtoull(value, NULL, base) : otherwise;
}

/* "NSpid: 812 7": the number in every namespace from ours down; the last is the innermost. How many
 * there are. */
static int innermost(const char *text, pid_t *ret)
{
    int count = 0;
    while (text) {
        char *past;
        long value = strtol(text, &past, 10);
        if (past == text)
            break;
        *ret = (pid_t)value;
        count++;
        text = past + strspn(past, " \t");
    }
    return count;
}

static void read_namespaces(struct fm_proc *p, const char *status)
{
    p->inner_pid = p->tgid;
    p->in_namespace = innermost(fm_procfs_field(status, "NStgid:"), &p->inner_pid) > 1;
}

int fm_process_read(struct fm_proc *p, pid_t pid)
{
    *p = (struct fm_proc){ .pid = pid, .tgid = pid };
    fm_autobuffer text = FM_BUFFER_INIT;
    int failed = fm_procfs_read_of(pid, "status", SMALL_BYTES, &text);
    if (failed)
        return failed;
    const char *status = fm_buffer_text(&text), *value;
    p->tgid = number_of(status, "Tgid:", 10, pid);
    p->threads = number_of(status, "Threads:", 10, 0);
    p->cap_effective = number_of(status, "CapEff:", 16, 0);
    p->seccomp = number_of(status, "Seccomp:", 10, -1);
    if ((value = fm_procfs_field(status, "Uid:"))) {
        char *past;
        p->uid = strtoul(value, &past, 10);
        p->euid = strtoul(past, NULL, 10);
    }
    if ((value = fm_procfs_field(status, "Name:")))
        snprintf(p->name, sizeof p->name, "%.*s", (int)strcspn(value, "\n"), value);
    read_namespaces(p, status);

    struct fm_process_kin kin;
    failed = fm_process_kin(&kin, pid);
    if (failed)
        return failed;
    p->parent = kin.parent;
    p->group = kin.group;
    p->session = kin.session;
    p->state = kin.state;
    p->start_ticks = kin.start_ticks;
    /* Kernel threads are children of kthreadd (2) and have no memory of their own. */
    p->kernel_thread = number_of(status, "Kthread:", 10, -1) == 1 ||
                       (!fm_procfs_field(status, "VmSize:") && p->state != 'Z' && p->state != 'X' &&
                        (p->parent == 2 || pid == 2));
    return 0;
}

/* "812 (name with ) and blanks) S 1 812 812 …": the fields count from the last parenthesis. */
int fm_process_kin(struct fm_process_kin *kin, pid_t pid)
{
    char path[64], text[1024];
    *kin = (struct fm_process_kin){ 0 };
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t got = read(fd, text, sizeof text - 1);
    int failed = got < 0 ? -errno : 0;
    close(fd);
    if (failed)
        return failed;
    text[got] = '\0';
    const char *rest = strrchr(text, ')');
    int parent, group, session;
    unsigned long long start;
    if (!rest || sscanf(rest + 1,
                        " %c %d %d %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                        "%*s %llu",
                        &kin->state, &parent, &group, &session, &start) != 5)
        return -EIO;
    kin->parent = parent;
    kin->group = group;
    kin->session = session;
    kin->start_ticks = start;
    return 0;
}

int64_t fm_process_start_ns(uint64_t start_ticks)
{
    struct timespec now, up;
    long hertz = sysconf(_SC_CLK_TCK);
    if (hertz <= 0 || clock_gettime(CLOCK_REALTIME, &now) || clock_gettime(CLOCK_BOOTTIME, &up))
        return 0;
    int64_t boot_ns = (now.tv_sec - up.tv_sec) * 1000000000LL + (now.tv_nsec - up.tv_nsec);
    return boot_ns + (int64_t)(start_ticks / hertz) * 1000000000LL +
           (int64_t)(start_ticks % hertz) * (1000000000LL / hertz);
}

static char *link_of(pid_t pid, const char *name)
{
    char path[64], target[PATH_MAX + 1];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    ssize_t len = readlink(path, target, sizeof target - 1);
    if (len < 0)
        return NULL;
    target[len] = '\0';
    static const char mark[] = " (deleted)";
    if (len > (ssize_t)sizeof mark && strcmp(target + len - (sizeof mark - 1), mark) == 0)
        target[len - (sizeof mark - 1)] = '\0';
    return fm_strdup(target);
}

char *fm_process_exe(pid_t pid)
{
    return link_of(pid, "exe");
}

char *fm_process_cwd(pid_t pid)
{
    return link_of(pid, "cwd");
}

char *fm_process_command(pid_t pid)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    int failed = fm_procfs_read_of(pid, "cmdline", COMMAND_BYTES, &text);
    if (failed && failed != -EFBIG) /* a longer one is cut */
        return NULL;
    while (text.len && !text.data[text.len - 1])
        text.len--;
    if (!text.len) {
        if (fm_procfs_read_of(pid, "comm", SMALL_BYTES, &text) || !text.len)
            return NULL;
        fm_autobuffer name = FM_BUFFER_INIT;
        fm_buffer_addf(&name, "[%.*s]", (int)strcspn(text.data, "\n"), text.data);
        return fm_buffer_detach(&name);
    }
    for (size_t i = 0; i < text.len; i++)
        if (!text.data[i])
            text.data[i] = ' ';
    return fm_strndup(text.data, text.len);
}

static int compare_pids(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
    return x < y ? -1 : x > y;
}

/* The entries of a folder that are numbers. */
static int numbers_in(const char *path, struct fm_pids *pids)
{
    *pids = (struct fm_pids){ 0 };
    DIR *dir = opendir(path);
    if (!dir)
        return -errno;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char *past;
        long value = strtol(entry->d_name, &past, 10);
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && !*past && value <= INT_MAX)
            fm_vec_push(&pids->list, (pid_t)value);
    }
    closedir(dir);
    if (pids->list.len)
        qsort(pids->list.data, pids->list.len, sizeof(pid_t), compare_pids);
    return 0;
}

int fm_process_tasks(pid_t pid, struct fm_pids *tasks)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    return numbers_in(path, tasks);
}

int fm_process_tids(pid_t pid, struct fm_tids *tids)
{
    struct fm_pids tasks;
    struct fm_proc process;
    fm_autobuffer text = FM_BUFFER_INIT;
    *tids = (struct fm_tids){ .process = pid };
    int status = fm_process_tasks(pid, &tasks);
    bool inside = status == 0 && fm_process_read(&process, pid) == 0 && process.in_namespace;
    for (size_t i = 0; i < tasks.list.len; i++) {
        struct fm_tid tid = { tasks.list.data[i], tasks.list.data[i] };
        char file[64];
        snprintf(file, sizeof file, "task/%d/status", (int)tid.outer);
        if (inside &&
            (fm_procfs_read_of(pid, file, SMALL_BYTES, &text) < 0 ||
             innermost(fm_procfs_field(fm_buffer_text(&text), "NSpid:"), &tid.inner) == 0))
            continue;
        fm_vec_push(&tids->list, tid);
    }
    fm_pids_release(&tasks);
    return status;
}

void fm_tids_release(struct fm_tids *tids)
{
    fm_vec_release(&tids->list);
}

int fm_procfs_pids(struct fm_pids *pids)
{
    return numbers_in("/proc", pids);
}

void fm_pids_release(struct fm_pids *pids)
{
    fm_vec_release(&pids->list);
}
