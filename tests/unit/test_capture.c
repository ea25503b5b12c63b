/* Blocks: written, read back, damaged, cut off, forged. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <zstd.h>

#include "base/crc32c.h"
#include "record/capture/compress.h"
#include "record/capture/format.h"
#include "record/capture/reader.h"
#include "record/capture/writer.h"
#include "scratch_file.h"

static uint8_t *three_blocks(size_t *len)
{
    char large[5000];
    memset(large, 'x', sizeof large);
    int fd = fx_file();
    struct fm_writer writer;
    struct fm_compressor *compressor = fm_compressor_new();
    fm_writer_init(&writer, fd);
    assert_int_equal(fm_writer_start(&writer), 0);
    assert_int_equal(fm_writer_block(&writer, 40, "first", 5), 0);
    assert_int_equal(fm_compressor_block(compressor, &writer, 41, large, sizeof large), 0);
    assert_int_equal(fm_writer_end(&writer), 0);
    assert_int_equal(writer.blocks, 3);
    fm_compressor_free(compressor);
    return fx_file_bytes(fd, len);
}

static void test_bytes_as_documented(void **state)
{
    (void)state;
    size_t len;
    uint8_t *bytes = three_blocks(&len);
    const uint8_t head[] = { 0x89, 'F', 'T', 'H', 'M', '\r', '\n', 0x1a, 1, 0, 7, 0 };
    assert_memory_equal(bytes, head, sizeof head);
    uint32_t sum = fm_crc32c(0, bytes, 12);
    const uint8_t block[] = { 'F', 'B', 'L', 'K', 40, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0 };
    assert_memory_equal(bytes + 16, block, sizeof block);
    assert_memory_equal(bytes + 40, "first", 5);
    assert_int_equal(bytes[12] | bytes[13] << 8, sum & 0xffff);
    assert_memory_equal(bytes + 45, "FBLK", 4);
    assert_true(len < 300); /* 5000 equal bytes were compressed */
    free(bytes);
}

static void test_read_back(void **state)
{
    (void)state;
    size_t len;
    uint8_t *bytes = three_blocks(&len);
    struct fm_reader reader;
    struct fm_block block;
    assert_int_equal(fm_reader_init(&reader, bytes, len, NULL), 0);
    assert_true(fm_reader_next(&reader, &block));
    assert_int_equal(block.type, 40);
    assert_int_equal(block.len, 5);
    assert_memory_equal(block.data, "first", 5);
    assert_true(fm_reader_next(&reader, &block));
    assert_int_equal(block.type, 41);
    assert_int_equal(block.len, 5000);
    assert_int_equal(block.data[4999], 'x');
    assert_true(fm_reader_next(&reader, &block));
    assert_int_equal(block.type, FM_BLOCK_END);
    assert_int_equal(block.data[0], 2);
    assert_false(fm_reader_next(&reader, &block));
    assert_int_equal(reader.skipped_bytes, 0);
    assert_false(reader.cut_off);
    fm_reader_release(&reader);
    free(bytes);
}

/* Read everything; how many blocks were there? */
static uint64_t count_blocks(const void *bytes, size_t len, struct fm_reader *reader)
{
    struct fm_block block;
    assert_int_equal(fm_reader_init(reader, bytes, len, NULL), 0);
    while (fm_reader_next(reader, &block))
        ;
    uint64_t blocks = reader->blocks;
    return blocks;
}

static void test_cut_everywhere(void **state)
{
    (void)state;
    size_t len;
    uint8_t *bytes = three_blocks(&len);
    size_t ends[3] = { 45, 0, len };
    ends[1] = len - FM_BLOCK_HEADER_BYTES - 1;
    for (size_t cut = FM_FILE_HEADER_BYTES; cut <= len; cut++) {
        struct fm_reader reader;
        fm_autofree uint8_t *part = fm_malloc(cut); /* its own memory, so overruns are seen */
        memcpy(part, bytes, cut);
        uint64_t whole = (cut >= ends[0]) + (cut >= ends[1]) + (cut >= ends[2]);
        assert_int_equal(count_blocks(part, cut, &reader), whole);
        bool between =
            cut == FM_FILE_HEADER_BYTES || cut == ends[0] || cut == ends[1] || cut == ends[2];
        assert_int_equal(reader.cut_off, !between);
        assert_int_equal(reader.skipped_bytes, 0);
        fm_reader_release(&reader);
    }
    free(bytes);
}

static void test_damage_costs_one_block(void **state)
{
    (void)state;
    size_t len;
    uint8_t *bytes = three_blocks(&len);
    size_t second = 45, third = len - FM_BLOCK_HEADER_BYTES - 1;
    for (size_t at = FM_FILE_HEADER_BYTES; at < len; at++) {
        struct fm_reader reader;
        size_t begin = at < second ? FM_FILE_HEADER_BYTES : at < third ? second : third;
        size_t end = at < second ? second : at < third ? third : len;
        bytes[at] ^= 0x41;
        assert_int_equal(count_blocks(bytes, len, &reader), 2);
        assert_int_equal(reader.skipped_bytes + (reader.cut_off ? end - begin : 0), end - begin);
        fm_reader_release(&reader);
        bytes[at] ^= 0x41;
    }
    free(bytes);
}

