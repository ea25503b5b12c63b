/*
 * The descriptors of a watched process; see descriptors.h.
 *
 * Owns: a table of descriptors indexed by the low bits of their number, and one of sockets indexed
 * by the low bits of their inode. Both forget on collision. The addresses of a socket are found by
 * its inode in the tables of its network namespace, /proc/PID/net/{tcp,unix,…}. Reading the one of
 * TCP takes milliseconds on a host with much memory even if it is empty (the kernel walks all its
 * buckets), so the time spent on them is limited to a share of all time, and one reading serves all
 * sockets.
 *
 * Does not: follow paths. A path may lead to a file server that has died, and looking at it would
 * hang; the link in /proc/PID/fd names the open file itself.
 */
#include "watch/sampler/descriptors.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"

#define MS UINT64_C(1000000)

enum {
    SLOTS = 256,        /* descriptors remembered; a power of two */
    SOCKETS = 512,      /* sockets remembered; a power of two */
    LINES_MAX = 200000, /* of a file in /proc: whatever is longer is cut */
};

static const uint64_t LINK_FRESH_NS = 10 * MS;
static const uint64_t EPOLL_FRESH_NS = 100 * MS;
static const uint64_t SOCKET_FRESH_NS = 1000 * MS;
/* Listing an epoll again must wait this many times as long as it took. */
static const uint64_t EPOLL_PATIENCE = 200;
/* The tables of sockets may take one part in so many of the time, and so much at once. */
static const uint64_t SCAN_SHARE = 100, SCAN_CREDIT_NS = 50 * MS;

struct slot {
    int fd; /* −1: empty */
    enum fm_fd_kind kind;
    uint64_t link_hash, checked_ns;
    /* of an epoll: */
    enum fm_fd_epoll waits;
    uint32_t count;
    uint64_t listed_ns, next_list_ns; /* 0: never */
};

struct sock {
    uint64_t inode; /* 0: empty */
    uint64_t found_ns;
    bool unnamed; /* a unix socket without a path */
    char text[127];
};

struct fm_fd_kinds {
    pid_t pid;
    bool stopped;
    uint64_t stopped_ns; /* when `stopped` was learnt; 0: never */
    /* Time that reading tables of sockets may still take, as of an instant; may be overdrawn. */
    int64_t scan_credit_ns;
    uint64_t scan_credit_at_ns;
    struct sock *sockets; /* SOCKETS of them; NULL until one is asked for */
    struct slot slots[SLOTS];
};

struct fm_fd_kinds *fm_fd_kinds_new(pid_t pid)
{
    struct fm_fd_kinds *kinds = fm_calloc(1, sizeof *kinds);
    kinds->pid = pid;
    kinds->scan_credit_ns = (int64_t)SCAN_CREDIT_NS;
    kinds->scan_credit_at_ns = fm_clock_ns();
    for (int i = 0; i < SLOTS; i++)
        kinds->slots[i].fd = -1;
    return kinds;
}

void fm_fd_kinds_free(struct fm_fd_kinds *kinds)
{
    if (kinds)
        free(kinds->sockets);
    free(kinds);
}

/* ---- files of /proc, line by line */

struct lines {
    int fd;
    uint32_t count;
    size_t at, len;
    char data[4096];
};

static bool lines_open(struct lines *l, pid_t pid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    l->fd = open(path, O_RDONLY | O_CLOEXEC);
    l->at = l->len = l->count = 0;
    return l->fd >= 0;
}

/* The next line without its end, NULL at the end of the file. Of a line that does not fit the
 * beginning is lost: no line of interest is that long. */
static char *lines_next(struct lines *l)
{
    for (;;) {
        char *line = l->data + l->at, *end = memchr(line, '\n', l->len - l->at);
        if (end) {
            *end = '\0';
            l->at = (size_t)(end - l->data) + 1;
            return ++l->count < LINES_MAX ? line : NULL;
        }
        memmove(l->data, line, l->len -= l->at);
        l->at = 0;
        if (l->len == sizeof l->data - 1)
            l->len = 0;
        ssize_t got = read(l->fd, l->data + l->len, sizeof l->data - 1 - l->len);
        if (got <= 0)
            return NULL;
        l->len += (size_t)got;
    }
}

