/* memray's own files, put together byte by byte as memray writes them, with answers worked out by hand. (Files that
 * memray wrote, and what it says of them, are tests/behaviour/test_memray_bin.py's.) */
#include "fixture.h"

#include <lz4frame.h>

#include "base/memory.h"
#include "base/varint.h"
#include "record/formats/format.h"

/* ---- a file ---- */

/* Numbers of allocators from version 12 on. */
enum { PY_FREE = 1, PY_MALLOC = 2, FREE = 5, MALLOC = 6, CALLOC = 8, MMAP = 14, MUNMAP = 15 };

struct writer {
    struct fm_buffer b;
    uint64_t address, frame;
    int64_t line;
};

static void put_fixed(struct fm_buffer *b, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        fm_buffer_add_char(b, (char)(value >> 8 * i));
}

static void put_signed(struct fm_buffer *b, int64_t value)
{
    fm_buffer_add_varint(b, fm_zigzag(value));
}

static void put_text(struct fm_buffer *b, const char *text)
{
    fm_buffer_add(b, text, strlen(text) + 1);
}

/* Main thread 1; one of its frames is memray's own. */
static void put_header(struct writer *w, unsigned version, bool aggregated)
{
    struct fm_buffer *b = &w->b;
    fm_buffer_clear(b);
    w->address = w->frame = 0;
    w->line = 0;
    put_text(b, "memray");
    put_fixed(b, version, 4);
    if (version >= 12)
        put_fixed(b, 0x030b07f0, 4);
    put_fixed(b, 0, 1);
    put_fixed(b, aggregated, 1);
    put_fixed(b, 0, 16);
    put_fixed(b, 1000, 8);
    put_fixed(b, 5000, 8);
    put_text(b, "app.py --now");
    put_fixed(b, 4711, 4);
    put_fixed(b, 1, 8);
    put_fixed(b, 1, 8);
    put_fixed(b, 1, 1);
    if (version >= 11)
        put_fixed(b, 1, 1);
    if (version >= 12)
        put_fixed(b, 0, 1);
    if (version < 13)
        return;
    put_text(b, "/usr/lib");
    put_text(b, "/usr/site");
    put_text(b, "");
    put_text(b, "/srv");
    put_text(b, "/usr/lib");
    put_text(b, "");
}

static void put_thread(struct writer *w, uint64_t tid)
{
    put_fixed(&w->b, 12, 1);
    put_fixed(&w->b, tid, 8);
}

/* Instructions 0 and 2 are of the first line, 4 and 6 of the next: PEP 657, forms with one line. */
static void put_code(struct writer *w, unsigned number, const char *name, int line)
{
    static const uint8_t table[] = { 0x80 | 10 << 3 | 1, 0, 1, 0x80 | 11 << 3 | 1, 0, 1 };
    put_fixed(&w->b, 14, 1);
    fm_buffer_add_varint(&w->b, number);
    put_text(&w->b, name);
    put_text(&w->b, "/srv/app.py");
    put_signed(&w->b, line - w->line);
    w->line = line;
    fm_buffer_add_varint(&w->b, sizeof table);
    fm_buffer_add(&w->b, table, sizeof table);
}

static void put_push(struct writer *w, unsigned code, int instruction)
{
    put_fixed(&w->b, 64 | 1, 1);
    fm_buffer_add_varint(&w->b, code);
    put_signed(&w->b, instruction);
}

static void put_pop(struct writer *w, unsigned count)
{
    put_fixed(&w->b, 16 | (count - 1), 1);
}

/* By the address itself, or, if that is below 15, one of the last. */
static void put_allocation(struct writer *w, unsigned allocator, uint64_t address, uint64_t bytes)
{
    unsigned which = address < 15 ? (unsigned)address : 15;
    put_fixed(&w->b, 128 | which << 3 | (allocator < 8 ? allocator : 0), 1);
    if (which == 15) {
        put_signed(&w->b, (int64_t)((address >> 3) - w->address));
        w->address = address >> 3;
    }
    if (allocator >= 8)
        put_fixed(&w->b, allocator, 1);
    if (allocator != FREE && allocator != PY_FREE)
        fm_buffer_add_varint(&w->b, bytes);
}

