/* pprof: files put together byte by byte with answers worked out by hand, and what is written is
 * read, by a reader of protobuf that is this test's own. */
#include "fixture.h"

#include "base/memory.h"
#include "record/formats/format.h"
#include "record/formats/stacks/pprof.h"
#include "record/model/derive/weigh.h"

/* ---- protobuf by hand ---- */

static void put_varint(struct fm_buffer *b, unsigned field, uint64_t value)
{
    fm_buffer_add_varint(b, field << 3);
    fm_buffer_add_varint(b, value);
}

static void put_bytes(struct fm_buffer *b, unsigned field, const void *bytes, size_t len)
{
    fm_buffer_add_varint(b, field << 3 | 2);
    fm_buffer_add_varint(b, len);
    fm_buffer_add(b, bytes, len);
}

static void put_text(struct fm_buffer *b, const char *text)
{
    put_bytes(b, 6, text, strlen(text));
}

/* A message of numbers: fields 1, 2, …, those that are 0 left out. */
static void put_numbers(struct fm_buffer *b, unsigned field, const uint64_t *numbers, size_t n)
{
    fm_autobuffer body = FM_BUFFER_INIT;
    for (size_t i = 0; i < n; i++)
        if (numbers[i])
            put_varint(&body, (unsigned)i + 1, numbers[i]);
    put_bytes(b, field, body.data, body.len);
}
#define PUT(b, field, ...)                                                                         \
    put_numbers(b, field, (uint64_t[]){ __VA_ARGS__ },                                             \
                sizeof(uint64_t[]){ __VA_ARGS__ } / sizeof(uint64_t))

static void put_location(struct fm_buffer *b, uint64_t id, uint64_t mapping, uint64_t address,
                         const uint64_t (*lines)[2], size_t n)
{
    fm_autobuffer body = FM_BUFFER_INIT;
    put_varint(&body, 1, id);
    put_varint(&body, 2, mapping);
    put_varint(&body, 3, address);
    for (size_t i = 0; i < n; i++)
        put_numbers(&body, 4, lines[i], 2);
    put_bytes(b, 4, body.data, body.len);
}

struct label {
    uint64_t key, str, num;
};

/* `packed`: as proto3 has lists of numbers; else one field each, as proto2. */
static void put_sample(struct fm_buffer *b, bool packed, const uint64_t *locations, size_t depth,
                       const uint64_t *values, size_t n, struct label label)
{
    fm_autobuffer body = FM_BUFFER_INIT, list = FM_BUFFER_INIT;
    for (size_t i = 0; i < depth; i++) {
        if (packed)
            fm_buffer_add_varint(&list, locations[i]);
        else
            put_varint(&body, 1, locations[i]);
    }
    if (packed)
        put_bytes(&body, 1, list.data, list.len);
    for (size_t i = 0; i < n; i++)
        put_varint(&body, 2, values[i]);
    if (label.key)
        PUT(&body, 3, label.key, label.str, label.num);
    put_bytes(b, 2, body.data, body.len);
}
#define LIST(...) (uint64_t[]){ __VA_ARGS__ }, sizeof(uint64_t[]){ __VA_ARGS__ } / sizeof(uint64_t)

enum { T_NONE, T_SAMPLES, T_COUNT, T_CPU, T_US, T_MAIN, T_INNER, T_PY, T_C, T_SO, T_TID, T_THREAD };

static void put_texts(struct fm_buffer *b)
{
    static const char *const texts[] = { "",     "samples", "count", "cpu",       "microseconds",
                                         "main", "A.inner", "/a.py", "native_fn", "/lib/x.so",
                                         "tid",  "thread" };
    for (size_t i = 0; i < FM_COUNT(texts); i++)
        put_text(b, texts[i]);
}

