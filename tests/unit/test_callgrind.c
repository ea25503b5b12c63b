/* callgrind: known texts with answers worked out by hand, and what is written is read. */
#include "fixture.h"

#include "base/memory.h"
#include "record/formats/format.h"

static struct fm_profile *load_bytes(const char *bytes, size_t len)
{
    struct fm_error err = FM_ERROR_INIT;
    struct fm_profile *p = fm_format_callgrind.load(bytes, len, "x", &err);
    if (!p)
        fail_msg("%s", err.text);
    return p;
}

static struct fm_profile *load(const char *text)
{
    return load_bytes(text, strlen(text));
}

static void expect_line(const struct fm_profile *p, const char *name, uint32_t line, int64_t hits,
                        int64_t self_ns, int64_t total_ns)
{
    for (size_t i = 0; i < p->lines.rows.len; i++) {
        const struct fm_line *row = &p->lines.rows.data[i];
        if (row->line != line ||
            strcmp(fm_profile_text(p, p->functions.data[row->func].name), name) != 0)
            continue;
        assert_int_equal(row->hits, hits);
        assert_int_equal(row->self_ns, self_ns);
        assert_int_equal(row->total_ns, total_ns);
        return;
    }
    fail_msg("no line %u of %s", line, name);
}

static void expect_function(const struct fm_profile *p, const char *name, uint32_t kind,
                            const char *file, uint32_t line)
{
    const struct fm_flat_row *row = fx_row(p, p->flat, name);
    assert_non_null(row);
    const struct fm_function *f = &p->functions.data[row->func];
    assert_int_equal(f->kind, kind);
    assert_string_equal(fm_profile_text(p, f->file), file);
    assert_int_equal(f->line, line);
}

/* The example of the format's specification, with compressed names and relative positions. */
static void test_example(void **state)
{
    (void)state;
    struct fm_profile *p = load("# callgrind format\n"
                                "version: 1\n"
                                "positions: line\n"
                                "events: Ir\n"
                                "\n"
                                "fl=(1) file1.c\n"
                                "fn=(1) main\n"
                                "16 20\n"
                                "cfn=(2) func1\n"
                                "calls=1 50\n"
                                "* 400\n"
                                "cfi=(2) file2.c\n"
                                "cfn=(3) func2\n"
                                "calls=3 20\n"
                                "* 400\n"
                                "\n"
                                "fn=(2)\n"
                                "+35 100\n"
                                "cfi=(2)\n"
                                "cfn=(3)\n"
                                "calls=2 -31\n"
                                "* 300\n"
                                "\n"
                                "fl=(2)\n"
                                "fn=(3)\n"
                                "-31 700\n");
    assert_int_equal(p->flat->rows.len, 3);
    fx_expect_row(p, p->flat, "main", 0, 0, 20, 820);
    fx_expect_row(p, p->flat, "func1", 1, 1, 100, 400);
    fx_expect_row(p, p->flat, "func2", 5, 5, 700, 700);
    fx_expect_edge(p, p->flat, "main", "func1", 1, 1, 0, 400);
    fx_expect_edge(p, p->flat, "main", "func2", 3, 3, 0, 400);
    fx_expect_edge(p, p->flat, "func1", "func2", 2, 2, 0, 300);
    assert_int_equal(p->flat->edges.len, 3);
    expect_function(p, "main", FM_FUNCTION_NATIVE, "file1.c", 16);
    expect_function(p, "func1", FM_FUNCTION_NATIVE, "file1.c", 50);
    expect_function(p, "func2", FM_FUNCTION_NATIVE, "file2.c", 20);
    expect_line(p, "main", 16, 0, 20, 820);
    expect_line(p, "func1", 51, 0, 100, 400);
    expect_line(p, "func2", 20, 0, 700, 700);
    assert_int_equal(p->lines.rows.len, 3);
    assert_int_equal(p->notes.len, 1); /* the numbers are Ir */
    fm_profile_free(p);
}

