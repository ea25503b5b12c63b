/* Collapsed stacks: known texts with answers worked out by hand, and what is written is read. */
#include "fixture.h"

#include "base/memory.h"
#include "record/formats/format.h"

static struct fm_profile *load_bytes(const char *bytes, size_t len)
{
    struct fm_error err = FM_ERROR_INIT;
    struct fm_profile *p = fm_format_collapsed.load(bytes, len, "x", &err);
    if (!p)
        fail_msg("%s", err.text);
    return p;
}

static struct fm_profile *load(const char *text)
{
    return load_bytes(text, strlen(text));
}

static uint32_t root_of(const struct fm_profile *p, size_t thread)
{
    assert_true(thread < p->threads.len);
    return p->threads.data[thread].root;
}

static void expect(const struct fm_profile *p, uint32_t node, int64_t samples, int64_t total_ns)
{
    fx_expect_node(p, node, 0, total_ns);
    assert_int_equal(fm_profile_value(p, FM_METRIC_SAMPLES, node), samples);
}

static void expect_function(const struct fm_profile *p, uint32_t node, uint32_t kind,
                            const char *qualname, const char *file, uint32_t line)
{
    assert_int_not_equal(node, FM_NONE);
    const struct fm_function *f = &p->functions.data[p->nodes.data[node].func];
    assert_int_equal(f->kind, kind);
    assert_string_equal(fm_profile_text(p, f->qualname), qualname);
    assert_string_equal(fm_profile_text(p, f->file), file);
    assert_int_equal(f->line, line);
}

static void expect_line(const struct fm_profile *p, const char *name, uint32_t line,
                        int64_t samples, int64_t self_ns, int64_t total_ns)
{
    for (size_t i = 0; i < p->lines.rows.len; i++) {
        const struct fm_line *row = &p->lines.rows.data[i];
        if (row->line != line ||
            strcmp(fm_profile_text(p, p->functions.data[row->func].name), name) != 0)
            continue;
        assert_int_equal(row->samples, samples);
        assert_int_equal(row->self_ns, self_ns);
        assert_int_equal(row->total_ns, total_ns);
        return;
    }
    fail_msg("no line %u of %s", line, name);
}

/* As py-spy writes: the line is the one that was executing. */
static void test_pyspy(void **state)
{
    (void)state;
    struct fm_profile *p = load("<module> (a.py:20);main (a.py:9);A.f (lib/b.py:31) 5\n"
                                "<module> (a.py:20);main (a.py:7);A.f (lib/b.py:31) 3\n"
                                "<module> (a.py:20);main (a.py:9) 2\n"
                                "<module> (a.py:20);main (a.py:9);A.f (lib/b.py:30);"
                                "A.f (lib/b.py:31) 4\n"
                                " 1\n");
    uint32_t root = root_of(p, 0);
    expect(p, root, 1, 15);
    uint32_t module = fx_child(p, root, "<module>"), main_node = fx_child(p, module, "main");
    uint32_t f = fx_child(p, main_node, "f"), inner = fx_child(p, f, "f");
    expect(p, module, 0, 14);
    expect(p, main_node, 2, 14);
    expect(p, f, 8, 12);
    expect(p, inner, 4, 4);
    expect_function(p, main_node, FM_FUNCTION_PYTHON, "main", "a.py", 7);
    expect_function(p, f, FM_FUNCTION_PYTHON, "A.f", "lib/b.py", 30);
    assert_int_equal(p->nodes.len, 5);
    assert_int_equal(p->threads.len, 1);
    /* Lines: of the recursion, the outer one has the total. */
    expect_line(p, "main", 9, 2, 2, 11);
    expect_line(p, "main", 7, 0, 0, 3);
    expect_line(p, "f", 31, 12, 12, 8);
    expect_line(p, "f", 30, 0, 0, 4);
    assert_string_equal(fm_profile_fact_get(p, "unit"), "samples");
    assert_int_equal(p->processes.data[0].samples, 15);
    assert_true(p->processes.data[0].sampled);
    fm_profile_free(p);
}

