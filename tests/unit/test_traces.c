/* Traces in a recording: blocks are copied as they are, and numbers in them lead to the right names. */
#include "fixture.h"

#include <stdio.h>

#include "record/capture/format.h"
#include "record/model/file/file.h"
#include "record/model/file/recorder.h"
#include "scratch_file.h"

/* A payload: the number of its trace, then what only the packer understands. */
static const uint8_t packed[] = { 0, 0, 0, 0, 'e', 'v', 'e', 'n', 't', 's', 0, 0, 0, 0, 'm' };

/* A process with a thread that has two blocks, and function 3 and name 1 of which are called `name`. */
static struct fm_profile *traced(uint32_t pid, const char *name)
{
    struct fm_profile *p = fm_profile_new();
    uint32_t text = fm_profile_string(p, name);
    uint32_t process = fm_profile_process(p, &(struct fm_process){ .pid = pid, .profiled = true });
    uint32_t thread = fm_profile_thread(p, &(struct fm_thread){ .process = process, .tid = pid });
    uint32_t func =
        fm_profile_function(p, &(struct fm_function){ .name = text, .qualname = text, .line = 1 });
    struct fm_trace trace = { .process = process,
                              .source = fm_trace_source_bytes(packed, sizeof packed) };
    for (uint32_t id = 0; id < 3; id++)
        fm_vec_push(&trace.functions, FM_NONE);
    fm_vec_push(&trace.functions, func);
    fm_vec_push(&trace.names, FM_NONE);
    fm_vec_push(&trace.names, text);
    fm_vec_push(&trace.streams, ((struct fm_trace_stream){ 5, thread, 12, 1000, 2000, 77, 3 }));
    fm_vec_push(&trace.blocks, ((struct fm_trace_block){ 0, 10, FM_BLOCK_TRACE_EVENTS }));
    fm_vec_push(&trace.blocks, ((struct fm_trace_block){ 10, 5, FM_BLOCK_TRACE_MARKS }));
    fm_vec_push(&p->traces.list, trace);
    return p;
}

static struct fm_profile *saved(int fd, const char *const *names, size_t count)
{
    struct fm_recorder *r = fm_recorder_new(fd, true);
    for (size_t i = 0; i < count; i++) {
        struct fm_profile *p = traced(7 + (uint32_t)i, names[i]);
        fm_recorder_profile(r, p);
        fm_profile_free(p);
    }
    assert_int_equal(fm_recorder_end(r, NULL), 0);
    fm_recorder_free(r);
    struct fm_profile *p =
        fm_file_load_fd(fd, (uint64_t)lseek(fd, 0, SEEK_END), "x", FM_FILE_ALL, NULL);
    assert_non_null(p);
    assert_int_equal(p->notes.len, 0);
    return p;
}

static void check(const struct fm_profile *p, size_t at, const char *name)
{
    const struct fm_trace *trace = &p->traces.list.data[at];
    uint8_t bytes[10];
    assert_int_equal(p->processes.data[trace->process].pid, 7 + at);
    assert_int_equal(trace->streams.len, 1);
    const struct fm_trace_stream *s = &trace->streams.data[0];
    assert_int_equal(s->number, 5);
    assert_int_equal(p->threads.data[s->thread].tid, 7 + at);
    assert_int_equal(s->depth, 12);
    assert_int_equal(s->begin_ns, 1000);
    assert_int_equal(s->end_ns, 2000);
    assert_int_equal(s->events, 77);
    assert_int_equal(s->lost, 3);
    assert_int_equal(trace->functions.len, 4);
    assert_int_equal(trace->functions.data[2], FM_NONE);
    assert_string_equal(fm_profile_text(p, p->functions.data[trace->functions.data[3]].name), name);
    assert_string_equal(fm_profile_text(p, trace->names.data[1]), name);
    assert_int_equal(trace->blocks.len, 2);
    const struct fm_trace_block *events = &trace->blocks.data[0], *marks = events + 1;
    assert_int_equal(events->type, FM_BLOCK_TRACE_EVENTS);
    assert_int_equal(events->bytes, 10);
    assert_true(trace->source->read(trace->source->context, events->at, bytes, 10));
    assert_memory_equal(bytes + 4, "events", 6);
    assert_int_equal(bytes[0], at);
    assert_int_equal(marks->type, FM_BLOCK_TRACE_MARKS);
    assert_true(trace->source->read(trace->source->context, marks->at, bytes, marks->bytes));
    assert_memory_equal(bytes + 4, "m", 1);
    assert_false(trace->source->read(trace->source->context, 1u << 30, bytes, 1));
}

static void test_many_are_one_file(void **state)
{
    (void)state;
    static const char *const names[] = { "f", "g", "f" };
    int fd = fx_file();
    struct fm_profile *p = saved(fd, names, 3);
    close(fd); /* its profile has its own */
    assert_int_equal(p->traces.list.len, 3);
    for (size_t i = 0; i < 3; i++)
        check(p, i, names[i]);
    int again = fx_file();
    struct fm_recorder *r = fm_recorder_new(again, true);
    fm_recorder_profile(r, p);
    assert_int_equal(fm_recorder_end(r, NULL), 0);
    fm_recorder_free(r);
    fm_profile_free(p);
    p = fm_file_load_fd(again, (uint64_t)lseek(again, 0, SEEK_END), "x", FM_FILE_ALL, NULL);
    for (size_t i = 0; i < 3; i++)
        check(p, i, names[i]);
    fm_profile_free(p);
    close(again);
}

static void test_from_memory(void **state)
{
    (void)state;
    static const char *const names[] = { "f" };
    static uint8_t bytes[65536];
    int fd = fx_file();
    fm_profile_free(saved(fd, names, 1));
    ssize_t len = pread(fd, bytes, sizeof bytes, 0);
    struct fm_profile *p = fm_file_load(bytes, (size_t)len, "x", NULL);
    check(p, 0, "f");
    fm_profile_free(p);
    close(fd);
}

/* Wherever the file ends, what is there is sane. */
static void test_cut_off_anywhere(void **state)
{
    (void)state;
    static const char *const names[] = { "f", "g" };
    static uint8_t bytes[65536];
    int fd = fx_file();
    fm_profile_free(saved(fd, names, 2));
    ssize_t len = pread(fd, bytes, sizeof bytes, 0);
    close(fd);
    for (ssize_t cut = 16; cut < len; cut++) {
        struct fm_profile *p = fm_file_load(bytes, (size_t)cut, "x", NULL);
        assert_non_null(p);
        for (size_t i = 0; i < p->traces.list.len; i++) {
            const struct fm_trace *trace = &p->traces.list.data[i];
            assert_true(trace->process < p->processes.len);
            for (size_t k = 0; k < trace->streams.len; k++)
                assert_true(trace->streams.data[k].thread < p->threads.len);
            for (size_t k = 0; k < trace->blocks.len; k++)
                assert_true(trace->blocks.data[k].at + trace->blocks.data[k].bytes <=
                            (uint64_t)cut);
        }
        fm_profile_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_are_one_file),
        cmocka_unit_test(test_from_memory),
        cmocka_unit_test(test_cut_off_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
