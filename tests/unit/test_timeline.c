/*
 * Timelines of traces: from words to spans, cells, marks and ranges. Small streams have answers computed
 * by hand; random ones are compared with a plain list of all their spans.
 */
#include "fixture.h"
#include <math.h>

#include <stdio.h>

#include "record/model/file/file.h"
#include "record/model/trace/lanes/run_clocks.h"
#include "record/model/trace/lanes/timeline.h"
#include "record/model/trace/pack/build.h"
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

/* ---- marks, regions, losses ---- */

struct marks {
    FM_VEC(struct fm_mark) list;
};

static bool keep_mark(void *context, const struct fm_mark *mark)
{
    struct marks *marks = context;
    fm_vec_push(&marks->list, *mark);
    return true;
}

static struct marks marks_of(struct fm_timeline *t)
{
    struct marks marks = { 0 };
    assert_int_equal(fm_timeline_marks(t, FM_NONE, 0, UINT64_MAX, keep_mark, &marks, NULL), 0);
    return marks;
}

static void check_mark(const struct fm_profile *p, const struct fm_mark *mark,
                       enum fm_mark_kind kind, const char *name, uint64_t begin, uint64_t end)
{
    assert_int_equal(mark->kind, kind);
    assert_string_equal(fm_profile_text(p, mark->name), name);
    assert_int_equal(mark->begin_ns, begin);
    assert_int_equal(mark->end_ns, end);
}

/* f1 [0, 200) with region n4 [10, 60) around f2 [20, 30), a collection [40, 50) of generation 2, region n5
 * from 70 in f3 [65, 80) that ends at 90, and an exception, a counter, an instant and two steps of a task. */
static void test_marks(void **state)
{
    (void)state;
    struct stage s;
    stage_begin(&s);
    struct trace_words *w = writer(&s, 1);
    words_begin(w, T0);
    words_call(w, T0, 1);
    words_escape(w, T0 + 10, FM_TRACE_REGION_BEGIN, (const uint32_t[]){ 4 }, 1);
    words_call(w, T0 + 20, 2);
    words_escape(w, T0 + 25, FM_TRACE_RAISE, (const uint32_t[]){ 9 }, 1);
    words_return(w, T0 + 30);
    words_escape(w, T0 + 40, FM_TRACE_GC_BEGIN, (const uint32_t[]){ 2 }, 1);
    words_escape(w, T0 + 50, FM_TRACE_GC_END, (const uint32_t[]){ 17, 0 }, 2);
    words_escape(w, T0 + 60, FM_TRACE_REGION_END, (const uint32_t[]){ 4 }, 1);
    words_call(w, T0 + 65, 3);
    words_escape(w, T0 + 70, FM_TRACE_REGION_BEGIN, (const uint32_t[]){ 5 }, 1);
    words_return(w, T0 + 80);
    words_escape(w, T0 + 90, FM_TRACE_REGION_END, (const uint32_t[]){ 5 }, 1);
    words_escape(w, T0 + 100, FM_TRACE_COUNTER, (const uint32_t[]){ 6, 0, 0x40080000 }, 3);
    words_escape(w, T0 + 110, FM_TRACE_TASK_NEW, (const uint32_t[]){ 1, 7, 0 }, 3);
    words_escape(w, T0 + 120, FM_TRACE_TASK_STEP, (const uint32_t[]){ 1 }, 1);
    words_escape(w, T0 + 130, 200, (const uint32_t[]){ 1 }, 1); /* a later version's */
    words_escape(w, T0 + 140, FM_TRACE_TASK_STEP, (const uint32_t[]){ 0 }, 1);
    words_escape(w, T0 + 150, FM_TRACE_TASK_DONE, (const uint32_t[]){ 1 }, 1);
    words_return(w, T0 + 200);
    words_hand_over(w);
    stage_end(&s, 0);
    struct spans spans = spans_of(s.t, 0, 0, UINT64_MAX);
    assert_int_equal(spans.list.len, 6);
    check_span(s.p, &spans.list.data[0], "f2", 20, 30, 2, 0);
    check_span(s.p, &spans.list.data[1], "garbage collection", 40, 50, 2,
               FM_SPAN_REGION | FM_SPAN_COLLECTION);
    check_span(s.p, &spans.list.data[2], "n4", 10, 60, 1, FM_SPAN_REGION);
    check_span(s.p, &spans.list.data[3], "n5", 70, 80, 2, FM_SPAN_REGION);
    check_span(s.p, &spans.list.data[4], "f3", 65, 80, 1, 0);
    check_span(s.p, &spans.list.data[5], "f1", 0, 200, 0, 0);
    fm_vec_release(&spans.list);
    struct marks marks = marks_of(s.t);
    assert_int_equal(marks.list.len, 5);
    check_mark(s.p, &marks.list.data[0], FM_MARK_EXCEPTION, "n9", 25, 25);
    assert_string_equal(fm_profile_text(s.p, s.p->functions.data[marks.list.data[0].func].name),
                        "f2");
    check_mark(s.p, &marks.list.data[1], FM_MARK_COLLECTION, "", 40, 50);
    assert_int_equal(marks.list.data[1].value, 2);
    assert_int_equal(marks.list.data[1].other, 17);
    check_mark(s.p, &marks.list.data[2], FM_MARK_REGION, "n5", 70, 90);
    check_mark(s.p, &marks.list.data[3], FM_MARK_COUNTER, "n6", 100, 100);
    assert_true(marks.list.data[3].value == 0x4008000000000000u); /* 3.0 */
    check_mark(s.p, &marks.list.data[4], FM_MARK_TASK, "n7", 120, 140);
    fm_vec_release(&marks.list);
    size_t count;
    fm_trace_pack_nodes(s.pack, &count);
    assert_int_equal(count, 6); /* root, f1, f2, f3, n4, n5: collections are no contexts */
    free(w);
    stage_free(&s);
}

