/*
 * Samples and states in a profile: spots and waits in order, the table of functions, reshaping.
 * Every number is worked out by hand from the drawing above its test.
 */
#include "fixture.h"

#include <math.h>

#include "base/memory.h"
#include "record/model/derive/edit.h"
#include "show/report/samples/sampling.h"

/* A sampled process with one thread; gives the thread's root. */
static uint32_t sampled_thread(struct fm_profile *p, uint32_t pid)
{
    uint32_t process = fm_profile_process(
        p, &(struct fm_process){ .pid = pid, .profiled = true, .sampled = true });
    uint32_t thread = fm_profile_thread(p, &(struct fm_thread){ .process = process, .tid = pid });
    return p->threads.data[thread].root;
}

/* A node whose samples took 10 ns each, all in one state; its callers' totals grow. */
static uint32_t node_in(struct fm_profile *p, uint32_t parent, const char *name, int64_t samples,
                        enum fm_state state)
{
    uint32_t node = fm_profile_node(p, parent, fx_function(p, name));
    fm_profile_add(p, FM_METRIC_SAMPLES, node, samples);
    fm_profile_add(p, fm_metric_of_state(state), node, samples * 10);
    for (uint32_t n = node; n != FM_NONE; n = p->nodes.data[n].parent)
        fm_profile_add(p, FM_METRIC_TOTAL, n, samples * 10);
    return node;
}

/*
 * root: 1 sample of its own (sleeping, without any frame)
 *   main: 2 Python
 *     f: 3 Python
 *       f: 4 C
 *         g: 5 GIL
 *     g: 6 network
 */
static struct fm_profile *recursive(void)
{
    struct fm_profile *p = fm_profile_new();
    uint32_t root = sampled_thread(p, 7);
    fm_profile_add(p, FM_METRIC_SAMPLES, root, 1);
    fm_profile_add(p, FM_METRIC_STATE_SLEEP, root, 10);
    fm_profile_add(p, FM_METRIC_TOTAL, root, 10);
    uint32_t top = node_in(p, root, "main", 2, FM_STATE_PYTHON);
    uint32_t f1 = node_in(p, top, "f", 3, FM_STATE_PYTHON);
    uint32_t f2 = node_in(p, f1, "f", 4, FM_STATE_C);
    node_in(p, f2, "g", 5, FM_STATE_GIL);
    node_in(p, top, "g", 6, FM_STATE_NETWORK);
    return p;
}

static void expect_row(const struct fm_profile *p, const struct fm_flat *flat, const char *name,
                       int64_t samples, int64_t total_samples)
{
    const struct fm_flat_row *row = fx_row(p, flat, name);
    assert_non_null(row);
    assert_int_equal(row->samples, samples);
    assert_int_equal(row->total_samples, total_samples);
    assert_int_equal(row->self_ns, samples * 10);
    assert_int_equal(row->total_ns, total_samples * 10);
    int64_t self_ns = 0, total_ns = 0;
    for (int s = 0; s < FM_STATE_COUNT; s++) {
        self_ns += row->state_ns[s];
        total_ns += row->total_state_ns[s];
    }
    assert_int_equal(self_ns, samples * 10);
    assert_int_equal(total_ns, total_samples * 10);
}

static void test_flat(void **state)
{
    (void)state;
    struct fm_profile *p = recursive();
    struct fm_flat *flat = fm_flat_new(p, NULL);
    assert_true(flat->sampled && flat->states);
    assert_int_equal(flat->rows.len, 3); /* the root is no row */
    expect_row(p, flat, "main", 2, 20);
    expect_row(p, flat, "f", 7, 12); /* 3 + 4 of its own, 5 below; none twice */
    expect_row(p, flat, "g", 11, 11);
    const struct fm_flat_row *f = fx_row(p, flat, "f");
    assert_int_equal(f->state_ns[FM_STATE_PYTHON], 30);
    assert_int_equal(f->state_ns[FM_STATE_C], 40);
    assert_int_equal(f->state_ns[FM_STATE_GIL], 0);
    assert_int_equal(f->total_state_ns[FM_STATE_PYTHON], 30);
    assert_int_equal(f->total_state_ns[FM_STATE_C], 40);
    assert_int_equal(f->total_state_ns[FM_STATE_GIL], 50);
    const struct fm_flat_row *g = fx_row(p, flat, "g");
    assert_int_equal(g->state_ns[FM_STATE_GIL], 50);
    assert_int_equal(g->state_ns[FM_STATE_NETWORK], 60);
    const struct fm_flat_edge *inner = fx_edge(p, flat, "f", "f"),
                              *g_f = fx_edge(p, flat, "f", "g");
    assert_int_equal(inner->samples, 4);
    assert_int_equal(inner->total_samples, 9);
    assert_int_equal(g_f->samples, 5);
    assert_int_equal(g_f->total_samples, 5);
    assert_int_equal(fx_edge(p, flat, "main", "f")->total_samples, 12);
    fm_flat_count_samples(flat); /* as Python's own sampler counts */
    fx_expect_row(p, flat, "f", 12, 7, 70, 120);
    fx_expect_edge(p, flat, "f", "f", 9, 4, 40, 90);
    fm_flat_free(flat);
    fm_profile_free(p);
}

