/* When a growing recording is saved: worked out by hand from the rule in save_times.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "commands/save_times.h"

#define S  1000000000ull
#define MS 1000000ull

static void test_intervals_grow(void **state)
{
    (void)state;
    /* Saving takes no time: after 1 s, then 2, 4, 8, 16, 32, 60, 60 s later. */
    static const uint64_t due_s[] = { 1, 3, 7, 15, 31, 63, 123, 183 };
    struct fm_save_times t;
    fm_save_times_begin(&t, 100 * S);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(t.next_ns, (100 + due_s[i]) * S);
        fm_save_times_done(&t, t.next_ns, t.next_ns);
    }
}

static void test_saving_takes_long(void **state)
{
    (void)state;
    /* 30 ms of saving: not before 3 s have passed; the 4 s after that are longer than those. */
    struct fm_save_times t;
    fm_save_times_begin(&t, 0);
    fm_save_times_done(&t, 1 * S, 1 * S + 30 * MS);
    assert_int_equal(t.next_ns, 4 * S);
    fm_save_times_done(&t, 4 * S, 4 * S + 30 * MS);
    assert_int_equal(t.next_ns, 8 * S);
    fm_save_times_done(&t, 8 * S, 10 * S);
    assert_int_equal(t.next_ns, 208 * S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_intervals_grow),
        cmocka_unit_test(test_saving_takes_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
