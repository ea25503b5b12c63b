/* Live stores built by hand: honest ones against known answers, hostile ones must be noticed. */
#include "fixture.h"

#include "live_store.h"
#include "record/model/live/live.h"

static struct fm_profile *load(const struct fm_buffer *b, const struct fm_live_ending *ending)
{
    struct fm_error err = FM_ERROR_INIT;
    struct fm_profile *p = fm_profile_new();
    assert_int_equal(fm_live_load(p, b->data, b->len, NULL, 0, ending, &err), 0);
    /* Whatever was in there, the result must be sound. */
    for (size_t i = 0; i < p->nodes.len; i++) {
        assert_true(p->nodes.data[i].parent == FM_NONE || p->nodes.data[i].parent < i);
        assert_true(p->nodes.data[i].func < p->functions.len);
        assert_true(p->nodes.data[i].thread < p->threads.len);
    }
    fm_flat_free(fm_flat_new(p, NULL));
    return p;
}

static void test_sample(void **state)
{
    (void)state;
    fm_autobuffer b = FM_BUFFER_INIT;
    ls_sample(&b);
    ls_header(&b)->end_ticks = 3000;
    ls_header(&b)->cost_python_call = 256 * 100; /* 100 ticks: 50 ns */
    ls_header(&b)->cost_line = 256 * 10;
    ls_header(&b)->slow_permille = 1700;
    struct fm_profile *p = load(&b, NULL);
    assert_int_equal(p->processes.len, 1);
    const struct fm_process *process = &p->processes.data[0];
    assert_int_equal(process->pid, 42);
    assert_int_equal(process->parent_pid, 41);
    assert_string_equal(fm_profile_text(p, process->exe), "/usr/bin/python3");
    assert_string_equal(fm_profile_text(p, process->cwd), "/home");
    assert_string_equal(fm_profile_text(p, process->version), "3.13.0");
    assert_true(process->profiled && process->c_calls && !process->forked);
    assert_int_equal(process->start_ns, 5000);
    assert_int_equal(process->end_ns, 6000);
    assert_int_equal(process->exit_status, -1);
    assert_int_equal(process->cost_call_ps, 50000);
    assert_int_equal(process->cost_line_ps, 5000);
    assert_int_equal(process->slow_permille, 1700);
    assert_int_equal(p->threads.len, 1);
    assert_string_equal(fm_profile_text(p, p->threads.data[0].name), "Main");
    assert_int_equal(p->threads.data[0].tid, 43);
    assert_int_equal(p->threads.data[0].start_ns, 5050);
    assert_int_equal(p->threads.data[0].end_ns, 6000);
    assert_int_equal(p->threads.data[0].cpu_ns, 321);
    uint32_t root = p->threads.data[0].root, top = fx_child(p, root, "main");
    uint32_t f = fx_child(p, top, "f"), gen = fx_child(p, top, "gen");
    fx_expect_node(p, top, 1, 900);     /* open: 3000 − 1200 ticks */
    fx_expect_node(p, f, 3, 200 + 500); /* 400 ticks, and open 3000 − 2000 */
    fx_expect_node(p, fx_child(p, f, "<built-in method builtins.len>"), 5, 25);
    fx_expect_node(p, gen, 1, 40);
    fx_expect_node(p, root, 0, 900);
    assert_int_equal(fm_profile_value(p, FM_METRIC_MIN, top), 0);
    assert_int_equal(fm_profile_value(p, FM_METRIC_MIN, f), 50);
    assert_int_equal(fm_profile_value(p, FM_METRIC_MAX, f), 150);
    assert_int_equal(fm_profile_value(p, FM_METRIC_MIN, 3), 1); /* half a ns, rounded up to one */
    assert_int_equal(fm_profile_value(p, FM_METRIC_RESUMES, gen), 4);
    assert_int_equal(fm_profile_value(p, FM_METRIC_SUSPENDED, gen), 300);
    const struct fm_function *c = &p->functions.data[p->nodes.data[3].func];
    assert_int_equal(c->kind, FM_FUNCTION_C);
    assert_int_equal(p->functions.data[p->nodes.data[gen].func].flags, FM_FUNCTION_GENERATOR);
    assert_int_equal(p->sources.len, 1);
    assert_int_equal(p->sources.data[0].state, FM_SOURCE_GENERATED);
    assert_string_equal(fm_profile_text(p, p->sources.data[0].text), "x = 1\n");
    assert_int_equal(p->notes.len, 0);
    fm_profile_free(p);
}

