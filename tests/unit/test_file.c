/* Profiles to files and back: nothing is lost, any prefix is valid, any damage is noticed. */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/varint.h"
#include "record/capture/compress.h"
#include "record/capture/format.h"
#include "record/capture/reader.h"
#include "record/capture/writer.h"
#include "record/model/file/file.h"
#include "scratch_file.h"

static uint8_t *save(const struct fm_profile *p, size_t *len)
{
    struct fm_error err = FM_ERROR_INIT;
    int fd = fx_file();
    assert_int_equal(fm_file_save(p, fd, &err), 0);
    return fx_file_bytes(fd, len);
}

/* Lines of two processes, one with a histogram, one that came without a process. */
static void add_lines(struct fm_profile *p)
{
    struct fm_line *row = fm_lines_add(&p->lines, 0, fx_function(p, "main"), 110, true);
    *row = (struct fm_line){ .process = 0,
                             .func = row->func,
                             .line = 110,
                             .hits = 7,
                             .total_ns = 90,
                             .self_ns = 60,
                             .min_ns = 3,
                             .max_ns = 40,
                             .suspended_ns = INT64_MAX,
                             .histogram = row->histogram };
    p->lines.histograms.data[0].buckets[0] = 6;
    p->lines.histograms.data[0].buckets[FM_LINE_BUCKETS - 1] = UINT32_MAX;
    fm_lines_add(&p->lines, 1, fx_function(p, "gen"), 1, false)->hits = 5;
    row = fm_lines_add(&p->lines, 2, fx_function(p, "gen"), 2, false);
    row->samples = 3;
    row->state_ns[FM_STATE_PYTHON] = 30;
    row->state_ns[FM_STATE_OTHER] = INT64_MIN;
    fm_lines_add(&p->lines, FM_NONE, fx_function(p, "main"), 4294967294u, false)->total_ns = -8;
    fm_lines_mark(&p->lines, fx_function(p, "gen"));
    fm_lines_mark(&p->lines, fx_function(p, "never"));
    p->lines.unit_s = 1e-6;
    fm_lines_sort(&p->lines);
}

/* A sampled process: numbers of nodes, expressions, waits. */
static void add_samples(struct fm_profile *p, uint32_t process)
{
    uint32_t thread = fm_profile_thread(p, &(struct fm_thread){ .process = process, .tid = 14 });
    uint32_t node = fx_node(p, p->threads.data[thread].root, "main", 0, 60);
    fm_profile_add(p, FM_METRIC_SAMPLES, node, 6);
    fm_profile_add(p, FM_METRIC_STATE_PYTHON, node, 20);
    fm_profile_add(p, FM_METRIC_STATE_OTHER, node, 40);
    struct fm_spot spot = { process, fx_function(p, "main"), 110, 111, 5, 4294967294u, 6, 60 };
    fm_vec_push(&p->samples.spots, spot);
    spot.process = FM_NONE;
    fm_vec_push(&p->samples.spots, spot);
    struct fm_wait wait = { process,
                            fx_function(p, "main"),
                            110,
                            FM_STATE_NETWORK,
                            fm_profile_string(p, "tcp 127.0.0.1:80"),
                            4,
                            INT64_MAX };
    fm_vec_push(&p->samples.waits, wait);
    wait.state = FM_STATE_OTHER;
    wait.detail = 0;
    fm_vec_push(&p->samples.waits, wait);
    fm_samples_sort(&p->samples);
}

/* Some of everything. */
static struct fm_profile *sample(void)
{
    struct fm_profile *p = fm_profile_new();
    fm_profile_string(p, "used by nothing");
    fm_profile_fact(p, "command", "python app.py");
    struct fm_process process = { .pid = 12,
                                  .parent_pid = 11,
                                  .start_real_ns = UINT64_MAX,
                                  .start_ns = 5,
                                  .end_ns = 99,
                                  .exit_status = -1,
                                  .profiled = true,
                                  .c_calls = true,
                                  .cost_call_ps = 40000,
                                  .cost_line_ps = 8000,
                                  .slow_permille = 1700 };
    process.exe = fm_profile_string(p, "/usr/bin/python3");
    process.version = fm_profile_string(p, "3.13.0");
    fm_profile_process(p, &process);
    process.run = 3;
    process.exit_status = 137;
    process.profiled = process.c_calls = false;
    process.calls = process.lines = true;
    process.forked = true;
    fm_profile_process(p, &process);
    process = (struct fm_process){ .pid = 14,
                                   .profiled = true,
                                   .sampled = true,
                                   .sample_mode = FM_SAMPLE_GIL,
                                   .sample_interval_ns = 1000000,
                                   .sample_rounds = 7,
                                   .samples = 6,
                                   .samples_partial = 2,
                                   .samples_lost = 1,
                                   .sampler_cpu_ns = UINT64_MAX };
    fm_profile_process(p, &process);
    struct fm_thread thread = { .process = 0,
                                .tid = 12,
                                .name = fm_profile_string(p, "Main"),
                                .start_ns = 6,
                                .end_ns = 98,
                                .cpu_ns = 50 };
    uint32_t first = fm_profile_thread(p, &thread);
    uint32_t top = fx_node(p, p->threads.data[first].root, "main", 1, 90);
    thread.tid = 13;
    uint32_t second = fm_profile_thread(p, &thread);
    uint32_t gen = fx_node(p, p->threads.data[second].root, "gen", 3, 40);
    fm_profile_add(p, FM_METRIC_RESUMES, gen, 7);
    fm_profile_add(p, FM_METRIC_SUSPENDED, gen, INT64_MAX);
    fm_profile_add(p, FM_METRIC_MIN, top, 90);
    fm_profile_add(p, FM_METRIC_MAX, top, 90);
    fm_profile_add(p, FM_METRIC_TOTAL, top, -100); /* may be nonsense, must survive */
    struct fm_function twin = p->functions.data[p->nodes.data[gen].func];
    twin.flags = FM_FUNCTION_GENERATOR;
    fm_profile_node(p, top, fm_profile_function_distinct(p, &twin));
    fm_profile_note(p, 1, "lost", 3, "three calls");
    fm_profile_note(p, FM_NONE, "unprofiled", 1, "a whole process");
    struct fm_source source = { .file = fm_profile_string(p, "<exec>"),
                                .state = FM_SOURCE_GENERATED,
                                .text = fm_profile_string(p, "def f():\n    pass\n"),
                                .mtime_ns = 1,
                                .size_bytes = 18 };
    fm_vec_push(&p->sources, source);
    add_lines(p);
    add_samples(p, 2);
    return p;
}

