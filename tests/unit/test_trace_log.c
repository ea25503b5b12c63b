/* The trace of a process, kept by the launcher (watch/trace): what was handed over is packed once and in
 * order, whoever is killed when; and what a damaged trace, or a full disk, may do. */
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "record/capture/live_trace.h"
#include "watch/trace/journal.h"
#include "watch/trace/trace_log.h"
#include "watch/trace/trace_watch.h"

#define PID 7

struct process {
    char folder[64];
    int fd;
    uint32_t handed;
    struct fm_trace_log *log;
};

static void path_in(const struct process *p, char *path, const char *suffix)
{
    sprintf(path, "%s/%d.0%s", p->folder, PID, suffix);
}

static void begin(struct process *p)
{
    char path[128];
    struct fm_trace_header h = { .magic = FM_TRACE_MAGIC,
                                 .version = FM_TRACE_VERSION,
                                 .chunks = FM_TRACE_CHUNKS,
                                 .chunk_bytes = FM_TRACE_CHUNK_BYTES };
    *p = (struct process){ .folder = "/tmp/fathom-trace-XXXXXX" };
    assert_non_null(mkdtemp(p->folder));
    path_in(p, path, FM_TRACE_SUFFIX);
    p->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(p->fd, FM_TRACE_FILE_BYTES), 0);
    assert_int_equal(pwrite(p->fd, &h, sizeof h, 0), sizeof h);
    p->log = fm_trace_log_new(p->folder, PID, 0);
}

