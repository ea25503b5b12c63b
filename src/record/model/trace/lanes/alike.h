/*
 * When two calls did the same: equal hashes of their function and of all that was called in them, in order.
 * Collections of garbage come when they like, and do not count.
 */
#ifndef FM_MODEL_TRACE_ALIKE_H
#define FM_MODEL_TRACE_ALIKE_H

#include "base/map.h"

struct fm_call_shape {
    uint64_t hash, spans; /* spans: below it */
};

static inline struct fm_call_shape fm_call_shape_begin(uint32_t func)
{
    return (struct fm_call_shape){ fm_mix64((uint64_t)func + 1), 0 };
}

static inline void fm_call_shape_add(struct fm_call_shape *caller,
                                     const struct fm_call_shape *callee)
{
    caller->hash = fm_mix64(caller->hash * 31 + callee->hash);
    caller->spans += 1 + callee->spans;
}

#endif