/* Only what all processes in scope have makes a table of samples. */
static void test_flat_mixed(void **state)
{
    (void)state;
    struct fm_profile *p = recursive();
    fx_node(p, fx_thread(p, 8), "main", 3, 50);
    p->processes.data[1].calls = true;
    struct fm_flat *all = fm_flat_new(p, NULL);
    assert_false(all->sampled || all->states);
    struct fm_flat *one = fm_flat_new(p, &(struct fm_flat_scope){ 0, FM_NONE });
    assert_true(one->sampled);
    expect_row(p, one, "main", 2, 20);
    struct fm_flat *thread = fm_flat_new(p, &(struct fm_flat_scope){ FM_NONE, 1 });
    assert_false(thread->sampled);
    fx_expect_row(p, thread, "main", 3, 3, 50, 50);
    fm_flat_free(all);
    fm_flat_free(one);
    fm_flat_free(thread);
    /* A process of which nothing was recorded changes nothing. */
    p->processes.data[1].profiled = false;
    all = fm_flat_new(p, NULL);
    assert_true(all->sampled);
    fm_flat_add(all, all);
    assert_int_equal(fx_row(p, all, "f")->total_samples, 24);
    assert_int_equal(fx_row(p, all, "f")->total_state_ns[FM_STATE_GIL], 100);
    fm_flat_free(all);
    fm_profile_free(p);
}

static void expect_node(const struct fm_profile *p, uint32_t node, int64_t samples,
                        int64_t total_ns, enum fm_state state, int64_t state_ns)
{
    assert_int_not_equal(node, FM_NONE);
    assert_int_equal(fm_profile_value(p, FM_METRIC_SAMPLES, node), samples);
    assert_int_equal(fm_profile_value(p, FM_METRIC_TOTAL, node), total_ns);
    assert_int_equal(fm_profile_value(p, fm_metric_of_state(state), node), state_ns);
}

static void test_fold(void **state)
{
    (void)state;
    struct fm_profile *p = recursive();
    /* Without f: main has its 2 + 3 + 4 samples, and both g are one. */
    struct fm_profile *folded = fm_profile_fold(p, fm_function_glob, "f");
    uint32_t root = folded->threads.data[0].root, top = fx_child(folded, root, "main");
    expect_node(folded, root, 1, 210, FM_STATE_SLEEP, 10);
    expect_node(folded, top, 9, 200, FM_STATE_PYTHON, 50);
    assert_int_equal(fm_profile_value(folded, FM_METRIC_STATE_C, top), 40);
    expect_node(folded, fx_child(folded, top, "g"), 11, 110, FM_STATE_GIL, 50);
    struct fm_flat *flat = fm_flat_new(folded, NULL);
    expect_row(folded, flat, "main", 9, 20);
    fm_flat_free(flat);
    fm_profile_free(folded);
    /* Without main, too, what it had is the thread's. */
    folded = fm_profile_fold(p, fm_function_glob, "[fm]*");
    root = folded->threads.data[0].root;
    expect_node(folded, root, 10, 210, FM_STATE_PYTHON, 50);
    assert_int_equal(folded->nodes.len, 2);
    fm_profile_free(folded);
    fm_profile_free(p);
}

