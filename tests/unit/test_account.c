/* What was counted, handed over while counting goes on: totals stay, time that is still to come
 * finds its stack, and ended threads are put together by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/memory.h"
#include "watch/sampler/account.h"
#include "watch/sampler/threads.h"

enum { ENDED = 1100, MOST_NS = 1000 };

static struct fm_watched_thread *add_thread(struct fm_target *t, bool gone)
{
    struct fm_watched_thread *th = fm_calloc(1, sizeof *th);
    char name[32];
    th->number = t->n_threads++;
    th->gone = gone;
    th->syscall_fd = th->switches_fd = th->look.stat_fd = -1;
    th->wait = UINT32_MAX;
    snprintf(name, sizeof name, "Thread-%u", th->number);
    th->name = fm_strdup(name);
    if (gone)
        fm_vec_push(&t->ended, th);
    else
        fm_vec_push(&t->live, th);
    return th;
}

/* It has a stack of one frame, which is seen in this round. */
static void see(struct fm_target *t, struct fm_watched_thread *th, uint32_t code)
{
    struct fm_raw_frame frame = { code, 2 };
    th->row = fm_tally_row(&t->tally, th->number, &frame, 1, false);
    fm_tally_add(&t->tally, th->row, FM_STATE_PYTHON);
}

static struct fm_target make_target(void)
{
    struct fm_target t = { .last_round_ns = 100, .exit = { -1 } };
    t.details = fm_strings_new();
    return t;
}

static void release(struct fm_target *t, struct fm_account *a)
{
    fm_threads_free(t);
    fm_tally_release(&t->tally);
    fm_strings_free(t->details);
    fm_account_free(a);
}

static uint64_t sum_ns(const struct fm_tally *t, uint64_t *samples)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < t->rows.len; i++) {
        sum += t->rows.data[i].ns[FM_STATE_PYTHON];
        *samples += t->rows.data[i].samples[FM_STATE_PYTHON];
    }
    return sum;
}

static void test_handing_over_loses_nothing(void **state)
{
    (void)state;
    struct fm_target t = make_target();
    struct fm_account *a = fm_account_new();
    struct fm_watched_thread *th = add_thread(&t, false);
    uint64_t samples = 0;
    for (uint32_t i = 0; i < 10; i++) { /* 10 ns each, in turns two stacks */
        see(&t, th, 7 + i % 2);
        fm_tally_end_round(&t.tally, 10, MOST_NS);
        if (i % 3 == 2)
            fm_account_take(a, &t); /* what it saw last has half of its time still to come */
    }
    fm_account_take(a, &t);
    fm_account_settle(a);
    assert_int_equal(a->tally.rows.len, 2);
    /* Ten rounds of 10 ns; before the first nobody was seen, and the last has no second half yet.
     */
    assert_int_equal(sum_ns(&a->tally, &samples), 5 + 9 * 10);
    assert_int_equal(samples, 10);
    assert_int_equal(a->tally.rows.data[0].samples[FM_STATE_PYTHON], 5);
    /* And who goes on finds its row. */
    const struct fm_tally_row *row = &t.tally.rows.data[th->row];
    assert_int_equal(row->thread, th->number);
    assert_int_equal(t.tally.frames.data[row->first].code, 8);
    release(&t, a);
}

static void test_waits_and_their_texts_are_taken_over(void **state)
{
    (void)state;
    struct fm_target t = make_target();
    struct fm_account *a = fm_account_new();
    struct fm_watched_thread *th = add_thread(&t, false);
    for (int i = 0; i < 3; i++) {
        struct fm_tally_wait wait = { .where = { 7, 2 },
                                      .state = FM_STATE_DISK,
                                      .detail = fm_strings_add_text(t.details, "some file") };
        see(&t, th, 7);
        fm_tally_add_wait(&t.tally, fm_tally_wait(&t.tally, &wait));
        fm_tally_end_round(&t.tally, 10, MOST_NS);
        fm_account_take(a, &t);
    }
    fm_account_settle(a);
    assert_int_equal(a->tally.waits.len, 1);
    assert_int_equal(a->tally.waits.data[0].samples, 3);
    assert_int_equal(a->tally.waits.data[0].ns, 25);
    assert_string_equal(fm_strings_get(a->details, a->tally.waits.data[0].detail), "some file");
    release(&t, a);
}

static void test_ended_threads_are_put_together(void **state)
{
    (void)state;
    struct fm_target t = make_target();
    struct fm_account *a = fm_account_new();
    uint64_t samples = 0;
    for (int i = 0; i < ENDED; i++) {
        struct fm_watched_thread *th = add_thread(&t, true);
        see(&t, th, 7);
        th->cpu_ns = 3;
    }
    struct fm_watched_thread *goes_on = add_thread(&t, false);
    see(&t, goes_on, 8);
    fm_tally_end_round(&t.tally, 10, MOST_NS);
    fm_tally_end_round(&t.tally, 10, MOST_NS);
    fm_account_take(a, &t);
    fm_account_settle(a);
    assert_int_equal(t.ended.len, 0);
    assert_int_equal(a->threads.len, 2);
    assert_int_equal(a->tally.rows.len, 2);
    assert_int_equal(sum_ns(&a->tally, &samples), (ENDED + 1) * 10);
    assert_int_equal(samples, ENDED + 1);
    for (size_t i = 0; i < 2; i++) {
        const struct fm_account_thread *th = &a->threads.data[i];
        assert_string_equal(th->name, th->folded ? "Thread-…" : "Thread-1100");
        assert_int_equal(th->folded, th->folded ? ENDED : 0);
        assert_int_equal(th->cpu_ns, th->folded ? 3 * ENDED : 0);
    }
    /* What the one that goes on does afterwards is counted for it. */
    see(&t, goes_on, 8);
    fm_tally_end_round(&t.tally, 10, MOST_NS);
    fm_account_take(a, &t);
    fm_account_settle(a);
    assert_int_equal(a->tally.rows.len, 2);
    release(&t, a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handing_over_loses_nothing),
        cmocka_unit_test(test_waits_and_their_texts_are_taken_over),
        cmocka_unit_test(test_ended_threads_are_put_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
