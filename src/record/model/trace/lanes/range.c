/* The profile of a stretch of a timeline: what lanes of both kinds have of it; see timeline.h, range_profile.h. */
#include "record/model/trace/lanes/lanes.h"
#include "record/model/trace/lanes/range_profile.h"
#include "record/model/trace/lanes/sampled.h"

struct fm_profile *fm_timeline_profile(struct fm_timeline *t, uint64_t from_ns, uint64_t to_ns,
                                       struct fm_error *err)
{
    struct fm_profile *p = fm_range_profile_new(t->p);
    for (size_t i = 0; i < t->traced.len; i++) {
        struct fm_process *process = &p->processes.data[t->lanes.data[i].process];
        process->calls = true; /* their times are those of calls */
    }
    if (t->sampled)
        fm_sampled_add(t->sampled, from_ns + t->start_ns,
                       to_ns < t->length_ns ? to_ns + t->start_ns : UINT64_MAX, p);
    if (fm_traced_add(t, from_ns, to_ns, p, err) < 0) {
        fm_profile_free(p);
        return NULL;
    }
    fm_range_profile_end(p);
    return p;
}
