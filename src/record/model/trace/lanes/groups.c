/*
 * Calls that did the same: grouped by what was called in them, and in what order; see timeline.h.
 *
 * Each call gets a hash of its function and the hashes of its callees. So ten thousand requests that
 * took the same way are one group, and the slow ones among them stand out.
 */
#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "record/model/trace/lanes/alike.h"
#include "record/model/trace/lanes/lanes.h"
#include "record/model/trace/pack/longest.h"

#define GROUPS_MAX 65536u
#define SLOWEST    8u /* kept of each group */

struct grouping {
    uint32_t func, lane;
    uint64_t from_ns;
    uint64_t wanted; /* how many calls of `func` are open */
    FM_VEC(struct fm_call_shape) stack;
    struct fm_map index; /* hash → group */
    struct fm_call_groups *into;
};

static void add_slowest(struct fm_call_group *group, const struct fm_found_call *call)
{
    size_t at = group->slowest_count;
    if (at == SLOWEST && fm_found_ns(&group->slowest[SLOWEST - 1]) >= fm_found_ns(call))
        return;
    at = at < SLOWEST ? group->slowest_count++ : SLOWEST - 1;
    for (; at && fm_found_ns(&group->slowest[at - 1]) < fm_found_ns(call); at--)
        group->slowest[at] = group->slowest[at - 1];
    group->slowest[at] = *call;
}

static void add_call(struct grouping *g, const struct fm_time_span *span,
                     const struct fm_call_shape *open)
{
    bool is_new = false;
    uint32_t fresh = (uint32_t)g->into->groups.len;
    const uint32_t *known = fresh < GROUPS_MAX ? fm_map_at(&g->index, open->hash, fresh, &is_new)
                                               : fm_map_find(&g->index, open->hash);
    uint64_t ns = span->end_ns - span->begin_ns;
    if (!known) {
        g->into->others++;
        return;
    }
    if (is_new) {
        struct fm_call_group group = { .hash = open->hash, .spans = open->spans, .min_ns = ns };
        group.first = (struct fm_found_call){ *span, g->lane };
        fm_vec_push(&g->into->groups, group);
    }
    struct fm_call_group *group = &g->into->groups.data[*known];
    group->calls++;
    group->sum_ns += ns;
    group->min_ns = ns < group->min_ns ? ns : group->min_ns;
    group->max_ns = ns > group->max_ns ? ns : group->max_ns;
    group->buckets[fm_timeline_bucket(ns)]++;
    add_slowest(group, &(struct fm_found_call){ *span, g->lane });
}

static void begin(struct grouping *g, const struct fm_time_span *span)
{
    struct fm_call_shape open = fm_call_shape_begin(span->func);
    g->wanted += span->func == g->func;
    if (g->wanted)
        fm_vec_push(&g->stack, open);
}

static void end(struct grouping *g, const struct fm_time_span *span)
{
    if (!g->stack.len)
        return;
    struct fm_call_shape open = g->stack.data[--g->stack.len];
    if (span->func == g->func) {
        g->wanted--;
        if (span->begin_ns >= g->from_ns &&
            !(span->flags & (FM_SPAN_CUT | FM_SPAN_OPEN | FM_SPAN_BEGAN_BEFORE)))
            add_call(g, span, &open);
    }
    if (!g->stack.len || span->flags & FM_SPAN_COLLECTION) /* which come when they like */
        return;
    fm_call_shape_add(&g->stack.data[g->stack.len - 1], &open);
}

static bool take(void *context, const struct fm_lane_event *event)
{
    if (event->ends)
        end(context, &event->span);
    else
        begin(context, &event->span);
    return true;
}

static int by_calls(const void *a, const void *b)
{
    const struct fm_call_group *x = a, *y = b;
    if (x->calls != y->calls)
        return x->calls > y->calls ? -1 : 1;
    return x->first.span.begin_ns < y->first.span.begin_ns ? -1 : 1;
}

int fm_timeline_groups(struct fm_timeline *t, uint32_t func, uint64_t from_ns, uint64_t to_ns,
                       struct fm_call_groups *into, struct fm_error *err)
{
    struct grouping g = { .func = func, .from_ns = from_ns, .into = into };
    int status = FM_OK;
    *into = (struct fm_call_groups){ 0 };
    for (size_t lane = 0; lane < t->lanes.len && !status; lane++) {
        g.lane = (uint32_t)lane;
        g.stack.len = 0;
        g.wanted = 0;
        if (t->lanes.data[lane].kind == FM_LANE_TRACED)
            status = fm_timeline_events(t, lane, from_ns, to_ns, take, &g, err);
    }
    if (into->groups.len)
        qsort(into->groups.data, into->groups.len, sizeof *into->groups.data, by_calls);
    fm_vec_release(&g.stack);
    fm_map_release(&g.index);
    return status;
}

void fm_call_groups_release(struct fm_call_groups *groups)
{
    fm_vec_release(&groups->groups);
}