static void put_look(struct writer *w, uint64_t ms, uint64_t rss)
{
    put_fixed(&w->b, 2, 1);
    fm_buffer_add_varint(&w->b, rss);
    fm_buffer_add_varint(&w->b, ms);
}

/* memray's own frame, and below it main at its first line. */
static void put_beginning(struct writer *w)
{
    put_header(w, 13, false);
    put_code(w, 1, "run", 70);
    put_code(w, 2, "main", 10);
    put_thread(w, 1);
    put_push(w, 1, 0);
    put_push(w, 2, 2);
}

/* ---- what was read ---- */

static struct fm_profile *load_bytes(const void *bytes, size_t len)
{
    struct fm_error err = FM_ERROR_INIT;
    struct fm_profile *p = fm_format_memray_bin.load(bytes, len, "x.bin", &err);
    if (!p)
        fail_msg("%s", err.text);
    return p;
}

static struct fm_profile *load_whole(struct writer *w)
{
    put_fixed(&w->b, 1, 1);
    struct fm_profile *p = load_bytes(w->b.data, w->b.len);
    assert_int_equal(p->notes.len, 0);
    return p;
}

static int64_t sum_of(const struct fm_profile *p, enum fm_metric metric)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->nodes.len; i++)
        sum += fm_profile_value(p, metric, i);
    return sum;
}

/* The number of the line of that function, wherever it is. */
static int64_t at_line(const struct fm_profile *p, enum fm_metric metric, const char *name,
                       uint32_t line)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        const struct fm_node *node = &p->nodes.data[i];
        if (node->line == line &&
            strcmp(fm_profile_text(p, p->functions.data[node->func].name), name) == 0)
            sum += fm_profile_value(p, metric, i);
    }
    return sum;
}

/* ---- answers ---- */

/* The same most twice: the later instant is the peak, as memray has it. */
static void test_the_last_of_equal_peaks(void **state)
{
    (void)state;
    struct writer w = { 0 };
    put_beginning(&w);
    put_allocation(&w, MALLOC, 0x1000, 100);
    put_allocation(&w, MALLOC, 0x2000, 50);
    put_allocation(&w, FREE, 0x1000, 0);
    put_pop(&w, 1);
    put_push(&w, 2, 4); /* the next line */
    put_allocation(&w, PY_MALLOC, 0x3000, 100);
    put_allocation(&w, PY_FREE, 0, 0); /* the address last written */
    put_allocation(&w, CALLOC, 0x4000, 7);
    struct fm_profile *p = load_whole(&w);
    assert_int_equal(sum_of(p, FM_METRIC_PEAK), 150);
    assert_int_equal(at_line(p, FM_METRIC_PEAK, "main", 10), 50);
    assert_int_equal(at_line(p, FM_METRIC_PEAK, "main", 11), 100);
    assert_int_equal(at_line(p, FM_METRIC_PEAK_BLOCKS, "main", 11), 1);
    assert_int_equal(at_line(p, FM_METRIC_LEAKED, "main", 10), 50);
    assert_int_equal(at_line(p, FM_METRIC_LEAKED, "main", 11), 7);
    assert_int_equal(at_line(p, FM_METRIC_ALLOCATED, "main", 10), 150);
    assert_int_equal(at_line(p, FM_METRIC_BLOCKS, "main", 11), 2);
    assert_int_equal(at_line(p, FM_METRIC_TEMPORARY, "main", 10), 100);
    assert_int_equal(at_line(p, FM_METRIC_TEMPORARY, "main", 11), 100);
    assert_int_equal(p->processes.data[0].pid, 4711);
    assert_string_equal(fm_profile_text(p, p->processes.data[0].version), "3.11.7");
    assert_string_equal(fm_profile_fact_get(p, "command"), "app.py --now");
    assert_int_equal(p->nodes.len, 3); /* a thread and two lines: memray's frame is left out */
    fm_profile_free(p);
    fm_buffer_release(&w.b);
}

