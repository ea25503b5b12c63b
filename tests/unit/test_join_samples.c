/* Samples combined with exact recordings of the same run; every expectation is worked out by hand. */
#include "fixture.h"

#include "record/model/derive/join_samples.h"

#define MS 1000000

/* A process with a main thread; gives the thread's root. */
static uint32_t process(struct fm_profile *p, uint32_t pid, uint64_t start_ns, uint64_t end_ns,
                        bool sampled)
{
    uint32_t index = fm_profile_process(
        p, &(struct fm_process){ .pid = pid,
                                 .start_ns = start_ns,
                                 .end_ns = end_ns,
                                 .exit_status = sampled ? -1 : 0,
                                 .profiled = true,
                                 .calls = !sampled,
                                 .sampled = sampled,
                                 .sample_interval_ns = sampled ? MS : 0,
                                 .sample_rounds = sampled ? 10 : 0,
                                 .samples = sampled ? 9 : 0,
                                 .samples_lost = sampled ? 1 : 0,
                                 .version = fm_profile_string(p, sampled ? "3.13.0" : "3.13.1") });
    uint32_t thread =
        fm_profile_thread(p, &(struct fm_thread){ .process = index,
                                                  .tid = pid,
                                                  .start_ns = start_ns,
                                                  .name = fm_profile_string(p, "MainThread") });
    return p->threads.data[thread].root;
}

static uint32_t c_node(struct fm_profile *p, uint32_t parent, const char *name, int64_t calls)
{
    uint32_t string = fm_profile_string(p, name);
    struct fm_function f = { .kind = FM_FUNCTION_C, .name = string, .qualname = string };
    uint32_t node = fm_profile_node(p, parent, fm_profile_function(p, &f));
    fm_profile_add(p, FM_METRIC_CALLS, node, calls);
    return node;
}

/* A node in which `samples` samples of 1 ms in Python ended; its total is that of them and those of
 * its callees. */
static uint32_t sampled_node(struct fm_profile *p, uint32_t parent, const char *name,
                             int64_t samples, int64_t total_ms)
{
    uint32_t node = fm_profile_node(p, parent, fx_function(p, name));
    fm_profile_add(p, FM_METRIC_SAMPLES, node, samples);
    fm_profile_add(p, FM_METRIC_STATE_PYTHON, node, samples * MS);
    fm_profile_add(p, FM_METRIC_TOTAL, node, total_ms * MS);
    return node;
}

static void expect_samples(const struct fm_profile *p, uint32_t node, int64_t samples)
{
    assert_int_not_equal(node, FM_NONE);
    assert_int_equal(fm_profile_value(p, FM_METRIC_SAMPLES, node), samples);
    assert_int_equal(fm_profile_value(p, FM_METRIC_STATE_PYTHON, node), samples * MS);
}