static void expect_same_text(const struct fm_profile *a, uint32_t x, const struct fm_profile *b,
                             uint32_t y)
{
    assert_string_equal(fm_profile_text(a, x), fm_profile_text(b, y));
}

static void expect_same_functions(const struct fm_profile *a, const struct fm_profile *b)
{
    assert_int_equal(a->functions.len, b->functions.len);
    for (size_t i = 0; i < a->functions.len; i++) {
        const struct fm_function *f = &a->functions.data[i], *g = &b->functions.data[i];
        assert_int_equal(f->kind, g->kind);
        assert_int_equal(f->flags, g->flags);
        assert_int_equal(f->line, g->line);
        assert_int_equal(f->twin, g->twin);
        expect_same_text(a, f->name, b, g->name);
        expect_same_text(a, f->qualname, b, g->qualname);
        expect_same_text(a, f->file, b, g->file);
    }
}

static void expect_same_processes(const struct fm_profile *a, const struct fm_profile *b)
{
    assert_int_equal(a->processes.len, b->processes.len);
    for (size_t i = 0; i < a->processes.len; i++) {
        struct fm_process f = a->processes.data[i], g = b->processes.data[i];
        expect_same_text(a, f.exe, b, g.exe);
        expect_same_text(a, f.command, b, g.command);
        expect_same_text(a, f.cwd, b, g.cwd);
        expect_same_text(a, f.version, b, g.version);
        assert_int_equal(f.pid, g.pid);
        assert_int_equal(f.parent_pid, g.parent_pid);
        assert_true(f.start_real_ns == g.start_real_ns);
        assert_int_equal(f.start_ns, g.start_ns);
        assert_int_equal(f.end_ns, g.end_ns);
        assert_int_equal(f.exit_status, g.exit_status);
        assert_int_equal(f.profiled, g.profiled);
        assert_int_equal(f.forked, g.forked);
        assert_int_equal(f.c_calls, g.c_calls);
        assert_int_equal(f.calls, g.calls);
        assert_int_equal(f.lines, g.lines);
        assert_int_equal(f.cost_call_ps, g.cost_call_ps);
        assert_int_equal(f.cost_line_ps, g.cost_line_ps);
        assert_int_equal(f.slow_permille, g.slow_permille);
        assert_int_equal(f.run, g.run);
        assert_int_equal(f.sampled, g.sampled);
        assert_int_equal(f.sample_mode, g.sample_mode);
        assert_int_equal(f.sample_interval_ns, g.sample_interval_ns);
        assert_int_equal(f.sample_rounds, g.sample_rounds);
        assert_int_equal(f.samples, g.samples);
        assert_int_equal(f.samples_partial, g.samples_partial);
        assert_int_equal(f.samples_lost, g.samples_lost);
        assert_true(f.sampler_cpu_ns == g.sampler_cpu_ns);
    }
}

static void expect_same_trees(const struct fm_profile *a, const struct fm_profile *b)
{
    assert_int_equal(a->threads.len, b->threads.len);
    for (size_t i = 0; i < a->threads.len; i++) {
        assert_int_equal(a->threads.data[i].process, b->threads.data[i].process);
        assert_int_equal(a->threads.data[i].tid, b->threads.data[i].tid);
        assert_int_equal(a->threads.data[i].root, b->threads.data[i].root);
        assert_int_equal(a->threads.data[i].start_ns, b->threads.data[i].start_ns);
        assert_int_equal(a->threads.data[i].end_ns, b->threads.data[i].end_ns);
        assert_int_equal(a->threads.data[i].cpu_ns, b->threads.data[i].cpu_ns);
        expect_same_text(a, a->threads.data[i].name, b, b->threads.data[i].name);
    }
    assert_int_equal(a->nodes.len, b->nodes.len);
    for (uint32_t i = 0; i < a->nodes.len; i++) {
        assert_int_equal(a->nodes.data[i].parent, b->nodes.data[i].parent);
        assert_int_equal(a->nodes.data[i].func, b->nodes.data[i].func);
        assert_int_equal(a->nodes.data[i].thread, b->nodes.data[i].thread);
        for (int m = 0; m < FM_METRIC_COUNT; m++)
            assert_true(fm_profile_value(a, (enum fm_metric)m, i) ==
                        fm_profile_value(b, (enum fm_metric)m, i));
    }
}

static void expect_same_rest(const struct fm_profile *a, const struct fm_profile *b)
{
    assert_int_equal(a->notes.len, b->notes.len);
    for (size_t i = 0; i < a->notes.len; i++) {
        assert_int_equal(a->notes.data[i].process, b->notes.data[i].process);
        assert_int_equal(a->notes.data[i].count, b->notes.data[i].count);
        expect_same_text(a, a->notes.data[i].kind, b, b->notes.data[i].kind);
        expect_same_text(a, a->notes.data[i].text, b, b->notes.data[i].text);
    }
    assert_int_equal(a->sources.len, b->sources.len);
    for (size_t i = 0; i < a->sources.len; i++) {
        assert_int_equal(a->sources.data[i].state, b->sources.data[i].state);
        assert_int_equal(a->sources.data[i].mtime_ns, b->sources.data[i].mtime_ns);
        assert_int_equal(a->sources.data[i].size_bytes, b->sources.data[i].size_bytes);
        expect_same_text(a, a->sources.data[i].file, b, b->sources.data[i].file);
        expect_same_text(a, a->sources.data[i].text, b, b->sources.data[i].text);
    }
    assert_int_equal(a->facts.len, b->facts.len);
    for (size_t i = 0; i < a->facts.len; i++) {
        expect_same_text(a, a->facts.data[i].key, b, b->facts.data[i].key);
        expect_same_text(a, a->facts.data[i].value, b, b->facts.data[i].value);
    }
}

