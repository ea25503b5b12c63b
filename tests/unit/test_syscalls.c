/*
 * The state of blocked threads: the line, the table of calls against descriptors of this very
 * process, and real processes that block in every way the table knows about.
 */
#include "fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "watch/sampler/syscalls.h"

static bool parse(struct fm_syscall *call, const char *line)
{
    /* A copy of exactly its length: the sanitizer sees a look beyond it. */
    size_t len = strlen(line);
    char *copy = malloc(len ? len : 1);
    memcpy(copy, line, len);
    bool fine = fm_syscall_parse(call, copy, len);
    free(copy);
    return fine;
}

static void test_line(void **state)
{
    (void)state;
    struct fm_syscall call;
    assert_true(parse(&call, "running\n"));
    assert_true(call.running);
    assert_true(parse(&call, "running"));
    assert_true(parse(&call, "202 0x7f0012345678 0x189 0x0 0x0 0x0 0xffffffffffffffff "
                             "0x7ffd00000010 0x7f00abcdef90\n"));
    assert_false(call.running);
    assert_int_equal(call.number, 202);
    assert_int_equal(call.args[0], 0x7f0012345678);
    assert_int_equal(call.args[1], 0x189);
    assert_int_equal(call.args[4], 0);
    assert_true(call.args[5] == UINT64_MAX);
    assert_int_equal(call.stack_pointer, 0x7ffd00000010);
    assert_int_equal(call.program_counter, 0x7f00abcdef90);
    assert_true(parse(&call, "0 0x0 0x1 0x2 0x3 0x4 0x5 0x6 0x7\n"));
    assert_int_equal(call.number, 0);
    assert_int_equal(call.args[5], 5);
    assert_int_equal(call.program_counter, 7);
    assert_true(parse(&call, "-1 0x7ffd00000010 0x55\n"));
    assert_false(call.running);
    assert_int_equal(call.number, -1);
    assert_int_equal(call.stack_pointer, 0x7ffd00000010);
    assert_int_equal(call.program_counter, 0x55);
}

static void test_senseless_lines(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",
        "\n",
        "runnin\n",
        "running \n",
        "running\n\n",
        " running\n",
        "-",
        "-\n",
        "-1\n",
        "-1 0x1\n",
        "-1 0x1 0x2 0x3\n",
        "--1 0x1 0x2\n",
        "x 0x1 0x2\n",
        "0\n",
        "0 0x0 0x1 0x2 0x3 0x4 0x5 0x6\n",                     /* one too few */
        "0 0x0 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8\n",             /* one too many */
        "0 0x0 0x1 0x2 0x3 0x4 0x5 0x6 0x7 \n",                /* something behind */
        "0  0x0 0x1 0x2 0x3 0x4 0x5 0x6 0x7\n",                /* two spaces */
        "0 0x0 0x1 0x2 0x3 0x4 0x5 0x6 0x\n",                  /* no digits */
        "0 0x0 0x1 0x2 0x3 0x4 0x5 0x6 7\n",                   /* no 0x */
        "0 0x0 0x1 0xG 0x3 0x4 0x5 0x6 0x7\n",                 /* not hexadecimal */
        "0 0x00000000000000001 0x1 0x2 0x3 0x4 0x5 0x6 0x7\n", /* 17 digits */
        "12345678901 0x0 0x1 0x2 0x3 0x4 0x5 0x6 0x7\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct fm_syscall call;
        if (parse(&call, lines[i]))
            fail_msg("taken for a line: \"%s\"", lines[i]);
    }
}

/* What printf writes comes back, whatever the numbers. */
static void test_line_round_trip(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        unsigned long long v[8];
        for (int k = 0; k < 8; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            v[k] = seed >> (seed >> 58);
        }
        char line[300];
        int number = (int)(v[0] % 1000);
        int len = snprintf(line, sizeof line,
                           "%d 0x%llx 0x%llx 0x%llx 0x%llx 0x%llx 0x%llx 0x%llx 0x%llx\n", number,
                           v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
        struct fm_syscall call;
        assert_true(fm_syscall_parse(&call, line, (size_t)len));
        assert_int_equal(call.number, number);
        for (int k = 0; k < 6; k++)
            assert_true(call.args[k] == v[k]);
        assert_true(call.stack_pointer == v[6] && call.program_counter == v[7]);
        for (int cut = 0; cut < len - 1; cut++) /* a line cut short is never read beyond its end */
            fm_syscall_parse(&call, line, (size_t)cut);
    }
}

