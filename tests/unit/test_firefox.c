/* Firefox Profiler's JSON: samples in the order of time, where it is known. The rest is in tests/behaviour/test_firefox.py. */
#include "fixture.h"

#include "base/memory.h"
#include "record/formats/format.h"

/*
 * A thread that began at 1000 ns. main had 90 ns in Python and 30 asleep, f below it 60 in C. In rounds 1, 2, … of 10 ns from
 * 1000 on: main, main, f, f, (not seen), main, f, main asleep. Of f's 60 ns, 40 are of the first two of its three rounds; of main's
 * 90 ns, 60 of the first two of three.
 */
static struct fm_profile *sampled(void)
{
    struct fm_profile *p = fm_profile_new();
    uint32_t top = fx_node(p, fx_thread(p, 7), "main", 0, 180), f = fx_node(p, top, "f", 0, 60);
    fm_profile_add(p, FM_METRIC_STATE_PYTHON, top, 90);
    fm_profile_add(p, FM_METRIC_STATE_SLEEP, top, 30);
    fm_profile_add(p, FM_METRIC_STATE_C, f, 60);
    fm_profile_add(p, FM_METRIC_SAMPLES, top, 4);
    p->processes.data[0].sampled = true;
    p->processes.data[0].start_ns = 900;
    p->threads.data[0].start_ns = 1000;
    const struct fm_order_item items[] = {
        { top, FM_STATE_PYTHON, 2 }, { f, FM_STATE_C, 2 }, { FM_ORDER_UNSEEN, 0, 1 },
        { top, FM_STATE_PYTHON, 1 }, { f, FM_STATE_C, 1 }, { top, FM_STATE_SLEEP, 1 },
    };
    for (size_t i = 0; i < FM_COUNT(items); i++)
        fm_vec_push(&p->order.items, items[i]);
    struct fm_order_lane lane = { .first_round = 1, .rounds = 8, .n = FM_COUNT(items) };
    fm_vec_push(&p->order.lanes, lane);
    struct fm_order_clock *clock = fm_sample_order_clock(&p->order, 0);
    fm_vec_push(&clock->times, ((struct fm_order_time){ 1, 1000 }));
    fm_vec_push(&clock->times, ((struct fm_order_time){ 101, 2000 }));
    return p;
}

static void expect(struct fm_profile *p, const char *const *texts, size_t n)
{
    fm_autobuffer out = FM_BUFFER_INIT;
    struct fm_error err = FM_ERROR_INIT;
    assert_int_equal(fm_format_firefox.save(p, &out, &err), 0);
    for (size_t i = 0; i < n; i++)
        if (!strstr(out.data, texts[i]))
            fail_msg("\"%s\" is not in %s", texts[i], out.data);
    fm_profile_free(p);
}

/* Stacks: main as a caller is 0, in Python 1, f in C on it 2, main asleep 3. Times are ms since the process began. */
static void test_order(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "\"stack\":[1,2,null,1,2,3,null]",
        "\"time\":[0.0001,0.00012,0.00014,0.00015,0.00016,0.00017,0.00018]",
        "\"weight\":[0.00006,0.00004,0,0.00003,0.00002,0.00003,0]",
    };
    expect(sampled(), texts, FM_COUNT(texts));
}

/* What the order does not know stands behind the rest: sums stay those of the tree. */
static void test_rest(void **state)
{
    (void)state;
    struct fm_profile *p = sampled();
    uint32_t top = fx_child(p, p->threads.data[0].root, "main");
    fm_profile_add(p, FM_METRIC_STATE_GIL, top, 5);
    fm_profile_add(p, FM_METRIC_TOTAL, top, 5);
    static const char *const texts[] = {
        "\"stack\":[1,2,null,1,2,3,null,4]",
        "\"weight\":[0.00006,0.00004,0,0.00003,0.00002,0.00003,0,0.000005]",
    };
    expect(p, texts, FM_COUNT(texts));
}

/* Beside recorded calls the tree has exact times, which samples do not explain. */
static void test_calls_have_no_order(void **state)
{
    (void)state;
    struct fm_profile *p = sampled();
    p->processes.data[0].calls = true;
    static const char *const texts[] = { "\"time\":[0.0001,0.00019,0.00022]",
                                         "\"weight\":[0.00009,0.00003,0.00006]" };
    expect(p, texts, FM_COUNT(texts));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_rest),
        cmocka_unit_test(test_calls_have_no_order),
    };
    return cmocka_run_group_tests_name("firefox", tests, NULL, NULL);
}
