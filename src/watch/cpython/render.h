/*
 * An object of the target as a short text for people: what repr() would say for the built-in
 * types, and <module.Class at 0x…> for everything else. No code of the target runs.
 *
 * Bounded in length, depth, elements and reads, whatever the object claims to be: a list that
 * contains itself, a string of a gigabyte, a dict whose memory is gone.
 */
#ifndef FM_CPYTHON_RENDER_H
#define FM_CPYTHON_RENDER_H

#include "watch/cpython/object.h"

struct fm_render_limits {
    size_t bytes;   /* of the text; what is longer ends with "…" */
    unsigned depth; /* of containers in containers */
    unsigned items; /* of one container */
};

#define FM_RENDER_LIMITS                                                                           \
    {                                                                                              \
        120, 3, 16                                                                                 \
    }

/* Append the text. Never fails: what cannot be read is called so. */
void fm_object_render(const struct fm_heap *t, fm_addr at, const struct fm_render_limits *limits,
                      struct fm_buffer *out);

/* "module.Class" of a type, as its instances are called. */
void fm_type_render(const struct fm_heap *t, fm_addr type, struct fm_buffer *out);

#endif