/* ---- calls as if made by this process */

static struct fm_remote self;
static struct fm_fd_kinds *own;

static int set_up(void **state)
{
    (void)state;
    fm_remote_live(&self, getpid());
    own = fm_fd_kinds_new(getpid());
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fm_fd_kinds_free(own);
    return 0;
}

static enum fm_state state_of(long number, uint64_t a0, uint64_t a1)
{
    struct fm_syscall call = { .number = number, .args = { a0, a1 } };
    return fm_syscall_state(&call, &self, 0x1000, 0x100, own);
}

static void expect_text(long number, uint64_t a0, uint64_t a1, const char *text)
{
    struct fm_syscall call = { .number = number, .args = { a0, a1 } };
    fm_autobuffer out = FM_BUFFER_INIT;
    fm_syscall_describe(&call, &self, own, &out);
    assert_string_equal(fm_buffer_text(&out), text);
}

static void test_locks(void **state)
{
    (void)state;
    assert_int_equal(state_of(SYS_futex, 0x1000, 0), FM_STATE_GIL);
    assert_int_equal(state_of(SYS_futex, 0x10ff, 0), FM_STATE_GIL);
    assert_int_equal(state_of(SYS_futex, 0x0fff, 0), FM_STATE_LOCK);
    assert_int_equal(state_of(SYS_futex, 0x1100, 0), FM_STATE_LOCK);
    assert_int_equal(state_of(455 /* futex_wait */, 0x1008, 0), FM_STATE_GIL);
    uint64_t waiters[2][3] = { { 1, 0x1010, 2 }, { 1, 0x9999, 2 } };
    assert_int_equal(state_of(449 /* futex_waitv */, (uintptr_t)waiters, 2), FM_STATE_GIL);
    waiters[0][1] = 0x5000;
    assert_int_equal(state_of(449, (uintptr_t)waiters, 2), FM_STATE_LOCK);
    struct fm_syscall none = { .number = SYS_futex };
    assert_int_equal(fm_syscall_state(&none, &self, 0, 0, own), FM_STATE_LOCK);
    assert_int_equal(state_of(SYS_flock, 0, LOCK_EX), FM_STATE_LOCK);
    assert_int_equal(state_of(SYS_fcntl, 0, F_SETLKW), FM_STATE_LOCK);
    expect_text(SYS_futex, 0x1234, 0, "futex 0x1234");
}

static void test_files(void **state)
{
    (void)state;
    char path[] = "/tmp/fathom-state-XXXXXX", text[100];
    int file = mkstemp(path);
    int folder = open("/tmp", O_RDONLY | O_DIRECTORY);
    static const long calls[] = { SYS_read,      SYS_write,  SYS_pread64,   SYS_fsync,
                                  SYS_fdatasync, SYS_writev, SYS_fallocate, SYS_getdents64 };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        assert_int_equal(state_of(calls[i], (uint64_t)file, 0), FM_STATE_DISK);
        assert_int_equal(state_of(calls[i], (uint64_t)folder, 0), FM_STATE_DISK);
        expect_text(calls[i], (uint64_t)file, 0, path);
    }
    assert_int_equal(state_of(SYS_fcntl, (uint64_t)file, F_SETLK), FM_STATE_DISK);
    expect_text(SYS_flock, (uint64_t)file, LOCK_EX, path);
    assert_int_equal(state_of(SYS_openat, (uint64_t)AT_FDCWD, (uintptr_t)path), FM_STATE_DISK);
    expect_text(SYS_openat, (uint64_t)AT_FDCWD, (uintptr_t)path, path);
    char here[PATH_MAX + 10];
    assert_non_null(getcwd(here, PATH_MAX));
    strcat(here, "/some");
    expect_text(SYS_openat, (uint64_t)AT_FDCWD, (uintptr_t) "some", here);
    expect_text(SYS_openat, (uint64_t)folder, (uintptr_t) "some", "/tmp/some");
    expect_text(SYS_openat, (uint64_t)AT_FDCWD, 16 /* not mapped */, "");
    assert_int_equal(state_of(SYS_io_uring_enter, 0, 0), FM_STATE_DISK);
    assert_int_equal(state_of(SYS_msync, 0, 0), FM_STATE_DISK);
    struct fm_syscall fault = { .number = -1, .stack_pointer = 0x7ff0, .program_counter = 0x5500 };
    assert_int_equal(fm_syscall_state(&fault, &self, 0, 0, own), FM_STATE_DISK);
    assert_int_equal(state_of(-1, 0, 0), FM_STATE_OTHER); /* a thread that has ended */
    unlink(path);
    snprintf(text, sizeof text, "%s (deleted)", path);
    expect_text(SYS_read, (uint64_t)file, 0, text);
    close(file);
    close(folder);
}

