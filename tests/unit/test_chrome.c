/* Chrome's trace events: known texts with answers worked out by hand. */
#include "fixture.h"

#include "base/memory.h"
#include "record/formats/format.h"
#include "record/formats/stacks/pprof.h"
#include "record/formats/timeline/json_pull.h"

static struct fm_profile *load(const char *text)
{
    struct fm_error err = FM_ERROR_INIT;
    assert_true(fm_format_chrome.recognise(text, strlen(text)));
    struct fm_profile *p = fm_format_chrome.load(text, strlen(text), "x", &err);
    if (!p)
        fail_msg("%s", err.text);
    return p;
}

#define X(name, ts, dur)                                                                           \
    "{\"ph\":\"X\",\"cat\":\"fee\",\"name\":\"" name "\",\"pid\":7,\"tid\":8,\"ts\":" ts           \
    ",\"dur\":" dur "}"
#define EDGE(kind, name, ts)                                                                       \
    "{\"ph\":\"" kind "\",\"name\":\"" name "\",\"pid\":7,\"tid\":8,\"ts\":" ts "}"

/* main from 10 to 60 µs, in it f from 20 to 30 and from 30 to 45, in that f again from 31 to 40. */
static void expect_tree(const struct fm_profile *p)
{
    uint32_t top = fx_child(p, p->threads.data[0].root, "main"), f = fx_child(p, top, "f");
    fx_expect_node(p, p->threads.data[0].root, 0, 50000);
    fx_expect_node(p, top, 1, 50000);
    fx_expect_node(p, f, 2, 25000);
    assert_int_equal(fm_profile_value(p, FM_METRIC_MIN, f), 10000);
    assert_int_equal(fm_profile_value(p, FM_METRIC_MAX, f), 15000);
    fx_expect_node(p, fx_child(p, f, "f"), 1, 9000);
    assert_int_equal(p->nodes.len, 4);
    assert_int_equal(p->processes.data[0].pid, 7);
    assert_int_equal(p->threads.data[0].tid, 8);
    assert_true(p->processes.data[0].calls && !p->processes.data[0].sampled);
}

/* viztracer's: a call is written when it ends; the text of its source is in the file. */
static void test_viztracer(void **state)
{
    (void)state;
    struct fm_profile *p = load(
        "{\"traceEvents\": [{\"ph\": \"M\", \"pid\": 7, \"tid\": 8, \"name\": \"process_name\", "
        "\"args\": {\"name\": \"MainProcess\"}}, {\"ph\": \"M\", \"pid\": 7, \"tid\": 8, "
        "\"name\": \"thread_name\", \"args\": {\"name\": \"w\\u00e9\"}}," X(
            "C.f (/a b/x.py:12)", "20",
            "10.000") "," X("C.f (/a b/x.py:12)", "31.0",
                            "9") "," X("C.f (/a b/x.py:12)", "30",
                                       "15") "," X("main (x.py:3)", "10",
                                                   "50") ",{\"pid\": 7, \"tid\": 8, \"ts\": 5, \"ph\": \"i\", \"name\": \"n\", \"s\": \"t\"}"
                                                         "], \"viztracer_metadata\": {\"overflow\": true, \"version\": \"1.1.1\"}, \"file_info\": "
                                                         "{\"files\": {\"x.py\": [\"a = 1\\n\", 1]}, \"functions\": {\"main\": [\"x.py\", 3]}}}");
    expect_tree(p);
    const struct fm_function *f = &p->functions.data[p->nodes.data[2].func];
    assert_string_equal(fm_profile_text(p, f->qualname), "C.f");
    assert_string_equal(fm_profile_text(p, f->name), "f");
    assert_string_equal(fm_profile_text(p, f->file), "/a b/x.py");
    assert_int_equal(f->line, 12);
    assert_int_equal(f->kind, FM_FUNCTION_PYTHON);
    assert_string_equal(fm_profile_text(p, p->threads.data[0].name), "w\xc3\xa9");
    assert_string_equal(fm_profile_text(p, p->processes.data[0].command), "MainProcess");
    assert_int_equal(p->sources.len, 1);
    assert_string_equal(fm_profile_text(p, p->sources.data[0].text), "a = 1\n");
    assert_int_equal(fx_note(p, "lost"), 1);
    assert_int_equal(p->notes.len, 1);
    fm_profile_free(p);
}