/* 16 KiB, of which the second 4 go, then the first; and all that is left. */
static void test_pieces_of_mappings(void **state)
{
    (void)state;
    struct writer w = { 0 };
    put_beginning(&w);
    put_allocation(&w, MMAP, 0x10000, 0x4000);
    put_allocation(&w, MMAP, 0x20000, 0x1000);
    put_look(&w, 10, 111);
    put_allocation(&w, MUNMAP, 0x11000, 0x1000);
    put_look(&w, 20, 222);
    put_allocation(&w, MUNMAP, 0x10000, 0x1000);
    put_allocation(&w, MUNMAP, 0x12800, 0x100000);
    struct fm_profile *p = load_whole(&w);
    assert_int_equal(sum_of(p, FM_METRIC_PEAK), 0x5000);
    assert_int_equal(sum_of(p, FM_METRIC_PEAK_BLOCKS), 2);
    assert_int_equal(sum_of(p, FM_METRIC_LEAKED), 0x800); /* 0x12000 … 0x12800 */
    assert_int_equal(sum_of(p, FM_METRIC_LEAKED_BLOCKS), 1);
    assert_int_equal(p->memory.points.len, 2);
    assert_int_equal(p->memory.points.data[0].heap, 0x5000);
    assert_int_equal(p->memory.points.data[1].heap, 0x4000);
    assert_int_equal(p->memory.points.data[1].rss, 222);
    assert_int_equal(p->memory.points.data[1].at_ns, 1020 * 1000000ull);
    fm_profile_free(p);
    fm_buffer_release(&w.b);
}

/* Many ranges, in an order that is none, all of which one munmap takes, but for the halves at both ends. */
static void test_many_mappings(void **state)
{
    (void)state;
    struct writer w = { 0 };
    put_beginning(&w);
    for (uint64_t i = 0; i < 1009; i++)
        put_allocation(&w, MMAP, 0x100000 + i * 379 % 1009 * 0x2000, 0x1000);
    put_allocation(&w, MUNMAP, 0x100000 + 0x800, 1008 * 0x2000);
    struct fm_profile *p = load_whole(&w);
    assert_int_equal(sum_of(p, FM_METRIC_PEAK), 1009 * 0x1000);
    assert_int_equal(sum_of(p, FM_METRIC_LEAKED), 0x1000);
    assert_int_equal(sum_of(p, FM_METRIC_LEAKED_BLOCKS), 2);
    fm_profile_free(p);
    fm_buffer_release(&w.b);
}

/* What another thread frees, or its own after two others, is not temporary. */
static void test_temporary_is_of_one_thread(void **state)
{
    (void)state;
    struct writer w = { 0 };
    put_beginning(&w);
    put_allocation(&w, MALLOC, 0x1000, 1);
    put_thread(&w, 2);
    put_fixed(&w.b, 10, 1);
    put_text(&w.b, "w\xc3\xb6rker");
    put_push(&w, 2, 6);
    put_allocation(&w, FREE, 0x1000, 0);
    put_allocation(&w, MALLOC, 0x2000, 10);
    put_allocation(&w, MALLOC, 0x3000, 20);
    put_allocation(&w, MALLOC, 0x4000, 40);
    put_allocation(&w, FREE, 0x2000, 0);
    put_allocation(&w, FREE, 0x3000, 0);
    put_allocation(&w, FREE, 0x9000, 0); /* never seen */
    struct fm_profile *p = load_whole(&w);
    assert_int_equal(sum_of(p, FM_METRIC_TEMPORARY), 20);
    assert_int_equal(sum_of(p, FM_METRIC_TEMPORARY_BLOCKS), 1);
    assert_int_equal(p->threads.len, 2);
    assert_string_equal(fm_profile_text(p, p->threads.data[1].name), "w\xc3\xb6rker");
    assert_int_equal(p->threads.data[1].tid, 2);
    fm_profile_free(p);
    fm_buffer_release(&w.b);
}

