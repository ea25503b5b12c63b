/* What a packer tells that begins in the middle (--window): words are made up, answers computed by hand. */
#include "fixture.h"

#include "record/capture/format.h"
#include "record/model/trace/lanes/timeline.h"
#include "trace_profile.h"
#include "trace_words.h"

#define T0 1000000000u /* a tick is a nanosecond, and time begins at a second */

struct kept_block {
    uint16_t type;
    size_t at, len;
};

/* The payloads of a packer, and its state. */
struct past {
    struct fm_buffer bytes, state;
    FM_VEC(struct kept_block) blocks;
};

static void keep_block(void *context, uint16_t type, const void *payload, size_t bytes)
{
    struct past *past = context;
    fm_vec_push(&past->blocks, ((struct kept_block){ type, past->bytes.len, bytes }));
    fm_buffer_add(&past->bytes, payload, bytes);
}

static struct fm_trace_pack *new_pack(fm_trace_sink *sink, void *context)
{
    struct fm_trace_pack *pack = fm_trace_pack_new(0, sink, context);
    fm_trace_pack_clock(pack, T0, T0);
    fm_trace_pack_clock(pack, 2 * T0, 2 * T0);
    return pack;
}

static struct trace_words *writer(struct fm_trace_pack *pack, uint32_t thread)
{
    struct trace_words *w = calloc(1, sizeof *w);
    w->pack = pack;
    w->thread = w->tid = thread;
    words_begin(w, T0);
    return w;
}

static void hand_over(struct trace_words **w, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        words_hand_over(w[i]);
}

/*
 * Thread 1: f1 [0 … calls f2 [10 … and waits; at 900 f2 returns, at 950 f1.
 * Thread 2: f3 [0 … calls f4 [100, 150), f4 [390, 420), f4 [500, 530); a region n1 [300 …, whose call f5 [290, 310) is
 *           over when it ends, at 910; at 920 f6 begins.
 * Thread 3: f5 [20, 60), and ends.
 * What was emitted until 200 is forgotten; the state is told at 600.
 */
static void make_past(struct past *past, struct trace_words **w)
{
    struct fm_trace_pack *pack = new_pack(keep_block, past);
    for (uint32_t i = 0; i < 3; i++)
        w[i] = writer(pack, i + 1);
    words_call(w[0], T0, 1);
    words_call(w[0], T0 + 10, 2);
    words_call(w[1], T0, 3);
    words_call(w[1], T0 + 100, 4);
    words_return(w[1], T0 + 150);
    words_call(w[2], T0 + 20, 5);
    words_return(w[2], T0 + 60);
    hand_over(w, 3);
    fm_trace_pack_thread_end(pack, 3);
    fm_trace_pack_flush(pack);
    past->blocks.len = 0;
    words_call(w[1], T0 + 290, 5);
    words_escape(w[1], T0 + 300, FM_TRACE_REGION_BEGIN, (const uint32_t[]){ 1 }, 1);
    words_return(w[1], T0 + 310);
    words_call(w[1], T0 + 390, 4);
    words_return(w[1], T0 + 420);
    words_call(w[1], T0 + 500, 4);
    words_return(w[1], T0 + 530);
    hand_over(w, 2);
    fm_trace_pack_flush(pack);
    fm_trace_pack_tell_state(pack, &past->state);
    assert_int_equal(fm_trace_pack_broken(pack), 0);
    fm_trace_pack_free(pack);
}

static void go_on(const struct past *past, struct fm_trace_pack *pack, struct trace_words **w)
{
    struct fm_cursor state = fm_cursor_over(past->state.data, past->state.len);
    for (size_t i = 0; i < past->blocks.len; i++) {
        const struct kept_block *block = &past->blocks.data[i];
        assert_true(
            fm_trace_pack_reopen(pack, block->type, past->bytes.data + block->at, block->len));
    }
    assert_true(fm_trace_pack_take_state(pack, &state));
    w[0]->pack = w[1]->pack = pack;
    words_return(w[0], T0 + 900);
    words_return(w[0], T0 + 950);
    words_escape(w[1], T0 + 910, FM_TRACE_REGION_END, (const uint32_t[]){ 1 }, 1);
    words_call(w[1], T0 + 920, 6);
    hand_over(w, 2);
}

