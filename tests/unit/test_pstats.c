/*
 * pstats and marshal: byte strings written by hand from Python's documentation of the format, and
 * what must come out of them.
 */
#include "fixture.h"

#include "record/formats/format.h"
#include "record/formats/python/marshal.h"
#include "record/formats/python/pstats.h"

/* ---- marshal ---- */

/* The first value of the dict {VALUE: None}. */
static struct fm_marshal *first_value(const char *bytes, size_t len, struct fm_marshal_value *v,
                                      struct fm_buffer *whole, struct fm_error *err)
{
    fm_buffer_clear(whole);
    fm_buffer_add_char(whole, '{');
    fm_buffer_add(whole, bytes, len);
    fm_buffer_add_text(whole, "N0");
    struct fm_marshal *m = fm_marshal_open(whole->data, whole->len, err);
    assert_int_equal(fm_marshal_enter(m), 0);
    v->type = FM_MARSHAL_END;
    fm_marshal_next(m, v);
    return m;
}

#define FIRST(bytes) first_value(bytes, sizeof(bytes) - 1, &v, &whole, &err)
#define BEGIN                                                                                      \
    fm_autobuffer whole = FM_BUFFER_INIT;                                                          \
    struct fm_error err = FM_ERROR_INIT;                                                           \
    struct fm_marshal_value v;                                                                     \
    struct fm_marshal *m

static void numbers(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        int64_t value;
    } cases[] = {
/* clang-format off */
#define CASE(bytes, value) { bytes, sizeof(bytes) - 1, value }
        /* clang-format on */
        CASE("i\0\0\0\0", 0),
        CASE("i\xff\xff\xff\xff", -1),
        CASE("i\0\0\0\x80", INT32_MIN),
        CASE("I\1\0\0\0\1\0\0\0", 0x100000001),
        CASE("l\0\0\0\0", 0),
        CASE("l\1\0\0\0\5\0", 5),
        CASE("l\xff\xff\xff\xff\5\0", -5),
        CASE("l\3\0\0\0\0\0\0\0\1\0", 1 << 30),
        CASE("l\5\0\0\0\xff\x7f\xff\x7f\xff\x7f\xff\x7f\7\0", INT64_MAX),
        CASE("\xe9\7\0\0\0", 7), /* with FLAG_REF */
#undef CASE
    };
    for (size_t i = 0; i < FM_COUNT(cases); i++) {
        BEGIN = first_value(cases[i].bytes, cases[i].len, &v, &whole, &err);
        assert_int_equal(v.type, FM_MARSHAL_INT);
        assert_int_equal(v.integer, cases[i].value);
        fm_marshal_free(m);
    }
}

static void huge_number(void **state)
{
    (void)state;
    BEGIN = FIRST("l\5\0\0\0\0\0\0\0\0\0\0\0\x08\0"); /* 2**63 */
    assert_int_equal(v.type, FM_MARSHAL_HUGE);
    assert_true(v.real == 9223372036854775808.0);
    fm_marshal_free(m);
}

static void floats(void **state)
{
    (void)state;
    BEGIN = FIRST("g\0\0\0\0\0\0\xf8\x3f");
    assert_true(v.type == FM_MARSHAL_FLOAT && v.real == 1.5);
    fm_marshal_free(m);
    m = FIRST("f\4"
              "2.25");
    assert_true(v.type == FM_MARSHAL_FLOAT && v.real == 2.25);
    fm_marshal_free(m);
    m = FIRST("f\4"
              "2.2x");
    assert_int_equal(err.status, FM_DAMAGED);
    fm_marshal_free(m);
}

static void texts(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        const char *text;
    } cases[] = {
/* clang-format off */
#define CASE(bytes, text) { bytes, sizeof(bytes) - 1, text }
        /* clang-format on */
        CASE("z\2ab", "ab"),
        CASE("Z\2ab", "ab"),
        CASE("a\2\0\0\0ab", "ab"),
        CASE("A\1\0\0\0\xe9", "\xc3\xa9"), /* Latin-1 */
        CASE("u\3\0\0\0a\xc3\xa9", "a\xc3\xa9"),
        CASE("u\3\0\0\0\xed\xb2\x80", "\xed\xb2\x80"), /* a lone surrogate */
        CASE("t\1\0\0\0x", "x"),
        CASE("s\1\0\0\0\xff", "\xc3\xbf"), /* bytes of Python 2 that are no UTF-8 */
        CASE("\xfa\0", ""),
#undef CASE
    };
    for (size_t i = 0; i < FM_COUNT(cases); i++) {
        BEGIN = first_value(cases[i].bytes, cases[i].len, &v, &whole, &err);
        assert_int_equal(v.type, FM_MARSHAL_TEXT);
        assert_true(fm_marshal_text_is(m, &v, cases[i].text));
        fm_marshal_free(m);
    }
}

