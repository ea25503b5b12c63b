/*
 * gzip, for pprof: whole buffers, and no more memory than an honest file asks for.
 *
 * Profiles shrink to a fifth or a thirtieth. What grows more than 200 times is a file made to fill
 * memory, except that little is always allowed.
 */
#define ZLIB_CONST
#include <zlib.h>

#include "record/formats/stacks/pprof.h"

#define GZIP       (15 + 16) /* the largest window, with gzip's header */
#define GROWTH_MAX 200
#define SMALL      ((size_t)64 << 20)
#define LARGE      ((size_t)1 << 30)
#define PIECE      ((size_t)256 << 10)

bool fm_gzip_recognise(const void *bytes, size_t len)
{
    const unsigned char *b = bytes;
    return len > 18 && b[0] == 0x1f && b[1] == 0x8b && b[2] == 8;
}

static size_t part_of(size_t len)
{
    return len < PIECE ? len : PIECE;
}

int fm_gzip_pack(const void *bytes, size_t len, struct fm_buffer *out, struct fm_error *err)
{
    z_stream z = { .next_in = bytes };
    int status = Z_OK;
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return fm_error_set(err, FM_SYSTEM, "zlib does not start");
    while (status == Z_OK) {
        size_t left = len - (size_t)((const char *)z.next_in - (const char *)bytes);
        fm_buffer_reserve(out, PIECE);
        z.avail_in = (uInt)part_of(left);
        z.next_out = (Bytef *)out->data + out->len;
        z.avail_out = (uInt)PIECE;
        status = deflate(&z, left <= PIECE ? Z_FINISH : Z_NO_FLUSH);
        out->len += PIECE - z.avail_out;
        if (status == Z_BUF_ERROR)
            status = Z_OK; /* it only wants more room */
    }
    deflateEnd(&z);
    return status == Z_STREAM_END ? 0 : fm_error_set(err, FM_SYSTEM, "zlib fails (%d)", status);
}

static size_t most_of(size_t len)
{
    size_t most = len < LARGE / GROWTH_MAX ? SMALL + len * GROWTH_MAX : LARGE;
    return most < LARGE ? most : LARGE;
}

int fm_gzip_unpack(const void *bytes, size_t len, size_t limit, struct fm_buffer *out,
                   struct fm_error *err)
{
    z_stream z = { .next_in = bytes };
    size_t most = limit ? limit : most_of(len);
    int status = Z_OK;
    if (inflateInit2(&z, GZIP) != Z_OK)
        return fm_error_set(err, FM_SYSTEM, "zlib does not start");
    while (status == Z_OK && out->len <= most) {
        size_t left = len - (size_t)((const char *)z.next_in - (const char *)bytes);
        size_t room = limit ? limit : PIECE;
        fm_buffer_reserve(out, room);
        z.avail_in = (uInt)part_of(left);
        z.next_out = (Bytef *)out->data + out->len;
        z.avail_out = (uInt)room;
        status = inflate(&z, Z_NO_FLUSH);
        out->len += room - z.avail_out;
        left = len - (size_t)((const char *)z.next_in - (const char *)bytes);
        if (status == Z_STREAM_END && fm_gzip_recognise(z.next_in, left))
            status = inflateReset(&z); /* another one follows */
        if (limit && out->len >= limit)
            break;
    }
    inflateEnd(&z);
    if (limit)
        return 0;
    if (out->len > most)
        return fm_error_set(err, FM_DAMAGED,
                            "it unpacks to more than %zu MB, which no honest profile of its size "
                            "does",
                            most >> 20);
    if (status == Z_BUF_ERROR)
        return fm_error_set(err, FM_DAMAGED, "its compressed data is cut off");
    return status == Z_STREAM_END ? 0
                                  : fm_error_set(err, FM_DAMAGED, "its compressed data is damaged");
}
