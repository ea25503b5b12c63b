/*
 * The viewer's engine, compiled natively: the same C that runs in the browser, against numbers that
 * were worked out by hand.
 *
 * The profile of most tests, as "function calls×total": of it, each function's own time is in
 * brackets.
 *
 *     main 1×100 [20]
 *         a 2×60 [30]
 *             b 3×30 [20]
 *                 a 1×10 [10]
 *         b 1×20 [20]
 */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/crc32c.h"
#include "engine.h"
#include "layers.h"
#include "record/capture/format.h"
#include "record/model/file/file.h"
#include "scratch_file.h"
#include "show/report/samples/sampling.h"
#include "view.h"

static struct fm_profile *example(void)
{
    struct fm_profile *p = fm_profile_new();
    uint32_t root = fx_thread(p, 7);
    fm_profile_add(p, FM_METRIC_TOTAL, root, 100);
    uint32_t top = fx_node(p, root, "main", 1, 100);
    uint32_t a = fx_node(p, top, "a", 2, 60);
    uint32_t b = fx_node(p, a, "b", 3, 30);
    fx_node(p, b, "a", 1, 10);
    fx_node(p, top, "b", 1, 20);
    return p;
}

static uint32_t func_named(const struct fm_engine *e, const char *name)
{
    for (uint32_t i = 0; i < e->functions.len; i++)
        if (strcmp(fm_strings_get(e->strings, e->functions.data[i].name), name) == 0)
            return i;
    fail_msg("there is no function %s", name);
    return FM_NONE;
}

/* A view by "key=value" words, ended by NULL. */
static struct fm_view *view_of(struct fm_engine *e, const char *const *words)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    for (; *words; words++) {
        const char *equal = strchr(*words, '=');
        fm_buffer_add(&text, *words, (size_t)(equal - *words));
        fm_buffer_add(&text, "", 1);
        fm_buffer_add(&text, equal + 1, strlen(equal + 1) + 1);
    }
    int id = fm_engine_view_new(e, text.data, text.len);
    assert_true(id >= 0);
    return e->views[id];
}

#define VIEW(e, ...) view_of((e), (const char *const[]){ "recording=0", __VA_ARGS__, NULL })

static uint32_t u32_at(const struct fm_result *r, uint32_t column, uint32_t row)
{
    assert_true(column < r->columns && r->column[column].type == FM_RESULT_U32 && row < r->rows);
    return ((const uint32_t *)r->column[column].data)[row];
}

static double f64_at(const struct fm_result *r, uint32_t column, uint32_t row)
{
    assert_true(column < r->columns && r->column[column].type == FM_RESULT_F64 && row < r->rows);
    return ((const double *)r->column[column].data)[row];
}

static uint32_t row_of(const struct fm_result *r, uint32_t column, uint32_t func)
{
    for (uint32_t i = 0; i < r->rows; i++)
        if (u32_at(r, column, i) == func)
            return i;
    fail_msg("function %u has no row", func);
    return 0;
}

static void assert_box(const struct fm_engine *e, uint32_t row, const char *name, uint32_t depth,
                       double start, double width, double self)
{
    const struct fm_result *r = &e->results[0];
    assert_int_equal(u32_at(r, 1, row), func_named(e, name));
    assert_int_equal(u32_at(r, 2, row), depth);
    assert_true(f64_at(r, 4, row) == start);
    assert_true(f64_at(r, 5, row) == width);
    assert_true(f64_at(r, 7, row) == self);
}

static const struct fm_layout_query everything = { .depth = 100 };

static void test_layout(void **state)
{
    (void)state;
    struct fm_engine e;
    fm_engine_init(&e);
    assert_int_equal(fm_engine_add(&e, example(), "example"), 0);
    struct fm_view *v = VIEW(&e, "together=1");
    assert_int_equal(v->nodes, 6);
    assert_int_equal(v->depth, 4);
    assert_int_equal(fm_view_layout(v, &everything), 0);
    assert_int_equal(e.results[0].rows, 6);
    assert_box(&e, 0, "everything", 0, 0, 100, 0);
    assert_box(&e, 1, "main", 1, 0, 100, 20);
    assert_box(&e, 2, "a", 2, 0, 60, 30);
    assert_box(&e, 3, "b", 2, 60, 20, 20);
    assert_box(&e, 4, "b", 3, 0, 30, 20);
    assert_box(&e, 5, "a", 4, 0, 10, 10);
    assert_int_equal(u32_at(&e.results[0], 3, 5), 4);
    assert_int_equal(u32_at(&e.results[0], 3, 0), FM_NONE);
    /* A quarter of the whole: the two of 30 and 60 stay, those of 20 and 10 go. */
    struct fm_layout_query q = { .depth = 100, .cut = 0.25 };
    assert_int_equal(fm_view_layout(v, &q), 0);
    assert_int_equal(e.results[0].rows, 4);
    assert_true(e.results[0].scalars[0] == 2);
    q = (struct fm_layout_query){ .depth = 2 };
    assert_int_equal(fm_view_layout(v, &q), 0);
    assert_int_equal(e.results[0].rows, 4);
    assert_true(e.results[0].scalars[1] == 1); /* a has a callee; b has none */
    /* Calls: a node's own, and those below it. */
    q = (struct fm_layout_query){ .depth = 100, .metric = FM_ENGINE_CALLS };
    assert_int_equal(fm_view_layout(v, &q), 0);
    assert_box(&e, 1, "main", 1, 0, 8, 1);
    assert_box(&e, 2, "a", 2, 0, 6, 2);
    q.order = FM_ORDER_NAME;
    q.metric = FM_ENGINE_TOTAL;
    q.root = 2;
    assert_int_equal(fm_view_layout(v, &q), 0);
    assert_box(&e, 0, "a", 0, 0, 60, 30);
    fm_engine_release(&e);
}

static void assert_row(const struct fm_engine *e, const char *name, double calls, double primitive,
                       double self, double total)
{
    const struct fm_result *r = &e->results[0];
    uint32_t row = row_of(r, 0, func_named(e, name));
    assert_true(f64_at(r, 2, row) == calls);
    assert_true(f64_at(r, 3, row) == primitive);
    assert_true(f64_at(r, 4, row) == self);
    assert_true(f64_at(r, 5, row) == total);
}

static void assert_neighbour(struct fm_engine *e, struct fm_view *v, const char *func, bool callers,
                             const char *other, double calls, double total)
{
    const struct fm_result *r = &e->results[0];
    assert_int_equal(fm_view_neighbours(v, func_named(e, func), FM_ENGINE_TOTAL, callers), 0);
    uint32_t row = row_of(r, 0, *other ? func_named(e, other) : 0);
    assert_true(f64_at(r, 1, row) == calls);
    assert_true(f64_at(r, 3, row) == total);
}

static void test_tables(void **state)
{
    (void)state;
    struct fm_engine e;
    fm_engine_init(&e);
    fm_engine_add(&e, example(), "example");
    struct fm_view *v = VIEW(&e, "together=0");
    assert_int_equal(v->nodes, 7); /* the thread is a node here */
    assert_int_equal(fm_view_table(v, FM_ENGINE_TOTAL), 0);
    assert_int_equal(e.results[0].rows, 3);
    assert_true(e.results[0].scalars[0] == 100);
    assert_row(&e, "main", 1, 1, 20, 100);
    assert_row(&e, "a", 3, 2, 40, 60);
    assert_row(&e, "b", 4, 4, 40, 50);
    assert_neighbour(&e, v, "a", true, "main", 2, 60);
    assert_neighbour(&e, v, "a", true, "b", 1, 10);
    assert_neighbour(&e, v, "a", false, "b", 3, 30);
    assert_neighbour(&e, v, "main", false, "b", 1, 20);
    assert_neighbour(&e, v, "main", true, "", 1, 100);
    /* a and what is below it, once; b outside of it, too. */
    uint32_t funcs[2] = { func_named(&e, "a"), func_named(&e, "b") };
    assert_int_equal(fm_view_matched(v, funcs, 1, FM_ENGINE_TOTAL), 0);
    assert_true(e.results[0].scalars[0] == 60 && e.results[0].scalars[2] == 2);
    assert_int_equal(fm_view_matched(v, funcs, 2, FM_ENGINE_TOTAL), 0);
    assert_true(e.results[0].scalars[0] == 80 && e.results[0].scalars[2] == 4);
    fm_engine_release(&e);
}

