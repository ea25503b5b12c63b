/* The base: varints at their limits, checksums, strings, map, errors, buffers. */
#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clean.h"
#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/runs.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "base/varint.h"

/* The portable way to compute a checksum, which a processor with the instruction never takes. */
#define fm_crc32c fm_crc32c_under_test
#include "../../src/base/crc32c.c"

static void test_varint_limits(void **state)
{
    (void)state;
    const uint64_t values[] = { 0,         1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX >> 1,
                                UINT64_MAX };
    const size_t lengths[] = { 1, 1, 1, 2, 2, 3, 5, 9, 10 };
    for (size_t i = 0; i < FM_COUNT(values); i++) {
        uint8_t bytes[FM_VARINT_MAX];
        assert_int_equal(fm_varint_put(bytes, values[i]), lengths[i]);
        struct fm_cursor c = fm_cursor_over(bytes, lengths[i]);
        assert_true(fm_cursor_varint(&c) == values[i]);
        assert_false(c.failed);
        assert_int_equal(fm_cursor_left(&c), 0);
        struct fm_cursor cut = fm_cursor_over(bytes, lengths[i] - 1);
        assert_int_equal(fm_cursor_varint(&cut), 0);
        assert_true(cut.failed);
    }
}

static void test_varint_too_long(void **state)
{
    (void)state;
    uint8_t bytes[11];
    memset(bytes, 0x80, sizeof bytes);
    bytes[10] = 0;
    struct fm_cursor c = fm_cursor_over(bytes, sizeof bytes);
    fm_cursor_varint(&c);
    assert_true(c.failed);
    const uint8_t too_big[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02 };
    c = fm_cursor_over(too_big, sizeof too_big);
    fm_cursor_varint(&c);
    assert_true(c.failed);
    assert_int_equal(fm_cursor_varint(&c), 0); /* and stays so */
    assert_null(fm_cursor_bytes(&c, 0));
}

static void test_zigzag(void **state)
{
    (void)state;
    assert_int_equal(fm_zigzag(0), 0);
    assert_int_equal(fm_zigzag(-1), 1);
    assert_int_equal(fm_zigzag(1), 2);
    assert_true(fm_zigzag(INT64_MIN) == UINT64_MAX);
    const int64_t values[] = { 0, 1, -1, 63, -64, INT64_MAX, INT64_MIN };
    for (size_t i = 0; i < FM_COUNT(values); i++)
        assert_true(fm_unzigzag(fm_zigzag(values[i])) == values[i]);
}

static void test_cursor_bytes(void **state)
{
    (void)state;
    struct fm_cursor c = fm_cursor_over("abc", 3);
    assert_memory_equal(fm_cursor_bytes(&c, 2), "ab", 2);
    assert_null(fm_cursor_bytes(&c, UINT64_MAX));
    assert_true(c.failed);
}

static void test_crc32c(void **state)
{
    (void)state;
    /* The check value of CRC-32C, and three vectors of RFC 3720, B.4. */
    uint8_t zeros[32] = { 0 }, ones[32], rising[32];
    memset(ones, 0xff, sizeof ones);
    for (size_t i = 0; i < sizeof rising; i++)
        rising[i] = (uint8_t)i;
    assert_true(fm_crc32c(0, "123456789", 9) == 0xe3069283u);
    assert_true(fm_crc32c(0, zeros, 32) == 0x8a9136aau);
    assert_true(fm_crc32c(0, ones, 32) == 0x62a8ab43u);
    assert_true(fm_crc32c(0, rising, 32) == 0x46dd794eu);
    assert_true(~by_table(~0u, (const uint8_t *)"123456789", 9) == 0xe3069283u);
    assert_true(~by_table(~0u, rising, 32) == 0x46dd794eu);
    const char *digits = "123456789";
    for (size_t cut = 0; cut <= 9; cut++)
        assert_true(fm_crc32c(fm_crc32c(0, digits, cut), digits + cut, 9 - cut) == 0xe3069283u);
    assert_int_equal(fm_crc32c(0, "", 0), 0);
}

static void test_strings(void **state)
{
    (void)state;
    struct fm_strings *strings = fm_strings_new();
    assert_int_equal(fm_strings_add_text(strings, ""), 0);
    assert_int_equal(fm_strings_add_text(strings, "one"), 1);
    assert_int_equal(fm_strings_add(strings, "a\0b", 3), 2);
    assert_int_equal(fm_strings_add(strings, "a\0c", 3), 3);
    assert_int_equal(fm_strings_add_text(strings, "one"), 1);
    assert_int_equal(fm_strings_len(strings, 2), 3);
    assert_string_equal(fm_strings_get(strings, 99), "");
    const char *kept = fm_strings_get(strings, 1);
    for (int i = 0; i < 100000; i++) {
        char text[16];
        int len = snprintf(text, sizeof text, "s%d", i);
        assert_int_equal(fm_strings_add(strings, text, (size_t)len), 4 + i);
    }
    char *large = fm_calloc(1, 300000);
    memset(large, 'x', 299999);
    uint32_t id = fm_strings_add_text(strings, large);
    assert_string_equal(fm_strings_get(strings, id), large);
    assert_ptr_equal(fm_strings_get(strings, 1), kept);
    assert_string_equal(fm_strings_get(strings, 4 + 54321), "s54321");
    free(large);
    fm_strings_free(strings);
    fm_strings_free(NULL);
}