static void test_a_block_in_the_place_of_another(void **state)
{
    (void)state;
    struct writer w = { 0 };
    put_beginning(&w);
    put_allocation(&w, MALLOC, 0x1000, 100);
    put_allocation(&w, MALLOC, 0x1000, 30);
    struct fm_profile *p = load_whole(&w);
    assert_int_equal(sum_of(p, FM_METRIC_PEAK), 100);
    assert_int_equal(sum_of(p, FM_METRIC_LEAKED), 30);
    assert_int_equal(sum_of(p, FM_METRIC_LEAKED_BLOCKS), 1);
    fm_profile_free(p);
    fm_buffer_release(&w.b);
}

/* Enough blocks that their table grows and those that go make room for others. */
static void test_many_blocks(void **state)
{
    (void)state;
    struct writer w = { 0 };
    put_beginning(&w);
    for (uint64_t i = 1; i <= 20000; i++)
        put_allocation(&w, MALLOC, i * 16, i);
    for (uint64_t i = 1; i <= 20000; i++)
        if (i % 3)
            put_allocation(&w, FREE, i * 16, 0);
    struct fm_profile *p = load_whole(&w);
    assert_int_equal(sum_of(p, FM_METRIC_PEAK), 20000 * 20001 / 2);
    assert_int_equal(sum_of(p, FM_METRIC_LEAKED), 3ll * 6666 * 6667 / 2);
    assert_int_equal(sum_of(p, FM_METRIC_LEAKED_BLOCKS), 6666);
    fm_profile_free(p);
    fm_buffer_release(&w.b);
}

/* ---- older and aggregated files ---- */

static void put_old_frame(struct writer *w, uint64_t number, const char *name, int line)
{
    put_fixed(&w->b, 3, 1);
    put_signed(&w->b, (int64_t)(number - w->frame));
    w->frame = number;
    put_text(&w->b, name);
    put_text(&w->b, "/srv/app.py");
    put_signed(&w->b, line - w->line);
    w->line = line;
}

static void put_old_push(struct writer *w, uint64_t number)
{
    put_fixed(&w->b, 4, 1);
    put_signed(&w->b, (int64_t)(number - w->frame));
    w->frame = number;
}

static void put_old(struct writer *w, unsigned allocator, uint64_t address, uint64_t bytes)
{
    put_fixed(&w->b, 1 | allocator << 4, 1);
    put_signed(&w->b, (int64_t)(address - w->address));
    w->address = address;
    if (allocator != 2)
        fm_buffer_add_varint(&w->b, bytes);
}

static void put_old_file(struct writer *w)
{
    put_header(w, 10, false);
    put_thread(w, 1);
    put_old_frame(w, 1, "run", 70);
    put_old_push(w, 1);
    put_old_frame(w, 2, "main", 12);
    put_old_push(w, 2);
    put_old(w, 1, 0x1000, 100);
    put_fixed(&w->b, 9, 1);
    put_old_frame(w, 3, "main", 10);
    put_old_push(w, 3);
    put_old(w, 10, 0x100000, 4096);
    put_old(w, 2, 0x1000, 0);
    put_fixed(&w->b, 11, 1);
    fm_buffer_add_varint(&w->b, 777);
    fm_buffer_add_varint(&w->b, 30);
    put_fixed(&w->b, 0x10, 1);
}

