/* Fold, filter, root, merge and glob against trees worked out by hand. */
#include "fixture.h"

#include "record/model/derive/edit.h"

static uint32_t root_of(const struct fm_profile *p)
{
    return p->threads.data[0].root;
}

static void test_fold_wrapper(void **state)
{
    (void)state;
    /* main(100) → wrapper(90) → { f(50), g(30) }, and main → f(5) directly. */
    struct fm_profile *p = fm_profile_new();
    uint32_t root = fx_thread(p, 7);
    uint32_t top = fx_node(p, root, "main", 1, 100);
    fm_profile_add(p, FM_METRIC_TOTAL, root, 100);
    uint32_t wrapper = fx_node(p, top, "wrapper", 3, 90);
    uint32_t f = fx_node(p, wrapper, "f", 2, 50);
    fx_node(p, wrapper, "g", 1, 30);
    uint32_t direct = fx_node(p, top, "f", 1, 5);
    fm_profile_add(p, FM_METRIC_MIN, f, 20);
    fm_profile_add(p, FM_METRIC_MAX, f, 30);
    fm_profile_add(p, FM_METRIC_MIN, direct, 5);
    fm_profile_add(p, FM_METRIC_MAX, direct, 5);
    struct fm_profile *folded = fm_profile_fold(p, fm_function_glob, "wrapper");
    assert_int_equal(folded->nodes.len, 4);
    uint32_t new_top = fx_child(folded, root_of(folded), "main");
    fx_expect_node(folded, new_top, 1, 100);
    uint32_t new_f = fx_child(folded, new_top, "f");
    fx_expect_node(folded, new_f, 3, 55);
    assert_int_equal(fm_profile_value(folded, FM_METRIC_MIN, new_f), 5);
    assert_int_equal(fm_profile_value(folded, FM_METRIC_MAX, new_f), 30);
    fx_expect_node(folded, fx_child(folded, new_top, "g"), 1, 30);
    /* The wrapper's own 10 went to main: 100 − 55 − 30 = 15 = 5 + 10. */
    struct fm_flat *flat = fm_flat_new(folded, NULL);
    fx_expect_row(folded, flat, "main", 1, 1, 15, 100);
    fm_flat_free(flat);
    assert_int_equal(p->nodes.len, 6); /* the original is as it was */
    fm_profile_free(folded);
    fm_profile_free(p);
}

static void test_fold_at_root_and_nested(void **state)
{
    (void)state;
    /* wrapper(100) → wrapper2(90) → f(70) → wrapper(40) → f(30): at the root, nested, and between
     * two activations of one function. */
    struct fm_profile *p = fm_profile_new();
    uint32_t root = fx_thread(p, 7);
    fm_profile_add(p, FM_METRIC_TOTAL, root, 100);
    uint32_t w1 = fx_node(p, root, "wrapper", 1, 100);
    uint32_t w2 = fx_node(p, w1, "wrapper2", 1, 90);
    uint32_t f1 = fx_node(p, w2, "f", 1, 70);
    uint32_t w3 = fx_node(p, f1, "wrapper", 1, 40);
    fx_node(p, w3, "f", 1, 30);
    struct fm_profile *folded = fm_profile_fold(p, fm_function_glob, "wrap*");
    assert_int_equal(folded->nodes.len, 3);
    uint32_t f = fx_child(folded, root_of(folded), "f");
    fx_expect_node(folded, f, 1, 70);
    fx_expect_node(folded, fx_child(folded, f, "f"), 1, 30);
    /* Nobody called the outer wrappers: their 30 stay with the thread. */
    assert_int_equal(fm_profile_value(folded, FM_METRIC_TOTAL, root_of(folded)), 100);
    struct fm_flat *flat = fm_flat_new(folded, NULL);
    fx_expect_row(folded, flat, "f", 2, 1, 70, 70);
    fx_expect_edge(folded, flat, "f", "f", 1, 1, 30, 30);
    fm_flat_free(flat);
    fm_profile_free(folded);
    fm_profile_free(p);
}

