/* Heap stores (model/live/live_heap.h): what is in one, and what a damaged one may do. */
#include "fixture.h"

#include <stdlib.h>

#include "heap_store.h"
#include "record/model/live/live_heap.h"

static struct fm_profile *load(const void *bytes, size_t len)
{
    struct fm_profile *p = fm_profile_new();
    struct fm_live_ending ending = { .end_ns = 9000, .exit_status = 0 };
    struct fm_error err = FM_ERROR_INIT;
    if (fm_live_heap_load(p, &(struct fm_heap_files){ .bytes = bytes, .len = len }, NULL, &ending,
                          &err) == 0) {
        for (size_t i = 0; i < p->nodes.len; i++) {
            assert_true(p->nodes.data[i].parent == FM_NONE || p->nodes.data[i].parent < i);
            assert_true(p->nodes.data[i].func < p->functions.len);
            assert_true(p->nodes.data[i].thread < p->threads.len);
        }
        return p;
    }
    fm_profile_free(p);
    return NULL;
}

static uint32_t node_named(const struct fm_profile *p, const char *name)
{
    for (uint32_t i = 0; i < p->nodes.len; i++)
        if (strcmp(fm_profile_text(p, p->functions.data[p->nodes.data[i].func].name), name) == 0)
            return i;
    return FM_NONE;
}

static void test_what_is_in_it(void **state)
{
    (void)state;
    fm_autobuffer s = FM_BUFFER_INIT;
    hs_sample(&s);
    struct fm_profile *p = load(s.data, s.len);
    assert_non_null(p);
    assert_int_equal(p->processes.len, 1);
    assert_true(p->processes.data[0].memory && p->processes.data[0].memory_python);
    assert_int_equal(p->processes.data[0].pid, 77);
    uint32_t main_ = node_named(p, "main"), load_ = node_named(p, "load");
    uint32_t list = node_named(p, "list"), before = node_named(p, FM_HEAP_BEFORE);
    assert_int_equal(p->nodes.data[main_].line, 2);
    assert_int_equal(p->nodes.data[load_].line, 12);
    assert_int_equal(p->nodes.data[load_].parent, main_);
    assert_int_equal(p->nodes.data[list].parent, load_);
    assert_int_equal(p->functions.data[p->nodes.data[list].func].flags, FM_FUNCTION_TYPE);
    /* Touched since the peak: what was alive then; else what is alive now was. */
    assert_int_equal(fm_profile_value(p, FM_METRIC_PEAK, load_), 2000);
    assert_int_equal(fm_profile_value(p, FM_METRIC_LEAKED, load_), 1000);
    assert_int_equal(fm_profile_value(p, FM_METRIC_LEAKED_BLOCKS, load_), 1);
    assert_int_equal(fm_profile_value(p, FM_METRIC_ALLOCATED, load_), 3000);
    assert_int_equal(fm_profile_value(p, FM_METRIC_TEMPORARY, load_), 1000);
    assert_int_equal(fm_profile_value(p, FM_METRIC_PEAK, list), 500);
    assert_int_equal(fm_profile_value(p, FM_METRIC_PEAK, before), 100);
    /* Both worlds count in one bucket. */
    assert_int_equal(p->memory.counts.len, 2);
    assert_int_equal(p->memory.counts.data[0].blocks, 5);
    assert_int_equal(p->memory.counts.data[1].bytes, 3500);
    assert_int_equal(p->notes.data[0].count, 7);
    fm_profile_free(p);
}

/* Sampled blocks: three quarters of what was there at the peak of the other half, and a quarter of what
 * was at that of its own; errors likewise. */