static void test_an_older_file(void **state)
{
    (void)state;
    struct writer w = { 0 };
    put_old_file(&w);
    struct fm_profile *p = load_bytes(w.b.data, w.b.len);
    assert_int_equal(p->notes.len, 0);
    assert_int_equal(sum_of(p, FM_METRIC_PEAK), 4196);
    assert_int_equal(at_line(p, FM_METRIC_LEAKED, "main", 10), 4096);
    assert_int_equal(at_line(p, FM_METRIC_PEAK, "main", 12), 100);
    assert_int_equal(p->functions.data[p->nodes.data[1].func].line, 10); /* the lowest seen */
    assert_int_equal(p->memory.points.data[0].rss, 777);
    assert_int_equal(p->memory.points.data[0].heap, 4096);
    fm_profile_free(p);
    fm_buffer_release(&w.b);
}

static void put_sum(struct writer *w, uint64_t tid, uint64_t trace, const uint64_t n[4])
{
    put_fixed(&w->b, 2, 1);
    put_fixed(&w->b, tid, 8);
    put_fixed(&w->b, MALLOC, 8);
    put_fixed(&w->b, 0, 8);
    put_fixed(&w->b, trace, 8);
    put_fixed(&w->b, 0, 8);
    for (int i = 0; i < 4; i++)
        put_fixed(&w->b, n[i], 8);
}

static void put_frame(struct writer *w, unsigned number, unsigned code, int instruction)
{
    put_fixed(&w->b, 4, 1);
    fm_buffer_add_varint(&w->b, number);
    fm_buffer_add_varint(&w->b, code);
    put_signed(&w->b, instruction);
    put_fixed(&w->b, 1, 1);
}

static void put_trace(struct writer *w, unsigned frame, unsigned parent)
{
    put_fixed(&w->b, 3, 1);
    fm_buffer_add_varint(&w->b, frame);
    fm_buffer_add_varint(&w->b, parent);
}

static void put_aggregated_file(struct writer *w)
{
    put_header(w, 13, true);
    put_fixed(&w->b, 1, 1); /* a look */
    put_fixed(&w->b, 1040, 8);
    put_fixed(&w->b, 888, 8);
    put_fixed(&w->b, 66, 8);
    put_code(w, 5, "run", 70);
    put_code(w, 6, "main", 10);
    put_frame(w, 0, 5, 0);
    put_frame(w, 1, 6, 4);
    put_trace(w, 0, 0);
    put_trace(w, 1, 1);
    put_trace(w, 1, 0);
    put_sum(w, 1, 2, (uint64_t[]){ 3, 1, 300, 100 });
    put_sum(w, 1, 2, (uint64_t[]){ 1, 1, 50, 50 });
    put_sum(w, 7, 3, (uint64_t[]){ 1, 0, 11, 0 });
    put_fixed(&w->b, 15, 1);
}

static void test_an_aggregated_file(void **state)
{
    (void)state;
    struct writer w = { 0 };
    put_aggregated_file(&w);
    struct fm_profile *p = load_bytes(w.b.data, w.b.len);
    assert_int_equal(p->notes.len, 1); /* what it has not */
    assert_int_equal(sum_of(p, FM_METRIC_PEAK), 361);
    assert_int_equal(sum_of(p, FM_METRIC_PEAK_BLOCKS), 5);
    assert_int_equal(sum_of(p, FM_METRIC_LEAKED), 150);
    assert_int_equal(at_line(p, FM_METRIC_PEAK, "main", 11), 361);
    assert_null(p->columns[FM_METRIC_ALLOCATED].data);
    assert_int_equal(p->threads.len, 2);
    assert_int_equal(p->memory.points.data[0].heap, 66);
    fm_profile_free(p);
    fm_buffer_release(&w.b);
}

/* ---- LZ4 ---- */

static void pack(const struct fm_buffer *from, struct fm_buffer *to)
{
    size_t most = LZ4F_compressFrameBound(from->len, NULL);
    fm_buffer_clear(to);
    fm_buffer_reserve(to, most);
    to->len = LZ4F_compressFrame(to->data, most, from->data, from->len, NULL);
    assert_false(LZ4F_isError(to->len));
}

