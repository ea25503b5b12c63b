/*
 * The viewer's files, which are part of the command: the page, its policy and the engine.
 * viewer/bundle made them.
 */
#ifndef FM_VIEW_ASSETS_H
#define FM_VIEW_ASSETS_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

struct fm_asset {
    const char *bytes;
    size_t len;
};

struct fm_asset fm_asset_page_text(void);
struct fm_asset fm_asset_engine_gzip(void);
/* The engine unpacked, appended. */
int fm_asset_engine_unpack(struct fm_buffer *out, struct fm_error *err);

/* The Content-Security-Policy of the page, appended; what it may connect to: "'self'" or "'none'".
 */
void fm_asset_policy(struct fm_buffer *out, const char *connect);

#endif