/* Two types; main at two lines, inlined A.inner in native_fn, an address. */
static void put_file(struct fm_buffer *b, bool packed)
{
    PUT(b, 1, T_SAMPLES, T_COUNT);
    PUT(b, 1, T_CPU, T_US);
    PUT(b, 5, 1, T_MAIN, 0, T_PY, 10);
    PUT(b, 5, 2, T_INNER, 0, T_PY);
    PUT(b, 5, 900000000007, 0, T_C);
    PUT(b, 3, 5, 0, 0, 0, T_SO);
    put_location(b, 1, 0, 0, (uint64_t[][2]){ { 1, 12 } }, 1);
    put_location(b, 2, 0, 0, (uint64_t[][2]){ { 1, 14 } }, 1);
    put_location(b, 3, 0, 0, (uint64_t[][2]){ { 2, 33 }, { 900000000007, 0 } }, 2);
    put_location(b, 4, 5, 0xabc, NULL, 0);
    struct label none = { 0 };
    put_sample(b, packed, LIST(1), LIST(2, 20), none);
    put_sample(b, packed, LIST(3, 1), LIST(3, 30), none);
    put_sample(b, packed, LIST(4, 2), LIST(1, 9), none);
    put_sample(b, packed, LIST(2), LIST(4, 40), ((struct label){ T_TID, 0, 77 }));
    put_varint(b, 9, 1700000000000000000);
    put_varint(b, 10, 5000000);
    PUT(b, 11, T_CPU, T_US);
    put_varint(b, 12, 10000);
}

static struct fm_profile *load(const struct fm_buffer *b)
{
    struct fm_error err = FM_ERROR_INIT;
    assert_true(fm_format_pprof.recognise(b->data, b->len));
    struct fm_profile *p = fm_format_pprof.load(b->data, b->len, "x", &err);
    if (!p)
        fail_msg("%s", err.text);
    return p;
}

static void expect(const struct fm_profile *p, uint32_t node, int64_t samples, int64_t total_ns)
{
    fx_expect_node(p, node, 0, total_ns);
    assert_int_equal(fm_profile_value(p, FM_METRIC_SAMPLES, node), samples);
}

static void check_file(const struct fm_profile *p)
{
    uint32_t top = fx_child(p, p->threads.data[0].root, "main");
    expect(p, top, 2, 59000);
    uint32_t native = fx_child(p, top, "native_fn"), inner = fx_child(p, native, "inner");
    expect(p, native, 0, 30000);
    expect(p, inner, 3, 30000);
    expect(p, fx_child(p, top, "0xabc"), 1, 9000);
    assert_int_equal(p->threads.len, 2);
    assert_int_equal(p->threads.data[1].tid, 77);
    expect(p, fx_child(p, p->threads.data[1].root, "main"), 4, 40000);
    const struct fm_function *f = &p->functions.data[p->nodes.data[top].func];
    assert_int_equal(f->kind, FM_FUNCTION_PYTHON);
    assert_int_equal(f->line, 10);
    f = &p->functions.data[p->nodes.data[inner].func];
    assert_int_equal(f->line, 33);
    assert_string_equal(fm_profile_text(p, f->qualname), "A.inner");
    f = &p->functions.data[p->nodes.data[fx_child(p, top, "0xabc")].func];
    assert_int_equal(f->kind, FM_FUNCTION_NATIVE);
    assert_string_equal(fm_profile_text(p, f->file), "/lib/x.so");
    assert_int_equal(p->lines.rows.len, 3); /* main 12 and 14, inner 33 */
    assert_int_equal(p->processes.data[0].sample_interval_ns, 10000000);
    assert_int_equal(p->processes.data[0].start_real_ns, 1700000000000000000);
    assert_int_equal(p->processes.data[0].end_ns - p->processes.data[0].start_ns, 5000000);
    assert_int_equal(p->processes.data[0].samples, 10);
    assert_int_equal(p->processes.data[0].sample_mode, FM_SAMPLE_CPU);
    assert_int_equal(p->notes.len, 0);
}

static void test_by_hand(void **state)
{
    (void)state;
    for (int packed = 0; packed < 2; packed++) {
        fm_autobuffer raw = FM_BUFFER_INIT, zipped = FM_BUFFER_INIT;
        put_file(&raw, packed);
        put_texts(&raw);
        struct fm_profile *p = load(&raw);
        check_file(p);
        fm_profile_free(p);
        assert_int_equal(fm_gzip_pack(raw.data, raw.len, &zipped, NULL), 0);
        size_t one = zipped.len;
        p = load(&zipped);
        check_file(p);
        fm_profile_free(p);
        /* Two gzip members one behind the other are one. */
        fm_buffer_clear(&zipped);
        fm_gzip_pack(raw.data, 60, &zipped, NULL);
        fm_gzip_pack(raw.data + 60, raw.len - 60, &zipped, NULL);
        assert_true(zipped.len > one);
        p = load(&zipped);
        check_file(p);
        fm_profile_free(p);
    }
}