/* Addresses and lines, several events of which one is a time, inlined code, jumps, objects. */
static void test_everything_else(void **state)
{
    (void)state;
    struct fm_profile *p = load("version: 1\r\n"
                                "creator: someone\n"
                                "pid: 12\n"
                                "cmd: ./a.out -x\n"
                                "desc: Trigger: end\n"
                                "positions: instr line\n"
                                "event: us : microseconds\n"
                                "events: Ir hits us\n"
                                "summary: 10 4 9\n"
                                "ob=(1) /bin/a\n"
                                "fl=(1) a.c\n"
                                "fn=(1) (below main)\n"
                                "0x400 5 2 1 3\n"
                                "+4 +1 1 1\n" /* no time */
                                "jump=3 0x410 9\n"
                                "* *\n"
                                "jcnd=1/2 +4 +1\n"
                                "* *\n"
                                "fi=(2) inline.h\n"
                                "* 77 1 1 2\n"
                                "cob=(2) /lib/b\n"
                                "cfl=(3) b.c\n"
                                "cfn=(2) helper\n"
                                "calls=4 0x500 20\n"
                                "* * 9 9 4\n"
                                "fe=(1)\n"
                                "+8 9 1 1 1\n"
                                "cfn=(3) leaf\n" /* in a.c of /bin/a again */
                                "calls=1 0 30\n"
                                "* * 3\n"
                                "ob=(2)\n"
                                "fl=(3)\n"
                                "fn=(2)\n"
                                "0x500 20 6 1 3\n"
                                "totals: 10 4 9\n");
    assert_int_equal(p->notes.len, 0); /* 3 + 2 + 1 + 3 = 9: it is whole */
    assert_string_equal(fm_profile_fact_get(p, "command"), "./a.out -x");
    fx_expect_row(p, p->flat, "(below main)", 0, 0, 6000, 10000);
    fx_expect_row(p, p->flat, "helper", 4, 4, 3000, 4000);
    fx_expect_row(p, p->flat, "leaf", 1, 1, 0, 0);
    expect_function(p, "helper", FM_FUNCTION_NATIVE, "b.c", 20);
    expect_function(p, "leaf", FM_FUNCTION_NATIVE, "a.c", 30);
    expect_line(p, "(below main)", 5, 1, 3000, 3000);
    expect_line(p, "(below main)", 6, 1, 0, 0);
    expect_line(p, "(below main)", 9, 1, 1000, 1000);
    expect_line(p, "helper", 20, 1, 3000, 3000);
    assert_int_equal(p->lines.rows.len, 4); /* line 77 is of another file */
    fm_profile_free(p);
}

/* Recursion, told apart by levels (as valgrind does) and not. */
static void test_recursion(void **state)
{
    (void)state;
    struct fm_profile *p = load("events: ns\n"
                                "fl=a.py\n"
                                "fn=main\n1 5\ncfn=f\ncalls=1 10\n2 100\n"
                                "fn=f\n10 30\ncfn=f'2\ncalls=1 10\n11 70\n"
                                "fn=f'2\n10 70\ncfn=f'2\ncalls=2 10\n11 55\n"
                                "fn=g\n20 8\ncfn=g\ncalls=3 20\n21 6\n");
    assert_int_equal(p->flat->rows.len, 3);
    fx_expect_row(p, p->flat, "main", 0, 0, 5, 105);
    fx_expect_row(p, p->flat, "f", 4, 1, 100, 100);
    fx_expect_row(p, p->flat, "g", 3, 0, 8, 8);
    fx_expect_edge(p, p->flat, "main", "f", 1, 1, 0, 100);
    fx_expect_edge(p, p->flat, "f", "f", 3, 1, 0, 70);
    expect_line(p, "f", 10, 0, 100, 30);
    expect_line(p, "f", 11, 0, 0, 70);
    expect_line(p, "g", 20, 0, 8, 8);
    expect_function(p, "f", FM_FUNCTION_PYTHON, "a.py", 10);
    fm_profile_free(p);
}