static void test_filter(void **state)
{
    (void)state;
    /* main(100) → { a(40) → x(25) → y(5), b(30), x(10) } */
    struct fm_profile *p = fm_profile_new();
    uint32_t root = fx_thread(p, 7);
    uint32_t top = fx_node(p, root, "main", 1, 100);
    fm_profile_add(p, FM_METRIC_MAX, top, 100);
    uint32_t a = fx_node(p, top, "a", 2, 40);
    uint32_t x = fx_node(p, a, "x", 3, 25);
    fx_node(p, x, "y", 4, 5);
    fx_node(p, top, "b", 1, 30);
    fx_node(p, top, "x", 1, 10);
    struct fm_profile *kept = fm_profile_filter(p, fm_function_glob, "x");
    assert_int_equal(kept->nodes.len, 6); /* all but b */
    uint32_t main_kept = fx_child(kept, root_of(kept), "main");
    uint32_t a_kept = fx_child(kept, main_kept, "a");
    uint32_t x_kept = fx_child(kept, a_kept, "x");
    fx_expect_node(kept, main_kept, 1, 35);
    fx_expect_node(kept, a_kept, 2, 25);
    fx_expect_node(kept, x_kept, 3, 25);
    fx_expect_node(kept, fx_child(kept, x_kept, "y"), 4, 5);
    fx_expect_node(kept, fx_child(kept, main_kept, "x"), 1, 10);
    assert_int_equal(fm_profile_value(kept, FM_METRIC_MAX, main_kept), 0);
    assert_int_equal(fm_profile_value(kept, FM_METRIC_TOTAL, root_of(kept)), 35);
    fm_profile_free(kept);
    fm_profile_free(p);
}

static void test_root(void **state)
{
    (void)state;
    /* main → { a → x(20) → { y(4), x(6) → y(1) }, x(10) → y(3) } */
    struct fm_profile *p = fm_profile_new();
    uint32_t top = fx_node(p, fx_thread(p, 7), "main", 1, 100);
    uint32_t a = fx_node(p, top, "a", 1, 50);
    uint32_t x1 = fx_node(p, a, "x", 2, 20);
    fx_node(p, x1, "y", 2, 4);
    uint32_t inner = fx_node(p, x1, "x", 5, 6);
    fx_node(p, inner, "y", 1, 1);
    uint32_t x2 = fx_node(p, top, "x", 1, 10);
    fx_node(p, x2, "y", 7, 3);
    struct fm_profile *rooted = fm_profile_root(p, fm_function_glob, "x");
    assert_int_equal(rooted->nodes.len, 5); /* root, x, y, x, y */
    uint32_t x = fx_child(rooted, root_of(rooted), "x");
    fx_expect_node(rooted, x, 3, 30);
    fx_expect_node(rooted, fx_child(rooted, x, "y"), 9, 7);
    uint32_t again = fx_child(rooted, x, "x");
    fx_expect_node(rooted, again, 5, 6);
    fx_expect_node(rooted, fx_child(rooted, again, "y"), 1, 1);
    assert_int_equal(fm_profile_value(rooted, FM_METRIC_TOTAL, root_of(rooted)), 30);
    fm_profile_free(rooted);
    fm_profile_free(p);
}

static void test_merge(void **state)
{
    (void)state;
    struct fm_profile *into = fm_profile_new(), *from = fm_profile_new();
    fx_node(into, fx_thread(into, 7), "f", 1, 10);
    fm_profile_fact(into, "host", "here");
    fm_profile_string(from, "shifts the ids of strings");
    uint32_t top = fx_node(from, fx_thread(from, 8), "g", 1, 30);
    fx_node(from, top, "f", 2, 20);
    fm_profile_note(from, 0, "lost", 3, "something");
    fm_profile_fact(from, "host", "there");
    fm_profile_fact(from, "os", "other");
    fm_profile_merge(into, from);
    assert_int_equal(into->processes.len, 2);
    assert_int_equal(into->threads.len, 2);
    assert_int_equal(into->threads.data[1].process, 1);
    assert_int_equal(into->functions.len, 3); /* <thread>, f, g */
    struct fm_flat *flat = fm_flat_new(into, NULL);
    fx_expect_row(into, flat, "f", 3, 3, 30, 30);
    fx_expect_row(into, flat, "g", 1, 1, 10, 30);
    assert_int_equal(into->notes.data[0].process, 1);
    assert_string_equal(fm_profile_text(into, into->notes.data[0].text), "something");
    assert_string_equal(fm_profile_fact_get(into, "host"), "here");
    assert_string_equal(fm_profile_fact_get(into, "os"), "other");
    fm_flat_free(flat);
    fm_profile_free(from);
    fm_profile_free(into);
}

