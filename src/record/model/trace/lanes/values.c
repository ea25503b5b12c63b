/*
 * Values of a span or a mark; see timeline.h. A value of a span has the time of a begin or an end, and the depth of
 * its span; one of a mark the time at which it began and, of a region, its token.
 */
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

/* ---- of marks ---- */

struct values_of_mark {
    const struct fm_timeline *t;
    const struct fm_mark *of;
    fm_mark_fn *each;
    void *context;
};

static uint32_t process_of(const struct fm_timeline *t, uint32_t lane)
{
    return fm_timeline_lane(t, lane)->process;
}

static bool take_of_mark(void *context, const struct fm_mark *mark)
{
    struct values_of_mark *v = context;
    bool region = v->of->kind == FM_MARK_REGION;
    if (mark->kind != FM_MARK_VALUE || mark->other || mark->begin_ns != v->of->begin_ns ||
        mark->value != (region ? v->of->value : 0) ||
        process_of(v->t, mark->lane) != process_of(v->t, v->of->lane))
        return true;
    return v->each(v->context, mark);
}

int fm_timeline_mark_values(struct fm_timeline *t, const struct fm_mark *mark, fm_mark_fn *each,
                            void *context, struct fm_error *err)
{
    struct values_of_mark v = { t, mark, each, context };
    bool token = mark->kind == FM_MARK_REGION && mark->value;
    uint64_t at_ns = mark->begin_ns;
    if ((!token && mark->kind != FM_MARK_INSTANT) || mark->lane >= fm_timeline_lanes(t))
        return FM_OK;
    return fm_timeline_marks(t, token ? FM_NONE : mark->lane,
                             at_ns > AROUND_NS ? at_ns - AROUND_NS : 0, at_ns + AROUND_NS,
                             take_of_mark, &v, err);
}
