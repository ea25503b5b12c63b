/* Compressed blocks; see compress.h. */
#include "record/capture/compress.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/memory.h"
#include "record/capture/format.h"

/* Fast enough that saving waits for the disk; higher levels gain a few percent on such columns. */
#define LEVEL 3

struct fm_compressor {
    ZSTD_CCtx *context;
    void *buffer;
    size_t cap;
};

struct fm_compressor *fm_compressor_new(void)
{
    struct fm_compressor *compressor = fm_calloc(1, sizeof *compressor);
    compressor->context = ZSTD_createCCtx(); /* NULL: blocks stay uncompressed */
    return compressor;
}

void fm_compressor_free(struct fm_compressor *compressor)
{
    if (!compressor)
        return;
    ZSTD_freeCCtx(compressor->context);
    free(compressor->buffer);
    free(compressor);
}

int fm_compressor_block(struct fm_compressor *compressor, struct fm_writer *writer, uint16_t type,
                        const void *payload, size_t bytes)
{
    size_t bound = ZSTD_compressBound(bytes);
    if (!compressor->context)
        return fm_writer_block(writer, type, payload, bytes);
    if (bound > compressor->cap) {
        free(compressor->buffer); /* what was in it is not moved */
        compressor->buffer = fm_malloc(bound);
        compressor->cap = bound;
    }
    size_t stored = ZSTD_compressCCtx(compressor->context, compressor->buffer, compressor->cap,
                                      payload, bytes, LEVEL);
    if (ZSTD_isError(stored) || stored >= bytes)
        return fm_writer_block(writer, type, payload, bytes);
    return fm_writer_block_coded(writer, type, FM_CODEC_ZSTD, compressor->buffer, stored, bytes);
}