static void test_pprofile(void **state)
{
    (void)state;
    struct fm_profile *p = load("# callgrind format\nversion: 1\ncreator: pprofile\n"
                                "event: usphit :microseconds/hit\n"
                                "events: hits microseconds usphit\n"
                                "cmd: pp.py\n"
                                "fl=pp.py\nfn=<module>:1\n"
                                "5 1 69 69\n"
                                "cfl=pp.py\ncfn=A.m:6\ncalls=2 6\n5 2 11 11\n"
                                "fn=A.m:6\n7 2 11 5\n");
    fx_expect_row(p, p->flat, "<module>", 0, 0, 69000, 80000);
    fx_expect_row(p, p->flat, "m", 2, 2, 11000, 11000);
    expect_function(p, "m", FM_FUNCTION_PYTHON, "pp.py", 6);
    expect_function(p, "<module>", FM_FUNCTION_PYTHON, "pp.py", 1);
    expect_line(p, "<module>", 5, 1, 69000, 80000);
    expect_line(p, "m", 7, 2, 11000, 11000);
    fm_profile_free(p);
}

static void test_damaged(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
        int status;
    } cases[] = {
        { "version: 1\nfn=f\n", "line 2: there are no events", FM_DAMAGED },
        { "version: 2\nevents: ns\n", "version that is not 1", FM_NEWER },
        { "events:\n", "line 1: there are no events", FM_DAMAGED },
        { "events: ns\n1 2\n", "line 2: a cost of no function", FM_DAMAGED },
        { "fn=f\n1 2\n", "line 2: a cost before the list of events", FM_DAMAGED },
        { "events: ns\nfn=f\n1 x\n", "line 3: a cost is none", FM_DAMAGED },
        { "events: ns\nfn=f\n1 -2\n", "line 3: a cost is none", FM_DAMAGED },
        { "events: ns\nfn=f\n+ 2\n", "line 3: a position is none", FM_DAMAGED },
        { "events: ns\nfn=f\n0x 2\n", "line 3: a position is none", FM_DAMAGED },
        { "events: ns\nfn=f\ncalls=1 2\n", "line 3: calls of no function", FM_DAMAGED },
        { "events: ns\ncfn=f\ncalls=1 2\n", "line 3: calls of no function", FM_DAMAGED },
        { "events: ns\nfn=f\ncfn=g\ncalls=x\n", "line 4: a number of calls is none", FM_DAMAGED },
        { "events: ns\nfn=f\ncfn=g\ncalls=1 2\n", "ends between calls and their cost", FM_DAMAGED },
        { "events: ns\nfn=f\ncfn=g\ncalls=1 2\nfn=g\n", "calls without their cost", FM_DAMAGED },
        { "events: ns\nwhat is this\n", "line 2: neither a header nor", FM_DAMAGED },
    };
    for (size_t i = 0; i < FM_COUNT(cases); i++) {
        struct fm_error err = FM_ERROR_INIT;
        assert_null(fm_format_callgrind.load(cases[i].text, strlen(cases[i].text), "x", &err));
        if (!strstr(err.text, cases[i].sentence))
            fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].sentence);
        assert_int_equal(err.status, cases[i].status);
    }
}

static void test_extremes(void **state)
{
    (void)state;
    /* Numbers beyond 64 bits stop at the limit; positions before line 0 are line 0; ids may be
     * anything; names may be empty. */
    struct fm_profile *p = load("events: ns\nfn=(99999999999999999) \n1 99999999999999999999999\n"
                                "-5 1\nfn=\n4294967295 1\n0xffffffffffffffff 2\nfn=(\n1 1\n"
                                "fn='2\n1 1\nfn=x'2'2\n1 1\n");
    assert_int_equal(p->flat->rows.data[0].self_ns, INT64_MAX);
    fm_profile_free(p);
    p = load_bytes("events: ns\nfn=a\0b\n1 1", 21);
    assert_int_equal(p->flat->rows.len, 1);
    fm_profile_free(p);
}

static void test_recognise(void **state)
{
    (void)state;
    static const char *const yes[] = { "# callgrind format\n", "version: 1\nevents: Ir\n",
                                       "events: Ir\nfn=f\n" };
    static const char *const no[] = { "", "version: 1\n", "events are: x\n", "{0", "\x80\4" };
    for (size_t i = 0; i < FM_COUNT(yes); i++)
        assert_true(fm_format_callgrind.recognise(yes[i], strlen(yes[i])));
    for (size_t i = 0; i < FM_COUNT(no); i++)
        assert_false(fm_format_callgrind.recognise(no[i], strlen(no[i])));
    assert_ptr_equal(fm_format_of_path("out/callgrind.out.123"), &fm_format_callgrind);
    assert_ptr_equal(fm_format_of_path("x.callgrind"), &fm_format_callgrind);
    assert_ptr_equal(fm_format_of_path("callgrind.out.x.lprof"), &fm_format_lprof);
    assert_null(fm_format_of_path("callgrind.out.d/x"));
}