static void lines_close(struct lines *l)
{
    close(l->fd);
}

/* ---- what a descriptor is */

static enum fm_fd_kind kind_of_path(pid_t pid, int fd)
{
    char path[64];
    struct statx st;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
    /* Without asking a file server: its last answer will do. */
    if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &st) != 0)
        return FM_FD_FILE;
    switch (st.stx_mode & S_IFMT) {
    case S_IFREG:
        return FM_FD_FILE;
    case S_IFDIR:
        return FM_FD_FOLDER;
    case S_IFBLK:
        return FM_FD_DISK;
    case S_IFIFO:
        return FM_FD_PIPE;
    case S_IFSOCK:
        return FM_FD_SOCKET;
    case S_IFCHR:
        /* Documentation/admin-guide/devices.txt: consoles and terminals, /dev/tty, pts slaves */
        return st.stx_rdev_major == 4 || st.stx_rdev_major == 5 ||
                       (st.stx_rdev_major >= 136 && st.stx_rdev_major <= 143)
                   ? FM_FD_TTY
                   : FM_FD_DEVICE;
    default:
        return FM_FD_OTHER;
    }
}

static enum fm_fd_kind kind_of_link(pid_t pid, int fd, const char *link)
{
    static const struct {
        const char *prefix;
        enum fm_fd_kind kind;
    } prefixes[] = {
        { "socket:[", FM_FD_SOCKET },
        { "pipe:[", FM_FD_PIPE },
        { "anon_inode:[eventpoll]", FM_FD_EPOLL },
        { "anon_inode:[eventfd", FM_FD_EVENT },
        { "anon_inode:[timerfd]", FM_FD_TIMER },
        { "anon_inode:[signalfd]", FM_FD_SIGNAL },
        { "anon_inode:inotify", FM_FD_NOTIFY },
        { "anon_inode:[fanotify]", FM_FD_NOTIFY },
        { "anon_inode:[pidfd]", FM_FD_PROCESS },
        { "pidfd:[", FM_FD_PROCESS }, /* since Linux 6.9 */
        { "anon_inode:[io_uring]", FM_FD_RING },
    };
    if (link[0] == '/')
        return kind_of_path(pid, fd);
    for (size_t i = 0; i < FM_COUNT(prefixes); i++)
        if (strncmp(link, prefixes[i].prefix, strlen(prefixes[i].prefix)) == 0)
            return prefixes[i].kind;
    return FM_FD_OTHER;
}

/* The link of a descriptor; its length, or −1 if it is not open. */
static ssize_t link_read(pid_t pid, int fd, char *link, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
    ssize_t len = readlink(path, link, size - 1);
    if (len >= 0)
        link[len] = '\0';
    return len;
}

static uint64_t link_hash(const char *link, size_t len)
{
    uint64_t hash = len;
    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = 0;
        memcpy(&word, link + i, len - i < 8 ? len - i : 8);
        hash = fm_mix64(hash ^ word);
    }
    return hash | 1; /* 0 is for what is not open */
}

static struct slot *slot_of(struct fm_fd_kinds *kinds, int fd)
{
    struct slot *slot = &kinds->slots[(unsigned)fd % SLOTS];
    uint64_t now = fm_clock_ns();
    if (slot->fd == fd && now - slot->checked_ns < LINK_FRESH_NS)
        return slot;
    char link[PATH_MAX];
    ssize_t len = link_read(kinds->pid, fd, link, sizeof link);
    uint64_t hash = len < 0 ? 0 : link_hash(link, (size_t)len);
    if (slot->fd != fd || slot->link_hash != hash)
        *slot = (struct slot){
            .fd = fd,
            .kind = len < 0 ? FM_FD_UNKNOWN : kind_of_link(kinds->pid, fd, link),
            .link_hash = hash,
        };
    slot->checked_ns = now;
    return slot;
}