static void test_pyspy_processes(void **state)
{
    (void)state;
    struct fm_profile *p =
        load("process 12:\"python -c a;b\";thread (0x7FFF00000010): w;f (a.py) 1\n"
             "process 12:\"python -c a;b\";process 13:\"child\";thread (13);f (a.py) 2\r\n"
             "process 12:\"python -c a;b\";process 13:\"child\";thread (13): M (1);f (a.py) 3\n");
    assert_int_equal(p->processes.len, 2);
    assert_int_equal(p->processes.data[1].pid, 13);
    assert_int_equal(p->processes.data[1].parent_pid, 12);
    assert_string_equal(fm_profile_text(p, p->processes.data[0].command), "python -c a;b");
    assert_string_equal(fm_profile_text(p, p->processes.data[1].command), "child");
    assert_int_equal(p->threads.len, 2);
    assert_int_equal(p->threads.data[0].tid, 16);
    assert_int_equal(p->threads.data[1].tid, 13);
    assert_string_equal(fm_profile_text(p, p->threads.data[0].name), "w");
    assert_string_equal(fm_profile_text(p, p->threads.data[1].name), "M (1)");
    expect(p, fx_child(p, root_of(p, 0), "f"), 1, 1);
    expect(p, fx_child(p, root_of(p, 1), "f"), 5, 5);
    expect_function(p, fx_child(p, root_of(p, 1), "f"), FM_FUNCTION_PYTHON, "f", "a.py", 0);
    fm_profile_free(p);
}

/* Microseconds, a line a sample. */
static void test_austin(void **state)
{
    (void)state;
    struct fm_profile *p = load("# austin: 3.7.0\n# interval: 5000\n# mode: cpu\n\n"
                                "P12;T0:34;/a.py:<module>:5;/a.py:A.f:9 5001\n"
                                "P12;T0:34;/a.py:<module>:5;/a.py:A.f:8 4000\n"
                                "P12;T0:35;:INVALID: 100\n"
                                "P12;T0:35 50\n\n# duration: 9151\n");
    assert_int_equal(p->processes.len, 1);
    assert_int_equal(p->processes.data[0].pid, 12);
    assert_int_equal(p->processes.data[0].sample_interval_ns, 5000000);
    assert_int_equal(p->processes.data[0].sample_mode, FM_SAMPLE_CPU);
    assert_int_equal(p->threads.data[1].tid, 35);
    uint32_t f = fx_child(p, fx_child(p, root_of(p, 0), "<module>"), "f");
    expect(p, f, 2, 9001000);
    expect_function(p, f, FM_FUNCTION_PYTHON, "A.f", "/a.py", 8);
    expect(p, root_of(p, 1), 1, 150000);
    expect(p, fx_child(p, root_of(p, 1), ":INVALID:"), 1, 100000);
    assert_null(fm_profile_fact_get(p, "unit"));
    assert_int_equal(p->notes.len, 0);
    fm_profile_free(p);
    p = load("# austin: 3.7.0\n# mode: full\nP1;T2;a.py:f:1 70,1,-4096\n");
    expect(p, fx_child(p, root_of(p, 0), "f"), 1, 70000);
    fm_profile_free(p);
    p = load("# austin: 3.7.0\n# mode: memory\nP1;T2;a.py:f:1 4096\n");
    expect(p, fx_child(p, root_of(p, 0), "f"), 1, 4096);
    assert_string_equal(fm_profile_fact_get(p, "unit"), "bytes");
    fm_profile_free(p);
}