static void expect_same_lines(const struct fm_profile *a, const struct fm_profile *b)
{
    assert_int_equal(a->lines.rows.len, b->lines.rows.len);
    for (size_t i = 0; i < a->lines.rows.len; i++) {
        const struct fm_line *x = &a->lines.rows.data[i], *y = &b->lines.rows.data[i];
        assert_int_equal(x->process, y->process);
        assert_int_equal(x->func, y->func);
        assert_int_equal(x->line, y->line);
        assert_true(x->hits == y->hits && x->total_ns == y->total_ns && x->self_ns == y->self_ns);
        assert_true(x->min_ns == y->min_ns && x->max_ns == y->max_ns);
        assert_true(x->suspended_ns == y->suspended_ns);
        assert_true(x->samples == y->samples);
        assert_memory_equal(x->state_ns, y->state_ns, sizeof x->state_ns);
        assert_int_equal(x->histogram == FM_NONE, y->histogram == FM_NONE);
        if (x->histogram != FM_NONE)
            assert_memory_equal(&a->lines.histograms.data[x->histogram],
                                &b->lines.histograms.data[y->histogram],
                                sizeof(struct fm_line_histogram));
    }
    assert_int_equal(a->lines.marked.len, b->lines.marked.len);
    for (size_t i = 0; i < a->lines.marked.len; i++)
        assert_int_equal(a->lines.marked.data[i], b->lines.marked.data[i]);
    assert_true(a->lines.unit_s == b->lines.unit_s);
}

static void expect_same_samples(const struct fm_profile *a, const struct fm_profile *b)
{
    assert_int_equal(a->samples.spots.len, b->samples.spots.len);
    assert_memory_equal(a->samples.spots.data, b->samples.spots.data,
                        a->samples.spots.len * sizeof(struct fm_spot));
    assert_int_equal(a->samples.waits.len, b->samples.waits.len);
    for (size_t i = 0; i < a->samples.waits.len; i++) {
        const struct fm_wait *x = &a->samples.waits.data[i], *y = &b->samples.waits.data[i];
        assert_int_equal(x->process, y->process);
        assert_int_equal(x->func, y->func);
        assert_int_equal(x->line, y->line);
        assert_int_equal(x->state, y->state);
        expect_same_text(a, x->detail, b, y->detail);
        assert_true(x->samples == y->samples && x->ns == y->ns);
    }
}

static void test_round_trip(void **state)
{
    (void)state;
    size_t len, again_len;
    struct fm_profile *p = sample();
    uint8_t *bytes = save(p, &len);
    assert_true(fm_file_recognise(bytes, len));
    struct fm_profile *loaded = fm_file_load(bytes, len, "x", NULL);
    assert_non_null(loaded);
    expect_same_functions(p, loaded);
    expect_same_processes(p, loaded);
    expect_same_trees(p, loaded);
    expect_same_rest(p, loaded);
    assert_int_equal(p->lines.rows.len, 4);
    expect_same_lines(p, loaded);
    assert_int_equal(p->samples.spots.len, 2);
    assert_int_equal(p->samples.waits.len, 2);
    expect_same_samples(p, loaded);
    uint8_t *again = save(loaded, &again_len);
    assert_int_equal(again_len, len);
    assert_memory_equal(again, bytes, len);
    free(again);
    free(bytes);
    fm_profile_free(loaded);
    fm_profile_free(p);
}

/* More nodes than fit into one block, and functions and threads that appear late. */
static void test_many_blocks(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    uint32_t root = fx_thread(p, 1);
    for (uint32_t i = 0; i < 100000; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", i / 20);
        if (i % 30000 == 29999)
            root = fx_thread(p, i);
        fx_node(p, i % 3 ? (uint32_t)p->nodes.len - 1 : root, name, i, (int64_t)i << 20);
    }
    size_t len;
    uint8_t *bytes = save(p, &len);
    struct fm_profile *loaded = fm_file_load(bytes, len, "x", NULL);
    expect_same_functions(p, loaded);
    expect_same_trees(p, loaded);
    expect_same_rest(p, loaded);
    fm_profile_free(loaded);
    /* Cut in the middle of the last block of values: what came before is there with its numbers. */
    loaded = fm_file_load(bytes, len * 3 / 4, "x", NULL);
    assert_true(fx_note(loaded, "cut-off"));
    assert_int_equal(fx_note(loaded, "damaged"), 0);
    assert_true(loaded->nodes.len >= 32768);
    for (uint32_t i = 0; i < 32768; i++)
        assert_true(fm_profile_value(loaded, FM_METRIC_TOTAL, i) ==
                    fm_profile_value(p, FM_METRIC_TOTAL, i));
    fm_profile_free(loaded);
    free(bytes);
    fm_profile_free(p);
}

/* More lines, and more visits of them, than fit into one block. */
static void test_many_lines(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    fx_thread(p, 1);
    for (uint32_t i = 0; i < 70000; i++) {
        struct fm_line *row = fm_lines_add(&p->lines, 0, fx_function(p, "f"), i, i % 2);
        row->hits = i;
        row->total_ns = (int64_t)i << 20;
        if (i % 2) {
            p->lines.histograms.data[row->histogram].buckets[i % FM_LINE_BUCKETS] = i;
            p->lines.histograms.data[row->histogram].buckets[i % 7] = 1;
        }
    }
    size_t len;
    uint8_t *bytes = save(p, &len);
    struct fm_profile *loaded = fm_file_load(bytes, len, "x", NULL);
    expect_same_lines(p, loaded);
    assert_int_equal(loaded->notes.len, 0);
    fm_profile_free(loaded);
    free(bytes);
    fm_profile_free(p);
}