/* Calls and, beside them, a thread that was only sampled: its time is in the picture, as nobody else
 * has it, and not in tables, as in a report (model/derive/flat.h).
 *
 *     MainThread   main 1×100 [95] → sleep 2×5 [5]
 *     tasks        job 0×40 [0] → sleep 0×40 [40], 4 samples
 */
static void test_sampled_beside_calls(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    uint32_t root = fx_thread(p, 7);
    p->processes.data[0].calls = p->processes.data[0].sampled = true;
    fm_profile_add(p, FM_METRIC_TOTAL, root, 100);
    fx_node(p, fx_node(p, root, "main", 1, 100), "sleep", 2, 5);
    struct fm_thread tasks = { .tid = 7, .name = fm_profile_string(p, "tasks") };
    root = p->threads.data[fm_profile_thread(p, &tasks)].root;
    fm_profile_add(p, FM_METRIC_TOTAL, root, 40);
    uint32_t slept = fx_node(p, fx_node(p, root, "job", 0, 40), "sleep", 0, 40);
    fm_profile_add(p, FM_METRIC_STATE_PYTHON, slept, 40);
    fm_profile_add(p, FM_METRIC_SAMPLES, slept, 4);
    struct fm_flat *flat = fm_flat_new(p, NULL);
    fx_expect_row(p, flat, "sleep", 2, 2, 5, 5);
    fm_flat_free(flat);
    struct fm_engine e;
    fm_engine_init(&e);
    fm_engine_add(&e, p, "tasks");
    struct fm_view *v = VIEW(&e, "together=0");
    assert_int_equal(fm_view_totals(v, FM_ENGINE_TOTAL), 0);
    assert_true(e.results[0].scalars[0] == 140);
    assert_int_equal(fm_view_table(v, FM_ENGINE_TOTAL), 0);
    assert_true(e.results[0].scalars[0] == 100);
    assert_row(&e, "sleep", 2, 2, 5, 5);
    assert_row(&e, "job", 0, 0, 0, 0);
    assert_neighbour(&e, v, "sleep", true, "main", 2, 5);
    assert_int_equal(e.results[0].rows, 1);
    assert_int_equal(fm_view_table(v, FM_METRIC_SAMPLES), 0);
    assert_row(&e, "job", 0, 0, 0, 4);
    /* Asked for alone, it has its time. */
    v = VIEW(&e, "thread=1");
    assert_int_equal(fm_view_table(v, FM_ENGINE_TOTAL), 0);
    assert_row(&e, "sleep", 0, 0, 40, 40);
    fm_engine_release(&e);
}

static void assert_kid(const struct fm_engine *e, const char *name, double value)
{
    const struct fm_result *r = &e->results[0];
    assert_true(f64_at(r, 3, row_of(r, 1, func_named(e, name))) == value);
}

static uint32_t kid_node(const struct fm_engine *e, const char *name)
{
    const struct fm_result *r = &e->results[0];
    return u32_at(r, 0, row_of(r, 1, func_named(e, name)));
}

static void test_reversed(void **state)
{
    (void)state;
    struct fm_engine e;
    fm_engine_init(&e);
    fm_engine_add(&e, example(), "example");
    struct fm_view *v = VIEW(&e, "reversed=1");
    assert_int_equal(fm_view_children(v, 0, FM_ENGINE_TOTAL, 100, false), 0);
    assert_int_equal(e.results[0].rows, 3);
    assert_kid(&e, "a", 40);
    assert_kid(&e, "b", 40);
    assert_kid(&e, "main", 20);
    uint32_t a = kid_node(&e, "a");
    assert_int_equal(fm_view_children(v, a, FM_ENGINE_TOTAL, 100, false), 0);
    assert_int_equal(e.results[0].rows, 2);
    assert_kid(&e, "main", 30); /* a called by main, itself */
    assert_kid(&e, "b", 10);
    uint32_t b = kid_node(&e, "b");
    assert_int_equal(fm_view_path(v, b), 0);
    assert_int_equal(e.results[0].rows, 2);
    uint32_t path[2] = { func_named(&e, "a"), func_named(&e, "b") };
    assert_int_equal(fm_view_find(v, path, 2), b);
    assert_int_equal(fm_view_layout(v, &everything), 0);
    assert_true(f64_at(&e.results[0], 5, 0) == 100);

    char option[32];
    snprintf(option, sizeof option, "callersOf=%u", func_named(&e, "b"));
    v = VIEW(&e, option);
    assert_int_equal(fm_view_children(v, 0, FM_ENGINE_TOTAL, 100, false), 0);
    assert_int_equal(e.results[0].rows, 1);
    assert_kid(&e, "b", 50);
    assert_int_equal(fm_view_children(v, kid_node(&e, "b"), FM_ENGINE_TOTAL, 100, false), 0);
    assert_kid(&e, "a", 30);
    assert_kid(&e, "main", 20);
    fm_engine_release(&e);
}

static void test_shapes(void **state)
{
    (void)state;
    struct fm_engine e;
    fm_engine_init(&e);
    fm_engine_add(&e, example(), "example");
    /* Without a: its 30 go to main, the inner 10 to b; both b become one. */
    struct fm_view *v = VIEW(&e, "together=1", "fold=glob:a");
    assert_int_equal(fm_view_layout(v, &everything), 0);
    assert_int_equal(e.results[0].rows, 3);
    assert_box(&e, 1, "main", 1, 0, 100, 50);
    assert_box(&e, 2, "b", 2, 0, 50, 50);
    /* What begins with the outermost a. */
    char option[32];
    snprintf(option, sizeof option, "root=id:%u", func_named(&e, "a"));
    v = VIEW(&e, "together=1", option);
    assert_int_equal(fm_view_layout(v, &everything), 0);
    assert_int_equal(e.results[0].rows, 4);
    assert_box(&e, 1, "a", 1, 0, 60, 30);
    /* Paths with b: main and a keep what is left below them. */
    v = VIEW(&e, "together=1", "keep=glob:b");
    assert_int_equal(fm_view_layout(v, &everything), 0);
    assert_box(&e, 1, "main", 1, 0, 50, 0);
    assert_box(&e, 2, "a", 2, 0, 30, 0);
    /* One file, one module. */
    v = VIEW(&e, "together=1", "byModule=1");
    assert_int_equal(v->nodes, 2);
    assert_int_equal(fm_view_layout(v, &everything), 0);
    assert_box(&e, 1, "app", 1, 0, 100, 100);
    fm_engine_release(&e);
}

/* Kept and then rooted: one f leads to k and has of its time what k has; the other is inside of k
 * and has all of its own. Both are outermost, so they become one.
 *
 *     main 1×100
 *         f 1×40
 *             k 1×30 [10]
 *                 f 1×20 [20]
 *         k 1×50
 *             f 1×30 [30]
 *         x 1×10
 */
