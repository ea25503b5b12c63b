/* Which thread of the kernel a Python thread is: records of the C library are made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "watch/cpython/thread_ids.h"

#define WORDS 256
#define AT(i) (0x10000ull * ((i) + 1)) /* where record number i lies */
#if defined(__aarch64__)
#define GLIBC 52 /* the word that has the number in glibc's records */
#else
#define GLIBC 180
#endif

/* A process that consists of records. */
struct fake {
    int32_t records[4][WORDS];
    int n, reads;
};

static int fake_read(const struct fm_remote *remote, const struct fm_span *spans, int n)
{
    struct fake *fake = remote->data;
    for (int i = 0; i < n; i++) {
        uint64_t record = spans[i].at / 0x10000 - 1, offset = spans[i].at % 0x10000;
        fake->reads++;
        if (record >= (uint64_t)fake->n || offset + spans[i].len > sizeof fake->records[0])
            return i ? i : -EFAULT;
        memcpy(spans[i].into, (char *)fake->records[record] + offset, spans[i].len);
    }
    return n;
}

static const struct fm_remote_source source = { .read = fake_read };

/* Find the numbers of `n` threads, whose records are 0, 1, … and whose notes are given; the process
 * has the threads `live`, 0 at the end, which it calls by numbers that are `shift` smaller. */
static void find(struct fake *fake, const uint64_t *notes, size_t n, const pid_t *live, pid_t shift,
                 struct fm_thread_id *ids)
{
    struct fm_remote remote = { .source = &source, .data = fake };
    struct fm_tids tids = { .process = live[0] };
    for (size_t i = 0; live[i]; i++)
        fm_vec_push(&tids.list, ((struct fm_tid){ live[i], live[i] - shift }));
    for (size_t i = 0; i < n; i++)
        ids[i] = (struct fm_thread_id){ .ident = AT(i), .native = notes[i], .tid = -1 };
    fake->reads = 0;
    fm_thread_ids_find(&remote, ids, n, &tids);
    fm_tids_release(&tids);
}

static void test_notes_are_right(void **state)
{
    (void)state;
    struct fake fake = { .n = 2 };
    struct fm_thread_id ids[2];
    find(&fake, (uint64_t[]){ 105, 100 }, 2, (pid_t[]){ 100, 103, 105, 0 }, 0, ids);
    assert_int_equal(ids[0].tid, 105);
    assert_int_equal(ids[1].tid, 100);
    assert_int_equal(fake.reads, 0); /* nothing had to be looked up */
}

static void test_no_notes(void **state)
{
    (void)state;
    /* 3.9: a worker and the main thread. A word in front of the right one happens to be a thread of
     * the process, in one record; another is the same in both. */
    for (int place = GLIBC; place >= 12; place -= GLIBC - 12) { /* glibc's, and somebody else's */
        struct fake fake = { .n = 2 };
        struct fm_thread_id ids[2];
        fake.records[0][place] = 105;
        fake.records[1][place] = 100;
        fake.records[0][5] = 103;
        fake.records[1][5] = 77;
        fake.records[0][6] = fake.records[1][6] = 100;
        find(&fake, (uint64_t[]){ 0, 0 }, 2, (pid_t[]){ 100, 103, 105, 0 }, 0, ids);
        assert_int_equal(ids[0].tid, 105);
        assert_int_equal(ids[1].tid, 100);
    }
}

static void test_one_thread_among_others_of_c(void **state)
{
    (void)state;
    /* Small numbers, as in a container, are everywhere: the usual place is believed first. */
    struct fake fake = { .n = 1 };
    struct fm_thread_id ids[1];
    fake.records[0][6] = 901 - 900;
    fake.records[0][GLIBC] = 908 - 900;
    fake.records[0][GLIBC + 1] = 901 - 900; /* old ones have the process's number behind it */
    find(&fake, (uint64_t[]){ 0 }, 1, (pid_t[]){ 901, 908, 0 }, 900, ids);
    assert_int_equal(ids[0].tid, 908);
}

static void test_forked_plainly(void **state)
{
    (void)state;
    /* The parent's threads were 51 and 50. Its child is process 100; it inherited both notes, and
     * only the thread that forked: the C library has cleared the other's record. */
    struct fake fake = { .n = 3 };
    struct fm_thread_id ids[3];
    fake.records[1][GLIBC] = 100;
    find(&fake, (uint64_t[]){ 51, 50 }, 2, (pid_t[]){ 100, 0 }, 0, ids);
    assert_int_equal(ids[0].tid, 0);
    assert_int_equal(ids[1].tid, 100);
    /* A thread that was made afterwards is noted right, and shows where to look. */
    fake.records[0][GLIBC] = 104;
    fake.records[0][6] = 100;
    fake.records[1][6] = 104;
    find(&fake, (uint64_t[]){ 104, 50 }, 2, (pid_t[]){ 100, 104, 0 }, 0, ids);
    assert_int_equal(ids[0].tid, 104);
    assert_int_equal(ids[1].tid, 100);
}

static void test_not_begun_ended_unreadable(void **state)
{
    (void)state;
    struct fake fake = { .n = 3 };
    struct fm_thread_id ids[4];
    struct fm_remote remote = { .source = &source, .data = &fake };
    struct fm_tids tids = { .process = 100 };
    fm_vec_push(&tids.list, ((struct fm_tid){ 100, 100 }));
    /* Until it runs, a new thread is noted as the one that made it. */
    ids[0] = ids[1] = (struct fm_thread_id){ .ident = AT(0), .native = 100 };
    fm_thread_ids_find(&remote, ids, 2, &tids);
    assert_int_equal(ids[0].tid, 0);
    assert_int_equal(ids[1].tid, 100);
    fm_tids_release(&tids);
    /* One has ended, of another the record is gone. */
    fake.records[0][GLIBC] = 0;
    fake.records[1][GLIBC] = 105;
    fake.records[2][GLIBC] = 100;
    find(&fake, (uint64_t[]){ 0, 0, 0, 0 }, 4, (pid_t[]){ 100, 105, 0 }, 0, ids);
    assert_int_equal(ids[0].tid, 0);
    assert_int_equal(ids[1].tid, 105);
    assert_int_equal(ids[2].tid, 100);
    assert_int_equal(ids[3].tid, 0);
}

static void test_nothing(void **state)
{
    (void)state;
    struct fake fake = { .n = 1 };
    struct fm_thread_id ids[1];
    find(&fake, (uint64_t[]){ 50 }, 1, (pid_t[]){ 100, 0 }, 0, ids);
    assert_int_equal(ids[0].tid, 0);
    find(&fake, NULL, 0, (pid_t[]){ 100, 0 }, 0, ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notes_are_right),
        cmocka_unit_test(test_no_notes),
        cmocka_unit_test(test_one_thread_among_others_of_c),
        cmocka_unit_test(test_forked_plainly),
        cmocka_unit_test(test_not_begun_ended_unreadable),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