/* Of two calls with the same times, viztracer writes the inner one first, others the outer one. */
static void test_equal_times(void **state)
{
    (void)state;
    struct fm_profile *p = load("[" X("a", "1", "2") "," X("b", "1", "2") "]");
    assert_int_not_equal(fx_child(p, fx_child(p, p->threads.data[0].root, "a"), "b"), FM_NONE);
    fm_profile_free(p);
    p = load(
        "{\"viztracer_metadata\":{},\"traceEvents\":[" X("a", "1", "2") "," X("b", "1", "2") "]}");
    assert_int_not_equal(fx_child(p, fx_child(p, p->threads.data[0].root, "b"), "a"), FM_NONE);
    fm_profile_free(p);
}

/* Begins and ends, in any order of the file; an end without a name is of the call begun last. */
static void test_begin_end(void **state)
{
    (void)state;
    struct fm_profile *p = load(
        "[" EDGE("B", "f", "20") "," EDGE("B", "main", "10") "," EDGE("E", "f", "30") "," EDGE("B", "f", "30") "," EDGE(
            "B", "f",
            "31") ",{\"ph\":\"E\",\"pid\":7,\"tid\":8,\"ts\":40}," EDGE("E", "f",
                                                                        "45") "," EDGE("E", "main",
                                                                                       "60") "]");
    expect_tree(p);
    assert_int_equal(p->notes.len, 0);
    fm_profile_free(p);
}

/* Killed in the middle: what is there is there; what had not ended lasts until the thread's last event. */
static void test_unfinished(void **state)
{
    (void)state;
    static const char whole[] =
        "[\n" X("f", "20", "10") ",\n" EDGE("B", "main", "10") ",\n" X("g", "50", "10") ",\n";
    static const char *const ends[] = {
        "", "{\"ph\":\"X\",\"na", "{", "{\"ph\":\"X\",\"name\":\"h\",\"ts\":5",
        "{\"ph\":\"X\",\"name\":\"h\",\"ts\":5,\"dur\":1,\"args\":{\"a\":["
    };
    for (size_t i = 0; i < FM_COUNT(ends); i++) {
        fm_autobuffer text = FM_BUFFER_INIT;
        fm_buffer_addf(&text, "%s%s", whole, ends[i]);
        struct fm_profile *p = load(fm_buffer_text(&text));
        uint32_t top = fx_child(p, p->threads.data[0].root, "main");
        fx_expect_node(p, top, 1, 50000);
        assert_int_equal(fm_profile_value(p, FM_METRIC_MAX, top), 0);
        fx_expect_node(p, fx_child(p, top, "f"), 1, 10000);
        fx_expect_node(p, fx_child(p, top, "g"), 1, 10000);
        assert_int_equal(p->nodes.len, 4);
        assert_int_equal(fx_note(p, "cut-off"), 1);
        assert_int_equal(fx_note(p, "open"), 1);
        fm_profile_free(p);
    }
}

/* Ends that nothing began are left out; one with a name ends what was begun inside of it. */
static void test_unmatched(void **state)
{
    (void)state;
    struct fm_profile *p = load(
        "[" EDGE("E", "x", "1") "," EDGE("B", "a", "2") "," EDGE("B", "b", "3") "," EDGE("E", "x", "4") "," EDGE(
            "E", "a",
            "7") "," EDGE("E", "b",
                          "9") ",{\"ph\":\"X\",\"name\":\"late\"},{\"ph\":\"X\",\"ts\":3},{\"ph\":\"B\",\"ts\":\"x\",\"name\":\"q\"}]");
    uint32_t a = fx_child(p, p->threads.data[0].root, "a");
    fx_expect_node(p, a, 1, 5000);
    fx_expect_node(p, fx_child(p, a, "b"), 1, 4000);
    assert_int_equal(fx_note(p, "strange"), 6);
    assert_int_equal(fx_note(p, "open"), 1);
    fm_profile_free(p);
}

