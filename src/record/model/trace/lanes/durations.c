/*
 * How long calls take, and which took longest; see timeline.h.
 *
 * A call is here where it ends. Stretches of traced lanes tell of which functions spans end in them and
 * how long the longest took, so those that have none of a function are not unpacked, and the slowest are
 * found in the few stretches that tell of slow ones.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "record/model/trace/lanes/lanes.h"
#include "record/model/trace/pack/longest.h"

struct asked_durations {
    uint32_t func, lane;
    uint64_t from_ns, to_ns;
    struct fm_durations *into; /* NULL: only the longest */
    struct fm_longest longest;
};

static bool take_span(void *context, const struct fm_time_span *span)
{
    struct asked_durations *a = context;
    uint64_t ns = span->end_ns - span->begin_ns;
    if ((a->func != FM_NONE && span->func != a->func) || span->flags & FM_SPAN_CUT)
        return true;
    if (fm_longest_wants(&a->longest, ns))
        fm_longest_add(&a->longest, &(struct fm_found_call){ *span, a->lane });
    if (!a->into)
        return true;
    a->into->calls++;
    a->into->sum_ns += ns;
    a->into->min_ns = a->into->calls == 1 || ns < a->into->min_ns ? ns : a->into->min_ns;
    a->into->max_ns = ns > a->into->max_ns ? ns : a->into->max_ns;
    a->into->buckets[fm_timeline_bucket(ns)]++;
    return true;
}

/* ---- facts about stretches ---- */

/* How many ticks the longest span of `func` took that ends in a stretch; −1: none does. */
static int64_t longest_in(struct fm_timeline *t, const struct fm_traced_lane *lane,
                          const struct fm_lane_block *block, uint32_t func)
{
    struct fm_stretch_facts facts;
    struct fm_span_facts spans = { 0 };
    int64_t longest = -1;
    if (!fm_timeline_head(t, lane->trace, block->block))
        return -1;
    struct fm_cursor head = fm_cursor_over(t->payload.data, t->payload.len);
    if (!fm_stretch_facts(&facts, &head))
        return -1;
    if (!facts.all_functions)
        return INT64_MAX;
    for (uint32_t i = 0; i < facts.functions && fm_stretch_span_facts(&head, &spans); i++)
        if ((func == FM_NONE || fm_timeline_function(t, lane->trace, spans.subject) == func) &&
            (int64_t)spans.longest > longest)
            longest = (int64_t)spans.longest;
    return longest;
}

struct likely_stretch {
    uint32_t lane;
    uint64_t begin_ns, end_ns; /* of the stretch, since the timeline began */
    uint64_t longest_ns;
};

struct likely_stretches {
    FM_VEC(struct likely_stretch) list;
};

static uint64_t since_start(struct fm_timeline *t, size_t lane, uint64_t ticks)
{
    uint64_t ns = fm_trace_clock_ns(fm_timeline_clock(t, t->traced.data[lane].trace), ticks);
    return ns > t->start_ns ? ns - t->start_ns : 0;
}

/* The stretches of a lane in which spans of the function end, within the range. */
static void find_candidates(struct fm_timeline *t, size_t lane, const struct asked_durations *a,
                            struct likely_stretches *found)
{
    const struct fm_traced_lane *traced = &t->traced.data[lane];
    const struct fm_trace_clock *clock = fm_timeline_clock(t, traced->trace);
    for (size_t i = 0; i < traced->stretches.list.len; i++) {
        const struct fm_lane_block *block = &traced->stretches.list.data[i];
        struct likely_stretch c = { .lane = (uint32_t)lane };
        c.begin_ns = since_start(t, lane, block->begin);
        /* Up to where the next one begins: its own last events are in it. */
        c.end_ns = i + 1 < traced->stretches.list.len
                       ? since_start(t, lane, traced->stretches.list.data[i + 1].begin)
                       : UINT64_MAX;
        if (c.begin_ns >= a->to_ns || (c.end_ns < a->from_ns))
            continue;
        int64_t longest = longest_in(t, traced, block, a->func);
        if (longest < 0)
            continue;
        c.longest_ns =
            longest == INT64_MAX ? UINT64_MAX : fm_trace_clock_length_ns(clock, (uint64_t)longest);
        c.longest_ns += c.longest_ns / 64; /* the pace of a moment may differ from that of all */
        fm_vec_push(&found->list, c);
    }
}

