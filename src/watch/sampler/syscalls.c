/*
 * What a blocked thread waits for; see syscalls.h.
 *
 * Model. Every system call belongs to a class, by one table (syscall_classes.h). The class says
 * which argument matters (a futex, a descriptor, a list of descriptors, a path, a process) and the
 * state follows from what that is. Calls that are in no class, and numbers of newer kernels, wait
 * "for something else".
 *
 * What the arguments point to is read from the memory of the program, where it stays while the
 * thread is blocked; but the thread may wake up meanwhile. Whatever is read is bounded and at worst
 * gives a wrong word.
 *
 * Threads: none of its own; `fds` is used by one thread at a time.
 */
#include "watch/sampler/syscalls.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/map.h"
#include "watch/sampler/syscall_classes.h"

#ifndef P_PIDFD
#define P_PIDFD 3 /* newer than some headers */
#endif

static enum call_class class_of(const struct fm_syscall *call)
{
    if ((unsigned long)call->number >= sizeof classes)
        return CLASS_OTHER;
    enum call_class class = classes[call->number];
    if (class != CLASS_FCNTL)
        return class;
    int command = (int)call->args[1];
    return command == F_SETLKW || command == F_OFD_SETLKW ? CLASS_LOCK : CLASS_FD;
}

/* ---- the line */

/* " 0x" and up to 16 digits; NULL if something else is there. */
static const char *parse_hex(const char *p, const char *end, uint64_t *ret)
{
    if (end - p < 4 || p[0] != ' ' || p[1] != '0' || p[2] != 'x')
        return NULL;
    const char *first = p += 3;
    uint64_t value = 0;
    for (; p < end; p++) {
        unsigned char c = (unsigned char)*p;
        if (c >= '0' && c <= '9')
            value = value << 4 | (unsigned)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (unsigned)(c - 'a' + 10);
        else
            break;
    }
    *ret = value;
    return p == first || p - first > 16 ? NULL : p;
}

/* Up to 9 digits. */
static const char *parse_number(const char *p, const char *end, long *ret)
{
    const char *first = p;
    long value = 0;
    for (; p < end && *p >= '0' && *p <= '9' && p - first < 10; p++)
        value = value * 10 + (*p - '0');
    *ret = value;
    return p == first || p - first > 9 ? NULL : p;
}

bool fm_syscall_parse(struct fm_syscall *call, const char *line, size_t len)
{
    const char *p = line, *end = line + len;
    if (len && end[-1] == '\n')
        end--;
    *call = (struct fm_syscall){ .number = -1 };
    if (end - p == 7 && memcmp(p, "running", 7) == 0) {
        call->running = true;
        return true;
    }
    bool outside = p < end && *p == '-';
    p = parse_number(p + outside, end, &call->number);
    if (outside)
        call->number = -1;
    /* Outside of a system call there are no arguments. */
    for (int i = 0; p && !outside && i < 6; i++)
        p = parse_hex(p, end, &call->args[i]);
    p = p ? parse_hex(p, end, &call->stack_pointer) : NULL;
    p = p ? parse_hex(p, end, &call->program_counter) : NULL;
    return p == end;
}

/* ---- what the arguments point to */

enum { LIST_MAX = 64 };

/* The descriptors a poll or select waits on: their number, and the first of them. */
struct list {
    uint32_t total;
    int fds[LIST_MAX];
};

static void list_add(struct list *list, int fd)
{
    if (list->total < LIST_MAX)
        list->fds[list->total] = fd;
    list->total++;
}

static uint32_t list_known(const struct list *list)
{
    return list->total < LIST_MAX ? list->total : LIST_MAX;
}