/* Up to a microsecond is rounding; what overlaps more is in a tree of its own. */
static void test_overlap(void **state)
{
    (void)state;
    struct fm_profile *p = load("{\"traceEvents\":[" X("a", "0", "10") "," X("b", "5", "6") "," X(
        "c", "8", "10") "," X("d", "9", "1") "," X("e", "20", "1") "]}");
    assert_int_equal(p->threads.len, 2);
    uint32_t root = p->threads.data[0].root, a = fx_child(p, root, "a"), b = fx_child(p, a, "b");
    fx_expect_node(p, a, 1, 10000);
    fx_expect_node(p, b, 1, 5000);
    fx_expect_node(p, fx_child(p, b, "d"), 1, 1000);
    fx_expect_node(p, fx_child(p, root, "e"), 1, 1000);
    fx_expect_node(p, root, 0, 11000);
    fx_expect_node(p, fx_child(p, p->threads.data[1].root, "c"), 1, 10000);
    assert_string_equal(fm_profile_text(p, p->threads.data[1].name), " (overlapping 1)");
    assert_int_equal(fx_note(p, "overlapping"), 1);
    fm_profile_free(p);
}

/* torch's: text as process and thread, times since a base, Python functions by file and line. */
static void test_kineto(void **state)
{
    (void)state;
    struct fm_profile *p = load(
        "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"name\":\"x\"}],\"displayTimeUnit\":\"ms\","
        "\"baseTimeNanoseconds\":1700000000000000000,\"traceEvents\":["
        "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"a/b.py(12): forward\",\"pid\":3,\"tid\":4,"
        "\"ts\":5000.250,\"dur\":10.5,\"args\":{\"Python id\":1,\"name\":\"no\"}},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::add\",\"pid\":3,\"tid\":\"4\",\"ts\":5001,"
        "\"dur\":2.001},{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"<built-in function len>\","
        "\"pid\":3,\"tid\":4,\"ts\":5004,\"dur\":1},"
        "{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"P\",\"pid\":\"Spans\",\"tid\":\"P\",\"ts\":4e3,"
        "\"dur\":NaN},{\"ph\":\"s\",\"id\":1,\"pid\":3,\"tid\":4,\"ts\":1,\"cat\":\"f\",\"name\":\"f\"},"
        "{\"ph\":\"b\",\"id\":1,\"pid\":3,\"tid\":4,\"ts\":1,\"cat\":\"f\",\"name\":\"f\"},"
        "{\"ph\":\"e\",\"id\":1,\"pid\":3,\"tid\":4,\"ts\":9,\"cat\":\"f\",\"name\":\"f\"},"
        "{\"ph\":\"C\",\"pid\":3,\"ts\":9,\"name\":\"memory\",\"args\":{\"value\":9.5}},"
        "{\"name\":\"Record Window End\",\"ph\":\"i\",\"s\":\"g\",\"pid\":\"\",\"tid\":\"\",\"ts\":7}],"
        "\"traceName\":\"x.json\"}");
    uint32_t top = fx_child(p, p->threads.data[0].root, "forward");
    fx_expect_node(p, top, 1, 10500);
    const struct fm_function *f = &p->functions.data[p->nodes.data[top].func];
    assert_string_equal(fm_profile_text(p, f->file), "a/b.py");
    assert_int_equal(f->line, 12);
    uint32_t add = fx_child(p, top, "aten::add");
    fx_expect_node(p, add, 1, 2001);
    assert_int_equal(p->functions.data[p->nodes.data[add].func].kind, FM_FUNCTION_NATIVE);
    uint32_t len = fx_child(p, top, "<built-in function len>");
    assert_int_equal(p->functions.data[p->nodes.data[len].func].kind, FM_FUNCTION_C);
    assert_int_equal(p->threads.len, 2);
    assert_string_equal(fm_profile_text(p, p->processes.data[1].command), "Spans");
    assert_true(p->processes.data[0].start_real_ns == 1700000000005000250u);
    assert_int_equal(fx_note(p, "async"), 1);
    assert_int_equal(fx_note(p, "open"), 1); /* whose duration is none */
    fm_profile_free(p);
}

static void test_gzip(void **state)
{
    (void)state;
    static const char text[] = "{\"traceEvents\":[" X("main", "10", "50") "," X(
        "f", "20", "10") "," X("f", "30", "15") "," X("f", "31", "9") "]}";
    fm_autobuffer packed = FM_BUFFER_INIT;
    assert_int_equal(fm_gzip_pack(text, strlen(text), &packed, NULL), 0);
    assert_true(fm_format_chrome.recognise(packed.data, packed.len));
    assert_false(fm_format_pprof.recognise(packed.data, packed.len));
    struct fm_profile *p = fm_format_chrome.load(packed.data, packed.len, "x", NULL);
    assert_non_null(p);
    expect_tree(p);
    fm_profile_free(p);
}

