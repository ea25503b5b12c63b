/* Memory over time (model/history.h, watch/memory/slicer.h): every instant by itself, thinned out, through
 * a file, and damaged. */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "heap_store.h"
#include "record/capture/format.h"
#include "record/capture/live_slices.h"
#include "record/model/derive/edit.h"
#include "record/model/file/file.h"
#include "record/model/file/recorder.h"
#include "record/model/live/live_heap.h"
#include "scratch_file.h"
#include "watch/memory/slicer.h"

#define MS 1000000u

/* Two processes of one run. Of the first, `a` has 100 bytes from 10 ms on, `b` 50 from 20 ms and 80 from
 * 30 ms on, when `a` has 40 only; it ends at 40 ms. Of the second `c` has 7 from 25 ms to its end at 60. */
static struct fm_profile *drawn(void)
{
    struct fm_profile *p = fm_profile_new();
    uint32_t first = fx_thread(p, 10), second = fx_thread(p, 20);
    uint32_t a = fx_node(p, first, "a", 1, 1), b = fx_node(p, a, "b", 1, 1);
    uint32_t c = fx_node(p, second, "c", 1, 1);
    struct fm_history one = { .process = 0, .begin_ns = 0, .end_ns = 40 * MS };
    struct fm_history two = { .process = 1, .begin_ns = 22 * MS, .end_ns = 60 * MS };
    static const struct {
        unsigned ms;
        struct fm_history_change changes[2];
        int count;
    } slices[] = { { 10, { { 0, 100, 2 } }, 1 },
                   { 20, { { 1, 50, 1 } }, 1 },
                   { 25, { { 0 } }, 0 },
                   { 30, { { 0, -60, -1 }, { 1, 30, 1 } }, 2 } };
    fm_vec_push(&one.contexts, a);
    fm_vec_push(&one.contexts, b);
    fm_vec_push(&two.contexts, c);
    for (size_t i = 0; i < FM_COUNT(slices); i++) {
        fm_slices_begin(&one.slices, slices[i].ms * MS);
        for (int k = 0; k < slices[i].count; k++)
            fm_slices_change(&one.slices, &slices[i].changes[k]);
        fm_slices_end(&one.slices);
    }
    fm_slices_begin(&two.slices, 25 * MS);
    fm_slices_change(&two.slices, &(struct fm_history_change){ 0, 7, 1 });
    fm_slices_end(&two.slices);
    fm_vec_push(&p->memory.histories, one);
    fm_vec_push(&p->memory.histories, two);
    return p;
}

static uint32_t node_of(const struct fm_profile *p, const char *name)
{
    for (uint32_t i = 0; i < p->nodes.len; i++)
        if (strcmp(fm_profile_text(p, p->functions.data[p->nodes.data[i].func].name), name) == 0)
            return i;
    return FM_NONE;
}

static int64_t then(const struct fm_profile *p, const char *name)
{
    return fm_profile_value(p, FM_METRIC_THEN, node_of(p, name));
}

static void expect(struct fm_profile *p)
{
    static const struct {
        double ms, shown_ms;
        int64_t a, b, c;
        uint32_t processes;
    } at[] = { { 0, 0, 0, 0, 0, 1 },      { 9.9, 0, 0, 0, 0, 1 },    { 10, 10, 100, 0, 0, 1 },
               { 21, 20, 100, 50, 0, 1 }, { 24, 20, 100, 50, 0, 2 }, { 26, 25, 100, 50, 7, 2 },
               { 39, 25, 40, 80, 7, 2 },  { 41, 25, 0, 0, 7, 1 },    { 60, 25, 0, 0, 7, 1 } };
    struct fm_shown from, to;
    for (size_t i = 0; i < FM_COUNT(at); i++) {
        struct fm_moment moment = { .value = at[i].ms * MS };
        assert_true(fm_history_show(p, NULL, &moment, &from, &to));
        assert_int_equal(then(p, "a"), at[i].a);
        assert_int_equal(then(p, "b"), at[i].b);
        assert_int_equal(then(p, "c"), at[i].c);
        assert_int_equal(to.processes, at[i].processes);
        assert_true(to.asked_ns == at[i].ms * MS);
        /* The second one's first look is at 25 ms: before that it is known to have had nothing when it
         * began, at 22 ms. */
        assert_true(to.shown_ns == at[i].shown_ms * MS);
    }
    struct fm_moment half = { true, 50 }, third = { true, 100.0 / 3 };
    assert_true(fm_history_show(p, &third, &half, &from, &to)); /* 20 to 30 ms */
    assert_int_equal(then(p, "a"), -60);
    assert_int_equal(then(p, "b"), 30);
    assert_int_equal(then(p, "c"), 7);
    assert_int_equal(fm_profile_value(p, FM_METRIC_THEN_BLOCKS, node_of(p, "a")), -1);
    assert_false(fm_history_show(p, NULL, &(struct fm_moment){ .value = 60.1 * MS }, &from, &to));
}