static int64_t time_of_main(const struct fm_buffer *b, const struct fm_live_ending *ending)
{
    struct fm_profile *p = load(b, ending);
    int64_t total = fm_profile_value(p, FM_METRIC_TOTAL, 1);
    fm_profile_free(p);
    return total;
}

static void test_ends(void **state)
{
    (void)state;
    fm_autobuffer b = FM_BUFFER_INIT;
    ls_sample(&b);
    /* Nothing said: the last instant in the store is the later clock pair, tick 3000. */
    assert_int_equal(time_of_main(&b, NULL), 900);
    /* Without it: the thread's last look, tick 2500; the rate is unknown then, a tick is 1 ns. */
    ls_header(&b)->later_ticks = ls_header(&b)->later_ns = 0;
    assert_int_equal(time_of_main(&b, NULL), 1300);
    /* The clocks of now give the rate: 4,000 ticks in 1,000 ns. Ended at 5,500 ns = tick 3000. */
    struct fm_live_ending ending = { { 5000, 6000 }, 5500, 0 };
    assert_int_equal(time_of_main(&b, &ending), 450);
    /* The process said itself when it stopped recording: tick 2200. */
    ls_header(&b)->end_ticks = 2200;
    ls_header(&b)->flags |= FM_LIVE_ENDED;
    assert_int_equal(time_of_main(&b, &ending), 250);
    /* An end before the start is no end. */
    ending.end_ns = 1;
    assert_int_equal(time_of_main(&b, &ending), 250);
}

static void test_losses(void **state)
{
    (void)state;
    fm_autobuffer b = FM_BUFFER_INIT;
    ls_sample(&b);
    ls_header(&b)->lost[FM_LIVE_LOST_HOOK] = 2;
    ls_header(&b)->lost[15] = 7;
    struct fm_profile *p = load(&b, NULL);
    assert_int_equal(p->notes.len, 2);
    assert_int_equal(fx_note(p, "lost"), 2);
    assert_string_equal(fm_profile_text(p, p->notes.data[0].text),
                        "times the program had the profile or trace hook for itself");
    assert_int_equal(p->notes.data[0].process, 0);
    assert_int_equal(p->notes.data[1].count, 7);
    fm_profile_free(p);
}

/* Two lambdas on one line are two functions in a process; in the next process of the run the first
 * one is the first again. */
static void test_twins(void **state)
{
    (void)state;
    fm_autobuffer b = FM_BUFFER_INIT;
    fm_autobuffer log = FM_BUFFER_INIT;
    struct fm_live_node nodes[] = { { .id = 0 },
                                    { .parent = 0, .func = 1, .calls = 1, .id = 1 },
                                    { .parent = 0, .func = 2, .calls = 10, .id = 2 } };
    ls_begin(&b);
    ls_function(&log, 1, 0, 5, "<lambda>", "app.py");
    ls_function(&log, 2, 0, 5, "<lambda>", "app.py");
    ls_chunk(&b, FM_LIVE_DEFS, 0, 0x1000, log.data, log.len);
    ls_chunk(&b, FM_LIVE_NODES, 0, LS_NODES_ADDRESS, nodes, sizeof nodes);
    struct fm_profile *p = load(&b, NULL);
    assert_int_equal(fm_live_load(p, b.data, b.len, NULL, 0, NULL, NULL), 0);
    assert_int_equal(p->processes.len, 2);
    struct fm_flat *flat = fm_flat_new(p, NULL);
    assert_int_equal(flat->rows.len, 2);
    assert_int_equal(flat->rows.data[0].calls, 2);
    assert_int_equal(flat->rows.data[1].calls, 20);
    assert_int_equal(p->functions.data[flat->rows.data[1].func].twin, 1);
    fm_flat_free(flat);
    fm_profile_free(p);
}