/* A heap profile: no time; the default type is shown. */
static void test_not_times(void **state)
{
    (void)state;
    static const char *const texts[] = { "", "objects", "count", "space", "bytes", "f", "a.py" };
    fm_autobuffer b = FM_BUFFER_INIT;
    PUT(&b, 1, 1, 2);
    PUT(&b, 1, 3, 4);
    PUT(&b, 5, 1, 5, 0, 6, 7);
    put_location(&b, 1, 0, 0, (uint64_t[][2]){ { 1, 7 } }, 1);
    put_sample(&b, true, LIST(1), LIST(3, 4096), ((struct label){ 0 }));
    for (size_t i = 0; i < FM_COUNT(texts); i++)
        put_text(&b, texts[i]);
    struct fm_profile *p = load(&b);
    assert_string_equal(fm_profile_fact_get(p, "unit"), "bytes");
    expect(p, fx_child(p, p->threads.data[0].root, "f"), 0, 4096);
    fm_profile_free(p);
    put_varint(&b, 14, 1); /* default_sample_type: objects */
    p = load(&b);
    assert_string_equal(fm_profile_fact_get(p, "unit"), "objects");
    expect(p, fx_child(p, p->threads.data[0].root, "f"), 0, 3);
    fm_profile_free(p);
}

static void expect_damaged(const struct fm_buffer *b, const char *sentence)
{
    struct fm_error err = FM_ERROR_INIT;
    assert_null(fm_format_pprof.load(b->data, b->len, "x", &err));
    if (!strstr(err.text, sentence))
        fail_msg("\"%s\" does not say \"%s\"", err.text, sentence);
    assert_int_equal(err.status, FM_DAMAGED);
}

static void test_damaged(void **state)
{
    (void)state;
    struct label none = { 0 };
    for (int i = 0; i < 13; i++) {
        static const char *const sentences[] = {
            "sample 4: it has a location that is not there",
            "sample 4: it has not one value for each type",
            "sample 4: it has not one value for each type",
            "two functions have the id 1",
            "two functions have the id 0",
            "two locations have the id 1",
            "location 9 is in a function that is not there",
            "a text is not in the list of texts",
            "a text is not in the list of texts",
            "a text is not in the list of texts",
            "sample 4: a text is not in the list of texts",
            "does not begin with none",
            "it is no pprof profile",
        };
        fm_autobuffer b = FM_BUFFER_INIT;
        if (i == 11)
            put_text(&b, "x");
        put_file(&b, true);
        if (i == 0)
            put_sample(&b, true, LIST(8), LIST(1, 2), none);
        else if (i == 1)
            put_sample(&b, true, LIST(1), LIST(1), none);
        else if (i == 2)
            put_sample(&b, true, LIST(1), LIST(1, 2, 3), none);
        else if (i == 3)
            PUT(&b, 5, 1, T_MAIN);
        else if (i == 4)
            PUT(&b, 5, 0, T_MAIN);
        else if (i == 5)
            put_location(&b, 1, 0, 0, NULL, 0);
        else if (i == 6)
            put_location(&b, 9, 0, 0, (uint64_t[][2]){ { 3, 1 } }, 1);
        else if (i == 7)
            PUT(&b, 5, 4, 99);
        else if (i == 8)
            PUT(&b, 1, T_CPU, 99);
        else if (i == 9)
            put_varint(&b, 13, UINT64_MAX);
        else if (i == 10)
            put_sample(&b, true, LIST(1), LIST(1, 2), ((struct label){ 99, 0, 1 }));
        else if (i == 12)
            put_bytes(&b, 2, "\xff", 1);
        put_texts(&b);
        expect_damaged(&b, sentences[i]);
    }
}

static void test_no_types(void **state)
{
    (void)state;
    fm_autobuffer b = FM_BUFFER_INIT;
    put_text(&b, "");
    expect_damaged(&b, "does not say what its values are");
    fm_buffer_clear(&b);
    PUT(&b, 1, 0, 0);
    expect_damaged(&b, "does not begin with none");
}