static void test_python_sampler(void **state)
{
    (void)state;
    struct fm_profile *p = load("tid:3531;<frozen runpy>:_run_code:87;prog.py:main:17;<GC> 405\n");
    assert_int_equal(p->threads.data[0].tid, 3531);
    uint32_t run = fx_child(p, root_of(p, 0), "_run_code"), main_node = fx_child(p, run, "main");
    expect_function(p, run, FM_FUNCTION_PYTHON, "_run_code", "<frozen runpy>", 87);
    expect_function(p, main_node, FM_FUNCTION_PYTHON, "main", "prog.py", 17);
    expect_function(p, fx_child(p, main_node, "<GC>"), FM_FUNCTION_C, "<GC>", "", 0);
    fm_profile_free(p);
}

/* Of anybody: names with colons, parentheses and spaces, fractions, two numbers. */
static void test_others(void **state)
{
    (void)state;
    struct fm_profile *p = load("perf-123;std::vec<a b>::push;foo (/lib/libc.so.6) 7\n"
                                "perf-123;op:12 2.5\n"
                                "f (C:\\Program Files (x86)\\a.py:3) 1\n");
    uint32_t perf = fx_child(p, root_of(p, 0), "perf-123");
    uint32_t push = fx_child(p, perf, "std::vec<a b>::push");
    expect(p, push, 0, 7);
    expect_function(p, push, FM_FUNCTION_NATIVE, "std::vec<a b>::push", "", 0);
    expect_function(p, fx_child(p, push, "foo"), FM_FUNCTION_NATIVE, "foo", "/lib/libc.so.6", 0);
    expect(p, fx_child(p, perf, "op:12"), 3, 3);
    expect_function(p, fx_child(p, root_of(p, 0), "f"), FM_FUNCTION_PYTHON, "f",
                    "C:\\Program Files (x86)\\a.py", 3);
    fm_profile_free(p);
    p = load("a;b 10 12\na 3 0\n"); /* difffolded.pl */
    expect(p, fx_child(p, root_of(p, 0), "a"), 0, 12);
    expect(p, fx_child(p, fx_child(p, root_of(p, 0), "a"), "b"), 12, 12);
    assert_int_equal(p->notes.len, 2);
    fm_profile_free(p);
}

static void test_extremes(void **state)
{
    (void)state;
    struct fm_profile *p = load("a 99999999999999999999999\na 5\n;;; 1\nf (:7) 1\n() 1\nx () 2");
    expect(p, fx_child(p, root_of(p, 0), "a"), INT64_MAX, INT64_MAX);
    fm_profile_free(p);
}

static void test_damaged(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        { "a;b 1\na;c\n", "line 2: a stack does not end in a space and a number" },
        { "a;b x\n", "line 1: a stack does not end in a space and a number" },
        { "a;b1\n", "line 1: a stack does not end in a space and a number" },
        { "a;b -1\n", "line 1: a number is below zero" },
    };
    for (size_t i = 0; i < FM_COUNT(cases); i++) {
        struct fm_error err = FM_ERROR_INIT;
        assert_null(fm_format_collapsed.load(cases[i].text, strlen(cases[i].text), "x", &err));
        if (!strstr(err.text, cases[i].sentence))
            fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].sentence);
        assert_int_equal(err.status, FM_DAMAGED);
    }
}

static void test_recognise(void **state)
{
    (void)state;
    static const char *const yes[] = { "a;b 1\n",     "a 1",         "# austin: 3.7.0\n",
                                       "\na;b 3\r\n", "a;b 1,0,5\n", " 1\n" };
    static const char *const no[] = { "",      "\n",   "a;b\n",       "a;b 1\nhello\n",
                                      "# x\n", "12\n", "{\"a\": 1}\n" };
    for (size_t i = 0; i < FM_COUNT(yes); i++)
        if (!fm_format_collapsed.recognise(yes[i], strlen(yes[i])))
            fail_msg("not recognised: %s", yes[i]);
    for (size_t i = 0; i < FM_COUNT(no); i++)
        if (fm_format_collapsed.recognise(no[i], strlen(no[i])))
            fail_msg("recognised: %s", no[i]);
    assert_false(fm_format_collapsed.recognise("a\0b 1\n", 6));
    assert_ptr_equal(fm_format_of_path("x.collapsed"), &fm_format_collapsed);
    assert_ptr_equal(fm_format_of_path("x.folded"), &fm_format_collapsed);
}

