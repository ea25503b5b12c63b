/* Sampled lanes of a timeline (model/trace/lanes/sampled.h): spans, cells, and numbers of a stretch of time that add up. */
#include "fixture.h"

#include "record/model/trace/lanes/range_profile.h"
#include "record/model/trace/lanes/sampled.h"

enum { MS = 1000000 };

/* Rounds 1 to 10, a millisecond each, the first at 5 ms: a, a → b, a; then nothing is seen for 4 rounds, then a. */
static struct fm_profile *recorded(void)
{
    struct fm_profile *p = fm_profile_new();
    uint32_t root = fx_thread(p, 10);
    uint32_t a = fx_node(p, root, "a", 0, 10000004), b = fx_node(p, a, "b", 0, 5000001);
    const struct fm_order_item items[] = { { a, FM_STATE_PYTHON, 4 },
                                           { b, FM_STATE_C, 5 },
                                           { a, FM_STATE_PYTHON, 1 } };
    for (size_t i = 0; i < FM_COUNT(items); i++)
        fm_vec_push(&p->order.items, items[i]);
    fm_vec_push(&p->order.lanes, ((struct fm_order_lane){ 0, 1, 10, 1, 0, 3 }));
    struct fm_order_clock *clock = fm_sample_order_clock(&p->order, 0);
    fm_vec_push(&clock->times, ((struct fm_order_time){ 1, 5 * MS }));
    fm_vec_push(&clock->times, ((struct fm_order_time){ 21, 25 * MS }));
    fm_profile_add(p, FM_METRIC_STATE_PYTHON, a, 5000003);
    fm_profile_add(p, FM_METRIC_STATE_C, b, 5000001);
    fm_profile_add(p, FM_METRIC_SAMPLES, a, 5);
    fm_profile_add(p, FM_METRIC_SAMPLES, b, 5);
    p->processes.data[0].sampled = true;
    return p;
}

struct span_list {
    FM_VEC(struct fm_time_span) spans;
};

static bool keep_span(void *context, const struct fm_time_span *span)
{
    struct span_list *list = context;
    fm_vec_push(&list->spans, *span);
    return true;
}

static void expect_span(const struct fm_profile *p, const struct fm_time_span *span,
                        const char *name, uint32_t depth, uint64_t begin_us, uint64_t end_us)
{
    assert_string_equal(fm_profile_text(p, p->functions.data[span->func].name), name);
    assert_int_equal(span->depth, depth);
    assert_int_equal(span->begin_ns, begin_us * 1000);
    assert_int_equal(span->end_ns, end_us * 1000);
}

/* A sample stands for half a millisecond before and after it: the timeline begins at 4.5 ms. */
static void test_spans(void **state)
{
    (void)state;
    struct fm_profile *p = recorded();
    struct fm_timeline *t = fm_timeline_open(p, NULL);
    struct span_list list = { 0 };
    assert_non_null(t);
    assert_int_equal(fm_timeline_start_ns(t), 4500000);
    assert_int_equal(fm_timeline_length_ns(t), 10 * MS);
    assert_int_equal(fm_timeline_lanes(t), 1);
    const struct fm_lane *lane = fm_timeline_lane(t, 0);
    assert_int_equal(lane->kind, FM_LANE_SAMPLED);
    assert_int_equal(lane->events, 10);
    assert_int_equal(lane->depth, 2);
    assert_int_equal(lane->grain_ns, 0);
    assert_int_equal(fm_timeline_spans(t, 0, 0, 10 * MS, keep_span, &list, NULL), 0);
    assert_int_equal(list.spans.len, 2);
    expect_span(p, &list.spans.data[0], "b", 1, 4000, 9000);
    expect_span(p, &list.spans.data[1], "a", 0, 0, 10000);
    assert_int_equal(list.spans.data[0].state, FM_STATE_C);
    assert_true(list.spans.data[1].flags & FM_SPAN_OPEN);
    assert_false(list.spans.data[0].flags & (FM_SPAN_OPEN | FM_SPAN_CUT));
    list.spans.len = 0; /* what is open at the second instant is cut there */
    assert_int_equal(fm_timeline_spans(t, 0, 5 * MS, 6 * MS, keep_span, &list, NULL), 0);
    assert_int_equal(list.spans.len, 2);
    expect_span(p, &list.spans.data[0], "b", 1, 4000, 6000);
    assert_true(list.spans.data[0].flags & FM_SPAN_CUT);
    expect_span(p, &list.spans.data[1], "a", 0, 0, 6000);
    list.spans.len = 0;
    assert_int_equal(fm_timeline_spans(t, 0, 0, 3 * MS, keep_span, &list, NULL), 0);
    assert_int_equal(list.spans.len, 1);
    fm_vec_release(&list.spans);
    fm_timeline_free(t);
    fm_profile_free(p);
}

/* b, a, b, a … of a millisecond each, in cells of four: two of the three from the first b to the end of the
 * second are of b. */