/* What would fill memory: much from little, deep stacks from inlined functions, many messages. */
static void test_bombs(void **state)
{
    (void)state;
    fm_autobuffer raw = FM_BUFFER_INIT, zipped = FM_BUFFER_INIT, ids = FM_BUFFER_INIT;
    fm_buffer_reserve(&raw, (size_t)100 << 20);
    memset(raw.data, 0, (size_t)100 << 20);
    raw.len = (size_t)100 << 20;
    assert_int_equal(fm_gzip_pack(raw.data, raw.len, &zipped, NULL), 0);
    expect_damaged(&zipped, "which no honest profile of its size does");
    for (size_t i = 0; i < raw.len; i += 2)
        memcpy(raw.data + i, "\x12", 2); /* an empty sample */
    expect_damaged(&raw, "which no honest recording of its size does");
    fm_buffer_clear(&raw);
    put_file(&raw, true);
    fm_autobuffer body = FM_BUFFER_INIT;
    put_varint(&body, 1, 50);
    for (int i = 0; i < 5000; i++)
        PUT(&body, 4, 1, 1);
    put_bytes(&raw, 4, body.data, body.len);
    fm_autofree uint64_t *locations = fm_calloc(5000, sizeof *locations);
    for (int i = 0; i < 5000; i++)
        locations[i] = 50;
    put_sample(&raw, true, locations, 5000, LIST(1, 1), ((struct label){ 0 }));
    put_texts(&raw);
    expect_damaged(&raw, "unfold to more frames than an honest file has");
    /* Two bytes each, and a structure of a hundred: within what gzip may, not within memory. */
    fm_autobuffer many = FM_BUFFER_INIT, packed = FM_BUFFER_INIT;
    for (int k = 0; k < 30 << 20; k++)
        fm_buffer_add(&many, "\x12\0", 2); /* a sample of nothing */
    assert_int_equal(fm_gzip_pack(many.data, many.len, &packed, NULL), 0);
    assert_true(packed.len < 100000);
    expect_damaged(&packed, "which no honest recording of its size does");
}

static void test_recognise(void **state)
{
    (void)state;
    static const char *const no[] = { "",          "\n",   "\nmain;f 1\n", "main;f 1\n",
                                      "{\"a\":1}", "\x0a", "\x0a\x7f" };
    for (size_t i = 0; i < FM_COUNT(no); i++)
        assert_false(fm_format_pprof.recognise(no[i], strlen(no[i])));
    fm_autobuffer zipped = FM_BUFFER_INIT;
    fm_gzip_pack("{\"traceEvents\": []}", 19, &zipped, NULL);
    assert_false(fm_format_pprof.recognise(zipped.data, zipped.len));
    assert_ptr_equal(fm_format_of_path("x.pb.gz"), &fm_format_pprof);
    assert_ptr_equal(fm_format_of_path("x.pprof"), &fm_format_pprof);
    assert_null(fm_format_of_path("x.gz"));
}

/* ---- writing ---- */

static void sample(struct fm_profile *p, uint32_t node, int64_t samples, enum fm_state state,
                   int64_t ns)
{
    fm_profile_add(p, FM_METRIC_SAMPLES, node, samples);
    fm_profile_add(p, fm_metric_of_state(state), node, ns);
}

/* main: 5 ns of its own in Python; f: 30 ns, of which 10 in Python, 20 waiting for a lock. */
static struct fm_profile *sampled(void)
{
    struct fm_profile *p = fm_profile_new();
    uint32_t top = fx_node(p, fx_thread(p, 7), "<module>", 0, 35);
    uint32_t f = fx_node(p, top, "f", 0, 30);
    sample(p, top, 1, FM_STATE_PYTHON, 5);
    sample(p, f, 3, FM_STATE_PYTHON, 10);
    sample(p, f, 2, FM_STATE_LOCK, 20);
    p->threads.data[0].name = fm_profile_string(p, "Main\xff");
    struct fm_process *process = &p->processes.data[0];
    process->sampled = true;
    process->sample_interval_ns = 4;
    process->start_real_ns = 1000;
    process->start_ns = 500;
    process->end_ns = 700;
    process->exe = fm_profile_string(p, "/usr/bin/python3");
    fm_profile_fact(p, "command", "run");
    return p;
}