static void test_same_paths_share_nodes(void **state)
{
    (void)state;
    /* exact:   main(1, 100 ms) → { a(2, 60) → b(4, 20), [sorted] → key(3, 5) }
     * sampled: main 1 → { a 3 → b 2, key 1, new 2 } */
    struct fm_profile *exact = fm_profile_new(), *samples = fm_profile_new();
    uint32_t root = process(exact, 7, 1000, 9000, false);
    uint32_t top = fx_node(exact, root, "main", 1, 100 * MS);
    uint32_t a = fx_node(exact, top, "a", 2, 60 * MS);
    uint32_t b = fx_node(exact, a, "b", 4, 20 * MS);
    uint32_t sorted = c_node(exact, top, "sorted", 1);
    uint32_t key = fx_node(exact, sorted, "key", 3, 5 * MS);
    size_t nodes = exact->nodes.len;

    uint32_t s_root = process(samples, 7, 1500, 8000, true);
    uint32_t s_top = sampled_node(samples, s_root, "main", 1, 9);
    uint32_t s_a = sampled_node(samples, s_top, "a", 3, 5);
    sampled_node(samples, s_a, "b", 2, 2);
    sampled_node(samples, s_top, "key", 1, 1);
    sampled_node(samples, s_top, "new", 2, 2);

    fm_profile_join_samples(exact, samples);
    assert_int_equal(exact->processes.len, 1);
    assert_int_equal(exact->threads.len, 1);
    assert_int_equal(exact->nodes.len, nodes + 1); /* only "new" is */
    expect_samples(exact, top, 1);
    expect_samples(exact, a, 3);
    expect_samples(exact, b, 2);
    expect_samples(exact, key, 1); /* through the C function, which samples do not show */
    expect_samples(exact, sorted, 0);
    expect_samples(exact, fx_child(exact, top, "new"), 2);
    /* Exact numbers stay what they were. */
    fx_expect_node(exact, top, 1, 100 * MS);
    fx_expect_node(exact, a, 2, 60 * MS);
    fx_expect_node(exact, b, 4, 20 * MS);
    fx_expect_node(exact, key, 3, 5 * MS);
    fx_expect_node(exact, fx_child(exact, top, "new"), 0, 0);
    const struct fm_process *combined = &exact->processes.data[0];
    assert_true(combined->sampled && combined->calls);
    assert_int_equal(combined->samples, 9);
    assert_int_equal(combined->samples_lost, 1);
    assert_int_equal(combined->sample_rounds, 10);
    assert_int_equal(combined->sample_interval_ns, MS);
    assert_int_equal(combined->exit_status, 0);
    assert_string_equal(fm_profile_text(exact, combined->version), "3.13.1");
    fm_profile_free(exact);
    fm_profile_free(samples);
}

static void test_recursion(void **state)
{
    (void)state;
    /* f → f → f on both sides: each level meets its own. */
    struct fm_profile *exact = fm_profile_new(), *samples = fm_profile_new();
    uint32_t nodes[3], at = process(exact, 7, 1000, 9000, false);
    for (int i = 0; i < 3; i++)
        nodes[i] = at = fx_node(exact, at, "f", 1, (30 - 10 * i) * MS);
    at = process(samples, 7, 1500, 8000, true);
    for (int i = 0; i < 4; i++)
        at = sampled_node(samples, at, "f", i + 1, 0);
    fm_profile_join_samples(exact, samples);
    for (int i = 0; i < 3; i++)
        expect_samples(exact, nodes[i], i + 1);
    expect_samples(exact, fx_child(exact, nodes[2], "f"), 4);
    fm_profile_free(exact);
    fm_profile_free(samples);
}

static void test_only_sampled(void **state)
{
    (void)state;
    /* Process 8 has no exact recording: it comes whole, with the times of its samples. */
    struct fm_profile *exact = fm_profile_new(), *samples = fm_profile_new();
    uint32_t top = fx_node(exact, process(exact, 7, 1000, 9000, false), "main", 1, 100 * MS);
    uint32_t s_root = process(samples, 8, 1500, 8000, true);
    uint32_t s_top = sampled_node(samples, s_root, "main", 1, 4);
    sampled_node(samples, s_top, "a", 3, 3);
    fm_profile_join_samples(exact, samples);
    assert_int_equal(exact->processes.len, 2);
    assert_int_equal(exact->processes.data[1].pid, 8);
    assert_int_equal(exact->processes.data[1].exit_status, -1);
    assert_string_equal(fm_profile_text(exact, exact->processes.data[1].version), "3.13.0");
    assert_false(exact->processes.data[0].sampled);
    expect_samples(exact, top, 0);
    assert_int_equal(exact->threads.len, 2);
    assert_string_equal(fm_profile_text(exact, exact->threads.data[1].name), "MainThread");
    uint32_t new_top = fx_child(exact, exact->threads.data[1].root, "main");
    expect_samples(exact, new_top, 1);
    fx_expect_node(exact, new_top, 0, 4 * MS);
    fx_expect_node(exact, fx_child(exact, new_top, "a"), 0, 3 * MS);
    fm_profile_free(exact);
    fm_profile_free(samples);
}

