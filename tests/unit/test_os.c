/* Memory maps, remote memory, images, facts of processes, newborn processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/library.h"
#include "watch/cpython/marks.h"
#include "watch/os/procfs.h"
#include "watch/os/remote/elf.h"
#include "watch/os/remote/image.h"
#include "watch/os/remote/maps.h"
#include "watch/os/remote/remote.h"
#include "watch/os/run/exit_status.h"
#include "watch/os/run/newborn.h"
#include "watch/os/run/watch.h"

/* ---- maps ---- */

static void test_maps_parse(void **state)
{
    (void)state;
    static const char text[] =
        "00400000-00401000 r--p 00000000 08:02 1234                       /usr/bin/python3.11\n"
        "00401000-00500000 r-xp 00001000 08:02 1234                       /usr/bin/python3.11\n"
        "00b00000-00c00000 rw-p 00000000 00:00 0 \n"
        "7f0000000000-7f0000002000 rw-s 00003000 fd:1a 99                   /tmp/a b (deleted)\n"
        "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                  [stack]\n"
        "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0          [vsyscall]\n";
    struct fm_maps maps = { 0 };
    struct fm_error err = FM_ERROR_INIT;
    assert_int_equal(fm_maps_parse(&maps, text, &err), 0);
    assert_int_equal(maps.list.len, 6);
    const struct fm_mapping *m = maps.list.data;
    assert_int_equal(m[1].start, 0x401000);
    assert_int_equal(m[1].offset, 0x1000);
    assert_true(m[1].executable && m[1].readable && !m[1].writable);
    assert_string_equal(m[1].path, "/usr/bin/python3.11");
    assert_true(fm_mapping_same_file(&m[0], &m[1]));
    assert_string_equal(m[2].path, "");
    assert_string_equal(m[3].path, "/tmp/a b");
    assert_true(m[3].deleted && m[3].writable);
    assert_int_equal(m[3].major, 0xfd);
    assert_int_equal(m[3].minor, 0x1a);
    assert_int_equal(m[3].inode, 99);
    assert_ptr_equal(fm_maps_at(&maps, 0x400fff), &m[0]);
    assert_ptr_equal(fm_maps_at(&maps, 0x401000), &m[1]);
    assert_null(fm_maps_at(&maps, 0x500000));
    assert_null(fm_maps_at(&maps, 0));
    assert_ptr_equal(fm_maps_at(&maps, 0xffffffffff600fff), &m[5]);
    fm_maps_release(&maps);
}

static void test_maps_refuse(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "x",
        "00400000",
        "00400000-\n",
        "00400000-00300000 r--p 0 0:0 0 \n",
        "00400000-00401000 r- 0 0:0 0\n",
        "00400000-00401000 r--p 0 00:00\n",
        "00400000-00401000 r--p 0 00:00 \n00401000-00402000 r--p 0 00:00 0\n",
        "00400000-00401000 r--p\n0 00:00 0\n",
        "-1-2 r--p 0 00:00 0\n",
        "fffffffffffffffff-ffffffffffffffffff r--p 0 00:00 0\n",
    };
    for (size_t i = 0; i < FM_COUNT(bad); i++) {
        struct fm_maps maps = { 0 };
        struct fm_error err = FM_ERROR_INIT;
        assert_int_equal(fm_maps_parse(&maps, bad[i], &err), FM_DAMAGED);
        fm_maps_release(&maps);
    }
}

/* ---- remote memory ---- */

