/* Walks the blocks of a .fathom file; see reader.h. */
#include "record/capture/reader.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/crc32c.h"
#include "base/memory.h"
#include "record/capture/format.h"

/* Headers may be forged so that each names a payload that reaches over all others. What is spent on
 * payloads that prove wrong is therefore limited to a few times the file. */
#define TRY_FACTOR 4

#define WINDOW_MIN_BYTES 4096u        /* read at once: some headers of small blocks */
#define SCAN_BYTES       (256u << 10) /* … when a header is searched */
#define TYPES_MAX        64u          /* bits of `wanted` */

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

/* ---- the bytes of the file ---- */

#ifdef __wasm__ /* there are no files */
static size_t read_at(struct fm_reader *reader, uint8_t *out, size_t n, uint64_t at)
{
    (void)out, (void)n, (void)at;
    reader->failed = ENOSYS;
    return 0;
}
#else
static size_t read_at(struct fm_reader *reader, uint8_t *out, size_t n, uint64_t at)
{
    size_t got = 0;
    while (got < n) {
        ssize_t some = pread(reader->fd, out + got, n - got, (off_t)(at + got));
        if (some < 0 && errno == EINTR)
            continue;
        if (some < 0)
            reader->failed = errno;
        if (some <= 0)
            break;
        got += (size_t)some;
    }
    return got;
}
#endif

/* `n` bytes at `at`, read from the file with what follows them up to `ahead`. NULL if there are not
 * so many. Valid until the next call. */
static const uint8_t *fetch(struct fm_reader *reader, uint64_t at, size_t n, size_t ahead)
{
    if (at > reader->len || n > reader->len - at)
        return NULL;
    if (reader->bytes)
        return reader->bytes + at;
    if (at >= reader->window.at && at - reader->window.at <= reader->window.len &&
        n <= reader->window.len - (at - reader->window.at))
        return reader->window.data + (at - reader->window.at);
    size_t bytes = n > ahead ? n : ahead;
    if (bytes > reader->len - at)
        bytes = (size_t)(reader->len - at);
    if (bytes > reader->window.cap) {
        reader->window.cap = bytes;
        reader->window.data = fm_realloc(reader->window.data, bytes, 1);
    }
    reader->window.at = at;
    reader->window.len = read_at(reader, reader->window.data, bytes, at);
    if (reader->window.len < bytes) /* it became shorter, or cannot be read */
        reader->len = at + reader->window.len;
    return n <= reader->window.len ? reader->window.data : NULL;
}