/* Events are lost between 40 and 60; f1 (since 0) goes on, f2 (since 10) does not, f3 began at 50. */
static void test_loss(void **state)
{
    (void)state;
    struct stage s;
    stage_begin(&s);
    struct trace_words *w = writer(&s, 1);
    words_begin(w, T0);
    words_call(w, T0, 1);
    words_call(w, T0 + 10, 2);
    words_escape(w, T0 + 60, FM_TRACE_LOST, (const uint32_t[]){ 5, 0, T0 + 40, 0, T0 + 60, 0 }, 6);
    words_escape(w, T0 + 60, FM_TRACE_OPEN, (const uint32_t[]){ 1, T0, 0 }, 3);
    words_escape(w, T0 + 60, FM_TRACE_OPEN, (const uint32_t[]){ 3, T0 + 50, 0 }, 3);
    words_return(w, T0 + 80);
    words_return(w, T0 + 100);
    words_hand_over(w);
    stage_end(&s, 0);
    assert_int_equal(fm_timeline_lane(s.t, 0)->lost, 5);
    struct spans spans = spans_of(s.t, 0, 0, UINT64_MAX);
    assert_int_equal(spans.list.len, 4);
    check_span(s.p, &spans.list.data[0], "f2", 10, 40, 1, 0);
    check_span(s.p, &spans.list.data[1], "f1", 0, 40, 0, 0);
    check_span(s.p, &spans.list.data[2], "f3", 50, 80, 1, FM_SPAN_BEGAN_BEFORE);
    check_span(s.p, &spans.list.data[3], "f1", 0, 100, 0, FM_SPAN_BEGAN_BEFORE);
    fm_vec_release(&spans.list);
    struct marks marks = marks_of(s.t);
    assert_int_equal(marks.list.len, 1);
    check_mark(s.p, &marks.list.data[0], FM_MARK_LOST, "", 40, 60);
    assert_int_equal(marks.list.data[0].value, 5);
    fm_vec_release(&marks.list);
    size_t count;
    const struct fm_trace_node *nodes = fm_trace_pack_nodes(s.pack, &count);
    assert_int_equal(count, 4);
    assert_int_equal(nodes[1].calls, 1);
    assert_int_equal(nodes[1].total_ticks, 100); /* once, the lost time included */
    assert_int_equal(nodes[3].total_ticks, 30);
    free(w);
    stage_free(&s);
}

/* A region, a collection and a step of a task are open when events are lost, from 40 to 60. The region's
 * end comes; what else ends then began within, and nobody wonders. */
static void test_loss_within(void **state)
{
    (void)state;
    struct stage s;
    stage_begin(&s);
    struct trace_words *w = writer(&s, 1);
    words_begin(w, T0);
    words_call(w, T0, 1);
    words_escape(w, T0 + 10, FM_TRACE_REGION_BEGIN, (const uint32_t[]){ 4 }, 1);
    words_escape(w, T0 + 20, FM_TRACE_TASK_STEP, (const uint32_t[]){ 1 }, 1);
    words_escape(w, T0 + 30, FM_TRACE_GC_BEGIN, (const uint32_t[]){ 2 }, 1);
    words_escape(w, T0 + 60, FM_TRACE_LOST, (const uint32_t[]){ 5, 0, T0 + 40, 0, T0 + 60, 0 }, 6);
    words_escape(w, T0 + 60, FM_TRACE_OPEN, (const uint32_t[]){ 1, T0, 0 }, 3);
    words_escape(w, T0 + 70, FM_TRACE_GC_END, (const uint32_t[]){ 17, 0 }, 2);
    words_escape(w, T0 + 75, FM_TRACE_REGION_END, (const uint32_t[]){ 5 }, 1);
    words_escape(w, T0 + 80, FM_TRACE_REGION_END, (const uint32_t[]){ 4 }, 1);
    words_return(w, T0 + 100);
    words_hand_over(w);
    stage_end(&s, 0);
    struct marks marks = marks_of(s.t);
    assert_int_equal(marks.list.len, 3);
    check_mark(s.p, &marks.list.data[0], FM_MARK_REGION, "n4", 10, 80);
    check_mark(s.p, &marks.list.data[1], FM_MARK_TASK, "", 20, 40);
    check_mark(s.p, &marks.list.data[2], FM_MARK_LOST, "", 40, 60);
    fm_vec_release(&marks.list);
    assert_int_equal(fm_trace_pack_broken(s.pack), 0);
    free(w);
    stage_free(&s);
}