enum fm_fd_kind fm_fd_kind(struct fm_fd_kinds *kinds, int fd)
{
    return fd < 0 ? FM_FD_UNKNOWN : slot_of(kinds, fd)->kind;
}

uint64_t fm_fd_identity(struct fm_fd_kinds *kinds, int fd)
{
    return fd < 0 ? 0 : slot_of(kinds, fd)->link_hash;
}

/* ---- sockets */

/* The n-th word of a line, counted from 0; NULL if there are fewer. */
static char *word_at(char *line, int n)
{
    for (;;) {
        line += strspn(line, " ");
        if (!*line)
            return NULL;
        if (n-- == 0)
            return line;
        line += strcspn(line, " ");
    }
}

/* "0100007F:1F90", each word of the address as the host reads it, becomes 127.0.0.1:8080. */
static bool address_read(const char *word, int words, char *out, size_t size, bool *nobody)
{
    uint32_t addr[4];
    unsigned port;
    char ip[INET6_ADDRSTRLEN];
    for (int i = 0; i < words; i++, word += 8)
        if (sscanf(word, "%8x", &addr[i]) != 1 || strnlen(word, 9) < 9)
            return false;
    if (sscanf(word, ":%4x", &port) != 1)
        return false;
    *nobody = port == 0;
    for (int i = 0; i < words; i++)
        *nobody = *nobody && addr[i] == 0;
    bool mapped = words == 4 && !addr[0] && !addr[1] && addr[2] == htonl(0xffff);
    if (words == 1 || mapped) {
        inet_ntop(AF_INET, &addr[words - 1], ip, sizeof ip);
        snprintf(out, size, "%s:%u", ip, port);
    } else {
        inet_ntop(AF_INET6, addr, ip, sizeof ip);
        snprintf(out, size, "[%s]:%u", ip, port);
    }
    return true;
}

struct table {
    const char *file, *name; /* below /proc/PID */
    int words;               /* of 32 bits in an address; 0: unix */
};

static const struct table tables[] = {
    { "net/unix", "unix", 0 }, { "net/udp", "udp", 1 },  { "net/udp6", "udp", 4 },
    { "net/tcp", "tcp", 1 },   { "net/tcp6", "tcp", 4 }, /* these take longest */
};

/* Put a line of a table into words. */
static bool table_line(const struct table *t, char *line, char *inode, struct sock *sock)
{
    sock->unnamed = false;
    if (!t->words) {
        /* "…: 00000002 00000000 00010000 0001 01 12345 /run/x": the path may have spaces */
        char *path = inode + strcspn(inode, " ");
        path += strspn(path, " ");
        sock->unnamed = !*path;
        snprintf(sock->text, sizeof sock->text, *path ? "unix %s" : "unix", path);
        return true;
    }
    char *local = word_at(line, 1), *far = word_at(line, 2), *status = word_at(line, 3);
    char here[64], there[64];
    bool no_local, no_far;
    if (!address_read(local, t->words, here, sizeof here, &no_local) ||
        !address_read(far, t->words, there, sizeof there, &no_far))
        return false;
    bool listening = t->name[0] == 't' && strncmp(status, "0A", 2) == 0; /* TCP_LISTEN */
    if (no_far)
        snprintf(sock->text, sizeof sock->text, "%s %s%s", t->name, here,
                 listening ? " (listening)" : "");
    else
        snprintf(sock->text, sizeof sock->text, "%s %s → %s", t->name, here, there);
    return true;
}

