/* The recorder: what is appended is readable at every moment, and many profiles are one file. */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>

#include "record/capture/format.h"
#include "record/capture/reader.h"
#include "record/capture/rows.h"
#include "record/capture/writer.h"
#include "record/model/derive/edit.h"
#include "record/model/file/file.h"
#include "record/model/file/recorder.h"
#include "scratch_file.h"

/* ---- appending as things come ---- */

static uint32_t named(struct fm_recorder *r, const char *name)
{
    uint32_t string = fm_recorder_text(r, name);
    return fm_recorder_function(r, &(struct fm_function){ .name = string, .qualname = string });
}

static uint32_t begin_thread(struct fm_recorder *r, uint32_t pid)
{
    uint32_t process = fm_recorder_process(r, &(struct fm_process){ .pid = pid, .profiled = true });
    return fm_recorder_root(
        r, fm_recorder_thread(r, &(struct fm_thread){ .process = process, .tid = pid }));
}

static struct fm_profile *load_so_far(int fd)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    struct fm_profile *p = fm_file_load_fd(fd, (uint64_t)st.st_size, "x", FM_FILE_ALL, NULL);
    assert_non_null(p);
    assert_int_equal(fx_note(p, "damaged"), 0);
    return p;
}

static int64_t value_of(const struct fm_profile *p, enum fm_metric metric, const char *name)
{
    for (uint32_t i = 0; i < p->nodes.len; i++)
        if (strcmp(fm_profile_text(p, p->functions.data[p->nodes.data[i].func].name), name) == 0)
            return fm_profile_value(p, metric, i);
    return -1;
}

static void test_numbers_are_given_once(void **state)
{
    (void)state;
    int fd = fx_file();
    struct fm_recorder *r = fm_recorder_new(fd, true);
    uint32_t root = begin_thread(r, 7), f = named(r, "f"), g = named(r, "g");
    assert_int_equal(fm_recorder_string(r, "", 0), 0);
    assert_int_equal(fm_recorder_text(r, "f"), fm_recorder_text(r, "f"));
    assert_int_equal(named(r, "f"), f);
    assert_int_not_equal(f, g);
    uint32_t in_f = fm_recorder_context(r, root, f);
    assert_int_equal(fm_recorder_flush(r, NULL), 0);
    assert_int_equal(fm_recorder_context(r, root, f), in_f);
    assert_int_not_equal(fm_recorder_context(r, in_f, f), in_f);
    assert_int_not_equal(fm_recorder_context(r, root, g), in_f);
    assert_int_equal(fm_recorder_end(r, NULL), 0);
    fm_recorder_free(r);
    struct fm_profile *p = load_so_far(fd);
    assert_int_equal(p->nodes.len, 4);
    assert_int_equal(p->functions.len, 3); /* f, g and the root */
    assert_int_equal(p->notes.len, 0);
    fm_profile_free(p);
    close(fd);
}

/* A long recording of a small program: after every flush the file says what was counted so far. */
static void test_values_go_on(void **state)
{
    (void)state;
    int fd = fx_file();
    struct fm_recorder *r = fm_recorder_new(fd, true);
    uint32_t root = begin_thread(r, 7);
    uint32_t f = fm_recorder_context(r, root, named(r, "f"));
    for (int64_t second = 1; second <= 5; second++) {
        char name[16];
        snprintf(name, sizeof name, "new%d", (int)second);
        uint32_t fresh = fm_recorder_context(r, f, named(r, name));
        for (int64_t i = 1; i <= 10; i++) {
            fm_recorder_value(r, FM_METRIC_CALLS, f, 1);
            fm_recorder_value(r, FM_METRIC_MIN, f, 100 - second);
            fm_recorder_value(r, FM_METRIC_MAX, f, i * second);
            fm_recorder_value(r, FM_METRIC_TOTAL, fresh, second);
        }
        assert_int_equal(fm_recorder_flush(r, NULL), 0);
        struct fm_profile *p = load_so_far(fd);
        assert_true(fx_note(p, "cut-off"));
        assert_int_equal(p->nodes.len, 2 + second);
        assert_int_equal(value_of(p, FM_METRIC_CALLS, "f"), 10 * second);
        assert_int_equal(value_of(p, FM_METRIC_MIN, "f"), 100 - second);
        assert_int_equal(value_of(p, FM_METRIC_MAX, "f"), 10 * second);
        assert_int_equal(value_of(p, FM_METRIC_TOTAL, name), 10 * second);
        assert_int_equal(value_of(p, FM_METRIC_TOTAL, "new1"), 10);
        fm_profile_free(p);
    }
    assert_int_equal(fm_recorder_end(r, NULL), 0);
    fm_recorder_free(r);
    struct fm_profile *p = load_so_far(fd);
    assert_int_equal(fx_note(p, "cut-off"), 0);
    fm_profile_free(p);
    close(fd);
}