static void test_processes_of_one_number(void **state)
{
    (void)state;
    /* Process 7 executed another Python at 5000, of which only the second part was sampled; and 9
     * ended before a later process 9 was sampled. */
    struct fm_profile *exact = fm_profile_new(), *samples = fm_profile_new();
    uint32_t before = fx_node(exact, process(exact, 7, 1000, 0, false), "main", 1, MS);
    uint32_t after = fx_node(exact, process(exact, 7, 5100, 9000, false), "main", 1, MS);
    uint32_t old = fx_node(exact, process(exact, 9, 1000, 2000, false), "main", 1, MS);
    sampled_node(samples, process(samples, 7, 5050, 9000, true), "main", 4, 4);
    sampled_node(samples, process(samples, 9, 3000, 9000, true), "main", 5, 5);
    fm_profile_join_samples(exact, samples);
    assert_int_equal(exact->processes.len, 4);
    expect_samples(exact, before, 0);
    expect_samples(exact, after, 4);
    expect_samples(exact, old, 0);
    expect_samples(exact, fx_child(exact, exact->threads.data[3].root, "main"), 5);
    assert_int_equal(exact->threads.data[3].process, 3);
    fm_profile_free(exact);
    fm_profile_free(samples);
}

static void test_exit_status(void **state)
{
    (void)state;
    /* The exact recording does not know how process 7 ended, and knows of process 8. */
    struct fm_profile *exact = fm_profile_new(), *samples = fm_profile_new();
    for (uint32_t pid = 7; pid < 9; pid++) {
        process(exact, pid, 1000, 9000, false);
        process(samples, pid, 1000, 9000, true);
        samples->processes.data[pid - 7].exit_status = 3;
    }
    exact->processes.data[0].exit_status = -1;
    /* Nor how much processor time its thread took; of 8 it knows better. */
    samples->threads.data[0].cpu_ns = samples->threads.data[1].cpu_ns = 5 * MS;
    exact->threads.data[1].cpu_ns = 6 * MS;
    fm_profile_join_samples(exact, samples);
    assert_int_equal(exact->threads.data[0].cpu_ns, 5 * MS);
    assert_int_equal(exact->threads.data[1].cpu_ns, 6 * MS);
    assert_int_equal(exact->processes.data[0].exit_status, 3);
    assert_int_equal(exact->processes.data[1].exit_status, 0);
    fm_profile_free(exact);
    fm_profile_free(samples);
}

static void test_both_parts_of_a_process(void **state)
{
    (void)state;
    struct fm_profile *exact = fm_profile_new(), *samples = fm_profile_new();
    uint32_t before = fx_node(exact, process(exact, 7, 1000, 0, false), "main", 1, MS);
    uint32_t after = fx_node(exact, process(exact, 7, 5100, 9000, false), "main", 1, MS);
    sampled_node(samples, process(samples, 7, 1200, 5000, true), "main", 3, 3);
    sampled_node(samples, process(samples, 7, 5050, 9000, true), "main", 4, 4);
    fm_profile_join_samples(exact, samples);
    assert_int_equal(exact->processes.len, 2);
    expect_samples(exact, before, 3);
    expect_samples(exact, after, 4);
    fm_profile_free(exact);
    fm_profile_free(samples);
}

static void test_threads(void **state)
{
    (void)state;
    /* Thread 70 ended at 2000, then its number was given to another, which was sampled; thread 71 was
     * known to the samples alone, and 70 has a second, pseudo-thread of tasks. */
    struct fm_profile *exact = fm_profile_new(), *samples = fm_profile_new();
    process(exact, 7, 1000, 9000, false);
    struct fm_thread thread = { .process = 0, .tid = 70, .start_ns = 1000, .end_ns = 2000 };
    uint32_t first = fm_profile_thread(exact, &thread);
    thread.start_ns = 3000, thread.end_ns = 4000;
    uint32_t second = fm_profile_thread(exact, &thread);

    process(samples, 7, 1000, 9000, true);
    thread.start_ns = 3100;
    sampled_node(samples, samples->threads.data[fm_profile_thread(samples, &thread)].root, "w", 2,
                 2);
    thread.name = fm_profile_string(samples, "tasks");
    sampled_node(samples, samples->threads.data[fm_profile_thread(samples, &thread)].root, "t", 3,
                 3);
    thread.tid = 71;
    sampled_node(samples, samples->threads.data[fm_profile_thread(samples, &thread)].root, "u", 1,
                 1);
    fm_profile_join_samples(exact, samples);
    assert_int_equal(exact->threads.len, 5);
    assert_int_equal(fx_child(exact, exact->threads.data[first].root, "w"), FM_NONE);
    expect_samples(exact, fx_child(exact, exact->threads.data[second].root, "w"), 2);
    assert_int_equal(fx_child(exact, exact->threads.data[second].root, "t"), FM_NONE);
    expect_samples(exact, fx_child(exact, exact->threads.data[3].root, "t"), 3);
    assert_string_equal(fm_profile_text(exact, exact->threads.data[3].name), "tasks");
    assert_int_equal(exact->threads.data[4].tid, 71);
    assert_int_equal(exact->threads.data[4].process, 0);
    expect_samples(exact, fx_child(exact, exact->threads.data[4].root, "u"), 1);
    fm_profile_free(exact);
    fm_profile_free(samples);
}

