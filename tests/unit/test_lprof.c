/* .lprof and the pickles it is made of: known bytes, hostile bytes, what is written is read. */
#include "fixture.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "record/formats/format.h"
#include "record/formats/python/pickle.h"

static const char *const one_class[] = { "m.C", NULL };

#define BYTES(text) text, sizeof(text) - 1

/* The value of a pickle; `*p` must be freed. */
static const struct fm_pickle_value *value_of(const char *bytes, size_t len, struct fm_pickle **p)
{
    struct fm_error err = FM_ERROR_INIT;
    *p = fm_pickle_open(bytes, len, one_class, &err);
    if (!*p)
        fail_msg("%s", err.text);
    return fm_pickle_root(*p);
}

static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        int64_t value;
    } cases[] = {
        { BYTES("K\x7."), 7 },
        { BYTES("M\x34\x12."), 0x1234 },
        { BYTES("J\xff\xff\xff\xff."), -1 },
        { BYTES("J\x0\x0\x0\x80."), INT32_MIN },
        { BYTES("\x8a\x0."), 0 },
        { BYTES("\x8a\x1\xff."), -1 },
        { BYTES("\x8a\x2\xff\x0."), 255 },
        { BYTES("\x8a\x8\x0\x0\x0\x0\x0\x0\x0\x80."), INT64_MIN },
        { BYTES("\x8b\x2\x0\x0\x0\xff\x0."), 255 },
        { BYTES("I-12\n."), -12 },
        { BYTES("L9223372036854775807L\n."), INT64_MAX },
        { BYTES("\x80\x4\x95\x5\x0\x0\x0\x0\x0\x0\x0K\x1."), 1 },
        { BYTES("K\x1K\x2"
                "0."),
          1 }, /* pop */
        { BYTES("K\x1q\x5"
                "0K\x2h\x5."),
          1 }, /* put, get */
        { BYTES("K\x1p300\n0K\x2g300\n."), 1 },
        { BYTES("K\x1\x94K\x2\x94h\x0."), 1 }, /* memoized as 0 and 1 */
    };
    for (size_t i = 0; i < FM_COUNT(cases); i++) {
        struct fm_pickle *p;
        const struct fm_pickle_value *v = value_of(cases[i].bytes, cases[i].len, &p);
        assert_int_equal(v->type, FM_PICKLE_INT);
        assert_true(v->integer == cases[i].value);
        fm_pickle_free(p);
    }
}

static void test_floats_and_constants(void **state)
{
    (void)state;
    struct fm_pickle *p;
    assert_true(value_of(BYTES("G\x3f\xf8\x0\x0\x0\x0\x0\x0."), &p)->real == 1.5);
    fm_pickle_free(p);
    assert_true(value_of(BYTES("F1e-06\n."), &p)->real == 1e-6);
    fm_pickle_free(p);
    assert_int_equal(value_of(BYTES("N."), &p)->type, FM_PICKLE_NONE);
    fm_pickle_free(p);
    assert_int_equal(value_of(BYTES("I01\n."), &p)->type, FM_PICKLE_BOOL);
    assert_int_equal(fm_pickle_root(p)->integer, 1);
    fm_pickle_free(p);
    assert_int_equal(value_of(BYTES("\x89."), &p)->integer, 0);
    fm_pickle_free(p);
}

static void test_texts(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        const char *text;
    } cases[] = {
        { BYTES("\x8c\x2\xc3\xa9."), "\xc3\xa9" },
        { BYTES("X\x1\x0\x0\x0z."), "z" },
        { BYTES("\x8d\x1\x0\x0\x0\x0\x0\x0\x0z."), "z" },
        { BYTES("U\x1z."), "z" },
        { BYTES("T\x1\x0\x0\x0z."), "z" },
        { BYTES("Va\\u20acb\\U0001f600\xe9\n."), "a\xe2\x82\xac"
                                                 "b\xf0\x9f\x98\x80\xc3\xa9" },
        { BYTES("S'a\\n\\x41\\\\'\n."), "a\nA\\" },
        { BYTES("S\"it's\"\n."), "it's" },
    };
    for (size_t i = 0; i < FM_COUNT(cases); i++) {
        struct fm_pickle *p;
        const struct fm_pickle_value *v = value_of(cases[i].bytes, cases[i].len, &p);
        assert_int_equal(v->type, FM_PICKLE_TEXT);
        assert_int_equal(v->bytes, strlen(cases[i].text));
        assert_memory_equal(v->text, cases[i].text, v->bytes);
        fm_pickle_free(p);
    }
}

