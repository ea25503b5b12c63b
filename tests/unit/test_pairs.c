/* Functions of two profiles, found again. */
#include "fixture.h"

#include "record/model/derive/pairs.h"

static uint32_t put(struct fm_profile *p, const char *name, const char *file, uint32_t line)
{
    uint32_t text = fm_profile_string(p, name);
    return fm_profile_function(p, &(struct fm_function){ .kind = FM_FUNCTION_PYTHON,
                                                         .name = text,
                                                         .qualname = text,
                                                         .file = fm_profile_string(p, file),
                                                         .line = line });
}

struct both {
    struct fm_profile *p[2];
    struct fm_pairs pairs;
};

static void begin(struct both *b)
{
    b->p[0] = fm_profile_new();
    b->p[1] = fm_profile_new();
}

static void match(struct both *b)
{
    const struct fm_profile *const p[] = { b->p[0], b->p[1] };
    fm_pairs_init(&b->pairs, p);
}

static bool is_pair(const struct both *b, uint32_t first, uint32_t second)
{
    return b->pairs.of[0][first] == b->pairs.of[1][second];
}

static void end(struct both *b)
{
    fm_pairs_release(&b->pairs);
    fm_profile_free(b->p[0]);
    fm_profile_free(b->p[1]);
}

static void test_lines_do_not_matter_but_their_order_does(void **state)
{
    (void)state;
    struct both b;
    begin(&b);
    uint32_t f = put(b.p[0], "f", "/a.py", 10), one = put(b.p[0], "<lambda>", "/a.py", 20);
    uint32_t two = put(b.p[0], "<lambda>", "/a.py", 30);
    uint32_t later = put(b.p[1], "<lambda>", "/a.py", 75),
             early = put(b.p[1], "<lambda>", "/a.py", 70);
    uint32_t g = put(b.p[1], "f", "/a.py", 5), h = put(b.p[1], "h", "/a.py", 10);
    match(&b);
    assert_true(is_pair(&b, f, g));
    assert_true(is_pair(&b, one, early));
    assert_true(is_pair(&b, two, later));
    assert_int_equal(b.pairs.count, 4);
    assert_int_not_equal(b.pairs.of[1][h], b.pairs.of[1][g]);
    end(&b);
}

/* What ends most alike; where two are as alike nothing is guessed. */
static void test_other_folders(void **state)
{
    (void)state;
    struct both b;
    begin(&b);
    uint32_t app = put(b.p[0], "f", "/old/app.py", 1);
    uint32_t init = put(b.p[0], "f", "/v1/site-packages/x/__init__.py", 1);
    uint32_t other = put(b.p[0], "f", "/v1/site-packages/y/__init__.py", 1);
    uint32_t here = put(b.p[0], "f", "/lib/same.py", 1), unsure = put(b.p[0], "f", "/one/u.py", 1);
    uint32_t app2 = put(b.p[1], "f", "/new/app.py", 4);
    uint32_t other2 = put(b.p[1], "f", "/v2/site-packages/y/__init__.py", 1);
    uint32_t init2 = put(b.p[1], "f", "/v2/site-packages/x/__init__.py", 1);
    uint32_t here2 = put(b.p[1], "f", "/lib/same.py", 1),
             copy = put(b.p[1], "f", "/copy/same.py", 1);
    uint32_t unsure2 = put(b.p[1], "f", "/two/u.py", 1),
             unsure3 = put(b.p[1], "f", "/three/u.py", 1);
    match(&b);
    assert_true(is_pair(&b, app, app2));
    assert_true(is_pair(&b, init, init2));
    assert_true(is_pair(&b, other, other2));
    assert_true(is_pair(&b, here, here2));
    assert_false(is_pair(&b, here, copy));
    assert_false(is_pair(&b, unsure, unsure2));
    assert_false(is_pair(&b, unsure, unsure3));
    end(&b);
}