/* Chunks may go on in a second file, and empty pages may lie between them. */
static void test_more_file(void **state)
{
    (void)state;
    fm_autobuffer b = FM_BUFFER_INIT;
    fm_autobuffer more = FM_BUFFER_INIT;
    ls_sample(&b);
    for (unsigned i = 0; i < FM_LIVE_PAGE; i++)
        fm_buffer_add_char(&more, '\0');
    struct fm_live_node node = { .parent = 2, .func = 2, .calls = 8, .id = 5, .total_ticks = 30 };
    ls_chunk(&more, FM_LIVE_NODES, 5, LS_NODES_ADDRESS + 0x100000, &node, sizeof node);
    struct fm_profile *p = fm_profile_new();
    assert_int_equal(fm_live_load(p, b.data, b.len, more.data, more.len, NULL, NULL), 0);
    assert_int_equal(p->nodes.len, 6);
    fx_expect_node(p, fx_child(p, 2, "f"), 8, 15);
    assert_int_equal(p->notes.len, 0);
    fm_profile_free(p);
}

/* A state of a source file is kept, once for all processes. */
static void test_file_state(void **state)
{
    (void)state;
    fm_autobuffer b = FM_BUFFER_INIT;
    fm_autobuffer log = FM_BUFFER_INIT;
    fm_autobuffer body = FM_BUFFER_INIT;
    ls_begin(&b);
    fm_buffer_add_varint(&body, FM_LIVE_DEF_FILE);
    fm_buffer_add_varint(&body, 123456);
    fm_buffer_add_varint(&body, 99);
    ls_text(&body, "app.py");
    ls_define(&log, &body);
    ls_chunk(&b, FM_LIVE_DEFS, 0, 0x1000, log.data, log.len);
    struct fm_profile *p = load(&b, NULL);
    assert_int_equal(fm_live_load(p, b.data, b.len, NULL, 0, NULL, NULL), 0);
    assert_int_equal(p->sources.len, 1);
    assert_int_equal(p->sources.data[0].mtime_ns, 123456);
    assert_int_equal(p->sources.data[0].size_bytes, 99);
    assert_int_equal(p->sources.data[0].text, 0);
    fm_profile_free(p);
}

static void test_not_a_store(void **state)
{
    (void)state;
    struct fm_error err = FM_ERROR_INIT;
    fm_autobuffer b = FM_BUFFER_INIT;
    struct fm_profile *p = fm_profile_new();
    ls_sample(&b);
    assert_int_equal(fm_live_load(p, b.data, 100, NULL, 0, NULL, &err), FM_NOT_RECORDING);
    ls_header(&b)->version = 2;
    assert_int_equal(fm_live_load(p, b.data, b.len, NULL, 0, NULL, &err), FM_NEWER);
    b.data[0] = 'X';
    assert_int_equal(fm_live_load(p, b.data, b.len, NULL, 0, NULL, &err), FM_NOT_RECORDING);
    assert_int_equal(p->processes.len, 0);
    fm_profile_free(p);
}

static void test_cut_everywhere(void **state)
{
    (void)state;
    fm_autobuffer b = FM_BUFFER_INIT;
    ls_sample(&b);
    for (size_t cut = sizeof(struct fm_live_header); cut < b.len; cut += 32) {
        struct fm_buffer part = { fm_malloc(cut), cut, cut };
        memcpy(part.data, b.data, cut);
        fm_profile_free(load(&part, NULL));
        fm_buffer_release(&part);
    }
}

/* Each of these must be dropped and noted. `nodes` is what remains, roots included. */
static void expect_damage(struct fm_buffer *b, size_t nodes)
{
    struct fm_profile *p = load(b, NULL);
    assert_true(fx_note(p, "damaged"));
    assert_int_equal(p->nodes.len, nodes);
    fm_profile_free(p);
}