static void test_cells(void **state)
{
    (void)state;
    struct fm_profile *p = recorded();
    struct fm_cells cells = { 0 };
    p->order.items.len = 0;
    for (uint32_t i = 0; i < 8; i++)
        fm_vec_push(&p->order.items, ((struct fm_order_item){ i % 2 ? 1 : 2, FM_STATE_PYTHON, 1 }));
    p->order.lanes.data[0].n = 8;
    p->order.lanes.data[0].rounds = 8;
    struct fm_timeline *t = fm_timeline_open(p, NULL);
    assert_int_equal(fm_timeline_cells(t, 0, 0, 8 * MS, 4 * MS, &cells, NULL), 0);
    assert_int_equal(cells.cells.len, 3);
    assert_true(cells.cells.data[0].flags & FM_CELL_EXACT);
    assert_int_equal(cells.cells.data[0].end_ns, 8 * MS);
    for (int i = 1; i < 3; i++) {
        const struct fm_cell *cell = &cells.cells.data[i];
        assert_int_equal(cell->depth, 1);
        assert_int_equal(cell->spans, 2);
        assert_int_equal(cell->longest_ns, MS);
        assert_int_equal(cell->begin_ns, (uint64_t)(i - 1) * 4 * MS);
        assert_int_equal(cell->end_ns, cell->begin_ns + 3 * MS);
        assert_int_equal(cell->covered, 255 * 2 / 3);
    }
    fm_cells_release(&cells);
    fm_timeline_free(t);
    fm_profile_free(p);
}

static struct fm_profile *part_of(const struct fm_profile *p, uint64_t from_us, uint64_t to_us)
{
    struct fm_sampled *s = fm_sampled_open(p);
    struct fm_profile *part = fm_range_profile_new(p);
    fm_sampled_add(s, 4500000 + from_us * 1000, 4500000 + to_us * 1000, part);
    fm_range_profile_end(part);
    fm_sampled_free(s);
    return part;
}

static int64_t value(const struct fm_profile *p, enum fm_metric metric, const char *name)
{
    for (uint32_t i = 0; i < p->nodes.len; i++)
        if (strcmp(fm_profile_text(p, p->functions.data[p->nodes.data[i].func].name), name) == 0)
            return fm_profile_value(p, metric, i);
    return -1;
}

/* Four of five samples of a, and two of five of b, lie before 6 ms. */
static void test_stretches_add_up(void **state)
{
    (void)state;
    struct fm_profile *p = recorded(), *first = part_of(p, 0, 6000),
                      *second = part_of(p, 6000, 10000), *whole = part_of(p, 0, 10000);
    assert_int_equal(value(first, FM_METRIC_STATE_PYTHON, "a"), 4000002);
    assert_int_equal(value(first, FM_METRIC_STATE_C, "b"), 2000000);
    assert_int_equal(value(first, FM_METRIC_TOTAL, "a"), 6000002);
    assert_int_equal(value(first, FM_METRIC_SAMPLES, "a"), 4);
    assert_int_equal(value(second, FM_METRIC_STATE_PYTHON, "a"), 1000001);
    assert_int_equal(value(second, FM_METRIC_STATE_C, "b"), 3000001);
    assert_int_equal(value(second, FM_METRIC_SAMPLES, "b"), 3);
    assert_int_equal(value(whole, FM_METRIC_TOTAL, "a"), 10000004);
    assert_int_equal(value(whole, FM_METRIC_SAMPLES, "b"), 5);
    for (uint64_t cut = 0; cut <= 10000; cut += 37) {
        struct fm_profile *one = part_of(p, 0, cut), *two = part_of(p, cut, 10000);
        int64_t b = value(one, FM_METRIC_STATE_C, "b"), rest = value(two, FM_METRIC_STATE_C, "b");
        assert_int_equal((b < 0 ? 0 : b) + (rest < 0 ? 0 : rest), 5000001);
        fm_profile_free(one);
        fm_profile_free(two);
    }
    fm_profile_free(p);
    fm_profile_free(first);
    fm_profile_free(second);
    fm_profile_free(whole);
}

/* Who was not seen has no span there. */
static void test_gaps(void **state)
{
    (void)state;
    struct fm_profile *p = recorded();
    struct span_list list = { 0 };
    p->order.items.data[1] = (struct fm_order_item){ FM_ORDER_UNSEEN, 0, 5 };
    struct fm_timeline *t = fm_timeline_open(p, NULL);
    assert_int_equal(fm_timeline_spans(t, 0, 0, 10 * MS, keep_span, &list, NULL), 0);
    assert_int_equal(list.spans.len, 2);
    expect_span(p, &list.spans.data[0], "a", 0, 0, 4000);
    expect_span(p, &list.spans.data[1], "a", 0, 9000, 10000);
    fm_vec_release(&list.spans);
    fm_timeline_free(t);
    fm_profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_stretches_add_up),
        cmocka_unit_test(test_gaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
