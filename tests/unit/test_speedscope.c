/* speedscope's JSON: known texts with answers worked out by hand, and what is written is read. */
#include "fixture.h"

#include "base/memory.h"
#include "record/formats/format.h"

#define SCHEMA "\"$schema\":\"https://www.speedscope.app/file-format-schema.json\""
#define FRAMES                                                                                     \
    "\"shared\":{\"frames\":[{\"name\":\"main\",\"file\":\"a.py\",\"line\":9},"                    \
    "{\"name\":\"A.f\",\"file\":\"a.py\",\"line\":31},"                                            \
    "{\"name\":\"A.f\",\"file\":\"a.py\",\"line\":30,\"col\":null}]}"

static struct fm_profile *load(const char *text)
{
    struct fm_error err = FM_ERROR_INIT;
    struct fm_profile *p = fm_format_speedscope.load(text, strlen(text), "x", &err);
    if (!p)
        fail_msg("%s", err.text);
    return p;
}

static void expect(const struct fm_profile *p, uint32_t node, int64_t calls, int64_t samples,
                   int64_t total_ns)
{
    fx_expect_node(p, node, calls, total_ns);
    assert_int_equal(fm_profile_value(p, FM_METRIC_SAMPLES, node), samples);
}

/* As py-spy writes: every sample by itself, lines that were executing. */
static void test_sampled(void **state)
{
    (void)state;
    struct fm_profile *p = load("{" SCHEMA ",\"exporter\":\"py-spy@0.4.3\",\"profiles\":["
                                "{\"type\":\"sampled\",\"name\":\"Thread 12 \\\"w\\\"\","
                                "\"unit\":\"seconds\",\"startValue\":0,\"endValue\":1.75,"
                                "\"samples\":[[0],[0,1],[0,2],[]],\"weights\":[1,0.5,0.25,0.125]},"
                                "{\"type\":\"sampled\",\"name\":\"Process 7 Thread 13 \\\"\\\"\","
                                "\"unit\":\"milliseconds\",\"startValue\":0,\"endValue\":3,"
                                "\"samples\":[[1]],\"weights\":[3]}]," FRAMES "}");
    assert_int_equal(p->threads.len, 2);
    assert_int_equal(p->threads.data[0].tid, 12);
    assert_string_equal(fm_profile_text(p, p->threads.data[0].name), "w");
    assert_int_equal(p->processes.data[p->threads.data[1].process].pid, 7);
    assert_int_equal(p->threads.data[1].tid, 13);
    uint32_t top = fx_child(p, p->threads.data[0].root, "main"), f = fx_child(p, top, "f");
    expect(p, p->threads.data[0].root, 0, 1, 1875000000);
    expect(p, top, 0, 1, 1750000000);
    expect(p, f, 0, 2, 750000000);
    expect(p, fx_child(p, p->threads.data[1].root, "f"), 0, 1, 3000000);
    const struct fm_function *function = &p->functions.data[p->nodes.data[f].func];
    assert_int_equal(function->line, 30); /* the lowest seen */
    assert_int_equal(function->kind, FM_FUNCTION_PYTHON);
    assert_int_equal(p->lines.rows.len, 4); /* main 9, f 30 and 31; f 31 of the other process */
    assert_int_equal(p->notes.len, 0);
    assert_true(p->processes.data[0].sampled && !p->processes.data[0].calls);
    fm_profile_free(p);
}

/* main from 10 to 60, in it f from 20 to 30 and from 30 to 45, in that f again from 31 to 40. */
static void test_evented(void **state)
{
    (void)state;
    static const char events[] =
        "\"startValue\":0,\"endValue\":70,\"events\":["
        "{\"type\":\"O\",\"at\":10,\"frame\":0},{\"type\":\"O\",\"at\":20,\"frame\":1},"
        "{\"type\":\"C\",\"at\":30,\"frame\":1},{\"type\":\"O\",\"at\":30,\"frame\":1},"
        "{\"type\":\"O\",\"at\":31,\"frame\":1},{\"type\":\"C\",\"at\":40,\"frame\":1},"
        "{\"type\":\"C\",\"at\":45,\"frame\":1},{\"type\":\"C\",\"at\":60,\"frame\":0}]}],";
    fm_autobuffer text = FM_BUFFER_INIT;
    fm_buffer_addf(&text,
                   "{" SCHEMA ",\"profiles\":[{\"type\":\"evented\",\"name\":\"x\","
                   "\"unit\":\"microseconds\",%s" FRAMES "}",
                   events);
    struct fm_profile *p = load(text.data);
    uint32_t top = fx_child(p, p->threads.data[0].root, "main"), f = fx_child(p, top, "f");
    expect(p, top, 1, 0, 50000);
    expect(p, f, 2, 0, 25000);
    expect(p, fx_child(p, f, "f"), 1, 0, 9000);
    assert_string_equal(fm_profile_text(p, p->threads.data[0].name), "x");
    assert_true(p->processes.data[0].calls && !p->processes.data[0].sampled);
    fm_profile_free(p);
}