/* Killed right after a call began: f2 has no length, and is there, as f1 is. */
static void test_last_instant(void **state)
{
    (void)state;
    struct stage s;
    stage_begin(&s);
    struct trace_words *w = writer(&s, 1);
    words_begin(w, T0);
    words_call(w, T0, 1);
    words_call(w, T0 + 50, 2);
    words_hand_over(w);
    stage_end(&s, 0);
    assert_int_equal(fm_timeline_length_ns(s.t), 50);
    struct spans spans = spans_of(s.t, 0, 0, 50);
    assert_int_equal(spans.list.len, 2);
    check_span(s.p, &spans.list.data[0], "f2", 50, 50, 1, FM_SPAN_OPEN);
    check_span(s.p, &spans.list.data[1], "f1", 0, 50, 0, FM_SPAN_OPEN);
    fm_vec_release(&spans.list);
    spans = spans_of(s.t, 0, 0, 49);
    assert_int_equal(spans.list.len, 1);
    check_span(s.p, &spans.list.data[0], "f1", 0, 49, 0, FM_SPAN_CUT);
    fm_vec_release(&spans.list);
    free(w);
    stage_free(&s);
}

/* What is lost behind the last words of two threads, of which one never had room for any. */
static void test_loss_at_last(void **state)
{
    (void)state;
    struct stage s;
    stage_begin(&s);
    struct trace_words *w = writer(&s, 1);
    words_begin(w, T0);
    words_call(w, T0, 1);
    words_call(w, T0 + 10, 2);
    words_return(w, T0 + 20);
    words_hand_over(w);
    fm_trace_pack_lost(s.pack, 1, 1, T0 + 90, 7);
    fm_trace_pack_lost(s.pack, 2, 2, T0 + 50, 3);
    fm_trace_pack_lost(s.pack, 3, 3, UINT64_MAX, 3); /* no time at all */
    stage_end(&s, T0 + 100);
    assert_int_equal(fm_timeline_lanes(s.t), 2);
    assert_int_equal(fm_timeline_lane(s.t, 0)->lost, 7);
    assert_int_equal(fm_timeline_lane(s.t, 0)->end_ns - fm_timeline_lane(s.t, 0)->begin_ns, 90);
    assert_int_equal(fm_timeline_lane(s.t, 1)->lost, 3);
    struct spans spans = spans_of(s.t, 0, 0, UINT64_MAX);
    assert_int_equal(spans.list.len, 2);
    check_span(s.p, &spans.list.data[1], "f1", 0, 20, 0, FM_SPAN_OPEN);
    fm_vec_release(&spans.list);
    struct marks marks = marks_of(s.t);
    assert_int_equal(marks.list.len, 2);
    check_mark(s.p, &marks.list.data[0], FM_MARK_LOST, "", 20, 90);
    check_mark(s.p, &marks.list.data[1], FM_MARK_LOST, "", 50, 50);
    fm_vec_release(&marks.list);
    free(w);
    stage_free(&s);
}

/* What a killed process left: a call without its function, one that was never defined, a record without
 * its end. Whatever follows is not believed. */
static void test_tail(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct stage s;
        stage_begin(&s);
        struct trace_words *w = writer(&s, 1);
        words_begin(w, T0);
        words_call(w, T0, 1);
        words_call(w, T0 + 10, 2);
        w->words[w->count++] =
            (uint16_t)(kind == 2 ? FM_TRACE_ESCAPE | 5 << 2 : FM_TRACE_CALL | 5 << 2);
        if (kind)
            w->words[w->count++] = kind == 1 ? 41 : FM_TRACE_RAISE | 200 << 8;
        fm_trace_pack_defined(s.pack, 40, 10);
        words_hand_over(w);
        assert_int_equal(fm_trace_pack_broken(s.pack), 1);
        stage_end(&s, T0 + 30);
        struct spans spans = spans_of(s.t, 0, 0, UINT64_MAX);
        assert_int_equal(spans.list.len, 2);
        check_span(s.p, &spans.list.data[0], "f2", 10, 30, 1, FM_SPAN_OPEN);
        check_span(s.p, &spans.list.data[1], "f1", 0, 30, 0, FM_SPAN_OPEN);
        fm_vec_release(&spans.list);
        free(w);
        stage_free(&s);
    }
}

/* ---- ranges, durations, groups ---- */