static void test_remote_batches(void **state)
{
    (void)state;
    enum { COUNT = 3000 }; /* more than one system call takes */
    static uint64_t from[COUNT], into[COUNT];
    static struct fm_span spans[COUNT];
    for (int i = 0; i < COUNT; i++) {
        from[i] = 7u * i;
        spans[i] = (struct fm_span){ (uintptr_t)&from[COUNT - 1 - i], &into[i], 8 };
    }
    struct fm_remote remote;
    fm_remote_live(&remote, getpid());
    assert_int_equal(fm_remote_read_spans(&remote, spans, COUNT), COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(into[i], 7u * (COUNT - 1 - i));
    spans[2500].at = 8; /* nothing is mapped there */
    assert_int_equal(fm_remote_read_spans(&remote, spans, COUNT), 2500);
    spans[1024].at = 8; /* the first of the second system call */
    assert_int_equal(fm_remote_read_spans(&remote, spans, COUNT), 1024);
    spans[0].at = 8;
    assert_int_equal(fm_remote_read_spans(&remote, spans, COUNT), -EFAULT);
    assert_int_equal(fm_remote_pointer(&remote, 8), 0);
    assert_int_equal(fm_remote_pointer(&remote, (uintptr_t)&from[3]), 21);
}

/* A span of which only the first page is there counts as not read. */
static void test_remote_half_span(void **state)
{
    (void)state;
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static char into[8192], word[8];
    assert_int_equal(munmap(pages + 4096, 4096), 0);
    struct fm_remote remote;
    fm_remote_live(&remote, getpid());
    struct fm_span spans[] = { { (uintptr_t)pages, word, 8 }, { (uintptr_t)pages, into, 8192 } };
    assert_int_equal(fm_remote_read_spans(&remote, spans, 2), 1);
    assert_int_equal(fm_remote_read(&remote, (uintptr_t)pages, into, 8192), -EFAULT);
    munmap(pages, 4096);
}

static void test_remote_gone(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    char byte;
    struct fm_remote remote;
    fm_remote_live(&remote, child);
    assert_int_equal(fm_remote_read(&remote, (uintptr_t)&byte, &byte, 1), -ESRCH);
}

/* ---- images ---- */

/* Against the dynamic linker's own answer: where libc's functions and data lie. */
static void test_image_of_libc(void **state)
{
    (void)state;
    struct fm_maps maps;
    struct fm_remote remote;
    assert_int_equal(fm_maps_read(&maps, getpid(), NULL, NULL), 0);
    fm_remote_live(&remote, getpid());
    const struct fm_mapping *inside = fm_maps_at(&maps, (uintptr_t)&stdout->_fileno);
    assert_non_null(inside);
    const struct fm_mapping *first = NULL;
    for (size_t i = 0; i < maps.list.len && !first; i++)
        if (maps.list.data[i].offset == 0 && strstr(maps.list.data[i].path, "/libc."))
            first = &maps.list.data[i];
    if (!first) {
        fm_maps_release(&maps);
        skip(); /* a libc of another name */
    }
    struct fm_image image;
    assert_int_equal(fm_image_read(&image, &remote, first->start), FM_IMAGE_OK);
    uint64_t size = 0;
    fm_addr at = fm_image_symbol(&image, &remote, "_IO_2_1_stdout_", &size);
    assert_int_equal(at, (uintptr_t)stdout);
    assert_true(size >= sizeof *stdout);
    assert_int_equal(fm_image_symbol(&image, &remote, "no_such_symbol", NULL), 0);
    assert_true(fm_image_needs(&image, &remote, "ld-linux"));
    assert_false(fm_image_needs(&image, &remote, "libpython"));
    fm_maps_release(&maps);
}

/* Whatever the bytes are, parsing stays inside them. */
static void test_image_garbage(void **state)
{
    (void)state;
    unsigned char bytes[FM_IMAGE_HEADER_BYTES];
    struct fm_remote remote;
    struct fm_image image;
    fm_remote_live(&remote, getpid());
    unsigned seed = 1;
    for (int round = 0; round < 20000; round++) {
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (seed = seed * 1103515245 + 12345) >> 16;
        Elf64_Ehdr *header = (Elf64_Ehdr *)bytes;
        memcpy(bytes, ELFMAG, SELFMAG);
        bytes[EI_CLASS] = ELFCLASS64;
        bytes[EI_DATA] = ELFDATA2LSB;
        header->e_type = ET_DYN;
        header->e_phentsize = sizeof(Elf64_Phdr);
        header->e_phoff = round % 3 ? 64 : header->e_phoff;
        header->e_phnum %= 80;
        for (int i = 0; i < 70; i++)
            ((Elf64_Phdr *)(bytes + 64))[i].p_type %= 4;
        if (fm_image_parse(&image, bytes, sizeof bytes, 0x400000) == FM_IMAGE_OK)
            fm_image_symbol(&image, &remote, "_PyRuntime", NULL);
    }
    assert_int_equal(fm_image_parse(&image, bytes, 3, 0), FM_IMAGE_NONE);
    memcpy(bytes, ELFMAG, SELFMAG);
    bytes[EI_CLASS] = ELFCLASS32;
    assert_int_equal(fm_image_parse(&image, bytes, sizeof bytes, 0), FM_IMAGE_FOREIGN);
}

static void test_version_text(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t version;
    } cases[] = {
        { "3.9.18 (main, Jan  1 2024, 00:00:00) \n[GCC 12.2.0]", 0x03091200 },
        { "3.11.2 (main, Mar 13 2023, 12:18:29) [GCC 12.2.0]", 0x030b0200 },
        { "3.13.0 experimental free-threading build (main, Oct  7 2024) [Clang 18]", 0x030d0000 },
        { "3.15.0a3+ (heads/main-dirty:abc, Jan 1 2026, 00:00:00) [GCC 14]", 0x030f0000 },
        { "3.9.18", 0 },
        { "2.7.18 (default, Jan  1 2024, 00:00:00) \n[GCC 12.2.0]", 0 },
        { "3.9 (main, Jan) [GCC]", 0 },
        { "3.9.18 (main", 0 },
        { "3.9.1(main) [GCC]", 0 },
        { "3.9.999 (main) [GCC]", 0 },
        { "", 0 },
    };
    for (size_t i = 0; i < FM_COUNT(cases); i++)
        for (size_t cut = 0; cut <= strlen(cases[i].text); cut++) {
            uint32_t got = fm_marks_parse_version(cases[i].text, cut);
            if (cut == strlen(cases[i].text))
                assert_int_equal(got, cases[i].version);
            else
                assert_true(got == 0 || got == cases[i].version);
        }
}