static void test_filter_and_root(void **state)
{
    (void)state;
    struct fm_profile *p = recursive();
    struct fm_profile *filtered = fm_profile_filter(p, fm_function_glob, "f");
    uint32_t root = filtered->threads.data[0].root, top = fx_child(filtered, root, "main");
    expect_node(filtered, root, 0, 120, FM_STATE_SLEEP, 0);
    expect_node(filtered, top, 0, 120, FM_STATE_PYTHON, 0);
    uint32_t f1 = fx_child(filtered, top, "f"), f2 = fx_child(filtered, f1, "f");
    expect_node(filtered, f1, 3, 120, FM_STATE_PYTHON, 30);
    expect_node(filtered, f2, 4, 90, FM_STATE_C, 40);
    expect_node(filtered, fx_child(filtered, f2, "g"), 5, 50, FM_STATE_GIL, 50);
    struct fm_flat *flat = fm_flat_new(filtered, NULL);
    expect_row(filtered, flat, "main", 0, 12);
    fm_flat_free(flat);
    fm_profile_free(filtered);
    struct fm_profile *rooted = fm_profile_root(p, fm_function_glob, "g");
    root = rooted->threads.data[0].root;
    expect_node(rooted, root, 0, 110, FM_STATE_SLEEP, 0);
    expect_node(rooted, fx_child(rooted, root, "g"), 11, 110, FM_STATE_NETWORK, 60);
    fm_profile_free(rooted);
    fm_profile_free(p);
}

/* ---- spots and waits ---- */

static void spot(struct fm_profile *p, const char *name, uint32_t column, int64_t samples)
{
    struct fm_spot s = {
        0, fx_function(p, name), 10, 10, column, column + 3, samples, samples * 10
    };
    fm_vec_push(&p->samples.spots, s);
}

static void wait(struct fm_profile *p, const char *name, enum fm_state state, const char *detail,
                 int64_t samples)
{
    struct fm_wait w = {
        0,       fx_function(p, name), 10, (uint32_t)state, fm_profile_string(p, detail),
        samples, samples * 10
    };
    fm_vec_push(&p->samples.waits, w);
}

static void test_sort(void **state)
{
    (void)state;
    struct fm_profile *p = recursive();
    spot(p, "g", 5, 1);
    spot(p, "f", 9, 2);
    spot(p, "f", 5, 3);
    spot(p, "g", 5, 4);
    wait(p, "g", FM_STATE_NETWORK, "b", 1);
    wait(p, "g", FM_STATE_LOCK, "b", 2);
    wait(p, "g", FM_STATE_NETWORK, "b", 3);
    wait(p, "f", FM_STATE_NETWORK, "b", 4);
    fm_samples_sort(&p->samples);
    fm_samples_sort(&p->samples); /* in order: nothing to do */
    assert_int_equal(p->samples.spots.len, 3);
    assert_int_equal(p->samples.spots.data[0].column, 5);
    assert_int_equal(p->samples.spots.data[0].samples, 3);
    assert_int_equal(p->samples.spots.data[1].column, 9);
    assert_int_equal(p->samples.spots.data[2].samples, 5);
    assert_int_equal(p->samples.spots.data[2].ns, 50);
    assert_int_equal(p->samples.waits.len, 3);
    assert_int_equal(p->samples.waits.data[0].samples, 4);
    assert_int_equal(p->samples.waits.data[1].state, FM_STATE_LOCK);
    assert_int_equal(p->samples.waits.data[2].samples, 4);
    fm_profile_free(p);
}

/* Two recordings side by side: processes, functions and strings have other numbers there. */
static void test_append(void **state)
{
    (void)state;
    struct fm_profile *p = recursive(), *other = fm_profile_new();
    spot(p, "f", 5, 1);
    fm_profile_string(other, "takes the first number");
    fx_function(other, "new");
    uint32_t root = sampled_thread(other, 9);
    node_in(other, root, "new", 1, FM_STATE_DISK);
    spot(other, "new", 7, 2);
    spot(other, "f", 5, 3);
    wait(other, "new", FM_STATE_DISK, "/data", 4);
    fm_samples_sort(&other->samples);
    fm_profile_merge(p, other);
    fm_profile_free(other);
    assert_int_equal(p->samples.spots.len, 3);
    const struct fm_spot *first = &p->samples.spots.data[0], *third = &p->samples.spots.data[2];
    assert_int_equal(first->process, 0);
    assert_int_equal(first->samples, 1);
    assert_int_equal(third->process, 1);
    assert_int_equal(third->func, fx_function(p, "new"));
    assert_int_equal(third->samples, 2);
    assert_int_equal(p->samples.waits.len, 1);
    assert_int_equal(p->samples.waits.data[0].process, 1);
    assert_string_equal(fm_profile_text(p, p->samples.waits.data[0].detail), "/data");
    struct fm_flat *flat = fm_flat_new(p, NULL);
    assert_true(flat->sampled);
    expect_row(p, flat, "new", 1, 1);
    fm_flat_free(flat);
    fm_profile_free(p);
}

