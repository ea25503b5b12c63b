/*
 * Walks the blocks of a .fathom file (capture/format.h) that lies in memory, for the tool.
 *
 * Nothing in the file is trusted: lengths are bounded, checksums verified, and a block is given out
 * only whole. Where the file is damaged, the reader goes on at the next block that is valid and
 * counts the bytes in between; where it ends in the middle of a block, it says so.
 */
#ifndef FM_CAPTURE_READER_H
#define FM_CAPTURE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct fm_reader {
    const uint8_t *bytes;
    size_t len, at;
    uint8_t *buffer; /* of the block given out last */
    size_t buffer_cap;
    void *context; /* of the decompressor */
    uint16_t major, minor;
    uint64_t blocks;        /* given out */
    uint64_t damaged_spots; /* places where something was skipped */
    uint64_t skipped_bytes;
    bool cut_off;         /* the file ends in the middle of a block */
    uint64_t tried_bytes; /* of payloads that turned out to be damaged */
    bool header_damaged;  /* the version cannot be relied on */
};

struct fm_block {
    uint16_t type;
    const uint8_t *data; /* valid until the next block is read; not NULL */
    size_t len;
    size_t offset; /* of the block in the file */
};

/* Is this the beginning of a .fathom file? */
bool fm_reader_recognise(const void *bytes, size_t len);

/* Fails if there is no readable file header or its major version is newer. */
int fm_reader_init(struct fm_reader *reader, const void *bytes, size_t len, struct fm_error *err);
void fm_reader_release(struct fm_reader *reader);

/* The next valid block; false at the end. */
bool fm_reader_next(struct fm_reader *reader, struct fm_block *block);

#endif
