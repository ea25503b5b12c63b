/* Positions of instructions: tables written by hand from CPython's description of each format, code
 * objects in a fabricated memory, and memory that makes no sense. */
#include "fixture.h"

#include <errno.h>
#include <stdlib.h>

#include "base/positions.h"
#include "watch/cpython/code.h"
#include "watch/cpython/debug_offsets.h"
#include "watch/cpython/text.h"

static struct fm_position position_in(enum fm_table_kind kind, const uint8_t *table, uint32_t len,
                                      uint32_t first_line, uint32_t code_len, int32_t offset)
{
    struct fm_layout layout = { .table = kind };
    struct fm_code code = {
        .table = (uint8_t *)table,
        .table_len = len,
        .first_line = first_line,
        .bytecode_len = code_len,
    };
    return fm_code_position(&code, &layout, offset);
}

static void check_position(struct fm_position p, uint32_t line, uint32_t end_line, uint32_t column,
                           uint32_t end_column)
{
    assert_int_equal(p.line, line);
    assert_int_equal(p.end_line, end_line);
    assert_int_equal(p.column, column);
    assert_int_equal(p.end_column, end_column);
}

static void check_lines(enum fm_table_kind kind, const uint8_t *table, uint32_t len,
                        const uint32_t *lines, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct fm_position p = position_in(kind, table, len, 10, n * 2, (int32_t)i * 2);
        check_position(p, lines[i], lines[i], 0, 0);
    }
    check_position(position_in(kind, table, len, 10, n * 2, FM_NOT_BEGUN), 10, 10, 0, 0);
}

static void test_lnotab(void **state)
{
    (void)state;
    /* 4 bytes on line 10; 2 on 11; then 200 lines on in two steps (+127, +73): 211; 6 bytes later
     * 5 lines back. */
    const uint8_t table[] = { 4, 1, 2, 127, 0, 73, 6, 251 };
    const uint32_t lines[] = { 10, 10, 11, 211, 211, 211, 206, 206 };
    check_lines(FM_TABLE_LNOTAB, table, sizeof table, lines, FM_COUNT(lines));
    /* Lines before the first instruction, an odd end. */
    const uint8_t early[] = { 0, 2, 2, 1, 9 };
    const uint32_t early_lines[] = { 12, 13, 13 };
    check_lines(FM_TABLE_LNOTAB, early, sizeof early, early_lines, FM_COUNT(early_lines));
    const uint32_t one[] = { 10, 10 };
    check_lines(FM_TABLE_LNOTAB, NULL, 0, one, FM_COUNT(one));
}

static void test_pep626(void **state)
{
    (void)state;
    /* 4 bytes on line 10; 2 without a line; 2 on 12; an empty entry of +127, then +1: 140; 4 bytes
     * on 139. The code is longer than the table: its first line. */
    const uint8_t table[] = { 4, 0, 2, 128, 2, 2, 0, 127, 2, 1, 4, 255 };
    const uint32_t lines[] = { 10, 10, 0, 12, 140, 139, 139, 10 };
    check_lines(FM_TABLE_PEP626, table, sizeof table, lines, FM_COUNT(lines));
}