static void test_other_descriptors(void **state)
{
    (void)state;
    int pipe_fds[2], event = eventfd(0, 0), timer = timerfd_create(CLOCK_MONOTONIC, 0);
    int watch = inotify_init(), null = open("/dev/null", O_RDWR), tty = open("/dev/ptmx", O_RDWR);
    int memory = (int)syscall(SYS_memfd_create, "scratch", 0);
    int process = (int)syscall(434 /* pidfd_open */, getpid(), 0);
    assert_int_equal(pipe(pipe_fds), 0);
    assert_int_equal(fm_fd_kind(own, pipe_fds[0]), FM_FD_PIPE);
    assert_int_equal(fm_fd_kind(own, event), FM_FD_EVENT);
    assert_int_equal(fm_fd_kind(own, timer), FM_FD_TIMER);
    assert_int_equal(fm_fd_kind(own, watch), FM_FD_NOTIFY);
    assert_int_equal(fm_fd_kind(own, null), FM_FD_DEVICE);
    assert_int_equal(fm_fd_kind(own, memory), FM_FD_FILE);
    assert_int_equal(fm_fd_kind(own, 1023), FM_FD_UNKNOWN);
    assert_int_equal(fm_fd_kind(own, -1), FM_FD_UNKNOWN);
    if (tty >= 0)
        assert_int_equal(fm_fd_kind(own, tty), FM_FD_TTY);
    assert_int_equal(state_of(SYS_read, (uint64_t)pipe_fds[0], 0), FM_STATE_OTHER);
    assert_int_equal(state_of(SYS_read, (uint64_t)event, 0), FM_STATE_OTHER);
    assert_int_equal(state_of(SYS_read, (uint64_t)timer, 0), FM_STATE_SLEEP);
    assert_int_equal(state_of(SYS_read, (uint64_t)null, 0), FM_STATE_OTHER);
    assert_int_equal(state_of(SYS_read, 1023, 0), FM_STATE_OTHER);
    assert_int_equal(state_of(SYS_read, UINT64_MAX, 0), FM_STATE_OTHER);
    expect_text(SYS_read, (uint64_t)null, 0, "/dev/null");
    expect_text(SYS_read, (uint64_t)event, 0, "eventfd");
    expect_text(SYS_read, 1023, 0, "");
    if (process >= 0) {
        char text[40];
        snprintf(text, sizeof text, "process %d", (int)getpid());
        assert_int_equal(fm_fd_kind(own, process), FM_FD_PROCESS);
        expect_text(SYS_waitid, 3 /* P_PIDFD */, (uint64_t)process, text);
        close(process);
    }
    int all[] = { pipe_fds[0], pipe_fds[1], event, timer, watch, null, tty, memory };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        close(all[i]);
}

/* The same number for something else is noticed. */
static void test_reuse(void **state)
{
    (void)state;
    int fd = open("/dev/null", O_RDWR), sock = socket(AF_INET, SOCK_DGRAM, 0);
    struct fm_syscall call = { .number = SYS_read, .args = { (uint64_t)fd } };
    uint64_t before = fm_syscall_identity(&call, &self, own);
    assert_int_equal(fm_fd_kind(own, fd), FM_FD_DEVICE);
    assert_int_equal(dup2(sock, fd), fd);
    usleep(20000); /* what is known of it is too old by now */
    assert_int_equal(fm_fd_kind(own, fd), FM_FD_SOCKET);
    assert_true(fm_syscall_identity(&call, &self, own) != before);
    close(fd);
    close(sock);
    usleep(20000);
    assert_int_equal(fm_fd_kind(own, fd), FM_FD_UNKNOWN);
}

static int bound(int family, int type, uint16_t *port)
{
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001) };
    int fd = socket(family, type, 0);
    void *at = family == AF_INET ? (void *)&four : (void *)&six;
    socklen_t len = family == AF_INET ? sizeof four : sizeof six;
    if (fd < 0 || bind(fd, at, len) != 0) {
        close(fd);
        return -1;
    }
    getsockname(fd, at, &len);
    *port = ntohs(family == AF_INET ? four.sin_port : six.sin6_port);
    return fd;
}