static void test_every_instant(void **state)
{
    (void)state;
    struct fm_profile *p = drawn();
    expect(p);
    fm_profile_free(p);
}

static struct fm_profile *through_file(const struct fm_profile *p, size_t *ret_len)
{
    int fd = fx_file();
    assert_int_equal(fm_file_save(p, fd, NULL), 0);
    fm_autofree uint8_t *bytes = fx_file_bytes(fd, ret_len);
    struct fm_profile *read = fm_file_load(bytes, *ret_len, "x", NULL);
    assert_non_null(read);
    return read;
}

static void test_through_a_file(void **state)
{
    (void)state;
    size_t len;
    struct fm_profile *p = drawn(), *read = through_file(p, &len),
                      *again = through_file(read, &len);
    assert_int_equal(fx_note(again, "damaged"), 0);
    expect(again);
    fm_profile_free(p);
    fm_profile_free(read);
    fm_profile_free(again);
}

/* Two files as one: each run by its own beginning. */
static void test_merged(void **state)
{
    (void)state;
    struct fm_profile *sum = fm_profile_new(), *p = drawn();
    struct fm_shown from, to;
    fm_profile_merge(sum, p);
    fm_profile_merge(sum, p);
    assert_int_equal(sum->memory.histories.len, 4);
    assert_true(fm_history_show(sum, NULL, &(struct fm_moment){ .value = 35 * MS }, &from, &to));
    int64_t all = 0;
    for (uint32_t i = 0; i < sum->nodes.len; i++)
        all += fm_profile_value(sum, FM_METRIC_THEN, i);
    assert_int_equal(all, 2 * (40 + 80 + 7));
    fm_profile_free(p);
    fm_profile_free(sum);
}

/* Many profiles through one recorder: rows of one follow those of another in one block. */
static void test_recorded_together(void **state)
{
    (void)state;
    struct fm_profile *p = drawn();
    for (uint64_t i = 1; i <= 3; i++)
        fm_vec_push(&p->memory.points,
                    ((struct fm_memory_point){ .process = 0, .at_ns = i * 7 * MS, .heap = 1 }));
    int fd = fx_file();
    struct fm_recorder *r = fm_recorder_new(fd, true);
    fm_recorder_profile(r, p);
    fm_recorder_profile(r, p);
    assert_int_equal(fm_recorder_end(r, NULL), 0);
    fm_recorder_free(r);
    size_t len;
    fm_autofree uint8_t *bytes = fx_file_bytes(fd, &len);
    struct fm_profile *read = fm_file_load(bytes, len, "x", NULL);
    struct fm_shown from, to;
    assert_int_equal(fx_note(read, "damaged"), 0);
    assert_int_equal(read->memory.points.len, 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(read->memory.points.data[i].at_ns, (i % 3 + 1) * 7 * MS);
    assert_int_equal(read->memory.histories.len, 4);
    assert_true(fm_history_show(read, NULL, &(struct fm_moment){ .value = 35 * MS }, &from, &to));
    int64_t all = 0;
    for (uint32_t i = 0; i < read->nodes.len; i++)
        all += fm_profile_value(read, FM_METRIC_THEN, i);
    assert_int_equal(all, 2 * (40 + 80 + 7));
    fm_profile_free(read);
    fm_profile_free(p);
}

/* A slice that stays is what it was; between those that stay nothing is invented. */
static void test_thinned_out(void **state)
{
    (void)state;
    enum { SLICES = 4000, CONTEXTS = 30 };
    static int64_t truth[SLICES][CONTEXTS];
    struct fm_slices s = { 0 };
    int64_t alive[CONTEXTS] = { 0 };
    uint32_t seed = 1;
    for (int i = 0; i < SLICES; i++) {
        fm_slices_begin(&s, (uint64_t)(i + 1) * MS);
        for (uint32_t c = 0; c < CONTEXTS; c++) {
            seed = seed * 1664525u + 1013904223u;
            if (seed >> 30)
                continue;
            int64_t step = (int64_t)(seed >> 8 & 0xffff) - 0x7000;
            fm_slices_change(&s, &(struct fm_history_change){ c, step, 1 });
            alive[c] += step;
        }
        fm_slices_end(&s);
        memcpy(truth[i], alive, sizeof alive);
    }
    for (int k = 0; k < 5; k++)
        fm_slices_thin(&s);
    assert_int_equal(s.count, SLICES / 32);
    struct fm_slices_walk w = fm_slices_walk(s.bytes.data, s.bytes.len);
    struct fm_history_change change;
    int64_t sum[CONTEXTS] = { 0 };
    uint64_t at_ns;
    size_t count = 0;
    for (; fm_slices_next(&w, &at_ns); count++) {
        while (fm_slices_next_change(&w, &change))
            sum[change.context] += change.bytes;
        assert_int_equal(at_ns % (32 * MS), 0);
        assert_memory_equal(sum, truth[at_ns / MS - 1], sizeof sum);
    }
    assert_int_equal(count, s.count);
    fm_slices_release(&s);
}

/* ---- taking them ---- */

static size_t file_bytes(const char *path, uint8_t **ret)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    *ret = fm_malloc((size_t)st.st_size + 1);
    assert_int_equal(pread(fd, *ret, (size_t)st.st_size, 0), st.st_size);
    close(fd);
    return (size_t)st.st_size;
}

