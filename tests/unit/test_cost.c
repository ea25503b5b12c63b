/* What Fathom added, worked out by hand from prices, events and processor time. */
#include "fixture.h"

#include "show/report/cost.h"

#define MS 1000000

/* 1,000 Python calls at 2 µs, 500 C calls at 1 µs, 100 resumes at 3 µs, 200 lines at 5 µs, and 0.2 ms
 * beside: 2 + 0.5 + 0.3 + 1 + 0.2 = 4 ms. */
static struct fm_profile *sample(uint64_t slow_permille)
{
    struct fm_profile *p = fm_profile_new();
    struct fm_process process = { .pid = 7,
                                  .start_ns = 1,
                                  .end_ns = 1 + 100 * MS,
                                  .profiled = true,
                                  .calls = true,
                                  .cost_call_ps = 2000000,
                                  .cost_c_call_ps = 1000000,
                                  .cost_resume_ps = 3000000,
                                  .cost_line_ps = 5000000,
                                  .own_ns = MS / 5,
                                  .slow_permille = slow_permille };
    uint32_t number = fm_profile_process(p, &process);
    struct fm_thread thread = { .process = number, .tid = 7, .start_ns = 1, .cpu_ns = 50 * MS };
    thread.end_ns = 1 + 100 * MS;
    uint32_t own = fm_profile_thread(p, &thread);
    uint32_t main = fx_node(p, p->threads.data[own].root, "main", 1000, 90 * MS);
    fm_profile_add(p, FM_METRIC_RESUMES, main, 100);
    struct fm_function f = { .kind = FM_FUNCTION_C, .name = fm_profile_string(p, "sort") };
    f.qualname = f.name;
    uint32_t sort = fm_profile_node(p, main, fm_profile_function(p, &f));
    fm_profile_add(p, FM_METRIC_CALLS, sort, 500);
    fm_profile_add(p, FM_METRIC_TOTAL, sort, 16 * MS);
    fx_node(p, sort, "key", 0, 6 * MS); /* what C calls is none of its own time */
    fm_lines_add(&p->lines, number, fx_function(p, "main"), 1, false)->hits = 200;
    fm_lines_sort(&p->lines);
    return p;
}

static void expect(const struct fm_profile *p, struct fm_flat_scope scope, int64_t least_ns,
                   int64_t most_ns)
{
    struct fm_cost cost = fm_cost_of(p, &scope);
    assert_int_equal(cost.least_ns, least_ns);
    assert_int_equal(cost.most_ns, most_ns);
    assert_int_equal(cost.added_ns, (least_ns + most_ns) / 2);
    assert_int_equal(cost.wall_ns, 100 * MS);
}

static const struct fm_flat_scope all = { FM_NONE, FM_NONE };

static void test_events(void **state)
{
    (void)state;
    struct fm_profile *p = sample(0);
    expect(p, all, 4 * MS, 4 * MS);
    /* Lines and what the agent took beside are not known by thread. */
    expect(p, (struct fm_flat_scope){ FM_NONE, 0 }, 28 * MS / 10, 28 * MS / 10);
    fm_profile_free(p);
}

/* If what is left of the time on a processor went into instructions that took twice as long, half of
 * it was added. */
static void test_slow_instructions(void **state)
{
    (void)state;
    struct fm_profile *p = sample(1000);
    /* Off the processor for 50 ms, which may have been the C function's 10: 50 − 4. */
    expect(p, all, 4 * MS, 27 * MS);
    /* Off for 4 ms only: 6 of C were on it. 96 − 6 − 4. */
    p->threads.data[0].cpu_ns = 96 * MS;
    expect(p, all, 4 * MS, 47 * MS);
    p->processes.data[0].slow_permille = 500; /* a third */
    p->threads.data[0].cpu_ns = 95 * MS;      /* 95 − 5 − 4 = 86 */
    expect(p, all, 4 * MS, 4 * MS + 86 * MS / 3);
    /* A thread may have been on a processor before it was recorded: at most its life counts. */
    p->threads.data[0].end_ns = 1 + 20 * MS; /* 20 − 10 − 4 = 6, a third */
    expect(p, all, 4 * MS, 6 * MS);
    p->threads.data[0].cpu_ns = 0;
    expect(p, all, 4 * MS, 4 * MS);
    fm_profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_events),
                                        cmocka_unit_test(test_slow_instructions) };
    return cmocka_run_group_tests_name("cost", tests, NULL, NULL);
}
