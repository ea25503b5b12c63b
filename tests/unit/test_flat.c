/* The flat table against numbers worked out by hand, and against CPython's own cProfile. */
#include "fixture.h"

#include "lsprof_cases.h"

static void test_simple(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    uint32_t top = fx_node(p, fx_thread(p, 7), "main", 1, 100);
    fx_node(p, top, "a", 2, 30);
    uint32_t b = fx_node(p, top, "b", 1, 50);
    fx_node(p, b, "a", 3, 20);
    struct fm_flat *flat = fm_flat_new(p, NULL);
    assert_int_equal(flat->rows.len, 3);
    assert_int_equal(flat->edges.len, 3);
    fx_expect_row(p, flat, "main", 1, 1, 20, 100);
    fx_expect_row(p, flat, "a", 5, 5, 50, 50);
    fx_expect_row(p, flat, "b", 1, 1, 30, 50);
    fx_expect_edge(p, flat, "main", "a", 2, 2, 30, 30);
    fx_expect_edge(p, flat, "main", "b", 1, 1, 30, 50);
    fx_expect_edge(p, flat, "b", "a", 3, 3, 20, 20);
    struct fm_flat_total sum = fm_flat_total(flat);
    assert_int_equal(sum.calls, 7);
    assert_int_equal(sum.primitive, 7);
    assert_int_equal(sum.self_ns, 100);
    fm_flat_free(flat);
    fm_profile_free(p);
}

static void test_direct_recursion(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    uint32_t top = fx_node(p, fx_thread(p, 7), "main", 1, 100);
    uint32_t f1 = fx_node(p, top, "f", 1, 80);
    uint32_t f2 = fx_node(p, f1, "f", 1, 50);
    fx_node(p, f2, "f", 1, 20);
    struct fm_flat *flat = fm_flat_new(p, NULL);
    fx_expect_row(p, flat, "main", 1, 1, 20, 100);
    fx_expect_row(p, flat, "f", 3, 1, 80, 80);
    fx_expect_edge(p, flat, "main", "f", 1, 1, 30, 80);
    fx_expect_edge(p, flat, "f", "f", 2, 1, 50, 50);
    fm_flat_free(flat);
    fm_profile_free(p);
}

/* a → b → a → b: the edge b → a is at its own level 0 although a itself is active already. */
static void test_mutual_recursion(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    uint32_t top = fx_node(p, fx_thread(p, 7), "main", 1, 100);
    uint32_t a1 = fx_node(p, top, "a", 1, 90);
    uint32_t b1 = fx_node(p, a1, "b", 1, 70);
    uint32_t a2 = fx_node(p, b1, "a", 1, 40);
    fx_node(p, a2, "b", 1, 10);
    struct fm_flat *flat = fm_flat_new(p, NULL);
    fx_expect_row(p, flat, "a", 2, 1, 50, 90);
    fx_expect_row(p, flat, "b", 2, 1, 40, 70);
    fx_expect_edge(p, flat, "main", "a", 1, 1, 20, 90);
    fx_expect_edge(p, flat, "a", "b", 2, 1, 40, 70);
    fx_expect_edge(p, flat, "b", "a", 1, 1, 30, 40);
    fm_flat_free(flat);
    fm_profile_free(p);
}

/* The same edge twice side by side is no recursion; inside itself it is. */
static void test_edge_recursion(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    uint32_t root = fx_thread(p, 7);
    uint32_t f1 = fx_node(p, root, "f", 1, 100);
    uint32_t g1 = fx_node(p, f1, "g", 4, 60);
    uint32_t h1 = fx_node(p, g1, "h", 4, 40);
    uint32_t f2 = fx_node(p, h1, "f", 2, 30);
    fx_node(p, f2, "g", 2, 12);
    uint32_t k = fx_node(p, root, "k", 1, 50);
    uint32_t f3 = fx_node(p, k, "f", 1, 25);
    fx_node(p, f3, "g", 1, 5);
    struct fm_flat *flat = fm_flat_new(p, NULL);
    /* f: 1 + 2 + 1 entries; of them 1 and 1 outermost. Self 40 + 18 + 20. */
    fx_expect_row(p, flat, "f", 4, 2, 78, 125);
    /* g: 4 + 2 + 1; the inner 2 are recursive. Self 20 + 12 + 5. */
    fx_expect_row(p, flat, "g", 7, 5, 37, 65);
    fx_expect_edge(p, flat, "f", "g", 7, 5, 37, 65);
    fx_expect_edge(p, flat, "h", "f", 2, 2, 18, 30);
    fx_expect_edge(p, flat, "k", "f", 1, 1, 20, 25);
    fx_expect_edge(p, flat, "g", "h", 4, 4, 10, 40);
    fm_flat_free(flat);
    fm_profile_free(p);
}