static void test_tasks(void **state)
{
    (void)state;
    /* exact:   main(1, 100 ms) → sleep(2, 5)
     * sampled: main 9 → sleep 1, and beside it the tasks: job 0 → sleep 40 */
    for (int calls = 0; calls < 2; calls++) {
        struct fm_profile *exact = fm_profile_new(), *samples = fm_profile_new();
        uint32_t root = process(exact, 7, 1000, 9000, false);
        uint32_t top = fx_node(exact, root, "main", 1, 100 * MS);
        fm_profile_add(exact, FM_METRIC_TOTAL, root, 100 * MS);
        uint32_t sleep = fx_node(exact, top, "sleep", 2, 5 * MS);
        exact->processes.data[0].calls = calls;
        uint32_t s_root = process(samples, 7, 1000, 9000, true);
        fm_profile_add(samples, FM_METRIC_TOTAL, s_root, 10 * MS);
        uint32_t s_top = sampled_node(samples, s_root, "main", 9, 10);
        sampled_node(samples, s_top, "sleep", 1, 1);
        struct fm_thread tasks = { .process = 0,
                                   .tid = 7,
                                   .start_ns = 1000,
                                   .name = fm_profile_string(samples, "asyncio tasks of main") };
        uint32_t t_root = samples->threads.data[fm_profile_thread(samples, &tasks)].root;
        fm_profile_add(samples, FM_METRIC_TOTAL, t_root, 40 * MS);
        sampled_node(samples, sampled_node(samples, t_root, "job", 0, 40), "sleep", 40, 40);

        fm_profile_join_samples(exact, samples);
        assert_int_equal(exact->threads.len, 2);
        uint32_t job = fx_child(exact, exact->threads.data[1].root, "job");
        fx_expect_node(exact, job, 0, 40 * MS); /* what tasks waited for is only known of samples */
        expect_samples(exact, fx_child(exact, job, "sleep"), 40);
        /* Of some calls, recorded for their lines, there is no whole: the samples are one. */
        fx_expect_node(exact, top, 1, (calls ? 100 : 10) * MS);
        fx_expect_node(exact, sleep, 2, (calls ? 5 : 1) * MS);
        struct fm_flat *flat = fm_flat_new(exact, NULL);
        assert_int_equal(flat->states, !calls);
        assert_int_equal(flat->beside, calls);
        const struct fm_flat_row *row = fx_row(exact, flat, "sleep");
        assert_int_equal(row->calls, 2);
        assert_int_equal(row->total_ns, (calls ? 5 : 41) * MS); /* exact ones stay exact */
        assert_int_equal(row->samples, 41);
        assert_int_equal(fx_row(exact, flat, "job")->total_samples, 40);
        fm_flat_free(flat);
        flat = fm_flat_new(exact, &(struct fm_flat_scope){ FM_NONE, 1 });
        assert_int_equal(fx_row(exact, flat, "sleep")->total_ns, 40 * MS);
        fm_flat_free(flat);
        fm_profile_free(exact);
        fm_profile_free(samples);
    }
}

