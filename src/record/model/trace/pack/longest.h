/* The longest calls of those that are met, longest first; see timeline.h. */
#ifndef FM_MODEL_TRACE_LONGEST_H
#define FM_MODEL_TRACE_LONGEST_H

#include "record/model/trace/lanes/timeline.h"

struct fm_longest {
    FM_VEC(struct fm_found_call) calls; /* a heap: the shortest of them first */
    size_t most;
};

static inline uint64_t fm_found_ns(const struct fm_found_call *call)
{
    return call->span.end_ns - call->span.begin_ns;
}

/* Would a call of that length be among them? */
static inline bool fm_longest_wants(const struct fm_longest *l, uint64_t ns)
{
    return l->calls.len < l->most || (l->most && ns > fm_found_ns(&l->calls.data[0]));
}

void fm_longest_add(struct fm_longest *l, const struct fm_found_call *call);
void fm_longest_sort(struct fm_longest *l); /* at last */

#endif
