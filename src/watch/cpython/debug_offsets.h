/*
 * What CPython 3.13 and later tells about itself: the _Py_DebugOffsets at the start of _PyRuntime.
 *
 * It is a list of 64-bit numbers whose order differs between versions; the order of each known
 * version is data (debug_offsets_lists.h). Here they are read, recognised and looked up by the name
 * that CPython gives them; what they mean for Fathom is decided in layout.c.
 */
#ifndef FM_CPYTHON_DEBUG_OFFSETS_H
#define FM_CPYTHON_DEBUG_OFFSETS_H

#include <stdbool.h>
#include <stdint.h>

#include "watch/os/remote/remote.h"

struct fm_debug_offsets {
    uint32_t version_hex; /* of the target, as it says itself */
    bool free_threaded;
    bool known; /* the order of this version is known: values are there */
    unsigned n;
    const char *const *names;
    uint64_t values[256];
};

/* Read them from the start of _PyRuntime: 0, −ENOENT if there are none there (the Python is older
 * than 3.13), or the error number of the read. */
int fm_debug_offsets_read(struct fm_debug_offsets *offsets, const struct fm_remote *remote,
                          fm_addr runtime);

/* The number called `name` ("interpreter_state.id"); false if this version has none. */
bool fm_debug_offsets_find(const struct fm_debug_offsets *offsets, const char *name,
                           uint64_t *ret_value);

#endif