static int by_longest(const void *a, const void *b)
{
    const struct likely_stretch *x = a, *y = b;
    return x->longest_ns > y->longest_ns ? -1 : x->longest_ns < y->longest_ns;
}

static int look_through(struct fm_timeline *t, struct asked_durations *a,
                        const struct likely_stretch *c, struct fm_error *err)
{
    uint64_t from = c->begin_ns > a->from_ns ? c->begin_ns : a->from_ns;
    uint64_t to = c->end_ns < a->to_ns ? c->end_ns : a->to_ns;
    a->lane = c->lane;
    return from < to ? fm_timeline_spans(t, c->lane, from, to, take_span, a, err) : FM_OK;
}

static int look(struct fm_timeline *t, struct asked_durations *a, bool only_longest,
                struct fm_error *err)
{
    struct likely_stretches found = { 0 };
    int status = FM_OK;
    for (size_t lane = 0; lane < t->lanes.len && !status; lane++) {
        a->lane = (uint32_t)lane;
        if (t->lanes.data[lane].kind == FM_LANE_TRACED)
            find_candidates(t, lane, a, &found);
        else
            status = fm_timeline_spans(t, lane, a->from_ns, a->to_ns, take_span, a, err);
    }
    if (only_longest && found.list.len)
        qsort(found.list.data, found.list.len, sizeof *found.list.data, by_longest);
    for (size_t i = 0; i < found.list.len && !status; i++) {
        if (only_longest && (!fm_longest_wants(&a->longest, found.list.data[i].longest_ns) ||
                             t->away.wanted.len > a->longest.most))
            break; /* … or with these others will not be needed */
        status = look_through(t, a, &found.list.data[i], err);
    }
    fm_vec_release(&found.list);
    fm_longest_sort(&a->longest);
    return status;
}

int fm_timeline_durations(struct fm_timeline *t, uint32_t func, uint64_t from_ns, uint64_t to_ns,
                          size_t longest, struct fm_durations *into, struct fm_error *err)
{
    struct asked_durations a = { func, 0, from_ns, to_ns, into, { .most = longest } };
    *into = (struct fm_durations){ 0 };
    int status = look(t, &a, false, err);
    memcpy(&into->longest, &a.longest.calls, sizeof into->longest);
    return status;
}

int fm_timeline_slowest(struct fm_timeline *t, uint32_t func, uint64_t from_ns, uint64_t to_ns,
                        size_t longest, struct fm_durations *into, struct fm_error *err)
{
    struct asked_durations a = { func, 0, from_ns, to_ns, NULL, { .most = longest } };
    *into = (struct fm_durations){ 0 };
    int status = look(t, &a, true, err);
    memcpy(&into->longest, &a.longest.calls, sizeof into->longest);
    return status;
}

void fm_durations_release(struct fm_durations *d)
{
    fm_vec_release(&d->longest);
}

double fm_timeline_quantile_ns(const uint64_t buckets[128], uint64_t calls, uint64_t min_ns,
                               uint64_t max_ns, double share)
{
    double wanted = share * (double)calls, before = 0;
    for (unsigned i = 0; i < 128; i++) {
        double own = (double)buckets[i];
        if (own > 0 && before + own >= wanted) {
            double low = fm_timeline_bucket_ns(i), high = fm_timeline_bucket_ns(i + 1);
            double ns = low + (high - low) * (wanted - before) / own;
            ns = ns < (double)min_ns ? (double)min_ns : ns;
            return ns > (double)max_ns ? (double)max_ns : ns;
        }
        before += own;
    }
    return (double)max_ns;
}
