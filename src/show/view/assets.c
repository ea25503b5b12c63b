/* The viewer's files inside the command; see assets.h. */
#include "show/view/assets.h"

#include <string.h>
#include <zlib.h>

/* From assets.S, which viewer/bundle writes. */
extern const char fm_asset_page[], fm_asset_page_end[];
extern const char fm_asset_policy_text[];
extern const char fm_asset_engine[], fm_asset_engine_end[];

#define GZIP         (15 + 16)
#define ENGINE_BYTES ((size_t)16 << 20) /* it is far smaller */

struct fm_asset fm_asset_page_text(void)
{
    return (struct fm_asset){ fm_asset_page, (size_t)(fm_asset_page_end - fm_asset_page) };
}

struct fm_asset fm_asset_engine_gzip(void)
{
    return (struct fm_asset){ fm_asset_engine, (size_t)(fm_asset_engine_end - fm_asset_engine) };
}

int fm_asset_engine_unpack(struct fm_buffer *out, struct fm_error *err)
{
    struct fm_asset packed = fm_asset_engine_gzip();
    z_stream z = { .next_in = (Bytef *)(uintptr_t)packed.bytes, .avail_in = (uInt)packed.len };
    if (inflateInit2(&z, GZIP) != Z_OK)
        return fm_error_set(err, FM_SYSTEM, "zlib does not start");
    fm_buffer_reserve(out, ENGINE_BYTES);
    z.next_out = (Bytef *)out->data + out->len;
    z.avail_out = (uInt)ENGINE_BYTES;
    int status = inflate(&z, Z_FINISH);
    out->len += z.total_out;
    inflateEnd(&z);
    return status == Z_STREAM_END
               ? 0
               : fm_error_set(err, FM_SYSTEM, "the viewer's engine in this command is damaged");
}

void fm_asset_policy(struct fm_buffer *out, const char *connect)
{
    const char *place = strstr(fm_asset_policy_text, "%s");
    if (!place)
        return;
    fm_buffer_add(out, fm_asset_policy_text, (size_t)(place - fm_asset_policy_text));
    fm_buffer_add_text(out, connect);
    fm_buffer_add_text(out, place + 2);
}
