/* Calls that a torn copy explains better than the program; see sampler/unlikely.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sampler/unlikely.h"

enum { MAIN, A, B, D, E, LOG, SELDOM };

/* A row with `samples` samples of these frames, newest first; its number. */
static uint32_t add(struct fm_tally *t, const struct fm_raw_frame *frames, uint32_t n, uint64_t samples)
{
    uint32_t row = fm_tally_row(t, 0, frames, n, false);
    t->rows.data[row].samples[FM_STATE_PYTHON] += samples;
    return row;
}

static uint32_t cut(struct fm_tally *t, uint32_t row)
{
    struct fm_unlikely u;
    fm_unlikely_init(&u, t);
    uint32_t n = fm_unlikely_cut(&u, &t->rows.data[row]);
    fm_unlikely_release(&u);
    return n;
}

/* main calls a, which calls b at 2; and d, which calls e at 2. */
static void add_honest(struct fm_tally *t)
{
    const struct fm_raw_frame ab[] = { { B, 0 }, { A, 2 }, { MAIN, 4 } };
    const struct fm_raw_frame de[] = { { E, 0 }, { D, 2 }, { MAIN, 8 } };
    assert_int_equal(cut(t, add(t, ab, 3, 5000)), 0);
    assert_int_equal(cut(t, add(t, de, 3, 5000)), 0);
}

static void test_torn_stack_is_cut_at_the_call_that_never_was(void **state)
{
    struct fm_tally t = { 0 };
    const struct fm_raw_frame torn[] = { { E, 0 }, { A, 2 }, { MAIN, 4 } };
    (void)state;
    add_honest(&t);
    uint32_t row = add(&t, torn, 3, 20); /* 20 of 5020 at a's call, 20 of 5020 of e */
    assert_int_equal(cut(&t, row), 1);   /* e goes, main and a stay */
    fm_tally_release(&t);
}

/* Of functions that are seen ten thousand times as often, elsewhere, a few are torn too. */
static void test_a_handful_of_many(void **state)
{
    struct fm_tally t = { 0 };
    const struct fm_raw_frame ab[] = { { B, 0 }, { A, 2 }, { MAIN, 4 } };
    const struct fm_raw_frame de[] = { { E, 0 }, { D, 2 }, { MAIN, 8 } };
    const struct fm_raw_frame other[] = { { E, 0 }, { A, 6 }, { MAIN, 4 } };
    (void)state;
    add(&t, ab, 3, 60000);
    add(&t, de, 3, 60000);
    assert_int_equal(cut(&t, add(&t, other, 3, 5)), 1);
    assert_int_equal(cut(&t, add(&t, other, 3, 5)), 0); /* ten are too many */
    fm_tally_release(&t);
}

static void test_what_is_above_goes_too(void **state)
{
    struct fm_tally t = { 0 };
    const struct fm_raw_frame torn[] = { { LOG, 0 }, { E, 6 }, { A, 2 }, { MAIN, 4 } };
    (void)state;
    add_honest(&t);
    assert_int_equal(cut(&t, add(&t, torn, 4, 20)), 2);
    fm_tally_release(&t);
}

static void test_seldom_target_without_other_callers_stays(void **state)
{
    struct fm_tally t = { 0 };
    const struct fm_raw_frame seldom[] = { { SELDOM, 0 }, { A, 2 }, { MAIN, 4 } };
    (void)state;
    add_honest(&t);
    assert_int_equal(cut(&t, add(&t, seldom, 3, 20)), 0);
    fm_tally_release(&t);
}

static void test_seldom_caller_that_calls_nothing_else_there_stays(void **state)
{
    struct fm_tally t = { 0 };
    const struct fm_raw_frame seldom[] = { { B, 0 }, { SELDOM, 2 }, { MAIN, 6 } };
    (void)state;
    add_honest(&t);
    assert_int_equal(cut(&t, add(&t, seldom, 3, 20)), 0);
    fm_tally_release(&t);
}

static void test_a_call_that_is_not_rare_stays(void **state)
{
    struct fm_tally t = { 0 };
    const struct fm_raw_frame both[] = { { E, 0 }, { A, 2 }, { MAIN, 4 } };
    (void)state;
    add_honest(&t);
    assert_int_equal(cut(&t, add(&t, both, 3, 500)), 0); /* one in 11 */
    fm_tally_release(&t);
}

static void test_few_samples_prove_nothing(void **state)
{
    struct fm_tally t = { 0 };
    const struct fm_raw_frame ab[] = { { B, 0 }, { A, 2 } };
    const struct fm_raw_frame de[] = { { E, 0 }, { D, 2 } };
    const struct fm_raw_frame ae[] = { { E, 0 }, { A, 2 } };
    (void)state;
    add(&t, ab, 2, 200);
    add(&t, de, 2, 200);
    assert_int_equal(cut(&t, add(&t, ae, 2, 1)), 0);
    fm_tally_release(&t);
}

static void test_recursion_makes_the_first_call_no_rarer(void **state)
{
    struct fm_tally t = { 0 };
    struct fm_raw_frame deep[42] = { { B, 0 } };
    (void)state;
    for (int i = 1; i < 41; i++)
        deep[i] = (struct fm_raw_frame){ A, 2 };
    deep[41] = (struct fm_raw_frame){ MAIN, 4 };
    add_honest(&t);
    assert_int_equal(cut(&t, add(&t, deep, 42, 5000)), 0);
    fm_tally_release(&t);
}

static void test_blocked_threads_are_never_cut(void **state)
{
    struct fm_tally t = { 0 };
    const struct fm_raw_frame rare[] = { { E, 0 }, { A, 2 }, { MAIN, 4 } };
    (void)state;
    add_honest(&t);
    uint32_t row = fm_tally_row(&t, 0, rare, 3, false);
    t.rows.data[row].samples[FM_STATE_LOCK] = 20;
    assert_int_equal(cut(&t, row), 0);
    fm_tally_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torn_stack_is_cut_at_the_call_that_never_was),
        cmocka_unit_test(test_a_handful_of_many),
        cmocka_unit_test(test_what_is_above_goes_too),
        cmocka_unit_test(test_seldom_target_without_other_callers_stays),
        cmocka_unit_test(test_seldom_caller_that_calls_nothing_else_there_stays),
        cmocka_unit_test(test_a_call_that_is_not_rare_stays),
        cmocka_unit_test(test_few_samples_prove_nothing),
        cmocka_unit_test(test_recursion_makes_the_first_call_no_rarer),
        cmocka_unit_test(test_blocked_threads_are_never_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