/* A text is found again wherever it lies, and every byte of it counts, also of long ones. */
static void test_long_strings(void **state)
{
    (void)state;
    struct fm_strings *strings = fm_strings_new();
    uint32_t next = 1;
    for (size_t len = 240; len < 300; len++) {
        char *text = fm_malloc(len), *moved = fm_malloc(len + 1); /* no byte behind them */
        for (size_t at = 0; at <= len; at++) { /* the last one: none is another */
            memset(text, 'x', len);
            if (at < len)
                text[at] = 'y';
            assert_int_equal(fm_strings_add(strings, text, len), next);
            memcpy(moved + 1, text, len);
            assert_int_equal(fm_strings_add(strings, moved + 1, len), next++);
        }
        free(text);
        free(moved);
    }
    fm_strings_free(strings);
}

static void test_map(void **state)
{
    (void)state;
    struct fm_map map = { 0 };
    bool is_new;
    assert_null(fm_map_find(&map, 0));
    for (uint32_t i = 0; i < 100000; i++) {
        assert_int_equal(*fm_map_at(&map, fm_map_pair(i, ~i), i, &is_new), i);
        assert_true(is_new);
    }
    for (uint32_t i = 0; i < 100000; i++)
        assert_int_equal(*fm_map_find(&map, fm_map_pair(i, ~i)), i);
    assert_int_equal(*fm_map_at(&map, fm_map_pair(5, ~5u), 77, &is_new), 5);
    assert_false(is_new);
    assert_null(fm_map_find(&map, fm_map_pair(5, 5)));
    assert_int_equal(map.len, 100000);
    fm_map_release(&map);
}

static void test_error_context(void **state)
{
    (void)state;
    struct fm_error err = FM_ERROR_INIT;
    assert_int_equal(fm_error_set(&err, FM_DAMAGED, "string runs past the end"), FM_DAMAGED);
    fm_error_context(&err, "entry %d", 17);
    assert_int_equal(fm_error_context(&err, "reading %s", "scatter.prof"), FM_DAMAGED);
    assert_string_equal(err.text, "reading scatter.prof: entry 17: string runs past the end");
    assert_int_equal(fm_status_exit(err.status), 5);
    assert_int_equal(fm_status_exit(FM_OK), 0);
    fm_error_set_errno(&err, FM_CANNOT_WRITE, ENOSPC, "writing %s", "x");
    assert_string_equal(err.text, "writing x: No space left on device");
    for (int i = 0; i < 300; i++)
        fm_error_context(&err, "a long way up");
    assert_true(strlen(err.text) < sizeof err.text);
    assert_int_equal(fm_error_set(NULL, FM_USAGE, "nobody listens"), FM_USAGE);
}

static void test_buffer(void **state)
{
    (void)state;
    fm_autobuffer buf = FM_BUFFER_INIT;
    assert_string_equal(fm_buffer_text(&buf), "");
    for (int i = 0; i < 1000; i++)
        fm_buffer_addf(&buf, "%d,", i % 10);
    assert_int_equal(buf.len, 2000);
    assert_memory_equal(buf.data + 1990, "5,6,7,8,9,", 11);
    fm_buffer_clear(&buf);
    fm_buffer_add(&buf, NULL, 0);
    fm_buffer_add_varint(&buf, 300);
    assert_int_equal(buf.len, 2);
    assert_int_equal((uint8_t)buf.data[0], 0xac);
    assert_int_equal((uint8_t)buf.data[1], 0x02);
    free(fm_buffer_detach(&buf));
    assert_int_equal(buf.len, 0);
}

static void expect_clean(const char *text, size_t len, const char *wanted)
{
    fm_autobuffer out = FM_BUFFER_INIT;
    fm_clean_add(&out, text, len);
    assert_string_equal(fm_buffer_text(&out), wanted);
}

#define CLEAN(text, wanted) expect_clean(text, sizeof(text) - 1, wanted)