static void test_resumes_are_calls(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    uint32_t top = fx_node(p, fx_thread(p, 7), "main", 1, 100);
    uint32_t gen = fx_node(p, top, "gen", 2, 40);
    fm_profile_add(p, FM_METRIC_RESUMES, gen, 8);
    fm_profile_add(p, FM_METRIC_SUSPENDED, gen, 33);
    fm_profile_add(p, FM_METRIC_MIN, gen, 3);
    fm_profile_add(p, FM_METRIC_MAX, gen, 9);
    struct fm_flat *flat = fm_flat_new(p, NULL);
    fx_expect_row(p, flat, "gen", 10, 10, 40, 40);
    fx_expect_edge(p, flat, "main", "gen", 10, 10, 40, 40);
    const struct fm_flat_row *row = fx_row(p, flat, "gen");
    assert_int_equal(row->resumes, 8);
    assert_int_equal(row->suspended_ns, 33);
    assert_int_equal(row->min_ns, 3);
    assert_int_equal(row->max_ns, 9);
    fm_flat_free(flat);
    fm_profile_free(p);
}

/* A frame that was open before recording began has no calls; it stays if it has time, or if it is
 * the caller of something. One without anything goes. */
static void test_rows_without_calls(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    uint32_t root = fx_thread(p, 7);
    fx_node(p, root, "inherited", 0, 5);
    uint32_t caller = fx_node(p, root, "quick", 0, 0);
    fx_node(p, caller, "callee", 1, 0);
    fx_node(p, root, "nothing", 0, 0);
    struct fm_flat *flat = fm_flat_new(p, NULL);
    assert_int_equal(flat->rows.len, 3);
    fx_expect_row(p, flat, "inherited", 0, 0, 5, 5);
    fx_expect_edge(p, flat, "quick", "callee", 1, 1, 0, 0);
    assert_null(fx_row(p, flat, "nothing"));
    fm_flat_free(flat);
    fm_profile_free(p);
}

static void test_scope(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    fx_node(p, fx_thread(p, 7), "f", 1, 10);
    fx_node(p, fx_thread(p, 8), "f", 2, 30);
    uint32_t second = fm_profile_thread(p, &(struct fm_thread){ .process = 1, .tid = 9 });
    fx_node(p, p->threads.data[second].root, "f", 4, 70);
    struct fm_flat *all = fm_flat_new(p, NULL);
    struct fm_flat *process = fm_flat_new(p, &(struct fm_flat_scope){ 1, FM_NONE });
    struct fm_flat *thread = fm_flat_new(p, &(struct fm_flat_scope){ FM_NONE, second });
    fx_expect_row(p, all, "f", 7, 7, 110, 110);
    fx_expect_row(p, process, "f", 6, 6, 100, 100);
    fx_expect_row(p, thread, "f", 4, 4, 70, 70);
    fm_flat_free(all);
    fm_flat_free(process);
    fm_flat_free(thread);
    fm_profile_free(p);
}

static void test_merge(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    uint32_t first = fx_node(p, fx_thread(p, 7), "main", 1, 100);
    fx_node(p, first, "b", 2, 60);
    uint32_t second = fx_node(p, fx_thread(p, 8), "main", 1, 50);
    fx_node(p, second, "a", 3, 20);
    fx_node(p, second, "b", 1, 10);
    struct fm_flat *flat = fm_flat_new(p, &(struct fm_flat_scope){ 0, FM_NONE });
    struct fm_flat *extra = fm_flat_new(p, &(struct fm_flat_scope){ 1, FM_NONE });
    fm_flat_add(flat, extra);
    assert_int_equal(flat->rows.len, 3);
    fx_expect_row(p, flat, "main", 2, 2, 60, 150);
    fx_expect_row(p, flat, "b", 3, 3, 70, 70);
    fx_expect_edge(p, flat, "main", "b", 3, 3, 70, 70);
    fx_expect_edge(p, flat, "main", "a", 3, 3, 20, 20);
    for (size_t i = 1; i < flat->rows.len; i++)
        assert_true(flat->rows.data[i - 1].func < flat->rows.data[i].func);
    fm_flat_free(flat);
    fm_flat_free(extra);
    fm_profile_free(p);
}

/* 200,000 calls inside each other: nothing may recurse. */
static void test_deep(void **state)
{
    (void)state;
    const int64_t depth = 200000;
    struct fm_profile *p = fm_profile_new();
    uint32_t node = fx_thread(p, 7);
    for (int64_t i = 0; i < depth; i++)
        node = fx_node(p, node, i % 2 ? "odd" : "even", 1, depth - i);
    struct fm_flat *flat = fm_flat_new(p, NULL);
    fx_expect_row(p, flat, "even", depth / 2, 1, depth / 2, depth);
    fx_expect_row(p, flat, "odd", depth / 2, 1, depth / 2, depth - 1);
    fx_expect_edge(p, flat, "even", "odd", depth / 2, 1, depth / 2, depth - 1);
    fx_expect_edge(p, flat, "odd", "even", depth / 2 - 1, 1, depth / 2 - 1, depth - 2);
    fm_flat_free(flat);
    fm_profile_free(p);
}