static void test_pep657(void **state)
{
    (void)state;
    const uint8_t table[] = {
        0x80 | 0 << 3 | 0, 0x00,        /* short: 1 unit, column 0 to 0 */
        0x80 | 9 << 3 | 1, 7 << 4 | 15, /* short: 2 units, column 79 to 94 */
        0x80 | 10 << 3 | 0, 90, 100,    /* same line, columns 90 to 100 */
        0x80 | 12 << 3 | 0, 4, 127,     /* 2 lines on, columns 4 to 127 */
        0x80 | 13 << 3 | 0, 7,          /* 3 lines back, no columns */
        0x80 | 15 << 3 | 7,             /* 8 units without a position */
        /* 100 lines on (varint 200), 1 line more, columns 4095 and 0 (varints 4096 and 1) */
        0x80 | 14 << 3 | 0, 0x40 | 8, 3, 1, 0x40, 0x40, 1, 1, 0x80 | 14 << 3 | 0, 0, 0, 0,
        0, /* the long form without columns */
    };
#define AT(unit) position_in(FM_TABLE_PEP657, table, sizeof table, 10, 100, (unit)*2)
    check_position(AT(0), 10, 10, 1, 1);
    check_position(AT(1), 10, 10, 80, 95);
    check_position(AT(2), 10, 10, 80, 95);
    check_position(AT(3), 10, 10, 91, 101);
    check_position(AT(4), 12, 12, 5, 128);
    check_position(AT(5), 9, 9, 0, 0);
    check_position(AT(6), 0, 0, 0, 0);
    check_position(AT(13), 0, 0, 0, 0);
    check_position(AT(14), 109, 110, 4096, 1);
    check_position(AT(15), 109, 109, 0, 0);
    check_position(AT(16), 10, 10, 0, 0); /* beyond the table */
    check_position(AT(-1), 10, 10, 0, 0);
#undef AT
}

/* Whatever the bytes, decoding ends and stays inside (the table ends where its memory does). */
static void test_any_bytes(void **state)
{
    (void)state;
    srand(1);
    for (int round = 0; round < 20000; round++) {
        uint32_t len = (uint32_t)rand() % 40;
        uint8_t *table = malloc(len ? len : 1);
        for (uint32_t i = 0; i < len; i++)
            table[i] = (uint8_t)rand();
        for (int kind = FM_TABLE_LNOTAB; kind <= FM_TABLE_PEP657; kind++) {
            struct fm_linetable_cursor walk;
            struct fm_linetable_entry entry;
            uint32_t end = 0, n = 0;
            fm_linetable_init(&walk, kind, table, len, 1, 64);
            for (; fm_linetable_next(&walk, &entry); n++) {
                assert_int_equal(entry.start, end);
                assert_true(entry.end > entry.start);
                end = entry.end;
            }
            assert_true(n <= len + 1);
        }
        free(table);
    }
}

/* A memory of one piece, as a target. */
struct memory {
    fm_addr at;
    uint8_t bytes[8192];
};

static int read_memory(const struct fm_remote *remote, const struct fm_span *spans, int n)
{
    const struct memory *memory = remote->data;
    for (int i = 0; i < n; i++) {
        uint64_t offset = spans[i].at - memory->at;
        if (offset > sizeof memory->bytes || spans[i].len > sizeof memory->bytes - offset)
            return i ? i : -EFAULT;
        memcpy(spans[i].into, memory->bytes + offset, spans[i].len);
    }
    return n;
}

static const struct fm_remote_source memory_source = { read_memory };
static struct memory memory;
static const struct fm_remote remote = { &memory_source, 1, &memory };

static void put(uint32_t offset, const void *bytes, size_t len)
{
    memcpy(memory.bytes + offset, bytes, len);
}

static void put_word(uint32_t offset, uint64_t word)
{
    put(offset, &word, sizeof word);
}

static void begin_memory(void)
{
    memset(&memory, 0, sizeof memory);
    memory.at = 0x10000;
}

/* The layout of a version that tables alone describe. */
static struct fm_layout known_layout(uint32_t version_hex)
{
    struct fm_layout layout;
    struct fm_error err = FM_ERROR_INIT;
    assert_int_equal(fm_layout_find(&layout, &remote, 0, version_hex, &err), 0);
    return layout;
}

/* A compact ASCII str of 3.12: length at 16, state at 32, characters at 40; the smallest objects
 * may end where the memory does. */