/* Spots and waits stay with the functions that remain. */
static void test_reshaping(void **state)
{
    (void)state;
    struct fm_profile *p = recursive();
    spot(p, "main", 5, 1);
    spot(p, "f", 5, 2);
    wait(p, "f", FM_STATE_LOCK, "x", 3);
    wait(p, "g", FM_STATE_NETWORK, "y", 4);
    fm_samples_sort(&p->samples);
    struct fm_profile *folded = fm_profile_fold(p, fm_function_glob, "f");
    assert_int_equal(folded->samples.spots.len, 1);
    assert_int_equal(folded->samples.spots.data[0].samples, 1);
    assert_int_equal(folded->samples.waits.len, 1);
    assert_string_equal(fm_profile_text(folded, folded->samples.waits.data[0].detail), "y");
    struct fm_profile *rooted = fm_profile_root(p, fm_function_glob, "f");
    assert_int_equal(rooted->samples.spots.len, 1);
    assert_int_equal(rooted->samples.spots.data[0].samples, 2);
    assert_int_equal(rooted->samples.waits.len, 2);
    fm_profile_free(folded);
    fm_profile_free(rooted);
    fm_profile_free(p);
}

/* Equal lines are one, with their samples and states added up. */
static void test_lines(void **state)
{
    (void)state;
    struct fm_profile *p = recursive();
    for (uint32_t process = 0; process < 2; process++) {
        struct fm_line *row = fm_lines_add(&p->lines, process, fx_function(p, "f"), 10, false);
        row->samples = 3 + process;
        row->state_ns[FM_STATE_PYTHON] = 20;
        row->state_ns[FM_STATE_OTHER] = process;
    }
    struct fm_lines combined = fm_lines_combined(p, FM_NONE);
    assert_int_equal(combined.rows.len, 1);
    assert_int_equal(combined.rows.data[0].samples, 7);
    assert_int_equal(combined.rows.data[0].state_ns[FM_STATE_PYTHON], 40);
    assert_int_equal(combined.rows.data[0].state_ns[FM_STATE_OTHER], 1);
    fm_lines_release(&combined);
    fm_profile_free(p);
}

/* ---- only some states ---- */

static void test_keep_states(void **state)
{
    (void)state;
    struct fm_profile *p = recursive();
    struct fm_line *row = fm_lines_add(&p->lines, 0, fx_function(p, "f"), 10, false);
    row->samples = 7;
    row->self_ns = 70;
    row->total_ns = 120;
    row->state_ns[FM_STATE_PYTHON] = 30;
    row->state_ns[FM_STATE_GIL] = 40;
    spot(p, "f", 5, 1);
    wait(p, "g", FM_STATE_NETWORK, "b", 6);
    wait(p, "g", FM_STATE_GIL, "b", 5);
    fm_samples_sort(&p->samples);
    assert_true(fm_samples_keep_states(p, 1u << FM_STATE_PYTHON | 1u << FM_STATE_GIL));
    uint32_t root = p->threads.data[0].root;
    expect_node(p, root, 0, 100, FM_STATE_SLEEP, 0); /* 2 + 3 + 5 samples are left below it */
    struct fm_flat *flat = fm_flat_new(p, NULL);
    expect_row(p, flat, "main", 2, 10);
    expect_row(p, flat, "f", 3, 8);
    expect_row(p, flat, "g", 5, 5);
    assert_int_equal(fx_row(p, flat, "g")->state_ns[FM_STATE_NETWORK], 0);
    fm_flat_free(flat);
    assert_int_equal(p->lines.rows.data[0].samples, 7);
    assert_int_equal(p->lines.rows.data[0].total_ns, 70); /* what it called is not known by state */
    assert_int_equal(p->samples.spots.len, 0);
    assert_int_equal(p->samples.waits.len, 1);
    assert_int_equal(p->samples.waits.data[0].samples, 5);
    fm_profile_free(p);
}

