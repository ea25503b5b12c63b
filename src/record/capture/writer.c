/* Writes blocks of a .fathom file; see writer.h. */
#include "record/capture/writer.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/varint.h"
#include "record/capture/format.h"

void fm_writer_init(struct fm_writer *writer, int fd)
{
    *writer = (struct fm_writer){ .fd = fd };
}

static uint8_t *put_u16(uint8_t *out, uint16_t value)
{
    out[0] = (uint8_t)value;
    out[1] = (uint8_t)(value >> 8);
    return out + 2;
}

static uint8_t *put_u32(uint8_t *out, uint32_t value)
{
    return put_u16(put_u16(out, (uint16_t)value), (uint16_t)(value >> 16));
}

/* Both pieces, however often the system takes only a part of them. */
static int write_all(struct fm_writer *writer, const void *head, size_t head_bytes,
                     const void *body, size_t body_bytes)
{
    struct iovec parts[2] = { { (void *)head, head_bytes }, { (void *)body, body_bytes } };
    struct iovec *at = parts;
    int left = body_bytes ? 2 : 1;
    if (writer->failed)
        return writer->failed;
    while (left) {
        ssize_t n = writev(writer->fd, at, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) /* a device that takes nothing is full */
            return writer->failed = n < 0 ? -errno : -ENOSPC;
        writer->bytes += (uint64_t)n;
        while (left && (size_t)n >= at->iov_len) {
            n -= (ssize_t)at->iov_len;
            at++;
            left--;
        }
        if (left) {
            at->iov_base = (char *)at->iov_base + n;
            at->iov_len -= (size_t)n;
        }
    }
    return 0;
}

int fm_writer_start(struct fm_writer *writer)
{
    uint8_t head[FM_FILE_HEADER_BYTES];
    memcpy(head, FM_FILE_MAGIC, FM_FILE_MAGIC_BYTES);
    uint8_t *out = put_u16(head + FM_FILE_MAGIC_BYTES, FM_FILE_MAJOR);
    out = put_u16(out, FM_FILE_MINOR);
    put_u32(out, fm_crc32c(0, head, (size_t)(out - head)));
    return write_all(writer, head, sizeof head, NULL, 0);
}

int fm_writer_block_coded(struct fm_writer *writer, uint16_t type, uint16_t codec,
                          const void *stored, size_t stored_bytes, size_t raw_bytes)
{
    uint8_t head[FM_BLOCK_HEADER_BYTES];
    if (stored_bytes > FM_BLOCK_MAX_BYTES || raw_bytes > FM_BLOCK_MAX_BYTES)
        return -EFBIG;
    uint8_t *out = put_u32(head, FM_BLOCK_SYNC);
    out = put_u16(out, type);
    out = put_u16(out, codec);
    out = put_u32(out, (uint32_t)stored_bytes);
    out = put_u32(out, (uint32_t)raw_bytes);
    out = put_u32(out, fm_crc32c(0, stored, stored_bytes));
    put_u32(out, fm_crc32c(0, head, (size_t)(out - head)));
    int rc = write_all(writer, head, sizeof head, stored, stored_bytes);
    writer->blocks += rc == 0;
    return rc;
}

int fm_writer_block(struct fm_writer *writer, uint16_t type, const void *payload, size_t bytes)
{
    return fm_writer_block_coded(writer, type, FM_CODEC_NONE, payload, bytes, bytes);
}

int fm_writer_end(struct fm_writer *writer)
{
    uint8_t count[FM_VARINT_MAX];
    return fm_writer_block(writer, FM_BLOCK_END, count, fm_varint_put(count, writer->blocks));
}