static void test_table_round_trip(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    p->flat = fm_calloc(1, sizeof *p->flat);
    p->flat->sampled = true;
    struct fm_flat_row f = {
        .func = fx_function(p, "f"), .calls = 1, .primitive = 1, .self_ns = 2, .total_ns = 9
    };
    struct fm_flat_row g = { .func = fx_function(p, "g"),
                             .calls = 5,
                             .primitive = 4,
                             .resumes = 3,
                             .self_ns = 7,
                             .total_ns = -9,
                             .min_ns = 1,
                             .max_ns = 2,
                             .suspended_ns = 6 };
    fm_vec_push(&p->flat->rows, f);
    fm_vec_push(&p->flat->rows, g);
    fm_vec_push(
        &p->flat->edges,
        ((struct fm_flat_edge){
            .caller = 0, .callee = 1, .calls = 5, .primitive = 4, .self_ns = 7, .total_ns = -9 }));
    size_t len;
    uint8_t *bytes = save(p, &len);
    struct fm_profile *loaded = fm_file_load(bytes, len, "x", NULL);
    assert_non_null(loaded->flat);
    assert_true(loaded->flat->sampled);
    assert_int_equal(loaded->flat->rows.len, 2);
    fx_expect_row(loaded, loaded->flat, "f", 1, 1, 2, 9);
    fx_expect_row(loaded, loaded->flat, "g", 5, 4, 7, -9);
    assert_int_equal(loaded->flat->rows.data[1].resumes, 3);
    assert_int_equal(loaded->flat->rows.data[1].min_ns, 1);
    assert_int_equal(loaded->flat->rows.data[1].max_ns, 2);
    assert_int_equal(loaded->flat->rows.data[1].suspended_ns, 6);
    fx_expect_edge(loaded, loaded->flat, "f", "g", 5, 4, 7, -9);
    fm_profile_free(loaded);
    free(bytes);
    fm_profile_free(p);
}

/* What a reader can do with a profile: used on everything that loads, so that a bad id shows. */
static void use(const struct fm_profile *p)
{
    fm_flat_free(fm_flat_new(p, NULL));
    for (size_t i = 0; i < p->threads.len; i++) {
        assert_true(p->threads.data[i].process < p->processes.len);
        assert_true(p->threads.data[i].root < p->nodes.len);
    }
    for (size_t i = 0; i < p->nodes.len; i++) {
        assert_true(p->nodes.data[i].parent == FM_NONE || p->nodes.data[i].parent < i);
        assert_true(p->nodes.data[i].func < p->functions.len);
        assert_true(p->nodes.data[i].thread < p->threads.len);
    }
    for (size_t i = 0; i < p->notes.len; i++)
        assert_true(p->notes.data[i].process == FM_NONE ||
                    p->notes.data[i].process < p->processes.len);
    for (size_t i = 0; i < p->lines.rows.len; i++) {
        const struct fm_line *row = &p->lines.rows.data[i];
        assert_true(row->process == FM_NONE || row->process < p->processes.len);
        assert_true(row->func < p->functions.len);
        assert_true(row->histogram == FM_NONE || row->histogram < p->lines.histograms.len);
    }
    for (size_t i = 0; i < p->lines.marked.len; i++)
        assert_true(p->lines.marked.data[i] < p->functions.len);
    struct fm_lines combined = fm_lines_combined(p, FM_NONE);
    fm_lines_release(&combined);
}

static void test_every_prefix(void **state)
{
    (void)state;
    struct fm_profile *p = sample();
    size_t len, nodes_end = 0, processes_end = 0, lines_end = 0, samples_end = 0;
    uint8_t *bytes = save(p, &len);
    struct fm_reader reader;
    struct fm_block block;
    fm_reader_init(&reader, bytes, len, NULL);
    while (fm_reader_next(&reader, &block)) {
        if (block.type == FM_BLOCK_VALUES)
            nodes_end = reader.at;
        if (block.type == FM_BLOCK_PROCESSES)
            processes_end = reader.at;
        if (block.type == FM_BLOCK_LINE_STATES) /* the last of what belongs to lines */
            lines_end = reader.at;
        if (block.type == FM_BLOCK_WAITS)
            samples_end = reader.at;
    }
    fm_reader_release(&reader);
    for (size_t cut = 0; cut < len; cut++) {
        struct fm_error err = FM_ERROR_INIT;
        fm_autofree uint8_t *part = fm_malloc(cut);
        memcpy(part, bytes, cut);
        struct fm_profile *loaded = fm_file_load(part, cut, "part", &err);
        if (cut < FM_FILE_HEADER_BYTES) {
            assert_null(loaded);
            assert_int_equal(err.status, cut < FM_FILE_MAGIC_BYTES ? FM_NOT_RECORDING : FM_DAMAGED);
            continue;
        }
        assert_non_null(loaded);
        use(loaded);
        assert_true(fx_note(loaded, "cut-off"));
        assert_int_equal(fx_note(loaded, "damaged"), 0);
        assert_int_equal(loaded->processes.len, cut >= processes_end ? 3 : 0);
        if (cut >= nodes_end)
            expect_same_trees(p, loaded);
        if (cut >= lines_end)
            expect_same_lines(p, loaded);
        if (cut >= samples_end)
            expect_same_samples(p, loaded);
        fm_profile_free(loaded);
    }
    assert_true(lines_end && samples_end);
    free(bytes);
    fm_profile_free(p);
}

static void test_every_flip(void **state)
{
    (void)state;
    struct fm_profile *p = sample();
    size_t len;
    uint8_t *bytes = save(p, &len);
    for (size_t at = 0; at < len; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes[at] ^= (uint8_t)(1u << bit);
            struct fm_profile *loaded = fm_file_load(bytes, len, "flipped", NULL);
            if (at < FM_FILE_MAGIC_BYTES) {
                assert_null(loaded);
            } else {
                assert_non_null(loaded);
                use(loaded);
                assert_true(fx_note(loaded, "damaged") || fx_note(loaded, "cut-off"));
                fm_profile_free(loaded);
            }
            bytes[at] ^= (uint8_t)(1u << bit);
        }
    }
    free(bytes);
    fm_profile_free(p);
}