/* ---- writing ---- */

/* main(100) → { fib(60) → fib(40) → { fib(15), fib(5) }, <lambda>(10), another <lambda>(20) } */
static struct fm_profile *tree(void)
{
    struct fm_profile *p = fm_profile_new();
    uint32_t top = fx_node(p, fx_thread(p, 7), "main", 1, 100);
    uint32_t fib = fx_node(p, top, "fib", 1, 60);
    uint32_t inner = fx_node(p, fib, "fib", 2, 40);
    fx_node(p, inner, "fib", 3, 15);
    struct fm_function lambda = p->functions.data[fx_function(p, "<lambda>")];
    fx_node(p, top, "<lambda>", 4, 10);
    uint32_t twin = fm_profile_node(p, top, fm_profile_function_distinct(p, &lambda));
    fm_profile_add(p, FM_METRIC_CALLS, twin, 5);
    fm_profile_add(p, FM_METRIC_TOTAL, twin, 20);
    return p;
}

/* Self: main 10, fib 20 outermost and 40 deeper, the lambdas 10 and 20. Lines: m is 109, f 102,
 * < is 60 (fixture.h). */
static void test_written(void **state)
{
    (void)state;
    struct fm_profile *p = tree();
    fm_autobuffer out = FM_BUFFER_INIT;
    assert_int_equal(fm_format_callgrind.save(p, &out, NULL), 0);
    assert_string_equal(fm_buffer_text(&out),
                        "# callgrind format\nversion: 1\ncreator: fathom " FATHOM_VERSION "\n"
                        "positions: line\nevent: ns : nanoseconds\nevents: ns\nsummary: 100\n"
                        "\nfl=(1) app.py\nfn=(1) main\n109 10\n"
                        "cfi=(1)\ncfn=(2) fib\ncalls=1 102\n109 60\n"
                        "cfi=(1)\ncfn=(3) <lambda>\ncalls=4 60\n109 10\n"
                        "cfi=(1)\ncfn=(4) <lambda> [2]\ncalls=5 60\n109 20\n"
                        "\nfl=(1)\nfn=(2)\n102 20\n"
                        "cfi=(1)\ncfn=(5) fib'2\ncalls=2 102\n102 40\n"
                        "\nfl=(1)\nfn=(3)\n60 10\n"
                        "\nfl=(1)\nfn=(4)\n60 20\n"
                        "\nfl=(1)\nfn=(5)\n102 40\n"
                        "cfi=(1)\ncfn=(5)\ncalls=3 102\n102 15\n");
    struct fm_profile *again = load_bytes(out.data, out.len);
    assert_int_equal(again->notes.len, 0);
    assert_int_equal(again->lines.rows.len, 0); /* there were none */
    fx_expect_row(again, again->flat, "main", 0, 0, 10, 100);
    fx_expect_row(again, again->flat, "fib", 6, 1, 60, 60);
    fx_expect_row(again, again->flat, "<lambda>", 4, 4, 10, 10);
    fx_expect_row(again, again->flat, "<lambda> [2]", 5, 5, 20, 20);
    fx_expect_edge(again, again->flat, "fib", "fib", 5, 2, 0, 40);
    expect_function(again, "fib", FM_FUNCTION_PYTHON, "app.py", 102);
    fm_profile_free(again);
    fm_profile_free(p);
}

/* fib's own time is 20 outermost and 40 deeper: 1 to 2. Line 103 with 30 becomes 10 and 20; line
 * 104 with 4 hits and nothing else 1 and 3; 10 and 20 of its time are on no line: on its first. */
