/* Threads that waited while another of their process had the interpreter, for the page; see timeline.h. */
#include "timeline.h"

#include "base/memory.h"
#include "record/model/trace/lanes/timeline.h"

#define MOST_TURNS 20000u

struct turn_list {
    FM_VEC(struct fm_handover) list;
    const struct fm_profile *p;
    uint64_t least_ns;
    bool more;
};

static bool take(void *context, const struct fm_handover *handover)
{
    struct turn_list *turns = context;
    if (!fm_handover_is_wait(turns->p, handover) || handover->idle_since_ns == UINT64_MAX ||
        handover->before_ns - handover->idle_since_ns < turns->least_ns)
        return true;
    turns->more = turns->list.len >= MOST_TURNS;
    if (!turns->more)
        fm_vec_push(&turns->list, *handover);
    return !turns->more;
}

int fm_engine_timeline_turns(struct fm_engine *e, int recording, uint32_t process, double from_ns,
                             double to_ns, double least_ns)
{
    struct turn_list turns = { .least_ns = fm_timeline_instant(least_ns) };
    struct fm_recording *r;
    struct fm_timeline *t = fm_engine_timeline_of(e, recording, &r);
    if (!t)
        return -1;
    turns.p = r->p;
    int status = fm_timeline_handovers(t, process, fm_timeline_instant(from_ns),
                                       fm_timeline_instant(to_ns), take, &turns, &e->err);
    struct fm_result *out = &e->results[0];
    fm_result_begin(out, (uint32_t)turns.list.len);
    uint32_t *lane = fm_result_u32(out), *other = fm_result_u32(out);
    uint32_t *depth = fm_result_u32(out);
    double *idle = fm_result_f64(out), *taken = fm_result_f64(out);
    double *after = fm_result_f64(out), *before = fm_result_f64(out);
    for (size_t i = 0; i < turns.list.len; i++) {
        const struct fm_handover *turn = &turns.list.data[i];
        lane[i] = turn->to_lane;
        other[i] = turn->from_lane;
        depth[i] = turn->depth;
        idle[i] = (double)turn->idle_since_ns;
        taken[i] = (double)turn->taken_ns;
        after[i] = (double)turn->after_ns;
        before[i] = (double)turn->before_ns;
    }
    out->scalars[0] = turns.more;
    fm_vec_release(&turns.list);
    return status < 0 ? -1 : 0;
}

int fm_engine_timeline_waits(struct fm_engine *e, int recording, double from_ns, double to_ns)
{
    struct fm_gil_waits waits = { 0 };
    struct fm_recording *r;
    struct fm_timeline *t = fm_engine_timeline_of(e, recording, &r);
    if (!t)
        return -1;
    int status = fm_timeline_gil_waits(t, fm_timeline_instant(from_ns), fm_timeline_instant(to_ns),
                                       &waits, &e->err);
    struct fm_result *out = &e->results[0];
    fm_result_begin(out, (uint32_t)waits.list.len);
    uint32_t *known = fm_result_u32(out);
    double *turns = fm_result_f64(out), *count = fm_result_f64(out);
    double *least = fm_result_f64(out), *most = fm_result_f64(out);
    double *longest = fm_result_f64(out), *longest_at = fm_result_f64(out);
    for (size_t i = 0; i < waits.list.len; i++) {
        const struct fm_gil_wait *wait = &waits.list.data[i];
        known[i] = wait->known;
        turns[i] = (double)wait->turns;
        count[i] = (double)wait->waits;
        least[i] = (double)wait->least_ns;
        most[i] = (double)wait->most_ns;
        longest[i] = (double)wait->longest_ns;
        longest_at[i] = (double)wait->longest_at_ns;
    }
    fm_vec_release(&waits.list);
    return status < 0 ? -1 : 0;
}