static void put_file(struct writer *w)
{
    put_beginning(w);
    put_allocation(w, MALLOC, 0x1000, 100);
    put_look(w, 10, 999);
    put_thread(w, 2);
    put_push(w, 2, 6);
    put_allocation(w, MMAP, 0x100000, 4096);
    put_allocation(w, MUNMAP, 0x100800, 1024);
    put_allocation(w, FREE, 0x1000, 0);
    put_fixed(&w->b, 1, 1);
}

static void test_packed(void **state)
{
    (void)state;
    struct writer w = { 0 };
    fm_autobuffer packed = FM_BUFFER_INIT;
    put_file(&w);
    pack(&w.b, &packed);
    assert_true(fm_format_memray_bin.recognise(packed.data, packed.len));
    struct fm_profile *p = load_bytes(packed.data, packed.len);
    assert_int_equal(p->notes.len, 0);
    assert_int_equal(sum_of(p, FM_METRIC_PEAK), 4196);
    fm_profile_free(p);
    fm_buffer_release(&w.b);
}

/* Gigabytes of zeros in a small file: nothing of them is read, let alone kept. */
static void test_a_bomb(void **state)
{
    (void)state;
    struct writer w = { 0 };
    fm_autobuffer packed = FM_BUFFER_INIT;
    put_file(&w);
    w.b.len--;
    fm_buffer_reserve(&w.b, 64 << 20);
    memset(w.b.data + w.b.len, 0, 64 << 20);
    w.b.len += 64 << 20;
    pack(&w.b, &packed);
    struct fm_profile *p = load_bytes(packed.data, packed.len);
    assert_int_equal(p->notes.len, 1);
    assert_int_equal(sum_of(p, FM_METRIC_PEAK), 4196);
    fm_profile_free(p);
    fm_buffer_release(&w.b);
}

/* Ten million calls, one inside the other, in 130 KB: as many contexts as such a file may have, and it is said. */
static void test_a_bomb_of_calls(void **state)
{
    (void)state;
    struct writer w = { 0 };
    fm_autobuffer packed = FM_BUFFER_INIT;
    put_beginning(&w);
    put_allocation(&w, MALLOC, 0x1000, 100);
    for (int i = 0; i < 10000000; i++)
        put_push(&w, 2, 2);
    pack(&w.b, &packed);
    assert_in_range(packed.len, 1, 200000);
    struct fm_profile *p = load_bytes(packed.data, packed.len);
    assert_int_equal(p->notes.len, 1);
    assert_string_equal(fm_profile_text(p, p->notes.data[0].kind), "damaged");
    assert_int_equal(sum_of(p, FM_METRIC_PEAK), 100);
    assert_in_range(p->nodes.len, 1000000, 3000000);
    fm_profile_free(p);
    fm_buffer_release(&w.b);
}

/* ---- what is no such file, or no longer ---- */

/* It is read as far as it goes, or refused in words. */
static void try_bytes(const void *bytes, size_t len)
{
    struct fm_error err = FM_ERROR_INIT;
    struct fm_profile *p = fm_format_memray_bin.load(bytes, len, "x.bin", &err);
    if (!p)
        assert_true(err.status < 0 && err.text[0]);
    fm_profile_free(p);
}

static void damage(const struct fm_buffer *whole)
{
    fm_autobuffer copy = FM_BUFFER_INIT;
    for (size_t n = 0; n <= whole->len; n++) {
        fm_autofree char *exact = fm_malloc(n + 1);
        memcpy(exact, whole->data, n);
        try_bytes(exact, n);
    }
    for (size_t bit = 0; bit < whole->len * 8; bit++) {
        fm_buffer_clear(&copy);
        fm_buffer_add(&copy, whole->data, whole->len);
        copy.data[bit / 8] ^= (char)(1 << bit % 8);
        try_bytes(copy.data, copy.len);
    }
}

