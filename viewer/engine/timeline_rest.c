/* What the model does not know of timelines yet; its own definitions take the place of these. */
#include "record/model/trace/timeline.h"

#define WEAK __attribute__((weak))

WEAK struct fm_profile *fm_timeline_profile(struct fm_timeline *t, uint64_t from_ns, uint64_t to_ns,
                                            struct fm_error *err)
{
    (void)t, (void)from_ns, (void)to_ns;
    fm_error_set(err, FM_UNSUPPORTED, "ranges of a timeline cannot be counted yet");
    return NULL;
}

WEAK int fm_timeline_durations(struct fm_timeline *t, uint32_t func, uint64_t from_ns,
                               uint64_t to_ns, size_t longest, struct fm_durations *into,
                               struct fm_error *err)
{
    (void)t, (void)func, (void)from_ns, (void)to_ns, (void)longest, (void)into, (void)err;
    return 0;
}

WEAK void fm_durations_release(struct fm_durations *d)
{
    (void)d;
}
