/* Walks the blocks of a .fathom file; see reader.h. */
#include "record/capture/reader.h"

#include <string.h>
#include <zstd.h>

#include "base/crc32c.h"
#include "base/memory.h"
#include "record/capture/format.h"

/* Headers may be forged so that each names a payload that reaches over all others. What is spent on
 * payloads that prove wrong is therefore limited to a few times the file. */
#define TRY_FACTOR 4

struct head {
    uint16_t type, codec;
    uint32_t stored_bytes, raw_bytes, checksum;
};

static uint16_t get_u16(const uint8_t *in)
{
    return (uint16_t)(in[0] | in[1] << 8);
}

static uint32_t get_u32(const uint8_t *in)
{
    return (uint32_t)get_u16(in) | (uint32_t)get_u16(in + 2) << 16;
}

bool fm_reader_recognise(const void *bytes, size_t len)
{
    return len >= FM_FILE_MAGIC_BYTES && memcmp(bytes, FM_FILE_MAGIC, FM_FILE_MAGIC_BYTES) == 0;
}

int fm_reader_init(struct fm_reader *reader, const void *bytes, size_t len, struct fm_error *err)
{
    const uint8_t *in = bytes;
    *reader = (struct fm_reader){ .bytes = in, .len = len, .at = FM_FILE_HEADER_BYTES };
    if (!fm_reader_recognise(bytes, len))
        return fm_error_set(err, FM_NOT_RECORDING, "not a Fathom recording");
    if (len < FM_FILE_HEADER_BYTES)
        return fm_error_set(err, FM_DAMAGED, "the recording is cut off within its first %d bytes",
                            FM_FILE_HEADER_BYTES);
    reader->major = get_u16(in + 8);
    reader->minor = get_u16(in + 10);
    reader->header_damaged = get_u32(in + 12) != fm_crc32c(0, in, 12);
    if (!reader->header_damaged && reader->major > FM_FILE_MAJOR)
        return fm_error_set(err, FM_NEWER,
                            "the recording has format version %u.%u; this Fathom reads up to %u.x",
                            reader->major, reader->minor, FM_FILE_MAJOR);
    return FM_OK;
}

void fm_reader_release(struct fm_reader *reader)
{
    free(reader->buffer);
    ZSTD_freeDCtx(reader->context);
    *reader = (struct fm_reader){ 0 };
}

/* A whole, valid block header at `at`? Says nothing about the payload. */
static bool read_head(const struct fm_reader *reader, size_t at, struct head *head)
{
    if (reader->len - at < FM_BLOCK_HEADER_BYTES)
        return false;
    const uint8_t *in = reader->bytes + at;
    if (get_u32(in) != FM_BLOCK_SYNC || get_u32(in + 20) != fm_crc32c(0, in, 20))
        return false;
    *head = (struct head){ get_u16(in + 4), get_u16(in + 6), get_u32(in + 8), get_u32(in + 12),
                           get_u32(in + 16) };
    return head->stored_bytes <= FM_BLOCK_MAX_BYTES && head->raw_bytes <= FM_BLOCK_MAX_BYTES;
}

/* Where the next valid block header begins, from `at` on; the end of the file if there is none. */
static size_t find_head(const struct fm_reader *reader, size_t at)
{
    struct head head;
    while (reader->len > at && reader->len - at >= FM_BLOCK_HEADER_BYTES) {
        const uint8_t *hit = memchr(reader->bytes + at, FM_BLOCK_SYNC & 0xff, reader->len - at);
        if (!hit)
            break;
        at = (size_t)(hit - reader->bytes);
        if (read_head(reader, at, &head))
            return at;
        at++;
    }
    return reader->len;
}

static bool decompress(struct fm_reader *reader, const uint8_t *stored, const struct head *head)
{
    if (ZSTD_getFrameContentSize(stored, head->stored_bytes) != head->raw_bytes)
        return false;
    if (!reader->context)
        reader->context = ZSTD_createDCtx();
    if (!reader->context)
        return false;
    if (reader->buffer_cap < head->raw_bytes || !reader->buffer) {
        reader->buffer_cap = head->raw_bytes;
        reader->buffer = fm_realloc(reader->buffer, reader->buffer_cap, 1);
    }
    return ZSTD_decompressDCtx(reader->context, reader->buffer, head->raw_bytes, stored,
                               head->stored_bytes) == head->raw_bytes;
}

static bool read_payload(struct fm_reader *reader, const struct head *head, struct fm_block *block)
{
    const uint8_t *stored = reader->bytes + reader->at + FM_BLOCK_HEADER_BYTES;
    if (fm_crc32c(0, stored, head->stored_bytes) != head->checksum)
        return false;
    *block = (struct fm_block){ head->type, stored, head->stored_bytes, reader->at };
    if (head->codec == FM_CODEC_NONE)
        return head->raw_bytes == head->stored_bytes;
    if (head->codec != FM_CODEC_ZSTD || !decompress(reader, stored, head))
        return false;
    block->data = reader->buffer;
    block->len = head->raw_bytes;
    return true;
}

/* Skip what is damaged at `at`. A valid header names the end of its block, but only if a block (or
 * the end of the file) follows there; otherwise bytes are missing and every place is tried. */
static void skip(struct fm_reader *reader, const struct head *head)
{
    size_t from = reader->at;
    struct head next;
    reader->at = find_head(reader, from + 1);
    if (head) {
        size_t end = from + FM_BLOCK_HEADER_BYTES + head->stored_bytes;
        if (end == reader->len || (end < reader->len && read_head(reader, end, &next)))
            reader->at = end;
    }
    reader->damaged_spots++;
    reader->skipped_bytes += reader->at - from;
}

static void give_up(struct fm_reader *reader)
{
    reader->damaged_spots++;
    reader->skipped_bytes += reader->len - reader->at;
    reader->at = reader->len;
}

/* Do the bytes from `at` to the end of the file look like the beginning of a block? */
static bool begins_block(const struct fm_reader *reader, size_t at)
{
    const uint8_t sync[4] = { FM_BLOCK_SYNC & 0xff, FM_BLOCK_SYNC >> 8 & 0xff,
                              FM_BLOCK_SYNC >> 16 & 0xff, FM_BLOCK_SYNC >> 24 };
    size_t left = reader->len - at;
    return left < FM_BLOCK_HEADER_BYTES &&
           memcmp(reader->bytes + at, sync, left < 4 ? left : 4) == 0;
}

bool fm_reader_next(struct fm_reader *reader, struct fm_block *block)
{
    while (reader->at < reader->len) {
        struct head head;
        if (!read_head(reader, reader->at, &head)) {
            if (begins_block(reader, reader->at)) {
                reader->cut_off = true;
                reader->at = reader->len;
                return false;
            }
            skip(reader, NULL);
            continue;
        }
        if (reader->len - reader->at - FM_BLOCK_HEADER_BYTES < head.stored_bytes) {
            /* Cut off, unless a later valid block shows that bytes in the middle are missing. */
            size_t next = find_head(reader, reader->at + 1);
            if (next == reader->len) {
                reader->cut_off = true;
                reader->at = reader->len;
                return false;
            }
            skip(reader, NULL);
            continue;
        }
        if (!read_payload(reader, &head, block)) {
            reader->tried_bytes += head.stored_bytes;
            if (reader->tried_bytes / TRY_FACTOR > reader->len) {
                give_up(reader);
                return false;
            }
            skip(reader, &head);
            continue;
        }
        reader->at += FM_BLOCK_HEADER_BYTES + head.stored_bytes;
        reader->blocks++;
        return true;
    }
    return false;
}