static void references(void **state)
{
    (void)state;
    /* (x, (x,)) where x is referable: the tuple takes number 0, x number 1. */
    BEGIN = FIRST("\xa9\2\xfa\1x)\1r\1\0\0\0");
    const struct fm_marshal_value *items = fm_marshal_items(m, &v);
    assert_int_equal(v.count, 2);
    assert_true(fm_marshal_text_is(m, &items[0], "x"));
    assert_true(fm_marshal_text_is(m, fm_marshal_items(m, &items[1]), "x"));
    fm_marshal_free(m);
}

/* Each of these must be refused, with a sentence. */
static void refusals(void **state)
{
    (void)state;
#define CASE(bytes)                                                                                \
    {                                                                                              \
        bytes, sizeof(bytes) - 1                                                                   \
    }
    static const struct {
        const char *bytes;
        size_t len;
    } cases[] = {
        CASE("z\xff"
             "abc"),               /* longer than the file */
        CASE("u\xff\xff\xff\xff"), /* a negative length */
        CASE("u\xff\xff\xff\x7f"), /* two gigabytes */
        CASE("(\xff\xff\xff\x7f"), /* two billion items */
        CASE("(\xff\xff\xff\xff"),
        CASE("u\1\0\0\0\xff"),     /* no UTF-8 */
        CASE("u\2\0\0\0\xc0\x80"), /* an overlong form */
        CASE("r\0\0\0\0"),         /* a reference to nothing */
        CASE("r\xff\xff\xff\xff"),
        CASE("\xa9\1r\0\0\0\0"),   /* a tuple of itself */
        CASE("l\1\0\0\0\xff\xff"), /* a digit of 16 bits */
        CASE("l\0\0\0\x80"),       /* two billion digits */
        CASE("?"),
        CASE(")\1"
             "0"),   /* an end mark inside a tuple */
        CASE("{N0"), /* a key without a value */
        CASE("c"),
    };
#undef CASE
    for (size_t i = 0; i < FM_COUNT(cases); i++) {
        BEGIN = first_value(cases[i].bytes, cases[i].len, &v, &whole, &err);
        assert_int_equal(err.status, FM_DAMAGED);
        assert_non_null(strstr(err.text, "byte "));
        fm_marshal_free(m);
    }
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    static const int64_t values[] = { 0,         1,         -1,           INT32_MAX,
                                      INT32_MIN, 1LL << 31, -(1LL << 40), INT64_MAX,
                                      32767,     32768,     1LL << 45 };
    for (size_t i = 0; i < FM_COUNT(values); i++) {
        fm_autobuffer out = FM_BUFFER_INIT;
        fm_marshal_put_int(&out, values[i]);
        BEGIN = first_value(out.data, out.len, &v, &whole, &err);
        assert_int_equal(v.type, FM_MARSHAL_INT);
        assert_int_equal(v.integer, values[i]);
        fm_marshal_free(m);
    }
}

/* ---- pstats ---- */

static struct fm_profile *load(const char *bytes, size_t len, struct fm_error *err)
{
    assert_true(fm_format_pstats.recognise(bytes, len));
    return fm_format_pstats.load(bytes, len, "x.prof", err);
}

/* {("a", 7, "f"): (2, 5, 0.5, 1.5, {("~", 0, "<b>"): (5, 2, 0.5, 1.5)})} */
#define KEY_F          ")\3z\1ai\7\0\0\0z\1f"
#define KEY_B          ")\3z\1~i\0\0\0\0z\3<b>"
#define HALF           "g\0\0\0\0\0\0\xe0\x3f"
#define ONE_AND_A_HALF "g\0\0\0\0\0\0\xf8\x3f"
static const char one[] = "{" KEY_F ")\5i\2\0\0\0i\5\0\0\0" HALF ONE_AND_A_HALF "{" KEY_B
                          ")\4i\5\0\0\0i\2\0\0\0" HALF ONE_AND_A_HALF "00";

static void one_function(void **state)
{
    (void)state;
    struct fm_error err = FM_ERROR_INIT;
    struct fm_profile *p = load(one, sizeof one - 1, &err);
    assert_non_null(p);
    assert_int_equal(p->flat->rows.len, 2); /* the caller has no entry: a row of zeros */
    const struct fm_flat_row *row = &p->flat->rows.data[0];
    assert_int_equal(row->primitive, 2);
    assert_int_equal(row->calls, 5);
    assert_int_equal(row->self_ns, 500000000);
    assert_int_equal(row->total_ns, 1500000000);
    const struct fm_function *f = &p->functions.data[row->func];
    assert_string_equal(fm_profile_text(p, f->name), "f");
    assert_string_equal(fm_profile_text(p, f->file), "a");
    assert_int_equal(f->line, 7);
    const struct fm_function *b = &p->functions.data[p->flat->rows.data[1].func];
    assert_int_equal(b->kind, FM_FUNCTION_C);
    assert_string_equal(fm_profile_text(p, b->file), "");
    const struct fm_flat_edge *edge = &p->flat->edges.data[0];
    assert_int_equal(p->flat->edges.len, 1);
    assert_int_equal(edge->caller, 1);
    assert_int_equal(edge->callee, 0);
    assert_int_equal(edge->calls, 5);
    assert_int_equal(edge->primitive, 2);
    fm_profile_free(p);
}