/* ---- processes ---- */

static void test_process_facts(void **state)
{
    (void)state;
    struct fm_proc p;
    assert_int_equal(fm_process_read(&p, getpid()), 0);
    assert_int_equal(p.tgid, getpid());
    assert_int_equal(p.parent, getppid());
    assert_int_equal(p.group, getpgrp());
    assert_int_equal(p.session, getsid(0));
    assert_int_equal(p.uid, getuid());
    assert_int_equal(p.euid, geteuid());
    assert_int_equal(p.state, 'R');
    assert_false(p.kernel_thread);
    fm_autofree char *cwd = fm_process_cwd(getpid()), *own = getcwd(NULL, 0);
    assert_string_equal(cwd, own);
    struct fm_process_kin kin;
    assert_true(fm_process_kin(&kin, 0x7ffffff0) < 0);
    assert_true(fm_process_read(&p, 0x7ffffff0) < 0);
}

static void test_process_with_a_strange_name(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        FILE *comm = fopen("/proc/self/comm", "w");
        fputs("a) Z 1 (b", comm);
        fclose(comm);
        raise(SIGSTOP);
        _exit(0);
    }
    int status;
    waitpid(child, &status, WUNTRACED);
    struct fm_proc p;
    assert_int_equal(fm_process_read(&p, child), 0);
    assert_int_equal(p.parent, getpid());
    assert_int_equal(p.state, 'T');
    assert_string_equal(p.name, "a) Z 1 (b");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void test_fields(void **state)
{
    (void)state;
    static const char text[] = "Name:\tx\nTgid:\t7\nPid: 8\n";
    assert_int_equal(*fm_procfs_field(text, "Tgid:"), '7');
    assert_int_equal(*fm_procfs_field(text, "Pid:"), '8');
    assert_null(fm_procfs_field(text, "PPid:"));
    assert_null(fm_procfs_field("", "Pid:"));
}

/* ---- newborn ---- */

struct births {
    pid_t wanted[3];
    int seen[3];
    struct fm_newborn_process last;
    pid_t thread;
    int thread_seen;
};

static int note_birth(const struct fm_newborn_process *process, void *data)
{
    struct births *b = data;
    for (int i = 0; i < 3; i++)
        if (process->pid == b->wanted[i]) {
            b->seen[i]++;
            b->last = *process;
        }
    b->thread_seen += process->pid == b->thread;
    return 0;
}

static pid_t make_child(void)
{
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    return child;
}

static void *report_tid(void *data)
{
    int *ends = data;
    pid_t tid = gettid();
    char byte;
    assert_int_equal(write(ends[1], &tid, sizeof tid), sizeof tid);
    return read(ends[2], &byte, 1) < 0 ? data : NULL;
}