static void release(struct past *past, struct trace_words **w)
{
    for (unsigned i = 0; i < 3; i++)
        free(w[i]);
    fm_buffer_release(&past->bytes);
    fm_buffer_release(&past->state);
    fm_vec_release(&past->blocks);
}

/* The number of the thread of a node; 0: it is of before what is told. */
static uint32_t thread_of(const struct fm_trace_pack *pack, const struct fm_trace_node *node)
{
    size_t count;
    const struct fm_trace_node *nodes = fm_trace_pack_nodes(pack, &count);
    const struct fm_trace_thread *threads = fm_trace_pack_threads(pack, &count);
    while (node->parent != UINT32_MAX)
        node = &nodes[node->parent];
    return node->thread < count ? threads[node->thread].thread : 0;
}

static const struct fm_trace_node *find_node(const struct fm_trace_pack *pack, uint32_t thread,
                                             uint32_t func)
{
    size_t count;
    const struct fm_trace_node *nodes = fm_trace_pack_nodes(pack, &count), *found = NULL;
    for (size_t i = 0; i < count; i++)
        if (nodes[i].func == func && thread_of(pack, &nodes[i]) == thread) {
            assert_null(found);
            found = &nodes[i];
        }
    return found;
}

static void check_node(const struct fm_trace_pack *pack, uint32_t thread, uint32_t func,
                       uint64_t calls, uint64_t total, uint64_t longest)
{
    const struct fm_trace_node *node = find_node(pack, thread, func);
    assert_non_null(node);
    assert_int_equal(node->calls, calls);
    assert_int_equal(node->total_ticks, total);
    assert_int_equal(node->max_ticks, longest);
}

/* Numbers are those between 400 and 1000: of calls that were open at 400 the rest, and they count for nobody. */
static void test_numbers(void **state)
{
    (void)state;
    struct past past = { 0 };
    struct trace_words *w[3];
    struct trace_packed packed = trace_packed_new();
    make_past(&past, w);
    struct fm_trace_pack *pack = new_pack(trace_sink, &packed);
    fm_trace_pack_cut(pack, T0 + 400);
    go_on(&past, pack, w);
    fm_trace_pack_end(pack, T0 + 1000);
    assert_int_equal(fm_trace_pack_broken(pack), 0);
    check_node(pack, 1, 1, 0, 550, 0);
    check_node(pack, 1, 2, 0, 500, 0);
    check_node(pack, 2, 3, 0, 600, 0);
    check_node(pack, 2, 4, 1, 20 + 30, 30);
    check_node(pack, 2, 6, 1, 80, 0);
    assert_null(find_node(pack, 2, 5));
    assert_null(find_node(pack, 3, 5));
    fm_trace_pack_free(pack);
    fm_vec_release(&packed.blocks);
    close(packed.fd);
    release(&past, w);
}

struct seen {
    FM_VEC(struct fm_time_span) spans;
    FM_VEC(struct fm_mark) marks;
};

static bool see_span(void *context, const struct fm_time_span *span)
{
    fm_vec_push(&((struct seen *)context)->spans, *span);
    return true;
}

static bool see_mark(void *context, const struct fm_mark *mark)
{
    fm_vec_push(&((struct seen *)context)->marks, *mark);
    return true;
}

static void check_span(const struct fm_profile *p, const struct fm_time_span *span,
                       const char *name, uint64_t begin, uint64_t end, uint32_t flags)
{
    assert_string_equal(fm_profile_text(p, p->functions.data[span->func].name), name);
    assert_int_equal(span->begin_ns, begin);
    assert_int_equal(span->end_ns, end);
    assert_int_equal(span->flags, flags);
}