/* memray has the names of scripts as they were typed. */
static void test_relative_files(void **state)
{
    (void)state;
    struct both b;
    begin(&b);
    uint32_t app = put(b.p[0], "f", "app.py", 1), deep = put(b.p[0], "f", "./x/deep.py", 1);
    uint32_t made = put(b.p[0], "f", "<string>", 1), unsure = put(b.p[0], "f", "u.py", 1);
    uint32_t app2 = put(b.p[1], "f", "/srv/app.py", 1),
             deep2 = put(b.p[1], "f", "/srv/x/deep.py", 1);
    uint32_t other = put(b.p[1], "f", "/srv/y/deep.py", 1),
             made2 = put(b.p[1], "f", "/<string>", 1);
    uint32_t unsure2 = put(b.p[1], "f", "/one/u.py", 1), unsure3 = put(b.p[1], "f", "/two/u.py", 1);
    match(&b);
    assert_true(is_pair(&b, app, app2));
    assert_true(is_pair(&b, deep, deep2));
    assert_false(is_pair(&b, deep, other));
    assert_false(is_pair(&b, made, made2));
    assert_false(is_pair(&b, unsure, unsure2));
    assert_false(is_pair(&b, unsure, unsure3));
    end(&b);
}

static uint32_t put_qualified(struct fm_profile *p, const char *name, const char *qualname,
                              uint32_t line)
{
    return fm_profile_function(p, &(struct fm_function){ .kind = FM_FUNCTION_PYTHON,
                                                         .name = fm_profile_string(p, name),
                                                         .qualname = fm_profile_string(p, qualname),
                                                         .file = fm_profile_string(p, "/a.py"),
                                                         .line = line });
}

/* memray has no classes: the method before the function of that name is the first of both. */
static void test_bare_names_by_their_lines(void **state)
{
    (void)state;
    struct both b;
    begin(&b);
    uint32_t method = put(b.p[0], "load", "/a.py", 10), load = put(b.p[0], "load", "/a.py", 20);
    uint32_t inner = put(b.p[0], "inner", "/a.py", 21),
             module = put(b.p[0], "<module>", "/a.py", 1);
    uint32_t load2 = put_qualified(b.p[1], "load", "load", 20);
    uint32_t other2 = put_qualified(b.p[1], "load", "Other.load", 30);
    uint32_t method2 = put_qualified(b.p[1], "load", "Loader.load", 10);
    uint32_t inner2 = put_qualified(b.p[1], "inner", "load.<locals>.inner", 21);
    uint32_t module2 = put_qualified(b.p[1], "<module>", "<module>", 1);
    match(&b);
    assert_true(is_pair(&b, method, method2));
    assert_true(is_pair(&b, load, load2));
    assert_true(is_pair(&b, inner, inner2));
    assert_true(is_pair(&b, module, module2));
    assert_false(is_pair(&b, method, other2) || is_pair(&b, load, other2));
    assert_int_equal(b.pairs.count, 5);
    end(&b);
}

/* Where no line is found again as many are paired in their order, and of fewer nothing is guessed. Functions of one
 * profile stay apart. */
static void test_bare_names_that_moved(void **state)
{
    (void)state;
    struct both b;
    begin(&b);
    uint32_t f = put_qualified(b.p[0], "f", "A.f", 10), g = put_qualified(b.p[0], "f", "B.f", 20);
    uint32_t h = put_qualified(b.p[0], "h", "A.h", 11), k = put_qualified(b.p[0], "h", "B.h", 21);
    uint32_t x = put_qualified(b.p[0], "<lambda>", "A.<lambda>", 30),
             y = put_qualified(b.p[0], "<lambda>", "B.<lambda>", 30);
    uint32_t f2 = put(b.p[1], "f", "/a.py", 14), g2 = put(b.p[1], "f", "/a.py", 24);
    uint32_t h2 = put(b.p[1], "h", "/a.py", 15), x2 = put(b.p[1], "<lambda>", "/a.py", 30);
    match(&b);
    assert_true(is_pair(&b, f, f2) && is_pair(&b, g, g2));
    assert_false(is_pair(&b, h, h2) || is_pair(&b, k, h2));
    assert_true(is_pair(&b, x, x2));
    assert_int_not_equal(b.pairs.of[0][x], b.pairs.of[0][y]);
    assert_int_equal(b.pairs.count, 2 + 3 + 2);
    end(&b);
}

static void test_nothing(void **state)
{
    (void)state;
    struct both b;
    begin(&b);
    match(&b);
    assert_int_equal(b.pairs.count, 0);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_do_not_matter_but_their_order_does),
        cmocka_unit_test(test_other_folders),
        cmocka_unit_test(test_relative_files),
        cmocka_unit_test(test_bare_names_by_their_lines),
        cmocka_unit_test(test_bare_names_that_moved),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
