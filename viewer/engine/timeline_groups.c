/* Calls that did the same, and where slow ones differ, for the page; see timeline.h. */
#include "timeline.h"

#include "base/memory.h"
#include "record/model/trace/lanes/timeline.h"

#define MAX_GROUPS 50u

static void put_groups(struct fm_result *out, const struct fm_call_groups *groups, size_t rows)
{
    fm_result_begin(out, (uint32_t)rows);
    double *calls = fm_result_f64(out), *sum = fm_result_f64(out), *half = fm_result_f64(out);
    double *spans = fm_result_f64(out), *begin = fm_result_f64(out), *end = fm_result_f64(out);
    uint32_t *depth = fm_result_u32(out), *flags = fm_result_u32(out), *lane = fm_result_u32(out);
    for (size_t i = 0; i < rows; i++) {
        const struct fm_call_group *g = &groups->groups.data[i];
        const struct fm_found_call *slowest = &g->slowest[0];
        calls[i] = (double)g->calls;
        sum[i] = (double)g->sum_ns;
        half[i] = fm_timeline_quantile_ns(g->buckets, g->calls, g->min_ns, g->max_ns, 0.5);
        spans[i] = (double)g->spans;
        begin[i] = (double)slowest->span.begin_ns;
        end[i] = (double)slowest->span.end_ns;
        depth[i] = slowest->span.depth;
        flags[i] = slowest->span.flags;
        lane[i] = slowest->lane;
    }
    out->scalars[0] = (double)groups->groups.len;
    out->scalars[1] = (double)groups->others;
    for (size_t i = 0; i < groups->groups.len; i++)
        out->scalars[2] += (double)groups->groups.data[i].calls;
}

struct difference_columns {
    uint32_t *group, *kind, *func;
    double *self, *usual_self, *spans, *usual_spans;
};

static void put_difference(const struct fm_recording *r, const struct difference_columns *c,
                           size_t at, uint32_t group, uint32_t kind,
                           const struct fm_call_difference *d)
{
    c->group[at] = group;
    c->kind[at] = kind;
    c->func[at] = fm_recording_function(r, d->func);
    c->self[at] = d->self_ns;
    c->usual_self[at] = d->usual_self_ns;
    c->spans[at] = d->spans;
    c->usual_spans[at] = d->usual_spans;
}

static void put_differences(struct fm_result *out, const struct fm_recording *r,
                            const struct fm_group_differences *differ, size_t groups)
{
    size_t rows = 0, at = 0;
    for (size_t i = 0; i < groups; i++)
        rows += differ[i].slowest.len + differ[i].shape.len;
    fm_result_begin(out, (uint32_t)rows);
    struct difference_columns c;
    c.group = fm_result_u32(out);
    c.kind = fm_result_u32(out);
    c.func = fm_result_u32(out);
    c.self = fm_result_f64(out);
    c.usual_self = fm_result_f64(out);
    c.spans = fm_result_f64(out);
    c.usual_spans = fm_result_f64(out);
    for (uint32_t i = 0; i < groups; i++) {
        for (size_t k = 0; k < differ[i].slowest.len; k++)
            put_difference(r, &c, at++, i, 0, &differ[i].slowest.data[k]);
        for (size_t k = 0; k < differ[i].shape.len; k++)
            put_difference(r, &c, at++, i, 1, &differ[i].shape.data[k]);
    }
}

int fm_engine_timeline_groups(struct fm_engine *e, int recording, uint32_t func, double from_ns,
                              double to_ns)
{
    struct fm_recording *r;
    struct fm_timeline *t = fm_engine_timeline_of(e, recording, &r);
    struct fm_call_groups groups = { 0 };
    struct fm_group_differences differ[MAX_GROUPS] = { 0 };
    uint64_t from = fm_timeline_instant(from_ns), to = fm_timeline_instant(to_ns);
    if (!t)
        return -1;
    uint32_t within = fm_recording_function_within(r, func);
    int status = within == FM_NONE ? 0 : fm_timeline_groups(t, within, from, to, &groups, &e->err);
    size_t rows = groups.groups.len < MAX_GROUPS ? groups.groups.len : MAX_GROUPS;
    if (!status && rows)
        status = fm_timeline_differences(t, within, from, to, &groups, rows, differ, &e->err);
    if (!status) {
        put_groups(&e->results[0], &groups, rows);
        put_differences(&e->results[1], r, differ, rows);
    }
    for (size_t i = 0; i < rows; i++)
        fm_group_differences_release(&differ[i]);
    fm_call_groups_release(&groups);
    return status < 0 ? -1 : 0;
}