static void check_newborn(bool listing)
{
    struct fm_newborn nb;
    struct births b = { 0 };
    int ends[4];
    pthread_t thread;
    pid_t before = make_child();
    fm_newborn_init(&nb);
    if (listing) {
        usleep(150 * 1000); /* a listing asks who started since the tick before the last look */
        fm_newborn_release(&nb);
        fm_newborn_init(&nb);
        close(nb.fd);
        nb.fd = -1;
        nb.last = 0;
    }
    assert_int_equal(pipe(ends) | pipe(ends + 2), 0);
    b.wanted[0] = before;
    for (int i = 1; i < 3; i++)
        b.wanted[i] = make_child();
    pthread_create(&thread, NULL, report_tid, ends);
    assert_int_equal(read(ends[0], &b.thread, sizeof b.thread), sizeof b.thread);
    for (int i = 0; i < 3; i++) {
        if (listing)
            nb.listed_ns = 0;
        assert_int_equal(fm_newborn_poll(&nb, note_birth, &b), 0);
        usleep(listing ? 30 * 1000 : 0);
    }
    assert_int_equal(b.seen[0], 0); /* born before */
    assert_true(b.seen[1] >= 1 && b.seen[2] >= 1);
    if (!listing)
        assert_true(b.seen[1] == 1 && b.seen[2] == 1);
    assert_int_equal(b.thread_seen, 0);
    assert_int_equal(b.last.parent, getpid());
    assert_int_equal(b.last.session, getsid(0));
    assert_int_equal(write(ends[3], "x", 1), 1);
    pthread_join(thread, NULL);
    for (int i = 0; i < 3; i++) {
        kill(b.wanted[i], SIGKILL);
        waitpid(b.wanted[i], NULL, 0);
    }
    for (int i = 0; i < 4; i++)
        close(ends[i]);
    fm_newborn_release(&nb);
}

static void test_newborn(void **state)
{
    (void)state;
    check_newborn(false);
}

static void test_newborn_by_listing(void **state)
{
    (void)state;
    check_newborn(true);
}

static int count_births(const struct fm_newborn_process *process, void *data)
{
    (void)process;
    ++*(int *)data;
    return 0;
}

/* Ids have wrapped around: the newest is smaller than the last one seen. */
static void test_newborn_after_wrap(void **state)
{
    (void)state;
    struct fm_newborn nb;
    fm_newborn_init(&nb);
    nb.last = 0x3fffffff;
    struct births b = { 0 };
    b.wanted[0] = make_child();
    assert_int_equal(fm_newborn_poll(&nb, note_birth, &b), 0);
    assert_int_equal(b.seen[0], 1);
    assert_true(nb.last > 0 && nb.last < 0x3fffffff);
    kill(b.wanted[0], SIGKILL);
    waitpid(b.wanted[0], NULL, 0);
    fm_newborn_release(&nb);
}

/* parent → child → grandchild; the child itself leads a session of its own. */
static void test_descendants(void **state)
{
    (void)state;
    int ends[2], count = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork(), grandchild;
    if (child == 0) {
        setsid();
        grandchild = make_child();
        if (write(ends[1], &grandchild, sizeof grandchild) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], &grandchild, sizeof grandchild), sizeof grandchild);
    struct births b = { .wanted = { child, grandchild, getpid() } };
    assert_int_equal(fm_newborn_descendants(getpid(), note_birth, &b), 0);
    assert_int_equal(b.seen[0], 1);
    assert_int_equal(b.seen[1], 1);
    assert_int_equal(b.seen[2], 0);
    assert_int_equal(b.last.session, child);
    fm_newborn_descendants(grandchild, count_births, &count);
    assert_int_equal(count, 0);
    kill(grandchild, SIGKILL);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ends[0]);
    close(ends[1]);
}

/* ---- libraries ---- */

static void test_library_is_loaded_when_needed(void **state)
{
    (void)state;
    struct {
        double (*cos)(double);
        double (*sqrt)(double);
    } math;
    static const char *const names[] = { "cos", "sqrt" };
    struct fm_error err = FM_ERROR_INIT;
    assert_int_equal(fm_library_load(&math, 2, names, "libm.so.6", "Mathematics", "libc6", &err),
                     0);
    assert_true(math.cos(0) == 1 && math.sqrt(9) == 3);
}

