/* Values of a span; see timeline.h. A value has the time of a begin or an end, and the depth of its span. */
#include "record/model/trace/lanes/timeline.h"

#define AROUND_NS 1000u /* times of marks and of spans are rounded apart when they are looked for */

struct values_of {
    const struct fm_time_span *span;
    fm_mark_fn *each;
    void *context;
    enum fm_mark_kind kind;
    uint64_t at_ns;
    bool ended;
};

static bool take(void *context, const struct fm_mark *mark)
{
    struct values_of *v = context;
    if (mark->kind != v->kind || mark->begin_ns != v->at_ns || mark->other != v->span->depth + 1ull)
        return true;
    v->ended = !v->each(v->context, mark);
    return !v->ended;
}

int fm_timeline_values(struct fm_timeline *t, uint32_t lane, const struct fm_time_span *span,
                       fm_mark_fn *each, void *context, struct fm_error *err)
{
    static const enum fm_mark_kind kinds[] = { FM_MARK_VALUE, FM_MARK_RESULT };
    struct values_of v = { .span = span, .each = each, .context = context };
    int status = 0;
    for (int i = 0; i < 2 && status == 0 && !v.ended; i++) {
        v.kind = kinds[i];
        v.at_ns = i ? span->end_ns : span->begin_ns;
        status = fm_timeline_marks(t, lane, v.at_ns > AROUND_NS ? v.at_ns - AROUND_NS : 0,
                                   v.at_ns + AROUND_NS, take, &v, err);
    }
    return status;
}