static void list_of_poll(struct list *list, const struct fm_syscall *call,
                         const struct fm_remote *remote)
{
    struct pollfd polled[LIST_MAX];
    uint64_t count = call->args[1];
    uint32_t n = count < LIST_MAX ? (uint32_t)count : LIST_MAX;
    if (!n || fm_remote_read(remote, call->args[0], polled, n * sizeof *polled) != 0) {
        list->total = n; /* unknown ones */
        memset(list->fds, -1, sizeof list->fds);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        if (polled[i].fd >= 0) /* others are left out by the kernel too */
            list_add(list, polled[i].fd);
    if (count > LIST_MAX)
        list->total = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

static void list_of_select(struct list *list, const struct fm_syscall *call,
                           const struct fm_remote *remote)
{
    uint64_t sets[3][FD_SETSIZE / 64] = { 0 };
    uint64_t limit = call->args[0] < FD_SETSIZE ? call->args[0] : FD_SETSIZE;
    size_t bytes = (limit + 63) / 64 * 8;
    for (int i = 0; bytes && i < 3; i++)
        if (call->args[1 + i] && fm_remote_read(remote, call->args[1 + i], sets[i], bytes) != 0)
            memset(sets[i], 0, sizeof sets[i]);
    for (uint32_t word = 0; word < bytes / 8; word++) {
        uint64_t bits = sets[0][word] | sets[1][word] | sets[2][word];
        for (; bits; bits &= bits - 1) {
            uint32_t fd = word * 64 + (uint32_t)__builtin_ctzll(bits);
            if (fd < limit)
                list_add(list, (int)fd);
        }
    }
}

static void list_of(struct list *list, const struct fm_syscall *call,
                    const struct fm_remote *remote, enum call_class class)
{
    list->total = 0;
    if (class == CLASS_POLL)
        list_of_poll(list, call, remote);
    else
        list_of_select(list, call, remote);
}

/* The address of the futex; of several the first. */
static fm_addr futex_of(const struct fm_syscall *call, const struct fm_remote *remote,
                        enum call_class class)
{
    /* struct futex_waitv: the value that is expected, then the address */
    return class == CLASS_FUTEX ? call->args[0] : fm_remote_pointer(remote, call->args[0] + 8);
}

/* The text at an address, at most size − 1 bytes of it; its length. */
static size_t text_of(const struct fm_remote *remote, fm_addr at, char *text, size_t size)
{
    size_t len = 0;
    while (at && len < size - 1) {
        /* Not over the end of a page: the next one may not be there. */
        size_t step = 256 - (at + len) % 256;
        if (step > size - 1 - len)
            step = size - 1 - len;
        if (fm_remote_read(remote, at + len, text + len, step) != 0)
            break;
        const char *nul = memchr(text + len, '\0', step);
        if (nul)
            return (size_t)(nul - text);
        len += step;
    }
    text[len] = '\0';
    return len;
}

static fm_addr path_of(const struct fm_syscall *call, enum call_class class)
{
    return call->args[class == CLASS_PATH ? 0 : 1];
}

/* The process a wait is for; 0: any child. */
static long process_of(const struct fm_syscall *call, enum call_class class)
{
    if (class == CLASS_WAITID)
        return call->args[0] == P_PID ? (int)call->args[1] : 0;
    return (int)call->args[0] > 0 ? (int)call->args[0] : 0;
}

static bool waits_for_pidfd(const struct fm_syscall *call, enum call_class class)
{
    return class == CLASS_WAITID && call->args[0] == P_PIDFD;
}

/* ---- the state */

static enum fm_state state_of_epoll(struct fm_fd_kinds *fds, int fd, bool timeout)
{
    uint32_t count;
    switch (fm_fd_epoll(fds, fd, &count)) {
    case FM_FD_EPOLL_NOTHING:
        return FM_STATE_SLEEP;
    case FM_FD_EPOLL_WAKEUP: /* until a time, or until another thread has something to say */
        return timeout ? FM_STATE_SLEEP : FM_STATE_OTHER;
    case FM_FD_EPOLL_SOCKETS:
        return FM_STATE_NETWORK;
    default:
        return FM_STATE_OTHER;
    }
}

static enum fm_state state_of_fd(struct fm_fd_kinds *fds, int fd)
{
    switch (fm_fd_kind(fds, fd)) {
    case FM_FD_FILE:
    case FM_FD_FOLDER:
    case FM_FD_DISK:
    case FM_FD_RING:
        return FM_STATE_DISK;
    case FM_FD_SOCKET:
        return FM_STATE_NETWORK;
    case FM_FD_TIMER:
        return FM_STATE_SLEEP;
    case FM_FD_EPOLL:
        return state_of_epoll(fds, fd, true);
    default:
        return FM_STATE_OTHER;
    }
}

/* A socket among them decides; else one alone does. */
static enum fm_state state_of_list(struct fm_fd_kinds *fds, const struct list *list)
{
    if (list->total == 0)
        return FM_STATE_SLEEP;
    if (list->total == 1)
        return state_of_fd(fds, list->fds[0]);
    for (uint32_t i = 0; i < list_known(list); i++)
        if (state_of_fd(fds, list->fds[i]) == FM_STATE_NETWORK)
            return FM_STATE_NETWORK;
    return FM_STATE_OTHER;
}

enum fm_state fm_syscall_state(const struct fm_syscall *call, const struct fm_remote *remote,
                               fm_addr gil, uint32_t gil_bytes, struct fm_fd_kinds *fds)
{
    struct list list;
    enum call_class class = class_of(call);
    if (call->number < 0) /* the kernel gives no addresses of a thread that has ended */
        return !call->program_counter || fm_fd_kinds_stopped(fds) ? FM_STATE_OTHER : FM_STATE_DISK;
    switch (class) {
    case CLASS_FUTEX:
    case CLASS_FUTEXES:
        return futex_of(call, remote, class) - gil < gil_bytes ? FM_STATE_GIL : FM_STATE_LOCK;
    case CLASS_LOCK:
    case CLASS_SEMOP:
        return FM_STATE_LOCK;
    case CLASS_FD:
        return state_of_fd(fds, (int)call->args[0]);
    case CLASS_NETWORK:
        return FM_STATE_NETWORK;
    case CLASS_PATH:
    case CLASS_PATH_AT:
    case CLASS_DISK:
        return FM_STATE_DISK;
    case CLASS_POLL:
    case CLASS_SELECT:
        list_of(&list, call, remote, class);
        return state_of_list(fds, &list);
    case CLASS_EPOLL:
        return state_of_epoll(fds, (int)call->args[0], (int)call->args[3] >= 0);
    case CLASS_EPOLL2:
        return state_of_epoll(fds, (int)call->args[0], call->args[3] != 0);
    case CLASS_SLEEP:
        return FM_STATE_SLEEP;
    default:
        return FM_STATE_OTHER;
    }
}

bool fm_syscall_maps(const struct fm_syscall *call)
{
    return !call->running && call->number >= 0 && class_of(call) == CLASS_MAP;
}

/* ---- in words */

static void describe_path(const struct fm_syscall *call, const struct fm_remote *remote,
                          enum call_class class, struct fm_fd_kinds *fds, struct fm_buffer *out)
{
    char path[PATH_MAX], folder[64], where[PATH_MAX];
    size_t len = text_of(remote, path_of(call, class), path, sizeof path);
    int at = class == CLASS_PATH ? AT_FDCWD : (int)call->args[0];
    if (len && path[0] != '/') {
        size_t before = out->len;
        if (at == AT_FDCWD) {
            snprintf(folder, sizeof folder, "/proc/%d/cwd", (int)remote->pid);
            ssize_t got = remote->pid ? readlink(folder, where, sizeof where) : -1;
            fm_buffer_add(out, where, got > 0 ? (size_t)got : 0);
        } else
            fm_fd_describe(fds, at, out);
        if (out->len > before && out->data[out->len - 1] != '/')
            fm_buffer_add_char(out, '/');
    } else if (!len && at != AT_FDCWD)
        fm_fd_describe(fds, at, out); /* AT_EMPTY_PATH */
    fm_buffer_add(out, path, len);
}

static bool describe_list(const struct list *list, struct fm_fd_kinds *fds, struct fm_buffer *out)
{
    enum { SHOWN = 3 };
    bool whole = true;
    if (list->total > 1)
        fm_buffer_addf(out, "%u descriptors: ", list->total);
    for (uint32_t i = 0; i < list_known(list) && i < SHOWN; i++) {
        if (i)
            fm_buffer_add_text(out, ", ");
        size_t before = out->len;
        whole = fm_fd_describe(fds, list->fds[i], out) && whole;
        if (out->len == before && list->fds[i] >= 0)
            fm_buffer_addf(out, "%d", list->fds[i]);
    }
    if (list->total > SHOWN)
        fm_buffer_add_text(out, ", …");
    return whole;
}

bool fm_syscall_describe(const struct fm_syscall *call, const struct fm_remote *remote,
                         struct fm_fd_kinds *fds, struct fm_buffer *out)
{
    struct list list;
    enum call_class class = class_of(call);
    switch (class) {
    case CLASS_FUTEX:
    case CLASS_FUTEXES:
        fm_buffer_addf(out, "futex 0x%llx", (unsigned long long)futex_of(call, remote, class));
        break;
    case CLASS_LOCK:
    case CLASS_FD:
    case CLASS_NETWORK:
    case CLASS_EPOLL:
    case CLASS_EPOLL2:
        return fm_fd_describe(fds, (int)call->args[0], out);
    case CLASS_PATH:
    case CLASS_PATH_AT:
        describe_path(call, remote, class, fds, out);
        break;
    case CLASS_POLL:
    case CLASS_SELECT:
        list_of(&list, call, remote, class);
        return describe_list(&list, fds, out);
    case CLASS_CHILD:
    case CLASS_WAITID:
        if (waits_for_pidfd(call, class))
            fm_fd_describe(fds, (int)call->args[1], out);
        else if (process_of(call, class))
            fm_buffer_addf(out, "process %ld", process_of(call, class));
        else
            fm_buffer_add_text(out, "any child process");
        break;
    default:
        break;
    }
    return true;
}

/* ---- telling waits apart */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return fm_mix64(hash ^ (value + 0x9e3779b97f4a7c15u));
}

static uint64_t hash_of_path(const struct fm_syscall *call, const struct fm_remote *remote,
                             enum call_class class)
{
    char path[512]; /* paths that begin alike for so long may be taken for one */
    uint64_t hash = class == CLASS_PATH_AT ? (uint32_t)call->args[0] : 0;
    size_t len = text_of(remote, path_of(call, class), path, sizeof path);
    for (size_t i = 0; i < len; i++)
        hash = hash * 31 + (unsigned char)path[i];
    return hash;
}

uint64_t fm_syscall_identity(const struct fm_syscall *call, const struct fm_remote *remote,
                             struct fm_fd_kinds *fds)
{
    struct list list;
    enum call_class class = class_of(call);
    uint64_t hash = mix(0, (uint64_t)call->number);
    switch (class) {
    case CLASS_FUTEX:
    case CLASS_FUTEXES:
        return mix(hash, futex_of(call, remote, class));
    case CLASS_LOCK:
    case CLASS_FD:
    case CLASS_NETWORK:
    case CLASS_EPOLL:
    case CLASS_EPOLL2:
        hash = mix(hash, (uint32_t)call->args[0]);
        return mix(hash, fm_fd_identity(fds, (int)call->args[0]));
    case CLASS_PATH:
    case CLASS_PATH_AT:
        return mix(hash, hash_of_path(call, remote, class));
    case CLASS_POLL:
    case CLASS_SELECT:
        list_of(&list, call, remote, class);
        hash = mix(hash, list.total);
        for (uint32_t i = 0; i < list_known(&list); i++) {
            hash = mix(hash, (uint32_t)list.fds[i]);
            hash = mix(hash, fm_fd_identity(fds, list.fds[i]));
        }
        return hash;
    case CLASS_CHILD:
    case CLASS_WAITID:
        return mix(mix(hash, (uint32_t)call->args[0]),
                   class == CLASS_WAITID ? (uint32_t)call->args[1] : 0);
    default:
        return hash; /* nothing to tell apart */
    }
}