/* ---- writing ---- */

static void sample(struct fm_profile *p, uint32_t node, int64_t samples)
{
    fm_profile_add(p, FM_METRIC_SAMPLES, node, samples);
}

/* main (2 samples of its own) → { f (3) → <built-in x> (4), g; h } */
static struct fm_profile *sampled(void)
{
    struct fm_profile *p = fm_profile_new();
    uint32_t top = fx_node(p, fx_thread(p, 7), "main", 0, 90);
    uint32_t f = fx_node(p, top, "f", 0, 70);
    struct fm_function c = { .kind = FM_FUNCTION_C };
    c.name = c.qualname = fm_profile_string(p, "<built-in x>");
    uint32_t x = fm_profile_node(p, f, fm_profile_function(p, &c));
    fm_profile_add(p, FM_METRIC_TOTAL, x, 40);
    sample(p, top, 2);
    sample(p, f, 3);
    sample(p, x, 4);
    sample(p, fx_node(p, top, "g;h\n", 0, 1), 1);
    p->processes.data[0].sampled = true;
    return p;
}

static void expect_text(const struct fm_profile *p, const char *text)
{
    fm_autobuffer out = FM_BUFFER_INIT;
    struct fm_error err = FM_ERROR_INIT;
    assert_int_equal(fm_format_collapsed.save(p, &out, &err), 0);
    assert_string_equal(fm_buffer_text(&out), text);
}

/* Lines: m is 109, f 102, g 103 (fixture.h). */
static void test_written(void **state)
{
    (void)state;
    struct fm_profile *p = sampled();
    static const char text[] = "main (app.py:109) 2\n"
                               "main (app.py:109);f (app.py:102) 3\n"
                               "main (app.py:109);f (app.py:102);<built-in x> 4\n"
                               "main (app.py:109);g:h\\n (app.py:103) 1\n";
    expect_text(p, text);
    struct fm_profile *again = load(text);
    expect_text(again, text);
    uint32_t top = fx_child(again, root_of(again, 0), "main"), f = fx_child(again, top, "f");
    expect(again, top, 2, 10);
    expect(again, f, 3, 7);
    expect_function(again, fx_child(again, f, "<built-in x>"), FM_FUNCTION_C, "<built-in x>", "",
                    0);
    fm_profile_free(again);
    fm_profile_free(p);
}

static void test_written_threads(void **state)
{
    (void)state;
    struct fm_profile *p = sampled();
    struct fm_thread thread = { .tid = 8, .name = fm_profile_string(p, "worker") };
    thread.process = fm_profile_process(
        p, &(struct fm_process){ .pid = 9, .command = fm_profile_string(p, "app.py --x") });
    uint32_t id = fm_profile_thread(p, &thread);
    sample(p, fx_node(p, p->threads.data[id].root, "f", 0, 5), 6);
    sample(p, p->threads.data[id].root, 1);
    static const char text[] =
        "process 7:\"\";thread (7);main (app.py:109) 2\n"
        "process 7:\"\";thread (7);main (app.py:109);f (app.py:102) 3\n"
        "process 7:\"\";thread (7);main (app.py:109);f (app.py:102);<built-in x> 4\n"
        "process 7:\"\";thread (7);main (app.py:109);g:h\\n (app.py:103) 1\n"
        "process 9:\"app.py --x\";thread (8): worker;<no Python frame> 1\n"
        "process 9:\"app.py --x\";thread (8): worker;f (app.py:102) 6\n";
    expect_text(p, text);
    struct fm_profile *again = load(text);
    assert_int_equal(again->processes.len, 2);
    assert_int_equal(again->processes.data[1].pid, 9);
    assert_string_equal(fm_profile_text(again, again->threads.data[1].name), "worker");
    expect(again, root_of(again, 1), 1, 7);
    expect_text(again, text);
    fm_profile_free(again);
    fm_profile_free(p);
}

