/* Ended threads put together: totals stay, and what a thread that goes on knows by number is renumbered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/memory.h"
#include "sampler/fold.h"
#include "sampler/threads.h"

enum { ENDED = 1100 };

static struct fm_watched_thread *add_thread(struct fm_target *t, bool gone)
{
    struct fm_watched_thread *th = fm_calloc(1, sizeof *th);
    char name[32];
    th->number = (uint32_t)t->threads.len;
    th->gone = gone;
    th->syscall_fd = th->switches_fd = -1;
    snprintf(name, sizeof name, "Thread-%u", th->number);
    th->name = fm_strdup(name);
    fm_vec_push(&t->threads, th);
    if (!gone)
        fm_vec_push(&t->live, th->number);
    return th;
}

/* Each has one stack of its own that was seen for 10 ns. */
static void give_stack(struct fm_target *t, struct fm_watched_thread *th, uint32_t code)
{
    struct fm_raw_frame frame = { code, 2 };
    th->row = fm_tally_row(&t->tally, th->number, &frame, 1, false);
    th->wait = UINT32_MAX;
    fm_tally_add(&t->tally, th->row, FM_STATE_PYTHON);
}

static uint64_t sum_ns(const struct fm_target *t)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < t->tally.rows.len; i++)
        sum += t->tally.rows.data[i].ns[FM_STATE_PYTHON];
    return sum;
}

static void test_who_goes_on_finds_his_row(void **state)
{
    (void)state;
    struct fm_target t = { 0 };
    for (int i = 0; i < ENDED; i++)
        give_stack(&t, add_thread(&t, true), 7);
    struct fm_watched_thread *goes_on = add_thread(&t, false);
    give_stack(&t, goes_on, 8);
    assert_int_equal(t.tally.rows.len, ENDED + 1);
    fm_tally_end_round(&t.tally, 10);
    fm_fold_ended(&t);
    fm_tally_end_round(&t.tally, 10);
    assert_int_equal(t.threads.len, 2);
    assert_int_equal(t.tally.rows.len, 2);
    assert_true(sum_ns(&t) == 10 * (ENDED + 1));
    assert_true(t.threads.data[t.live.data[0]] == goes_on);
    assert_true(goes_on->row < 2);
    const struct fm_tally_row *row = &t.tally.rows.data[goes_on->row];
    assert_int_equal(t.tally.frames.data[row->first].code, 8);
    assert_int_equal(row->thread, goes_on->number);
    fm_tally_release(&t.tally);
    fm_threads_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_goes_on_finds_his_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