/* Programs that execute one another between two looks are one process to the sampler, whose main thread it
 * met twice. */
static void test_main_thread_met_twice(void **state)
{
    (void)state;
    struct fm_profile *exact = fm_profile_new(), *samples = fm_profile_new();
    uint32_t root = process(exact, 7, 1000, 9000, false);
    fx_node(exact, root, "main", 1, 100 * MS);
    sampled_node(samples, process(samples, 7, 1000, 9000, true), "main", 2, 2);
    struct fm_thread again = {
        .process = 0, .tid = 7, .start_ns = 8000, .name = fm_profile_string(samples, "python3")
    };
    uint32_t s_root = samples->threads.data[fm_profile_thread(samples, &again)].root;
    sampled_node(samples, s_root, "main", 3, 3);
    fm_profile_join_samples(exact, samples);
    assert_int_equal(exact->threads.len, 1);
    expect_samples(exact, fx_child(exact, root, "main"), 5);
    fm_profile_free(exact);
    fm_profile_free(samples);
}

static void add_line(struct fm_profile *p, const char *name, uint32_t number, int64_t hits,
                     int64_t total_ns, int64_t samples)
{
    uint32_t func = fx_function(p, name);
    struct fm_line *line = fm_lines_add(&p->lines, 0, func, number, false);
    line->hits = hits;
    line->total_ns = total_ns;
    line->samples = samples;
    line->state_ns[FM_STATE_C] = samples * MS;
}

static const struct fm_line *find_line(const struct fm_profile *p, uint32_t number)
{
    for (size_t i = 0; i < p->lines.rows.len; i++)
        if (p->lines.rows.data[i].line == number)
            return &p->lines.rows.data[i];
    return NULL;
}

static void test_lines(void **state)
{
    (void)state;
    /* In a function with exact lines times stay exact; in others those of the samples are all there
     * is. */
    for (int recorded = 0; recorded < 2; recorded++) {
        struct fm_profile *exact = fm_profile_new(), *samples = fm_profile_new();
        process(exact, 7, 1000, 9000, false);
        exact->processes.data[0].lines = recorded;
        if (recorded)
            add_line(exact, "f", 3, 5, 50 * MS, 0);
        process(samples, 7, 1000, 9000, true);
        add_line(samples, "f", 3, 0, 40 * MS, 40);
        add_line(samples, "f", 4, 0, 2 * MS, 2);
        add_line(samples, "g", 9, 0, 3 * MS, 3);
        fm_lines_sort(&samples->lines);
        fm_profile_join_samples(exact, samples);
        assert_int_equal(exact->lines.rows.len, 3);
        assert_int_equal(find_line(exact, 9)->total_ns, 3 * MS);
        const struct fm_line *three = find_line(exact, 3), *four = find_line(exact, 4);
        assert_int_equal(three->hits, recorded ? 5 : 0);
        assert_int_equal(three->total_ns, (recorded ? 50 : 40) * MS);
        assert_int_equal(three->samples, 40);
        assert_int_equal(three->state_ns[FM_STATE_C], 40 * MS);
        assert_int_equal(four->samples, 2);
        assert_int_equal(four->total_ns, recorded ? 0 : 2 * MS);
        fm_profile_free(exact);
        fm_profile_free(samples);
    }
}