/* pyinstrument: first lines, no calls, "[self]" for the caller's own time, open to the end. */
static void test_pyinstrument(void **state)
{
    (void)state;
    struct fm_profile *p =
        load("{" SCHEMA ",\"exporter\":\"pyinstrument\",\"activeProfileIndex\":null,"
             "\"shared\":{\"frames\":[{\"name\":\"f\",\"file\":\"a.py\",\"line\":3},"
             "{\"name\":\"f\",\"file\":\"a.py\",\"line\":8},{\"name\":\"[self]\"},"
             "{\"name\":\"sleep\",\"file\":\"<built-in>\",\"line\":0}]},"
             "\"profiles\":[{\"type\":\"evented\",\"name\":\"x\",\"unit\":\"nanoseconds\","
             "\"startValue\":0,\"endValue\":70,\"events\":["
             "{\"type\":\"O\",\"at\":0,\"frame\":0},{\"type\":\"O\",\"at\":0,\"frame\":2},"
             "{\"type\":\"C\",\"at\":5,\"frame\":2},{\"type\":\"O\",\"at\":5,\"frame\":1},"
             "{\"type\":\"O\",\"at\":15,\"frame\":3}]}]}");
    uint32_t outer = fx_child(p, p->threads.data[0].root, "f"), inner = fx_child(p, outer, "f");
    expect(p, outer, 0, 0, 70);
    expect(p, inner, 0, 0, 65);
    uint32_t sleep = fx_child(p, inner, "sleep");
    expect(p, sleep, 0, 0, 55);
    assert_int_equal(p->functions.data[p->nodes.data[sleep].func].kind, FM_FUNCTION_C);
    assert_int_equal(p->functions.data[p->nodes.data[inner].func].line, 8);
    assert_int_equal(fx_note(p, "cut-off"), 3);
    assert_int_equal(p->nodes.len, 4);
    fm_profile_free(p);
}

static void test_not_times(void **state)
{
    (void)state;
    struct fm_profile *p = load("{" SCHEMA "," FRAMES ",\"profiles\":[{\"type\":\"sampled\","
                                "\"name\":\"x\",\"unit\":\"none\",\"samples\":[[0]],"
                                "\"weights\":[7]}]}");
    assert_string_equal(fm_profile_fact_get(p, "unit"), "counts");
    expect(p, fx_child(p, p->threads.data[0].root, "main"), 0, 1, 7);
    fm_profile_free(p);
}

static void test_damaged(void **state)
{
    (void)state;
    static const struct {
        const char *profile, *sentence;
    } cases[] = {
        { "\"type\":\"sampled\",\"unit\":\"seconds\",\"samples\":[[0]],\"weights\":[]",
          "profile 0: there is not a weight for each sample" },
        { "\"type\":\"sampled\",\"unit\":\"seconds\",\"weights\":[]", "not a weight for each" },
        { "\"type\":\"sampled\",\"unit\":\"seconds\",\"samples\":[[3]],\"weights\":[1]",
          "profile 0: sample 0: it has a frame that does not exist" },
        { "\"type\":\"sampled\",\"unit\":\"seconds\",\"samples\":[[-1]],\"weights\":[1]",
          "a frame that does not exist" },
        { "\"type\":\"sampled\",\"unit\":\"seconds\",\"samples\":[[0.5]],\"weights\":[1]",
          "a frame that does not exist" },
        { "\"type\":\"sampled\",\"unit\":\"seconds\",\"samples\":[7],\"weights\":[1]",
          "sample 0: it is no list" },
        { "\"type\":\"sampled\",\"unit\":\"seconds\",\"samples\":[[0]],\"weights\":[1e300]",
          "weight 0 is none" },
        { "\"type\":\"sampled\",\"unit\":\"seconds\",\"samples\":[[0]],\"weights\":[-1]",
          "weight 0 is none" },
        { "\"type\":\"sampled\",\"unit\":\"seconds\",\"samples\":[[0]],\"weights\":[\"1\"]",
          "weight 0 is none" },
        { "\"type\":\"sampled\",\"unit\":\"parsecs\"", "its unit \"parsecs\" is none" },
        { "\"type\":\"guessed\",\"unit\":\"seconds\"", "its type \"guessed\" is none" },
        { "\"type\":\"evented\",\"unit\":\"seconds\"", "there is no list of events" },
        { "\"type\":\"evented\",\"unit\":\"none\",\"events\":[{\"type\":\"C\",\"at\":1,"
          "\"frame\":0}]",
          "event 0: it closes a frame that is not the one opened last" },
        { "\"type\":\"evented\",\"unit\":\"none\",\"events\":[{\"type\":\"O\",\"at\":1,"
          "\"frame\":0},{\"type\":\"C\",\"at\":2,\"frame\":1}]",
          "event 1: it closes a frame that is not the one opened last" },
        { "\"type\":\"evented\",\"unit\":\"none\",\"events\":[{\"type\":\"O\",\"at\":5,"
          "\"frame\":0},{\"type\":\"C\",\"at\":4,\"frame\":0}]",
          "event 1: its time is none, or before the one before" },
        { "\"type\":\"evented\",\"unit\":\"none\",\"events\":[{\"type\":\"X\",\"at\":5,"
          "\"frame\":0}]",
          "event 0: it neither opens nor closes" },
    };
    for (size_t i = 0; i < FM_COUNT(cases); i++) {
        struct fm_error err = FM_ERROR_INIT;
        fm_autobuffer text = FM_BUFFER_INIT;
        fm_buffer_addf(&text, "{" SCHEMA "," FRAMES ",\"profiles\":[{\"name\":\"x\",%s}]}",
                       cases[i].profile);
        assert_null(fm_format_speedscope.load(text.data, text.len, "x", &err));
        if (!strstr(err.text, cases[i].sentence))
            fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].sentence);
        assert_int_equal(err.status, FM_DAMAGED);
    }
}

