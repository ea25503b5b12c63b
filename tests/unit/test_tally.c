/* Time of what was seen in rounds: half of the time before, half of the time after. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "watch/sampler/tally.h"

static uint32_t row_of(struct fm_tally *t, uint32_t code)
{
    struct fm_raw_frame frame = { code, 2 };
    return fm_tally_row(t, 0, &frame, 1, false);
}

static void test_equal_stacks_are_one_row(void **state)
{
    (void)state;
    struct fm_tally t = { 0 };
    uint32_t a = row_of(&t, 1), b = row_of(&t, 2);
    assert_int_not_equal(a, b);
    assert_int_equal(row_of(&t, 1), a);
    assert_int_equal(t.rows.len, 2);
    fm_tally_release(&t);
}

static void test_time_is_shared_between_neighbours(void **state)
{
    (void)state;
    struct fm_tally t = { 0 };
    uint32_t a = row_of(&t, 1), b = row_of(&t, 2);
    fm_tally_add(&t, a, FM_STATE_PYTHON);
    fm_tally_end_round(&t, 100, 1000);
    fm_tally_add(&t, b, FM_STATE_C);
    fm_tally_end_round(&t, 30, 1000);
    fm_tally_add(&t, b, FM_STATE_C);
    fm_tally_end_round(&t, 60, 1000);
    assert_int_equal(t.rows.data[a].samples[FM_STATE_PYTHON], 1);
    assert_int_equal(t.rows.data[a].ns[FM_STATE_PYTHON], 50 + 15);
    assert_int_equal(t.rows.data[b].samples[FM_STATE_C], 2);
    assert_int_equal(t.rows.data[b].ns[FM_STATE_C], 15 + 30 + 30);
    fm_tally_release(&t);
}

/* Who is not seen in the next round (it ended, or gave up the GIL) has the half until then as well: else who stays
 * for many rounds would have more time per sample than who stays for one. */
static void test_who_is_gone_has_his_half(void **state)
{
    (void)state;
    struct fm_tally t = { 0 };
    uint32_t a = row_of(&t, 1);
    struct fm_tally_wait wait = { .where = { 1, 2 }, .state = FM_STATE_LOCK, .detail = 1 };
    fm_tally_add(&t, a, FM_STATE_LOCK);
    fm_tally_add_wait(&t, fm_tally_wait(&t, &wait));
    fm_tally_end_round(&t, 100, 1000);
    fm_tally_end_round(&t, 41, 1000);
    fm_tally_end_round(&t, 1000, 1000);
    assert_int_equal(t.rows.data[a].ns[FM_STATE_LOCK], 50 + 20);
    assert_int_equal(t.waits.data[0].samples, 1);
    assert_int_equal(t.waits.data[0].ns, 50 + 20);
    fm_tally_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_stacks_are_one_row),
        cmocka_unit_test(test_time_is_shared_between_neighbours),
        cmocka_unit_test(test_who_is_gone_has_his_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