/* The store of heap_store.h, whose accounts 2 and 3 change all the time, for so many looks; then through
 * the reader. Returns the size of the file of slices. */
static size_t slice_store(unsigned looks)
{
    char folder[] = "/tmp/fathom-slices-XXXXXX";
    assert_non_null(mkdtemp(folder));
    fm_autobuffer store = FM_BUFFER_INIT;
    fm_autobuffer path = FM_BUFFER_INIT;
    hs_sample(&store);
    struct fm_heap_header h;
    memcpy(&h, store.data, sizeof h);
    h.start_ns = 1;
    int fd = fx_file();
    struct fm_slicer *slicer = fm_slicer_new(folder, 77, 0);
    struct fm_heap_account accounts[4];
    memcpy(accounts, store.data + h.pieces[1].at, sizeof accounts);
    int64_t *truth = fm_calloc(looks + 1, sizeof *truth);
    uint32_t seed = 1;
    for (unsigned i = 1; i <= looks; i++) {
        seed = seed * 1664525u + 1013904223u;
        accounts[2].live = truth[i] = (int64_t)(seed >> 8);
        accounts[2].live_blocks = (int32_t)(i % 100);
        h.worlds[0].kind_blocks[0]++;
        memcpy(store.data, &h, sizeof h);
        memcpy(store.data + h.pieces[1].at, accounts, sizeof accounts);
        assert_int_equal(pwrite(fd, store.data, store.len, 0), store.len);
        uint64_t now_ns = (uint64_t)i * FM_SLICE_INTERVAL_NS;
        if (fm_slicer_is_due(slicer, now_ns))
            fm_slicer_take(slicer, fd, now_ns);
    }
    fm_slicer_free(slicer);
    close(fd);
    fm_buffer_addf(&path, "%s/77.0.slices", folder);
    uint8_t *slices;
    size_t len = file_bytes(path.data, &slices);
    struct fm_heap_files files = {
        .bytes = store.data, .len = store.len, .slices = slices, .slices_len = len
    };
    struct fm_live_ending ending = { .end_ns = (looks + 1ull) * FM_SLICE_INTERVAL_NS };
    struct fm_profile *p = fm_profile_new();
    assert_int_equal(fm_live_heap_load(p, &files, NULL, &ending, NULL), 0);
    assert_int_equal(p->memory.histories.len, 1);
    assert_true(p->memory.histories.data[0].slices.count <= FM_SLICES_MAX + 1);
    for (unsigned i = 1; i <= looks + 1; i += 37) {
        struct fm_moment moment = { .value = (double)((uint64_t)i * FM_SLICE_INTERVAL_NS) - 1000 };
        struct fm_shown from, shown;
        assert_true(fm_history_show(p, NULL, &moment, &from, &shown));
        unsigned look = (unsigned)((shown.shown_ns + 1) / FM_SLICE_INTERVAL_NS + .5);
        assert_true(look < i && i - look <= 2 * (looks / FM_SLICES_MAX + 1) + 1);
        assert_int_equal(then(p, "load"), truth[look]);
    }
    fm_profile_free(p);
    free(slices);
    free(truth);
    unlink(path.data);
    rmdir(folder);
    return len;
}

static void test_long_runs_stay_small(void **state)
{
    (void)state;
    size_t short_run = slice_store(3000), long_run = slice_store(6000), longer = slice_store(12000);
    assert_true(long_run < short_run * 1.1 && longer < long_run * 1.1);
}