static void test_damaged_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        { "", "it is no JSON" },
        { "{", "it is no JSON: line 1" },
        { "[]", "there is no list of frames" },
        { "{\"shared\":{\"frames\":[]}}", "there is no list of profiles" },
        { "{\"shared\":{\"frames\":[{\"file\":\"a\"}]}}", "frame 0 has no name" },
        { "{\"shared\":{\"frames\":[]},\"profiles\":[7]}", "profile 0: its unit" },
    };
    for (size_t i = 0; i < FM_COUNT(cases); i++) {
        struct fm_error err = FM_ERROR_INIT;
        assert_null(fm_format_speedscope.load(cases[i].text, strlen(cases[i].text), "x", &err));
        if (!strstr(err.text, cases[i].sentence))
            fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].sentence);
    }
}

static void test_recognise(void **state)
{
    (void)state;
    static const char yes[] = " \n{" SCHEMA "}", no[] = "{\"traceEvents\":[]}";
    assert_true(fm_format_speedscope.recognise(yes, strlen(yes)));
    assert_false(fm_format_speedscope.recognise(no, strlen(no)));
    assert_false(fm_format_speedscope.recognise("", 0));
    assert_ptr_equal(fm_format_of_path("x.speedscope.json"), &fm_format_speedscope);
    assert_null(fm_format_of_path("x.json"));
}

/* ---- writing ---- */

/* main has 5 ns and a sample of its own, f 7 and 2; f in another thread 11 and 3. The second
 * <lambda> looks like the first. */
static struct fm_profile *sampled(void)
{
    struct fm_profile *p = fm_profile_new();
    uint32_t top = fx_node(p, fx_thread(p, 7), "main", 0, 15);
    uint32_t f = fx_node(p, top, "f", 0, 7);
    struct fm_thread thread = { .process = 0, .tid = 8, .name = fm_profile_string(p, "w\"\\\n") };
    uint32_t id = fm_profile_thread(p, &thread);
    uint32_t other = fx_node(p, p->threads.data[id].root, "f", 0, 11);
    fm_profile_add(p, FM_METRIC_SAMPLES, top, 1);
    fm_profile_add(p, FM_METRIC_SAMPLES, f, 2);
    fm_profile_add(p, FM_METRIC_SAMPLES, other, 3);
    struct fm_function lambda = p->functions.data[fx_function(p, "<lambda>")];
    fx_node(p, top, "<lambda>", 0, 1);
    uint32_t twin = fm_profile_node(p, top, fm_profile_function_distinct(p, &lambda));
    fm_profile_add(p, FM_METRIC_TOTAL, twin, 2);
    p->processes.data[0].sampled = true;
    fm_profile_fact(p, "command", "app.py --caf\xc3\xa9 \xff");
    return p;
}

