/* What makes a flight recorder write (watch/trace/trigger.h): found in words, also in those of a chunk that is
 * still being filled, each once; and random words harm nobody. */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/varint.h"
#include "record/capture/live.h"
#include "trace_words.h"
#include "watch/trace/trigger.h"

#define PID 7

struct watched {
    char folder[64], store[128];
    struct fm_trigger_rules rules;
    struct fm_trigger_scan *scan;
    struct trace_words w;
    struct fm_trigger found[16];
    size_t count;
};

static void found(void *context, const struct fm_trigger *trigger)
{
    struct watched *watched = context;
    if (watched->count < 16)
        watched->found[watched->count] = *trigger;
    watched->count++;
}

static size_t add_text(uint8_t *out, const char *text)
{
    size_t n = fm_varint_put(out, strlen(text));
    memcpy(out + n, text, strlen(text));
    return n + strlen(text);
}

static size_t define(uint8_t *out, unsigned kind, unsigned number, const char *first,
                     const char *second)
{
    uint8_t body[256];
    size_t n = fm_varint_put(body, kind);
    n += fm_varint_put(body + n, number);
    if (kind == FM_LIVE_DEF_FUNCTION) {
        n += fm_varint_put(body + n, 0);
        n += fm_varint_put(body + n, 1);
    }
    n += add_text(body + n, first);
    if (second)
        n += add_text(body + n, second);
    if (kind == FM_LIVE_DEF_FUNCTION)
        n += add_text(body + n, "a.py");
    size_t head = fm_varint_put(out, n);
    memcpy(out + head, body, n);
    return head + n;
}

/* Functions: 1 main, 2 Work.step, 3 Thread._bootstrap_inner. Names: 1 ValueError, 2 phase, 3 SystemExit. */
static void write_store(const char *path)
{
    static uint8_t bytes[FM_LIVE_PAGE * 2];
    struct fm_live_chunk chunk = { .magic = FM_LIVE_CHUNK_MAGIC,
                                   .kind = FM_LIVE_DEFS,
                                   .bytes = FM_LIVE_PAGE };
    uint8_t *at = bytes + FM_LIVE_PAGE + sizeof chunk, *begin = at;
    at += define(at, FM_LIVE_DEF_FUNCTION, 1, "main", "");
    at += define(at, FM_LIVE_DEF_FUNCTION, 2, "step", "Work.step");
    at += define(at, FM_LIVE_DEF_FUNCTION, 3, "_bootstrap_inner", "Thread._bootstrap_inner");
    at += define(at, FM_LIVE_DEF_NAME, 1, "ValueError", NULL);
    at += define(at, FM_LIVE_DEF_EXCEPTION, 1, "ValueError,Exception,BaseException,object", NULL);
    at += define(at, FM_LIVE_DEF_NAME, 2, "phase", NULL);
    at += define(at, FM_LIVE_DEF_NAME, 3, "SystemExit", NULL);
    at += define(at, FM_LIVE_DEF_EXCEPTION, 3, "SystemExit,BaseException,object", NULL);
    chunk.used = (uint32_t)(at - begin);
    memcpy(bytes + FM_LIVE_PAGE, &chunk, sizeof chunk);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, bytes, sizeof bytes), sizeof bytes);
    close(fd);
}

static void no_blocks(void *context, uint16_t type, const void *payload, size_t bytes)
{
    (void)context, (void)type, (void)payload, (void)bytes;
}

static void begin(struct watched *d, const struct fm_trigger_rule *rules, size_t count)
{
    *d = (struct watched){ .folder = "/tmp/fathom-trigger-XXXXXX" };
    assert_non_null(mkdtemp(d->folder));
    snprintf(d->store, sizeof d->store, "%s/%d.0.live", d->folder, PID);
    write_store(d->store);
    memcpy(d->rules.rules, rules, count * sizeof *rules);
    d->rules.count = count;
    d->scan = fm_trigger_scan_new(&d->rules, d->folder, PID, 0, found, d);
    d->w = (struct trace_words){ .pack = fm_trace_pack_new(0, no_blocks, NULL),
                                 .thread = 1,
                                 .tid = 70 };
    fm_trace_pack_clock(d->w.pack, 0, 1); /* a tick is a nanosecond */
    fm_trace_pack_clock(d->w.pack, 1000000000, 1000000001);
    words_begin(&d->w, 1000);
}

static void end(struct watched *d)
{
    fm_trigger_scan_free(d->scan);
    fm_trace_pack_free(d->w.pack);
    unlink(d->store);
    rmdir(d->folder);
}

static void look(struct watched *d, bool whole)
{
    struct fm_trigger_chunk chunk = { .thread = 1,
                                      .tid = 70,
                                      .ticks = d->w.chunk_ticks,
                                      .words = d->w.words,
                                      .count = d->w.count,
                                      .whole = whole };
    fm_trigger_scan_chunk(d->scan, &chunk, d->w.pack);
}

static void escape_u32(struct trace_words *w, unsigned kind, uint32_t number)
{
    words_escape_now(w, kind, (uint16_t[]){ (uint16_t)number, (uint16_t)(number >> 16) }, 2);
}

static const struct fm_trigger_rule slow = { FM_TRIGGER_SLOW, "Work.step", 500 };