/* Both lanes begin at 400, which is 0 here; what was open then says so. The region is there as a whole. */
static void test_timeline(void **state)
{
    (void)state;
    struct past past = { 0 };
    struct trace_words *w[3];
    struct seen seen = { 0 };
    struct trace_packed packed = trace_packed_new();
    make_past(&past, w);
    struct fm_trace_pack *pack = new_pack(trace_sink, &packed);
    fm_trace_pack_cut(pack, T0 + 400);
    go_on(&past, pack, w);
    fm_trace_pack_end(pack, T0 + 1000);
    struct fm_profile *p = fm_profile_new();
    trace_add(p, pack, &packed, 7, 40, 10);
    struct fm_timeline *t = fm_timeline_open(p, NULL);
    assert_int_equal(fm_timeline_lanes(t), 2);
    size_t first = fm_timeline_lane(t, 0)->events == 2 ? 0 : 1;
    assert_int_equal(fm_timeline_start_ns(t), T0 + 400);
    fm_timeline_spans(t, first, 0, UINT64_MAX, see_span, &seen, NULL);
    assert_int_equal(seen.spans.len, 2);
    check_span(p, &seen.spans.data[0], "f2", 0, 500, FM_SPAN_BEGAN_BEFORE);
    check_span(p, &seen.spans.data[1], "f1", 0, 550, FM_SPAN_BEGAN_BEFORE);
    seen.spans.len = 0;
    fm_timeline_spans(t, 1 - first, 0, UINT64_MAX, see_span, &seen, NULL);
    assert_int_equal(seen.spans.len, 4);
    check_span(p, &seen.spans.data[0], "f4", 0, 20, FM_SPAN_BEGAN_BEFORE);
    check_span(p, &seen.spans.data[1], "f4", 100, 130, 0);
    check_span(p, &seen.spans.data[2], "f6", 520, 600, FM_SPAN_OPEN);
    check_span(p, &seen.spans.data[3], "f3", 0, 600, FM_SPAN_BEGAN_BEFORE | FM_SPAN_OPEN);
    fm_timeline_marks(t, FM_NONE, 0, UINT64_MAX, see_mark, &seen, NULL);
    assert_int_equal(seen.marks.len, 1);
    assert_int_equal(seen.marks.data[0].kind, FM_MARK_REGION);
    assert_int_equal(seen.marks.data[0].end_ns, 510);
    fm_vec_release(&seen.spans);
    fm_vec_release(&seen.marks);
    fm_timeline_free(t);
    fm_profile_free(p);
    fm_trace_pack_free(pack);
    release(&past, w);
}

/* What is read while threads go on ends at one instant: the return at 950 is later. */
static void test_until(void **state)
{
    (void)state;
    struct past past = { 0 };
    struct trace_words *w[3];
    struct trace_packed packed = trace_packed_new();
    make_past(&past, w);
    struct fm_trace_pack *pack = new_pack(trace_sink, &packed);
    fm_trace_pack_cut(pack, T0 + 400);
    fm_trace_pack_until(pack, T0 + 915);
    go_on(&past, pack, w);
    fm_trace_pack_end(pack, T0 + 915);
    assert_int_equal(fm_trace_pack_broken(pack), 0);
    check_node(pack, 1, 1, 0, 515, 0);
    check_node(pack, 1, 2, 0, 500, 0);
    check_node(pack, 2, 3, 0, 515, 0);
    assert_null(find_node(pack, 2, 6));
    fm_trace_pack_free(pack);
    fm_vec_release(&packed.blocks);
    close(packed.fd);
    release(&past, w);
}

/* A state that ends anywhere, or has wrong bytes, is refused or does no harm. */
static void test_damaged_state(void **state)
{
    (void)state;
    struct past past = { 0 };
    struct trace_words *w[3];
    make_past(&past, w);
    for (size_t len = 0; len < past.state.len; len++) {
        struct past none = { 0 };
        struct fm_trace_pack *pack = new_pack(keep_block, &none);
        struct fm_cursor cut = fm_cursor_over(past.state.data, len);
        assert_false(fm_trace_pack_take_state(pack, &cut));
        past.state.data[len] ^= 0x55;
        struct fm_cursor wrong = fm_cursor_over(past.state.data, past.state.len);
        fm_trace_pack_take_state(pack, &wrong);
        past.state.data[len] ^= 0x55;
        fm_trace_pack_end(pack, 0);
        fm_trace_pack_free(pack);
        fm_buffer_release(&none.bytes);
        fm_vec_release(&none.blocks);
    }
    release(&past, w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_timeline),
        cmocka_unit_test(test_until),
        cmocka_unit_test(test_damaged_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
