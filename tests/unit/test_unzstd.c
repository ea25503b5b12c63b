/* The engine's own unpacking of zstd (viewer/engine/unzstd) against the library that packs. */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/memory.h"
#include "fixture.h"
#include "unzstd/unzstd.h"

static uint64_t seed;

static uint32_t next_number(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33);
}

/* Bytes of a kind: noise, few symbols, almost periodic, copies of earlier ones, one byte, skewed. */
static uint8_t *make_bytes(int kind, size_t len)
{
    uint8_t *bytes = fm_malloc(len + 1);
    for (size_t i = 0; i < len; i++) {
        uint32_t n = next_number();
        if (kind == 3 && i > 300 && n % 20)
            bytes[i] = bytes[i - 1 - n % 200];
        else if (kind == 2)
            bytes[i] = (uint8_t)(i % 7 + (n % 50 == 0));
        else if (kind == 5)
            bytes[i] = (uint8_t)(n % 100 < 90 ? n / 100 % 3 : n / 100);
        else
            bytes[i] = kind == 0 ? (uint8_t)n : kind == 1 ? (uint8_t)(n % 4) : 'a';
    }
    return bytes;
}

static void check_bytes(const uint8_t *bytes, size_t len, int level)
{
    size_t bound = ZSTD_compressBound(len);
    fm_autofree uint8_t *packed = fm_malloc(bound), *out = fm_malloc(len + 1);
    size_t packed_len = ZSTD_compress(packed, bound, bytes, len, level);
    uint64_t size = 0;
    assert_true(fm_unzstd_size(packed, packed_len, &size));
    assert_int_equal(size, len);
    assert_int_equal(fm_unzstd(out, len, packed, packed_len), len);
    assert_memory_equal(out, bytes, len);
    if (len)
        assert_int_equal(fm_unzstd(out, len - 1, packed, packed_len), -1);
    assert_int_equal(fm_unzstd(out, len, packed, packed_len - 1), -1);
    /* Damaged ones give anything, but nothing outside is touched: sanitizers look. */
    for (int i = 0; i < 10; i++) {
        uint8_t was[3];
        size_t at[3];
        for (int k = 0; k < 3; k++) {
            at[k] = next_number() % packed_len;
            was[k] = packed[at[k]];
            packed[at[k]] ^= (uint8_t)(1 + next_number() % 255);
        }
        fm_unzstd(out, len, packed, packed_len);
        for (int k = 2; k >= 0; k--)
            packed[at[k]] = was[k];
    }
    assert_int_equal(fm_unzstd(out, len, packed, packed_len), len);
}

static void test_unpacks_what_was_packed(void **state)
{
    (void)state;
    seed = 1;
    for (int i = 0; i < 300; i++) {
        size_t most = i % 20 == 0 ? 400000 : i % 3 == 0 ? 70000 : 3000;
        size_t len = next_number() % most;
        fm_autofree uint8_t *bytes = make_bytes(i % 6, len);
        check_bytes(bytes, len, len > 100000 ? 1 + i % 3 : 1 + i % 19);
    }
}

static void test_small_ones(void **state)
{
    (void)state;
    check_bytes((const uint8_t *)"", 0, 1);
    check_bytes((const uint8_t *)"x", 1, 1);
    check_bytes((const uint8_t *)"the same the same the same the same", 35, 19);
}

static void test_refuses_what_is_none(void **state)
{
    (void)state;
    uint8_t out[16];
    uint64_t size;
    assert_false(fm_unzstd_size("", 0, &size));
    assert_false(fm_unzstd_size("not a frame", 11, &size));
    assert_int_equal(fm_unzstd(out, sizeof out, "not a frame", 11), -1);
    assert_int_equal(fm_unzstd(out, sizeof out, "\x28\xb5\x2f\xfd\x20\x05\x07\x00\x00", 9), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unpacks_what_was_packed),
        cmocka_unit_test(test_small_ones),
        cmocka_unit_test(test_refuses_what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