/* A node with 9 samples, two thirds of the time in C: 6 of them; time too short for one is one. */
static void test_keep_states_scales(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    uint32_t top = node_in(p, sampled_thread(p, 7), "main", 9, FM_STATE_PYTHON);
    fm_profile_add(p, FM_METRIC_STATE_C, top, 180);
    fm_profile_add(p, FM_METRIC_STATE_DISK, top, 1);
    fm_profile_add(p, FM_METRIC_STATE_PYTHON, top, -1);
    struct fm_profile *other = fm_profile_new();
    fm_profile_merge(other, p);
    assert_true(fm_samples_keep_states(p, 1u << FM_STATE_C));
    expect_node(p, top, 6, 180, FM_STATE_C, 180);
    assert_true(fm_samples_keep_states(other, 1u << FM_STATE_DISK));
    expect_node(other, top, 1, 1, FM_STATE_DISK, 1);
    fm_profile_free(p);
    fm_profile_free(other);
    /* Calls that were recorded are not touched. */
    p = fm_profile_new();
    fx_node(p, fx_thread(p, 7), "main", 1, 100);
    p->processes.data[0].calls = true;
    assert_false(fm_samples_keep_states(p, 1));
    fx_expect_node(p, 1, 1, 100);
    fm_profile_free(p);
}

/* Calls and samples at once: main was called once and took 100 ns, the samples say 20 in Python and
 * 30 in C. Calls know no states: only what was sampled in C is left. */
static void test_keep_states_beside_calls(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    uint32_t top = fx_node(p, fx_thread(p, 7), "main", 1, 100);
    fm_profile_add(p, FM_METRIC_SAMPLES, top, 5);
    fm_profile_add(p, FM_METRIC_STATE_PYTHON, top, 20);
    fm_profile_add(p, FM_METRIC_STATE_C, top, 30);
    p->processes.data[0].calls = p->processes.data[0].sampled = true;
    struct fm_line *row = fm_lines_add(&p->lines, 0, fx_function(p, "main"), 10, true);
    *row = (struct fm_line){ .func = row->func,
                             .line = 10,
                             .hits = 4,
                             .total_ns = 100,
                             .self_ns = 100,
                             .min_ns = 1,
                             .max_ns = 50,
                             .samples = 5,
                             .histogram = row->histogram,
                             .state_ns = { [FM_STATE_PYTHON] = 20, [FM_STATE_C] = 30 } };
    struct fm_flat *flat = fm_flat_new(p, NULL);
    assert_true(flat->beside && !flat->states && !flat->sampled);
    fm_flat_free(flat);
    assert_true(fm_samples_keep_states(p, 1u << FM_STATE_C));
    expect_node(p, top, 3, 30, FM_STATE_C, 30);
    flat = fm_flat_new(p, NULL);
    assert_true(flat->states && !flat->beside);
    fx_expect_row(p, flat, "main", 0, 0, 30, 30);
    fm_flat_free(flat);
    assert_int_equal(p->lines.rows.data[0].hits, 0);
    assert_int_equal(p->lines.rows.data[0].total_ns, 30);
    assert_int_equal(p->lines.rows.data[0].max_ns, 0);
    assert_int_equal(p->lines.rows.data[0].samples, 3);
    fm_profile_free(p);
}

/* ---- how it is told ---- */

static void expect_told(const struct fm_profile *p, const struct fm_flat_scope *scope,
                        const char *samples, const char *error)
{
    fm_autobuffer line = FM_BUFFER_INIT, end = FM_BUFFER_INIT;
    struct fm_sampling s = fm_sampling_of(p, scope);
    fm_sampling_describe(&s, &line);
    fm_sampling_describe_error(&s, "shares", &end);
    assert_string_equal(fm_buffer_text(&line), samples);
    assert_string_equal(fm_buffer_text(&end), error);
}

/* 100 samples. The error of one half of n: 1.96 / (2 √(n + 1.96²)): 9.6 % of 100, 10.7 % of 80, of
 * none there is no telling. */