/* Python shares equal values by references, wherever it likes: here the key, the value, the callers
 * and the numbers of a caller of the first entry come again in the second and third.
 *
 * x = (2, 5, 0.5, 1.5, c); c = {("~", 0, "<b>"): n, f: n}; n = (5, 2, 0.5, 1.5);
 * {f: x, g: x, ("~", 0, "<b>"): (2, 5, 0.5, 1.5, c)}, f = ("a", 7, "f"), g = ("a", 7, "<b>") */
static const char shared[] =
    "{\xa9\3\xfa\1a\xe9\7\0\0\0\xfa\1f"                      /* 0: f, 1: "a", 2: 7, 3: "f" */
    "\xa9\5\xe9\2\0\0\0\xe9\5\0\0\0\xe7\0\0\0\0\0\0\xe0\x3f" /* 4: x, 5: 2, 6: 5, 7: 0.5 */
    ONE_AND_A_HALF "\xfb"                                    /* 8: c */
    "\xa9\3\xfa\1~i\0\0\0\0\xfa\3<b>"                  /* 9: the builtin, 10: "~", 11: "<b>" */
    "\xa9\4r\6\0\0\0r\5\0\0\0r\7\0\0\0" ONE_AND_A_HALF /* 12: n */
    "r\0\0\0\0r\x0c\0\0\0"
    "0"
    ")\3r\1\0\0\0r\2\0\0\0r\x0b\0\0\0r\4\0\0\0"
    "r\x09\0\0\0)\5r\5\0\0\0r\6\0\0\0r\7\0\0\0" ONE_AND_A_HALF "r\x08\0\0\0"
    "0";

static void shared_values(void **state)
{
    (void)state;
    static const char *const names[] = { "f", "<b>", "<b>" };
    struct fm_error err = FM_ERROR_INIT;
    struct fm_profile *p = load(shared, sizeof shared - 1, &err);
    assert_string_equal(err.text, "");
    assert_non_null(p);
    assert_int_equal(p->flat->rows.len, 3);
    assert_int_equal(p->flat->edges.len, 6);
    for (uint32_t i = 0; i < 3; i++) {
        const struct fm_flat_row *row = &p->flat->rows.data[i];
        assert_string_equal(fm_profile_text(p, p->functions.data[row->func].name), names[i]);
        assert_int_equal(p->functions.data[row->func].line, i < 2 ? 7 : 0);
        assert_int_equal(row->primitive, 2);
        assert_int_equal(row->calls, 5);
        assert_int_equal(row->self_ns, 500000000);
        assert_int_equal(row->total_ns, 1500000000);
        for (uint32_t j = 0; j < 2; j++) {
            const struct fm_flat_edge *edge = &p->flat->edges.data[2 * i + j];
            assert_int_equal(edge->callee, i);
            assert_int_equal(edge->caller, j ? 2 : 0);
            assert_int_equal(edge->calls, 5);
            assert_int_equal(edge->primitive, 2);
            assert_int_equal(edge->total_ns, 1500000000);
        }
    }
    fm_profile_free(p);
}

/* Whatever the length, a cut-off file is refused and nothing leaks. */
static void cut_off(void **state)
{
    (void)state;
    for (size_t len = 2; len < sizeof one - 1; len++) {
        struct fm_error err = FM_ERROR_INIT;
        char *copy = fm_malloc(len); /* so that a sanitizer sees a read past the end */
        memcpy(copy, one, len);
        assert_null(load(copy, len, &err));
        assert_int_equal(err.status, FM_DAMAGED);
        free(copy);
    }
}

static void twins_share_a_label(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    uint32_t root = fx_thread(p, 1);
    struct fm_function f = { .line = 3,
                             .name = fm_profile_string(p, "<lambda>"),
                             .file = fm_profile_string(p, "a.py") };
    f.qualname = f.name;
    for (int i = 1; i <= 2; i++) {
        uint32_t node = fm_profile_node(p, root, fm_profile_function_distinct(p, &f));
        fm_profile_add(p, FM_METRIC_CALLS, node, i);
        fm_profile_add(p, FM_METRIC_TOTAL, node, i * 10);
    }
    struct fm_flat *flat = fm_flat_new(p, NULL), *combined = fm_pstats_combine(p, flat);
    assert_int_equal(flat->rows.len, 2);
    assert_non_null(combined);
    assert_int_equal(combined->rows.len, 1);
    assert_int_equal(combined->rows.data[0].calls, 3);
    assert_int_equal(combined->rows.data[0].self_ns, 30);
    assert_null(fm_pstats_combine(p, combined)); /* nothing left to do */
    fm_flat_free(flat);
    fm_flat_free(combined);
    fm_profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(huge_number),
        cmocka_unit_test(floats),
        cmocka_unit_test(texts),
        cmocka_unit_test(references),
        cmocka_unit_test(refusals),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(one_function),
        cmocka_unit_test(shared_values),
        cmocka_unit_test(cut_off),
        cmocka_unit_test(twins_share_a_label),
    };
    return cmocka_run_group_tests_name("pstats", tests, NULL, NULL);
}