/* Remember the sockets of a table, above all the wanted one: is it there? */
static bool table_scan(struct fm_fd_kinds *kinds, const struct table *t, uint64_t wanted)
{
    struct lines l;
    bool found = false;
    uint64_t now = fm_clock_ns();
    if (!lines_open(&l, kinds->pid, t->file))
        return false;
    char *line = lines_next(&l); /* the heads of the columns */
    for (int kept = 0; line && (line = lines_next(&l));) {
        char *word = word_at(line, t->words ? 9 : 6);
        uint64_t inode = word ? strtoull(word, NULL, 10) : 0;
        struct sock *sock = &kinds->sockets[inode % SOCKETS];
        bool is_wanted = inode == wanted;
        if (!inode || (!is_wanted && (kept == SOCKETS || (found && sock->inode == wanted))))
            continue;
        kept += kept < SOCKETS;
        sock->inode = table_line(t, line, word, sock) ? inode : 0;
        sock->found_ns = now;
        found = found || (is_wanted && sock->inode);
    }
    lines_close(&l);
    return found;
}

static bool scan_may(struct fm_fd_kinds *kinds)
{
    uint64_t now = fm_clock_ns();
    kinds->scan_credit_ns += (int64_t)((now - kinds->scan_credit_at_ns) / SCAN_SHARE);
    kinds->scan_credit_at_ns = now;
    if (kinds->scan_credit_ns > (int64_t)SCAN_CREDIT_NS)
        kinds->scan_credit_ns = (int64_t)SCAN_CREDIT_NS;
    return kinds->scan_credit_ns > 0;
}

/* What is known of the socket behind a descriptor, or NULL; looked for in the first `n` tables.
 * `*later`: it may be found when it is asked for again, a second later. */
static const struct sock *sock_of(struct fm_fd_kinds *kinds, int fd, size_t n, bool *later)
{
    char link[64];
    unsigned long long inode;
    *later = false;
    if (link_read(kinds->pid, fd, link, sizeof link) < 0 ||
        sscanf(link, "socket:[%llu]", &inode) != 1 || inode == 0)
        return NULL;
    if (!kinds->sockets)
        kinds->sockets = fm_calloc(SOCKETS, sizeof *kinds->sockets);
    const struct sock *sock = &kinds->sockets[inode % SOCKETS];
    if (sock->inode == inode && fm_clock_ns() - sock->found_ns < SOCKET_FRESH_NS)
        return sock;
    if (!scan_may(kinds)) {
        *later = true;
        return sock->inode == inode ? sock : NULL;
    }
    bool found = false;
    uint64_t start = fm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    for (size_t i = 0; i < n && !found; i++)
        found = table_scan(kinds, &tables[i], inode);
    kinds->scan_credit_ns -= (int64_t)(fm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - start);
    return found ? sock : NULL;
}

/* ---- epoll */

/* From the descriptors an epoll watches; `seen` of each kind. */
struct watched {
    uint32_t count, sockets, wakeups;
    int socket; /* the first */
};

static void watched_add(struct watched *w, struct fm_fd_kinds *kinds, int fd)
{
    w->count++;
    if (w->sockets > 1)
        return; /* enough is known */
    /* Not through the slots: the caller holds one. */
    char link[PATH_MAX];
    if (link_read(kinds->pid, fd, link, sizeof link) < 0)
        return;
    enum fm_fd_kind kind = kind_of_link(kinds->pid, fd, link);
    if (kind == FM_FD_SOCKET && w->sockets++ == 0)
        w->socket = fd;
    w->wakeups += kind == FM_FD_EVENT || kind == FM_FD_TIMER;
}

static enum fm_fd_epoll watched_judge(const struct watched *w, struct fm_fd_kinds *kinds)
{
    if (w->count == 0)
        return FM_FD_EPOLL_NOTHING;
    if (w->sockets > 1)
        return FM_FD_EPOLL_SOCKETS;
    uint32_t wakeups = w->wakeups;
    if (w->sockets == 1) {
        bool later;
        const struct sock *sock = sock_of(kinds, w->socket, 1 /* unix */, &later);
        if (!sock || !sock->unnamed)
            return FM_FD_EPOLL_SOCKETS;
        wakeups++;
    }
    return wakeups == w->count ? FM_FD_EPOLL_WAKEUP : FM_FD_EPOLL_OTHER;
}