static void test_durations(void **state)
{
    (void)state;
    struct stage s;
    struct naive n = { 0 };
    stage_begin(&s);
    struct trace_words *w = writer(&s, 1);
    make_random(&n, w, 500000, 4);
    stage_end(&s, 0);
    for (uint32_t id = 0; id < 40; id += 13) { /* 0: any */
        struct fm_durations d, slow;
        uint32_t func = id ? trace_function(s.p, id) : FM_NONE;
        uint64_t calls = 0, sum = 0, longest = 0;
        for (size_t i = 0; i < n.spans.len; i++) {
            const struct naive_span *span = &n.spans.data[i];
            if (id && span->func != id)
                continue;
            calls++;
            sum += span->end - span->begin;
            longest = span->end - span->begin > longest ? span->end - span->begin : longest;
        }
        assert_int_equal(fm_timeline_durations(s.t, func, 0, UINT64_MAX, 5, &d, NULL), 0);
        assert_int_equal(d.calls, calls);
        assert_int_equal(d.sum_ns, sum);
        assert_int_equal(d.max_ns, longest);
        assert_int_equal(d.longest.len, 5);
        for (unsigned b = 0; b < 128; b++)
            calls -= d.buckets[b];
        assert_int_equal(calls, 0);
        assert_int_equal(fm_timeline_slowest(s.t, func, 0, UINT64_MAX, 5, &slow, NULL), 0);
        for (size_t i = 0; i < 5; i++) {
            assert_int_equal(slow.longest.data[i].span.begin_ns, d.longest.data[i].span.begin_ns);
            assert_int_equal(slow.longest.data[i].span.end_ns, d.longest.data[i].span.end_ns);
        }
        fm_durations_release(&d);
        fm_durations_release(&slow);
    }
    fm_vec_release(&n.spans);
    free(w);
    stage_free(&s);
}

/* A run of another machine, which was started 1,000 s before this one: what is 5 s after the start of that one and
 * 12:00:05 there, and 12:00:07 here, is two seconds later, whatever the clocks since the start say. */
static void test_clocks_of_runs(void **state)
{
    (void)state;
    const uint64_t s_ns = 1000000000;
    struct stage s;
    stage_begin(&s);
    struct trace_words *w = writer(&s, 1);
    words_begin(w, T0);
    words_call(w, T0 + 100, 1);
    words_return(w, T0 + 300);
    words_hand_over(w);
    stage_end(&s, 0);
    uint64_t alone_ns = fm_timeline_start_ns(s.t);
    assert_int_equal(fm_timeline_runs(s.t), 1);
    assert_int_equal(fm_timeline_uncertain_ns(s.t), 0);
    fm_timeline_free(s.t);
    s.p->processes.data[0].start_ns = 7 * s_ns; /* 12:00:07 */
    s.p->processes.data[0].start_real_ns = 2000 * s_ns;
    for (unsigned i = 0; i < 3; i++) { /* 12:00:05, three processes, as their clocks have it */
        struct fm_process other = s.p->processes.data[0];
        other.run = 1;
        other.start_ns = 1005 * s_ns;
        other.start_real_ns = 1998 * s_ns + 3000 * i;
        fm_vec_push(&s.p->processes, other);
    }
    s.t = fm_timeline_open(s.p, NULL);
    assert_int_equal(fm_timeline_runs(s.t), 2);
    const struct fm_run_clock *here = fm_timeline_run(s.t, 0), *there = fm_timeline_run(s.t, 1);
    assert_true(here->known && there->known);
    assert_int_equal(there->shift_ns, 0);
    assert_int_equal(here->shift_ns, 1000 * s_ns - 3000); /* the median of three */
    assert_int_equal(there->uncertain_ns, 3000);          /* half of what they differ by */
    assert_int_equal(here->uncertain_ns, 1000);           /* no less than to read two clocks */
    assert_int_equal(fm_timeline_uncertain_ns(s.t), 3000);
    assert_int_equal(fm_timeline_start_ns(s.t), alone_ns + 1000 * s_ns - 3000);
    struct spans spans = { 0 };
    assert_int_equal(fm_timeline_spans(s.t, 0, 0, UINT64_MAX, keep, &spans, NULL), 0);
    assert_int_equal(spans.list.len, 1);
    assert_int_equal(spans.list.data[0].end_ns - spans.list.data[0].begin_ns, 200);
    fm_vec_release(&spans.list);
    fm_timeline_free(s.t);
    /* One machine: its own clock is better than the time of day. */
    for (unsigned i = 1; i < 4; i++)
        s.p->processes.data[i].start_real_ns = s.p->processes.data[i].start_ns + 1993 * s_ns + 5000;
    s.t = fm_timeline_open(s.p, NULL);
    assert_int_equal(fm_timeline_run(s.t, 0)->shift_ns + fm_timeline_run(s.t, 1)->shift_ns, 0);
    assert_int_equal(fm_timeline_uncertain_ns(s.t), 5000);
    assert_int_equal(fm_timeline_start_ns(s.t), alone_ns);
    free(w);
    stage_free(&s);
}

