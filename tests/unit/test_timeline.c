/*
 * Timelines of traces: from words to spans, cells, marks and ranges. Small streams have answers computed
 * by hand; random ones are compared with a plain list of all their spans.
 */
#include "fixture.h"

#include <stdio.h>

#include "record/model/file/file.h"
#include "record/model/trace/timeline.h"
#include "scratch_file.h"
#include "trace_profile.h"
#include "trace_words.h"

struct stage {
    struct trace_packed packed;
    struct fm_trace_pack *pack;
    struct fm_profile *p;
    struct fm_timeline *t;
};

/* A tick is a nanosecond, and time begins at a second. */
static void stage_begin(struct stage *s)
{
    *s = (struct stage){ .packed = trace_packed_new() };
    s->pack = fm_trace_pack_new(0, trace_sink, &s->packed);
    fm_trace_pack_clock(s->pack, 1000000000, 1000000000);
    fm_trace_pack_clock(s->pack, 2000000000, 2000000000);
}

static struct trace_words *writer(struct stage *s, uint32_t thread)
{
    struct trace_words *w = calloc(1, sizeof *w);
    w->pack = s->pack;
    w->thread = thread;
    return w;
}

static void stage_end(struct stage *s, uint64_t end)
{
    struct fm_error err = FM_ERROR_INIT;
    fm_trace_pack_end(s->pack, end);
    s->p = fm_profile_new();
    trace_add(s->p, s->pack, &s->packed, 7, 40, 10);
    s->t = fm_timeline_open(s->p, &err);
    assert_non_null(s->t);
}

static void stage_free(struct stage *s)
{
    fm_timeline_free(s->t);
    fm_profile_free(s->p);
    fm_trace_pack_free(s->pack);
}

struct spans {
    FM_VEC(struct fm_time_span) list;
};

static bool keep(void *context, const struct fm_time_span *span)
{
    struct spans *spans = context;
    fm_vec_push(&spans->list, *span);
    return true;
}

static struct spans spans_of(struct fm_timeline *t, size_t lane, uint64_t from, uint64_t to)
{
    struct spans spans = { 0 };
    assert_int_equal(fm_timeline_spans(t, lane, from, to, keep, &spans, NULL), 0);
    return spans;
}

static void check_span(const struct fm_profile *p, const struct fm_time_span *span,
                       const char *name, uint64_t begin, uint64_t end, uint32_t depth,
                       uint32_t flags)
{
    assert_string_equal(fm_profile_text(p, p->functions.data[span->func].name), name);
    assert_int_equal(span->begin_ns, begin);
    assert_int_equal(span->end_ns, end);
    assert_int_equal(span->depth, depth);
    assert_int_equal(span->flags, flags);
}

#define T0 1000000000u

/* f1 [0, 100) calls f2 [10, 40) and f3 [50, 90), which raises in f4 [60, 70). */
static void test_calls(void **state)
{
    (void)state;
    struct stage s;
    stage_begin(&s);
    struct trace_words *w = writer(&s, 1);
    words_begin(w, T0);
    words_call(w, T0, 1);
    words_call(w, T0 + 10, 2);
    words_return(w, T0 + 40);
    words_call(w, T0 + 50, 3);
    words_call(w, T0 + 60, 4);
    words_escape(w, T0 + 65, FM_TRACE_RAISE, (const uint32_t[]){ 9 }, 1);
    words_escape(w, T0 + 70, FM_TRACE_UNWIND, NULL, 0);
    words_return(w, T0 + 90);
    words_return(w, T0 + 100);
    words_hand_over(w);
    stage_end(&s, 0);
    assert_int_equal(fm_timeline_start_ns(s.t), T0);
    assert_int_equal(fm_timeline_length_ns(s.t), 100);
    assert_int_equal(fm_timeline_lane(s.t, 0)->events, 8);
    assert_int_equal(fm_timeline_lane(s.t, 0)->depth, 3);
    struct spans spans = spans_of(s.t, 0, 0, 1000);
    assert_int_equal(spans.list.len, 4);
    check_span(s.p, &spans.list.data[0], "f2", 10, 40, 1, 0);
    check_span(s.p, &spans.list.data[1], "f4", 60, 70, 2, FM_SPAN_UNWOUND);
    check_span(s.p, &spans.list.data[2], "f3", 50, 90, 1, 0);
    check_span(s.p, &spans.list.data[3], "f1", 0, 100, 0, 0);
    fm_vec_release(&spans.list);
    /* From 45 to 65: what is open then, cut at the end. */
    spans = spans_of(s.t, 0, 45, 65);
    assert_int_equal(spans.list.len, 3);
    check_span(s.p, &spans.list.data[0], "f4", 60, 65, 2, FM_SPAN_CUT);
    check_span(s.p, &spans.list.data[1], "f3", 50, 65, 1, FM_SPAN_CUT);
    check_span(s.p, &spans.list.data[2], "f1", 0, 65, 0, FM_SPAN_CUT);
    fm_vec_release(&spans.list);
    free(w);
    stage_free(&s);
}

