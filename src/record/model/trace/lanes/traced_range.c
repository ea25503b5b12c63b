/*
 * What traced lanes have of a range of time, as numbers of contexts; see lanes.h.
 *
 * A call counts where it begins, its time is cut at the ends of the range; so the numbers of ranges that
 * follow one another add up to those of all of them.
 */
#include "record/model/trace/lanes/lanes.h"
#include "record/model/tree.h"

struct range {
    struct fm_tree tree;
    uint64_t from_ns;
    uint64_t lane_ns;       /* when the lane begins */
    FM_VEC(uint32_t) stack; /* contexts of what is open */
    uint32_t root;
};

static void begin(struct range *r, const struct fm_time_span *span)
{
    struct fm_profile *p = r->tree.p;
    uint32_t parent = r->stack.len ? r->stack.data[r->stack.len - 1] : r->root;
    bool is_call = !(span->flags & FM_SPAN_COLLECTION); /* or a region */
    uint32_t node = is_call ? fm_tree_child(&r->tree, parent, span->func) : parent;
    fm_vec_push(&r->stack, node);
    if (!is_call || span->begin_ns < r->from_ns || span->flags & FM_SPAN_BEGAN_BEFORE)
        return;
    fm_profile_add(p, span->flags & FM_SPAN_RESUMED ? FM_METRIC_RESUMES : FM_METRIC_CALLS, node, 1);
}

static void end(struct range *r, const struct fm_time_span *span)
{
    struct fm_profile *p = r->tree.p;
    if (!r->stack.len)
        return;
    uint32_t node = r->stack.data[--r->stack.len];
    uint64_t begin_ns = span->begin_ns > r->from_ns ? span->begin_ns : r->from_ns;
    int64_t ns = span->end_ns > begin_ns ? (int64_t)(span->end_ns - begin_ns) : 0;
    if (span->flags & FM_SPAN_COLLECTION)
        return;
    fm_profile_add(p, FM_METRIC_TOTAL, node, ns);
    if (p->nodes.data[node].parent == r->root)
        fm_profile_add(p, FM_METRIC_TOTAL, r->root, ns);
    bool whole = span->begin_ns > r->lane_ns || !(span->flags & FM_SPAN_BEGAN_BEFORE);
    if (span->begin_ns < r->from_ns || !whole || span->flags & (FM_SPAN_CUT | FM_SPAN_OPEN))
        return;
    fm_profile_add(p, FM_METRIC_MIN, node, ns ? ns : 1);
    fm_profile_add(p, FM_METRIC_MAX, node, ns);
}

static bool take(void *context, const struct fm_lane_event *event)
{
    if (event->ends)
        end(context, &event->span);
    else
        begin(context, &event->span);
    return true;
}

int fm_traced_add(struct fm_timeline *t, uint64_t from_ns, uint64_t to_ns, struct fm_profile *into,
                  struct fm_error *err)
{
    struct range r = { .tree = { .p = into }, .from_ns = from_ns };
    int status = FM_OK;
    for (uint32_t i = 0; i < into->nodes.len; i++)
        if (into->nodes.data[i].parent != FM_NONE)
            fm_tree_know(&r.tree, into->nodes.data[i].parent, into->nodes.data[i].func, i);
    for (size_t lane = 0; lane < t->traced.len && !status; lane++) {
        r.stack.len = 0;
        r.lane_ns = t->lanes.data[lane].begin_ns;
        r.root = into->threads.data[t->lanes.data[lane].thread].root;
        status = fm_timeline_events(t, lane, from_ns, to_ns, take, &r, err);
    }
    fm_vec_release(&r.stack);
    fm_tree_release(&r.tree);
    return status;
}