static void test_containers(void **state)
{
    (void)state;
    struct fm_pickle *p;
    size_t n;
    /* {"a": [1, 2, 3], "b": ((), (1,), ())}, filled in several goes */
    const struct fm_pickle_value *v = value_of(BYTES("}(U\1a](K\1K\2eK\3aU\1b)K\1\x85)\x87u."), &p);
    assert_int_equal(v->type, FM_PICKLE_DICT);
    const struct fm_pickle_value *items = fm_pickle_items(p, fm_pickle_find(p, v, "a"), &n);
    assert_int_equal(n, 3);
    assert_int_equal(items[2].integer, 3);
    assert_null(fm_pickle_find(p, v, "c"));
    fm_pickle_free(p);
    /* a list that contains itself */
    v = value_of(BYTES("]q\0h\0a."), &p);
    items = fm_pickle_items(p, v, &n);
    assert_int_equal(n, 1);
    assert_int_equal(items[0].type, FM_PICKLE_LIST);
    fm_pickle_free(p);
}

static void test_objects(void **state)
{
    (void)state;
    static const char newobj[] = "cm\nC\n)\x81}U\1aK\2sb.";
    static const char stack[] = "\x80\4\x8c\1m\x8c\1C\x93)\x81}U\1aK\2sb.";
    static const char again[] =
        "ccopy_reg\n_reconstructor\n(cm\nC\nc__builtin__\nobject\nNtR}U\1aK\2sb.";
    const char *const all[] = { newobj, stack, again };
    const size_t lens[] = { sizeof newobj - 1, sizeof stack - 1, sizeof again - 1 };
    for (size_t i = 0; i < FM_COUNT(all); i++) {
        struct fm_pickle *p;
        size_t n;
        const struct fm_pickle_value *v = value_of(all[i], lens[i], &p);
        assert_int_equal(v->type, FM_PICKLE_OBJECT);
        const struct fm_pickle_value *items = fm_pickle_items(p, v, &n);
        assert_int_equal(n, 2);
        assert_int_equal(fm_pickle_find(p, &items[1], "a")->integer, 2);
        fm_pickle_free(p);
    }
}

static void refused(const char *bytes, size_t len, int status, const char *sentence)
{
    struct fm_error err = FM_ERROR_INIT;
    struct fm_pickle *p = fm_pickle_open(bytes, len, one_class, &err);
    assert_null(p);
    assert_int_equal(err.status, status);
    if (!strstr(err.text, sentence))
        fail_msg("\"%s\" does not say \"%s\"", err.text, sentence);
    assert_null(strchr(err.text, '\n'));
}

/* Whatever a pickle could call is refused by its name, before anything happens. */
static void test_hostile(void **state)
{
    (void)state;
    char folder[] = "/tmp/fathom-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    fm_autobuffer b = FM_BUFFER_INIT;
    fm_buffer_addf(&b, "cposix\nsystem\n(S'touch %s/mark'\ntR.", folder);
    refused(b.data, b.len, FM_NOT_RECORDING, "asks for posix.system, which no profile needs");
    refused(BYTES("\x80\4\x8c\2os\x8c\6system\x93\x8c\1x\x85R."), FM_NOT_RECORDING, "os.system");
    refused(BYTES("c__builtin__\neval\n(S'1'\ntR."), FM_NOT_RECORDING, "__builtin__.eval");
    refused(BYTES("cos\nsystem\n)\x81."), FM_NOT_RECORDING, "os.system");
    refused(BYTES("\x8c\3m\nC\x8c\1\x1b\x93)R."), FM_NOT_RECORDING, "m?C.?");
    /* The class is right, but what makes it is not, or what is made is not. */
    refused(BYTES("ccopy_reg\n_reconstructor\n(cos\nC\nc__builtin__\nobject\nNtR."),
            FM_NOT_RECORDING, "copy_reg._reconstructor");
    refused(BYTES("(S'x'\nios\nsystem\n."), FM_NOT_RECORDING, "instruction (0x69)");  /* INST */
    refused(BYTES("(cos\nsystem\nS'x'\no."), FM_NOT_RECORDING, "instruction (0x6f)"); /* OBJ */
    refused(BYTES("cm\nC\n)}\x92."), FM_NOT_RECORDING, "instruction (0x92)"); /* NEWOBJ_EX */
    refused(BYTES("\x82\1."), FM_NOT_RECORDING, "instruction (0x82)");        /* EXT1 */
    refused(BYTES("Pid\n."), FM_NOT_RECORDING, "instruction (0x50)");         /* PERSID */
    refused(BYTES("cm\nC\n}b."), FM_DAMAGED, "no object"); /* a state for a class */
    refused(BYTES("K\1)R."), FM_DAMAGED, "no class");
    refused(BYTES("\x80\6."), FM_NEWER, "protocol 6");
    assert_int_equal(rmdir(folder), 0); /* empty: nothing was run */
}