static void test_hostile_nodes(void **state)
{
    (void)state;
    fm_autobuffer b = FM_BUFFER_INIT;
    ls_sample(&b);
    LS_RECORDS(&b, FM_LIVE_NODES, struct fm_live_node)[2].parent = 3; /* a parent behind it */
    expect_damage(&b, 3);
    ls_sample(&b);
    LS_RECORDS(&b, FM_LIVE_NODES, struct fm_live_node)[2].parent = UINT32_MAX;
    expect_damage(&b, 3);
    ls_sample(&b);
    LS_RECORDS(&b, FM_LIVE_NODES, struct fm_live_node)[3].id = 2; /* not its place */
    expect_damage(&b, 4);
    ls_sample(&b);
    ls_find(&b, FM_LIVE_NODES)->first_id = UINT32_MAX - 1;
    expect_damage(&b, 0);
    ls_sample(&b); /* the same ids twice */
    struct fm_live_node again = { .parent = 1, .func = 1, .calls = 1, .id = 2 };
    ls_chunk(&b, FM_LIVE_NODES, 2, 0x9000, &again, sizeof again);
    expect_damage(&b, 5);
}

static void test_unknown_function(void **state)
{
    (void)state;
    fm_autobuffer b = FM_BUFFER_INIT;
    ls_sample(&b);
    LS_RECORDS(&b, FM_LIVE_NODES, struct fm_live_node)[4].func = UINT32_MAX;
    struct fm_profile *p = load(&b, NULL);
    fx_expect_node(p, fx_child(p, 1, "<unknown>"), 1, 40); /* the time stays */
    assert_int_equal(fx_note(p, "damaged"), 1);
    fm_profile_free(p);
}

static void test_huge_numbers(void **state)
{
    (void)state;
    fm_autobuffer b = FM_BUFFER_INIT;
    ls_sample(&b);
    struct fm_live_node *nodes = LS_RECORDS(&b, FM_LIVE_NODES, struct fm_live_node);
    nodes[1].calls = nodes[1].total_ticks = nodes[1].max_ticks = UINT64_MAX;
    ls_header(&b)->start_ns = 0;
    ls_header(&b)->later_ns = UINT64_MAX;
    ls_header(&b)->cost_resume = UINT64_MAX;
    struct fm_profile *p = load(&b, NULL);
    assert_int_equal(fm_profile_value(p, FM_METRIC_TOTAL, 1), INT64_MAX);
    assert_int_equal(fm_profile_value(p, FM_METRIC_CALLS, 1), INT64_MAX);
    fm_profile_free(p);
}

static void test_hostile_chunks(void **state)
{
    (void)state;
    fm_autobuffer b = FM_BUFFER_INIT;
    ls_sample(&b);
    ls_find(&b, FM_LIVE_NODES)->used = UINT32_MAX; /* more than there is: zeros are no nodes */
    expect_damage(&b, 5);
    ls_sample(&b);
    ls_find(&b, FM_LIVE_RESUMED)->bytes = UINT32_MAX / FM_LIVE_PAGE * FM_LIVE_PAGE;
    expect_damage(&b, 5);
    ls_sample(&b);
    ls_find(&b, FM_LIVE_NODES)->bytes = 1; /* no multiple of a page */
    expect_damage(&b, 0);
    ls_sample(&b);
    ls_find(&b, FM_LIVE_NODES)->magic = 5;
    expect_damage(&b, 0);
    ls_sample(&b);
    ls_find(&b, FM_LIVE_DEFS)->used = 3; /* in the middle of a definition */
    expect_damage(&b, 5);
    ls_sample(&b);
    LS_RECORDS(&b, FM_LIVE_RESUMED, struct fm_live_resumed)->node = 77;
    expect_damage(&b, 5);
}

static void expect_main(struct fm_buffer *b, int64_t main_ns, int64_t f_ns, bool damaged)
{
    struct fm_profile *p = load(b, NULL);
    assert_int_equal(fm_profile_value(p, FM_METRIC_TOTAL, 1), main_ns);
    assert_int_equal(fm_profile_value(p, FM_METRIC_TOTAL, 2), f_ns);
    assert_int_equal(fx_note(p, "damaged") != 0, damaged);
    fm_profile_free(p);
}