/* Ten requests f1 that call f2, f3; every third calls f2 twice; one of them is slow. */
static void test_groups(void **state)
{
    (void)state;
    struct stage s;
    struct fm_call_groups groups;
    uint64_t now = T0;
    stage_begin(&s);
    struct trace_words *w = writer(&s, 1);
    words_begin(w, T0);
    for (unsigned i = 0; i < 10; i++) {
        words_call(w, now, 1);
        for (unsigned k = 0; k < (i % 3 ? 1 : 2); k++) {
            words_call(w, now += 10, 2);
            words_return(w, now += 10);
        }
        words_call(w, now += 10, 3);
        words_return(w, now += i == 7 ? 5000 : 10);
        words_return(w, now += 10);
        now += 100;
    }
    words_hand_over(w);
    stage_end(&s, 0);
    uint32_t func = trace_function(s.p, 1);
    assert_int_equal(fm_timeline_groups(s.t, func, 0, UINT64_MAX, &groups, NULL), 0);
    assert_int_equal(groups.groups.len, 2);
    const struct fm_call_group *one = &groups.groups.data[0], *two = one + 1;
    assert_int_equal(one->calls, 6);
    assert_int_equal(one->spans, 2);
    assert_int_equal(one->min_ns, 50);
    assert_int_equal(one->max_ns, 5040);
    assert_int_equal(one->sum_ns, 5 * 50 + 5040);
    assert_int_equal(one->slowest[0].span.end_ns - one->slowest[0].span.begin_ns, 5040);
    assert_int_equal(one->slowest[1].span.end_ns - one->slowest[1].span.begin_ns, 50);
    assert_int_equal(two->calls, 4);
    assert_int_equal(two->spans, 3);
    assert_int_equal(two->min_ns, 70);
    assert_int_equal(two->max_ns, 70);
    /* The slowest of the first waits in f3 for 5,000 and not for (5 × 10 + 5,000) ÷ 6; f1 and f2 as ever. */
    struct fm_group_differences differ[2];
    assert_int_equal(fm_timeline_differences(s.t, func, 0, UINT64_MAX, &groups, 2, differ, NULL),
                     0);
    assert_int_equal(differ[0].slowest.len, 1);
    assert_int_equal(differ[0].slowest.data[0].func, trace_function(s.p, 3));
    assert_true(differ[0].slowest.data[0].self_ns == 5000);
    assert_true(fabs(differ[0].slowest.data[0].usual_self_ns - 5050 / 6.0) < 1e-6);
    assert_int_equal(differ[0].shape.len, 0);
    /* The others call f2 twice, all of them for as long. */
    assert_int_equal(differ[1].slowest.len, 0);
    assert_int_equal(differ[1].shape.len, 1);
    assert_int_equal(differ[1].shape.data[0].func, trace_function(s.p, 2));
    assert_true(differ[1].shape.data[0].spans == 2 && differ[1].shape.data[0].usual_spans == 1);
    fm_group_differences_release(&differ[0]);
    fm_group_differences_release(&differ[1]);
    fm_call_groups_release(&groups);
    free(w);
    stage_free(&s);
}

/* A packer that goes on where another was killed makes the same tree and the same picture. */
static void test_reopen(void **state)
{
    (void)state;
    struct stage one, two;
    struct naive n = { 0 };
    stage_begin(&one);
    struct trace_words *w = writer(&one, 1);
    make_random(&n, w, 300000, 5);
    fm_trace_pack_flush(one.pack);
    stage_begin(&two);
    fm_trace_pack_free(two.pack);
    two.pack = fm_trace_pack_new(0, trace_sink, &two.packed);
    for (size_t i = 0; i < one.packed.blocks.len; i++) {
        const struct fm_trace_block *block = &one.packed.blocks.data[i];
        uint8_t *bytes = malloc(block->bytes);
        assert_int_equal(pread(one.packed.fd, bytes, block->bytes, (off_t)block->at), block->bytes);
        assert_true(fm_trace_pack_reopen(two.pack, block->type, bytes, block->bytes));
        free(bytes);
    }
    stage_end(&one, 0);
    stage_end(&two, 0);
    size_t counts[2];
    const struct fm_trace_node *a = fm_trace_pack_nodes(one.pack, &counts[0]);
    const struct fm_trace_node *b = fm_trace_pack_nodes(two.pack, &counts[1]);
    assert_int_equal(counts[0], counts[1]);
    for (size_t i = 0; i < counts[0]; i++) {
        assert_int_equal(a[i].func, b[i].func);
        assert_int_equal(a[i].parent, b[i].parent);
        assert_int_equal(a[i].calls, b[i].calls);
        assert_int_equal(a[i].total_ticks, b[i].total_ticks);
        assert_int_equal(a[i].min_ticks, b[i].min_ticks);
        assert_int_equal(a[i].max_ticks, b[i].max_ticks);
    }
    compare_spans(&n, &two, 0, UINT64_MAX);
    check_cells(&n, &two, 1000000);
    check_cells(&n, &two, 100000000);
    fm_vec_release(&n.spans);
    free(w);
    stage_free(&one);
    stage_free(&two);
}

