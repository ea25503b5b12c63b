/* An account of resident memory (watch/memory/residence.h): which stores may be asked for one. The numbers
 * are those of real programs, in tests/behaviour/test_memory_resident.py. */
#include "fixture.h"

#include <unistd.h>

#include "record/capture/live_heap.h"
#include "scratch_file.h"
#include "watch/memory/residence.h"

#define RSS ((int64_t)1 << 30)

/* Of this very process, by a store that says so much of itself. */
static bool read_by(struct fm_residence *r, uint32_t flags, uint32_t left, uint64_t sample_bytes)
{
    struct fm_heap_header h = {
        .version = FM_HEAP_VERSION, .flags = flags, .left = left, .sample_bytes = sample_bytes
    };
    memcpy(h.magic, FM_HEAP_MAGIC, sizeof h.magic);
    int stores[] = { fx_file(), -1 };
    assert_int_equal(write(stores[0], &h, sizeof h), sizeof h);
    bool done = fm_residence_read(r, getpid(), stores, RSS, 5);
    close(stores[0]);
    return done;
}

static void test_parts_are_all_of_it(void **state)
{
    (void)state;
    struct fm_residence r = { 0 };
    int64_t sum = 0;
    assert_true(read_by(&r, FM_HEAP_READY, FM_HEAP_STAYS, 0));
    assert_int_equal(r.account.rss, RSS);
    assert_int_equal(r.account.at_ns, 5);
    for (int i = 0; i < FM_RESIDENT_PARTS; i++)
        sum += r.account.parts[i];
    assert_int_equal(sum, RSS);
    fm_residence_release(&r);
}

/* A child of fork that has not told what it was born with, or a program that may be gone. */
static void test_none_by_a_store_that_is_not_of_now(void **state)
{
    (void)state;
    struct fm_residence r = { .account = { .rss = 7 } };
    assert_false(read_by(&r, FM_HEAP_FORKED, FM_HEAP_STAYS, 0));
    assert_false(read_by(&r, FM_HEAP_READY, FM_HEAP_EXECUTES, 0));
    assert_int_equal(r.account.rss, 7);
    assert_true(read_by(&r, FM_HEAP_FORKED | FM_HEAP_READY, FM_HEAP_LEFT, 0));
    assert_int_equal(r.account.rss, RSS);
    fm_residence_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_are_all_of_it),
        cmocka_unit_test(test_none_by_a_store_that_is_not_of_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
