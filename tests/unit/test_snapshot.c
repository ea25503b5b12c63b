/* Pages of a made-up process: what is read in one step, what is missing, what cannot be read, and
 * hints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "watch/os/remote/snapshot.h"

enum {
    PAGE = FM_SNAPSHOT_PAGE,
    FIRST = 0x10000,
    PAGES = 4
}; /* of memory, of which the third is not mapped */

static int steps, pieces;

static bool is_mapped(fm_addr at)
{
    return at >= FIRST && at < FIRST + PAGES * PAGE && at / PAGE != FIRST / PAGE + 2;
}

/* Each byte is the number of its page + its place in it, cut off. */
static uint8_t byte_at(fm_addr at)
{
    return (uint8_t)(at / PAGE + at % PAGE);
}

static int read_memory(const struct fm_remote *remote, const struct fm_span *spans, int n)
{
    (void)remote;
    steps++;
    for (int i = 0; i < n; i++) {
        pieces++;
        for (size_t k = 0; k < spans[i].len; k++) {
            if (!is_mapped(spans[i].at + k))
                return i ? i : -EFAULT;
            ((uint8_t *)spans[i].into)[k] = byte_at(spans[i].at + k);
        }
    }
    return n;
}

static const struct fm_remote_source source = { read_memory };
static const struct fm_remote remote = { &source, 0, NULL };

static int begin(void **state)
{
    (void)state;
    steps = pieces = 0;
    return 0;
}

static void test_neighbours_are_one_piece_and_the_tail_comes_last(void **state)
{
    (void)state;
    struct fm_snapshot s = { 0 };
    uint8_t bytes[16], tail_byte = 0;
    fm_addr missing;
    struct fm_span tail = { FIRST + 3 * PAGE + 5, &tail_byte, 1 };
    assert_true(fm_snapshot_want(&s, FIRST + 17));
    assert_false(fm_snapshot_want(&s, FIRST + 18));
    assert_true(fm_snapshot_want(&s, FIRST + PAGE));
    assert_int_equal(fm_snapshot_read(&s, FIRST, bytes, 1, &missing), FM_SNAPSHOT_MISSING);
    assert_int_equal(fm_snapshot_fetch(&s, &remote, &tail, 1), 0);
    assert_int_equal(steps, 1);
    assert_int_equal(pieces, 2);
    assert_int_equal(tail_byte, byte_at(FIRST + 3 * PAGE + 5));
    /* Over the border of two pages. */
    assert_int_equal(fm_snapshot_read(&s, FIRST + PAGE - 8, bytes, 16, &missing), FM_SNAPSHOT_HERE);
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(bytes[i], byte_at(FIRST + PAGE - 8 + i));
    assert_int_equal(fm_snapshot_read(&s, FIRST + 2 * PAGE - 8, bytes, 16, &missing),
                     FM_SNAPSHOT_MISSING);
    assert_int_equal(missing, FIRST + 2 * PAGE);
    fm_snapshot_release(&s);
}

static void test_a_page_that_is_not_there_spoils_no_other(void **state)
{
    (void)state;
    struct fm_snapshot s = { 0 };
    uint8_t byte;
    fm_addr missing;
    struct fm_span tail = { FIRST, &byte, 1 };
    for (int i = 0; i < PAGES; i++)
        fm_snapshot_want(&s, FIRST + (fm_addr)i * PAGE);
    assert_int_equal(fm_snapshot_fetch(&s, &remote, &tail, 1), 0);
    for (int i = 0; i < PAGES; i++)
        assert_int_equal(fm_snapshot_read(&s, FIRST + (fm_addr)i * PAGE, &byte, 1, &missing),
                         i == 2 ? FM_SNAPSHOT_UNREADABLE : FM_SNAPSHOT_HERE);
    fm_snapshot_release(&s);
}

static void test_a_tail_that_is_not_there_is_an_error(void **state)
{
    (void)state;
    struct fm_snapshot s = { 0 };
    uint8_t byte;
    struct fm_span tail = { 8, &byte, 1 };
    fm_snapshot_want(&s, FIRST);
    assert_true(fm_snapshot_fetch(&s, &remote, &tail, 1) < 0);
    fm_snapshot_release(&s);
}

static void test_hints_are_what_was_of_use(void **state)
{
    (void)state;
    struct fm_snapshot s = { 0 };
    struct fm_snapshot_hints hints = { 0 };
    uint8_t byte;
    fm_addr missing;
    fm_snapshot_want(&s, FIRST + PAGE);
    fm_snapshot_want(&s, FIRST);
    fm_snapshot_want(&s, FIRST + 3 * PAGE);
    fm_snapshot_fetch(&s, &remote, NULL, 0);
    fm_snapshot_read(&s, FIRST + PAGE, &byte, 1, &missing);
    fm_snapshot_read(&s, FIRST, &byte, 1, &missing);
    fm_snapshot_learn(&s, &hints);
    assert_int_equal(hints.len, 2);
    assert_int_equal(hints.data[0].at, FIRST); /* in the order of addresses */
    assert_int_equal(hints.data[1].at, FIRST + PAGE);
    for (int i = 0; i < 40; i++) { /* one is needed on, the other is not */
        fm_snapshot_clear(&s);
        fm_snapshot_want_hints(&s, &hints);
        fm_snapshot_fetch(&s, &remote, NULL, 0);
        fm_snapshot_read(&s, FIRST, &byte, 1, &missing);
        fm_snapshot_learn(&s, &hints);
    }
    assert_int_equal(hints.len, 1);
    assert_int_equal(hints.data[0].at, FIRST);
    free(hints.data);
    fm_snapshot_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_neighbours_are_one_piece_and_the_tail_comes_last, begin),
        cmocka_unit_test_setup(test_a_page_that_is_not_there_spoils_no_other, begin),
        cmocka_unit_test_setup(test_a_tail_that_is_not_there_is_an_error, begin),
        cmocka_unit_test_setup(test_hints_are_what_was_of_use, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