/* Values of contexts far apart, more of them than wait in memory, and without asking for a flush. */
static void test_many_late_values(void **state)
{
    (void)state;
    enum { CONTEXTS = 100000, ROUNDS = 4 };
    int fd = fx_file();
    struct fm_recorder *r = fm_recorder_new(fd, true);
    uint32_t root = begin_thread(r, 7), f = named(r, "f"), at = root;
    fm_autofree uint32_t *contexts = fm_malloc(CONTEXTS * sizeof *contexts);
    for (int i = 0; i < CONTEXTS; i++)
        at = contexts[i] =
            fm_recorder_context(r, i % 1000 ? at : root,
                                i % 1000 ? f
                                         : named(r, (char[]){ 'a', (char)('0' + i / 1000 % 10),
                                                              (char)('0' + i / 10000), 0 }));
    for (int round = 1; round <= ROUNDS; round++)
        for (int i = 0; i < CONTEXTS; i += round * 7)
            fm_recorder_value(r, FM_METRIC_TOTAL, contexts[i], i);
    assert_int_equal(fm_recorder_end(r, NULL), 0);
    fm_recorder_free(r);
    struct fm_profile *p = load_so_far(fd);
    assert_int_equal(p->notes.len, 0);
    assert_int_equal(p->nodes.len, CONTEXTS + 1);
    for (int i = 0; i < CONTEXTS; i++) {
        int64_t times = (i % 7 == 0) + (i % 14 == 0) + (i % 21 == 0) + (i % 28 == 0);
        assert_int_equal(fm_profile_value(p, FM_METRIC_TOTAL, contexts[i]), times * i);
    }
    fm_profile_free(p);
    close(fd);
}

/* Whatever is written, every prefix of it is a recording: no block names what comes later. */
static void test_every_prefix(void **state)
{
    (void)state;
    size_t len;
    int fd = fx_file();
    struct fm_recorder *r = fm_recorder_new(fd, true);
    uint32_t root = begin_thread(r, 7), context = root;
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i % 9);
        context = fm_recorder_context(r, i % 5 ? context : root, named(r, name));
        fm_recorder_value(r, FM_METRIC_CALLS, context, 1);
        fm_recorder_value(r, FM_METRIC_TOTAL, root, 1);
        if (i % 7 == 6)
            fm_recorder_flush(r, NULL);
        if (i == 20)
            context = root = begin_thread(r, 8);
        if (i == 30)
            fm_recorder_fact(r, "key", "value");
    }
    assert_int_equal(fm_recorder_end(r, NULL), 0);
    fm_recorder_free(r);
    uint8_t *bytes = fx_file_bytes(fd, &len);
    int64_t calls_before = 0;
    for (size_t cut = FM_FILE_HEADER_BYTES; cut < len; cut++) {
        fm_autofree uint8_t *part = fm_malloc(cut);
        memcpy(part, bytes, cut);
        struct fm_profile *p = fm_file_load(part, cut, "part", NULL);
        int64_t calls = 0;
        assert_int_equal(fx_note(p, "damaged"), 0);
        assert_true(fx_note(p, "cut-off"));
        for (uint32_t i = 0; i < p->nodes.len; i++)
            calls += fm_profile_value(p, FM_METRIC_CALLS, i);
        assert_true(calls >= calls_before && calls <= 40);
        calls_before = calls;
        fm_profile_free(p);
    }
    assert_int_equal(calls_before, 40);
    free(bytes);
}

