/* Lines of functions: order, adding up, quantiles, and what reshaping a profile does to them. */
#include "fixture.h"

#include "base/memory.h"
#include "record/model/derive/edit.h"

static struct fm_line *add(struct fm_profile *p, uint32_t process, const char *name, uint32_t line,
                           int64_t hits, int64_t total_ns)
{
    struct fm_line *row = fm_lines_add(&p->lines, process, fx_function(p, name), line, false);
    row->hits = hits;
    row->total_ns = total_ns;
    row->self_ns = total_ns / 2;
    return row;
}

static void expect(const struct fm_profile *p, const struct fm_lines *lines, size_t i,
                   uint32_t process, const char *name, uint32_t line, int64_t hits,
                   int64_t total_ns)
{
    assert_true(i < lines->rows.len);
    const struct fm_line *row = &lines->rows.data[i];
    assert_int_equal(row->process, process);
    assert_string_equal(fm_profile_text(p, p->functions.data[row->func].name), name);
    assert_int_equal(row->line, line);
    assert_int_equal(row->hits, hits);
    assert_int_equal(row->total_ns, total_ns);
}

/* Half-octaves: bucket 2n is [2^n, 1.5 * 2^n), bucket 2n + 1 is [1.5 * 2^n, 2^(n+1)). */
static void test_buckets(void **state)
{
    (void)state;
    static const struct {
        int64_t ns;
        unsigned bucket;
    } cases[] = { { -5, 0 },        { 0, 0 },         { 1, 0 },         { 2, 2 },     { 3, 3 },
                  { 4, 4 },         { 5, 4 },         { 6, 5 },         { 7, 5 },     { 8, 6 },
                  { 1023, 19 },     { 1024, 20 },     { 1535, 20 },     { 1536, 21 }, { 2047, 21 },
                  { 1l << 44, 88 }, { 3l << 44, 89 }, { INT64_MAX, 89 } };
    for (size_t i = 0; i < FM_COUNT(cases); i++)
        assert_int_equal(fm_line_bucket(cases[i].ns), cases[i].bucket);
    for (unsigned b = 2; b < FM_LINE_BUCKETS; b++) /* two to a power of two: their middles */
        assert_int_equal(fm_line_bucket((int64_t)(b % 2 ? 7 : 5) << b / 2 >> 2), b);
}

static void test_sort_combines(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    fx_function(p, "f");
    fx_function(p, "g");
    add(p, FM_NONE, "f", 3, 1, 10);
    add(p, 1, "g", 5, 2, 20);
    add(p, 0, "g", 6, 3, 30)->min_ns = 7;
    add(p, 0, "f", 9, 4, 40);
    struct fm_line *again = add(p, 0, "g", 6, 5, 50);
    again->min_ns = 4;
    again->max_ns = 9;
    fm_lines_histogram(&p->lines, again)->buckets[4] = 5;
    fm_lines_mark(&p->lines, 1);
    fm_lines_mark(&p->lines, 0);
    fm_lines_mark(&p->lines, 1);
    fm_lines_sort(&p->lines);
    assert_int_equal(p->lines.rows.len, 4);
    expect(p, &p->lines, 0, 0, "f", 9, 4, 40);
    expect(p, &p->lines, 1, 0, "g", 6, 8, 80);
    expect(p, &p->lines, 2, 1, "g", 5, 2, 20);
    expect(p, &p->lines, 3, FM_NONE, "f", 3, 1, 10);
    const struct fm_line *combined = &p->lines.rows.data[1];
    assert_int_equal(combined->self_ns, 40);
    assert_int_equal(combined->min_ns, 4);
    assert_int_equal(combined->max_ns, 9);
    assert_int_equal(p->lines.histograms.len, 1);
    assert_int_equal(p->lines.histograms.data[combined->histogram].buckets[4], 5);
    assert_int_equal(p->lines.marked.len, 2);
    assert_int_equal(p->lines.marked.data[0], 0);
    fm_profile_free(p);
}

static void test_combined(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    for (uint32_t process = 0; process < 3; process++) {
        struct fm_line *row = add(p, process, "f", 3, 1 + process, 10);
        fm_lines_histogram(&p->lines, row)->buckets[process] = UINT32_MAX - 1;
        fm_lines_histogram(&p->lines, row)->buckets[9] = UINT32_MAX - 1;
    }
    fm_lines_sort(&p->lines);
    struct fm_lines all = fm_lines_combined(p, FM_NONE), one = fm_lines_combined(p, 1);
    assert_int_equal(all.rows.len, 1);
    expect(p, &all, 0, FM_NONE, "f", 3, 6, 30);
    assert_true(all.histograms.data[0].buckets[1] == UINT32_MAX - 1);
    assert_true(all.histograms.data[0].buckets[9] == UINT32_MAX); /* does not wrap around */
    assert_int_equal(one.rows.len, 1);
    expect(p, &one, 0, 1, "f", 3, 2, 10);
    assert_int_equal(p->lines.rows.len, 3);
    fm_lines_release(&all);
    fm_lines_release(&one);
    fm_profile_free(p);
}