/* One line for each field of the file, submessages in braces, texts resolved at the end. */
static void describe(const uint8_t *at, const uint8_t *end, struct fm_buffer *out, int depth)
{
    while (at < end) {
        uint64_t tag = 0, value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            tag |= (uint64_t)(*at & 0x7f) << shift;
            if (!(*at++ & 0x80))
                break;
        }
        for (int shift = 0; shift < 64; shift += 7) {
            value |= (uint64_t)(*at & 0x7f) << shift;
            if (!(*at++ & 0x80))
                break;
        }
        unsigned field = (unsigned)tag >> 3;
        if ((tag & 7) == 0) {
            fm_buffer_addf(out, "%u=%llu ", field, (unsigned long long)value);
            continue;
        }
        assert_int_equal(tag & 7, 2);
        assert_true(value <= (size_t)(end - at));
        fm_buffer_addf(out, "%u", field);
        if (depth == 0 && field == 6) {
            fm_buffer_addf(out, "\"%.*s\"\n", (int)value, (const char *)at);
        } else if (depth == 1 && (field == 1 || field == 2)) { /* lists of numbers of a sample */
            fm_buffer_add_text(out, "[");
            for (size_t i = 0; i < value; i++)
                fm_buffer_addf(out, "%s%u", i ? " " : "", at[i]);
            fm_buffer_add_text(out, "] ");
        } else if (depth == 0 && field == 13) {
            fm_buffer_addf(out, "[%u %u] ", at[0], at[1]);
        } else {
            fm_buffer_add_text(out, "{");
            describe(at, at + value, out, depth + 1);
            fm_buffer_add_text(out, depth ? "} " : "}\n");
        }
        at += value;
    }
}

/* Field by field. Lines: < is 60, f 102 (fixture.h). f's 5 samples are 2 and 3, as 10 and 20 ns
 * are: 5 * 10 / 30 is 1.67. */
static void test_written(void **state)
{
    (void)state;
    struct fm_profile *p = sampled();
    fm_autobuffer out = FM_BUFFER_INIT, raw = FM_BUFFER_INIT, text = FM_BUFFER_INIT;
    struct fm_error err = FM_ERROR_INIT;
    assert_int_equal(fm_format_pprof.save(p, &out, &err), 0);
    assert_int_equal(fm_gzip_unpack(out.data, out.len, 0, &raw, &err), 0);
    describe((uint8_t *)raw.data, (uint8_t *)raw.data + raw.len, &text, 0);
    assert_string_equal(
        text.data, "1{1=1 2=2 }\n"
                   "1{1=3 2=4 }\n"
                   "1{1=5 2=4 }\n"
                   "9=1000 10=200 11{1=3 2=4 }\n"
                   "12=4 13[6 7] 14=3 "
                   "2{1[1] 2[1 5 5] 3{1=8 3=7 } 3{1=9 3=7 } 3{1=11 2=10 } 3{1=13 2=12 } }\n"
                   "2{1[2 1] 2[2 10 10] 3{1=8 3=7 } 3{1=9 3=7 } 3{1=11 2=10 } 3{1=13 2=12 } }\n"
                   "2{1[2 1] 2[3 20 0] 3{1=8 3=7 } 3{1=9 3=7 } 3{1=11 2=10 } 3{1=13 2=14 } }\n"
                   "3{1=1 5=15 7=1 8=1 9=1 }\n"
                   "5{1=2 2=16 4=17 5=60 }\n"
                   "5{1=3 2=18 4=17 5=102 }\n"
                   "4{1=1 2=1 4{1=2 2=60 } }\n"
                   "4{1=2 2=1 4{1=3 2=102 } }\n"
                   "6\"\"\n6\"samples\"\n6\"count\"\n6\"wall\"\n6\"nanoseconds\"\n6\"cpu\"\n"
                   "6\"fathom " FATHOM_VERSION "\"\n6\"run\"\n6\"pid\"\n6\"tid\"\n"
                   "6\"Main\xef\xbf\xbd\"\n6\"thread\"\n6\"python\"\n6\"state\"\n6\"lock\"\n"
                   "6\"/usr/bin/python3\"\n6\"<module>\"\n6\"app.py\"\n6\"f\"\n");
    fm_profile_free(p);
}