static void end(struct process *p)
{
    DIR *dir = opendir(p->folder);
    fm_trace_log_free(p->log);
    for (struct dirent *entry; (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    rmdir(p->folder);
    close(p->fd);
}

static struct fm_trace_chunk descriptor(const struct process *p, uint32_t chunk)
{
    struct fm_trace_chunk c;
    assert_int_equal(pread(p->fd, &c, sizeof c, FM_TRACE_DESCRIPTORS_AT + chunk * sizeof c),
                     sizeof c);
    return c;
}

static struct fm_trace_header header(const struct process *p)
{
    struct fm_trace_header h;
    assert_int_equal(pread(p->fd, &h, sizeof h, 0), sizeof h);
    return h;
}

/* A chunk with so many calls of function `func` that take a unit each, a unit apart. */
static void fill(struct process *p, uint32_t chunk, uint32_t thread, uint64_t sequence,
                 uint32_t func, unsigned calls, enum fm_trace_chunk_state state)
{
    uint16_t words[FM_TRACE_CHUNK_BYTES / 2];
    size_t n = 0;
    for (unsigned i = 0; i < calls; i++) {
        words[n++] = 2 << 2 | FM_TRACE_CALL;
        words[n++] = (uint16_t)func;
        words[n++] = 2 << 2 | FM_TRACE_RETURN;
    }
    struct fm_trace_chunk c = { .state = state,
                                .thread = thread,
                                .tid = 100 + thread,
                                .sequence = sequence,
                                .ticks = 1000000 + sequence * 100000,
                                .ns = 1000000 + sequence * 100000 };
    off_t at = (off_t)FM_TRACE_CHUNKS_AT + (off_t)chunk * FM_TRACE_CHUNK_BYTES;
    assert_int_equal(pwrite(p->fd, words, n * 2, at), n * 2);
    assert_int_equal(pwrite(p->fd, &c, sizeof c, FM_TRACE_DESCRIPTORS_AT + chunk * sizeof c),
                     sizeof c);
    p->handed++;
    assert_int_equal(pwrite(p->fd, &p->handed, 4, offsetof(struct fm_trace_header, handed)), 4);
}

/* Calls of a function of a thread. */
static uint64_t calls_of(const struct fm_trace_log *log, uint32_t thread, uint32_t func)
{
    size_t nodes, threads;
    const struct fm_trace_pack *pack = fm_trace_log_pack(log);
    if (!pack)
        return 0;
    const struct fm_trace_node *node = fm_trace_pack_nodes(pack, &nodes);
    const struct fm_trace_thread *of = fm_trace_pack_threads(pack, &threads);
    uint64_t calls = 0;
    for (size_t i = 0; i < nodes; i++)
        if (node[i].parent != UINT32_MAX && node[i].func == func &&
            of[node[i].thread].thread == thread)
            calls += node[i].calls;
    return calls;
}

static void drain(struct process *p)
{
    while (fm_trace_log_drain(p->log))
        ;
}

/* ---- */

static void test_chunks_go_back(void **state)
{
    (void)state;
    struct process p;
    static const uint8_t zeros[FM_TRACE_CHUNK_BYTES];
    uint8_t bytes[FM_TRACE_CHUNK_BYTES];
    begin(&p);
    fill(&p, 3, 1, 0, 5, 10, FM_TRACE_CHUNK_FULL);
    fill(&p, 4, 2, 0, 6, 20, FM_TRACE_CHUNK_FILLING);
    drain(&p);
    assert_int_equal(calls_of(p.log, 1, 5), 10);
    assert_int_equal(calls_of(p.log, 2, 6), 0);
    assert_int_equal(descriptor(&p, 3).state, FM_TRACE_CHUNK_FREE);
    assert_int_equal(descriptor(&p, 4).state, FM_TRACE_CHUNK_FILLING);
    assert_int_equal(pread(p.fd, bytes, sizeof bytes, FM_TRACE_CHUNKS_AT + 3 * sizeof bytes),
                     sizeof bytes);
    assert_memory_equal(bytes, zeros, sizeof bytes);
    assert_int_equal(header(&p).freed, 1);
    fm_trace_log_end(p.log, 0);
    assert_int_equal(calls_of(p.log, 2, 6), 20);
    struct fm_trace_log_facts facts = fm_trace_log_facts(p.log);
    assert_true(facts.ended);
    assert_int_equal(facts.missing, 0);
    assert_int_equal(facts.failed, 0);
    end(&p);
}

static void test_order_of_a_thread(void **state)
{
    (void)state;
    struct process p;
    begin(&p);
    fill(&p, 0, 1, 1, 5, 1, FM_TRACE_CHUNK_FULL); /* the one before is not there yet */
    drain(&p);
    assert_int_equal(calls_of(p.log, 1, 5), 0);
    assert_int_equal(descriptor(&p, 0).state, FM_TRACE_CHUNK_FULL);
    fill(&p, 9, 1, 0, 5, 2, FM_TRACE_CHUNK_FULL);
    drain(&p);
    assert_int_equal(calls_of(p.log, 1, 5), 3);
    fill(&p, 1, 1, 5, 5, 4, FM_TRACE_CHUNK_FULL); /* three are missing, and will never come */
    fm_trace_log_end(p.log, 0);
    assert_int_equal(calls_of(p.log, 1, 5), 7);
    assert_int_equal(fm_trace_log_facts(p.log).missing, 3);
    end(&p);
}

/* Of a launcher that is gone nothing is missing, and nothing counts twice; and looking changes nothing. */
static void check_recovered(const struct process *p, uint64_t first, uint64_t second)
{
    for (int again = 0; again < 2; again++) {
        struct fm_trace_log *log = fm_trace_log_recover(p->folder, PID, 0, 0);
        assert_non_null(log);
        assert_int_equal(calls_of(log, 1, 5), first);
        assert_int_equal(calls_of(log, 2, 6), second);
        assert_int_equal(fm_trace_log_facts(log).missing, 0);
        fm_trace_log_free(log);
    }
}

static void test_killed_at_any_moment(void **state)
{
    (void)state;
    struct process p;
    begin(&p);
    fill(&p, 0, 1, 0, 5, 10, FM_TRACE_CHUNK_FULL);
    fill(&p, 1, 2, 0, 6, 3, FM_TRACE_CHUNK_FILLING);
    check_recovered(&p, 10, 3); /* before anybody saw it */
    drain(&p);
    check_recovered(&p, 10, 3); /* in the journal */
    fm_trace_log_commit(p.log);
    check_recovered(&p, 10, 3); /* packed */
    fill(&p, 0, 1, 1, 5, 100, FM_TRACE_CHUNK_FULL);
    check_recovered(&p, 110, 3); /* packed, and in a chunk */
    drain(&p);
    check_recovered(&p, 110, 3); /* packed, and in the journal */
    fill(&p, 0, 1, 1, 5, 100, FM_TRACE_CHUNK_FULL);
    check_recovered(&p, 110, 3); /* in the journal, and not freed yet */
    fill(&p, 0, 1, 2, 5, 1000, FM_TRACE_CHUNK_FILLING);
    check_recovered(&p, 1110, 3);
    fm_trace_log_end(p.log, 0);
    check_recovered(&p, 1110, 3); /* all is packed */
    end(&p);
}

/* Blocks that were written and not marked yet: the journal still has what is in them. */
static void test_killed_while_it_packs(void **state)
{
    (void)state;
    struct process p;
    char path[128];
    begin(&p);
    fill(&p, 0, 1, 0, 5, 10, FM_TRACE_CHUNK_FULL);
    drain(&p);
    path_in(&p, path, FM_JOURNAL_SUFFIX);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    uint8_t journal[FM_TRACE_CHUNK_BYTES];
    ssize_t len = pread(fd, journal, sizeof journal, 0);
    assert_true(len > 0);
    fm_trace_log_commit(p.log);
    assert_int_equal(pwrite(fd, journal, (size_t)len, 0), len); /* marked, not begun anew */
    check_recovered(&p, 10, 0);
    path_in(&p, path, FM_PACKED_SUFFIX);
    int packed = open(path, O_RDWR | O_CLOEXEC);
    off_t bytes = lseek(packed, 0, SEEK_END);
    for (off_t cut = bytes - 1; cut > 0; cut--) {
        assert_int_equal(ftruncate(packed, cut), 0);
        check_recovered(&p, 10, 0);
    }
    close(packed);
    close(fd);
    end(&p);
}

/* A chunk of a thread that does one thing, at this moment. */
static void fill_now(struct process *p, uint32_t chunk, uint32_t thread, uint64_t sequence,
                     const uint16_t *words, size_t count, enum fm_trace_chunk_state state)
{
    struct fm_clock_pair now = fm_clock_pair_now();
    fill(p, chunk, thread, sequence, 1, 0, state);
    struct fm_trace_chunk c = descriptor(p, chunk);
    c.ticks = now.ticks;
    c.ns = now.ns;
    off_t at = (off_t)FM_TRACE_CHUNKS_AT + (off_t)chunk * FM_TRACE_CHUNK_BYTES;
    assert_int_equal(pwrite(p->fd, words, count * 2, at), count * 2);
    assert_int_equal(pwrite(p->fd, &c, sizeof c, FM_TRACE_DESCRIPTORS_AT + chunk * sizeof c),
                     sizeof c);
}

/* Nothing is left of the blocks in which a call began that ends now: it is known all the same, and is no call of
 * the window. A chunk that is being taken has the numbers of another still: nothing is missing. */
static void test_forgotten_calls(void **state)
{
    (void)state;
    struct process p;
    const uint16_t call[] = { 2 << 2 | FM_TRACE_CALL, 5 }, back[] = { 2 << 2 | FM_TRACE_RETURN };
    size_t nodes;
    uint64_t ticks = 0;
    begin(&p);
    fm_trace_log_forget(p.log, 1);
    fill_now(&p, 0, 1, 0, call, 2, FM_TRACE_CHUNK_FULL);
    drain(&p);
    drain(&p); /* packed and forgotten */
    fill_now(&p, 0, 1, 1, back, 1, FM_TRACE_CHUNK_FILLING);
    fill(&p, 1, 1, 900, 5, 0, FM_TRACE_CHUNK_FILLING);
    struct fm_trace_log *log = fm_trace_log_recover(p.folder, PID, 0, FM_TRACE_LOG_NOW);
    const struct fm_trace_node *node = fm_trace_pack_nodes(fm_trace_log_pack(log), &nodes);
    for (size_t i = 0; i < nodes; i++)
        ticks += node[i].func == 5 && node[i].thread != UINT32_MAX ? node[i].total_ticks : 0;
    assert_true(ticks > 0);
    assert_int_equal(calls_of(log, 1, 5), 0);
    assert_int_equal(fm_trace_pack_broken(fm_trace_log_pack(log)), 0);
    assert_int_equal(fm_trace_log_facts(log).missing, 0);
    assert_int_equal(fm_trace_log_window_ns(log), 1);
    fm_trace_log_free(log);
    end(&p);
}

static void test_rubbish(void **state)
{
    (void)state;
    struct process p;
    unsigned seed = 1;
    begin(&p);
    fill(&p, 0, 1, 0, 5, 10, FM_TRACE_CHUNK_FULL);
    drain(&p);
    for (int round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < 4096; i++) {
            uint8_t byte = (uint8_t)rand_r(&seed);
            off_t at = rand_r(&seed) % (FM_TRACE_CHUNKS_AT + 4 * FM_TRACE_CHUNK_BYTES);
            if (at >= 64) /* the header stays one */
                assert_int_equal(pwrite(p.fd, &byte, 1, at), 1);
        }
        for (int i = 0; i < 20; i++)
            fm_trace_log_drain(p.log);
        fm_trace_log_free(fm_trace_log_recover(p.folder, PID, 0, 0));
    }
    assert_int_equal(ftruncate(p.fd, 100), 0); /* cut short by a program of the run */
    fm_trace_log_drain(p.log);
    assert_int_equal(ftruncate(p.fd, 0), 0);
    fm_trace_log_drain(p.log);
    fm_trace_log_end(p.log, 0);
    assert_true(calls_of(p.log, 1, 5) >= 10);
    end(&p);
}

/* What cannot be written is told to the process, which goes on. */
static void test_no_room(void **state)
{
    (void)state;
    struct process p;
    struct rlimit before, small;
    begin(&p);
    fill(&p, 0, 1, 0, 5, 10, FM_TRACE_CHUNK_FULL);
    drain(&p);
    assert_int_equal(header(&p).closed, 0);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    small = (struct rlimit){ 200, before.rlim_max };
    fill(&p, 1, 1, 1, 5, 1000, FM_TRACE_CHUNK_FULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    drain(&p);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(fm_trace_log_facts(p.log).failed, EFBIG);
    assert_int_equal(header(&p).closed, 1);
    assert_false(fm_trace_log_drain(p.log));
    fm_trace_log_end(p.log, 0);
    assert_int_equal(calls_of(p.log, 1, 5), 1010); /* the tree has what was taken */
    end(&p);
}

/* The thread finds traces by itself, and those of processes that are gone. */
static void test_watch(void **state)
{
    (void)state;
    struct process p;
    begin(&p);
    fill(&p, 0, 1, 0, 5, 10, FM_TRACE_CHUNK_FULL);
    char from[128], aside[128], to[128];
    int pid = fork();
    if (!pid)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    path_in(&p, from, FM_TRACE_SUFFIX);
    sprintf(to, "%s/%d.3" FM_TRACE_SUFFIX, p.folder, pid);
    sprintf(aside, "%s/aside", p.folder); /* else the thread may take it under its first name */
    assert_int_equal(rename(from, aside), 0);
    struct fm_trace_watch *w = fm_trace_watch_new(p.folder, 0, NULL);
    assert_non_null(w);
    assert_int_equal(rename(aside, to), 0);
    fm_trace_watch_hold(w);
    fm_trace_watch_go_on(w);
    fm_trace_watch_stop(w);
    struct fm_trace_log *log = fm_trace_watch_find(w, pid, 3);
    assert_non_null(log);
    assert_true(fm_trace_log_facts(log).ended);
    assert_int_equal(calls_of(log, 1, 5), 10);
    assert_null(fm_trace_watch_find(w, pid, 4));
    fm_trace_watch_free(w);
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks_go_back),
        cmocka_unit_test(test_order_of_a_thread),
        cmocka_unit_test(test_killed_at_any_moment),
        cmocka_unit_test(test_killed_while_it_packs),
        cmocka_unit_test(test_forgotten_calls),
        cmocka_unit_test(test_rubbish),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_watch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