static void test_library_that_is_not_there(void **state)
{
    (void)state;
    void *pointers[1];
    static const char *const names[] = { "fm_no_such_function" };
    struct fm_error err = FM_ERROR_INIT;
    assert_int_equal(fm_library_load(pointers, 1, names, "libnone.so.9", "None", "libnone9", &err),
                     FM_UNSUPPORTED);
    assert_string_equal(err.text,
                        "None is not here (libnone.so.9); install it (Debian, Ubuntu: libnone9)");
    struct fm_error other = FM_ERROR_INIT;
    assert_int_equal(
        fm_library_load(pointers, 1, names, "libm.so.6", "Mathematics", "libc6", &other),
        FM_UNSUPPORTED);
    assert_string_equal(other.text, "Mathematics (libm.so.6) lacks fm_no_such_function");
}

static void test_tids_of_ourselves(void **state)
{
    (void)state;
    struct fm_tids tids;
    assert_int_equal(fm_process_tids(getpid(), &tids), 0);
    assert_int_equal(tids.list.len, 1);
    assert_int_equal(tids.process, getpid());
    assert_int_equal(tids.list.data[0].outer, getpid());
    assert_int_equal(tids.list.data[0].inner, getpid()); /* our /proc shows our own numbers */
    fm_tids_release(&tids);
    assert_true(fm_process_tids(INT32_MAX, &tids) < 0);
    fm_tids_release(&tids);
}

/* ---- how a process ended ---- */

/* A child that waits for the other end of a pipe to be closed and ends with `status`. */
static pid_t child_of_status(int status, int *ret_fd)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        while (read(ends[0], &byte, 1) < 0)
            ;
        _exit(status);
    }
    close(ends[0]);
    *ret_fd = ends[1];
    return pid;
}

/* Since 6.15 a pidfd tells the status of what was collected. */
static bool kernel_keeps_status(void)
{
    struct utsname name;
    int major = 0, minor = 0;
    assert_int_equal(uname(&name), 0);
    assert_int_equal(sscanf(name.release, "%d.%d", &major, &minor), 2);
    return major > 6 || (major == 6 && minor >= 15);
}

static void test_exit_status(void **state)
{
    (void)state;
    for (int status = 0; status < 3; status++) { /* 0 and 1, and killed */
        int fd, expected = status == 2 ? 128 + SIGKILL : status;
        int32_t told = -1;
        siginfo_t info;
        struct fm_exit_watch w;
        pid_t pid = child_of_status(status, &fd);
        fm_exit_watch_open(&w, pid);
        assert_false(fm_exit_watch_status(&w, pid, &told)); /* it runs */
        if (status == 2)
            kill(pid, SIGKILL);
        close(fd);
        assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
        assert_true(fm_exit_watch_status(&w, pid, &told)); /* nobody collected it yet */
        assert_int_equal(told, expected);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        told = -1;
        assert_int_equal(fm_exit_watch_status(&w, pid, &told), kernel_keeps_status());
        assert_int_equal(told, kernel_keeps_status() ? expected : -1);
        fm_exit_watch_close(&w);
        fm_exit_watch_close(&w); /* once more does no harm */
        fm_exit_watch_open(&w, pid);
        assert_int_equal(w.fd, -1); /* too late */
        assert_false(fm_exit_watch_status(&w, pid, &told));
    }
}

/* ---- processes of one number ---- */

/* A child that has the number `pid` and ends with `status` when *ret_fd is closed; −1 if the system
 * does not let us choose (only root may), or the number is taken. */
static pid_t child_of_number(pid_t pid, int status, int *ret_fd)
{
    int ends[2];
    char byte;
    pid_t wanted[] = { pid };
    struct clone_args args = { .exit_signal = SIGCHLD,
                               .set_tid = (uint64_t)(uintptr_t)wanted,
                               .set_tid_size = 1 };
    assert_int_equal(pipe(ends), 0);
    pid_t made = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (made == 0) {
        close(ends[1]);
        while (read(ends[0], &byte, 1) < 0)
            ;
        _exit(status);
    }
    close(ends[0]);
    *ret_fd = ends[1];
    if (made < 0)
        close(ends[1]);
    return made;
}

static void make_file(const char *folder, pid_t pid, const char *rest)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%d%s", folder, (int)pid, rest);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

