/* The descriptions of metrics and states: what everybody relies on, and combining numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "record/model/derive/weigh.h"
#include "show/report/metric.h"
#include "show/report/number.h"

static void names_are_unique(void **test_state)
{
    (void)test_state;
    for (int a = 0; a < FM_METRIC_COUNT; a++) {
        const struct fm_metric_info *info = fm_metric_info((enum fm_metric)a);
        assert_true(*info->name && *info->title);
        assert_int_equal(fm_metric_named(info->name), a);
        /* the page's sums of states */
        assert_string_not_equal(info->name, "running");
        assert_string_not_equal(info->name, "waiting");
        for (int b = 0; b < FM_METRIC_COUNT; b++)
            assert_string_not_equal(info->total_name, fm_metric_name((enum fm_metric)b));
    }
    assert_int_equal(fm_metric_named("none of them"), FM_METRIC_COUNT);
}

static void states_can_be_told_apart(void **test_state)
{
    (void)test_state;
    for (int a = 0; a < FM_STATE_COUNT; a++) {
        const struct fm_state_info *one = fm_state_info((enum fm_state)a);
        assert_string_equal(one->name, fm_metric_name(fm_metric_of_state((enum fm_state)a)));
        assert_true(one->light && one->dark);
        for (int b = 0; b < a; b++) {
            const struct fm_state_info *other = fm_state_info((enum fm_state)b);
            assert_int_not_equal(one->letter, other->letter);
            assert_string_not_equal(one->word, other->word);
            assert_int_not_equal(one->light, other->light);
            assert_int_not_equal(one->dark, other->dark);
        }
    }
    assert_int_equal(fm_states_running(), 1u << FM_STATE_PYTHON | 1u << FM_STATE_C);
    assert_string_equal(fm_state_name((enum fm_state)FM_STATE_COUNT), "?");
}

static void numbers_combine(void **test_state)
{
    (void)test_state;
    assert_int_equal(fm_metric_combine(FM_METRIC_CALLS, 2, 3), 5);
    assert_int_equal(fm_metric_combine(FM_METRIC_CALLS, INT64_MAX, 3), INT64_MAX);
    assert_int_equal(fm_metric_combine(FM_METRIC_MIN, 0, 3), 3);
    assert_int_equal(fm_metric_combine(FM_METRIC_MIN, 2, 3), 2);
    assert_int_equal(fm_metric_combine(FM_METRIC_MIN, 2, 0), 2);
    assert_int_equal(fm_metric_combine(FM_METRIC_MAX, 2, 3), 3);
}

static void numbers_have_units(void **test_state)
{
    char text[FM_NUMBER_BYTES];
    (void)test_state;
    assert_string_equal(fm_number_of(text, FM_UNIT_COUNT, 12345), "12,345");
    assert_string_equal(fm_number_of(text, FM_UNIT_NS, 1500), "1.50 µs");
    assert_string_equal(fm_number_of(text, FM_UNIT_SHARE, 567000), "56.7 %");
    assert_string_equal(fm_number_of(text, FM_UNIT_BYTES, 0), "0");
    assert_string_equal(fm_number_of(text, FM_UNIT_BYTES, 999), "999 B");
    assert_string_equal(fm_number_of(text, FM_UNIT_BYTES, 1000), "0.98 KiB");
    assert_string_equal(fm_number_of(text, FM_UNIT_BYTES, 3 << 20), "3.00 MiB");
    assert_string_equal(fm_number_of(text, FM_UNIT_BYTES, 12 << 20), "12.0 MiB");
    assert_string_equal(fm_number_of(text, FM_UNIT_BYTES, -(300 << 20)), "-300 MiB");
}

static void sizes_are_told_apart(void **test_state)
{
    static const struct {
        int64_t a, b;
        const char *text_a, *text_b;
    } cases[] = {
        { 100 << 20, 120 << 20, "100 MiB", "120 MiB" },
        { 100 << 20, 100 << 20, "100 MiB", "100 MiB" },
        { (100 << 20) + (205 << 10), 100 << 20, "100.2 MiB", "100.0 MiB" },
        { (5 << 20) + 1024, 5 << 20, "5.001 MiB", "5.000 MiB" },
        { (100 << 20) + 1, 100 << 20, "104,857,601 B", "104,857,600 B" },
    };
    (void)test_state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char a[FM_NUMBER_BYTES], b[FM_NUMBER_BYTES];
        fm_number_bytes_apart(a, cases[i].a, b, cases[i].b);
        assert_string_equal(a, cases[i].text_a);
        assert_string_equal(b, cases[i].text_b);
    }
}

/* main 10 ms, 2 calls, 1 resume → f 4 ms, 3 calls */
static void calls_take_the_place_of_time(void **test_state)
{
    struct fm_error err = FM_ERROR_INIT;
    struct fm_profile *p = fm_profile_new();
    struct fm_function f = { .kind = FM_FUNCTION_PYTHON };
    (void)test_state;
    fm_profile_process(p, &(struct fm_process){ .calls = true, .sampled = true });
    uint32_t thread = fm_profile_thread(p, &(struct fm_thread){ 0 });
    uint32_t root = p->threads.data[thread].root;
    f.name = f.qualname = fm_profile_string(p, "main");
    uint32_t top = fm_profile_node(p, root, fm_profile_function(p, &f));
    f.name = f.qualname = fm_profile_string(p, "f");
    uint32_t low = fm_profile_node(p, top, fm_profile_function(p, &f));
    fm_profile_add(p, FM_METRIC_TOTAL, top, 10000000);
    fm_profile_add(p, FM_METRIC_TOTAL, low, 4000000);
    fm_profile_add(p, FM_METRIC_CALLS, top, 2);
    fm_profile_add(p, FM_METRIC_RESUMES, top, 1);
    fm_profile_add(p, FM_METRIC_CALLS, low, 3);
    fm_profile_add(p, FM_METRIC_MAX, low, 3000000);
    assert_int_equal(fm_profile_weigh(p, "nonsense", &err), FM_USAGE);
    assert_non_null(
        strstr(err.text, "there are total, calls, resumes, suspended, samples, peak, "));
    assert_int_equal(fm_profile_weigh(p, "max", &err), FM_USAGE);
    assert_int_equal(fm_profile_weigh(p, "samples", &err), FM_UNSUPPORTED);
    assert_int_equal(fm_profile_weigh(p, "total", &err), 0);
    assert_int_equal(fm_profile_value(p, FM_METRIC_TOTAL, top), 10000000);
    assert_int_equal(fm_profile_weigh(p, "calls", &err), 0);
    assert_int_equal(fm_profile_value(p, FM_METRIC_TOTAL, root), 6);
    assert_int_equal(fm_profile_value(p, FM_METRIC_TOTAL, top), 6);
    assert_int_equal(fm_profile_value(p, FM_METRIC_TOTAL, low), 3);
    assert_int_equal(fm_profile_value(p, FM_METRIC_MAX, low), 0);
    assert_int_equal(fm_profile_value(p, FM_METRIC_CALLS, low), 3);
    assert_string_equal(fm_profile_fact_get(p, "unit"), "calls");
    fm_profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_unique),     cmocka_unit_test(states_can_be_told_apart),
        cmocka_unit_test(numbers_combine),      cmocka_unit_test(numbers_have_units),
        cmocka_unit_test(sizes_are_told_apart), cmocka_unit_test(calls_take_the_place_of_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