static void test_spots_waits_and_notes(void **state)
{
    (void)state;
    struct fm_profile *exact = fm_profile_new(), *samples = fm_profile_new();
    process(exact, 6, 1000, 9000, false);
    process(exact, 7, 1000, 9000, false);
    fx_function(exact, "other"); /* so that the numbers of functions differ */
    process(samples, 7, 1000, 9000, true);
    uint32_t f = fx_function(samples, "f");
    struct fm_spot spot = { .func = f,
                            .line = 3,
                            .end_line = 3,
                            .column = 5,
                            .end_column = 9,
                            .samples = 2,
                            .ns = 2 * MS };
    struct fm_wait wait = { .func = f,
                            .line = 3,
                            .state = FM_STATE_DISK,
                            .samples = 1,
                            .ns = MS,
                            .detail = fm_profile_string(samples, "/srv/file") };
    fm_vec_push(&samples->samples.spots, spot);
    fm_vec_push(&samples->samples.waits, wait);
    fm_profile_note(samples, 0, "lost", 4, "some were lost");
    fm_profile_note(samples, FM_NONE, "unwatched", 1, "process 5: too old");
    fm_profile_join_samples(exact, samples);
    assert_int_equal(exact->samples.spots.len, 1);
    assert_int_equal(exact->samples.spots.data[0].process, 1);
    const struct fm_function *at = &exact->functions.data[exact->samples.spots.data[0].func];
    assert_string_equal(fm_profile_text(exact, at->name), "f");
    assert_int_equal(exact->samples.spots.data[0].end_column, 9);
    assert_int_equal(exact->samples.waits.len, 1);
    assert_int_equal(exact->samples.waits.data[0].process, 1);
    assert_string_equal(fm_profile_text(exact, exact->samples.waits.data[0].detail), "/srv/file");
    assert_int_equal(exact->notes.len, 2);
    assert_int_equal(exact->notes.data[0].process, 1);
    assert_int_equal(exact->notes.data[0].count, 4);
    assert_string_equal(fm_profile_text(exact, exact->notes.data[0].text), "some were lost");
    assert_int_equal(exact->notes.data[1].process, FM_NONE);
    fm_profile_free(exact);
    fm_profile_free(samples);
}

static void test_nothing_and_nothing(void **state)
{
    (void)state;
    struct fm_profile *exact = fm_profile_new(), *samples = fm_profile_new();
    fm_profile_join_samples(exact, samples);
    assert_int_equal(exact->processes.len + exact->threads.len + exact->nodes.len, 0);
    fx_node(samples, process(samples, 7, 1, 2, true), "main", 0, 1);
    fm_profile_join_samples(exact, samples);
    assert_int_equal(exact->processes.len, 1);
    fm_profile_free(exact);
    fm_profile_free(samples);
}

/* What the agent ran to measure itself is not the program's. */
static void test_own_code_is_left_out(void **state)
{
    (void)state;
    struct fm_profile *into = fm_profile_new(), *from = fm_profile_new();
    fx_node(into, process(into, 7, 100, 0, false), "main", 1, 5 * MS);
    uint32_t top = sampled_node(from, process(from, 7, 100, 0, true), "main", 2, 5);
    uint32_t name = fm_profile_string(from, "c_call");
    struct fm_function own = { .name = name, .qualname = name };
    own.file = fm_profile_string(from, "<fathom>");
    uint32_t func = fm_profile_function(from, &own), node = fm_profile_node(from, top, func);
    fm_profile_add(from, FM_METRIC_SAMPLES, node, 3);
    fm_lines_add(&from->lines, 0, func, 6, false)->samples = 3;
    fm_vec_push(&from->samples.spots, ((struct fm_spot){ .func = func, .line = 6, .samples = 3 }));
    fm_vec_push(&from->samples.waits, ((struct fm_wait){ .func = func, .line = 6, .samples = 3 }));
    sampled_node(from, node, "called", 1, 1);
    fm_profile_join_samples(into, from);
    assert_int_equal(into->nodes.len, 3); /* the root, main and what was called below */
    expect_samples(into, fx_child(into, into->threads.data[0].root, "main"), 2);
    assert_int_equal(into->lines.rows.len + into->samples.spots.len + into->samples.waits.len, 0);
    for (size_t i = 0; i < into->functions.len; i++)
        assert_string_not_equal(fm_profile_text(into, into->functions.data[i].name), "c_call");
    fm_profile_free(from);
    fm_profile_free(into);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_paths_share_nodes),
        cmocka_unit_test(test_recursion),
        cmocka_unit_test(test_only_sampled),
        cmocka_unit_test(test_processes_of_one_number),
        cmocka_unit_test(test_exit_status),
        cmocka_unit_test(test_both_parts_of_a_process),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_tasks),
        cmocka_unit_test(test_main_thread_met_twice),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_spots_waits_and_notes),
        cmocka_unit_test(test_nothing_and_nothing),
        cmocka_unit_test(test_own_code_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
