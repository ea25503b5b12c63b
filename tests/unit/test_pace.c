/* Rounds at the highest rate: one after the other where all take the same, at a distance where they do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sampler/pace.h"

enum { ROUNDS = 20000, SETTLED = 5000 };

static void test_even_rounds_follow_each_other(void **state)
{
    (void)state;
    struct fm_pace pace = { 0 };
    uint64_t now = 1000000;
    srand(1);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t cost = 3000 + (uint64_t)rand() % 1000;
        now += cost;
        assert_true(fm_pace_next(&pace, cost, now, (uint64_t)rand()) <= now);
    }
}

/* A program that is in turns quick and slow to look at, 50 µs each, at a look of 4 and of 40 µs. */
static void test_instants_do_not_depend_on_what_is_looked_at(void **state)
{
    (void)state;
    struct fm_pace pace = { 0 };
    uint64_t now = 1000000, slow = 0, all = 0, last = 0;
    srand(1);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t begin = now;
        int is_slow = begin / 50000 % 2;
        uint64_t cost = is_slow ? 40000 : 4000;
        now += cost;
        uint64_t next = fm_pace_next(&pace, cost, now, (uint64_t)rand());
        if (i > SETTLED) {
            slow += (uint64_t)is_slow;
            all++;
            assert_true(next < begin + 100000);
            assert_true(begin > last);
        }
        last = begin;
        now = next > now ? next : now;
    }
    /* Half of the time it is slow. Without distances it would be in 4 of 44 looks. */
    assert_in_range(slow * 1000 / all, 485, 515);
}

static void test_waits_are_bounded(void **state)
{
    (void)state;
    struct fm_pace pace = { 0 };
    uint64_t now = 1;
    srand(1);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t cost = i % 8 ? 1000 : 50000000;
        now += cost;
        uint64_t next = fm_pace_next(&pace, cost, now, (uint64_t)rand());
        assert_true(next <= now + 250000);
        now = next > now ? next : now;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_even_rounds_follow_each_other),
        cmocka_unit_test(test_instants_do_not_depend_on_what_is_looked_at),
        cmocka_unit_test(test_waits_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