static void test_clean(void **state)
{
    (void)state;
    CLEAN("", "");
    CLEAN("plain \\ text ~", "plain \\ text ~");
    CLEAN("é名\xf0\x9f\x90\x8d", "é名\xf0\x9f\x90\x8d");
    CLEAN("a\0b\n\r\t\x1b\x7f", "a\\x00b\\n\\r\\t\\x1b\\x7f");
    CLEAN("\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0\xc2\xad", "\\x80\\x9b\\x9f\xc2\xa0\\xad");
    CLEAN("\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f", "\\u061c\\u200e\\u200f");
    CLEAN("\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa\xe2\x80\xae\xe2\x80\xaf",
          "\\u2028\\u2029\\u202a\\u202e\xe2\x80\xaf");
    CLEAN("\xe2\x81\xa6\xe2\x81\xa9\xef\xbb\xbf", "\\u2066\\u2069\\ufeff");
    CLEAN("\xf3\xa0\x81\x81", "\\U000e0041");
    CLEAN("\xed\xb3\xbf", "\\udcff"); /* a lone surrogate */
    CLEAN("\xff\xc0\x80\xe2\x82", "\\xff\\xc0\\x80\\xe2\\x82");
    CLEAN("\xf4\x90\x80\x80z", "\\xf4\\x90\\x80\\x80z"); /* beyond the last character */
}

static void test_utf8_of_bytes(void **state)
{
    (void)state;
    fm_autobuffer python = FM_BUFFER_INIT, name = FM_BUFFER_INIT, valid = FM_BUFFER_INIT;
    static const char bytes[] = "a\xff\x80é\xc3";
    fm_utf8_add_python(&python, bytes, sizeof bytes - 1);
    /* what b"a\xff\x80\xc3\xa9\xc3".decode(errors="surrogateescape") is in UTF-8 */
    assert_string_equal(python.data, "a\xed\xb3\xbf\xed\xb2\x80é\xed\xb3\x83");
    fm_utf8_add_file_name(&name, python.data, python.len);
    assert_string_equal(name.data, bytes);
    fm_utf8_add_valid(&valid, python.data, python.len);
    assert_string_equal(valid.data, "a\xef\xbf\xbd\xef\xbf\xbdé\xef\xbf\xbd");
}

static int told[2];

static void tell(void *letter)
{
    assert_int_equal(write(told[1], letter, 1), 1);
}

static void tell_and_ask_for_more(void *letter)
{
    tell(letter);
    fm_malloc(PTRDIFF_MAX);
}

/* What was added last is undone first, each once, also if undoing takes memory that is not there. */
static void test_memory_undo(void **state)
{
    (void)state;
    struct fm_memory_undo a = { tell, "a", NULL }, b = { tell, "b", NULL },
                          c = { tell_and_ask_for_more, "c", NULL }, never = { tell, "d", NULL };
    assert_int_equal(pipe(told), 0);
    pid_t pid = fork();
    if (pid == 0) {
        freopen("/dev/null", "w", stderr);
        fm_memory_undo_add(&a);
        fm_memory_undo_add(&b);
        fm_memory_undo_add(&c);
        fm_memory_undo_remove(&b);
        fm_memory_undo_remove(&never);
        fm_malloc(PTRDIFF_MAX);
        _exit(0);
    }
    int status;
    char text[8] = "";
    close(told[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), fm_status_exit(FM_NO_MEMORY));
    assert_int_equal(read(told[0], text, sizeof text), 2);
    assert_string_equal(text, "ca");
    close(told[0]);
}

/* ---- sorting by runs ---- */

struct run_item {
    uint32_t key, order;
};

static int by_key(const void *a, const void *b)
{
    const struct run_item *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static void runs_are_merged(void **state)
{
    (void)state;
    struct run_item items[] = { { 3, 0 }, { 5, 1 }, { 9, 2 }, { 1, 3 }, { 5, 4 },
                                { 5, 5 }, { 0, 6 }, { 7, 7 }, { 2, 8 } };
    static const uint32_t keys[] = { 0, 1, 2, 3, 5, 5, 5, 7, 9 };
    static const uint32_t orders[] = { 6, 3, 8, 0, 1, 4, 5, 7, 2 };
    fm_sort_runs(items, 9, sizeof *items, by_key);
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(items[i].key, keys[i]);
        assert_int_equal(items[i].order, orders[i]);
    }
    fm_sort_runs(NULL, 0, sizeof *items, by_key);
}

/* Backwards, so that every run is of one: as many merges as there can be, and each number once. */
static void runs_of_one_are_merged(void **state)
{
    (void)state;
    static struct run_item items[1001];
    for (uint32_t i = 0; i < 1001; i++)
        items[i] = (struct run_item){ 1000 - i, i };
    fm_sort_runs(items, 1001, sizeof *items, by_key);
    for (uint32_t i = 0; i < 1001; i++)
        assert_true(items[i].key == i && items[i].order == 1000 - i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_varint_limits),
        cmocka_unit_test(test_varint_too_long),
        cmocka_unit_test(test_zigzag),
        cmocka_unit_test(test_cursor_bytes),
        cmocka_unit_test(test_crc32c),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_long_strings),
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_error_context),
        cmocka_unit_test(test_buffer),
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_utf8_of_bytes),
        cmocka_unit_test(test_memory_undo),
        cmocka_unit_test(runs_are_merged),
        cmocka_unit_test(runs_of_one_are_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
