/*
 * Numbers of nodes, functions and calls, against numbers that were worked out by hand. The tree of
 * most tests, as "function calls×total"; of it, each node's own time is in brackets:
 *
 *     main 1×100 [30]
 *         f 2×60 [25]
 *             g 3×35 [5]
 *                 f 1×30 [10]
 *                     g 1×20 [20]
 *         g 1×10 [10]
 */
#include "fixture.h"

#include <stdlib.h>

#include "record/model/derive/sums.h"

enum { EVERYTHING, MAIN, F, G, THREAD, NAMES };

struct tree {
    struct fm_profile *p;
    struct fm_links links;
    struct fm_shape shape;
    struct fm_shape_source source;
    uint8_t *outermost;
};

static const uint32_t names[] = { THREAD, MAIN, F, G }, threads[] = { THREAD };
static const bool is_row[NAMES] = { [MAIN] = true, [F] = true, [G] = true };

/* The root of a thread, for nodes of main, f and g, in the order of the names above. */
static uint32_t tree_begin(struct tree *t)
{
    *t = (struct tree){ .p = fm_profile_new() };
    uint32_t root = fx_thread(t->p, 7);
    assert_int_equal(fx_function(t->p, "main"), 1);
    assert_int_equal(fx_function(t->p, "f"), 2);
    assert_int_equal(fx_function(t->p, "g"), 3);
    return root;
}

static void tree_end(struct tree *t)
{
    fm_links_init(&t->links, t->p);
    struct fm_shape_source source[2] = {
        { .p = t->p, .links = &t->links, .func = names, .thread = threads }
    };
    fm_shape_init(&t->shape, source, &(struct fm_shape_options){ .functions = NAMES });
    t->source = source[0];
    t->outermost = fm_shape_outermost_new(&t->shape, NAMES);
}

static void tree_release(struct tree *t)
{
    free(t->outermost);
    free(t->source.node_of);
    fm_shape_release(&t->shape);
    fm_links_release(&t->links);
    fm_profile_free(t->p);
}

static void example(struct tree *t)
{
    uint32_t root = tree_begin(t);
    fm_profile_add(t->p, FM_METRIC_TOTAL, root, 100);
    uint32_t top = fx_node(t->p, root, "main", 1, 100);
    uint32_t f = fx_node(t->p, top, "f", 2, 60);
    uint32_t g = fx_node(t->p, f, "g", 3, 35);
    fx_node(t->p, fx_node(t->p, g, "f", 1, 30), "g", 1, 20);
    fx_node(t->p, top, "g", 1, 10);
    tree_end(t);
}

/* Numbers of some columns, with totals. */
static struct fm_numbers numbers_of(const struct tree *t, uint64_t columns, const bool *timeless)
{
    struct fm_numbers_of of = { columns, timeless };
    struct fm_numbers n;
    fm_numbers_init(&n, &t->shape, &t->source, &of);
    fm_numbers_add_up(&n, &t->shape, &of);
    return n;
}

static const uint64_t time_column = (uint64_t)1 << FM_METRIC_TOTAL;

static void expect(const struct fm_sums *sums, int64_t self, int64_t total, int64_t calls)
{
    assert_int_equal(sums->self, self);
    assert_int_equal(sums->total, total);
    assert_int_equal(sums->calls, calls);
}

static void test_functions(void **state)
{
    (void)state;
    struct tree t;
    example(&t);
    struct fm_numbers n = numbers_of(&t, time_column, NULL);
    struct fm_numbers calls = numbers_of(&t, (uint64_t)1 << FM_METRIC_CALLS, NULL);
    assert_int_equal(n.total[0], 100); /* the root of all has what the threads have */
    struct fm_groups functions = fm_groups_of_functions(&t.shape, t.outermost, NAMES);
    struct fm_sums *sums =
        fm_sums_new(&functions, &(struct fm_sums_of){ n, FM_METRIC_TOTAL, calls.self });
    expect(&sums[MAIN], 30, 100, 1);
    expect(&sums[F], 25 + 10, 60, 2 + 1); /* the inner 30 are in the 60 */
    expect(&sums[G], 5 + 20 + 10, 35 + 10, 3 + 1 + 1);
    free(sums);
    fm_numbers_release(&n);
    fm_numbers_release(&calls);
    tree_release(&t);
}

/* The call of a pair, or NULL. */
static const struct fm_sums *sums_at(const struct fm_calls *calls, const struct fm_sums *sums,
                                     uint32_t caller, uint32_t callee)
{
    for (size_t i = 0; i < calls->list.len; i++)
        if (calls->list.data[i].caller == caller && calls->list.data[i].callee == callee)
            return &sums[i];
    return NULL;
}