static void test_no_room(void **state)
{
    (void)state;
    struct fm_error err = FM_ERROR_INIT;
    int full = open("/dev/full", O_WRONLY);
    struct fm_recorder *r = fm_recorder_new(full, true);
    assert_true(fm_recorder_failed(r));
    begin_thread(r, 7);
    assert_int_equal(fm_recorder_flush(r, &err), FM_CANNOT_WRITE);
    assert_int_equal(fm_recorder_end(r, &err), FM_CANNOT_WRITE);
    assert_non_null(strstr(err.text, "No space left"));
    fm_recorder_free(r);
    close(full);
}

/* ---- many profiles ---- */

static struct fm_profile *one_of_many(uint32_t n)
{
    struct fm_profile *p = fm_profile_new();
    uint32_t root = fx_thread(p, 100 + n);
    uint32_t main = fx_node(p, root, "main", 1, 100 + n);
    fx_node(p, main, n % 2 ? "odd" : "even", n, n);
    fm_profile_fact(p, "command", n ? "later" : "first");
    fm_profile_note(p, 0, "lost", n, "some");
    fm_profile_note(p, FM_NONE, "told", n, "of the whole");
    struct fm_line *row = fm_lines_add(&p->lines, 0, fx_function(p, "main"), 5, true);
    row->hits = n;
    p->lines.histograms.data[0].buckets[n % FM_LINE_BUCKETS] = 1;
    fm_lines_add(&p->lines, FM_NONE, fx_function(p, "main"), 6, false)->hits = 1;
    fm_lines_mark(&p->lines, fx_function(p, "main"));
    p->lines.unit_s = n == 3 ? 1e-6 : 1e-9;
    fm_vec_push(&p->samples.spots,
                ((struct fm_spot){ 0, fx_function(p, "main"), 5, 5, 1, 9, n, 1 }));
    struct fm_wait wait = { 0, fx_function(p, "main"), 5, FM_STATE_DISK, 0, n, 1 };
    wait.detail = fm_profile_string(p, "a file");
    fm_vec_push(&p->samples.waits, wait);
    struct fm_source source = { .file = fm_profile_string(p, "app.py"),
                                .text = fm_profile_string(p, n == 4 ? "changed" : "the text") };
    fm_vec_push(&p->sources, source);
    return p;
}

/* The file of many profiles holds what they hold side by side in memory. */
static void test_many_profiles(void **state)
{
    (void)state;
    enum { N = 6 };
    int fd = fx_file();
    struct fm_recorder *r = fm_recorder_new(fd, true);
    struct fm_profile *expected = one_of_many(0);
    for (uint32_t n = 0; n < N; n++) {
        struct fm_profile *p = one_of_many(n);
        fm_recorder_profile(r, p);
        if (n)
            fm_profile_merge(expected, p);
        fm_profile_free(p);
    }
    assert_int_equal(fm_recorder_end(r, NULL), 0);
    fm_recorder_free(r);
    struct fm_profile *p = load_so_far(fd);
    assert_int_equal(p->processes.len, N);
    for (uint32_t n = 0; n < N; n++) {
        assert_int_equal(p->processes.data[n].run, n);
        assert_int_equal(expected->processes.data[n].run, n);
    }
    assert_int_equal(p->threads.len, N);
    assert_int_equal(p->functions.len, 4); /* main, even, odd and the root */
    assert_int_equal(p->sources.len, 2);
    assert_int_equal(p->notes.len, 2 * N);
    assert_int_equal(p->notes.data[2 * 5].process, 5);
    assert_int_equal(p->notes.data[2 * 5 + 1].process, FM_NONE);
    assert_string_equal(fm_profile_fact_get(p, "command"), "first");
    assert_true(p->lines.unit_s == 1e-6);
    assert_int_equal(p->lines.rows.len, N + 1);
    assert_int_equal(p->lines.rows.data[N].hits, N); /* that came without a process: added up */
    assert_int_equal(p->lines.marked.len, 1);
    assert_int_equal(p->samples.spots.len, N);
    assert_int_equal(p->samples.waits.data[5].samples, 5);
    assert_int_equal(p->nodes.len, expected->nodes.len);
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        assert_int_equal(p->nodes.data[i].parent, expected->nodes.data[i].parent);
        assert_int_equal(p->nodes.data[i].thread, expected->nodes.data[i].thread);
        assert_string_equal(
            fm_profile_text(p, p->functions.data[p->nodes.data[i].func].name),
            fm_profile_text(expected, expected->functions.data[expected->nodes.data[i].func].name));
        for (int m = 0; m < FM_METRIC_COUNT; m++)
            assert_int_equal(fm_profile_value(p, (enum fm_metric)m, i),
                             fm_profile_value(expected, (enum fm_metric)m, i));
    }
    fm_profile_free(expected);
    fm_profile_free(p);
    close(fd);
}