static void remove_file(const char *folder, pid_t pid, const char *rest)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%d%s", folder, (int)pid, rest);
    assert_int_equal(unlink(path), 0);
}

/* Let the process end, see that, and collect it. */
static void end(struct fm_watch *watch, pid_t pid, int fd)
{
    siginfo_t info;
    close(fd);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    while (fm_watch_recording(watch) > 0)
        fm_watch_wait(watch, -1, -1);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Names are not told any more, and looking at the folder finds them still. */
static void test_watch_names_end(void **state)
{
    (void)state;
    char folder[] = "/tmp/fathom-test-watch-XXXXXX";
    int fd;
    struct fm_watch watch;
    assert_non_null(mkdtemp(folder));
    fm_watch_init(&watch, folder);
    fm_watch_end_names(&watch);
    pid_t pid = child_of_status(3, &fd);
    make_file(folder, pid, ".0.live");
    fm_watch_wait(&watch, -1, 0); /* the kernel's word that it forgot the folder is no name */
    assert_int_equal(watch.list.len, 0);
    fm_watch_scan(&watch);
    assert_int_equal(watch.list.len, 1);
    end(&watch, pid, fd);
    fm_watch_release(&watch);
    remove_file(folder, pid, ".0.live");
    assert_int_equal(rmdir(folder), 0);
}

static void test_watch_number_used_again(void **state)
{
    (void)state;
    char folder[] = "/tmp/fathom-test-watch-XXXXXX";
    int first_fd, second_fd;
    struct fm_watch watch;
    assert_non_null(mkdtemp(folder));
    fm_watch_init(&watch, folder);
    pid_t pid = child_of_status(3, &first_fd);
    make_file(folder, pid, ".0.live");
    fm_watch_scan(&watch);
    fm_watch_scan(&watch); /* the same file is the same process */
    assert_int_equal(watch.list.len, 1);
    assert_int_equal(fm_watch_recording(&watch), 1);
    end(&watch, pid, first_fd);
    uint64_t end_ns = watch.list.data[0].end_ns;
    assert_true(end_ns > 0);

    usleep(30000); /* starts are told apart in hundredths of a second */
    pid_t second = child_of_number(pid, 5, &second_fd);
    if (second == pid) {
        fm_watch_scan(&watch); /* another process has the number, but is not of the run */
        assert_int_equal(watch.list.len, 1);
        assert_int_equal(fm_watch_recording(&watch), 0);
        make_file(folder, pid, ".1.live");
        fm_watch_scan(&watch);
        assert_int_equal(watch.list.len, 2);
        assert_int_equal(fm_watch_recording(&watch), 1);
        assert_true(watch.list.data[1].end_ns == 0);
        end(&watch, pid, second_fd);
        assert_true(watch.list.data[0].end_ns == end_ns);
        assert_true(watch.list.data[1].end_ns > end_ns);
        fm_watch_ask_statuses(&watch);
        assert_int_equal(watch.list.data[0].exit_status, 3);
        assert_int_equal(watch.list.data[1].exit_status, 5);
        remove_file(folder, pid, ".1.live");
    }
    fm_watch_release(&watch);
    remove_file(folder, pid, ".0.live");
    assert_int_equal(rmdir(folder), 0);
    if (second != pid)
        skip(); /* only root chooses the number of a process */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_library_is_loaded_when_needed),
        cmocka_unit_test(test_library_that_is_not_there),
        cmocka_unit_test(test_maps_parse),
        cmocka_unit_test(test_maps_refuse),
        cmocka_unit_test(test_remote_batches),
        cmocka_unit_test(test_remote_half_span),
        cmocka_unit_test(test_remote_gone),
        cmocka_unit_test(test_image_of_libc),
        cmocka_unit_test(test_image_garbage),
        cmocka_unit_test(test_version_text),
        cmocka_unit_test(test_process_facts),
        cmocka_unit_test(test_process_with_a_strange_name),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_tids_of_ourselves),
        cmocka_unit_test(test_exit_status),
        cmocka_unit_test(test_watch_names_end),
        cmocka_unit_test(test_watch_number_used_again),
        cmocka_unit_test(test_newborn),
        cmocka_unit_test(test_newborn_by_listing),
        cmocka_unit_test(test_newborn_after_wrap),
        cmocka_unit_test(test_descendants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