static int connected(int type, uint16_t to, uint16_t *port)
{
    struct sockaddr_in far = { .sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(0x7f000001),
                               .sin_port = htons(to) };
    int fd = bound(AF_INET, type, port);
    assert_int_equal(connect(fd, (struct sockaddr *)&far, sizeof far), 0);
    return fd;
}

static void test_sockets(void **state)
{
    (void)state;
    char text[200];
    uint16_t server_port, client_port, udp_port, six_port;
    int server = bound(AF_INET, SOCK_STREAM, &server_port);
    assert_int_equal(listen(server, 5), 0);
    int client = connected(SOCK_STREAM, server_port, &client_port);
    int udp = connected(SOCK_DGRAM, 9, &udp_port);
    snprintf(text, sizeof text, "tcp 127.0.0.1:%u (listening)", server_port);
    expect_text(SYS_accept4, (uint64_t)server, 0, text);
    snprintf(text, sizeof text, "tcp 127.0.0.1:%u → 127.0.0.1:%u", client_port, server_port);
    expect_text(SYS_recvfrom, (uint64_t)client, 0, text);
    expect_text(SYS_read, (uint64_t)client, 0, text);
    snprintf(text, sizeof text, "udp 127.0.0.1:%u → 127.0.0.1:9", udp_port);
    expect_text(SYS_recvmsg, (uint64_t)udp, 0, text);
    assert_int_equal(state_of(SYS_read, (uint64_t)client, 0), FM_STATE_NETWORK);
    assert_int_equal(state_of(SYS_accept4, (uint64_t)server, 0), FM_STATE_NETWORK);
    int six = bound(AF_INET6, SOCK_STREAM, &six_port);
    if (six >= 0) { /* this machine has IPv6 */
        assert_int_equal(listen(six, 5), 0);
        snprintf(text, sizeof text, "tcp [::1]:%u (listening)", six_port);
        expect_text(SYS_accept4, (uint64_t)six, 0, text);
        close(six);
    }
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    snprintf(name.sun_path, sizeof name.sun_path, "/tmp/fathom state %d", (int)getpid());
    int local = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(local, (struct sockaddr *)&name, sizeof name), 0);
    snprintf(text, sizeof text, "unix %s", name.sun_path);
    expect_text(SYS_accept4, (uint64_t)local, 0, text);
    unlink(name.sun_path);
    int fresh = socket(AF_INET, SOCK_STREAM, 0); /* in no table */
    expect_text(SYS_read, (uint64_t)fresh, 0, "socket");
    int all[] = { server, client, udp, local, fresh };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        close(all[i]);
}

static void test_lists(void **state)
{
    (void)state;
    int pair[2], pipe_fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(pipe(pipe_fds), 0);
    struct pollfd polled[3] = { { .fd = -1 }, { .fd = pipe_fds[0] }, { .fd = pair[0] } };
    assert_int_equal(state_of(SYS_ppoll, (uintptr_t)polled, 1), FM_STATE_SLEEP);
    assert_int_equal(state_of(SYS_ppoll, (uintptr_t)polled, 2), FM_STATE_OTHER);
    assert_int_equal(state_of(SYS_ppoll, (uintptr_t)polled, 3), FM_STATE_NETWORK);
    assert_int_equal(state_of(SYS_ppoll, 0, 0), FM_STATE_SLEEP);
    assert_int_equal(state_of(SYS_ppoll, 16 /* not mapped */, 2), FM_STATE_OTHER);
    assert_int_equal(state_of(SYS_ppoll, 16, UINT64_MAX), FM_STATE_OTHER);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(pair[0], &set);
    FD_SET(1000, &set); /* beyond the limit given */
    struct fm_syscall call = { .number = SYS_pselect6,
                               .args = { (uint64_t)pair[0] + 1, (uintptr_t)&set } };
    assert_int_equal(fm_syscall_state(&call, &self, 0, 0, own), FM_STATE_NETWORK);
    call.args[0] = (uint64_t)pair[0];
    assert_int_equal(fm_syscall_state(&call, &self, 0, 0, own), FM_STATE_SLEEP);
    for (int i = 0; i < 2; i++) {
        close(pair[i]);
        close(pipe_fds[i]);
    }
}

