/* The profile of a stretch of a timeline: what lanes of both kinds have of it; see timeline.h, range_profile.h. */
#include "record/model/trace/lanes/lanes.h"
#include "record/model/trace/lanes/range_profile.h"
#include "record/model/trace/lanes/sampled.h"

/* What of a life lies in the range, which is on the timeline's clock; 0 and 0: nothing. */
static void cut_life(const struct fm_timeline *t, uint32_t process, uint64_t from_ns,
                     uint64_t to_ns, uint64_t *begin_ns, uint64_t *end_ns)
{
    uint64_t shift_ns = fm_run_clocks_shift_ns(&t->clocks, t->p, process);
    uint64_t begin = *begin_ns + shift_ns, end = *end_ns + shift_ns;
    begin = begin > from_ns ? begin : from_ns;
    end = end < to_ns ? end : to_ns;
    bool was_there = *begin_ns && begin < end;
    *begin_ns = was_there ? begin - shift_ns : 0;
    *end_ns = was_there ? end - shift_ns : 0;
}

/* Processes and threads lived as long as they did in the range. */
static void cut_lives(const struct fm_timeline *t, uint64_t from_ns, uint64_t to_ns,
                      struct fm_profile *p)
{
    to_ns = t->start_ns + (to_ns < t->length_ns ? to_ns : t->length_ns);
    from_ns += t->start_ns;
    for (uint32_t i = 0; i < p->processes.len; i++)
        cut_life(t, i, from_ns, to_ns, &p->processes.data[i].start_ns,
                 &p->processes.data[i].end_ns);
    for (size_t i = 0; i < p->threads.len; i++)
        cut_life(t, p->threads.data[i].process, from_ns, to_ns, &p->threads.data[i].start_ns,
                 &p->threads.data[i].end_ns);
}

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
    cut_lives(t, from_ns, to_ns, p);
    fm_range_profile_end(p);
    return p;
}