/* 499 ns are none, 500 are; each look finds what is new, once. */
static void test_slow_calls(void **state)
{
    (void)state;
    struct watched d;
    begin(&d, &slow, 1);
    words_call(&d.w, 2000, 1);
    words_call(&d.w, 2100, 2);
    words_return(&d.w, 2599);
    look(&d, false);
    assert_int_equal(d.count, 0);
    words_call(&d.w, 3000, 2);
    look(&d, false);
    words_return(&d.w, 3500);
    look(&d, false);
    look(&d, false);
    assert_int_equal(d.count, 1);
    words_return(&d.w, 9000); /* main is not waited for */
    look(&d, true);
    assert_int_equal(d.count, 1);
    assert_int_equal(d.found[0].took_ns, 500);
    assert_int_equal(d.found[0].pid, PID);
    assert_int_equal(d.found[0].tid, 70);
    assert_string_equal(d.found[0].what, "Work.step");
    char text[300];
    fm_trigger_describe(&d.found[0], text, sizeof text);
    assert_string_equal(text, "Work.step took 0.001 ms");
    end(&d);
}

/* A begin at the end of a chunk that is being filled may be taken back, and another stand there. */
static void test_begins_that_are_taken_back(void **state)
{
    (void)state;
    struct watched d;
    begin(&d, &slow, 1);
    words_call(&d.w, 2000, 1);
    size_t count = d.w.count;
    uint64_t last = d.w.last;
    words_call(&d.w, 2001, 2);
    look(&d, false);
    memset(d.w.words + count, 0, (d.w.count - count) * sizeof *d.w.words);
    d.w.count = count;
    d.w.last = last;
    words_return(&d.w, 9000); /* main's */
    look(&d, false);
    assert_int_equal(d.count, 0);
    end(&d);
}

static void test_regions(void **state)
{
    (void)state;
    struct watched d;
    struct fm_trigger_rule rules[] = { { FM_TRIGGER_SLOW, "pha*", 1000 } };
    begin(&d, rules, 1);
    words_call(&d.w, 2000, 1);
    escape_u32(&d.w, FM_TRACE_REGION_BEGIN, 2); /* at 2000 */
    words_call(&d.w, 2500, 2);
    words_return(&d.w, 3000);
    escape_u32(&d.w, FM_TRACE_REGION_END, 2); /* 1000 ns later */
    words_call(&d.w, 4000, 2);
    escape_u32(&d.w, FM_TRACE_REGION_BEGIN, 2);
    words_return(&d.w, 4100); /* the call that it was begun in ends before it */
    words_call(&d.w, 4200, 2);
    escape_u32(&d.w, FM_TRACE_REGION_END, 2);
    look(&d, true);
    assert_int_equal(d.count, 1);
    assert_int_equal(d.found[0].took_ns, 1000);
    /* Its coroutine waited: it began at 2000 and not at 4200. */
    escape_u32(&d.w, FM_TRACE_REGION_BEGIN, 2);
    words_escape_now(&d.w, FM_TRACE_REGION_END, (uint16_t[]){ 2, 0, 2000, 0, 0, 0 }, 6);
    look(&d, true);
    assert_int_equal(d.count, 2);
    assert_int_equal(d.found[1].took_ns, 2200);
    end(&d);
}

static void test_exceptions(void **state)
{
    (void)state;
    struct watched d;
    struct fm_trigger_rule rules[] = { { FM_TRIGGER_RAISED, "Exception", 0 },
                                       { FM_TRIGGER_RAISED, "OSError", 0 },
                                       { FM_TRIGGER_UNCAUGHT, "*", 0 } };
    begin(&d, rules, 3);
    words_call(&d.w, 2000, 1);
    words_call(&d.w, 2100, 3);
    words_call(&d.w, 2200, 2);
    escape_u32(&d.w, FM_TRACE_RAISE, 1);
    words_return(&d.w, 2300); /* caught */
    look(&d, false);
    assert_int_equal(d.count, 1);
    assert_string_equal(d.found[0].what, "ValueError");
    words_call(&d.w, 2400, 2);
    escape_u32(&d.w, FM_TRACE_RAISE, 1);
    words_escape_now(&d.w, FM_TRACE_UNWIND, NULL, 0); /* what the thread runs */
    look(&d, false);
    assert_int_equal(d.count, 3);
    assert_true(d.found[2].rule->kind == FM_TRIGGER_UNCAUGHT);
    words_return(&d.w, 2500);
    escape_u32(&d.w, FM_TRACE_RAISE, 3);
    words_escape_now(&d.w, FM_TRACE_UNWIND, NULL, 0); /* main ends by SystemExit */
    look(&d, true);
    assert_int_equal(d.count, 3);
    end(&d);
}

/* Whatever stands in a chunk, in whatever pieces it comes. */
static void test_rubbish(void **state)
{
    (void)state;
    struct watched d;
    struct fm_trigger_rule rules[] = { { FM_TRIGGER_SLOW, "*", 1 },
                                       { FM_TRIGGER_UNCAUGHT, "*", 0 } };
    begin(&d, rules, 2);
    uint32_t random = 1;
    for (uint64_t chunk = 0; chunk < 200; chunk++) {
        uint16_t words[600];
        for (size_t i = 0; i < 600; i++) {
            random = random * 1664525 + 1013904223;
            words[i] = (uint16_t)(random >> 16 & (random & 1 << 12 ? 0x1f : 0xffff));
        }
        for (size_t count = 0; count <= 600; count += 50) {
            struct fm_trigger_chunk c = { .thread = random % 5,
                                          .sequence = chunk,
                                          .ticks = random,
                                          .words = words,
                                          .count = count,
                                          .shift = 3,
                                          .whole = count == 600 };
            fm_trigger_scan_chunk(d.scan, &c, d.w.pack);
        }
    }
    end(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_calls), cmocka_unit_test(test_begins_that_are_taken_back),
        cmocka_unit_test(test_regions),    cmocka_unit_test(test_exceptions),
        cmocka_unit_test(test_rubbish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