static void test_sampled(void **state)
{
    (void)state;
    fm_autobuffer s = FM_BUFFER_INIT;
    hs_sampled(&s);
    struct fm_profile *p = load(s.data, s.len);
    uint32_t load_ = node_named(p, "load"), list = node_named(p, "list");
    assert_int_equal(p->processes.data[0].memory_sample_bytes, 65536);
    assert_true(fm_profile_has_estimates(p));
    assert_int_equal(fm_profile_value(p, FM_METRIC_PEAK, load_), 1500 + 400);
    assert_int_equal(fm_profile_value(p, FM_METRIC_PEAK_BLOCKS, load_), 3);
    assert_int_equal(fm_profile_value(p, FM_METRIC_PEAK_ERROR, load_), 300 + 200);
    assert_int_equal(fm_profile_value(p, FM_METRIC_LEAKED, load_), 1000);
    assert_int_equal(fm_profile_value(p, FM_METRIC_LEAKED_ERROR, load_), 100);
    assert_int_equal(fm_profile_value(p, FM_METRIC_ALLOCATED_ERROR, load_), 900);
    assert_int_equal(fm_profile_value(p, FM_METRIC_TEMPORARY_ERROR, load_), 300);
    assert_int_equal(fm_profile_value(p, FM_METRIC_PEAK, list), 500); /* not touched since */
    struct fm_heap_count *last = &p->memory.counts.data[p->memory.counts.len - 1];
    assert_int_equal(last->bucket, FM_HEAP_KIND_MMAP);
    assert_int_equal(last->bytes, 8192);
    assert_int_equal(last->blocks, 1);
    assert_int_equal(fm_error_bytes(900, 0), 2 * 16 * 30);
    assert_int_equal(fm_error_bytes(-1, 0), 0);
    assert_int_equal(fm_error_bytes(INT64_MAX, 0), (int64_t)3037000499 * 32);
    /* Three samples more, of 64 KiB: √(33 + 3) · 4096 with 33 samples; what is exact has none. */
    assert_int_equal(fm_error_bytes(33 << 24, 64 << 10), 2 * 16 * 6 * 4096);
    assert_int_equal(fm_error_bytes(0, 64 << 10), 0);
    assert_true(fm_error_bytes(1, UINT64_MAX) > 0);
    fm_profile_free(p);
}

/* What the sample had when all processes of a run together had most, as the run's file says. */
static void test_together(void **state)
{
    (void)state;
    static const struct {
        struct fm_heap_run run;
        uint32_t left;
        int64_t left_peak;
        uint32_t member;
        int64_t load, list, before;
    } cases[] = {
        /* Touched since: as noted; else what is alive. */
        { { .members = 2, .epoch = 3, .peak = 9000 }, 0, 0, 2, 1500, 500, 100 },
        { { .members = 2, .epoch = 3, .rising = 1, .peak = 9000 }, 0, 0, 2, 1000, 500, 100 },
        /* It left before the peak, or after. */
        { { .members = 2, .epoch = 3, .peak = 9000 }, FM_HEAP_LEFT, 8000, 2, 0, 0, 0 },
        { { .members = 2, .epoch = 3, .peak = 9000 }, FM_HEAP_LEFT, 9000, 2, 1500, 500, 100 },
        /* The peak was that of the first, as long as it was alone. */
        { { .members = 2, .epoch = 3, .peak = 9000, .alone_peak = 9000 }, 0, 0, 1, 2000, 500, 100 },
        { { .members = 2, .epoch = 3, .peak = 9000, .alone_peak = 9000 }, 0, 0, 2, 0, 0, 0 },
        /* It was alone. */
        { { .members = 1, .epoch = 3, .peak = 9000 }, 0, 0, 1, 0, 0, 0 },
    };
    for (size_t i = 0; i < FM_COUNT(cases); i++) {
        fm_autobuffer s = FM_BUFFER_INIT;
        hs_sample(&s);
        struct fm_heap_header h;
        memcpy(&h, s.data, sizeof h);
        h.left = cases[i].left;
        h.left_peak = cases[i].left_peak;
        h.member = cases[i].member;
        memcpy(s.data, &h, sizeof h);
        struct fm_profile *p = fm_profile_new();
        struct fm_error err = FM_ERROR_INIT;
        struct fm_live_ending ending = { 0 };
        struct fm_heap_files files = { .bytes = s.data, .len = s.len };
        assert_int_equal(fm_live_heap_load(p, &files, &cases[i].run, &ending, &err), 0);
        assert_int_equal(fm_profile_value(p, FM_METRIC_TOGETHER, node_named(p, "load")),
                         cases[i].load);
        assert_int_equal(fm_profile_value(p, FM_METRIC_TOGETHER, node_named(p, "list")),
                         cases[i].list);
        assert_int_equal(fm_profile_value(p, FM_METRIC_TOGETHER, node_named(p, FM_HEAP_BEFORE)),
                         cases[i].before);
        fm_profile_free(p);
    }
}

