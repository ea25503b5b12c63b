/* The order of samples (model/trace/sample_order.h, watch/sampler/order.h): thinned out, through a file, merged,
 * cut off and damaged. */
#include "fixture.h"

#include <stdlib.h>

#include "record/capture/format.h"
#include "record/model/derive/edit.h"
#include "record/model/file/file.h"
#include "scratch_file.h"
#include "watch/sampler/order.h"

enum { A = 1, B = 2, C = 3, MS = 1000000 };

static void expect_items(const struct fm_order_item *items, size_t n,
                         const struct fm_order_item *wanted, size_t n_wanted)
{
    assert_int_equal(n, n_wanted);
    for (size_t i = 0; i < n; i++) {
        assert_true(fm_order_is_equal(&items[i], &wanted[i]));
        assert_int_equal(items[i].count, wanted[i].count);
    }
}

/* Rounds 0 to 15: A B A A | B B B B | C A C A | A … in stretches of four. */
static void test_thinning_forgets_the_order_alone(void **state)
{
    (void)state;
    struct fm_order_item items[] = { { A, 0, 1 }, { B, 0, 1 }, { A, 0, 2 },
                                     { B, 0, 4 }, { C, 0, 1 }, { A, 0, 1 },
                                     { C, 0, 1 }, { A, 0, 1 }, { A, 1, 4 } };
    const struct fm_order_item wanted[] = {
        { A, 0, 3 }, { B, 0, 5 }, { C, 0, 2 }, { A, 0, 2 }, { A, 1, 4 }
    };
    size_t n = fm_order_thin_items(items, FM_COUNT(items), 0, 4);
    expect_items(items, n, wanted, FM_COUNT(wanted));
}

/* What reaches into the next stretch stays where it is: else all between would move far. */
static void test_long_items_do_not_move(void **state)
{
    (void)state;
    struct fm_order_item items[] = { { A, 0, 1 }, { B, 0, 1 }, { A, 0, 1000 } };
    struct fm_order_item wanted[] = { { A, 0, 1 }, { B, 0, 1 }, { A, 0, 1000 } };
    size_t n = fm_order_thin_items(items, FM_COUNT(items), 0, 4);
    expect_items(items, n, wanted, FM_COUNT(wanted));
}

static void test_times_of_an_even_rate_are_two(void **state)
{
    (void)state;
    struct fm_order_time times[50];
    for (uint64_t i = 0; i < 50; i++) /* a pause of a second after round 30 */
        times[i] = (struct fm_order_time){ 1 + i, i * MS + (i > 30 ? 1000 * MS : 0) };
    size_t n = fm_order_thin_times(times, 50, MS / 2);
    assert_int_equal(n, 4);
    assert_int_equal(times[1].round, 31);
    assert_int_equal(times[2].round, 32);
    assert_int_equal(times[3].round, 50);
    struct fm_order_clock clock = { 0 };
    for (size_t i = 0; i < n; i++)
        fm_vec_push(&clock.times, times[i]);
    assert_true(fm_order_clock_ns(&clock, 11) == 10 * MS);
    assert_true(fm_order_clock_ns(&clock, 42) == 1041 * (double)MS);
    fm_vec_release(&clock.times);
}

/* A thread that is seen in rounds 1 to 4 and 7: A A B A, then A. */
static void test_a_thread_is_written_down_as_it_is_seen(void **state)
{
    (void)state;
    struct fm_tally tally = { 0 };
    struct fm_target_order all = { .on = true, .grain = 1 };
    struct fm_thread_order o = { 0 };
    struct fm_raw_frame frames[2] = { { 1, 0 }, { 2, 0 } };
    uint32_t a = fm_tally_row(&tally, 0, &frames[0], 1, false);
    uint32_t b = fm_tally_row(&tally, 0, &frames[1], 1, false);
    const uint32_t seen[] = { a, a, b, a };
    for (uint64_t i = 0; i < 4; i++)
        fm_thread_order_add(&o, &all, &tally, seen[i], FM_STATE_C, 1 + i);
    fm_thread_order_add(&o, &all, &tally, a, FM_STATE_C, 7);
    const struct fm_order_item wanted[] = { { a, FM_STATE_C, 2 },
                                            { b, FM_STATE_C, 1 },
                                            { a, FM_STATE_C, 1 },
                                            { FM_ORDER_UNSEEN, 0, 2 },
                                            { a, FM_STATE_C, 1 } };
    expect_items(o.items.data, o.items.len, wanted, FM_COUNT(wanted));
    assert_int_equal(o.first_round, 1);
    fm_vec_release(&o.items);
    /* In stretches of four rounds: 4, 5, 6, 7 is one, 8 begins the next. */
    o = (struct fm_thread_order){ 0 };
    all.grain = 4;
    const uint32_t then[] = { a, b, a, b, a };
    for (uint64_t i = 0; i < 5; i++)
        fm_thread_order_add(&o, &all, &tally, then[i], FM_STATE_C, 4 + i);
    const struct fm_order_item coarse[] = { { a, FM_STATE_C, 2 },
                                            { b, FM_STATE_C, 2 },
                                            { a, FM_STATE_C, 1 } };
    expect_items(o.items.data, o.items.len, coarse, FM_COUNT(coarse));
    fm_vec_release(&o.items);
    fm_tally_release(&tally);
}