/* A generator: f1 [0, 100), f2 [10, 20) yields, goes on [50, 60) under f3 [45, 70) and returns. */
static void test_generator(void **state)
{
    (void)state;
    struct stage s;
    size_t count;
    stage_begin(&s);
    struct trace_words *w = writer(&s, 1);
    words_begin(w, T0);
    words_call(w, T0, 1);
    words_call(w, T0 + 10, 2);
    words_yield(w, T0 + 20);
    words_call(w, T0 + 45, 3);
    words_escape(w, T0 + 50, FM_TRACE_RESUMED_AFTER, (const uint32_t[]){ 30 }, 1);
    words_call_as(w, T0 + 50, 2, true);
    words_return(w, T0 + 60);
    words_return(w, T0 + 70);
    words_hand_over(w);
    stage_end(&s, T0 + 100);
    const struct fm_trace_node *nodes = fm_trace_pack_nodes(s.pack, &count);
    assert_int_equal(count, 5); /* root, f1, f2 in f1, f3 in f1, f2 in f3 */
    assert_int_equal(nodes[2].func, 2);
    assert_int_equal(nodes[2].calls, 1);
    assert_int_equal(nodes[2].resumes, 0);
    assert_int_equal(nodes[2].total_ticks, 10);
    assert_int_equal(nodes[4].func, 2);
    assert_int_equal(nodes[4].calls, 0);
    assert_int_equal(nodes[4].resumes, 1);
    assert_int_equal(nodes[4].suspended_ticks, 30);
    assert_int_equal(nodes[1].total_ticks, 100);
    assert_int_equal(nodes[1].min_ticks, 0); /* it never ended */
    struct spans spans = spans_of(s.t, 0, 0, 1000);
    assert_int_equal(spans.list.len, 4);
    check_span(s.p, &spans.list.data[0], "f2", 10, 20, 1, FM_SPAN_YIELDED);
    check_span(s.p, &spans.list.data[1], "f2", 50, 60, 2, FM_SPAN_RESUMED);
    check_span(s.p, &spans.list.data[2], "f3", 45, 70, 1, 0);
    check_span(s.p, &spans.list.data[3], "f1", 0, 100, 0, FM_SPAN_OPEN);
    fm_vec_release(&spans.list);
    free(w);
    stage_free(&s);
}

/* ---- random streams against a plain list ---- */

struct naive_span {
    uint64_t begin, end;
    uint32_t func, depth;
};

struct naive {
    FM_VEC(struct naive_span) spans; /* in the order of their end */
    struct naive_span stack[64];
    unsigned depth;
    uint64_t now, state;
};

static uint32_t chance(struct naive *n)
{
    n->state = n->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(n->state >> 33);
}

static void naive_end(struct naive *n)
{
    n->depth--;
    n->stack[n->depth].end = n->now;
    fm_vec_push(&n->spans, n->stack[n->depth]);
}

static void make_random(struct naive *n, struct trace_words *w, unsigned events, uint32_t seed)
{
    n->state = seed;
    n->now = T0;
    words_begin(w, n->now);
    for (unsigned i = 0; i < events; i++) {
        uint32_t r = chance(n);
        n->now += r % 300 + (r % 1000 == 0 ? 100000 : 0) + (r % 20011 == 0 ? 30000000 : 0);
        if (n->depth < 40 && (n->depth == 0 || chance(n) % 2)) {
            uint32_t func = 1 + chance(n) % 40;
            words_call(w, n->now, func);
            n->stack[n->depth] = (struct naive_span){ n->now, 0, func, n->depth };
            n->depth++;
        } else {
            words_return(w, n->now);
            naive_end(n);
        }
    }
    words_hand_over(w);
    while (n->depth)
        naive_end(n);
}