/* Pieces in the second file, and the header, too. */
static void test_two_files(void **state)
{
    (void)state;
    for (int header_in_second = 0; header_in_second < 2; header_in_second++) {
        fm_autobuffer s = FM_BUFFER_INIT;
        hs_sample(&s);
        struct fm_heap_header h;
        memcpy(&h, s.data, sizeof h);
        for (uint32_t i = 0; i < h.piece_count; i++)
            h.pieces[i].file = 1;
        memcpy(s.data, &h, sizeof h);
        struct fm_profile *p = fm_profile_new();
        struct fm_error err = FM_ERROR_INIT;
        struct fm_heap_files files = { s.data, FM_HEAP_HEADER_BYTES, s.data, s.len };
        if (header_in_second)
            files.len = 0;
        struct fm_live_ending ending = { 0 };
        assert_int_equal(fm_live_heap_load(p, &files, NULL, &ending, &err), 0);
        assert_int_equal(fm_profile_value(p, FM_METRIC_PEAK, node_named(p, "load")), 2000);
        fm_profile_free(p);
    }
}

static void test_rising_at_the_end(void **state)
{
    (void)state;
    fm_autobuffer s = FM_BUFFER_INIT;
    hs_sample(&s);
    ((struct fm_heap_header *)s.data)->rising = 1;
    struct fm_profile *p = load(s.data, s.len);
    assert_int_equal(fm_profile_value(p, FM_METRIC_PEAK, node_named(p, "load")), 1000);
    fm_profile_free(p);
}

static void test_a_process_that_is_known(void **state)
{
    (void)state;
    fm_autobuffer s = FM_BUFFER_INIT;
    hs_sample(&s);
    struct fm_profile *p = fm_profile_new();
    struct fm_error err = FM_ERROR_INIT;
    fm_profile_process(p, &(struct fm_process){ .pid = 77, .start_ns = 500 }); /* before exec */
    fm_profile_process(p, &(struct fm_process){ .pid = 77, .start_ns = 1500 });
    fm_profile_process(p, &(struct fm_process){ .pid = 78, .start_ns = 1500 });
    struct fm_heap_files files = { .bytes = s.data, .len = s.len };
    assert_int_equal(fm_live_heap_load(p, &files, NULL, &(struct fm_live_ending){ 0 }, &err), 0);
    assert_int_equal(p->processes.len, 3);
    assert_true(!p->processes.data[0].memory && p->processes.data[1].memory);
    fm_profile_free(p);
}

static void test_cut_everywhere(void **state)
{
    (void)state;
    fm_autobuffer s = FM_BUFFER_INIT;
    hs_sample(&s);
    for (size_t len = 0; len < s.len; len += len < FM_HEAP_HEADER_BYTES - 64 ? 509 : 1) {
        char *copy = malloc(len + 1); /* so that a read beyond it is seen */
        memcpy(copy, s.data, len);
        fm_profile_free(load(copy, len));
        free(copy);
    }
}

/* Every word of the store in turn is something else. */
static void test_hostile_words(void **state)
{
    (void)state;
    static const uint32_t words[] = { 0, 1, 0x7fffffff, 0xffffffff, 1u << 26 };
    fm_autobuffer s = FM_BUFFER_INIT;
    hs_sample(&s);
    for (size_t at = 8; at + 4 <= s.len; at += 4) {
        if (at > 4096 && at < FM_HEAP_HEADER_BYTES)
            continue; /* pieces that are not in use */
        uint32_t right;
        memcpy(&right, s.data + at, 4);
        for (size_t i = 0; i < FM_COUNT(words); i++) {
            memcpy(s.data + at, &words[i], 4);
            fm_profile_free(load(s.data, s.len));
        }
        memcpy(s.data + at, &right, 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_in_it),     cmocka_unit_test(test_sampled),
        cmocka_unit_test(test_together),          cmocka_unit_test(test_two_files),
        cmocka_unit_test(test_rising_at_the_end), cmocka_unit_test(test_a_process_that_is_known),
        cmocka_unit_test(test_cut_everywhere),    cmocka_unit_test(test_hostile_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