static void watch(int epoll, int fd)
{
    struct epoll_event event = { .events = EPOLLIN };
    assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
}

static enum fm_state epoll_state(int epoll, int timeout_ms, const char *text)
{
    struct fm_syscall call = { .number = SYS_epoll_pwait,
                               .args = { (uint64_t)epoll, 0, 0, (uint64_t)timeout_ms } };
    struct fm_fd_kinds *fresh = fm_fd_kinds_new(getpid()); /* lists are kept for a while */
    fm_autobuffer out = FM_BUFFER_INIT;
    fm_syscall_describe(&call, &self, fresh, &out);
    assert_string_equal(fm_buffer_text(&out), text);
    enum fm_state found = fm_syscall_state(&call, &self, 0, 0, fresh);
    fm_fd_kinds_free(fresh);
    return found;
}

static void test_epoll(void **state)
{
    (void)state;
    uint16_t port;
    int pair[2], epoll = epoll_create1(0), event = eventfd(0, 0);
    int server = bound(AF_INET, SOCK_STREAM, &port);
    assert_int_equal(listen(server, 1), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(epoll_state(epoll, -1, "epoll of 0 descriptors"), FM_STATE_SLEEP);
    watch(epoll, pair[0]); /* what an asyncio loop wakes itself with */
    watch(epoll, event);
    assert_int_equal(epoll_state(epoll, 1000, "epoll of 2 descriptors"), FM_STATE_SLEEP);
    assert_int_equal(epoll_state(epoll, -1, "epoll of 2 descriptors"), FM_STATE_OTHER);
    watch(epoll, server);
    assert_int_equal(epoll_state(epoll, 1000, "epoll of 3 descriptors"), FM_STATE_NETWORK);
    assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_DEL, pair[0], NULL), 0);
    assert_int_equal(epoll_state(epoll, -1, "epoll of 2 descriptors"), FM_STATE_NETWORK);
    int all[] = { pair[0], pair[1], epoll, event, server };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        close(all[i]);
}

static void test_rest(void **state)
{
    (void)state;
    assert_int_equal(state_of(SYS_clock_nanosleep, 0, 0), FM_STATE_SLEEP);
    assert_int_equal(state_of(SYS_wait4, 123, 0), FM_STATE_OTHER);
    assert_int_equal(state_of(100000, 0, 0), FM_STATE_OTHER);
    assert_int_equal(state_of(511, 0, 0), FM_STATE_OTHER);
    assert_int_equal(state_of(SYS_exit_group, 0, 0), FM_STATE_OTHER);
    expect_text(SYS_wait4, 123, 0, "process 123");
    expect_text(SYS_wait4, (uint64_t)-1, 0, "any child process");
    expect_text(SYS_waitid, 1 /* P_PID */, 77, "process 77");
    expect_text(SYS_clock_nanosleep, 0, 0, "");
}

static uint64_t identity_of(long number, uint64_t a0, uint64_t a1)
{
    struct fm_syscall call = { .number = number, .args = { a0, a1, (uint64_t)rand() } };
    return fm_syscall_identity(&call, &self, own);
}

static void test_identities(void **state)
{
    (void)state;
    assert_true(identity_of(SYS_futex, 0x1000, 1) == identity_of(SYS_futex, 0x1000, 2));
    assert_true(identity_of(SYS_futex, 0x1000, 1) != identity_of(SYS_futex, 0x1004, 1));
    assert_true(identity_of(SYS_read, 3, 0x1000) ==
                identity_of(SYS_read, 3, 0x2000)); /* other buffers */
    assert_true(identity_of(SYS_read, 3, 0) != identity_of(SYS_read, 4, 0));
    assert_true(identity_of(SYS_read, 3, 0) != identity_of(SYS_recvfrom, 3, 0));
    assert_true(identity_of(SYS_clock_nanosleep, 0, 1) == identity_of(SYS_clock_nanosleep, 1, 0));
    assert_true(identity_of(SYS_wait4, 5, 0) != identity_of(SYS_wait4, 6, 0));
    char a[] = "/one", b[] = "/one", c[] = "/two";
    uint64_t at = (uint64_t)AT_FDCWD;
    assert_true(identity_of(SYS_openat, at, (uintptr_t)a) ==
                identity_of(SYS_openat, at, (uintptr_t)b));
    assert_true(identity_of(SYS_openat, at, (uintptr_t)a) !=
                identity_of(SYS_openat, at, (uintptr_t)c));
}

