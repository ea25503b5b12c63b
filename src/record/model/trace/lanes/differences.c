/*
 * Where slow calls differ from those that did the same; see timeline.h.
 *
 * One walk adds up what calls of each group have of every function, a second one goes through the slowest
 * call of each.
 */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "record/model/trace/lanes/alike.h"
#include "record/model/trace/lanes/lanes.h"

#define MOST 8u /* differences that are told of a call */

/* What calls have of each function. */
struct call_parts {
    double *self_ns, *spans; /* by function */
    uint64_t calls;
};

struct open_part {
    struct fm_call_shape shape;
    uint64_t begin_ns, callees_ns;
    uint32_t func;
};

struct adding {
    const struct fm_call_groups *groups;
    size_t count, functions;
    uint32_t func;
    uint64_t from_ns;
    struct call_parts *sums;   /* by group */
    struct call_parts current; /* the call that is open */
    FM_VEC(uint32_t) touched;  /* functions that it has */
    FM_VEC(struct open_part) stack;
};

static struct call_parts parts_new(size_t functions)
{
    return (struct call_parts){ fm_calloc(functions + 1, sizeof(double)),
                                fm_calloc(functions + 1, sizeof(double)), 0 };
}

static void parts_release(struct call_parts *parts)
{
    free(parts->self_ns);
    free(parts->spans);
}

static void take_part(struct adding *a, const struct open_part *part, uint64_t ns)
{
    struct call_parts *into = &a->current;
    if (part->func >= a->functions)
        return;
    if (into->spans[part->func] == 0)
        fm_vec_push(&a->touched, part->func);
    into->spans[part->func]++;
    into->self_ns[part->func] += (double)(ns > part->callees_ns ? ns - part->callees_ns : 0);
}

/* The call is over: to the sums of its group, and away with it. */
static void end_call(struct adding *a, uint64_t hash, bool whole)
{
    size_t group = 0;
    while (group < a->count && a->groups->groups.data[group].hash != hash)
        group++;
    bool counts = whole && group < a->count;
    for (size_t i = 0; i < a->touched.len; i++) {
        uint32_t func = a->touched.data[i];
        if (counts) {
            a->sums[group].self_ns[func] += a->current.self_ns[func];
            a->sums[group].spans[func] += a->current.spans[func];
        }
        a->current.self_ns[func] = a->current.spans[func] = 0;
    }
    if (counts)
        a->sums[group].calls++;
    a->touched.len = 0;
}

static void begin(struct adding *a, const struct fm_time_span *span)
{
    if (!a->stack.len && span->func != a->func)
        return;
    struct open_part part = { fm_call_shape_begin(span->func), span->begin_ns, 0, span->func };
    fm_vec_push(&a->stack, part);
}

static void end(struct adding *a, const struct fm_time_span *span)
{
    if (!a->stack.len)
        return;
    struct open_part part = a->stack.data[--a->stack.len];
    uint64_t ns = span->end_ns > span->begin_ns ? span->end_ns - span->begin_ns : 0;
    take_part(a, &part, ns);
    if (!a->stack.len) {
        end_call(a, part.shape.hash,
                 span->begin_ns >= a->from_ns &&
                     !(span->flags & (FM_SPAN_CUT | FM_SPAN_OPEN | FM_SPAN_BEGAN_BEFORE)));
        return;
    }
    struct open_part *caller = &a->stack.data[a->stack.len - 1];
    caller->callees_ns += ns;
    if (!(span->flags & FM_SPAN_COLLECTION))
        fm_call_shape_add(&caller->shape, &part.shape);
}

static bool take(void *context, const struct fm_lane_event *event)
{
    if (event->ends)
        end(context, &event->span);
    else
        begin(context, &event->span);
    return true;
}

/* ---- one call ---- */

struct one_call {
    struct fm_time_span span;
    struct adding adding;
};

static bool take_inside(void *context, const struct fm_lane_event *event)
{
    struct one_call *one = context;
    const struct fm_time_span *span = &event->span;
    if (span->depth < one->span.depth || span->begin_ns < one->span.begin_ns)
        return true;
    if (!event->ends) {
        struct open_part part = { { 0, 0 }, span->begin_ns, 0, span->func };
        fm_vec_push(&one->adding.stack, part);
        return true;
    }
    if (!one->adding.stack.len)
        return true;
    struct open_part part = one->adding.stack.data[--one->adding.stack.len];
    uint64_t ns = span->end_ns > span->begin_ns ? span->end_ns - span->begin_ns : 0;
    take_part(&one->adding, &part, ns);
    if (one->adding.stack.len)
        one->adding.stack.data[one->adding.stack.len - 1].callees_ns += ns;
    return one->adding.stack.len; /* until the call itself is over */
}