/* Tables that came without a tree are added up, as pstats does. */
static void test_many_tables(void **state)
{
    (void)state;
    int fd = fx_file();
    struct fm_recorder *r = fm_recorder_new(fd, true);
    for (int n = 1; n <= 3; n++) {
        struct fm_profile *p = fm_profile_new();
        p->flat = fm_calloc(1, sizeof *p->flat);
        uint32_t own = fx_function(p, n == 2 ? "b" : "a"), shared = fx_function(p, "shared");
        fm_vec_push(&p->flat->rows,
                    ((struct fm_flat_row){
                        .func = own, .calls = n, .primitive = n, .self_ns = 10, .total_ns = 20 }));
        fm_vec_push(&p->flat->rows,
                    ((struct fm_flat_row){
                        .func = shared, .calls = 1, .primitive = 1, .self_ns = 5, .total_ns = 7 }));
        fm_vec_push(&p->flat->edges, ((struct fm_flat_edge){ .caller = 0,
                                                             .callee = 1,
                                                             .calls = 1,
                                                             .primitive = 1,
                                                             .self_ns = 5,
                                                             .total_ns = 7 }));
        fm_recorder_profile(r, p);
        fm_profile_free(p);
    }
    assert_int_equal(fm_recorder_end(r, NULL), 0);
    fm_recorder_free(r);
    struct fm_profile *p = load_so_far(fd);
    assert_int_equal(p->flat->rows.len, 3);
    fx_expect_row(p, p->flat, "a", 4, 4, 20, 40);
    fx_expect_row(p, p->flat, "b", 2, 2, 10, 20);
    fx_expect_row(p, p->flat, "shared", 3, 3, 15, 21);
    fx_expect_edge(p, p->flat, "a", "shared", 2, 2, 10, 14);
    fx_expect_edge(p, p->flat, "b", "shared", 1, 1, 5, 7);
    fm_profile_free(p);
    close(fd);
}

/* ---- reading what is asked ---- */

/* A profile in a file of that length. */
static int saved_one(uint64_t *ret_len)
{
    struct stat st;
    int fd = fx_file();
    struct fm_profile *p = one_of_many(1);
    assert_int_equal(fm_file_save(p, fd, NULL), 0);
    fm_profile_free(p);
    assert_int_equal(fstat(fd, &st), 0);
    *ret_len = (uint64_t)st.st_size;
    return fd;
}

static void test_without_texts(void **state)
{
    (void)state;
    uint64_t len;
    int fd = saved_one(&len);
    struct fm_profile *p = fm_file_load_fd(fd, len, "x", 0, NULL);
    assert_int_equal(p->sources.len, 1);
    assert_int_equal(p->sources.data[0].text, 0);
    assert_string_equal(fm_profile_text(p, p->sources.data[0].file), "app.py");
    assert_int_equal(fx_note(p, "damaged"), 0);
    assert_int_equal(fx_note(p, "cut-off"), 0);
    fm_profile_free(p);
    p = fm_file_load_fd(fd, len, "x", FM_FILE_ALL, NULL);
    assert_string_equal(fm_profile_text(p, p->sources.data[0].text), "the text");
    fm_profile_free(p);
    close(fd);
}

