/*
 * Walks the blocks of a .fathom file (capture/format.h), for the tool.
 *
 * The file lies in memory, or is read as the walk goes on: the header of every block, and the payload
 * of those whose type is wanted. So a file of any size is opened by reading what is asked of it, with
 * room for one block.
 *
 * Nothing in the file is trusted: lengths are bounded, checksums verified, and a block is given out
 * only whole. Where the file is damaged, the reader goes on at the next block that is valid and
 * counts the bytes in between; where it ends in the middle of a block, it says so. Of a block that is
 * not wanted only the header is verified, and that a block follows it.
 */
#ifndef FM_CAPTURE_READER_H
#define FM_CAPTURE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct fm_reader {
    const uint8_t *bytes; /* the file, or NULL: it is read from `fd` */
    int fd;               /* the caller's */
    uint64_t len, at;
    uint64_t wanted; /* a bit per type of block; all at first */
    uint64_t
        placed; /* … of those that are wanted: only their place and first bytes are given out */
    struct {
        uint8_t *data;
        size_t len, cap;
        uint64_t at; /* where in the file it begins */
    } window;        /* what was read last from `fd` */
    uint8_t *buffer; /* of the block given out last */
    size_t buffer_cap;
    void *context; /* of the decompressor */
    uint16_t major, minor;
    uint64_t blocks;        /* given out, or passed over as not wanted */
    uint64_t damaged_spots; /* places where something was skipped */
    uint64_t skipped_bytes;
    bool cut_off;         /* the file ends in the middle of a block */
    uint64_t tried_bytes; /* of payloads that turned out to be damaged */
    bool header_damaged;  /* the version cannot be relied on */
    int failed;           /* 0, or the errno with which reading `fd` failed: the rest is missing */
};

struct fm_block {
    uint16_t type;
    const uint8_t *data; /* valid until the next block is read; not NULL */
    size_t len;
    uint64_t offset; /* of the block in the file */
    uint32_t
        stored; /* bytes of its payload there; more than `len`, if that is only the first ones */
};

#define FM_BLOCK_FIRST_BYTES 64u /* of one that is placed, or fewer */

/* Is this the beginning of a .fathom file? */
bool fm_reader_recognise(const void *bytes, size_t len);

/* Fails if there is no readable file header or its major version is newer. */
int fm_reader_init(struct fm_reader *reader, const void *bytes, size_t len, struct fm_error *err);

/* The same for a file of `len` bytes that is read by position. */
int fm_reader_init_fd(struct fm_reader *reader, int fd, uint64_t len, struct fm_error *err);
void fm_reader_release(struct fm_reader *reader);

/* The next valid block of a type that is wanted; false at the end. */
bool fm_reader_next(struct fm_reader *reader, struct fm_block *block);

#endif