static int by_time(const void *a, const void *b)
{
    const struct fm_call_difference *x = a, *y = b;
    double more = fabs(y->self_ns - y->usual_self_ns) - fabs(x->self_ns - x->usual_self_ns);
    return more > 0 ? 1 : more < 0 ? -1 : (x->func > y->func) - (x->func < y->func);
}

static int by_spans(const void *a, const void *b)
{
    const struct fm_call_difference *x = a, *y = b;
    double more = fabs(y->spans - y->usual_spans) - fabs(x->spans - x->usual_spans);
    return more > 0 ? 1 : more < 0 ? -1 : (x->func > y->func) - (x->func < y->func);
}

static struct fm_call_difference difference(uint32_t func, const struct call_parts *one,
                                            const struct call_parts *usual)
{
    double calls = usual->calls ? (double)usual->calls : 1,
           own = one->calls ? (double)one->calls : 1;
    return (struct fm_call_difference){ func, one->self_ns[func] / own,
                                        usual->self_ns[func] / calls, one->spans[func] / own,
                                        usual->spans[func] / calls };
}

static int look_at_slowest(struct fm_timeline *t, struct adding *a, size_t group,
                           struct fm_group_differences *into, struct fm_error *err)
{
    const struct fm_call_group *of = &a->groups->groups.data[group];
    const struct fm_found_call *call = &of->slowest[0];
    struct one_call one = { .span = call->span, .adding = { .functions = a->functions } };
    one.adding.current = parts_new(a->functions);
    int status = of->slowest_count
                     ? fm_timeline_events(t, call->lane, call->span.begin_ns, call->span.end_ns + 1,
                                          take_inside, &one, err)
                     : FM_OK;
    for (uint32_t func = 0; func < a->functions; func++) {
        struct fm_call_difference d = difference(func, &one.adding.current, &a->sums[group]);
        if (d.self_ns != d.usual_self_ns)
            fm_vec_push(&into->slowest, d);
        d = difference(func, &a->sums[group], &a->sums[0]);
        if (d.spans != d.usual_spans)
            fm_vec_push(&into->shape, d);
    }
    if (into->slowest.len)
        qsort(into->slowest.data, into->slowest.len, sizeof *into->slowest.data, by_time);
    if (into->shape.len)
        qsort(into->shape.data, into->shape.len, sizeof *into->shape.data, by_spans);
    into->slowest.len = into->slowest.len < MOST ? into->slowest.len : MOST;
    into->shape.len = into->shape.len < MOST ? into->shape.len : MOST;
    parts_release(&one.adding.current);
    fm_vec_release(&one.adding.touched);
    fm_vec_release(&one.adding.stack);
    return status;
}

int fm_timeline_differences(struct fm_timeline *t, uint32_t func, uint64_t from_ns, uint64_t to_ns,
                            const struct fm_call_groups *groups, size_t count,
                            struct fm_group_differences *into, struct fm_error *err)
{
    struct adding a = { .groups = groups, .count = count, .functions = t->p->functions.len };
    int status = FM_OK;
    a.func = func;
    a.from_ns = from_ns;
    a.current = parts_new(a.functions);
    a.sums = fm_calloc(count + 1, sizeof *a.sums);
    for (size_t i = 0; i < count; i++) {
        a.sums[i] = parts_new(a.functions);
        into[i] = (struct fm_group_differences){ 0 };
    }
    for (size_t lane = 0; lane < t->traced.len && !status; lane++) {
        a.stack.len = 0;
        status = fm_timeline_events(t, lane, from_ns, to_ns, take, &a, err);
    }
    for (size_t i = 0; i < count && !status; i++)
        status = look_at_slowest(t, &a, i, &into[i], err);
    for (size_t i = 0; i < count; i++)
        parts_release(&a.sums[i]);
    free(a.sums);
    parts_release(&a.current);
    fm_vec_release(&a.touched);
    fm_vec_release(&a.stack);
    return status;
}

void fm_group_differences_release(struct fm_group_differences *d)
{
    fm_vec_release(&d->slowest);
    fm_vec_release(&d->shape);
}