static void test_written_lines(void **state)
{
    (void)state;
    struct fm_profile *p = tree();
    struct fm_line *row = fm_lines_add(&p->lines, 0, fx_function(p, "fib"), 103, false);
    row->hits = 3;
    row->self_ns = row->total_ns = 30;
    fm_lines_add(&p->lines, 0, fx_function(p, "fib"), 104, false)->hits = 4;
    row = fm_lines_add(&p->lines, 0, fx_function(p, "main"), 110, false);
    row->hits = 2;
    row->self_ns = 25; /* more than the calls say: as it is */
    fm_lines_sort(&p->lines);
    fm_autobuffer out = FM_BUFFER_INIT;
    assert_int_equal(fm_format_callgrind.save(p, &out, NULL), 0);
    const char *text = fm_buffer_text(&out);
    assert_non_null(strstr(text, "events: ns hits\nsummary: 115 9\n"));
    assert_non_null(strstr(text, "fn=(1) main\n110 25 2\ncfi"));
    assert_non_null(strstr(text, "fn=(2)\n103 10 1\n104 0 1\n102 10\ncfi"));
    assert_non_null(strstr(text, "fn=(5)\n103 20 2\n104 0 3\n102 20\ncfi"));
    struct fm_profile *again = load_bytes(out.data, out.len);
    assert_int_equal(again->notes.len, 0);
    expect_line(again, "fib", 103, 3, 30, 10);
    expect_line(again, "fib", 104, 4, 0, 0);
    expect_line(again, "main", 110, 2, 25, 25);
    fm_profile_free(again);
    fm_profile_free(p);
}

/* Every prefix loads or is refused, and one that lost costs says so. */
static void test_cut_everywhere(void **state)
{
    (void)state;
    struct fm_profile *p = tree();
    fm_autobuffer out = FM_BUFFER_INIT;
    fm_format_callgrind.save(p, &out, NULL);
    for (size_t cut = 0; cut < out.len; cut++) {
        struct fm_error err = FM_ERROR_INIT;
        fm_autofree char *part = fm_malloc(cut);
        memcpy(part, out.data, cut);
        struct fm_profile *loaded = fm_format_callgrind.load(part, cut, "part", &err);
        if (!loaded) {
            assert_true(err.status == FM_DAMAGED || err.status == FM_NEWER);
            continue;
        }
        int64_t self_ns = fm_flat_total(loaded->flat).self_ns;
        if (strstr(fm_buffer_text(&out), "summary: 100\n") + 13 <= out.data + cut)
            assert_int_equal(fx_note(loaded, "cut-off") != 0, self_ns < 100);
        fm_profile_free(loaded);
    }
    fm_profile_free(p);
}

static void test_written_names(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    uint32_t root = fx_thread(p, 7);
    static const char *const names[] = { "", "a\nb\r", "(7) x", " y " };
    for (size_t i = 0; i < FM_COUNT(names); i++) {
        uint32_t name = fm_profile_string(p, names[i]);
        struct fm_function f = { .kind = FM_FUNCTION_C, .name = name, .qualname = name };
        uint32_t node = fm_profile_node(p, root, fm_profile_function(p, &f));
        fm_profile_add(p, FM_METRIC_TOTAL, node, (int64_t)i + 1);
    }
    fm_autobuffer out = FM_BUFFER_INIT;
    assert_int_equal(fm_format_callgrind.save(p, &out, NULL), 0);
    struct fm_profile *again = load_bytes(out.data, out.len);
    fx_expect_row(again, again->flat, "?", 0, 0, 1, 1);
    fx_expect_row(again, again->flat, "a\\nb\\r", 0, 0, 2, 2);
    fx_expect_row(again, again->flat, "(7) x", 0, 0, 3, 3);
    expect_function(again, "(7) x", FM_FUNCTION_C, "", 0);
    fm_profile_free(again);
    fm_profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_example),       cmocka_unit_test(test_everything_else),
        cmocka_unit_test(test_recursion),     cmocka_unit_test(test_pprofile),
        cmocka_unit_test(test_damaged),       cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_recognise),     cmocka_unit_test(test_written),
        cmocka_unit_test(test_written_lines), cmocka_unit_test(test_cut_everywhere),
        cmocka_unit_test(test_written_names),
    };
    return cmocka_run_group_tests_name("callgrind", tests, NULL, NULL);
}