static void test_damaged(void **state)
{
    (void)state;
    refused(BYTES(""), FM_DAMAGED, "ends early");
    refused(BYTES("."), FM_DAMAGED, "a value is missing");
    refused(BYTES("(."), FM_DAMAGED, "a value is missing");
    refused(BYTES("K\1(."), FM_DAMAGED, "a value is missing"); /* not past a mark */
    refused(BYTES("K\1t."), FM_DAMAGED, "a mark is missing");
    refused(BYTES("](K\1s."), FM_DAMAGED, "a value is missing");
    refused(BYTES("}K\1a."), FM_DAMAGED, "no list or dict");
    refused(BYTES("}(K\1u."), FM_DAMAGED, "a key without a value");
    refused(BYTES("h\1."), FM_DAMAGED, "before it is there");
    refused(BYTES("gx\n."), FM_DAMAGED, "none");
    refused(BYTES("\x8a\xff."), FM_DAMAGED, "64 bits");
    refused(BYTES("I99999999999999999999\n."), FM_DAMAGED, "64 bits");
    refused(BYTES("I\n."), FM_DAMAGED, "none");
    refused(BYTES("X\xff\xff\xff\xffz."), FM_DAMAGED, "ends early");
    refused(BYTES("\x8d\xff\xff\xff\xff\xff\xff\xff\xffz."), FM_DAMAGED, "ends early");
    refused(BYTES("S'x\n."), FM_DAMAGED, "quotes");
    refused(BYTES("V\\u12\n."), FM_DAMAGED, "escape");
    refused(BYTES("Vx"), FM_DAMAGED, "middle of a line");
}

/* ---- .lprof ---- */

/* Two functions, one never called; by hand, after pickletools' listing of a file of version 4. */
static const char sample[] =
    "\x80\4\x8c\x1cline_profiler._line_profiler\x94\x8c\x09LineStats\x94\x93\x94)\x81\x94}\x94("
    "\x8c\7timings\x94}\x94("
    "\x8c\4a.py\x94K\6\x8c\3A.f\x94\x87\x94](K\10K\1M\xe7\3\x87\x94K\x09M\x2d\1J\xff\x99\0\0\x87"
    "e"
    "h\7K\x0c\x8c\1g\x87]u"
    "\x8c\4unitG>\x11.\x0b\xe8&\xd6\x95ub."; /* 1e-9 */

static struct fm_profile *load(const void *bytes, size_t len)
{
    struct fm_error err = FM_ERROR_INIT;
    assert_true(fm_format_lprof.recognise(bytes, len));
    struct fm_profile *p = fm_format_lprof.load(bytes, len, "x", &err);
    if (!p)
        fail_msg("%s", err.text);
    return p;
}

static void expect_sample(const struct fm_profile *p)
{
    assert_int_equal(p->functions.len, 2);
    const struct fm_function *f = &p->functions.data[0], *g = &p->functions.data[1];
    assert_string_equal(fm_profile_text(p, f->file), "a.py");
    assert_string_equal(fm_profile_text(p, f->name), "f");
    assert_string_equal(fm_profile_text(p, f->qualname), "A.f");
    assert_int_equal(f->line, 6);
    assert_string_equal(fm_profile_text(p, g->name), "g");
    assert_string_equal(fm_profile_text(p, g->file), "a.py");
    assert_int_equal(g->line, 12);
    assert_int_equal(p->lines.marked.len, 2);
    assert_int_equal(p->lines.rows.len, 2);
    assert_int_equal(p->lines.rows.data[0].process, FM_NONE);
    assert_int_equal(p->lines.rows.data[0].line, 8);
    assert_int_equal(p->lines.rows.data[0].hits, 1);
    assert_int_equal(p->lines.rows.data[0].total_ns, 999);
    assert_int_equal(p->lines.rows.data[1].line, 9);
    assert_int_equal(p->lines.rows.data[1].hits, 301);
    assert_int_equal(p->lines.rows.data[1].total_ns, 39423);
    assert_int_equal(p->lines.rows.data[1].self_ns, 0);
    assert_true(p->lines.unit_s == 1e-9);
}

static void test_sample(void **state)
{
    (void)state;
    struct fm_profile *p = load(BYTES(sample));
    expect_sample(p);
    fm_autobuffer out = FM_BUFFER_INIT;
    assert_int_equal(fm_format_lprof.save(p, &out, NULL), 0);
    struct fm_profile *again = load(out.data, out.len);
    expect_sample(again);
    fm_profile_free(again);
    fm_profile_free(p);
}