static void test_calls(void **state)
{
    (void)state;
    static const struct {
        uint32_t top, around;
        size_t count;
        bool to_main, from_main_to_g;
    } cases[] = { { FM_NONE, FM_NONE, 4, false, true },
                  { EVERYTHING, FM_NONE, 5, true, true },
                  { EVERYTHING, F, 3, false, false },
                  { FM_NONE, F, 3, false, false } };
    struct tree t;
    example(&t);
    struct fm_numbers n = numbers_of(&t, time_column, NULL);
    struct fm_numbers entries = numbers_of(&t, (uint64_t)1 << FM_METRIC_CALLS, NULL);
    for (size_t i = 0; i < FM_COUNT(cases); i++) {
        struct fm_calls calls;
        fm_calls_init(&calls, &t.shape,
                      &(struct fm_calls_of){ is_row, cases[i].top, cases[i].around });
        struct fm_groups groups = fm_groups_of_calls(&calls);
        assert_int_equal(groups.count, cases[i].count);
        struct fm_sums *sums =
            fm_sums_new(&groups, &(struct fm_sums_of){ n, FM_METRIC_TOTAL, entries.self });
        expect(sums_at(&calls, sums, MAIN, F), 25, 60, 2);
        expect(sums_at(&calls, sums, G, F), 10, 30, 1);
        expect(sums_at(&calls, sums, F, G), 5 + 20, 35, 3 + 1); /* the inner 20 are in the 35 */
        assert_int_equal(sums_at(&calls, sums, EVERYTHING, MAIN) != NULL, cases[i].to_main);
        if (cases[i].to_main)
            expect(sums_at(&calls, sums, EVERYTHING, MAIN), 30, 100, 1);
        assert_int_equal(sums_at(&calls, sums, MAIN, G) != NULL, cases[i].from_main_to_g);
        if (cases[i].from_main_to_g)
            expect(sums_at(&calls, sums, MAIN, G), 10, 10, 1);
        free(sums);
        fm_calls_release(&calls);
    }
    fm_numbers_release(&n);
    fm_numbers_release(&entries);
    tree_release(&t);
}

/* What is a node's own adds up; several columns are one number. */
static void test_columns_add_up(void **state)
{
    (void)state;
    struct tree t;
    uint32_t root = tree_begin(&t), top = fx_node(t.p, root, "main", 1, 0);
    uint32_t f = fx_node(t.p, top, "f", 1, 0);
    fm_profile_add(t.p, FM_METRIC_STATE_PYTHON, top, 5);
    fm_profile_add(t.p, FM_METRIC_STATE_C, f, 7);
    fm_profile_add(t.p, FM_METRIC_STATE_PYTHON, f, 1);
    fm_profile_add(t.p, FM_METRIC_STATE_LOCK, f, 100);
    tree_end(&t);
    struct fm_numbers n = numbers_of(
        &t, (uint64_t)1 << FM_METRIC_STATE_PYTHON | (uint64_t)1 << FM_METRIC_STATE_C, NULL);
    struct fm_groups functions = fm_groups_of_functions(&t.shape, t.outermost, NAMES);
    struct fm_sums *sums =
        fm_sums_new(&functions, &(struct fm_sums_of){ n, FM_METRIC_TOTAL, NULL });
    expect(&sums[MAIN], 5, 13, 0);
    expect(&sums[F], 8, 8, 0);
    free(sums);
    fm_numbers_release(&n);
    tree_release(&t);
}

/* A recording that contradicts itself: f took longer than main that called it, g less than nothing,
 * and more than fits. */
static void test_contradictions(void **state)
{
    (void)state;
    struct tree t;
    uint32_t root = tree_begin(&t), top = fx_node(t.p, root, "main", 1, 10);
    fx_node(t.p, top, "f", 1, 15);
    fx_node(t.p, top, "g", 1, -3);
    tree_end(&t);
    struct fm_numbers n = numbers_of(&t, time_column, NULL);
    struct fm_groups functions = fm_groups_of_functions(&t.shape, t.outermost, NAMES);
    struct fm_sums_of what = { n, FM_METRIC_TOTAL, NULL };
    struct fm_sums *sums = fm_sums_new(&functions, &what);
    expect(&sums[MAIN], 0, 15, 0);
    expect(&sums[F], 15, 15, 0);
    expect(&sums[G], 0, 0, 0);
    free(sums);
    fm_numbers_release(&n);
    struct fm_flat *flat = fm_flat_new(t.p, NULL); /* the same in a report */
    fx_expect_row(t.p, flat, "main", 1, 1, 0, 15);
    fx_expect_row(t.p, flat, "f", 1, 1, 15, 15);
    fx_expect_row(t.p, flat, "g", 1, 1, 0, 0);
    fm_flat_free(flat);
    tree_release(&t);

    root = tree_begin(&t);
    top = fx_node(t.p, root, "main", 1, 10);
    fx_node(t.p, top, "f", 1, INT64_MAX);
    fx_node(t.p, top, "g", 1, INT64_MAX);
    tree_end(&t);
    n = numbers_of(&t, time_column, NULL);
    assert_true(n.total[0] == INT64_MAX);
    fm_numbers_release(&n);
    tree_release(&t);
}

/* Time of a thread that does not count. */
static void test_timeless(void **state)
{
    (void)state;
    struct tree t;
    example(&t);
    struct fm_numbers n = numbers_of(&t, time_column, (const bool[]){ true });
    assert_int_equal(n.total[0], 0);
    fm_numbers_release(&n);
    n = numbers_of(&t, (uint64_t)1 << FM_METRIC_CALLS, (const bool[]){ true });
    assert_int_equal(n.total[0], 1 + 2 + 3 + 1 + 1 + 1); /* its other numbers do */
    fm_numbers_release(&n);
    tree_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),      cmocka_unit_test(test_calls),
        cmocka_unit_test(test_columns_add_up), cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_timeless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