/* A thread that was seen outside of any Python function, alone: neither an empty line nor a lost
 * sample. 12 of its own and 10 of main and below are 22, on the way back, too. */
static void test_written_without_frames(void **state)
{
    (void)state;
    struct fm_profile *p = sampled();
    static const char text[] = "<no Python frame> 12\n"
                               "main (app.py:109) 2\n"
                               "main (app.py:109);f (app.py:102) 3\n"
                               "main (app.py:109);f (app.py:102);<built-in x> 4\n"
                               "main (app.py:109);g:h\\n (app.py:103) 1\n";
    sample(p, p->threads.data[0].root, 12);
    expect_text(p, text);
    struct fm_profile *again = load(text);
    expect(again, root_of(again, 0), 12, 22);
    expect_text(again, text);
    fm_profile_free(again);
    fm_profile_free(p);
}

/* However a tool writes a stack without frames, it is the thread's; as a frame among others the
 * words are a name like any other. */
static void test_read_without_frames(void **state)
{
    (void)state;
    struct fm_profile *p = load(" 1\n<no Python frame> 2\nthread (5) 3\n"
                                "thread (5);<no Python frame> 4\nf;<no Python frame> 5\n");
    expect(p, root_of(p, 0), 3, 8);
    expect(p, root_of(p, 1), 7, 7);
    expect(p, fx_child(p, fx_child(p, root_of(p, 0), "f"), "<no Python frame>"), 5, 5);
    fm_profile_free(p);
}

/* Without samples: microseconds of own time. 1400 + 1400 + 1400 ns are 1 + 2 + 1, 4200 in all. */
static void test_written_times(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    uint32_t top = fx_node(p, fx_thread(p, 7), "main", 1, 4200);
    fx_node(p, fx_node(p, top, "f", 1, 2800), "g", 2, 1400);
    expect_text(p, "main (app.py:109) 1\n"
                   "main (app.py:109);f (app.py:102) 2\n"
                   "main (app.py:109);f (app.py:102);g (app.py:103) 1\n");
    fm_profile_free(p);
}

static void test_no_stacks(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    struct fm_error err = FM_ERROR_INIT;
    fm_autobuffer out = FM_BUFFER_INIT;
    p->flat = fm_calloc(1, sizeof *p->flat);
    assert_int_equal(fm_format_collapsed.save(p, &out, &err), FM_UNSUPPORTED);
    assert_non_null(strstr(err.text, "but not the stacks"));
    fm_profile_free(p);
}

/* Every prefix loads or is refused. */
static void test_cut_everywhere(void **state)
{
    (void)state;
    static const char text[] = "# austin: 3.7.0\nprocess 7:\"a;b\";process 8:\"\";thread (7): w;f "
                               "(a.py:1) 2\nP1;T0:2;a.py:f:1 4,0,2\ntid:3;<a>:f:1 3\n";
    for (size_t cut = 0; cut < sizeof text; cut++) {
        struct fm_error err = FM_ERROR_INIT;
        fm_autofree char *part = fm_malloc(cut);
        memcpy(part, text, cut);
        fm_format_collapsed.recognise(part, cut);
        struct fm_profile *p = fm_format_collapsed.load(part, cut, "part", &err);
        assert_true(p || err.status == FM_DAMAGED);
        fm_profile_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pyspy),
        cmocka_unit_test(test_pyspy_processes),
        cmocka_unit_test(test_austin),
        cmocka_unit_test(test_python_sampler),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_recognise),
        cmocka_unit_test(test_written),
        cmocka_unit_test(test_written_threads),
        cmocka_unit_test(test_written_without_frames),
        cmocka_unit_test(test_read_without_frames),
        cmocka_unit_test(test_written_times),
        cmocka_unit_test(test_no_stacks),
        cmocka_unit_test(test_cut_everywhere),
    };
    return cmocka_run_group_tests_name("collapsed", tests, NULL, NULL);
}