/* Lanes out of begins and ends, at times since 1970: f1 [0, 100) calls f2 [10, 30) in region r [5, 40). */
static void test_build(void **state)
{
    (void)state;
    const uint64_t begin = 1700000000123456789u;
    struct fm_profile *p = fm_profile_new();
    struct fm_trace_build *b = fm_trace_build_new();
    uint32_t process = fm_profile_process(p, &(struct fm_process){ .pid = 1 });
    fm_profile_thread(p, &(struct fm_thread){ .process = process, .tid = 1 });
    uint32_t thread = fm_profile_thread(p, &(struct fm_thread){ .process = process, .tid = 2 });
    uint32_t f1 = trace_function(p, 1), f2 = trace_function(p, 2);
    struct fm_function region = { .kind = FM_FUNCTION_REGION, .name = fm_profile_string(p, "r") };
    region.qualname = region.name;
    uint32_t r = fm_profile_function(p, &region);
    fm_trace_build_end(b, thread, begin); /* of nothing */
    fm_trace_build_begin(b, p, thread, begin, f1);
    fm_trace_build_begin(b, p, thread, begin + 5, r);
    fm_trace_build_begin(b, p, thread, begin + 10, f2);
    fm_trace_build_end(b, thread, begin + 30);
    fm_trace_build_end(b, thread, begin + 40);
    fm_trace_build_mark(b, thread,
                        &(struct fm_mark){ .begin_ns = begin + 50,
                                           .end_ns = begin + 50,
                                           .kind = FM_MARK_INSTANT,
                                           .name = fm_profile_string(p, "here"),
                                           .func = f1 });
    fm_trace_build_end(b, thread, begin + 100);
    fm_trace_build_finish(b, p, process);
    fm_trace_build_free(b);
    struct fm_timeline *t = fm_timeline_open(p, NULL);
    assert_non_null(t);
    assert_int_equal(fm_timeline_lanes(t), 1);
    assert_int_equal(fm_timeline_lane(t, 0)->thread, thread);
    assert_true(fm_timeline_start_ns(t) == begin);
    struct spans spans = spans_of(t, 0, 0, UINT64_MAX);
    assert_int_equal(spans.list.len, 3);
    check_span(p, &spans.list.data[0], "f2", 10, 30, 2, 0);
    check_span(p, &spans.list.data[1], "r", 5, 40, 1, FM_SPAN_REGION);
    check_span(p, &spans.list.data[2], "f1", 0, 100, 0, 0);
    fm_vec_release(&spans.list);
    struct marks marks = marks_of(t);
    assert_int_equal(marks.list.len, 1);
    check_mark(p, &marks.list.data[0], FM_MARK_INSTANT, "here", 50, 50);
    assert_int_equal(marks.list.data[0].func, f1);
    fm_vec_release(&marks.list);
    fm_timeline_free(t);
    fm_profile_free(p);
}

/* ---- ranges ---- */

/* Numbers of ranges that follow one another add up to those of all, context by context. */
static void test_ranges_add_up(void **state)
{
    (void)state;
    struct stage s;
    struct naive n = { 0 };
    static const enum fm_metric metrics[] = { FM_METRIC_CALLS, FM_METRIC_TOTAL };
    stage_begin(&s);
    struct trace_words *w = writer(&s, 1);
    make_random(&n, w, 30000, 6);
    stage_end(&s, 0);
    uint64_t length = fm_timeline_length_ns(s.t),
             cuts[] = { 0, length / 5, length / 2, UINT64_MAX };
    int64_t whole[2] = { 0 }, parts[2] = { 0 };
    for (int i = -1; i < 3; i++) {
        struct fm_profile *p =
            fm_timeline_profile(s.t, i < 0 ? 0 : cuts[i], i < 0 ? UINT64_MAX : cuts[i + 1], NULL);
        assert_non_null(p);
        for (uint32_t node = 0; node < p->nodes.len; node++)
            for (int m = 0; m < 2; m++)
                *(i < 0 ? &whole[m] : &parts[m]) += fm_profile_value(p, metrics[m], node);
        fm_profile_free(p);
    }
    assert_int_equal(whole[0], parts[0]);
    assert_int_equal(whole[1], parts[1]);
    assert_int_equal(whole[0], n.spans.len);
    uint64_t sum = 0;
    for (size_t i = 0; i < n.spans.len; i++) {
        sum += n.spans.data[i].end - n.spans.data[i].begin;
        if (!n.spans.data[i].depth) /* once more, in the root */
            sum += n.spans.data[i].end - n.spans.data[i].begin;
    }
    assert_int_equal(whole[1], sum);
    fm_vec_release(&n.spans);
    free(w);
    stage_free(&s);
}

/* ---- threads and processes ---- */

struct handovers {
    FM_VEC(struct fm_handover) list;
};

static bool keep_handover(void *context, const struct fm_handover *handover)
{
    struct handovers *handovers = context;
    fm_vec_push(&handovers->list, *handover);
    return true;
}