/* Two lines of one function, of which one freed what it had, and a function that kept it. */
static struct fm_profile *of_memory(void)
{
    static const int64_t numbers[2][6] = { { 7, 70, 3, 30, 0, 0 }, { 2, 20, 1, 10, 2, 20 } };
    struct fm_profile *p = fm_profile_new();
    uint32_t root = fx_thread(p, 7), f = fx_function(p, "f"), g = fx_function(p, "g");
    uint32_t nodes[2] = { fm_profile_node_at(p, root, f, 11), 0 };
    nodes[1] = fm_profile_node_at(p, fm_profile_node_at(p, root, f, 12), g, 20);
    for (int i = 0; i < 2; i++) {
        fm_profile_add(p, FM_METRIC_BLOCKS, nodes[i], numbers[i][0]);
        fm_profile_add(p, FM_METRIC_ALLOCATED, nodes[i], numbers[i][1]);
        fm_profile_add(p, FM_METRIC_PEAK_BLOCKS, nodes[i], numbers[i][2]);
        fm_profile_add(p, FM_METRIC_PEAK, nodes[i], numbers[i][3]);
        fm_profile_add(p, FM_METRIC_LEAKED_BLOCKS, nodes[i], numbers[i][4]);
        fm_profile_add(p, FM_METRIC_LEAKED, nodes[i], numbers[i][5]);
    }
    return p;
}

static struct fm_profile *heap_again(const char *metric, struct fm_buffer *text)
{
    struct fm_profile *p = of_memory();
    fm_autobuffer out = FM_BUFFER_INIT, raw = FM_BUFFER_INIT;
    struct fm_error err = FM_ERROR_INIT;
    assert_int_equal(fm_profile_weigh(p, metric, &err), 0);
    assert_int_equal(fm_format_pprof.save(p, &out, &err), 0);
    assert_int_equal(fm_gzip_unpack(out.data, out.len, 0, &raw, &err), 0);
    describe((uint8_t *)raw.data, (uint8_t *)raw.data + raw.len, text, 0);
    fm_profile_free(p);
    return load(&out);
}

static void test_memory(void **state)
{
    (void)state;
    fm_autobuffer text = FM_BUFFER_INIT;
    struct fm_profile *p = heap_again("peak", &text);
    /* Go's four types in Go's order; locations are lines 11, 20 and 12. */
    assert_non_null(strstr(text.data, "1{1=1 2=2 }\n1{1=3 2=4 }\n1{1=5 2=2 }\n1{1=6 2=4 }\n"));
    assert_non_null(strstr(text.data, "2{1[1] 2[7 70 3 30] "));
    assert_non_null(strstr(text.data, "2{1[2 3] 2[2 20 1 10] "));
    assert_non_null(strstr(text.data, " 2=11 } }\n"));
    assert_non_null(strstr(text.data, " 2=20 } }\n"));
    assert_non_null(strstr(text.data, " 2=12 } }\n"));
    assert_non_null(strstr(text.data, "6\"\"\n6\"alloc_objects\"\n6\"count\"\n6\"alloc_space\"\n"
                                      "6\"bytes\"\n6\"inuse_objects\"\n6\"inuse_space\"\n"));
    assert_true(p->processes.data[0].memory && !p->processes.data[0].sampled);
    assert_int_equal(p->nodes.len, 4);
    assert_int_equal(p->nodes.data[1].line, 11);
    assert_int_equal(fm_profile_value(p, FM_METRIC_PEAK, 1), 30);
    assert_int_equal(fm_profile_value(p, FM_METRIC_PEAK_BLOCKS, 1), 3);
    assert_int_equal(p->nodes.data[3].line, 20);
    assert_int_equal(fm_profile_value(p, FM_METRIC_ALLOCATED, 3), 20);
    assert_int_equal(fm_profile_value(p, FM_METRIC_BLOCKS, 3), 2);
    assert_null(p->columns[FM_METRIC_LEAKED].data);
    assert_null(p->columns[FM_METRIC_TOTAL].data);
    fm_profile_free(p);
    p = heap_again("leaked", &text);
    assert_null(p->columns[FM_METRIC_PEAK].data);
    assert_int_equal(fm_profile_value(p, FM_METRIC_LEAKED, 3), 20);
    assert_int_equal(fm_profile_value(p, FM_METRIC_LEAKED_BLOCKS, 3), 2);
    fm_profile_free(p);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct fm_profile *p = sampled();
    fm_autobuffer out = FM_BUFFER_INIT, twice = FM_BUFFER_INIT;
    struct fm_error err = FM_ERROR_INIT;
    assert_int_equal(fm_format_pprof.save(p, &out, &err), 0);
    struct fm_profile *again = load(&out);
    uint32_t top = fx_child(again, again->threads.data[0].root, "<module>");
    uint32_t f = fx_child(again, top, "f");
    expect(again, top, 1, 35);
    expect(again, f, 5, 30);
    assert_int_equal(fm_profile_value(again, FM_METRIC_STATE_PYTHON, f), 10);
    assert_int_equal(fm_profile_value(again, FM_METRIC_STATE_LOCK, f), 20);
    assert_int_equal(fm_profile_value(again, FM_METRIC_STATE_PYTHON, top), 5);
    assert_int_equal(again->processes.data[0].pid, 7);
    assert_int_equal(again->processes.data[0].sample_interval_ns, 4);
    assert_string_equal(fm_profile_fact_get(again, "command"), "run");
    assert_int_equal(again->lines.rows.len, 0);
    assert_int_equal(fm_format_pprof.save(again, &twice, &err), 0);
    assert_int_equal(twice.len, out.len);
    fm_profile_free(again);
    fm_profile_free(p);
}