static void test_kept_and_rooted(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    uint32_t root = fx_thread(p, 7);
    fm_profile_add(p, FM_METRIC_TOTAL, root, 100);
    uint32_t top = fx_node(p, root, "main", 1, 100);
    uint32_t f = fx_node(p, top, "f", 1, 40);
    uint32_t other = fx_node(p, top, "k", 1, 50); /* recorded before what is below the first one */
    fx_node(p, other, "f", 1, 30);
    fx_node(p, fx_node(p, f, "k", 1, 30), "f", 1, 20);
    fx_node(p, top, "x", 1, 10);
    struct fm_engine e;
    fm_engine_init(&e);
    fm_engine_add(&e, p, "kept");
    struct fm_view *v = VIEW(&e, "together=1", "keep=glob:k", "root=glob:f");
    assert_int_equal(fm_view_layout(v, &everything), 0);
    assert_int_equal(e.results[0].rows, 4);
    assert_box(&e, 0, "everything", 0, 0, 60, 0);
    assert_box(&e, 1, "f", 1, 0, 60, 30);
    assert_box(&e, 2, "k", 2, 0, 30, 10);
    assert_box(&e, 3, "f", 3, 0, 20, 20);
    fm_engine_release(&e);
}

/* Folding a makes one b of two. It leads to k, so all five calls of it are kept.
 *
 *     main 1×100
 *         a 1×60
 *             b 2×20
 *                 k 1×15 [15]
 *         b 3×30
 */
static void test_folded_and_kept(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    uint32_t root = fx_thread(p, 7);
    fm_profile_add(p, FM_METRIC_TOTAL, root, 100);
    uint32_t top = fx_node(p, root, "main", 1, 100);
    uint32_t a = fx_node(p, top, "a", 1, 60);
    fx_node(p, top, "b", 3, 30);
    fx_node(p, fx_node(p, a, "b", 2, 20), "k", 1, 15);
    struct fm_engine e;
    fm_engine_init(&e);
    fm_engine_add(&e, p, "folded");
    struct fm_view *v = VIEW(&e, "together=1", "fold=glob:a", "keep=glob:k");
    assert_int_equal(v->nodes, 4);
    assert_int_equal(fm_view_layout(v, &everything), 0);
    assert_box(&e, 1, "main", 1, 0, 15, 0);
    assert_box(&e, 2, "b", 2, 0, 15, 0);
    assert_box(&e, 3, "k", 3, 0, 15, 15);
    assert_int_equal(fm_view_table(v, FM_ENGINE_TOTAL), 0);
    assert_row(&e, "b", 5, 5, 0, 15);
    fm_engine_release(&e);
}

/* Only the views used last keep their numbers; the others make them again. */
static void test_numbers_come_again(void **state)
{
    (void)state;
    static const struct {
        const char *option;
        double total, self; /* of main */
    } cases[] = { { "keep=glob:b", 50, 0 },
                  { "fold=glob:a", 100, 50 },
                  { "fold=glob:b", 100, 40 },
                  { "fold=glob:none", 100, 20 } };
    struct fm_engine e;
    struct fm_view *views[4];
    fm_engine_init(&e);
    fm_engine_add(&e, example(), "example");
    for (int i = 0; i < 4; i++)
        views[i] = VIEW(&e, "together=1", cases[i].option);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 4; i++) {
            assert_int_equal(fm_view_layout(views[i], &everything), 0);
            assert_box(&e, 1, "main", 1, 0, cases[i].total, cases[i].self);
        }
    }
    assert_null(views[0]->side[0].values[FM_ENGINE_TOTAL].total);
    assert_non_null(views[3]->side[0].values[FM_ENGINE_TOTAL].total);
    fm_engine_release(&e);
}

/* Views that differ in being reversed have one tree, which lives as long as one of them. */
static void test_trees_are_shared(void **state)
{
    (void)state;
    struct fm_engine e;
    fm_engine_init(&e);
    fm_engine_add(&e, example(), "example");
    struct fm_view *plain = VIEW(&e, "together=1", "fold=glob:a");
    struct fm_view *reversed = VIEW(&e, "reversed=1", "fold=glob:a");
    struct fm_view *other = VIEW(&e, "together=1", "fold=glob:b");
    assert_ptr_equal(plain->parent, reversed->parent);
    assert_ptr_not_equal(plain->parent, other->parent);
    fm_engine_view_free(&e, 0);
    assert_int_equal(fm_view_children(reversed, 0, FM_ENGINE_TOTAL, 100, false), 0);
    assert_kid(&e, "b", 50);
    assert_kid(&e, "main", 50);
    plain = VIEW(&e, "together=1", "fold=glob:a");
    assert_ptr_equal(plain->parent, reversed->parent);
    assert_int_equal(fm_view_layout(plain, &everything), 0);
    assert_box(&e, 1, "main", 1, 0, 100, 50);
    fm_engine_view_free(&e, 1);
    assert_int_equal(fm_view_layout(plain, &everything), 0);
    assert_box(&e, 2, "b", 2, 0, 50, 50);
    fm_engine_release(&e);
}

static void test_modules(void **state)
{
    (void)state;
    static const struct {
        uint8_t kind;
        const char *file, *module;
        bool library;
    } cases[] = {
        { FM_FUNCTION_PYTHON, "/srv/app/main.py", "main", false },
        { FM_FUNCTION_PYTHON, "/srv/app/util/text.py", "util.text", false },
        { FM_FUNCTION_PYTHON, "/usr/lib/python3.11/json/decoder.py", "json.decoder", true },
        { FM_FUNCTION_PYTHON, "/usr/lib/python3.11/json/__init__.py", "json", true },
        { FM_FUNCTION_PYTHON, "/v/lib/python3.12/site-packages/numpy/core.py", "numpy.core", true },
        { FM_FUNCTION_PYTHON, "<frozen importlib._bootstrap>", "importlib._bootstrap", true },
        { FM_FUNCTION_PYTHON, "<string>", "<string>", false },
        { FM_FUNCTION_C, "", "<builtins>", true },
    };
    struct fm_engine e;
    struct fm_profile *p = fm_profile_new();
    for (size_t i = 0; i < FM_COUNT(cases); i++) {
        char name[8];
        snprintf(name, sizeof name, "f%zu", i);
        struct fm_function f = { .kind = cases[i].kind,
                                 .name = fm_profile_string(p, name),
                                 .qualname = fm_profile_string(p, name),
                                 .file = fm_profile_string(p, cases[i].file) };
        fm_profile_function(p, &f);
    }
    fm_engine_init(&e);
    fm_engine_add(&e, p, "modules");
    for (size_t i = 0; i < FM_COUNT(cases); i++) {
        char name[8];
        snprintf(name, sizeof name, "f%zu", i);
        const struct fm_engine_function *f = &e.functions.data[func_named(&e, name)];
        assert_string_equal(fm_strings_get(e.strings, f->module), cases[i].module);
        assert_int_equal(f->library, cases[i].library);
    }
    fm_engine_release(&e);
}

static void test_threads_together(void **state)
{
    (void)state;
    struct fm_engine e;
    struct fm_profile *p = example();
    uint32_t root = fx_thread(p, 8);
    fm_profile_add(p, FM_METRIC_TOTAL, root, 50);
    uint32_t top = fx_node(p, root, "main", 1, 50);
    fx_node(p, top, "c", 1, 5);
    fm_engine_init(&e);
    fm_engine_add(&e, p, "two threads");
    struct fm_view *v = VIEW(&e, "together=1");
    assert_int_equal(fm_view_layout(v, &everything), 0);
    assert_box(&e, 0, "everything", 0, 0, 150, 0);
    assert_box(&e, 1, "main", 1, 0, 150, 65);
    v = VIEW(&e, "together=0");
    assert_int_equal(fm_view_layout(v, &everything), 0);
    assert_box(&e, 1, "thread 7 (pid 7)", 1, 0, 100, 0);
    assert_box(&e, 2, "thread 8 (pid 8)", 1, 100, 50, 0);
    v = VIEW(&e, "thread=1", "together=0");
    assert_int_equal(fm_view_table(v, FM_ENGINE_TOTAL), 0);
    assert_int_equal(e.results[0].rows, 2);
    assert_row(&e, "main", 1, 1, 45, 50);
    v = VIEW(&e, "process=0", "together=1");
    assert_int_equal(fm_view_totals(v, FM_ENGINE_TOTAL), 0);
    assert_true(e.results[0].scalars[0] == 100);
    fm_engine_release(&e);
}