/* A file that is cut off lacks source text before it lacks anything else. */
static void test_texts_come_last(void **state)
{
    (void)state;
    uint64_t len;
    int fd = saved_one(&len);
    struct fm_reader reader;
    struct fm_block block;
    bool texts = false;
    assert_int_equal(fm_reader_init_fd(&reader, fd, len, NULL), 0);
    while (fm_reader_next(&reader, &block)) {
        if (texts)
            assert_true(block.type == FM_BLOCK_SOURCES || block.type == FM_BLOCK_END);
        texts = texts || block.type == FM_BLOCK_TEXTS;
    }
    assert_true(texts);
    fm_reader_release(&reader);
    close(fd);
}

/* What one file says when it is read from a descriptor and from memory, cut off and damaged. */
static void test_descriptor_as_memory(void **state)
{
    (void)state;
    uint64_t ignored;
    size_t len;
    int fd = saved_one(&ignored);
    uint8_t *bytes = fx_file_bytes(fd, &len);
    for (size_t at = FM_FILE_HEADER_BYTES; at < len; at++) {
        struct fm_reader memory, file;
        struct fm_block a = { 0 }, b = { 0 };
        fd = fx_file();
        bytes[at] ^= 0x21;
        size_t cut = at % 3 ? len : at;
        assert_int_equal(write(fd, bytes, cut), cut);
        assert_int_equal(fm_reader_init(&memory, bytes, cut, NULL), 0);
        assert_int_equal(fm_reader_init_fd(&file, fd, cut, NULL), 0);
        for (;;) {
            bool more = fm_reader_next(&memory, &a);
            assert_int_equal(fm_reader_next(&file, &b), more);
            if (!more)
                break;
            assert_int_equal(a.type, b.type);
            assert_int_equal(a.len, b.len);
            assert_memory_equal(a.data, b.data, a.len);
        }
        assert_int_equal(memory.cut_off, file.cut_off);
        assert_int_equal(memory.skipped_bytes, file.skipped_bytes);
        fm_reader_release(&memory);
        fm_reader_release(&file);
        bytes[at] ^= 0x21;
        close(fd);
    }
    free(bytes);
}

/* Blocks of 64 MiB that nobody asks for are passed over: a file of 16 GiB opens within 4 KiB each. */
static void test_huge_file(void **state)
{
    (void)state;
    enum { BLOCKS = 256 };
    uint64_t end;
    int fd = saved_one(&end), heads = fx_file();
    /* The header of a large block is made by writing such a block elsewhere; its payload is a hole here. */
    struct fm_writer writer;
    uint8_t head[FM_BLOCK_HEADER_BYTES];
    fm_autofree uint8_t *zeros = fm_calloc(1, FM_BLOCK_MAX_BYTES);
    fm_writer_init(&writer, heads);
    assert_int_equal(fm_writer_block(&writer, 63, zeros, FM_BLOCK_MAX_BYTES), 0);
    assert_int_equal(pread(heads, head, sizeof head, 0), sizeof head);
    close(heads);
    for (int i = 0; i < BLOCKS; i++) {
        assert_int_equal(pwrite(fd, head, sizeof head, (off_t)end), sizeof head);
        end += sizeof head + FM_BLOCK_MAX_BYTES;
    }
    assert_int_equal(ftruncate(fd, (off_t)end), 0);
    struct fm_reader reader;
    struct fm_block block;
    uint64_t before = 0;
    assert_int_equal(fm_reader_init_fd(&reader, fd, end, NULL), 0);
    reader.wanted = ~(1ull << 63);
    while (fm_reader_next(&reader, &block))
        before++;
    assert_int_equal(reader.blocks, before + BLOCKS);
    assert_int_equal(reader.skipped_bytes, 0);
    assert_true(reader.window.cap < 1u << 20 && reader.buffer_cap < 1u << 20);
    fm_reader_release(&reader);
    struct fm_profile *p = fm_file_load_fd(fd, end, "huge", FM_FILE_ALL, NULL);
    assert_int_equal(p->processes.len, 1);
    fm_profile_free(p);
    close(fd);
}

