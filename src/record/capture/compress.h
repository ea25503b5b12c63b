/*
 * Compressed blocks (zstd) on top of the plain writer, for the tool only: it allocates.
 */
#ifndef FM_CAPTURE_COMPRESS_H
#define FM_CAPTURE_COMPRESS_H

#include "record/capture/writer.h"

struct fm_compressor;

struct fm_compressor *fm_compressor_new(void);
void fm_compressor_free(struct fm_compressor *compressor);

/* Write a block, compressed if that makes it smaller. 0 or a negative errno. */
int fm_compressor_block(struct fm_compressor *compressor, struct fm_writer *writer, uint16_t type,
                        const void *payload, size_t bytes);

#endif