static void test_damaged(void **state)
{
    (void)state;
    static const char *const texts[] = { "{\"traceEvents\":[{\"ph\":\"X\",5:3}]}",
                                         "{\"traceEvents\":[}{]", "{\"traceEvents\":[;]}",
                                         "{\"traceEvents\":[{\"ph\":*}]}" };
    for (size_t i = 0; i < FM_COUNT(texts); i++) {
        struct fm_error err = FM_ERROR_INIT;
        struct fm_profile *p = fm_format_chrome.load(texts[i], strlen(texts[i]), "x", &err);
        if (i == 1) { /* closed by the wrong bracket: read as far as it goes */
            fm_profile_free(p);
            continue;
        }
        assert_null(p);
        assert_int_equal(err.status, FM_DAMAGED);
        assert_non_null(strstr(err.text, "it is no JSON: byte "));
    }
}

static void test_recognise(void **state)
{
    (void)state;
    static const char *const no[] = { "",   "{",           "[", "[]", "[1,2]", "{\"events\":[]}",
                                      "ph", "\x1f\x8b\x08" };
    for (size_t i = 0; i < FM_COUNT(no); i++)
        assert_false(fm_format_chrome.recognise(no[i], strlen(no[i])));
    assert_ptr_equal(fm_format_of_path("x.chrome.json"), &fm_format_chrome);
}

/* Microseconds become nanoseconds exactly, whatever is beyond a double. */
static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool ok;
        int64_t ns;
    } cases[] = {
        { "1", true, 1000 },
        { "0.001", true, 1 },
        { "1.5", true, 1500 },
        { "-2.25", true, -2250 },
        { "1.0004", true, 1000 },
        { "1.0005", true, 1001 },
        { "1.9996", true, 2000 },
        { "1700000000123456.789", true, 1700000000123456789 },
        { "170000000012345.678", true, 170000000012345678 },
        { "88.26399993896484", true, 88264 },
        { "1e3", true, 1000000 },
        { "", false, 0 },
        { "x", false, 0 },
        { "1x", false, 0 },
        { "NaN", false, 0 },
        { "1e300", false, 0 },
        { "-", false, 0 },
        { "3000000000000000", false, 0 },
    };
    for (size_t i = 0; i < FM_COUNT(cases); i++) {
        struct fm_slice s = { cases[i].text, strlen(cases[i].text) };
        int64_t ns = 0;
        bool ok = fm_slice_thousandths(&s, &ns);
        if (ok != cases[i].ok || (ok && ns != cases[i].ns))
            fail_msg("%s: %d, %lld", cases[i].text, ok, (long long)ns);
    }
}

/* Every prefix of a file loads, or says why not; and no depth of brackets is too much. */
static void test_cut_everywhere(void **state)
{
    (void)state;
    static const char text[] =
        "{\"traceEvents\":[" X("a \\u00e9\\ud83d\\ude00 (x.py:3)", "1", "2") "," EDGE(
            "B", "b", "3") "],\"file_info\":{\"files\":{\"x\":[\"t\",1]}}}";
    for (size_t cut = 0; cut < sizeof text; cut++) {
        struct fm_error err = FM_ERROR_INIT;
        fm_autofree char *part = fm_malloc(cut + 1);
        memcpy(part, text, cut);
        struct fm_profile *p = fm_format_chrome.load(part, cut, "part", &err);
        if (!p && !err.text[0])
            fail_msg("no word about the first %zu bytes", cut);
        fm_profile_free(p);
    }
    fm_autobuffer deep = FM_BUFFER_INIT;
    fm_buffer_add_text(&deep, "{\"traceEvents\":[{\"ph\":\"X\",\"args\":");
    for (int i = 0; i < 1000000; i++)
        fm_buffer_add_char(&deep, '[');
    struct fm_profile *p = fm_format_chrome.load(deep.data, deep.len, "deep", NULL);
    assert_non_null(p);
    fm_profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_viztracer), cmocka_unit_test(test_equal_times),
        cmocka_unit_test(test_begin_end), cmocka_unit_test(test_unfinished),
        cmocka_unit_test(test_unmatched), cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_kineto),    cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_damaged),   cmocka_unit_test(test_recognise),
        cmocka_unit_test(test_numbers),   cmocka_unit_test(test_cut_everywhere),
    };
    return cmocka_run_group_tests_name("chrome", tests, NULL, NULL);
}