static void test_hostile_stacks(void **state)
{
    (void)state;
    fm_autobuffer b = FM_BUFFER_INIT;
    const uint64_t wild[] = { 0,
                              1,
                              LS_NODE_ADDRESS(2) + 1,
                              LS_NODE_ADDRESS(5),
                              LS_NODES_ADDRESS,
                              LS_NODES_ADDRESS - 64,
                              UINT64_MAX };
    for (size_t i = 0; i < FM_COUNT(wild); i++) {
        ls_sample(&b);
        LS_RECORDS(&b, FM_LIVE_STACK, struct fm_live_frame)[2].node = wild[i];
        expect_main(&b, 900, 200, true);
    }
    ls_sample(&b); /* the same node twice: credited once */
    LS_RECORDS(&b, FM_LIVE_STACK, struct fm_live_frame)[2].node = LS_NODE_ADDRESS(1);
    expect_main(&b, 900, 200, false);
    ls_sample(&b); /* entered before its caller: half-written */
    LS_RECORDS(&b, FM_LIVE_STACK, struct fm_live_frame)[2].enter_ticks = 1199;
    expect_main(&b, 900, 200, false);
    ls_sample(&b); /* entered after the end */
    ls_header(&b)->end_ticks = 3000;
    LS_RECORDS(&b, FM_LIVE_STACK, struct fm_live_frame)[2].enter_ticks = 3001;
    expect_main(&b, 900, 200, false);
    ls_sample(&b); /* a stack that is nowhere */
    LS_RECORDS(&b, FM_LIVE_THREADS, struct fm_live_thread)->stack = 10;
    expect_main(&b, 0, 200, true);
    ls_sample(&b); /* deeper than the stack is: what lies there has no node */
    LS_RECORDS(&b, FM_LIVE_THREADS, struct fm_live_thread)->depth = UINT32_MAX;
    expect_main(&b, 900, 700, true);
    ls_sample(&b); /* the thread ended at 2400, at half a nanosecond a tick, with both calls open */
    LS_RECORDS(&b, FM_LIVE_THREADS, struct fm_live_thread)->end_ticks = 2400;
    expect_main(&b, 600, 200 + 200, false);
    ls_sample(&b); /* after the process, it says: not longer than that */
    LS_RECORDS(&b, FM_LIVE_THREADS, struct fm_live_thread)->end_ticks = UINT64_MAX;
    expect_main(&b, 900, 700, false);
}

static void test_threads(void **state)
{
    (void)state;
    fm_autobuffer b = FM_BUFFER_INIT;
    ls_sample(&b);
    /* A root whose thread record was not written any more, and a record whose name has no end. */
    struct fm_live_node root = { .parent = 5, .id = 5 };
    ls_chunk(&b, FM_LIVE_NODES, 5, 0x9000, &root, sizeof root);
    memset(LS_RECORDS(&b, FM_LIVE_THREADS, struct fm_live_thread)->name, 'n', 64);
    struct fm_profile *p = load(&b, NULL);
    assert_int_equal(p->threads.len, 2);
    assert_int_equal(p->threads.data[1].tid, 0);
    assert_int_equal(strlen(fm_profile_text(p, p->threads.data[0].name)), 64);
    fm_profile_free(p);
}

static void expect_line(const struct fm_line *row, uint32_t line, int64_t hits, int64_t total_ns,
                        int64_t self_ns, int64_t min_ns, int64_t max_ns, int64_t suspended_ns)
{
    assert_int_equal(row->process, 0);
    assert_int_equal(row->line, line);
    assert_int_equal(row->hits, hits);
    assert_int_equal(row->total_ns, total_ns);
    assert_int_equal(row->self_ns, self_ns);
    assert_int_equal(row->min_ns, min_ns);
    assert_int_equal(row->max_ns, max_ns);
    assert_int_equal(row->suspended_ns, suspended_ns);
}

/* A tick is half a nanosecond. Buckets of ticks: 8 has its middle at 20 ticks = 10 ns, which is in
 * [8, 12) ns, bucket 6; 15 at 224 ticks = 112 ns, which is in [96, 128) ns, bucket 13. */
