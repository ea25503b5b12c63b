/*
 * Time without memory, and memory without time, of one tree that holds both:
 *
 *     root → f 100 ns → g 40 ns
 *          → <before the program> 1000 bytes
 *          → f:5 → f:5 10 bytes → g:8 7 bytes
 *                → f:6 3 bytes
 */
#include "fixture.h"

#include "base/memory.h"
#include "record/model/derive/shed.h"

static uint32_t at(struct fm_profile *p, uint32_t parent, const char *name, uint32_t line,
                   int64_t bytes)
{
    uint32_t node = fm_profile_node_at(p, parent, fx_function(p, name), line);
    fm_profile_add(p, FM_METRIC_PEAK, node, bytes);
    return node;
}

static struct fm_profile *both_new(void)
{
    struct fm_profile *p = fm_profile_new();
    uint32_t root = fx_thread(p, 7);
    p->processes.data[0].calls = p->processes.data[0].memory = true;
    uint32_t outer = at(p, root, "f", 5, 0);
    uint32_t f = fx_node(p, root, "f", 1, 100);
    struct fm_function before = { .kind = FM_FUNCTION_REGION,
                                  .name = fm_profile_string(p, "<before the program>") };
    uint32_t region = fm_profile_node(p, root, fm_profile_function(p, &before));
    fm_profile_add(p, FM_METRIC_PEAK, region, 1000);
    uint32_t inner = at(p, outer, "f", 5, 10);
    at(p, inner, "g", 8, 7);
    at(p, outer, "f", 6, 3);
    fx_node(p, f, "g", 2, 40);
    fm_profile_add(p, FM_METRIC_TOTAL, root, 100);
    return p;
}

static void time_is_left_as_without_memory(void **state)
{
    (void)state;
    struct fm_profile *p = both_new();
    assert_true(fm_profile_has_time(p));
    fm_profile_shed_memory(p);
    assert_int_equal(p->nodes.len, 3);
    assert_null(p->columns[FM_METRIC_PEAK].data);
    assert_false(p->has_lined_nodes);
    struct fm_flat *flat = fm_flat_new(p, NULL);
    assert_int_equal(flat->rows.len, 2);
    fx_expect_row(p, flat, "f", 1, 1, 60, 100);
    fx_expect_row(p, flat, "g", 2, 2, 40, 40);
    fm_flat_free(flat);
    fm_profile_free(p);
}

static const struct fm_flat_row *row_at(const struct fm_profile *p, const struct fm_flat *flat,
                                        const char *name, uint32_t line)
{
    for (size_t i = 0; i < flat->rows.len; i++) {
        const struct fm_function *f = &p->functions.data[flat->rows.data[i].func];
        if (strcmp(fm_profile_text(p, f->name), name) == 0 && f->line == line)
            return &flat->rows.data[i];
    }
    return NULL;
}

static void expect(const struct fm_flat_row *row, int64_t self, int64_t total)
{
    assert_non_null(row);
    assert_int_equal(row->self[FM_METRIC_PEAK], self);
    assert_int_equal(row->total[FM_METRIC_PEAK], total);
}

static void lines_are_functions(void **state)
{
    (void)state;
    struct fm_profile *p = both_new();
    uint32_t f = fx_function(p, "f");
    fm_autofree uint32_t *origin = fm_profile_shed_time(p, FM_ROWS_LINES);
    assert_int_equal(p->nodes.len, 6);
    assert_null(p->columns[FM_METRIC_TOTAL].data);
    struct fm_flat *flat = fm_flat_new(p, NULL);
    assert_int_equal(flat->rows.len, 4);
    expect(row_at(p, flat, "<before the program>", 0), 1000, 1000);
    expect(row_at(p, flat, "f", 5), 10, 20); /* nested in itself: once */
    expect(row_at(p, flat, "f", 6), 3, 3);
    expect(row_at(p, flat, "g", 8), 7, 7);
    assert_int_equal(origin[row_at(p, flat, "f", 6)->func], f);
    assert_int_equal(origin[f], f);
    fm_flat_free(flat);
    fm_profile_free(p);
}

static void lines_are_of_functions(void **state)
{
    (void)state;
    struct fm_profile *p = both_new();
    fm_autofree uint32_t *origin = fm_profile_shed_time(p, FM_ROWS_FUNCTIONS);
    struct fm_flat *flat = fm_flat_new(p, NULL);
    assert_int_equal(flat->rows.len, 3);
    expect(fx_row(p, flat, "f"), 13, 20);
    expect(fx_row(p, flat, "g"), 7, 7);
    fm_flat_free(flat);
    fm_profile_free(p);
}

static void types_are_below_lines(void **state)
{
    (void)state;
    for (int with = 0; with < 2; with++) {
        struct fm_profile *p = both_new();
        struct fm_function list = { .kind = FM_FUNCTION_REGION,
                                    .flags = FM_FUNCTION_TYPE,
                                    .name = fm_profile_string(p, "list") };
        assert_false(fm_profile_has_types(p));
        uint32_t type = fm_profile_function(p, &list), last = (uint32_t)p->nodes.len - 2;
        assert_int_equal(p->nodes.data[last].line, 6); /* of f, which has 3 bytes */
        fm_profile_add(p, FM_METRIC_PEAK, fm_profile_node(p, last, type), 50);
        assert_true(fm_profile_has_types(p));
        fm_autofree uint32_t *origin =
            fm_profile_shed_time(p, with ? FM_ROWS_TYPES : FM_ROWS_LINES);
        struct fm_flat *flat = fm_flat_new(p, NULL);
        expect(row_at(p, flat, "f", 6), with ? 3 : 53, 53);
        if (with)
            expect(row_at(p, flat, "list", 0), 50, 50);
        else
            assert_null(row_at(p, flat, "list", 0));
        fm_flat_free(flat);
        fm_profile_free(p);
    }
}

static void what_there_is(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    fx_thread(p, 7);
    assert_false(fm_profile_has_memory(p));
    assert_true(fm_profile_has_time(p)); /* of which there is none, but nobody asked for memory */
    p->processes.data[0].memory = true;
    assert_true(fm_profile_has_memory(p));
    assert_false(fm_profile_has_time(p));
    p->processes.data[0].sampled = true;
    assert_true(fm_profile_has_time(p));
    fm_profile_free(p);
}

static void buckets_begin(void **state)
{
    (void)state;
    /* sizes: 0, (2), 2, 3, 4, 6, 8, 12 …; lives: 0, 1, 2, 4, 8 … */
    static const int64_t sizes[] = { 0, 2, 2, 3, 4, 6, 8, 12 }, lives[] = { 0, 1, 2, 4, 8 };
    for (uint32_t i = 0; i < FM_COUNT(sizes); i++)
        assert_int_equal(fm_heap_bucket_start(FM_HEAP_SIZES, i), sizes[i]);
    for (uint32_t i = 0; i < FM_COUNT(lives); i++)
        assert_int_equal(fm_heap_bucket_start(FM_HEAP_LIVES, i), lives[i]);
    assert_int_equal(fm_heap_bucket_start(FM_HEAP_SIZES, 127), INT64_MAX);
    assert_string_equal(fm_heap_kind_title(2), "malloc");
    assert_string_equal(fm_heap_kind_title(99), "another");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_is_left_as_without_memory),
        cmocka_unit_test(lines_are_functions),
        cmocka_unit_test(lines_are_of_functions),
        cmocka_unit_test(types_are_below_lines),
        cmocka_unit_test(what_there_is),
        cmocka_unit_test(buckets_begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