static void check_waits(const struct stage *s, uint64_t from, uint64_t to, size_t lane,
                        struct fm_gil_wait want)
{
    struct fm_gil_waits waits = { 0 };
    assert_int_equal(fm_timeline_gil_waits(s->t, from, to, &waits, NULL), 0);
    const struct fm_gil_wait *found = &waits.list.data[lane];
    assert_int_equal(waits.list.len, 2);
    assert_int_equal(found->known, want.known);
    assert_int_equal(found->turns, want.turns);
    assert_int_equal(found->waits, want.waits);
    assert_int_equal(found->least_ns, want.least_ns);
    assert_int_equal(found->most_ns, want.most_ns);
    assert_int_equal(found->longest_ns, want.longest_ns);
    assert_int_equal(found->longest_at_ns, want.longest_at_ns);
    fm_vec_release(&waits.list);
}

/* Thread 1 has events at 0, 10, 60, 70, thread 2 at 20, 30, 50: the lock goes over between 10 and 20, and back
 * between 50 and 60. */
static void test_handovers(void **state)
{
    (void)state;
    struct stage s;
    struct handovers h = { 0 };
    stage_begin(&s);
    struct trace_words *one = writer(&s, 1), *two = writer(&s, 2);
    words_begin(one, T0);
    words_call(one, T0, 1);
    words_call(one, T0 + 10, 2);
    words_return(one, T0 + 60);
    words_return(one, T0 + 70);
    words_begin(two, T0 + 20);
    words_call(two, T0 + 20, 3);
    words_call(two, T0 + 30, 4);
    words_return(two, T0 + 50);
    words_return(two, T0 + 50);
    words_hand_over(one);
    words_hand_over(two);
    stage_end(&s, 0);
    s.p->processes.data[0].c_calls = true;
    assert_int_equal(fm_timeline_handovers(s.t, 0, 0, UINT64_MAX, keep_handover, &h, NULL), 0);
    assert_int_equal(h.list.len, 2);
    assert_int_equal(h.list.data[0].from_lane, 0);
    assert_int_equal(h.list.data[0].to_lane, 1);
    assert_int_equal(h.list.data[0].after_ns, 10);
    assert_int_equal(h.list.data[0].before_ns, 20);
    assert_true(h.list.data[0].idle_since_ns == UINT64_MAX);
    assert_int_equal(h.list.data[0].taken_ns, 0);
    assert_int_equal(h.list.data[1].from_lane, 1);
    assert_int_equal(h.list.data[1].after_ns, 50);
    assert_int_equal(h.list.data[1].before_ns, 60);
    assert_int_equal(h.list.data[1].idle_since_ns, 10);
    assert_int_equal(h.list.data[1].taken_ns, 20);
    assert_int_equal(h.list.data[0].func, FM_NONE); /* it had not begun */
    assert_int_equal(s.p->functions.data[h.list.data[1].func].line, 2);
    assert_int_equal(h.list.data[1].depth, 1);
    fm_vec_release(&h.list);
    check_waits(&s, 0, UINT64_MAX, 0, (struct fm_gil_wait){ true, 1, 1, 50 - 20, 60 - 10, 50, 10 });
    check_waits(&s, 0, UINT64_MAX, 1, (struct fm_gil_wait){ .known = true, .turns = 1 });
    /* From 25 on: what lies before is not of it, and 30 is the first that is known of the other. */
    check_waits(&s, 25, UINT64_MAX, 0,
                (struct fm_gil_wait){ true, 1, 1, 50 - 30, 60 - 25, 35, 25 });
    check_waits(&s, 0, 60, 0, (struct fm_gil_wait){ .known = true });
    s.p->processes.data[0].c_calls = false;
    check_waits(&s, 0, UINT64_MAX, 0, (struct fm_gil_wait){ 0 });
    free(one);
    free(two);
    stage_free(&s);
}

/* Two threads, in turns: at 0 µs the first calls f2 from f1, at 1 it returns, at 2 the other calls f4 from f3, at 3
 * that returns, and so on. Whoever gets a turn had its last event 3 µs before, and 1 µs lies between the two of the
 * other. So many that they do not fit into one piece. */
static void test_many_handovers(void **state)
{
    (void)state;
    const uint64_t turns = 350000;
    struct stage s;
    stage_begin(&s);
    struct trace_words *one = writer(&s, 1), *two = writer(&s, 2);
    words_begin(one, T0 - 1000);
    words_call(one, T0 - 1000, 1);
    words_begin(two, T0 - 900);
    words_call(two, T0 - 900, 3);
    for (uint64_t i = 0; i < turns; i++) {
        words_call(one, T0 + 4000 * i, 2);
        words_return(one, T0 + 4000 * i + 1000);
        words_call(two, T0 + 4000 * i + 2000, 4);
        words_return(two, T0 + 4000 * i + 3000);
    }
    words_hand_over(one);
    words_hand_over(two);
    stage_end(&s, 0);
    s.p->processes.data[0].c_calls = true;
    /* The first turn of each is another: at −1 µs and −0.9 µs both began. */
    check_waits(&s, 0, UINT64_MAX, 0,
                (struct fm_gil_wait){ true, turns, turns, 1000 * (turns - 1),
                                      3000 * (turns - 1) + 1000, 3000, 1000 + 1000 });
    check_waits(&s, 0, UINT64_MAX, 1,
                (struct fm_gil_wait){ true, turns + 1, turns, 1000 * turns,
                                      3000 * (turns - 1) + 2900, 3000, 1000 + 3000 });
    free(one);
    free(two);
    stage_free(&s);
}