static void test_diff(void **state)
{
    (void)state;
    struct fm_engine e;
    struct fm_profile *p = fm_profile_new();
    uint32_t root = fx_thread(p, 9);
    fm_profile_add(p, FM_METRIC_TOTAL, root, 120);
    uint32_t top = fx_node(p, root, "main", 1, 120);
    fx_node(p, top, "a", 5, 80);
    fx_node(p, top, "c", 1, 30);
    fm_engine_init(&e);
    fm_engine_add(&e, example(), "after");
    fm_engine_add(&e, p, "before");
    struct fm_view *v = VIEW(&e, "base=1");
    struct fm_layout_query q = { .depth = 100, .by = FM_BY_BOTH };
    assert_int_equal(fm_view_layout(v, &q), 0);
    const struct fm_result *r = &e.results[0];
    assert_int_equal(r->rows, 7);
    assert_box(&e, 1, "main", 1, 0, 220, 20);
    assert_true(f64_at(r, 8, 1) == 120 && f64_at(r, 9, 1) == 10);
    assert_box(&e, 2, "a", 2, 0, 140, 30);
    assert_true(f64_at(r, 6, 2) == 60 && f64_at(r, 8, 2) == 80);
    assert_box(&e, 3, "c", 2, 140, 30, 0);
    assert_box(&e, 4, "b", 2, 170, 20, 20);
    assert_int_equal(fm_view_table(v, FM_ENGINE_TOTAL), 0);
    assert_row(&e, "a", 3, 2, 40, 60);
    uint32_t row = row_of(r, 0, func_named(&e, "a"));
    assert_true(f64_at(r, 10, row) == 5 && f64_at(r, 11, row) == 80 && f64_at(r, 12, row) == 80);
    assert_row(&e, "c", 0, 0, 0, 0);
    assert_true(r->scalars[0] == 100 && r->scalars[1] == 120);
    fm_engine_release(&e);
}

/* memray's recordings have no qualified names; the method before the function of that name is told by its line. */
static void test_bare_names_are_found_again(void **state)
{
    (void)state;
    static const char *const qualified[] = { "load", "Loader.load", "Other.load" };
    static const uint32_t lines[] = { 20, 10, 30 };
    struct fm_engine e;
    fm_engine_init(&e);
    for (int bare = 0; bare < 2; bare++) {
        struct fm_profile *p = fm_profile_new();
        uint32_t name = fm_profile_string(p, "load"), file = fm_profile_string(p, "x.py");
        for (int i = bare ? 1 : 2; i >= 0; i--)
            fm_profile_function(p, &(struct fm_function){
                                       .line = lines[i],
                                       .name = name,
                                       .qualname = bare ? name : fm_profile_string(p, qualified[i]),
                                       .file = file });
        fm_engine_add(&e, p, bare ? "memray" : "fathom");
    }
    const uint32_t *first = e.recordings[0]->func_of, *second = e.recordings[1]->func_of;
    assert_int_equal(second[0], first[1]); /* Loader.load */
    assert_int_equal(second[1], first[2]); /* load */
    fm_engine_release(&e);
}

/* Lines move between two recordings; lambdas of one file stay apart and are told by their order. */
static void test_functions_are_found_again(void **state)
{
    (void)state;
    struct fm_engine e;
    fm_engine_init(&e);
    for (uint32_t moved = 0; moved < 2; moved++) {
        struct fm_profile *p = fm_profile_new();
        uint32_t name = fm_profile_string(p, "<lambda>"), file = fm_profile_string(p, "x.py");
        for (uint32_t i = 0; i < 2; i++)
            fm_profile_function(p, &(struct fm_function){ .line = 10 + 5 * i + 100 * moved,
                                                          .name = name,
                                                          .qualname = name,
                                                          .file = file });
        fm_engine_add(&e, p, "lambdas");
    }
    const uint32_t *first = e.recordings[0]->func_of, *second = e.recordings[1]->func_of;
    assert_int_not_equal(first[0], first[1]);
    assert_int_equal(first[0], second[0]);
    assert_int_equal(first[1], second[1]);
    assert_int_equal(e.functions.data[first[0]].line, 10);
    fm_engine_release(&e);
}

static void test_samples(void **state)
{
    (void)state;
    struct fm_engine e;
    struct fm_profile *p = fm_profile_new();
    uint32_t root = fx_thread(p, 7);
    uint32_t top = fx_node(p, root, "main", 0, 0), leaf = fx_node(p, top, "a", 0, 0);
    fm_profile_add(p, FM_METRIC_SAMPLES, top, 2);
    fm_profile_add(p, FM_METRIC_SAMPLES, leaf, 3);
    fm_profile_add(p, FM_METRIC_STATE_PYTHON, top, 20);
    fm_profile_add(p, FM_METRIC_STATE_C, leaf, 7);
    fm_profile_add(p, FM_METRIC_STATE_LOCK, leaf, 11);
    fm_profile_add(p, FM_METRIC_STATE_SLEEP, leaf, 13);
    fm_engine_init(&e);
    fm_engine_add(&e, p, "sampled");
    struct fm_view *v = VIEW(&e, "together=1");
    static const struct {
        unsigned metric;
        double whole, leaf;
    } cases[] = { { FM_METRIC_SAMPLES, 5, 3 },
                  { FM_ENGINE_RUNNING, 27, 7 },
                  { FM_ENGINE_WAITING, 24, 24 },
                  { FM_METRIC_STATE_LOCK, 11, 11 } };
    for (size_t i = 0; i < FM_COUNT(cases); i++) {
        struct fm_numbers values = fm_view_values(v, 0, cases[i].metric);
        assert_true(values.total[0] == cases[i].whole);
        assert_true(values.total[2] == cases[i].leaf);
    }
    assert_int_equal(fm_view_table(v, FM_METRIC_SAMPLES), 0);
    const struct fm_result *r = &e.results[0];
    uint32_t row = row_of(r, 0, func_named(&e, "a"));
    const double *states = (const double *)r->column[10].data + (size_t)row * FM_STATE_COUNT;
    assert_true(r->scalars[2] == 1 && states[FM_STATE_LOCK] == 11 && states[FM_STATE_PYTHON] == 0);
    assert_int_equal(fm_engine_summary(&e, 0), 0);
    assert_non_null(strstr(e.text.data, "\"sampling\":{\"samples\":5,\"whole\":5,"));
    /* 2 of 5 seen in part: 3 are what the error, as a report states it, rests on. */
    struct fm_process *process = &e.recordings[0]->p->processes.data[0];
    process->sampled = true;
    process->samples = 5;
    process->samples_partial = 2;
    assert_int_equal(fm_engine_summary(&e, 0), 0);
    char expected[128];
    snprintf(expected, sizeof expected,
             "\"whole\":3,\"partialShare\":0.4,\"lostShare\":0,\"error\":%.9g}",
             fm_sampling_error_max(3));
    assert_non_null(strstr(e.text.data, expected));
    fm_engine_release(&e);
}

/* main calls a (50) and b (50); both call h, for 40 and 30: the estimate shares h out by callers.
 */