static void test_text_at_the_end(void **state)
{
    (void)state;
    begin_memory();
    struct fm_layout layout = known_layout(0x030c0100);
    uint32_t at = sizeof memory.bytes - 48;
    put_word(at + 16, 5);
    put_word(at + 32, 1 << 2 | 1 << 5 | 1 << 6);
    put(at + 40, "hello", 6);
    char *text = fm_text_read(&remote, &layout, memory.at + at, 100);
    assert_string_equal(text, "hello");
    free(text);
    text = fm_text_read(&remote, &layout, memory.at + at, 3);
    assert_string_equal(text, "hel");
    free(text);
    put_word(at + 16, 9); /* longer than the memory */
    assert_null(fm_text_read(&remote, &layout, memory.at + at, 100));
    put_word(at + 16, UINT64_MAX);
    assert_null(fm_text_read(&remote, &layout, memory.at + at, 100));
    put_word(at + 32, 0); /* no kind */
    assert_null(fm_text_read(&remote, &layout, memory.at + at, 100));
}

/* A two-byte string is cut between characters, never inside one. */
static void test_text_is_cut(void **state)
{
    (void)state;
    begin_memory();
    struct fm_layout layout = known_layout(0x030c0100);
    const uint16_t characters[] = { 'a', 0x416, 0xdc80, 0, 'z' };
    put_word(16, FM_COUNT(characters));
    put_word(32, 2 << 2 | 1 << 5);
    put(56, characters, sizeof characters);
    const char *whole = "a\xd0\x96\xed\xb2\x80\xef\xbf\xbdz";
    const struct {
        uint32_t max, len;
    } cuts[] = { { 100, 10 }, { 10, 10 }, { 9, 9 }, { 8, 6 }, { 5, 3 }, { 2, 1 }, { 0, 0 } };
    for (size_t i = 0; i < FM_COUNT(cuts); i++) {
        char *text = fm_text_read(&remote, &layout, memory.at, cuts[i].max);
        assert_int_equal(strlen(text), cuts[i].len);
        assert_memory_equal(text, whole, cuts[i].len);
        free(text);
    }
}

/* Free-threaded 3.14+: an instruction may lie in a thread's own copy of the bytecode. */
static void test_copies_of_bytecode(void **state)
{
    (void)state;
    struct fm_layout layout = { .frames = FM_FRAMES_THREAD, .code_bytecode = 232 };
    fm_addr copies[] = { 0x1000 + 232, 0, 0x5000 };
    struct fm_code code = { .at = 0x1000, .bytecode_len = 20, .n_copies = 3, .copies = copies };
    int32_t offset;
    assert_true(fm_code_offset(&code, &layout, 0x1000 + 232 + 4, &offset));
    assert_int_equal(offset, 4);
    assert_true(fm_code_offset(&code, &layout, 0x5000 + 18, &offset));
    assert_int_equal(offset, 18);
    assert_false(fm_code_offset(&code, &layout, 0x5000 + 20, &offset));
    assert_false(fm_code_offset(&code, &layout, 0x5000 + 3, &offset));
    assert_false(fm_code_offset(&code, &layout, 2, &offset));
}

static void test_offsets_of_instructions(void **state)
{
    (void)state;
    struct fm_code code = { .at = 0x1000, .bytecode_len = 20 };
    struct fm_layout layout = known_layout(0x030c0100); /* bytecode begins at 192 */
    int32_t offset;
    assert_true(fm_code_offset(&code, &layout, 0x1000 + 192 - 2, &offset));
    assert_int_equal(offset, FM_NOT_BEGUN);
    assert_true(fm_code_offset(&code, &layout, 0x1000 + 192, &offset));
    assert_int_equal(offset, 0);
    assert_false(fm_code_offset(&code, &layout, 0x1000 + 192 - 4, &offset));
    assert_false(fm_code_offset(&code, &layout, 0x1000 + 192 + 20, &offset));
    layout = known_layout(0x030a0d00); /* code units */
    assert_true(fm_code_offset(&code, &layout, 9, &offset));
    assert_int_equal(offset, 18);
    assert_false(fm_code_offset(&code, &layout, 10, &offset));
    assert_true(fm_code_offset(&code, &layout, UINT32_MAX, &offset));
    assert_int_equal(offset, FM_NOT_BEGUN);
    assert_false(fm_code_offset(&code, &layout, UINT32_MAX - 1, &offset));
    assert_false(fm_code_offset(&code, &layout, INT32_MAX, &offset));
    layout = known_layout(0x03091200); /* bytes */
    assert_true(fm_code_offset(&code, &layout, 18, &offset));
    assert_int_equal(offset, 18);
}