static void test_damaged_anywhere(void **state)
{
    (void)state;
    struct writer w = { 0 };
    fm_autobuffer packed = FM_BUFFER_INIT;
    put_file(&w);
    damage(&w.b);
    pack(&w.b, &packed);
    damage(&packed);
    put_old_file(&w);
    damage(&w.b);
    put_aggregated_file(&w);
    damage(&w.b);
    fm_buffer_release(&w.b);
}

/* Ends early: all that was whole counts, and it is said. */
static void test_cut_off(void **state)
{
    (void)state;
    struct writer w = { 0 };
    put_beginning(&w);
    put_allocation(&w, MALLOC, 0x1000, 100);
    put_allocation(&w, MALLOC, 0x2000, 1000);
    w.b.len--; /* in the middle of 1000 */
    put_fixed(&w.b, 0, 1);
    put_fixed(&w.b, 0, 64); /* as it is behind what memray wrote */
    struct fm_profile *p = load_bytes(w.b.data, w.b.len);
    assert_int_equal(sum_of(p, FM_METRIC_PEAK), 100);
    assert_int_equal(p->notes.len, 1);
    assert_string_equal(fm_profile_text(p, p->notes.data[0].kind), "cut-off");
    fm_profile_free(p);
    fm_buffer_release(&w.b);
}

static void expect_damaged(struct writer *w, int64_t peak)
{
    struct fm_profile *p = load_bytes(w->b.data, w->b.len);
    assert_int_equal(sum_of(p, FM_METRIC_PEAK), peak);
    assert_int_equal(p->notes.len, 1);
    assert_string_equal(fm_profile_text(p, p->notes.data[0].kind), "damaged");
    fm_profile_free(p);
}

static void test_impossible_numbers(void **state)
{
    (void)state;
    struct writer w = { 0 };
    put_beginning(&w);
    put_allocation(&w, MALLOC, 0x1000, 5);
    put_allocation(&w, MALLOC, 0x2000, UINT64_MAX);
    expect_damaged(&w, 5);
    put_beginning(&w);
    put_allocation(&w, MMAP, UINT64_MAX << 3, 4096); /* beyond the last address */
    expect_damaged(&w, 0);
    put_beginning(&w);
    put_pop(&w, 3); /* there are two */
    expect_damaged(&w, 0);
    put_beginning(&w);
    put_fixed(&w.b, 64, 1); /* a code object that no number can be */
    fm_buffer_add_varint(&w.b, UINT64_MAX);
    put_signed(&w.b, INT64_MIN);
    expect_damaged(&w, 0);
    fm_buffer_release(&w.b);
}

static void test_other_versions(void **state)
{
    (void)state;
    struct writer w = { 0 };
    static const unsigned versions[] = { 9, 14, 0, UINT32_MAX };
    for (size_t i = 0; i < FM_COUNT(versions); i++) {
        struct fm_error err = FM_ERROR_INIT;
        put_header(&w, versions[i], false);
        assert_null(fm_format_memray_bin.load(w.b.data, w.b.len, "x.bin", &err));
        assert_int_equal(err.status, FM_UNSUPPORTED);
        assert_non_null(strstr(err.text, "memray transform"));
    }
    fm_buffer_release(&w.b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_of_equal_peaks),
        cmocka_unit_test(test_pieces_of_mappings),
        cmocka_unit_test(test_many_mappings),
        cmocka_unit_test(test_temporary_is_of_one_thread),
        cmocka_unit_test(test_a_block_in_the_place_of_another),
        cmocka_unit_test(test_many_blocks),
        cmocka_unit_test(test_an_older_file),
        cmocka_unit_test(test_an_aggregated_file),
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_a_bomb),
        cmocka_unit_test(test_a_bomb_of_calls),
        cmocka_unit_test(test_damaged_anywhere),
        cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_impossible_numbers),
        cmocka_unit_test(test_other_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