static void test_estimated_tree(void **state)
{
    (void)state;
    static const char *const names[] = { "main", "a", "b", "h" };
    static const int64_t rows[][2] = { { 100, 0 }, { 50, 10 }, { 50, 20 }, { 70, 70 } };
    static const uint32_t edges[][3] = { { 0, 1, 50 }, { 0, 2, 50 }, { 1, 3, 40 }, { 2, 3, 30 } };
    struct fm_engine e;
    struct fm_profile *p = fm_profile_new();
    p->flat = fm_calloc(1, sizeof *p->flat);
    for (size_t i = 0; i < 4; i++)
        fm_vec_push(&p->flat->rows, ((struct fm_flat_row){ .func = fx_function(p, names[i]),
                                                           .calls = 1,
                                                           .primitive = 1,
                                                           .total_ns = rows[i][0] * 1000000,
                                                           .self_ns = rows[i][1] * 1000000 }));
    for (size_t i = 0; i < 4; i++)
        fm_vec_push(&p->flat->edges, ((struct fm_flat_edge){ .caller = edges[i][0],
                                                             .callee = edges[i][1],
                                                             .calls = 1,
                                                             .primitive = 1,
                                                             .total_ns = edges[i][2] * 1000000 }));
    fm_engine_init(&e);
    fm_engine_add(&e, p, "table");
    assert_int_equal(fm_engine_summary(&e, 0), 0);
    assert_non_null(strstr(e.text.data, "\"tree\":\"estimated\""));
    assert_non_null(strstr(e.text.data, "\"processes\":[]"));
    struct fm_view *v = VIEW(&e, "together=1");
    assert_int_equal(fm_view_layout(v, &everything), 0);
    assert_int_equal(e.results[0].rows, 6);
    assert_box(&e, 1, "main", 1, 0, 100e6, 0);
    assert_box(&e, 2, "a", 2, 0, 50e6, 10e6);
    assert_box(&e, 4, "h", 3, 0, 40e6, 40e6);
    assert_box(&e, 5, "h", 3, 50e6, 30e6, 30e6);
    /* The table is the one that came. */
    assert_int_equal(fm_view_table(v, FM_ENGINE_TOTAL), 0);
    assert_row(&e, "h", 1, 1, 70e6, 70e6);
    assert_neighbour(&e, v, "h", true, "b", 1, 30e6);
    fm_engine_release(&e);
}

/* Of calls only their number is known, as the module `profile` writes it: a calls h three times of
 * four, b once. Of h's 80 the graph draws 60 and 20, as `fathom graph` does; the list of callers
 * invents nothing.
 */
static void test_calls_without_time(void **state)
{
    (void)state;
    static const char *const names[] = { "a", "b", "h" };
    static const int64_t rows[][3] = { { 1, 70, 10 }, { 1, 30, 10 }, { 4, 80, 80 } };
    struct fm_engine e;
    struct fm_profile *p = fm_profile_new();
    p->flat = fm_calloc(1, sizeof *p->flat);
    for (size_t i = 0; i < 3; i++)
        fm_vec_push(&p->flat->rows, ((struct fm_flat_row){ .func = fx_function(p, names[i]),
                                                           .calls = rows[i][0],
                                                           .primitive = rows[i][0],
                                                           .total_ns = rows[i][1],
                                                           .self_ns = rows[i][2] }));
    for (uint32_t i = 0; i < 2; i++)
        fm_vec_push(&p->flat->edges,
                    ((struct fm_flat_edge){ .caller = i, .callee = 2, .calls = i ? 1 : 3 }));
    fm_engine_init(&e);
    fm_engine_add(&e, p, "counts");
    struct fm_view *v = VIEW(&e, "together=1");
    assert_int_equal(
        fm_view_graph(
            v, &(struct fm_graph_query){ .edge_cut = 0.01, .root = FM_NONE, .leaf = FM_NONE }),
        0);
    const struct fm_result *edges = &e.results[1];
    assert_int_equal(edges->rows, 2);
    assert_true(f64_at(edges, 4, 0) == 60 && f64_at(edges, 5, 0) == 3);
    assert_true(f64_at(edges, 4, 1) == 20 && f64_at(edges, 5, 1) == 1);
    assert_neighbour(&e, v, "h", true, "a", 3, 0);
    assert_neighbour(&e, v, "h", true, "b", 1, 0);
    fm_engine_release(&e);
}

static void test_graph(void **state)
{
    (void)state;
    struct fm_engine e;
    fm_engine_init(&e);
    fm_engine_add(&e, example(), "example");
    struct fm_view *v = VIEW(&e, "together=1");
    struct fm_graph_query q = { .root = FM_NONE, .leaf = FM_NONE };
    assert_int_equal(fm_view_graph(v, &q), 0);
    const struct fm_result *nodes = &e.results[0], *edges = &e.results[1], *points = &e.results[2];
    assert_int_equal(nodes->rows, 3);
    assert_int_equal(edges->rows, 4);
    uint32_t top = row_of(nodes, 0, func_named(&e, "main")),
             a = row_of(nodes, 0, func_named(&e, "a")), b = row_of(nodes, 0, func_named(&e, "b"));
    /* main above a above b: b's call of a goes back up. */
    assert_int_equal(u32_at(nodes, 1, top), 0);
    assert_int_equal(u32_at(nodes, 1, a), 1);
    assert_int_equal(u32_at(nodes, 1, b), 2);
    for (uint32_t i = 0; i < edges->rows; i++) {
        uint32_t first = u32_at(edges, 2, i), last = first + u32_at(edges, 3, i) - 1;
        bool up = u32_at(edges, 0, i) == b && u32_at(edges, 1, i) == a;
        assert_true(up ? f64_at(points, 1, first) > f64_at(points, 1, last)
                       : f64_at(points, 1, first) < f64_at(points, 1, last));
        assert_true(f64_at(points, 0, first) == f64_at(nodes, 2, u32_at(edges, 0, i)));
    }
    q.node_cut = 0.55; /* main 100 %, a 60 %; not b, 50 % */
    assert_int_equal(fm_view_graph(v, &q), 0);
    assert_int_equal(nodes->rows, 2);
    assert_int_equal(edges->rows, 1);
    assert_true(nodes->scalars[2] == 1);
    q = (struct fm_graph_query){ .root = func_named(&e, "b"), .leaf = FM_NONE };
    assert_int_equal(fm_view_graph(v, &q), 0);
    assert_int_equal(nodes->rows, 2); /* b and a, which call each other */
    fm_engine_release(&e);
}

/* A random graph: boxes of a layer do not overlap, forward edges go down, same input same output.
 */