/* ---- a real process that blocks */

static void block_sleep(int fd)
{
    (void)fd;
    for (;;)
        sleep(1000);
}
static void block_read(int fd)
{
    char c;
    (void)!read(fd, &c, 1);
}
static void block_futex(int fd)
{
    static int word;
    (void)fd;
    syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
}
static void block_lock(int fd)
{
    int again = open("/proc/self/exe", O_RDONLY);
    (void)fd;
    flock(again, LOCK_EX);
}
static void block_poll(int fd)
{
    struct pollfd one = { .fd = fd, .events = POLLIN };
    poll(&one, 1, -1);
}
static void block_spin(int fd)
{
    (void)fd;
    for (volatile long i = 0;; i++)
        ;
}

/* Run it in a child until it is blocked; what is said of it then. */
static enum fm_state blocked(void (*block)(int), int fd, bool stop, struct fm_buffer *text)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        block(fd);
        _exit(0);
    }
    struct fm_remote remote;
    struct fm_syscall call = { .running = true };
    struct fm_fd_kinds *kinds = fm_fd_kinds_new(pid);
    char path[64], line[512], last[512] = "";
    snprintf(path, sizeof path, "/proc/%d/syscall", (int)pid);
    fm_remote_live(&remote, pid);
    if (stop)
        kill(pid, SIGSTOP);
    for (int i = 0, same = 0; i < 10000 && same < 20; i++, usleep(1000)) {
        int proc = open(path, O_RDONLY);
        ssize_t len = proc < 0 ? -1 : read(proc, line, sizeof line - 1);
        close(proc);
        assert_true(len >= 0);
        line[len] = '\0';
        assert_true(fm_syscall_parse(&call, line, (size_t)len));
        same = !call.running && strcmp(line, last) == 0 ? same + 1 : 0;
        strcpy(last, line);
    }
    assert_false(call.running);
    enum fm_state found = fm_syscall_state(&call, &remote, 0, 0, kinds);
    fm_syscall_describe(&call, &remote, kinds, text);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    fm_fd_kinds_free(kinds);
    return found;
}

static void test_blocked(void **state)
{
    (void)state;
    int pipe_fds[2], pair[2], own_exe = open("/proc/self/exe", O_RDONLY);
    char exe[PATH_MAX] = "";
    fm_autobuffer text = FM_BUFFER_INIT;
    assert_int_equal(pipe(pipe_fds), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
    assert_int_equal(blocked(block_sleep, -1, false, &text), FM_STATE_SLEEP);
    assert_string_equal(fm_buffer_text(&text), "");
    assert_int_equal(blocked(block_read, pipe_fds[0], false, &text), FM_STATE_OTHER);
    assert_memory_equal(fm_buffer_text(&text), "pipe:[", 6);
    assert_int_equal(blocked(block_read, pair[0], false, &text), FM_STATE_NETWORK);
    assert_int_equal(blocked(block_poll, pair[0], false, &text), FM_STATE_NETWORK);
    fm_buffer_clear(&text);
    assert_int_equal(blocked(block_futex, -1, false, &text), FM_STATE_LOCK);
    assert_memory_equal(fm_buffer_text(&text), "futex 0x", 8);
    fm_buffer_clear(&text);
    assert_int_equal(flock(own_exe, LOCK_EX), 0);
    assert_true(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
    assert_int_equal(blocked(block_lock, -1, false, &text), FM_STATE_LOCK);
    assert_string_equal(fm_buffer_text(&text), exe);
    /* Stopped while computing: outside of any call, and yet no page fault. */
    assert_int_equal(blocked(block_spin, -1, true, &text), FM_STATE_OTHER);
    for (int i = 0; i < 2; i++) {
        close(pipe_fds[i]);
        close(pair[i]);
    }
    close(own_exe);
}

/* Each with a fresh table: what was a pipe in one is a socket in the next. */
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_line),
        TEST(test_senseless_lines),
        TEST(test_line_round_trip),
        TEST(test_locks),
        TEST(test_files),
        TEST(test_other_descriptors),
        TEST(test_reuse),
        TEST(test_sockets),
        TEST(test_lists),
        TEST(test_epoll),
        TEST(test_rest),
        TEST(test_identities),
        TEST(test_blocked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