/* Spans that touch [from, to), with their ends cut. */
static void compare_spans(const struct naive *n, const struct stage *s, uint64_t from, uint64_t to)
{
    struct spans spans = spans_of(s->t, 0, from, to);
    size_t at = 0;
    bool whole = to > fm_timeline_length_ns(s->t);
    for (size_t i = 0; i < n->spans.len; i++) {
        const struct naive_span *want = &n->spans.data[i];
        uint64_t begin = want->begin - T0, end = want->end - T0;
        if (end < from || (begin >= to && !whole) || (end >= to && !whole))
            continue;
        assert_true(at < spans.list.len);
        assert_int_equal(spans.list.data[at].begin_ns, begin);
        assert_int_equal(spans.list.data[at].end_ns, end);
        assert_int_equal(s->p->functions.data[spans.list.data[at].func].line, want->func);
        assert_int_equal(spans.list.data[at].depth, want->depth);
        at++;
    }
    for (; at < spans.list.len; at++) { /* those that are cut */
        assert_int_equal(spans.list.data[at].end_ns, to);
        assert_true(spans.list.data[at].flags & FM_SPAN_CUT);
    }
    fm_vec_release(&spans.list);
}

static void test_random_spans(void **state)
{
    (void)state;
    struct stage s;
    struct naive n = { 0 };
    stage_begin(&s);
    struct trace_words *w = writer(&s, 1);
    make_random(&n, w, 400000, 1);
    stage_end(&s, 0);
    uint64_t length = fm_timeline_length_ns(s.t);
    assert_int_equal(length, n.now - T0);
    compare_spans(&n, &s, 0, UINT64_MAX);
    for (unsigned i = 0; i < 30; i++) {
        uint64_t from = (uint64_t)chance(&n) * length >> 31, size = chance(&n) % 2000000;
        compare_spans(&n, &s, from, from + size);
    }
    fm_vec_release(&n.spans);
    free(w);
    stage_free(&s);
}

/* Whatever the size of cells, they hold every span of the range that ended in it, in order, at its depth,
 * and none is shorter than asked for unless it is alone. */
static void check_cells(const struct naive *n, const struct stage *s, uint64_t cell_ns)
{
    struct fm_cells cells = { 0 };
    uint64_t spans = 0, wanted = 0, by_depth[64] = { 0 };
    assert_int_equal(fm_timeline_cells(s->t, 0, 0, UINT64_MAX, cell_ns, &cells, NULL), 0);
    for (size_t i = 0; i < cells.cells.len; i++) {
        const struct fm_cell *cell = &cells.cells.data[i];
        assert_true(cell->depth < 64);
        by_depth[cell->depth] += cell->spans;
        spans += cell->spans;
        if (i && cell[-1].depth == cell->depth)
            assert_true(cell->begin_ns >= cell[-1].begin_ns);
        else if (i)
            assert_true(cell->depth > cell[-1].depth);
    }
    for (size_t i = 0; i < n->spans.len; i++) {
        by_depth[n->spans.data[i].depth]--;
        wanted++;
    }
    assert_int_equal(spans, wanted);
    for (int i = 0; i < 64; i++)
        assert_int_equal(by_depth[i], 0);
    fm_cells_release(&cells);
}

static void test_random_cells(void **state)
{
    (void)state;
    struct stage s;
    struct naive n = { 0 };
    stage_begin(&s);
    struct trace_words *w = writer(&s, 1);
    make_random(&n, w, 700000, 2);
    stage_end(&s, 0);
    for (uint64_t cell = 1000; cell < 10000000000u; cell *= 4)
        check_cells(&n, &s, cell);
    fm_vec_release(&n.spans);
    free(w);
    stage_free(&s);
}

/* Through a file, and with plain bodies. */
static void test_file(void **state)
{
    (void)state;
    struct stage s;
    struct naive n = { 0 };
    stage_begin(&s);
    struct trace_words *w = writer(&s, 1);
    make_random(&n, w, 300000, 3);
    stage_end(&s, 0);
    for (int plain = 0; plain < 2; plain++) {
        int fd = fx_file();
        assert_int_equal(plain ? fm_file_save_plain(s.p, fd, NULL) : fm_file_save(s.p, fd, NULL),
                         0);
        size_t len;
        uint8_t *bytes = fx_file_bytes(fd, &len);
        struct stage again = { .p = fm_file_load(bytes, len, "x", NULL) };
        assert_non_null(again.p);
        assert_int_equal(again.p->notes.len, 0);
        again.t = fm_timeline_open(again.p, NULL);
        assert_non_null(again.t);
        compare_spans(&n, &again, 0, UINT64_MAX);
        check_cells(&n, &again, 1000000);
        fm_timeline_free(again.t);
        fm_profile_free(again.p);
        free(bytes);
    }
    fm_vec_release(&n.spans);
    free(w);
    stage_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),        cmocka_unit_test(test_generator),
        cmocka_unit_test(test_random_spans), cmocka_unit_test(test_random_cells),
        cmocka_unit_test(test_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