static void test_layers(void **state)
{
    (void)state;
    enum { NODES = 120, EDGES = 400 };
    static uint32_t layer[2][NODES];
    static double x[2][NODES], y[2][NODES];
    for (int run = 0; run < 2; run++) {
        static struct fm_layers_edge edge[EDGES];
        uint32_t seed = 1;
        for (int i = 0; i < EDGES; i++) {
            seed = seed * 1664525u + 1013904223u;
            uint32_t from = (seed >> 8) % NODES;
            seed = seed * 1664525u + 1013904223u;
            edge[i] =
                (struct fm_layers_edge){ .from = from, .to = (seed >> 8) % NODES, .weight = 1 };
        }
        struct fm_layers g = { .nodes = NODES,
                               .edges = EDGES,
                               .edge = edge,
                               .layer = layer[run],
                               .x = x[run],
                               .y = y[run] };
        fm_layers_place(&g);
        for (int i = 0; i < NODES; i++) {
            assert_true(x[run][i] >= 0.5 && x[run][i] <= g.width - 0.5);
            assert_true(y[run][i] >= 0.5 && y[run][i] <= g.height - 0.5);
            for (int k = 0; k < i; k++)
                if (layer[run][i] == layer[run][k])
                    assert_true(x[run][i] - x[run][k] >= 1.2 - 1e-6 ||
                                x[run][k] - x[run][i] >= 1.2 - 1e-6);
        }
        for (int i = 0; i < EDGES; i++)
            if (edge[i].from != edge[i].to)
                assert_int_not_equal(layer[run][edge[i].from], layer[run][edge[i].to]);
        fm_vec_release(&g.points);
    }
    assert_memory_equal(x[0], x[1], sizeof x[0]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
}

static void test_source(void **state)
{
    (void)state;
    static const char text[] = "def m():\n    pass\n";
    struct fm_engine e;
    struct fm_profile *p = example();
    uint32_t func = fx_function(p, "main"), file = fm_profile_string(p, "app.py");
    for (uint32_t line = 3; line > 1; line--) {
        struct fm_line *row = fm_lines_add(&p->lines, 0, func, line, false);
        row->hits = line * 10;
        row->total_ns = line * 100;
        row->self_ns = line;
    }
    fm_lines_sort(&p->lines);
    fm_vec_push(&p->sources,
                ((struct fm_source){ .file = file, .text = fm_profile_string(p, text) }));
    fm_engine_init(&e);
    fm_engine_add(&e, p, "lines");
    assert_int_equal(fm_engine_source(&e, 0, "app.py", 6, FM_NONE), 0);
    const struct fm_result *r = &e.results[0];
    assert_int_equal(r->rows, 2);
    assert_int_equal(u32_at(r, 0, 0), 2);
    assert_true(f64_at(r, 2, 1) == 30 && f64_at(r, 3, 0) == 200 && f64_at(r, 4, 1) == 3);
    assert_string_equal(fm_buffer_text(&e.text), text);
    assert_int_equal(e.results[1].rows, 3); /* main, a, b */
    assert_int_equal(fm_engine_source(&e, 0, "other.py", 8, FM_NONE), 0);
    assert_int_equal(r->rows, 0);
    assert_true(r->scalars[0] == 3 && r->scalars[1] == 0);
    fm_engine_release(&e);
}

static void test_names_are_text(void **state)
{
    (void)state;
    static const char evil[] = "\"</script>\\\n\x01";
    struct fm_engine e;
    struct fm_profile *p = fm_profile_new();
    fx_function(p, evil);
    fm_engine_init(&e);
    fm_engine_add(&e, p, evil);
    assert_int_equal(fm_engine_functions(&e, 1), 0);
    assert_non_null(strstr(e.text.data, "\"name\":\"\\u0022</script>\\u005c\\u000a\\u0001\""));
    fm_engine_release(&e);
}

static void test_refusals(void **state)
{
    (void)state;
    struct fm_engine e;
    fm_engine_init(&e);
    assert_int_equal(fm_engine_open(&e, "nonsense", 8, "x"), -1);
    assert_non_null(strstr(e.err.text, "not a Fathom recording"));
    assert_int_equal(fm_engine_summary(&e, 0), -1);
    assert_int_equal(fm_engine_summary(&e, -1), -1);
    assert_int_equal(fm_engine_view_new(&e,
                                        "recording\0"
                                        "0",
                                        12),
                     -1);
    fm_engine_add(&e, example(), "example");
    assert_int_equal(fm_engine_view_new(&e, "recording", 10), -1);
    assert_int_equal(fm_engine_view_new(&e,
                                        "recording\0"
                                        "0\0shape\0round",
                                        24),
                     -1);
    struct fm_view *v = VIEW(&e, "together=1");
    struct fm_layout_query q = { .depth = 9, .metric = 99 };
    assert_int_equal(fm_view_layout(v, &q), -1);
    q = (struct fm_layout_query){ .depth = 9, .root = 6 };
    assert_int_equal(fm_view_layout(v, &q), -1);
    assert_int_equal(fm_view_children(v, 6, 0, 10, false), -1);
    assert_int_equal(fm_view_table(v, 99), -1);
    fm_engine_close(&e, 0);
    assert_null(fm_engine_view(&e, 0));
    for (int i = 0; i < FM_ENGINE_RECORDINGS; i++)
        assert_int_equal(fm_engine_add(&e, example(), "x"), i);
    assert_int_equal(fm_engine_add(&e, example(), "x"), -1);
    fm_engine_release(&e);
}

/* ---- damaged recordings ---- */

/* Two lines of main allocate, and each calls work, one line of which allocates and calls work again. */
static struct fm_profile *lined(void)
{
    struct fm_profile *p = fm_profile_new();
    uint32_t root = fx_thread(p, 7), top = fx_function(p, "main"), work = fx_function(p, "work");
    uint32_t first = fm_profile_node_at(p, root, top, 3);
    uint32_t second = fm_profile_node_at(p, root, top, 4);
    uint32_t outer = fm_profile_node_at(p, first, work, 8);
    uint32_t inner = fm_profile_node_at(p, outer, work, 8);
    uint32_t other = fm_profile_node_at(p, second, work, 8);
    fm_profile_add(p, FM_METRIC_PEAK, first, 1);
    fm_profile_add(p, FM_METRIC_PEAK, second, 2);
    fm_profile_add(p, FM_METRIC_PEAK, outer, 10);
    fm_profile_add(p, FM_METRIC_PEAK, inner, 20);
    fm_profile_add(p, FM_METRIC_PEAK, other, 40);
    return p;
}

static uint32_t line_named(const struct fm_engine *e, const char *name, uint32_t line)
{
    for (uint32_t i = 0; i < e->functions.len; i++)
        if (e->functions.data[i].at == line && e->functions.data[i].of == func_named(e, name))
            return i;
    fail_msg("there is no line %u of %s", line, name);
    return FM_NONE;
}

static void assert_memory(struct fm_engine *e, uint32_t func, double self, double total)
{
    const struct fm_result *r = &e->results[0];
    uint32_t row = row_of(r, 0, func);
    assert_true(f64_at(r, 4, row) == self);
    assert_true(f64_at(r, 5, row) == total);
}

static void test_lines_are_boxes(void **state)
{
    (void)state;
    struct fm_engine e;
    fm_engine_init(&e);
    assert_int_equal(fm_engine_add(&e, lined(), "lined"), 0);
    struct fm_view *v = VIEW(&e, "together=1");
    assert_int_equal(v->nodes, 4); /* all, main, work, work */
    assert_int_equal(fm_view_table(v, FM_METRIC_PEAK), 0);
    assert_memory(&e, func_named(&e, "main"), 3, 73);
    assert_memory(&e, func_named(&e, "work"), 70, 70);
    v = VIEW(&e, "together=1", "byLine=1");
    assert_int_equal(v->nodes, 6);
    assert_int_equal(fm_view_table(v, FM_METRIC_PEAK), 0);
    assert_int_equal(e.results[0].rows, 3);
    assert_memory(&e, line_named(&e, "main", 3), 1, 31);
    assert_memory(&e, line_named(&e, "main", 4), 2, 42);
    assert_memory(&e, line_named(&e, "work", 8), 70, 70); /* below itself it counts once */
    /* To hide a line is to hide its function. */
    char word[32];
    snprintf(word, sizeof word, "fold=id:%u", line_named(&e, "work", 8));
    v = VIEW(&e, "together=1", "byLine=1", word);
    assert_int_equal(v->nodes, 3);
    assert_int_equal(fm_view_table(v, FM_METRIC_PEAK), 0);
    assert_memory(&e, line_named(&e, "main", 4), 42, 42);
    fm_engine_release(&e);
}

static void test_long_curves_keep_their_peaks(void **state)
{
    (void)state;
    struct fm_engine e;
    struct fm_profile *p = lined();
    for (uint64_t i = 0; i < 120000; i++)
        fm_vec_push(&p->memory.points,
                    ((struct fm_memory_point){ .process = i >= 60000,
                                               .at_ns = i,
                                               .heap = i == 70001 ? 99 : (int64_t)(i % 3),
                                               .rss = -1 }));
    fm_vec_push(&p->memory.counts, ((struct fm_heap_count){ 0, FM_HEAP_SIZES, 21, 5, 0 }));
    fm_vec_push(&p->memory.counts, ((struct fm_heap_count){ 0, FM_HEAP_LIVES, 0, 6, 0 }));
    for (uint64_t i = 0; i < 2001; i++)
        fm_vec_push(&p->memory.marks,
                    ((struct fm_memory_mark){ .process = 1,
                                              .name = fm_profile_string(p, i ? "two" : "one"),
                                              .level = i ? 3 : FM_MARK_NO_LEVEL,
                                              .begin_ns = i,
                                              .end_ns = i + 5 }));
    fm_engine_init(&e);
    assert_int_equal(fm_engine_add(&e, p, "long"), 0);
    assert_int_equal(fm_engine_memory(&e, 0), 0);
    const struct fm_result *r = &e.results[0];
    assert_int_equal(r->rows, 40000); /* one of three, of each process */
    bool found = false;
    for (uint32_t i = 0; i < r->rows; i++) {
        assert_int_equal(u32_at(r, 0, i), i >= 20000);
        double heap = f64_at(r, 2, i);
        assert_true(heap == 2 || heap == 99);
        found = found || (heap == 99 && f64_at(r, 1, i) == 70001);
    }
    assert_true(found);
    r = &e.results[1];
    assert_true(f64_at(r, 3, 0) == 1536);
    assert_true(f64_at(r, 4, 0) == 2048);
    assert_true(f64_at(r, 3, 1) == 0);
    assert_true(f64_at(r, 4, 1) == 1);
    r = &e.results[2];
    assert_int_equal(r->rows, 2000);
    assert_int_equal(u32_at(r, 2, 0), 0);
    assert_int_equal(u32_at(r, 2, 1), 3);
    assert_true(f64_at(r, 5, 7) == 12);
    static const char names[] = "{\"names\":[\"one\",\"two\"],\"regions\":[],\"parts\":[\"alive: ";
    assert_memory_equal(e.text.data, names, sizeof names - 1);
    fm_engine_release(&e);
}

#define SECOND 1000000000

/* What the lines of lined() had alive: after one second main:3 10 and work 100; after two main:3 nothing any more,
 * work 160 and the other work 7; after three less than nothing, which cannot be, of main:4. The run began at 5. */
static struct fm_profile *alive(void)
{
    struct fm_profile *p = lined();
    struct fm_history h = { .begin_ns = 5ull * SECOND, .end_ns = 9ull * SECOND };
    static const struct fm_history_change changes[][3] = {
        { { 0, 10, 1 }, { 2, 100, 4 } },
        { { 0, -10, -1 }, { 2, 60, 2 }, { 4, 7, 1 } },
        { { 1, -5, -1 } },
    };
    for (uint32_t node = 1; node < p->nodes.len; node++)
        fm_vec_push(&h.contexts, node);
    for (uint64_t i = 0; i < FM_COUNT(changes); i++) {
        fm_slices_begin(&h.slices, (6 + i) * SECOND);
        for (size_t k = 0; k < 3 && changes[i][k].bytes; k++)
            fm_slices_change(&h.slices, &changes[i][k]);
        fm_slices_end(&h.slices);
    }
    fm_vec_push(&p->memory.histories, h);
    return p;
}

static void test_instants(void **state)
{
    (void)state;
    struct fm_engine e;
    fm_engine_init(&e);
    assert_int_equal(fm_engine_add(&e, alive(), "alive"), 0);
    assert_int_equal(fm_engine_summary(&e, 0), 0);
    assert_non_null(strstr(fm_buffer_text(&e.text), "\"history\":{\"beginNs\":5000000000,"
                                                    "\"durationNs\":4000000000,\"slices\":3,"));
    /* It stands there, not among what the recording has. */
    const char *then = strstr(fm_buffer_text(&e.text), "\"key\":\"then\",");
    assert_true(then > strstr(fm_buffer_text(&e.text), "\"columns\":"));
    struct fm_view *v = VIEW(&e, "together=1", "byLine=1");
    struct fm_view *diff = VIEW(&e, "base=0", "byLine=1");
    struct fm_view *callers = VIEW(&e, "byLine=1", "reversed=1");
    assert_int_equal(fm_view_totals(v, FM_METRIC_THEN), 0);
    assert_true(e.results[0].scalars[0] == 0);
    assert_int_equal(fm_engine_moment(&e, 0, -1, 1.5 * SECOND), 0);
    assert_true(e.results[0].scalars[0] == -1);
    assert_true(e.results[0].scalars[2] == 1.0 * SECOND && e.results[0].scalars[3] == 1);
    assert_int_equal(fm_view_table(v, FM_METRIC_THEN), 0);
    assert_memory(&e, line_named(&e, "main", 3), 10, 110);
    assert_memory(&e, line_named(&e, "work", 8), 100, 100);
    assert_int_equal(fm_view_totals(callers, FM_METRIC_THEN_BLOCKS), 0);
    assert_true(e.results[0].scalars[0] == 5);
    /* Another instant takes the place of the first, in every view. */
    assert_int_equal(fm_engine_moment(&e, 0, 1.0 * SECOND, 3.0 * SECOND), 0);
    assert_true(e.results[0].scalars[0] == 1.0 * SECOND && e.results[0].scalars[1] == 1);
    assert_true(e.results[0].scalars[2] == 3.0 * SECOND);
    assert_int_equal(fm_view_table(v, FM_METRIC_THEN), 0);
    assert_memory(&e, line_named(&e, "main", 3), 0, 160);
    assert_memory(&e, line_named(&e, "main", 4), 0, 7);
    assert_memory(&e, line_named(&e, "work", 8), 167, 167);
    /* Against itself: what changed, each side as it was. */
    assert_int_equal(fm_view_table(diff, FM_METRIC_THEN), 0);
    const struct fm_result *r = &e.results[0];
    uint32_t row = row_of(r, 0, line_named(&e, "main", 3));
    assert_true(f64_at(r, 5, row) == 160 && f64_at(r, 11, row) == 10 && f64_at(r, 12, row) == 110);
    row = row_of(r, 0, line_named(&e, "main", 4));
    assert_true(f64_at(r, 5, row) == 7 && f64_at(r, 12, row) == 0);
    assert_true(r->scalars[0] == 167 && r->scalars[1] == 110);
    /* Whatever else is compared with itself has not changed. */
    assert_int_equal(fm_view_totals(diff, FM_METRIC_PEAK), 0);
    assert_true(r->scalars[0] == 73 && r->scalars[1] == 73);
    /* Before the first look there was nothing; after the end there is no instant. */
    assert_int_equal(fm_engine_moment(&e, 0, 0, 99.0 * SECOND), 0);
    assert_true(r->scalars[0] == 0 && r->scalars[2] == -1);
    assert_int_equal(fm_view_totals(diff, FM_METRIC_THEN), 0);
    assert_true(r->scalars[0] == 0 && r->scalars[1] == 0);
    assert_int_equal(fm_engine_moment(&e, 1, 0, 1), -1);
    fm_engine_release(&e);
}

static void test_errors_of_estimates(void **state)
{
    (void)state;
    struct fm_engine e;
    struct fm_profile *p = lined();
    for (uint32_t node = 1; node < p->nodes.len; node++)
        fm_profile_add(p, FM_METRIC_PEAK_ERROR, node, 25);
    p->processes.data[0].memory_sample_bytes = 32; /* three more of 2 · 2 in units of 16 bytes */
    fm_engine_init(&e);
    assert_int_equal(fm_engine_add(&e, p, "sampled"), 0);
    assert_int_equal(fm_engine_summary(&e, 0), 0);
    assert_null(strstr(fm_buffer_text(&e.text), "peak_error")); /* nothing to be drawn */
    assert_non_null(strstr(fm_buffer_text(&e.text), "\"memorySampleBytes\":32"));
    struct fm_view *v = VIEW(&e, "together=1", "byLine=1");
    assert_int_equal(fm_view_table(v, FM_METRIC_PEAK), 0);
    const struct fm_result *r = &e.results[0];
    uint32_t row = row_of(r, 0, line_named(&e, "main", 4));
    assert_true(r->scalars[4] == 1);
    assert_true(f64_at(r, 10, row) == 2 * 16 * 6); /* the root of 25 + 12 */
    assert_true(f64_at(r, 11, row) == 2 * 16 * 7); /* of 50 + 12 */
    assert_int_equal(fm_view_error(v, 0, FM_METRIC_PEAK), 0);
    assert_true(r->scalars[0] == 2 * 16 * 11); /* of 125 + 12 */
    assert_int_equal(fm_view_error(v, 0, FM_METRIC_BLOCKS), 0);
    assert_true(r->scalars[0] == 0);
    assert_int_equal(fm_view_error(v, 99, FM_METRIC_PEAK), -1);
    assert_int_equal(fm_view_table(v, FM_METRIC_LEAKED), 0);
    assert_true(r->scalars[4] == 0);
    fm_engine_release(&e);
}

static void test_visits_of_regions(void **state)
{
    (void)state;
    struct fm_engine e;
    struct fm_profile *p = lined();
    uint32_t load = fm_profile_string(p, "load"), quoted = fm_profile_string(p, "a \"b\"");
    fm_vec_push(&p->memory.marks, ((struct fm_memory_mark){ 0, load, 0, 7, 100, 300, 10, 40 }));
    fm_vec_push(&p->memory.marks,
                ((struct fm_memory_mark){ 0, quoted, FM_MARK_NO_LEVEL, 7, 150, 200, -1, -1 }));
    fm_vec_push(&p->memory.marks, ((struct fm_memory_mark){ 0, load, 0, 7, 400, 500, 40, 30 }));
    fm_vec_push(&p->regions.rows, ((struct fm_region_row){ .around = FM_NONE,
                                                           .name = load,
                                                           .entered = 2,
                                                           .ns = 300,
                                                           .memory = true,
                                                           .allocated = 50,
                                                           .freed = 30,
                                                           .above_most = 35 }));
    fm_engine_init(&e);
    struct fm_resident account = { .at_ns = 450, .rss = 99, .untouched = 7 };
    account.parts[FM_RESIDENT_PYTHON] = 90;
    account.parts[FM_RESIDENT_REST] = 9;
    fm_vec_push(&p->memory.residents, account);
    assert_int_equal(fm_engine_add(&e, p, "regions"), 0);
    assert_int_equal(fm_engine_memory(&e, 0), 0);
    const struct fm_result *r = &e.results[2];
    assert_int_equal(r->rows, 3);
    assert_int_equal(u32_at(r, 1, 0), 0);
    assert_int_equal(u32_at(r, 1, 1), 1);
    assert_int_equal(u32_at(r, 1, 2), 0);
    assert_int_equal(u32_at(r, 2, 1), 0);
    assert_true(f64_at(r, 4, 2) == 400 && f64_at(r, 5, 2) == 500 && f64_at(r, 7, 2) == 30);
    static const char numbers[] =
        "\"around\":-1,\"name\":\"load\",\"entered\":2,\"open\":0,\"ns\":300,"
        "\"memory\":true,\"allocated\":50,\"freed\":30,\"aboveMost\":35}";
    fm_autobuffer expected = FM_BUFFER_INIT;
    fm_buffer_addf(&expected, "{\"names\":[\"load\",\"a \\u0022b\\u0022\"],\"regions\":[");
    fm_buffer_addf(&expected, "{\"process\":-1,%s,{\"process\":0,%s],", numbers, numbers);
    assert_memory_equal(e.text.data, expected.data, expected.len);
    assert_non_null(strstr(fm_buffer_text(&e.text),
                           "\"residents\":[{\"process\":0,\"highest\":true,\"ns\":450,\"rss\":99,"
                           "\"untouched\":7,\"bytes\":[90,0,0,0,0,0,0,0,0,0,9]}]}"));
    fm_engine_release(&e);
}

static void use_everything(struct fm_engine *e, int recording)
{
    static const char *const shapes[] = { "together=1",      "together=0",  "byModule=1",
                                          "reversed=1",      "fold=glob:a", "keep=glob:b",
                                          "foldLibraries=1", "byLine=1" };
    assert_int_equal(fm_engine_summary(e, recording), 0);
    assert_int_equal(fm_engine_functions(e, 0), 0);
    assert_int_equal(fm_engine_memory(e, recording), 0);
    assert_int_equal(fm_engine_moment(e, recording, 0, 2.0 * SECOND), 0);
    fm_engine_source(e, recording, "app.py", 6, FM_NONE);
    for (size_t i = 0; i < FM_COUNT(shapes); i++) {
        struct fm_view *v = VIEW(e, shapes[i]);
        struct fm_graph_query q = { .root = FM_NONE, .leaf = FM_NONE };
        for (unsigned metric = 0; metric <= FM_METRIC_THEN;
             metric += metric == FM_ENGINE_CALLS ? FM_METRIC_THEN - FM_ENGINE_CALLS : 1) {
            struct fm_layout_query layout = { .depth = 100, .metric = metric };
            assert_int_equal(fm_view_layout(v, &layout), 0);
            assert_int_equal(fm_view_table(v, metric), 0);
            assert_int_equal(fm_view_children(v, 0, metric, 100, false), 0);
        }
        assert_int_equal(fm_view_graph(v, &q), 0);
        for (int k = 0; k < FM_ENGINE_VIEWS; k++)
            fm_engine_view_free(e, k);
    }
}

static uint32_t number_at(const uint8_t *at)
{
    uint32_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

/* Make the checksums right again, so that the damage gets past them. */
static void reseal(uint8_t *bytes, size_t len)
{
    size_t at = FM_FILE_HEADER_BYTES;
    while (at + FM_BLOCK_HEADER_BYTES <= len) {
        uint8_t *head = bytes + at;
        size_t stored = number_at(head + 8);
        if (stored > len - at - FM_BLOCK_HEADER_BYTES)
            return;
        uint32_t crc = fm_crc32c(0, head + FM_BLOCK_HEADER_BYTES, stored);
        memcpy(head + 16, &crc, sizeof crc);
        crc = fm_crc32c(0, head, 20);
        memcpy(head + 20, &crc, sizeof crc);
        at += FM_BLOCK_HEADER_BYTES + stored;
    }
}

/* Takes the profile over. */
static void damage(struct fm_profile *p, int runs)
{
    struct fm_error err = FM_ERROR_INIT;
    int fd = fx_file();
    assert_int_equal(fm_file_save_plain(p, fd, &err), 0);
    fm_profile_free(p);
    size_t len;
    fm_autofree uint8_t *whole = fx_file_bytes(fd, &len);
    fm_autofree uint8_t *bytes = fm_malloc(len);
    uint32_t seed = 1;
    for (int run = 0; run < runs; run++) {
        struct fm_engine e;
        size_t cut = len;
        memcpy(bytes, whole, len);
        for (int k = 0; k < 1 + run % 4; k++) {
            seed = seed * 1664525u + 1013904223u;
            bytes[(seed >> 8) % (uint32_t)len] ^= (uint8_t)(seed >> 3);
        }
        if (run % 4)
            reseal(bytes, len);
        if (run % 5 == 0)
            cut = (seed >> 8) % (uint32_t)len;
        fm_engine_init(&e);
        if (fm_engine_open(&e, bytes, cut, "damaged") == 0)
            use_everything(&e, 0);
        fm_engine_release(&e);
    }
}

static void test_damage(void **state)
{
    (void)state;
    damage(example(), 5000);
    damage(alive(), 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_sampled_beside_calls),
        cmocka_unit_test(test_reversed),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_kept_and_rooted),
        cmocka_unit_test(test_folded_and_kept),
        cmocka_unit_test(test_numbers_come_again),
        cmocka_unit_test(test_trees_are_shared),
        cmocka_unit_test(test_modules),
        cmocka_unit_test(test_threads_together),
        cmocka_unit_test(test_diff),
        cmocka_unit_test(test_functions_are_found_again),
        cmocka_unit_test(test_bare_names_are_found_again),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_estimated_tree),
        cmocka_unit_test(test_graph),
        cmocka_unit_test(test_calls_without_time),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_source),
        cmocka_unit_test(test_names_are_text),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_lines_are_boxes),
        cmocka_unit_test(test_long_curves_keep_their_peaks),
        cmocka_unit_test(test_instants),
        cmocka_unit_test(test_errors_of_estimates),
        cmocka_unit_test(test_visits_of_regions),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