static void epoll_list(struct fm_fd_kinds *kinds, struct slot *slot, uint64_t now)
{
    struct lines l;
    struct watched w = { 0 };
    char name[32], *line;
    int fd;
    snprintf(name, sizeof name, "fdinfo/%d", slot->fd);
    if (lines_open(&l, kinds->pid, name)) {
        while ((line = lines_next(&l)))
            if (sscanf(line, "tfd: %d", &fd) == 1)
                watched_add(&w, kinds, fd);
        lines_close(&l);
        slot->waits = watched_judge(&w, kinds);
    } else
        slot->waits = FM_FD_EPOLL_SOCKETS; /* as nearly all do */
    slot->count = w.count;
    uint64_t wait = (fm_clock_ns() - now) * EPOLL_PATIENCE;
    slot->listed_ns = now;
    slot->next_list_ns = now + (wait > EPOLL_FRESH_NS ? wait : EPOLL_FRESH_NS);
}

enum fm_fd_epoll fm_fd_epoll(struct fm_fd_kinds *kinds, int fd, uint32_t *count)
{
    *count = 0;
    if (fm_fd_kind(kinds, fd) != FM_FD_EPOLL)
        return FM_FD_EPOLL_SOCKETS; /* not readable: as nearly all are */
    struct slot *slot = slot_of(kinds, fd);
    uint64_t now = fm_clock_ns();
    if (slot->listed_ns == 0 || now >= slot->next_list_ns)
        epoll_list(kinds, slot, now);
    *count = slot->count;
    return slot->waits;
}

/* ---- in words */

/* The process a pidfd stands for; 0 if it has ended or cannot be seen. */
static int process_of(pid_t pid, int fd)
{
    struct lines l;
    char name[32], *line;
    int process = 0;
    snprintf(name, sizeof name, "fdinfo/%d", fd);
    if (!lines_open(&l, pid, name))
        return 0;
    while ((line = lines_next(&l)))
        if (sscanf(line, "Pid: %d", &process) == 1)
            break;
    lines_close(&l);
    return process > 0 ? process : 0;
}

bool fm_fd_describe(struct fm_fd_kinds *kinds, int fd, struct fm_buffer *out)
{
    char link[PATH_MAX];
    uint32_t count;
    if (fd < 0 || link_read(kinds->pid, fd, link, sizeof link) < 0)
        return true;
    const struct sock *sock;
    int process;
    bool later = false;
    switch (kind_of_link(kinds->pid, fd, link)) {
    case FM_FD_SOCKET:
        sock = sock_of(kinds, fd, FM_COUNT(tables), &later);
        fm_buffer_add_text(out, sock ? sock->text : "socket");
        break;
    case FM_FD_EPOLL:
        fm_fd_epoll(kinds, fd, &count);
        fm_buffer_addf(out, "epoll of %u descriptor%s", count, count == 1 ? "" : "s");
        break;
    case FM_FD_PROCESS:
        process = process_of(kinds->pid, fd);
        fm_buffer_add_text(out, "process");
        if (process)
            fm_buffer_addf(out, " %d", process);
        break;
    case FM_FD_EVENT:
        fm_buffer_add_text(out, "eventfd");
        break;
    default:
        fm_buffer_add_text(out, strncmp(link, "anon_inode:", 11) == 0 ? link + 11 : link);
    }
    return !later;
}

bool fm_fd_kinds_stopped(struct fm_fd_kinds *kinds)
{
    uint64_t now = fm_clock_ns();
    if (kinds->stopped_ns && now - kinds->stopped_ns < LINK_FRESH_NS)
        return kinds->stopped;
    struct lines l;
    kinds->stopped = false;
    kinds->stopped_ns = now;
    if (!lines_open(&l, kinds->pid, "stat"))
        return false;
    char *line = lines_next(&l);
    char *paren = line ? strrchr(line, ')') : NULL; /* a program's name may hold anything */
    if (paren && paren[1] == ' ')
        kinds->stopped = paren[2] == 'T' || paren[2] == 't';
    lines_close(&l);
    return kinds->stopped;
}
