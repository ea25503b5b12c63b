/* The debug offsets of CPython 3.13 and later; see debug_offsets.h. */
#include "watch/cpython/debug_offsets.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "watch/cpython/debug_offsets_lists.h"

/* The first three members, the same in all versions. */
enum { COOKIE, VERSION, FREE_THREADED, HEAD };

static const char cookie[8] = { 'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y' };

_Static_assert(DEBUG_OFFSETS_MAX <= FM_COUNT(((struct fm_debug_offsets *)0)->values),
               "room for the members of every version");

int fm_debug_offsets_read(struct fm_debug_offsets *offsets, const struct fm_remote *remote,
                          fm_addr runtime)
{
    *offsets = (struct fm_debug_offsets){ 0 };
    int r = fm_remote_read(remote, runtime, offsets->values, HEAD * sizeof offsets->values[0]);
    if (r < 0)
        return r;
    if (memcmp(&offsets->values[COOKIE], cookie, sizeof cookie) != 0)
        return -ENOENT;
    offsets->version_hex = (uint32_t)offsets->values[VERSION];
    offsets->free_threaded = offsets->values[FREE_THREADED] != 0;
    for (size_t i = 0; i < FM_COUNT(debug_offsets_lists); i++) {
        if (offsets->version_hex >> 16 != (3u << 8 | debug_offsets_lists[i].minor))
            continue;
        offsets->known = true;
        offsets->n = debug_offsets_lists[i].n;
        offsets->names = debug_offsets_lists[i].names;
        return fm_remote_read(remote, runtime, offsets->values,
                              offsets->n * sizeof offsets->values[0]);
    }
    return 0;
}

bool fm_debug_offsets_find(const struct fm_debug_offsets *offsets, const char *name,
                           uint64_t *ret_value)
{
    for (unsigned i = 0; i < offsets->n; i++)
        if (strcmp(offsets->names[i], name) == 0) {
            *ret_value = offsets->values[i];
            return true;
        }
    return false;
}