/* Bytes lost in the middle: the lengths lead astray, the next sync word helps. */
static void test_missing_bytes(void **state)
{
    (void)state;
    size_t len;
    uint8_t *bytes = three_blocks(&len);
    memmove(bytes + 50, bytes + 53, len - 53);
    struct fm_reader reader;
    assert_int_equal(count_blocks(bytes, len - 3, &reader), 2);
    assert_int_equal(reader.damaged_spots, 1);
    fm_reader_release(&reader);
    free(bytes);
}

static void test_versions(void **state)
{
    (void)state;
    uint8_t head[16] = { 0x89, 'F', 'T', 'H', 'M', '\r', '\n', 0x1a, 1, 0, 9, 0 };
    struct fm_reader reader;
    struct fm_error err = FM_ERROR_INIT;
    uint32_t sum = fm_crc32c(0, head, 12);
    memcpy(head + 12, &sum, 4);
    assert_int_equal(fm_reader_init(&reader, head, 16, &err), 0); /* newer minor */
    assert_int_equal(reader.minor, 9);
    head[8] = 2;
    assert_int_equal(fm_reader_init(&reader, head, 16, &err), 0);
    assert_true(reader.header_damaged); /* the checksum says it is no version 2 */
    sum = fm_crc32c(0, head, 12);
    memcpy(head + 12, &sum, 4);
    assert_int_equal(fm_reader_init(&reader, head, 16, &err), FM_NEWER);
    assert_non_null(strstr(err.text, "2.9"));
    assert_int_equal(fm_reader_init(&reader, head, 15, &err), FM_DAMAGED);
    assert_int_equal(fm_reader_init(&reader, head, 7, &err), FM_NOT_RECORDING);
    assert_int_equal(fm_reader_init(&reader, "marshalled", 10, &err), FM_NOT_RECORDING);
}

/* A valid checksum around a payload that lies about its size. */
static void test_forged_sizes(void **state)
{
    (void)state;
    char raw[1000] = { 0 }, packed[200];
    size_t stored = ZSTD_compress(packed, sizeof packed, raw, sizeof raw, 1);
    assert_false(ZSTD_isError(stored));
    const size_t claims[] = { 999, 1001, FM_BLOCK_MAX_BYTES, 0 };
    int fd = fx_file();
    struct fm_writer writer;
    fm_writer_init(&writer, fd);
    fm_writer_start(&writer);
    for (size_t i = 0; i < FM_COUNT(claims); i++)
        fm_writer_block_coded(&writer, 40, FM_CODEC_ZSTD, packed, stored, claims[i]);
    fm_writer_block_coded(&writer, 40, FM_CODEC_NONE, raw, 10, 11);
    fm_writer_block_coded(&writer, 40, 7, raw, 10, 10); /* a codec nobody knows */
    fm_writer_block_coded(&writer, 40, FM_CODEC_ZSTD, raw, 10, 10);
    fm_writer_block_coded(&writer, 40, FM_CODEC_ZSTD, packed, stored, 1000);
    size_t len;
    fm_autofree uint8_t *bytes = fx_file_bytes(fd, &len);
    struct fm_reader reader;
    assert_int_equal(count_blocks(bytes, len, &reader), 1);
    assert_int_equal(reader.damaged_spots, 7);
    fm_reader_release(&reader);
}

static void test_write_failures(void **state)
{
    (void)state;
    struct fm_writer writer;
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(full >= 0);
    fm_writer_init(&writer, full);
    assert_int_equal(fm_writer_start(&writer), -ENOSPC);
    assert_int_equal(fm_writer_block(&writer, 1, "x", 1), -ENOSPC);
    assert_int_equal(writer.blocks, 0);
    close(full);
    fm_writer_init(&writer, -1);
    assert_int_equal(fm_writer_start(&writer), -EBADF);
    int fd = fx_file();
    fm_writer_init(&writer, fd);
    assert_int_equal(fm_writer_block(&writer, 1, "x", FM_BLOCK_MAX_BYTES + 1ul), -EFBIG);
    assert_int_equal(writer.bytes, 0);
    close(fd);
}

/* A pipe takes a large block in small parts only. */
static void test_short_writes(void **state)
{
    (void)state;
    size_t bytes = 3u << 20, got = 0;
    char *payload = fm_calloc(bytes, 1), *sink = fm_malloc(1u << 16);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        struct fm_writer writer;
        fm_writer_init(&writer, ends[1]);
        _exit(fm_writer_block(&writer, 1, payload, bytes) != 0);
    }
    close(ends[1]);
    for (ssize_t n; (n = read(ends[0], sink, 1u << 16)) > 0;)
        got += (size_t)n;
    assert_int_equal(got, bytes + FM_BLOCK_HEADER_BYTES);
    close(ends[0]);
    free(payload);
    free(sink);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_as_documented), cmocka_unit_test(test_read_back),
        cmocka_unit_test(test_cut_everywhere),      cmocka_unit_test(test_damage_costs_one_block),
        cmocka_unit_test(test_missing_bytes),       cmocka_unit_test(test_versions),
        cmocka_unit_test(test_forged_sizes),        cmocka_unit_test(test_write_failures),
        cmocka_unit_test(test_short_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