static bool keep_flow(void *context, const struct fm_flow *flow)
{
    struct fm_flow *kept = context;
    assert_int_equal(kept->to_ns, 0); /* there is one */
    *kept = *flow;
    return true;
}

/* Process 7 forks process 8 on its second thread at 40, which begins at 45. */
static void test_flows(void **state)
{
    (void)state;
    struct stage s, child;
    struct fm_flow flow = { 0 };
    stage_begin(&s);
    struct trace_words *one = writer(&s, 1), *two = writer(&s, 2);
    words_begin(one, T0);
    words_call(one, T0, 1);
    words_begin(two, T0 + 20);
    words_call(two, T0 + 20, 3);
    words_escape(two, T0 + 40, FM_TRACE_FORK, (const uint32_t[]){ 8 }, 1);
    words_return(two, T0 + 50);
    words_hand_over(one);
    words_hand_over(two);
    stage_end(&s, 0);
    fm_timeline_free(s.t);
    stage_begin(&child);
    struct trace_words *w = writer(&child, 1);
    words_begin(w, T0 + 45);
    words_call(w, T0 + 45, 1);
    words_hand_over(w);
    fm_trace_pack_end(child.pack, T0 + 60);
    uint32_t process = trace_add(s.p, child.pack, &child.packed, 8, 40, 10);
    s.p->processes.data[process].parent_pid = 7;
    s.t = fm_timeline_open(s.p, NULL);
    assert_int_equal(fm_timeline_flows(s.t, keep_flow, &flow, NULL), 0);
    assert_int_equal(flow.from_lane, 1);
    assert_int_equal(flow.to_lane, 2);
    assert_int_equal(flow.from_ns, 40);
    assert_int_equal(flow.to_ns, 45);
    free(one);
    free(two);
    free(w);
    fm_trace_pack_free(child.pack);
    stage_free(&s);
}

/* ---- damage ---- */

static bool count_span(void *context, const struct fm_time_span *span)
{
    uint64_t *spans = context;
    assert_true(span->end_ns >= span->begin_ns);
    (*spans)++;
    return true;
}

/* A file that is cut off anywhere, or has wrong bytes, still opens, and what is whole is there. */
static void test_damage(void **state)
{
    (void)state;
    struct stage s;
    struct naive n = { 0 };
    size_t len;
    stage_begin(&s);
    struct trace_words *w = writer(&s, 1);
    make_random(&n, w, 400000, 7);
    stage_end(&s, 0);
    int fd = fx_file();
    assert_int_equal(fm_file_save(s.p, fd, NULL), 0);
    uint8_t *bytes = fx_file_bytes(fd, &len);
    uint64_t most = 0;
    for (unsigned i = 1; i <= 40; i++) {
        size_t end = len / 40 * i;
        if (i % 2) { /* cut off; else some bytes are wrong, and the end is there */
            for (unsigned k = 0; k < 5; k++)
                bytes[chance(&n) % (len - 100) + 100] ^= 1 << k;
            end = len;
        }
        struct fm_profile *p = fm_file_load(bytes, end, "x", NULL);
        struct fm_timeline *t = p ? fm_timeline_open(p, NULL) : NULL;
        uint64_t spans = 0;
        for (size_t lane = 0; t && lane < fm_timeline_lanes(t); lane++) {
            struct fm_cells cells = { 0 };
            fm_timeline_spans(t, lane, 0, UINT64_MAX, count_span, &spans, NULL);
            fm_timeline_cells(t, lane, 0, UINT64_MAX, 1000000, &cells, NULL);
            fm_cells_release(&cells);
        }
        most = spans > most ? spans : most;
        fm_timeline_free(t);
        fm_profile_free(p);
    }
    assert_true(most > 100000); /* of 200,000: some stretches are whole */
    free(bytes);
    fm_vec_release(&n.spans);
    free(w);
    stage_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handovers),      cmocka_unit_test(test_many_handovers),
        cmocka_unit_test(test_flows),          cmocka_unit_test(test_damage),
        cmocka_unit_test(test_ranges_add_up),  cmocka_unit_test(test_build),
        cmocka_unit_test(test_marks),          cmocka_unit_test(test_loss),
        cmocka_unit_test(test_loss_within),    cmocka_unit_test(test_loss_at_last),
        cmocka_unit_test(test_last_instant),   cmocka_unit_test(test_tail),
        cmocka_unit_test(test_clocks_of_runs), cmocka_unit_test(test_durations),
        cmocka_unit_test(test_groups),         cmocka_unit_test(test_reopen),
        cmocka_unit_test(test_calls),          cmocka_unit_test(test_generator),
        cmocka_unit_test(test_random_spans),   cmocka_unit_test(test_random_cells),
        cmocka_unit_test(test_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