/* Numbers of a hostile file: sums stop at the limit instead of wrapping around. */
static void test_huge_numbers(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    uint32_t root = fx_thread(p, 7);
    for (int i = 0; i < 3; i++) {
        uint32_t node = fx_node(p, root, "f", INT64_MAX, INT64_MAX);
        fx_node(p, node, "g", 1, INT64_MIN);
    }
    struct fm_flat *flat = fm_flat_new(p, NULL);
    assert_int_equal(fx_row(p, flat, "f")->calls, INT64_MAX);
    assert_int_equal(fx_row(p, flat, "f")->total_ns, INT64_MAX);
    fm_flat_free(flat);
    fm_profile_free(p);
}

/* ---- against CPython ---- */

static const char *const case_names[] = { "f0", "f1", "f2", "f3" };

static void build_case(struct fm_profile *p, const int64_t (*events)[2], size_t count)
{
    struct {
        uint32_t node;
        int64_t entered;
    } stack[64] = { { fx_thread(p, 1), 0 } };
    size_t depth = 0;
    for (size_t i = 0; i < count; i++) {
        if (events[i][0] < 0) {
            fm_profile_add(p, FM_METRIC_TOTAL, stack[depth].node,
                           events[i][1] - stack[depth].entered);
            depth--;
            continue;
        }
        const char *name = case_names[events[i][0]];
        uint32_t node = fx_child(p, stack[depth].node, name);
        if (node == FM_NONE)
            node = fx_node(p, stack[depth].node, name, 0, 0);
        fm_profile_add(p, FM_METRIC_CALLS, node, 1);
        depth++;
        assert_true(depth < FM_COUNT(stack));
        stack[depth].node = node;
        stack[depth].entered = events[i][1];
    }
    assert_int_equal(depth, 0);
}

static void check_case(const int64_t (*events)[2], size_t event_count, const int64_t (*rows)[5],
                       size_t row_count, const int64_t (*edges)[6], size_t edge_count)
{
    struct fm_profile *p = fm_profile_new();
    build_case(p, events, event_count);
    struct fm_flat *flat = fm_flat_new(p, NULL);
    assert_int_equal(flat->rows.len, row_count);
    assert_int_equal(flat->edges.len, edge_count);
    for (size_t i = 0; i < row_count; i++)
        fx_expect_row(p, flat, case_names[rows[i][0]], rows[i][1], rows[i][2], rows[i][3],
                      rows[i][4]);
    for (size_t i = 0; i < edge_count; i++)
        fx_expect_edge(p, flat, case_names[edges[i][0]], case_names[edges[i][1]], edges[i][2],
                       edges[i][3], edges[i][4], edges[i][5]);
    fm_flat_free(flat);
    fm_profile_free(p);
}

static void test_like_cprofile(void **state)
{
    (void)state;
#define CASE(n)                                                                                    \
    check_case(events_##n, FM_COUNT(events_##n), rows_##n, FM_COUNT(rows_##n), edges_##n,          \
               FM_COUNT(edges_##n))
    CASE(0);
    CASE(1);
    CASE(2);
    CASE(3);
    CASE(4);
    CASE(5);
#undef CASE
}

/* f took 100 ns in 2 calls that were not recursive, and 600 ns in a process that was only sampled; g
 * was never called where calls were counted. */
static void test_time_of_calls_beside_samples(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    uint32_t exact = fx_thread(p, 1), sampled = fx_thread(p, 2);
    p->processes.data[0].calls = true;
    p->processes.data[1].sampled = true;
    fx_node(p, fx_node(p, exact, "f", 2, 100), "f", 3, 40);
    uint32_t f = fx_node(p, sampled, "f", 0, 600);
    fx_node(p, fx_node(p, f, "f", 0, 500), "g", 0, 200);
    struct fm_flat *flat = fm_flat_new(p, NULL);
    const struct fm_flat_row *row = fx_row(p, flat, "f");
    assert_int_equal(row->total_ns, 700);
    assert_int_equal(row->self_ns, 500); /* 60 and 40; 100 and 300 */
    assert_int_equal(row->uncounted_ns, 600);
    assert_int_equal(row->uncounted_self_ns, 400);
    assert_true(fm_flat_per_call_ns(row) == 50);
    row = fx_row(p, flat, "g");
    assert_int_equal(row->uncounted_ns, 200);
    assert_true(fm_flat_per_call_ns(row) == 0);
    fm_flat_free(flat);
    flat = fm_flat_new(p, &(struct fm_flat_scope){ 0, FM_NONE });
    assert_int_equal(fx_row(p, flat, "f")->uncounted_ns, 0);
    assert_true(fm_flat_per_call_ns(fx_row(p, flat, "f")) == 50);
    fm_flat_free(flat);
    fm_profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_of_calls_beside_samples),
        cmocka_unit_test(test_simple),
        cmocka_unit_test(test_direct_recursion),
        cmocka_unit_test(test_mutual_recursion),
        cmocka_unit_test(test_edge_recursion),
        cmocka_unit_test(test_resumes_are_calls),
        cmocka_unit_test(test_rows_without_calls),
        cmocka_unit_test(test_scope),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_huge_numbers),
        cmocka_unit_test(test_like_cprofile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