static void test_last_slice_is_what_the_store_has(void **state)
{
    (void)state;
    fm_autobuffer s = FM_BUFFER_INIT;
    hs_sample(&s);
    struct fm_slices_header header = { FM_SLICES_MAGIC, FM_SLICES_VERSION, 0 };
    struct fm_heap_files files = {
        .bytes = s.data, .len = s.len, .slices = &header, .slices_len = sizeof header
    };
    struct fm_live_ending ending = { .end_ns = 9000 };
    struct fm_profile *p = fm_profile_new();
    struct fm_shown from, to;
    assert_int_equal(fm_live_heap_load(p, &files, NULL, &ending, NULL), 0);
    assert_true(fm_history_show(p, NULL, &(struct fm_moment){ true, 100 }, &from, &to));
    for (uint32_t i = 0; i < p->nodes.len; i++)
        assert_int_equal(fm_profile_value(p, FM_METRIC_THEN, i),
                         fm_profile_value(p, FM_METRIC_LEAKED, i));
    assert_int_equal(then(p, "load"), 1000);
    fm_profile_free(p);
}

/* ---- damage ---- */

/* Any byte of the bytes of slices, or the end of them, may be anything. */
static void test_damaged_slices(void **state)
{
    (void)state;
    fm_autobuffer s = FM_BUFFER_INIT, slices = FM_BUFFER_INIT;
    struct fm_slices_header header = { FM_SLICES_MAGIC, FM_SLICES_VERSION, 0 };
    struct fm_profile *sample = drawn();
    const struct fm_buffer *some = &sample->memory.histories.data[0].slices.bytes;
    hs_sample(&s);
    for (size_t i = 0; i < some->len; i++)
        for (int bit = 0; bit <= 8; bit++) {
            fm_buffer_clear(&slices);
            fm_buffer_add(&slices, &header, sizeof header);
            fm_buffer_add(&slices, some->data, bit == 8 ? i : some->len);
            if (bit < 8)
                slices.data[sizeof header + i] ^= (char)(1 << bit);
            struct fm_heap_files files = {
                .bytes = s.data, .len = s.len, .slices = slices.data, .slices_len = slices.len
            };
            struct fm_live_ending ending = { .end_ns = 90 * MS };
            struct fm_profile *p = fm_profile_new();
            struct fm_shown from, to;
            assert_int_equal(fm_live_heap_load(p, &files, NULL, &ending, NULL), 0);
            fm_history_show(p, NULL, &(struct fm_moment){ true, 100 }, &from, &to);
            assert_int_equal(then(p, "load"), 1000); /* the last is the store's, whatever came */
            fm_profile_free(p);
        }
    fm_profile_free(sample);
}

/* A block of a recording that is lost takes the whole history with it: the rest would be wrong. */
static void test_lost_blocks(void **state)
{
    (void)state;
    static const uint8_t sync[] = { 'F', 'B', 'L', 'K' };
    struct fm_profile *p = drawn();
    size_t len;
    int fd = fx_file();
    assert_int_equal(fm_file_save_plain(p, fd, NULL), 0);
    fm_autofree uint8_t *bytes = fx_file_bytes(fd, &len);
    unsigned damaged = 0;
    for (size_t i = 0; i + FM_BLOCK_HEADER_BYTES < len; i++) {
        if (memcmp(bytes + i, sync, 4) != 0 || bytes[i + 4] < FM_BLOCK_HISTORIES ||
            bytes[i + 4] > FM_BLOCK_HISTORY_CHANGES)
            continue;
        bytes[i + FM_BLOCK_HEADER_BYTES] ^= 1;
        struct fm_profile *read = fm_file_load(bytes, len, "x", NULL);
        bytes[i + FM_BLOCK_HEADER_BYTES] ^= 1;
        assert_non_null(read);
        assert_int_equal(read->memory.histories.len, 0);
        assert_true(fx_note(read, "damaged") > 0);
        fm_profile_free(read);
        damaged++;
    }
    assert_int_equal(damaged, 3);
    fm_profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_instant),
        cmocka_unit_test(test_through_a_file),
        cmocka_unit_test(test_merged),
        cmocka_unit_test(test_recorded_together),
        cmocka_unit_test(test_thinned_out),
        cmocka_unit_test(test_long_runs_stay_small),
        cmocka_unit_test(test_last_slice_is_what_the_store_has),
        cmocka_unit_test(test_damaged_slices),
        cmocka_unit_test(test_lost_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