#define KNOWN FM_OLDEST_PYTHON " to " FM_NEWEST_PYTHON

static void test_versions(void **state)
{
    (void)state;
    begin_memory();
    const struct {
        uint32_t hex;
        int status;
        const char *text;
    } cases[] = {
        { 0x03081200, FM_UNSUPPORTED, "Python 3.8.18 is older than this Fathom knows (" KNOWN ")" },
        { 0x02071200, FM_UNSUPPORTED, "Python 2.7.18 is older than this Fathom knows (" KNOWN ")" },
        { 0x036300a1, FM_UNSUPPORTED, "Python 3.99.0 is newer than this Fathom knows (" KNOWN ")" },
        { 0, FM_UNSUPPORTED, "the version of the Python in the process cannot be told" },
        { 0x030d0000, FM_DAMAGED,
          "the Python in the process does not begin with its debug offsets" },
    };
    for (size_t i = 0; i < FM_COUNT(cases); i++) {
        struct fm_layout layout;
        struct fm_error err = FM_ERROR_INIT;
        int r = fm_layout_find(&layout, &remote, memory.at, cases[i].hex, &err);
        assert_int_equal(r, cases[i].status);
        assert_string_equal(err.text, cases[i].text);
    }
    put(0, "xdebugpy", 8);
    put_word(8, 0x036300f0);
    struct fm_layout layout;
    struct fm_error err = FM_ERROR_INIT;
    assert_int_equal(fm_layout_find(&layout, &remote, memory.at, 0, &err), FM_UNSUPPORTED);
    put_word(8, 0x030e00f0);
    assert_int_equal(fm_layout_find(&layout, &remote, memory.at, 0x030d0000, &err), FM_DAMAGED);
    assert_string_equal(err.text, "the Python in the process says it is 3.14, its file says 3.13");
}

/* Debug offsets and code objects full of nonsense: refused or bounded, never a wild access. */
static void test_nonsense(void **state)
{
    (void)state;
    srand(2);
    int layouts = 0;
    for (int round = 0; round < 20000; round++) {
        begin_memory();
        for (uint32_t i = 0; i < sizeof memory.bytes; i += 8)
            put_word(i, rand() % 8 ? (uint64_t)rand() % 400
                                   : memory.at + (uint64_t)rand() % sizeof memory.bytes);
        put(0, "xdebugpy", 8);
        put_word(8, (uint64_t)(0x030d + rand() % 3) << 16);
        put_word(16, (uint64_t)rand() % 2);
        for (uint32_t i = 24; i < 1024; i += 8)
            put_word(i, (uint64_t)rand() % (rand() % 50 ? 400 : 2000000));
        struct fm_layout layout;
        struct fm_error err = FM_ERROR_INIT;
        if (fm_layout_find(&layout, &remote, memory.at, 0, &err) < 0)
            continue;
        layouts++;
        for (int i = 0; i < 20; i++) {
            struct fm_code code;
            put(64, "code", 5);
            if (fm_code_read(&code, &remote, &layout, memory.at + (uint64_t)rand() % 4096,
                             rand() % 2 ? memory.at : 0) == 0)
                fm_code_release(&code);
        }
    }
    assert_true(layouts > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lnotab),
        cmocka_unit_test(test_pep626),
        cmocka_unit_test(test_pep657),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_text_at_the_end),
        cmocka_unit_test(test_text_is_cut),
        cmocka_unit_test(test_copies_of_bytecode),
        cmocka_unit_test(test_offsets_of_instructions),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