static void test_partial_is_no_evidence(void **state)
{
    (void)state;
    struct fm_flat_scope all = { FM_NONE, FM_NONE }, thread = { FM_NONE, 0 };
    struct fm_profile *p = fm_profile_new();
    node_in(p, sampled_thread(p, 7), "main", 100, FM_STATE_PYTHON);
    p->processes.data[0].samples = 100;
    p->processes.data[0].sample_interval_ns = 1000000;
    expect_told(p, &all, "100 samples at 1,000 Hz (wall), 0 partial, 0 lost",
                "shares are right within ± 9.6 % (95 %)");
    p->processes.data[0].samples_lost = 25;
    expect_told(p, &all, "100 samples at 1,000 Hz (wall), 0 partial, 25 lost (20.0 %)",
                "shares of what was not lost are right within ± 9.6 % (95 %)");
    p->processes.data[0].samples_lost = 2; /* of 102: hardly of weight */
    expect_told(p, &all, "100 samples at 1,000 Hz (wall), 0 partial, 2 lost (2.0 %)",
                "shares are right within ± 9.6 % (95 %)");
    p->processes.data[0].samples_lost = 25;
    p->processes.data[0].samples_partial = 20;
    expect_told(p, &all, "100 samples at 1,000 Hz (wall), 20 partial (20.0 %), 25 lost (20.0 %)",
                "shares of the 80 seen whole are right within ± 10.7 % (95 %)");
    expect_told(p, &thread,
                "100 samples at 1,000 Hz (wall), 20.0 % partial, 20.0 % lost in its process",
                "shares of the 80 seen whole are right within ± 10.7 % (95 %)");
    struct fm_sampling s = fm_sampling_of(p, &all);
    assert_true(fabs(fm_sampling_error_of(&s, 50, 100) - fm_sampling_error(40, 80)) < 1e-12);
    p->processes.data[0].samples_partial = 100;
    expect_told(p, &all, "100 samples at 1,000 Hz (wall), 100 partial (100.0 %), 25 lost (20.0 %)",
                "none was seen whole: shares are not to be trusted");
    fm_profile_free(p);
}

/* Wilson score intervals as published: 5 of 10: 0.2366 to 0.7634; 1 of 10: 0.0179 to 0.4042; none
 * of 10: up to 3.8415 / 13.8415. */
static void test_error(void **state)
{
    (void)state;
    assert_true(fabs(fm_sampling_error(5, 10) - 0.2634) < 5e-5);
    assert_true(fabs(fm_sampling_error(1, 10) - 0.3042) < 5e-5);
    assert_true(fabs(fm_sampling_error(9, 10) - 0.3042) < 5e-5);
    assert_true(fabs(fm_sampling_error(0, 10) - 3.8415 / 13.8415) < 5e-5);
    assert_true(fabs(fm_sampling_error(10, 10) - 3.8415 / 13.8415) < 5e-5);
    assert_true(fabs(fm_sampling_error_max(10) - 0.2634) < 5e-5);
    assert_true(fm_sampling_error(3, 0) == 1 && fm_sampling_error_max(0) == 1);
    assert_true(fm_sampling_error(20, 10) == fm_sampling_error(10, 10)); /* damaged: no nonsense */
}

static void test_states_as_text(void **state)
{
    (void)state;
    char text[FM_NUMBER_BYTES];
    const int64_t three[] = { 62, 20, 18, 0, 0, 0, 0, 0 };
    const int64_t four[] = { 10, 0, 0, 0, 0, 40, 30, 20 };
    const int64_t tiny[] = { 999, 0, 0, 1, 0, 0, 0, 0 };
    const int64_t none[FM_STATE_COUNT] = { 0 };
    assert_string_equal(fm_states_write(text, three), "py 62 · C 20 · gil 18");
    assert_string_equal(fm_states_write(text, four), "net 40 · sleep 30 · other 20");
    assert_string_equal(fm_states_write(text, tiny), "py 100");
    assert_string_equal(fm_states_write(text, none), "");
    /* Of 8 cells: 4.96, 1.6, 1.44: four, one, one, and two more for the largest remainders. */
    assert_string_equal(fm_states_write_bar(text, three), "pppppCCg");
    assert_string_equal(fm_states_write_bar(text, four), "pnnnssoo"); /* .8, 3.2, 2.4, 1.6 */
    assert_string_equal(fm_states_write_bar(text, tiny), "pppppppp");
    assert_string_equal(fm_states_write_bar(text, none), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flat),
        cmocka_unit_test(test_flat_mixed),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_filter_and_root),
        cmocka_unit_test(test_sort),
        cmocka_unit_test(test_append),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_reshaping),
        cmocka_unit_test(test_keep_states),
        cmocka_unit_test(test_keep_states_scales),
        cmocka_unit_test(test_error),
        cmocka_unit_test(test_states_as_text),
        cmocka_unit_test(test_keep_states_beside_calls),
        cmocka_unit_test(test_partial_is_no_evidence),
    };
    return cmocka_run_group_tests_name("samples", tests, NULL, NULL);
}