static void test_cut_everywhere(void **state)
{
    (void)state;
    for (size_t cut = 0; cut < sizeof sample - 1; cut++) {
        struct fm_error err = FM_ERROR_INIT;
        fm_autofree char *part = fm_malloc(cut);
        memcpy(part, sample, cut);
        assert_null(fm_format_lprof.load(part, cut, "part", &err));
        assert_int_equal(err.status, FM_DAMAGED);
        assert_true(strncmp(err.text, "reading part: ", 14) == 0);
    }
}

/* Protocol 2, `timings` and `unit` as given. */
static void stats(struct fm_buffer *b, const char *timings, size_t timings_len, const char *unit,
                  size_t unit_len)
{
    fm_buffer_clear(b);
    fm_buffer_add_text(b, "\x80\2cline_profiler.line_profiler\nLineStats\n)\x81}(U\7timings");
    fm_buffer_add(b, timings, timings_len);
    fm_buffer_add_text(b, "U\4unit");
    fm_buffer_add(b, unit, unit_len);
    fm_buffer_add_text(b, "ub.");
}

#define KEY "U\4a.pyK\1U\1f\x87"

static void test_units(void **state)
{
    (void)state;
    fm_autobuffer b = FM_BUFFER_INIT;
    static const struct {
        const char *unit;
        int64_t ns;
    } cases[] = { { "F1e-06\n", 7000 }, { "F1e-09\n", 7 },        { "F2.5e-07\n", 1750 },
                  { "F1e-10\n", 1 },    { "I1\n", 7000000000ll }, { "F3.3e-08\n", 231 } };
    for (size_t i = 0; i < FM_COUNT(cases); i++) {
        stats(&b,
              BYTES("}" KEY "](K\2K\3K\7\x87"
                    "es"),
              cases[i].unit, strlen(cases[i].unit));
        struct fm_profile *p = load(b.data, b.len);
        assert_int_equal(p->lines.rows.data[0].total_ns, cases[i].ns);
        fm_profile_free(p);
    }
    /* Beyond what a double can hold: exact. 2^62 + 1 */
    stats(&b,
          BYTES("}" KEY "](K\2K\3\x8a\10\1\0\0\0\0\0\0\x40\x87"
                "es"),
          BYTES("F1e-09\n"));
    struct fm_profile *p = load(b.data, b.len);
    assert_true(p->lines.rows.data[0].total_ns == (1ll << 62) + 1);
    fm_profile_free(p);
}