/* ---- files that are whole but wrong ---- */

struct forged {
    struct fm_writer writer;
    int fd;
};

static void forge(struct forged *f)
{
    f->fd = fx_file();
    fm_writer_init(&f->writer, f->fd);
    fm_writer_start(&f->writer);
}

static void forge_block(struct forged *f, uint16_t type, size_t count, const uint64_t *numbers)
{
    fm_autobuffer payload = FM_BUFFER_INIT;
    for (size_t i = 0; i < count; i++)
        fm_buffer_add_varint(&payload, numbers[i]);
    fm_writer_block(&f->writer, type, fm_buffer_text(&payload), payload.len);
}

#define BLOCK(f, type, ...)                                                                        \
    forge_block(f, type, sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t),                   \
                (uint64_t[]){ __VA_ARGS__ })

static struct fm_profile *forge_load(struct forged *f)
{
    size_t len;
    fm_writer_end(&f->writer);
    fm_autofree uint8_t *bytes = fx_file_bytes(f->fd, &len);
    struct fm_profile *p = fm_file_load(bytes, len, "forged", NULL);
    assert_non_null(p);
    use(p);
    return p;
}

/* One process, one thread; the strings "f" and "total"; one function; the metric "total". */
static void forge_begin(struct forged *f)
{
    forge(f);
    BLOCK(f, FM_BLOCK_STRINGS, 1, 2, 1, 'f', 5, 't', 'o', 't', 'a', 'l');
    BLOCK(f, FM_BLOCK_METRICS, 40, 1, 1, 2);
    BLOCK(f, FM_BLOCK_PROCESSES, 0, 1, 1, 77);
    BLOCK(f, FM_BLOCK_THREADS, 0, 1, 2, 0, 5);
    BLOCK(f, FM_BLOCK_FUNCTIONS, 0, 1, 5, 0, 0, 3, 1, 1);
}

static void test_known_bytes(void **state)
{
    (void)state;
    struct forged f;
    forge_begin(&f);
    BLOCK(&f, FM_BLOCK_NODES, 0, 3, 2, 0, 1, 2, 0, 0, 0);
    BLOCK(&f, FM_BLOCK_VALUES, 1, 2, 1, 40, 200, 60); /* zig-zag: 100 and 30 */
    BLOCK(&f, 999, 1, 2, 3);                          /* a block of the future */
    struct fm_profile *p = forge_load(&f);
    assert_int_equal(p->notes.len, 0);
    assert_int_equal(p->processes.data[0].pid, 77);
    assert_int_equal(p->nodes.len, 3);
    assert_int_equal(fm_profile_value(p, FM_METRIC_TOTAL, 1), 100);
    assert_int_equal(fm_profile_value(p, FM_METRIC_TOTAL, 2), 30);
    assert_int_equal(p->nodes.data[2].parent, 0);
    struct fm_flat *flat = fm_flat_new(p, NULL);
    fx_expect_row(p, flat, "f", 0, 0, 130, 130);
    fm_flat_free(flat);
    fm_profile_free(p);
}

static void test_undefined_ids(void **state)
{
    (void)state;
    struct forged f;
    forge_begin(&f);
    /* A root of an unknown thread, a parent before the first node, a function never defined. */
    BLOCK(&f, FM_BLOCK_NODES, 0, 5, 2, 0, 0, 7, 2, 1, 0, 9, 0, 0, 88);
    BLOCK(&f, FM_BLOCK_THREADS, 1, 1, 1, 66); /* of an unknown process */
    BLOCK(&f, FM_BLOCK_FLAT_EDGES, 0, 1, 2, 5, 6);
    BLOCK(&f, FM_BLOCK_NOTES, 0, 1, 4, 50, 91, 1, 92);
    BLOCK(&f, FM_BLOCK_RUN, 0, 1, 2, 93, 94);
    struct fm_profile *p = forge_load(&f);
    assert_true(fx_note(p, "damaged"));
    assert_int_equal(p->nodes.len, 4 + 1); /* two roots, two calls, the root of thread 1 */
    fm_profile_free(p);
}