/* A file that became shorter while it was read is cut off, not read beyond its end. */
static void test_shrinking_file(void **state)
{
    (void)state;
    uint64_t len;
    int fd = saved_one(&len);
    assert_int_equal(ftruncate(fd, (off_t)len / 2), 0);
    struct fm_profile *p = fm_file_load_fd(fd, len, "x", FM_FILE_ALL, NULL);
    assert_true(fx_note(p, "cut-off"));
    fm_profile_free(p);
    close(fd);
}

/* Only a whole recording of ours becomes plain by copying; its blocks are the same then. */
static void test_plain_copy(void **state)
{
    (void)state;
    size_t len, plain_len;
    int fd = fx_file(), to = fx_file();
    struct fm_profile *p = one_of_many(1);
    p->lines.unit_s = 0; /* not from another tool */
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    p->sources.data[0].text = fm_profile_string(p, text); /* that compresses well */
    assert_int_equal(fm_file_save(p, fd, NULL), 0);
    assert_int_equal(fm_file_save_plain(p, to, NULL), 0);
    uint8_t *bytes = fx_file_bytes(fd, &len), *expected = fx_file_bytes(to, &plain_len);
    assert_true(plain_len > len);
    struct fm_plain_choice all = { 0 };
    for (size_t cut = len + 1; cut-- > 0;) {
        fd = fx_file();
        to = fx_file();
        assert_int_equal(write(fd, bytes, cut), cut);
        assert_int_equal(fm_file_copy_plain(fd, cut, to, &all), cut == len);
        size_t copied_len;
        uint8_t *copied = fx_file_bytes(to, &copied_len);
        assert_true(cut < len || copied_len == plain_len);
        if (cut == len)
            assert_memory_equal(copied, expected, plain_len);
        free(copied);
        close(fd);
    }
    for (size_t at = 0; at < len; at++) {
        fd = fx_file();
        to = fx_file();
        bytes[at] ^= 0x10;
        assert_int_equal(write(fd, bytes, len), len);
        assert_false(fm_file_copy_plain(fd, len, to, &all));
        bytes[at] ^= 0x10;
        close(fd);
        close(to);
    }
    fm_profile_free(p);
    free(bytes);
    free(expected);
}

/* ---- rows ---- */

static void test_rows_of_several_widths(void **state)
{
    (void)state;
    struct fm_rows rows = { .first = 5 };
    struct fm_buffer payload = FM_BUFFER_INIT;
    fm_rows_add(&rows, (const uint64_t[]){ 1, 2 }, 2);
    fm_rows_add(&rows, (const uint64_t[]){ 3, 4, 200 }, 3);
    fm_rows_add(&rows, (const uint64_t[]){ 6 }, 1);
    fm_rows_take(&rows, &payload);
    const uint8_t expected[] = { 5, 3, 3, 1, 3, 6, 2, 4, 0, 0, 0xc8, 0x01, 0 };
    assert_int_equal(payload.len, sizeof expected);
    assert_memory_equal(payload.data, expected, sizeof expected);
    assert_int_equal(fm_rows_next(&rows), 8);
    fm_buffer_release(&payload);
    fm_rows_release(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_are_given_once),
        cmocka_unit_test(test_values_go_on),
        cmocka_unit_test(test_many_late_values),
        cmocka_unit_test(test_every_prefix),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_many_profiles),
        cmocka_unit_test(test_many_tables),
        cmocka_unit_test(test_without_texts),
        cmocka_unit_test(test_texts_come_last),
        cmocka_unit_test(test_descriptor_as_memory),
        cmocka_unit_test(test_huge_file),
        cmocka_unit_test(test_shrinking_file),
        cmocka_unit_test(test_plain_copy),
        cmocka_unit_test(test_rows_of_several_widths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
