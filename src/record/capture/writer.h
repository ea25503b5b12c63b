/*
 * Writes blocks of a .fathom file (capture/format.h) to a file descriptor.
 *
 * Usable inside a profiled process: no allocation, no compression, no printing; the caller owns the
 * payload. capture/compress.h puts compression on top, for the tool. What reached the file before a
 * failure stays valid: a reader sees a recording that is cut off.
 * Threads: a writer belongs to one thread at a time.
 */
#ifndef FM_CAPTURE_WRITER_H
#define FM_CAPTURE_WRITER_H

#include <stddef.h>
#include <stdint.h>

struct fm_writer {
    int fd;
    int failed;      /* 0, or the negative errno of the first failure; later writes repeat it */
    uint64_t blocks; /* written whole */
    uint64_t bytes;  /* written in all */
};

void fm_writer_init(struct fm_writer *writer, int fd);

/* The file header. 0 or a negative errno. */
int fm_writer_start(struct fm_writer *writer);

/* A block that was encoded by `codec` already. 0 or a negative errno (-EFBIG: too large for a
 * block). */
int fm_writer_block_coded(struct fm_writer *writer, uint16_t type, uint16_t codec,
                          const void *stored, size_t stored_bytes, size_t raw_bytes);

/* A block as it is. */
int fm_writer_block(struct fm_writer *writer, uint16_t type, const void *payload, size_t bytes);

/* The last block, saying that nothing is missing before it. */
int fm_writer_end(struct fm_writer *writer);

#endif