static void test_nonsense_blocks(void **state)
{
    (void)state;
    struct forged f;
    forge_begin(&f);
    BLOCK(&f, FM_BLOCK_STRINGS, 1, 1, 1, 'g');            /* defined again */
    BLOCK(&f, FM_BLOCK_STRINGS, 3, 1000000, 1, 'g');      /* fewer than it says */
    BLOCK(&f, FM_BLOCK_STRINGS, 3, 1, 50, 'g');           /* past the end */
    BLOCK(&f, FM_BLOCK_NODES, 0, UINT32_MAX, UINT32_MAX); /* overflow */
    BLOCK(&f, FM_BLOCK_NODES, 0, UINT64_MAX, 2, 0);
    BLOCK(&f, FM_BLOCK_NODES, UINT32_MAX - 1ul, 5, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    BLOCK(&f, FM_BLOCK_NODES, 0, 4, 0);                    /* rows without columns */
    BLOCK(&f, FM_BLOCK_FUNCTIONS, 0, 1, 5, 0, 0, 3, 1, 1); /* defined again */
    BLOCK(&f, FM_BLOCK_VALUES, 0, 1, 60000);
    BLOCK(&f, FM_BLOCK_VALUES, 0);
    struct fm_profile *p = forge_load(&f);
    assert_int_equal(p->notes.len, 1);
    assert_int_equal(fx_note(p, "damaged"), 10);
    assert_int_equal(p->nodes.len, 1);
    fm_profile_free(p);
}

/* Values of nodes that are not there, of metrics that nobody knows; values given twice add up. */
static void test_values(void **state)
{
    (void)state;
    struct forged f;
    forge_begin(&f);
    BLOCK(&f, FM_BLOCK_NODES, 0, 2, 2, 0, 1, 0, 0);
    BLOCK(&f, FM_BLOCK_VALUES, 1, 1, 2, 40, 41, 10, 99);
    BLOCK(&f, FM_BLOCK_VALUES, 1, 3, 1, 40, 6, 8, 8);
    struct fm_profile *p = forge_load(&f);
    assert_int_equal(fm_profile_value(p, FM_METRIC_TOTAL, 1), 8);
    assert_int_equal(p->nodes.len, 2);
    fm_profile_free(p);
}

static void test_missing_block(void **state)
{
    (void)state;
    struct forged f;
    forge_begin(&f);
    f.writer.blocks += 2; /* as if two blocks had been taken out */
    struct fm_profile *p = forge_load(&f);
    assert_int_equal(fx_note(p, "damaged"), 2);
    fm_profile_free(p);
}

/* A lost block in the middle costs its own nodes and those below them, nothing else. */
static void test_lost_nodes(void **state)
{
    (void)state;
    struct forged f;
    forge_begin(&f);
    BLOCK(&f, FM_BLOCK_NODES, 0, 2, 2, 0, 1, 0, 0);
    BLOCK(&f, FM_BLOCK_NODES, 5, 3, 2, 5, 1, 4, 0, 0, 0); /* 2…4 are lost; parents 0, 5, 3 */
    BLOCK(&f, FM_BLOCK_VALUES, 5, 3, 1, 40, 20, 10, 2);
    struct fm_profile *p = forge_load(&f);
    assert_int_equal(p->nodes.len, 4);
    assert_int_equal(fm_profile_value(p, FM_METRIC_TOTAL, 2), 10);
    assert_int_equal(fm_profile_value(p, FM_METRIC_TOTAL, 3), 5);
    assert_int_equal(p->nodes.data[3].parent, 2);
    assert_int_equal(fx_note(p, "damaged"), 1);
    fm_profile_free(p);
}

/* By docs/format.md: rows 3 and 4 of function 0, one of them in process 0; visits of row 4. */
static void test_line_bytes(void **state)
{
    (void)state;
    struct forged f;
    forge_begin(&f);
    BLOCK(&f, FM_BLOCK_LINE_MARKS, 0, 1, 1, 0);
    BLOCK(&f, FM_BLOCK_LINES, 3, 2, 5, 1, 0, 0, 0, 12, 11, 2, 4, 20, 40); /* no self, min, … */
    BLOCK(&f, FM_BLOCK_LINE_VISITS, 0, 3, 3, 4, 4, 4, 2, 2, 200, 7, 1, 9);
    struct fm_profile *p = forge_load(&f);
    assert_int_equal(p->notes.len, 0);
    assert_true(p->processes.data[0].calls); /* a process without the flag recorded all calls */
    assert_false(p->processes.data[0].lines);
    assert_int_equal(p->lines.marked.len, 1);
    assert_int_equal(p->lines.rows.len, 2);
    const struct fm_line *first = &p->lines.rows.data[0], *second = &p->lines.rows.data[1];
    assert_int_equal(first->process, 0);
    assert_int_equal(first->line, 12);
    assert_int_equal(first->hits, 1);
    assert_int_equal(first->total_ns, 10);
    assert_int_equal(first->histogram, FM_NONE);
    assert_int_equal(second->process, FM_NONE);
    assert_int_equal(second->line, 11);
    assert_int_equal(second->hits, 2);
    assert_int_equal(second->total_ns, 20);
    assert_int_equal(p->lines.histograms.data[second->histogram].buckets[2], 8);
    assert_int_equal(p->lines.histograms.data[second->histogram].buckets[FM_LINE_BUCKETS - 1], 9);
    fm_profile_free(p);
}

static void test_line_nonsense(void **state)
{
    (void)state;
    struct forged f;
    forge_begin(&f);
    BLOCK(&f, FM_BLOCK_LINES, 0, 1, 3, 0, 0, 5);                 /* not even hits */
    BLOCK(&f, FM_BLOCK_LINE_VISITS, 0, 1, 2, 0, 0);              /* no count */
    BLOCK(&f, FM_BLOCK_LINE_UNIT, 0, 1, 1, 0);                   /* no unit */
    BLOCK(&f, FM_BLOCK_LINE_UNIT, 0, 1, 1, 0x7ff8000000000000u); /* not a number */
    BLOCK(&f, FM_BLOCK_LINES, 0, 1, 4, 1, 0, 5, 2);
    BLOCK(&f, FM_BLOCK_LINES, 0, 1, 4, 1, 0, 6, 2);                           /* defined again */
    BLOCK(&f, FM_BLOCK_LINE_VISITS, 0, 1, 3, 99, 0, 1);                       /* of no line */
    BLOCK(&f, FM_BLOCK_LINE_VISITS, 0, 2, 3, 0, 0, 0, 0, UINT32_MAX - 1u, 5); /* too many: stays */
    BLOCK(&f, FM_BLOCK_LINES, 1, 2, 4, 9, 1, 0, 44, 5, 5, 2, 2); /* unknown process, function */
    BLOCK(&f, FM_BLOCK_LINE_MARKS, 0, 1, 1, 44);
    struct fm_profile *p = forge_load(&f);
    assert_int_equal(p->lines.unit_s > 0, false);
    assert_int_equal(p->lines.rows.len, 3);
    assert_int_equal(p->lines.rows.data[0].line, 5);
    assert_true(p->lines.histograms.data[0].buckets[0] == UINT32_MAX);
    assert_int_equal(fx_note(p, "damaged"), 5); /* blocks */
    assert_int_equal(p->lines.marked.len, 0);
    assert_int_equal(p->processes.len, 2); /* the unknown one has a stand-in */
    fm_profile_free(p);
}

static void expect_wait(const struct fm_profile *p, const struct fm_wait *wait,
                        struct fm_wait wanted, const char *detail)
{
    assert_int_equal(wait->process, wanted.process);
    assert_int_equal(wait->func, wanted.func);
    assert_int_equal(wait->line, wanted.line);
    assert_int_equal(wait->state, wanted.state);
    assert_int_equal(wait->samples, wanted.samples);
    assert_int_equal(wait->ns, wanted.ns);
    assert_string_equal(fm_profile_text(p, wait->detail), detail);
}

/* By docs/format.md: a process with the flag and columns of samples, a line with samples and states,
 * an expression and two waits, one of them in a state of the future and of no process. */
static void test_sample_bytes(void **state)
{
    (void)state;
    struct forged f;
    forge_begin(&f);
    BLOCK(&f, FM_BLOCK_PROCESSES, 1, 1, 23, 78, 0, 0, 0, 0, 0, 0, 0, 0, 0, 41, 0, 0, 0, 0, 0, 2,
          1000, 50, 40, 3, 2, 9);
    BLOCK(&f, FM_BLOCK_LINES, 0, 1, 4, 2, 0, 12, 0);
    /* Four samples: 5 ns Python, 1 ns C, 2 GIL, 3 lock, 4 disk, 6 network, 7 sleep, 8 other. */
    BLOCK(&f, FM_BLOCK_LINE_STATES, 0, 1, 10, 0, 8, 10, 2, 4, 6, 8, 12, 14, 16);
    BLOCK(&f, FM_BLOCK_SPOTS, 0, 1, 8, 2, 0, 12, 13, 4, 9, 8, 20);
    BLOCK(&f, FM_BLOCK_WAITS, 0, 2, 7, 2, 0, 0, 0, 12, 12, 5, 99, 1, 0, 6, 2, 14, 4);
    struct fm_profile *p = forge_load(&f);
    assert_int_equal(p->notes.len, 0);
    assert_false(p->processes.data[0].sampled);
    const struct fm_process *process = &p->processes.data[1];
    assert_true(process->sampled && process->profiled && !process->calls);
    assert_int_equal(process->sample_mode, FM_SAMPLE_GIL);
    assert_int_equal(process->sample_interval_ns, 1000);
    assert_int_equal(process->sample_rounds, 50);
    assert_int_equal(process->samples, 40);
    assert_int_equal(process->samples_partial, 3);
    assert_int_equal(process->samples_lost, 2);
    assert_int_equal(process->sampler_cpu_ns, 9);
    const struct fm_line *line = &p->lines.rows.data[0];
    assert_int_equal(line->process, 1);
    assert_int_equal(line->samples, 4);
    assert_memory_equal(line->state_ns, ((int64_t[]){ 5, 1, 2, 3, 4, 6, 7, 8 }),
                        sizeof line->state_ns);
    const struct fm_spot *spot = &p->samples.spots.data[0];
    assert_memory_equal(spot, (&(struct fm_spot){ 1, 0, 12, 13, 4, 9, 4, 10 }), sizeof *spot);
    const struct fm_wait *first = &p->samples.waits.data[0], *second = &p->samples.waits.data[1];
    expect_wait(p, first, (struct fm_wait){ 1, 0, 12, FM_STATE_NETWORK, 0, 3, 7 }, "f");
    expect_wait(p, second, (struct fm_wait){ FM_NONE, 0, 12, FM_STATE_OTHER, 0, 1, 2 }, "");
    fm_profile_free(p);
}

static void test_sample_nonsense(void **state)
{
    (void)state;
    struct forged f;
    forge_begin(&f);
    BLOCK(&f, FM_BLOCK_SPOTS, 0, 1, 6, 1, 0, 5, 5, 1, 2); /* no number of samples */
    BLOCK(&f, FM_BLOCK_WAITS, 0, 1, 5, 1, 0, 5, 3, 1);    /* none either */
    BLOCK(&f, FM_BLOCK_LINE_STATES, 0, 1, 1, 0);          /* none either */
    BLOCK(&f, FM_BLOCK_LINE_STATES, 0, 1, 3, 99, 2, 2);   /* of no line: left out */
    BLOCK(&f, FM_BLOCK_SPOTS, 0, 2, 8, 1, 1, 0, 0, 5, 5, 5, 5, 1, 1, 2, 2, 2, 4, UINT64_MAX - 1,
          4); /* the same twice, together more than fits: stays */
    BLOCK(&f, FM_BLOCK_WAITS, 0, 1, 7, 9, 44, 5, 3, 93, 2, 2); /* everything unknown */
    struct fm_profile *p = forge_load(&f);
    assert_int_equal(fx_note(p, "damaged"), 3); /* blocks */
    assert_int_equal(p->samples.spots.len, 1);
    assert_int_equal(p->samples.spots.data[0].samples, 3);
    assert_true(p->samples.spots.data[0].ns == INT64_MAX);
    assert_int_equal(p->samples.waits.len, 1);
    const struct fm_wait *wait = &p->samples.waits.data[0];
    assert_true(wait->process < p->processes.len && wait->func < p->functions.len);
    assert_string_equal(fm_profile_text(p, wait->detail), "<lost>");
    fm_profile_free(p);
}

/* A recording without samples does not pay for them: what it is made of is as in version 1.1. */
/* What resident memory was made of comes back; the rest is what is missing to the sum. */
static void test_residents(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    struct fm_error err = FM_ERROR_INIT;
    uint32_t process = fm_profile_process(p, &(struct fm_process){ .pid = 7 });
    struct fm_resident resident = {
        .process = process, .when = FM_RESIDENT_LAST, .at_ns = 123, .rss = 1000, .untouched = 77
    };
    for (int i = 0; i < FM_RESIDENT_REST; i++)
        resident.parts[i] = 100 * (i + 1);
    fm_vec_push(&p->memory.residents, resident);
    struct fm_reserve reserve = { process, FM_RESIDENT_LAST,
                                  fm_profile_string(p, "/lib/libpool.so"), 5000, 400 };
    fm_vec_push(&p->memory.reserves, reserve);
    size_t len;
    fm_autofree uint8_t *bytes = save(p, &len);
    struct fm_profile *read = fm_file_load(bytes, len, "x", &err);
    assert_non_null(read);
    assert_int_equal(read->memory.residents.len, 1);
    const struct fm_resident *back = &read->memory.residents.data[0];
    assert_int_equal(back->process, 0);
    assert_int_equal(back->when, FM_RESIDENT_LAST);
    assert_int_equal(back->at_ns, 123);
    assert_int_equal(back->rss, 1000);
    assert_int_equal(back->untouched, 77);
    for (int i = 0; i < FM_RESIDENT_REST; i++)
        assert_int_equal(back->parts[i], 100 * (i + 1));
    assert_int_equal(back->parts[FM_RESIDENT_REST], 1000 - 5500); /* 100 + … + 1,000 */
    assert_int_equal(read->memory.reserves.len, 1);
    assert_string_equal(fm_profile_text(read, read->memory.reserves.data[0].library),
                        "/lib/libpool.so");
    assert_int_equal(read->memory.reserves.data[0].reserved, 5000);
    assert_int_equal(read->memory.reserves.data[0].resident, 400);
    fm_profile_free(read);
    fm_profile_free(p);
}

static void test_no_samples_no_bytes(void **state)
{
    (void)state;
    size_t len;
    struct fm_profile *p = fm_profile_new();
    fx_node(p, fx_thread(p, 7), "main", 1, 100);
    uint8_t *bytes = save(p, &len);
    struct fm_reader reader;
    struct fm_block block;
    assert_int_equal(fm_reader_init(&reader, bytes, len, NULL), 0);
    while (fm_reader_next(&reader, &block)) {
        assert_true(block.type < FM_BLOCK_LINE_STATES);
        if (block.type == FM_BLOCK_METRICS)
            assert_int_equal(block.data[1], 2); /* rows: calls and total */
        if (block.type == FM_BLOCK_PROCESSES)
            assert_int_equal(block.data[2], 16); /* columns */
    }
    fm_reader_release(&reader);
    free(bytes);
    fm_profile_free(p);
}

static void test_no_space(void **state)
{
    (void)state;
    struct fm_error err = FM_ERROR_INIT;
    struct fm_profile *p = sample();
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_int_equal(fm_file_save(p, full, &err), FM_CANNOT_WRITE);
    assert_string_equal(err.text, "writing the recording: No space left on device");
    close(full);
    fm_profile_free(p);
}

/* A file of a few kilobytes whose one block unpacks to `rows` numbers 0 behind `first` bytes. */
static uint8_t *bomb(uint16_t type, const char *first, size_t first_len, size_t rows, size_t *len)
{
    struct fm_writer writer;
    struct fm_compressor *compressor = fm_compressor_new();
    fm_autobuffer payload = FM_BUFFER_INIT;
    fm_autofree char *zeros = fm_calloc(rows, 1);
    int fd = fx_file();
    fm_writer_init(&writer, fd);
    fm_writer_start(&writer);
    fm_buffer_add(&payload, first, first_len);
    fm_buffer_add_varint(&payload, rows);
    if (type != FM_BLOCK_STRINGS)
        fm_buffer_add_varint(&payload, 1);
    fm_buffer_add(&payload, zeros, rows);
    assert_int_equal(fm_compressor_block(compressor, &writer, type, payload.data, payload.len), 0);
    fm_writer_end(&writer);
    fm_compressor_free(compressor);
    return fx_file_bytes(fd, len);
}

static void test_bombs(void **state)
{
    (void)state;
    static const uint16_t types[] = { FM_BLOCK_STRINGS, FM_BLOCK_PROCESSES, FM_BLOCK_THREADS,
                                      FM_BLOCK_NOTES, FM_BLOCK_NODES };
    for (size_t i = 0; i < FM_COUNT(types); i++) {
        struct fm_error err = FM_ERROR_INIT;
        size_t len;
        fm_autofree uint8_t *bytes = bomb(types[i], "\1", 1, (size_t)60 << 20, &len);
        assert_true(len < 10000);
        assert_null(fm_file_load(bytes, len, "a.fathom", &err));
        assert_int_equal(err.status, FM_DAMAGED);
        assert_non_null(strstr(err.text, "reading a.fathom: it unpacks to more than 51"));
    }
}

/* Nothing packs better than this, and it is honest: a million calls one in another, all alike. */
static void test_equal_nodes(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    uint32_t node = fx_thread(p, 7), func = fx_function(p, "f");
    for (int i = 0; i < 1000000; i++) {
        node = fm_profile_node(p, node, func);
        fm_profile_add(p, FM_METRIC_CALLS, node, 1);
        fm_profile_add(p, FM_METRIC_TOTAL, node, 1000);
    }
    size_t len, nodes = p->nodes.len;
    fm_autofree uint8_t *bytes = save(p, &len);
    fm_profile_free(p);
    assert_true(len < 10000);
    p = fm_file_load(bytes, len, "a.fathom", NULL);
    assert_non_null(p);
    assert_int_equal(p->nodes.len, nodes);
    assert_int_equal(p->notes.len, 0);
    fm_profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_equal_nodes),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_many_blocks),
        cmocka_unit_test(test_table_round_trip),
        cmocka_unit_test(test_every_prefix),
        cmocka_unit_test(test_every_flip),
        cmocka_unit_test(test_known_bytes),
        cmocka_unit_test(test_undefined_ids),
        cmocka_unit_test(test_nonsense_blocks),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_missing_block),
        cmocka_unit_test(test_lost_nodes),
        cmocka_unit_test(test_no_space),
        cmocka_unit_test(test_many_lines),
        cmocka_unit_test(test_line_bytes),
        cmocka_unit_test(test_line_nonsense),
        cmocka_unit_test(test_sample_bytes),
        cmocka_unit_test(test_sample_nonsense),
        cmocka_unit_test(test_residents),
        cmocka_unit_test(test_no_samples_no_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