static void test_wrong_types(void **state)
{
    (void)state;
    fm_autobuffer b = FM_BUFFER_INIT;
    static const struct {
        const char *timings;
        size_t len;
        const char *unit, *sentence;
    } cases[] = {
        { BYTES("]"), "F1e-06\n", "without timings or unit" },
        { BYTES("}"), "N", "the timer unit is none" },
        { BYTES("}"), "F0\n", "the timer unit is none" },
        { BYTES("}"), "Fnan\n", "the timer unit is none" },
        { BYTES("}"), "F-1e-6\n", "the timer unit is none" },
        { BYTES("}K\1]s"), "F1e-06\n", "function 1: a key is not (file, first line, function)" },
        { BYTES("}U\4a.pyK\1\x86]s"), "F1e-06\n", "a key is not" },
        { BYTES("}U\4a.pyNU\1f\x87]s"), "F1e-06\n", "a key is not" },
        { BYTES("}U\4a.pyI-1\nU\1f\x87]s"), "F1e-06\n", "a key is not" },
        { BYTES("}" KEY "Ns"), "F1e-06\n", "lines are no list" },
        { BYTES("}" KEY "]Nas"), "F1e-06\n", "entry 1: a line is not (line, hits, time)" },
        { BYTES("}" KEY "]K\1K\2\x86"
                "as"),
          "F1e-06\n", "a line is not" },
        { BYTES("}" KEY "]NK\2K\3\x87"
                "as"),
          "F1e-06\n", "a line number is none" },
        { BYTES("}" KEY "]K\5NK\3\x87"
                "as"),
          "F1e-06\n", "line 5: a number of hits is none" },
        { BYTES("}" KEY "]K\5I-1\nK\3\x87"
                "as"),
          "F1e-06\n", "line 5: a number of hits is none" },
        { BYTES("}" KEY "]K\5K\2N\x87"
                "as"),
          "F1e-06\n", "line 5: a time is none" },
        { BYTES("}" KEY "]K\5K\2Finf\n\x87"
                "as"),
          "F1e-06\n", "line 5: a time is none" },
        { BYTES("}" KEY "]s" KEY "]s"), "F1e-06\n", "function 2: the function comes twice" },
        /* One list of lines for function after function: more than the file can hold. */
        { BYTES("}(" KEY "](K\1K\1K\1\x87q\1h\1h\1h\1h\1h\1h\1h\1h\1h\1h\1h\1h\1h\1h\1h\1h\1h\1eq\2"
                "U\1bK\1U\1f\x87h\2U\1cK\1U\1f\x87h\2U\1dK\1U\1f\x87h\2U\1eK\1U\1f\x87h\2"
                "U\1fK\1U\1f\x87h\2U\1gK\1U\1f\x87h\2U\1hK\1U\1f\x87h\2U\1iK\1U\1f\x87h\2"
                "U\1jK\1U\1f\x87h\2U\1kK\1U\1f\x87h\2U\1lK\1U\1f\x87h\2U\1mK\1U\1f\x87h\2"
                "U\1nK\1U\1f\x87h\2U\1oK\1U\1f\x87h\2U\1pK\1U\1f\x87h\2U\1qK\1U\1f\x87h\2"
                "U\1rK\1U\1f\x87h\2U\1sK\1U\1f\x87h\2U\1tK\1U\1f\x87h\2U\1uK\1U\1f\x87h\2"
                "U\1vK\1U\1f\x87h\2U\1wK\1U\1f\x87h\2U\1xK\1U\1f\x87h\2U\1yK\1U\1f\x87h\2u"),
          "F1e-06\n", "more lines than the file can hold" },
    };
    for (size_t i = 0; i < FM_COUNT(cases); i++) {
        struct fm_error err = FM_ERROR_INIT;
        stats(&b, cases[i].timings, cases[i].len, cases[i].unit, strlen(cases[i].unit));
        assert_null(fm_format_lprof.load(b.data, b.len, "x", &err));
        if (!strstr(err.text, cases[i].sentence))
            fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].sentence);
        assert_int_equal(err.status, FM_DAMAGED);
    }
}

/* Lines of two processes and of two functions of the same name are added up under one key. */
static void test_saved_sums(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    struct fm_function f = { .line = 5,
                             .name = fm_profile_string(p, "<lambda>"),
                             .qualname = fm_profile_string(p, "f.<locals>.<lambda>"),
                             .file = fm_profile_string(p, "bad\xff.py") };
    uint32_t one = fm_profile_function(p, &f), two = fm_profile_function_distinct(p, &f);
    for (uint32_t i = 0; i < 4; i++) {
        struct fm_line *row = fm_lines_add(&p->lines, i / 2, i % 2 ? two : one, 5, false);
        row->hits = 1 + i;
        row->total_ns = 5000000000ll;
    }
    fm_lines_sort(&p->lines);
    fm_autobuffer out = FM_BUFFER_INIT;
    assert_int_equal(fm_format_lprof.save(p, &out, NULL), 0);
    struct fm_profile *again = load(out.data, out.len);
    assert_int_equal(again->functions.len, 1);
    assert_string_equal(fm_profile_text(again, again->functions.data[0].file),
                        "bad\xed\xb3\xbf.py");
    assert_string_equal(fm_profile_text(again, again->functions.data[0].qualname),
                        "f.<locals>.<lambda>");
    assert_int_equal(again->lines.rows.len, 1);
    assert_int_equal(again->lines.rows.data[0].hits, 10);
    assert_true(again->lines.rows.data[0].total_ns == 20000000000ll);
    fm_profile_free(again);
    fm_profile_free(p);
}

static void test_no_lines(void **state)
{
    (void)state;
    struct fm_error err = FM_ERROR_INIT;
    struct fm_profile *p = fm_profile_new();
    fm_autobuffer out = FM_BUFFER_INIT;
    fx_node(p, fx_thread(p, 7), "f", 1, 10);
    assert_int_equal(fm_format_lprof.save(p, &out, &err), FM_UNSUPPORTED);
    assert_int_equal(out.len, 0);
    fm_profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),        cmocka_unit_test(test_floats_and_constants),
        cmocka_unit_test(test_texts),          cmocka_unit_test(test_containers),
        cmocka_unit_test(test_objects),        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_damaged),        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_cut_everywhere), cmocka_unit_test(test_units),
        cmocka_unit_test(test_wrong_types),    cmocka_unit_test(test_saved_sums),
        cmocka_unit_test(test_no_lines),
    };
    return cmocka_run_group_tests_name("lprof", tests, NULL, NULL);
}