static void test_quantiles(void **state)
{
    (void)state;
    struct fm_lines lines = { 0 };
    struct fm_line *row = fm_lines_add(&lines, 0, 0, 1, false);
    assert_int_equal(fm_lines_quantile_ns(&lines, row, 0.5), 0); /* nothing is known */
    struct fm_line_histogram *h = fm_lines_histogram(&lines, row);
    assert_int_equal(fm_lines_quantile_ns(&lines, row, 0.5), 0);
    h->buckets[20] = 4; /* 1024 to 1536 */
    assert_int_equal(fm_lines_quantile_ns(&lines, row, 0.5), 1280);
    assert_int_equal(fm_lines_quantile_ns(&lines, row, 0.25), 1152);
    assert_int_equal(fm_lines_quantile_ns(&lines, row, 1), 1536);
    h->buckets[40] = 4; /* 2^20 to 1.5 * 2^20 */
    assert_int_equal(fm_lines_quantile_ns(&lines, row, 0.5), 1536);
    assert_int_equal(fm_lines_quantile_ns(&lines, row, 0.75), 1310720);
    row->min_ns = 1500;
    row->max_ns = 1100000;
    assert_int_equal(fm_lines_quantile_ns(&lines, row, 0.25), 1500);
    assert_int_equal(fm_lines_quantile_ns(&lines, row, 0.99), 1100000);
    fm_lines_release(&lines);
}

/* Processes and functions get new numbers; lines without a process are added up. */
static void test_append(void **state)
{
    (void)state;
    struct fm_profile *into = fm_profile_new(), *from = fm_profile_new();
    fx_node(into, fx_thread(into, 7), "f", 1, 10);
    add(into, 0, "f", 3, 1, 10);
    add(into, FM_NONE, "f", 4, 1, 10);
    into->lines.unit_s = 1e-9;
    fx_node(from, fx_thread(from, 8), "g", 1, 10);
    add(from, 0, "f", 3, 2, 20);
    struct fm_line *row = add(from, 0, "g", 5, 3, 30);
    fm_lines_histogram(&from->lines, row)->buckets[8] = 3;
    add(from, FM_NONE, "f", 4, 4, 40);
    fm_lines_mark(&from->lines, fx_function(from, "g"));
    from->lines.unit_s = 1e-6;
    fm_lines_sort(&into->lines);
    fm_lines_sort(&from->lines);
    fm_profile_merge(into, from);
    assert_int_equal(into->lines.rows.len, 4);
    expect(into, &into->lines, 0, 0, "f", 3, 1, 10);
    expect(into, &into->lines, 1, 1, "f", 3, 2, 20);
    expect(into, &into->lines, 2, 1, "g", 5, 3, 30);
    expect(into, &into->lines, 3, FM_NONE, "f", 4, 5, 50);
    uint32_t histogram = into->lines.rows.data[2].histogram;
    assert_int_equal(into->lines.histograms.data[histogram].buckets[8], 3);
    assert_int_equal(into->lines.marked.len, 1);
    assert_int_equal(into->lines.marked.data[0], fx_function(into, "g"));
    assert_true(into->lines.unit_s == 1e-6);
    fm_profile_free(from);
    fm_profile_free(into);
}

/* main → { a → x, b }, lines of each, and of two functions that are in no tree. */
static struct fm_profile *tree_with_lines(void)
{
    static const char *const names[] = { "main", "a", "x", "b", "lonely", "xray" };
    struct fm_profile *p = fm_profile_new();
    uint32_t top = fx_node(p, fx_thread(p, 7), "main", 1, 100);
    fx_node(p, fx_node(p, top, "a", 1, 40), "x", 1, 20);
    fx_node(p, top, "b", 1, 30);
    for (uint32_t i = 0; i < FM_COUNT(names); i++) {
        add(p, i < 4 ? 0 : FM_NONE, names[i], 10 + i, 1, 10);
        fm_lines_mark(&p->lines, fx_function(p, names[i]));
    }
    fm_lines_sort(&p->lines);
    return p;
}

static void expect_lines(struct fm_profile *p, size_t count, const uint32_t *lines)
{
    assert_int_equal(p->lines.rows.len, count);
    assert_int_equal(p->lines.marked.len, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(p->lines.rows.data[i].line, lines[i]);
    fm_profile_free(p);
}

static void test_reshaping(void **state)
{
    (void)state;
    struct fm_profile *p = tree_with_lines();
    expect_lines(fm_profile_fold(p, fm_function_glob, "x*"), 4, (uint32_t[]){ 10, 11, 13, 14 });
    expect_lines(fm_profile_filter(p, fm_function_glob, "x*"), 4, (uint32_t[]){ 10, 11, 12, 15 });
    expect_lines(fm_profile_root(p, fm_function_glob, "a"), 2, (uint32_t[]){ 11, 12 });
    expect_lines(p, 6, (uint32_t[]){ 10, 11, 12, 13, 14, 15 });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets),  cmocka_unit_test(test_sort_combines),
        cmocka_unit_test(test_combined), cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_append),   cmocka_unit_test(test_reshaping),
    };
    return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}
