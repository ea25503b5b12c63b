/*
 * What Fathom uses of zstd's library, for the browser, where there is none: by unzstd/unzstd.h. Recordings come
 * with plain blocks (viewer/ENGINE.md), except for those of traces.
 */
#ifndef FM_ENGINE_WASM_ZSTD_H
#define FM_ENGINE_WASM_ZSTD_H

#include "unzstd/unzstd.h"

typedef char ZSTD_DCtx; /* there is nothing to keep */

#define ZSTD_CONTENTSIZE_UNKNOWN ((unsigned long long)-1)
#define ZSTD_CONTENTSIZE_ERROR   ((unsigned long long)-2)

static inline unsigned long long ZSTD_getFrameContentSize(const void *bytes, size_t len)
{
    uint64_t size;
    return fm_unzstd_size(bytes, len, &size) ? size : ZSTD_CONTENTSIZE_ERROR;
}

static inline ZSTD_DCtx *ZSTD_createDCtx(void)
{
    static ZSTD_DCtx context;
    return &context;
}

static inline size_t ZSTD_freeDCtx(ZSTD_DCtx *context)
{
    (void)context;
    return 0;
}

static inline size_t ZSTD_decompressDCtx(ZSTD_DCtx *context, void *out, size_t room, const void *in,
                                         size_t len)
{
    (void)context;
    return (size_t)fm_unzstd(out, room, in, len);
}

static inline unsigned ZSTD_isError(size_t code)
{
    return code > (size_t)-200;
}

#endif