static void test_lines(void **state)
{
    (void)state;
    fm_autobuffer b = FM_BUFFER_INIT;
    ls_sample(&b);
    ls_lines(&b);
    struct fm_profile *p = load(&b, NULL);
    assert_int_equal(p->notes.len, 0);
    assert_true(p->processes.data[0].lines);
    assert_false(p->processes.data[0].calls);
    assert_int_equal(p->lines.rows.len, 3);
    expect_line(&p->lines.rows.data[0], 11, 1, 0, 0, 0, 0, 0);
    expect_line(&p->lines.rows.data[1], 21, 5, 200, 150, 5, 100, 0);
    expect_line(&p->lines.rows.data[2], 31, 4, 20, 20, 1, 10, 300);
    uint32_t func = p->lines.rows.data[1].func;
    assert_string_equal(fm_profile_text(p, p->functions.data[func].name), "f");
    assert_int_equal(p->lines.marked.len, 1);
    assert_int_equal(p->lines.marked.data[0], func);
    assert_int_equal(p->lines.histograms.len, 1);
    const uint32_t *buckets = p->lines.histograms.data[p->lines.rows.data[1].histogram].buckets;
    assert_int_equal(buckets[6], 4);
    assert_int_equal(buckets[13], 1);
    fm_profile_free(p);
}

static void test_what_was_recorded(void **state)
{
    (void)state;
    static const struct {
        uint32_t flags;
        bool calls, lines;
    } cases[] = { { 0, false, false }, /* only its memory, say */
                  { FM_LIVE_CALLS, true, false },
                  { FM_LIVE_LINES_ON, false, true },
                  { FM_LIVE_CALLS | FM_LIVE_LINES_ON, true, true } };
    for (size_t i = 0; i < FM_COUNT(cases); i++) {
        fm_autobuffer b = FM_BUFFER_INIT;
        ls_sample(&b);
        ls_header(&b)->flags = cases[i].flags;
        struct fm_profile *p = load(&b, NULL);
        assert_int_equal(p->processes.data[0].calls, cases[i].calls);
        assert_int_equal(p->processes.data[0].lines, cases[i].lines);
        fm_profile_free(p);
    }
}

static void test_hostile_lines(void **state)
{
    (void)state;
    fm_autobuffer b = FM_BUFFER_INIT;
    ls_sample(&b);
    ls_lines(&b);
    struct fm_live_line *lines = LS_RECORDS(&b, FM_LIVE_LINES, struct fm_live_line);
    lines[0].func = 77; /* never defined */
    lines[1].hits = lines[1].total_ticks = lines[1].self_ticks = UINT64_MAX;
    lines[1].buckets[3] = lines[1].buckets[FM_LIVE_LINE_BUCKETS - 1] = UINT32_MAX;
    lines[2] = lines[1]; /* the same line again: added up */
    ls_header(&b)->start_ns = 0;
    ls_header(&b)->later_ns = UINT64_MAX;
    struct fm_profile *p = load(&b, NULL);
    assert_int_equal(fx_note(p, "damaged"), 1);
    assert_int_equal(p->lines.rows.len, 1);
    assert_int_equal(p->lines.rows.data[0].hits, INT64_MAX);
    assert_int_equal(p->lines.rows.data[0].total_ns, INT64_MAX);
    assert_int_equal(p->lines.histograms.len, 1);
    fm_profile_free(p);
    for (size_t cut = FM_LIVE_PAGE; cut < b.len; cut += 96) {
        struct fm_buffer part = { fm_malloc(cut), cut, cut };
        memcpy(part.data, b.data, cut);
        fm_profile_free(load(&part, NULL));
        fm_buffer_release(&part);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_what_was_recorded),
        cmocka_unit_test(test_hostile_lines),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_twins),
        cmocka_unit_test(test_more_file),
        cmocka_unit_test(test_file_state),
        cmocka_unit_test(test_not_a_store),
        cmocka_unit_test(test_cut_everywhere),
        cmocka_unit_test(test_hostile_nodes),
        cmocka_unit_test(test_unknown_function),
        cmocka_unit_test(test_huge_numbers),
        cmocka_unit_test(test_hostile_chunks),
        cmocka_unit_test(test_hostile_stacks),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