/* Lines: m is 109, f 102, < is 60 (fixture.h). */
static void test_written(void **state)
{
    (void)state;
    struct fm_profile *p = sampled();
    fm_autobuffer out = FM_BUFFER_INIT;
    struct fm_error err = FM_ERROR_INIT;
    assert_int_equal(fm_format_speedscope.save(p, &out, &err), 0);
    assert_string_equal(
        out.data, "{" SCHEMA ",\n\"exporter\":\"fathom " FATHOM_VERSION "\",\n"
                  "\"name\":\"app.py --caf\xc3\xa9 \xef\xbf\xbd\",\n\"shared\":{\"frames\":["
                  "\n{\"name\":\"main\",\"file\":\"app.py\",\"line\":109},"
                  "\n{\"name\":\"f\",\"file\":\"app.py\",\"line\":102},"
                  "\n{\"name\":\"<lambda>\",\"file\":\"app.py\",\"line\":60},"
                  "\n{\"name\":\"<lambda>\",\"file\":\"app.py\",\"line\":60}]},\n\"profiles\":["
                  "{\"type\":\"sampled\",\"name\":\"Thread 7 \\\"\\\"\",\"unit\":\"nanoseconds\","
                  "\"startValue\":0,\"endValue\":15,\n\"samples\":[[0],\n[0,1],\n[0,2],\n[0,3]],"
                  "\n\"weights\":[5,7,1,2],\n\"counts\":[1,2,0,0]},"
                  "\n{\"type\":\"sampled\",\"name\":\"Thread 8 \\\"w\\\"\\\\\\u000a\\\"\","
                  "\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":11,\n\"samples\":[[1]],"
                  "\n\"weights\":[11],\n\"counts\":[3]}]}\n");
    struct fm_profile *again = load(out.data);
    assert_int_equal(again->threads.len, 2);
    assert_string_equal(fm_profile_text(again, again->threads.data[1].name), "w\"\\\n");
    uint32_t top = fx_child(again, again->threads.data[0].root, "main");
    expect(again, top, 0, 1, 15);
    expect(again, fx_child(again, top, "f"), 0, 2, 7);
    expect(again, fx_child(again, again->threads.data[1].root, "f"), 0, 3, 11);
    assert_int_equal(again->nodes.len, 7); /* two roots, the lambdas apart */
    assert_int_equal(again->lines.rows.len, 0);
    fm_autobuffer twice = FM_BUFFER_INIT;
    assert_int_equal(fm_format_speedscope.save(again, &twice, &err), 0);
    assert_string_equal(twice.data, out.data);
    fm_profile_free(again);
    fm_profile_free(p);
}

static void test_written_calls(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    uint32_t top = fx_node(p, fx_thread(p, 7), "main", 1, 100);
    fx_node(p, top, "f", 12, 60);
    fx_node(p, top, "g", 3, 40);
    fm_autobuffer out = FM_BUFFER_INIT;
    assert_int_equal(fm_format_speedscope.save(p, &out, NULL), 0);
    assert_non_null(strstr(out.data, "\"weights\":[0,60,40],\n\"calls\":[1,12,3]}"));
    struct fm_profile *again = load(out.data);
    top = fx_child(again, again->threads.data[0].root, "main");
    expect(again, top, 1, 0, 100);
    expect(again, fx_child(again, top, "f"), 12, 0, 60);
    assert_true(again->processes.data[0].calls && !again->processes.data[0].sampled);
    fm_profile_free(again);
    fm_profile_free(p);
}

static void test_nothing_to_write(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    struct fm_error err = FM_ERROR_INIT;
    fm_autobuffer out = FM_BUFFER_INIT;
    assert_int_equal(fm_format_speedscope.save(p, &out, &err), FM_UNSUPPORTED);
    fm_profile_free(p);
}

/* No prefix loads. */
static void test_cut_everywhere(void **state)
{
    (void)state;
    struct fm_profile *p = sampled();
    fm_autobuffer out = FM_BUFFER_INIT;
    fm_format_speedscope.save(p, &out, NULL);
    for (size_t cut = 0; cut + 1 < out.len; cut++) {
        struct fm_error err = FM_ERROR_INIT;
        fm_autofree char *part = fm_malloc(cut);
        memcpy(part, out.data, cut);
        assert_null(fm_format_speedscope.load(part, cut, "part", &err));
        assert_int_equal(err.status, FM_DAMAGED);
    }
    fm_profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sampled),        cmocka_unit_test(test_evented),
        cmocka_unit_test(test_pyinstrument),   cmocka_unit_test(test_not_times),
        cmocka_unit_test(test_damaged),        cmocka_unit_test(test_damaged_files),
        cmocka_unit_test(test_recognise),      cmocka_unit_test(test_written),
        cmocka_unit_test(test_written_calls),  cmocka_unit_test(test_nothing_to_write),
        cmocka_unit_test(test_cut_everywhere),
    };
    return cmocka_run_group_tests_name("speedscope", tests, NULL, NULL);
}