/* A profile that came without a tree: its table is added up with what the trees give. */
static void test_merge_table(void **state)
{
    (void)state;
    struct fm_profile *into = fm_profile_new(), *from = fm_profile_new();
    uint32_t top = fx_node(into, fx_thread(into, 7), "f", 1, 10);
    fx_node(into, top, "g", 1, 4);
    from->flat = fm_calloc(1, sizeof *from->flat);
    struct fm_flat_row g = {
        .func = fx_function(from, "g"), .calls = 5, .primitive = 4, .self_ns = 7, .total_ns = 9
    };
    struct fm_flat_row f = {
        .func = fx_function(from, "f"), .calls = 1, .primitive = 1, .self_ns = 2, .total_ns = 9
    };
    fm_vec_push(&from->flat->rows, g);
    fm_vec_push(&from->flat->rows, f);
    fm_vec_push(
        &from->flat->edges,
        ((struct fm_flat_edge){
            .caller = 1, .callee = 0, .calls = 5, .primitive = 4, .self_ns = 7, .total_ns = 9 }));
    fm_profile_merge(into, from);
    fm_profile_merge(into, from);
    struct fm_flat *flat = fm_flat_new(into, NULL);
    fx_expect_row(into, flat, "f", 3, 3, 10, 28);
    fx_expect_row(into, flat, "g", 11, 9, 18, 22);
    fx_expect_edge(into, flat, "f", "g", 11, 9, 18, 22);
    fm_flat_free(flat);
    fm_profile_free(from);
    fm_profile_free(into);
}

static void test_glob(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    struct fm_function f = { .name = fm_profile_string(p, "run"),
                             .qualname = fm_profile_string(p, "Task.run"),
                             .file = fm_profile_string(p, "lib/task.py") };
    uint32_t func = fm_profile_function(p, &f);
    assert_true(fm_function_glob(p, func, "run"));
    assert_true(fm_function_glob(p, func, "Task.run"));
    assert_true(fm_function_glob(p, func, "Task.*"));
    assert_true(fm_function_glob(p, func, "r?n"));
    assert_true(fm_function_glob(p, func, "[a-r]un"));
    assert_true(fm_function_glob(p, func, "lib/*"));
    assert_true(fm_function_glob(p, func, "*task.py:Task.*"));
    assert_false(fm_function_glob(p, func, "ru"));
    assert_false(fm_function_glob(p, func, "lib/task.py"));
    assert_false(fm_function_glob(p, func, "Other.*"));
    fm_profile_free(p);
}

static void test_twins(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    struct fm_function f = { .name = fm_profile_string(p, "<lambda>"), .line = 3 };
    uint32_t first = fm_profile_function(p, &f);
    uint32_t second = fm_profile_function_distinct(p, &f);
    uint32_t third = fm_profile_function_distinct(p, &f);
    assert_int_equal(fm_profile_function(p, &f), first);
    assert_int_equal(p->functions.data[second].twin, 1);
    assert_int_equal(p->functions.data[third].twin, 2);
    f.twin = 1;
    assert_int_equal(fm_profile_function(p, &f), second);
    f.twin = 3;
    uint32_t fourth = fm_profile_function(p, &f);
    f.twin = 0;
    uint32_t fifth = fm_profile_function_distinct(p, &f);
    assert_int_not_equal(fifth, fourth);
    assert_int_equal(p->functions.data[fifth].twin, 4);
    fm_profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fold_wrapper), cmocka_unit_test(test_fold_at_root_and_nested),
        cmocka_unit_test(test_filter),       cmocka_unit_test(test_root),
        cmocka_unit_test(test_merge),        cmocka_unit_test(test_merge_table),
        cmocka_unit_test(test_glob),         cmocka_unit_test(test_twins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