/* One process of two threads, ten rounds of a millisecond from 5 ms on. */
static struct fm_profile *recorded(void)
{
    struct fm_profile *p = fm_profile_new();
    uint32_t first = fx_thread(p, 10), second = fx_thread(p, 11);
    uint32_t a = fx_node(p, first, "a", 1, 1), b = fx_node(p, a, "b", 1, 1);
    uint32_t c = fx_node(p, second, "c", 1, 1);
    const struct fm_order_item items[] = { { a, FM_STATE_PYTHON, 4 }, { b, FM_STATE_C, 5 },
                                           { a, FM_STATE_PYTHON, 1 }, { c, FM_STATE_SLEEP, 2 },
                                           { FM_ORDER_UNSEEN, 0, 3 }, { c, FM_STATE_GIL, 1 } };
    for (size_t i = 0; i < FM_COUNT(items); i++)
        fm_vec_push(&p->order.items, items[i]);
    struct fm_order_lane lanes[] = { { 0, 1, 10, 1, 0, 3 }, { 1, 3, 6, 1, 3, 3 } };
    for (size_t i = 0; i < FM_COUNT(lanes); i++) {
        fm_vec_push(&p->order.lanes, lanes[i]);
        struct fm_order_clock *clock =
            fm_sample_order_clock(&p->order, p->threads.data[lanes[i].thread].process);
        fm_vec_push(&clock->times, ((struct fm_order_time){ 1, 5 * MS }));
        fm_vec_push(&clock->times, ((struct fm_order_time){ 11, 15 * MS }));
    }
    return p;
}

static void expect(const struct fm_profile *p, const struct fm_profile *wanted, size_t times)
{
    const struct fm_sample_order *o = &p->order, *w = &wanted->order;
    assert_int_equal(o->lanes.len, w->lanes.len * times);
    assert_int_equal(o->clocks.len, w->clocks.len * times);
    for (size_t i = 0; i < o->lanes.len; i++) {
        const struct fm_order_lane *lane = &o->lanes.data[i],
                                   *like = &w->lanes.data[i % w->lanes.len];
        uint32_t k = (uint32_t)(i / w->lanes.len);
        assert_int_equal(lane->thread, like->thread + k * wanted->threads.len);
        assert_int_equal(lane->first_round, like->first_round);
        assert_int_equal(lane->rounds, like->rounds);
        assert_int_equal(lane->grain, like->grain);
        assert_int_equal(lane->n, like->n);
        for (uint32_t j = 0; j < lane->n; j++) {
            struct fm_order_item item = w->items.data[like->first + j];
            if (item.node != FM_ORDER_UNSEEN)
                item.node += k * (uint32_t)wanted->nodes.len;
            expect_items(&o->items.data[lane->first + j], 1, &item, 1);
        }
    }
    for (size_t i = 0; i < o->clocks.len; i++) {
        const struct fm_order_clock *clock = &o->clocks.data[i];
        assert_int_equal(clock->times.len, 2);
        assert_int_equal(clock->times.data[1].round, 11);
        assert_int_equal(clock->times.data[1].ns, 15 * MS);
    }
}

static uint8_t *file_of(const struct fm_profile *p, size_t *ret_len)
{
    int fd = fx_file();
    assert_int_equal(fm_file_save_plain(p, fd, NULL), 0);
    return fx_file_bytes(fd, ret_len);
}

static void test_through_a_file(void **state)
{
    (void)state;
    size_t len;
    struct fm_profile *p = recorded(), *sum = fm_profile_new();
    fm_autofree uint8_t *bytes = file_of(p, &len);
    struct fm_profile *read = fm_file_load(bytes, len, "x", NULL);
    assert_int_equal(fx_note(read, "damaged"), 0);
    expect(read, p, 1);
    fm_profile_merge(sum, p);
    fm_profile_merge(sum, read);
    expect(sum, p, 2);
    fm_autofree uint8_t *both = file_of(sum, &len);
    struct fm_profile *again = fm_file_load(both, len, "x", NULL);
    expect(again, p, 2);
    fm_profile_free(p);
    fm_profile_free(read);
    fm_profile_free(sum);
    fm_profile_free(again);
}

/* Whatever is missing or wrong: the lanes that are left stand in the file, and every item names a context. */
static void check(const struct fm_profile *p)
{
    for (size_t i = 0; i < p->order.lanes.len; i++) {
        const struct fm_order_lane *lane = &p->order.lanes.data[i];
        assert_true(lane->thread < p->threads.len);
        assert_true(lane->n && (size_t)lane->first + lane->n <= p->order.items.len);
        for (uint32_t k = 0; k < lane->n; k++) {
            const struct fm_order_item *item = &p->order.items.data[lane->first + k];
            assert_true(item->node == FM_ORDER_UNSEEN || item->node < p->nodes.len);
            assert_true(item->state < FM_STATE_COUNT && item->count);
        }
    }
}

static void test_cut_off_and_damaged(void **state)
{
    (void)state;
    size_t len;
    struct fm_profile *p = recorded();
    fm_autofree uint8_t *bytes = file_of(p, &len);
    for (size_t cut = FM_FILE_HEADER_BYTES; cut < len; cut++) {
        struct fm_profile *read = fm_file_load(bytes, cut, "x", NULL);
        assert_non_null(read);
        check(read);
        fm_profile_free(read);
    }
    for (size_t at = FM_FILE_HEADER_BYTES; at < len; at++) {
        bytes[at] ^= 0x55;
        struct fm_profile *read = fm_file_load(bytes, len, "x", NULL);
        check(read);
        fm_profile_free(read);
        bytes[at] ^= 0x55;
    }
    fm_profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thinning_forgets_the_order_alone),
        cmocka_unit_test(test_long_items_do_not_move),
        cmocka_unit_test(test_times_of_an_even_rate_are_two),
        cmocka_unit_test(test_a_thread_is_written_down_as_it_is_seen),
        cmocka_unit_test(test_through_a_file),
        cmocka_unit_test(test_cut_off_and_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