static void test_round_trip_calls(void **state)
{
    (void)state;
    struct fm_profile *p = fm_profile_new();
    uint32_t top = fx_node(p, fx_thread(p, 7), "main", 1, 100);
    fx_node(p, top, "f", 12, 60);
    fx_node(p, top, "g", 3, 0);
    struct fm_function lambda = p->functions.data[fx_function(p, "f")];
    uint32_t twin = fm_profile_node(p, top, fm_profile_function_distinct(p, &lambda));
    fm_profile_add(p, FM_METRIC_CALLS, twin, 5);
    fm_autobuffer out = FM_BUFFER_INIT;
    struct fm_error err = FM_ERROR_INIT;
    assert_int_equal(fm_format_pprof.save(p, &out, &err), 0);
    struct fm_profile *again = load(&out);
    top = fx_child(again, again->threads.data[0].root, "main");
    fx_expect_node(again, top, 1, 100);
    fx_expect_node(again, fx_child(again, top, "f"), 12, 60);
    fx_expect_node(again, fx_child(again, top, "g"), 3, 0);
    assert_int_equal(again->nodes.len, 5); /* twins stay apart */
    assert_true(again->processes.data[0].calls && !again->processes.data[0].sampled);
    fm_profile_free(again);
    fm_profile_free(p);
}

/* No prefix of the compressed file loads; a prefix of the other loads or says why not. */
static void test_cut_everywhere(void **state)
{
    (void)state;
    struct fm_profile *p = sampled();
    fm_autobuffer out = FM_BUFFER_INIT, raw = FM_BUFFER_INIT;
    fm_format_pprof.save(p, &out, NULL);
    fm_gzip_unpack(out.data, out.len, 0, &raw, NULL);
    for (size_t cut = 0; cut < out.len + raw.len; cut++) {
        struct fm_error err = FM_ERROR_INIT;
        size_t len = cut < out.len ? cut : cut - out.len;
        fm_autofree char *part = fm_malloc(len);
        memcpy(part, cut < out.len ? out.data : raw.data, len);
        fm_format_pprof.recognise(part, len);
        struct fm_profile *loaded = fm_format_pprof.load(part, len, "part", &err);
        assert_true(cut < out.len ? !loaded : loaded || err.status == FM_DAMAGED);
        fm_profile_free(loaded);
    }
    fm_profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),        cmocka_unit_test(test_not_times),
        cmocka_unit_test(test_damaged),        cmocka_unit_test(test_no_types),
        cmocka_unit_test(test_bombs),          cmocka_unit_test(test_recognise),
        cmocka_unit_test(test_written),        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_round_trip_calls),
        cmocka_unit_test(test_cut_everywhere),
    };
    return cmocka_run_group_tests_name("pprof", tests, NULL, NULL);
}