static int begin(struct fm_reader *reader, struct fm_error *err)
{
    const uint8_t *in = fetch(reader, 0, FM_FILE_MAGIC_BYTES, WINDOW_MIN_BYTES);
    if (reader->failed)
        return fm_error_set_errno(err, FM_CANNOT_READ, reader->failed, "reading the recording");
    if (!in || !fm_reader_recognise(in, FM_FILE_MAGIC_BYTES))
        return fm_error_set(err, FM_NOT_RECORDING, "not a Fathom recording");
    in = fetch(reader, 0, FM_FILE_HEADER_BYTES, WINDOW_MIN_BYTES);
    if (!in)
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

int fm_reader_init(struct fm_reader *reader, const void *bytes, size_t len, struct fm_error *err)
{
    *reader = (struct fm_reader){
        .bytes = bytes, .fd = -1, .len = len, .at = FM_FILE_HEADER_BYTES, .wanted = UINT64_MAX
    };
    return begin(reader, err);
}

int fm_reader_init_fd(struct fm_reader *reader, int fd, uint64_t len, struct fm_error *err)
{
    *reader = (struct fm_reader){
        .fd = fd, .len = len, .at = FM_FILE_HEADER_BYTES, .wanted = UINT64_MAX
    };
    return begin(reader, err);
}

void fm_reader_release(struct fm_reader *reader)
{
    free(reader->window.data);
    free(reader->buffer);
    ZSTD_freeDCtx(reader->context);
    *reader = (struct fm_reader){ 0 };
}

/* ---- blocks ---- */

/* A whole, valid block header at `at`? Says nothing about the payload. */
static bool read_head(struct fm_reader *reader, uint64_t at, struct head *head)
{
    const uint8_t *in = fetch(reader, at, FM_BLOCK_HEADER_BYTES, WINDOW_MIN_BYTES);
    if (!in || get_u32(in) != FM_BLOCK_SYNC || get_u32(in + 20) != fm_crc32c(0, in, 20))
        return false;
    *head = (struct head){ get_u16(in + 4), get_u16(in + 6), get_u32(in + 8), get_u32(in + 12),
                           get_u32(in + 16) };
    return head->stored_bytes <= FM_BLOCK_MAX_BYTES && head->raw_bytes <= FM_BLOCK_MAX_BYTES;
}

/* Where the next valid block header begins, from `at` on; the end of the file if there is none. */
static uint64_t find_head(struct fm_reader *reader, uint64_t at)
{
    struct head head;
    while (reader->len > at && reader->len - at >= FM_BLOCK_HEADER_BYTES) {
        size_t n = reader->len - at < SCAN_BYTES ? (size_t)(reader->len - at) : SCAN_BYTES;
        const uint8_t *in = fetch(reader, at, n, n);
        const uint8_t *hit = in ? memchr(in, FM_BLOCK_SYNC & 0xff, n) : NULL;
        if (!hit) {
            at += n;
            continue;
        }
        at += (uint64_t)(hit - in);
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
    const uint8_t *stored =
        fetch(reader, reader->at + FM_BLOCK_HEADER_BYTES, head->stored_bytes, WINDOW_MIN_BYTES);
    if (!stored || fm_crc32c(0, stored, head->stored_bytes) != head->checksum)
        return false;
    *block =
        (struct fm_block){ head->type, stored, head->stored_bytes, reader->at, head->stored_bytes };
    if (head->codec == FM_CODEC_NONE)
        return head->raw_bytes == head->stored_bytes;
    if (head->codec != FM_CODEC_ZSTD || !decompress(reader, stored, head))
        return false;
    block->data = reader->buffer;
    block->len = head->raw_bytes;
    return true;
}

static uint64_t end_of(const struct fm_reader *reader, const struct head *head)
{
    return reader->at + FM_BLOCK_HEADER_BYTES + head->stored_bytes;
}

/* Does a block, or the end of the file, follow the block at `at`? */
static bool is_followed(struct fm_reader *reader, const struct head *head)
{
    struct head next;
    uint64_t end = end_of(reader, head);
    return end == reader->len || (end < reader->len && read_head(reader, end, &next));
}

/* Its place and first bytes; whoever reads the rest later has to judge it. */
static bool read_place(struct fm_reader *reader, const struct head *head, struct fm_block *block)
{
    size_t len =
        head->stored_bytes < FM_BLOCK_FIRST_BYTES ? head->stored_bytes : FM_BLOCK_FIRST_BYTES;
    if (head->codec != FM_CODEC_NONE || !is_followed(reader, head))
        return false;
    const uint8_t *first = fetch(reader, reader->at + FM_BLOCK_HEADER_BYTES, len, WINDOW_MIN_BYTES);
    if (!first)
        return false;
    *block = (struct fm_block){ head->type, first, len, reader->at, head->stored_bytes };
    return true;
}

static bool is_placed(const struct fm_reader *reader, uint16_t type)
{
    return type < TYPES_MAX && reader->placed >> type & 1;
}

static bool is_wanted(const struct fm_reader *reader, uint16_t type)
{
    return type < TYPES_MAX ? reader->wanted >> type & 1 : reader->wanted == UINT64_MAX;
}

/* Skip what is damaged at `at`. A valid header names the end of its block, but only if a block (or
 * the end of the file) follows there; otherwise bytes are missing and every place is tried. */
static void skip(struct fm_reader *reader, const struct head *head)
{
    uint64_t from = reader->at;
    reader->at =
        head && is_followed(reader, head) ? end_of(reader, head) : find_head(reader, from + 1);
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
static bool begins_block(struct fm_reader *reader, uint64_t at)
{
    const uint8_t sync[4] = { FM_BLOCK_SYNC & 0xff, FM_BLOCK_SYNC >> 8 & 0xff,
                              FM_BLOCK_SYNC >> 16 & 0xff, FM_BLOCK_SYNC >> 24 };
    uint64_t left = reader->len - at;
    if (left >= FM_BLOCK_HEADER_BYTES)
        return false;
    const uint8_t *in = fetch(reader, at, (size_t)left, (size_t)left);
    return in && memcmp(in, sync, left < 4 ? (size_t)left : 4) == 0;
}

static void end_cut_off(struct fm_reader *reader)
{
    reader->cut_off = true;
    reader->at = reader->len;
}

/* Go on to the next block whose header and length are right. False at the end. */
static bool find_block(struct fm_reader *reader, struct head *head)
{
    while (reader->at < reader->len) {
        if (!read_head(reader, reader->at, head)) {
            if (begins_block(reader, reader->at))
                end_cut_off(reader);
            else
                skip(reader, NULL);
        } else if (end_of(reader, head) <= reader->len) {
            return true;
        } else if (find_head(reader, reader->at + 1) == reader->len) {
            end_cut_off(reader);
        } else { /* a later valid block shows that bytes in the middle are missing */
            skip(reader, NULL);
        }
    }
    return false;
}

bool fm_reader_next(struct fm_reader *reader, struct fm_block *block)
{
    struct head head;
    while (find_block(reader, &head)) {
        bool wanted = is_wanted(reader, head.type);
        if (!wanted                        ? is_followed(reader, &head)
            : is_placed(reader, head.type) ? read_place(reader, &head, block)
                                           : read_payload(reader, &head, block)) {
            reader->at = end_of(reader, &head);
            reader->blocks++;
            if (wanted)
                return true;
            continue;
        }
        reader->tried_bytes += head.stored_bytes;
        if (reader->tried_bytes / TRY_FACTOR > reader->len) {
            give_up(reader);
            return false;
        }
        skip(reader, &head);
    }
    return false;
}
