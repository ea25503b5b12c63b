/*
 * Trees of calls, and lanes of a timeline, from Chrome's trace events; chrome.h says what was read.
 *
 * Calls of a thread nest by their times: sorted by begin, longer ones first, each is inside of the innermost one that
 * is still open. Times are rounded to the digits that a writer has, so a call may seem to end a little behind its
 * caller: up to a microsecond, the unit of the format, it ends with it. Calls that overlap more than that are no calls
 * of each other (kineto writes asynchronous work so): they go to further trees of the same thread, of which each
 * nests.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "record/formats/timeline/chrome.h"
#include "record/model/trace/pack/build.h"
#include "record/model/tree.h"

#define ROUNDING_NS 1000
#define LANES_MOST  64 /* trees of one thread */

struct chrome_open {
    int64_t end_ns;
    uint32_t node;
};

/* Calls of a thread that nest. */
struct chrome_lane {
    FM_VEC(struct chrome_open) stack;
    uint32_t thread; /* of the profile */
};

struct chrome_builder {
    struct fm_chrome *c;
    struct fm_tree tree;
    struct chrome_lane lanes[LANES_MOST];
    size_t lane_count;
    struct fm_trace_build **builds; /* by process: its lanes; NULL: none yet */
    int64_t start_ns;               /* of all that was read */
    uint64_t overlapping, pressed, open, unmatched;
};

/* ---- from begins and ends to calls ---- */

static int by_time(const void *left, const void *right)
{
    const struct fm_chrome_edge *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

struct chrome_begun {
    FM_VEC(uint32_t) stack; /* edges */
};

static void end_call(struct chrome_builder *b, struct chrome_begun *begun, int64_t end_ns,
                     bool open)
{
    const struct fm_chrome_edge *edge = &b->c->edges.data[begun->stack.data[--begun->stack.len]];
    struct fm_chrome_span span = { .begin_ns = edge->at_ns,
                                   .end_ns = end_ns,
                                   .thread = edge->thread,
                                   .func = edge->func,
                                   .order = edge->order,
                                   .open = open };
    fm_vec_push(&b->c->spans, span);
}

/* An end without a name is of the call begun last; one with a name of the last of that name. */
static void match_end(struct chrome_builder *b, struct chrome_begun *begun,
                      const struct fm_chrome_edge *edge)
{
    size_t at = begun->stack.len;
    while (at > 0 && edge->func != FM_NONE &&
           b->c->edges.data[begun->stack.data[at - 1]].func != edge->func)
        at--;
    if (!at) {
        b->unmatched++;
        return;
    }
    while (begun->stack.len > at)
        end_call(b, begun, edge->at_ns, true);
    end_call(b, begun, edge->at_ns, false);
}

static void match_edges(struct chrome_builder *b)
{
    struct fm_chrome *c = b->c;
    struct chrome_begun begun = { 0 };
    if (c->edges.len)
        qsort(c->edges.data, c->edges.len, sizeof *c->edges.data, by_time);
    for (size_t i = 0; i < c->edges.len; i++) {
        struct fm_chrome_edge edge = c->edges.data[i];
        if (edge.ends)
            match_end(b, &begun, &edge);
        else
            fm_vec_push(&begun.stack, (uint32_t)i);
        bool last = i + 1 == c->edges.len || c->edges.data[i + 1].thread != edge.thread;
        while (last && begun.stack.len)
            end_call(b, &begun, c->thread_list.data[edge.thread].last_ns, true);
    }
    fm_vec_release(&begun.stack);
}

/* ---- from calls to trees ---- */

static int by_begin(const void *left, const void *right)
{
    const struct fm_chrome_span *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns ? -1 : 1;
    if (a->end_ns != b->end_ns)
        return a->end_ns > b->end_ns ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* viztracer writes a call when it ends: of two with equal times the later one is outside. */
static int by_begin_ended_first(const void *left, const void *right)
{
    const struct fm_chrome_span *a = left, *b = right;
    bool equal = a->thread == b->thread && a->begin_ns == b->begin_ns && a->end_ns == b->end_ns;
    return equal ? by_begin(right, left) : by_begin(left, right);
}

/* Instants of lanes and processes: one and not zero for the first, for zero is how an unknown one is written. */
static uint64_t instant(const struct chrome_builder *b, int64_t ns)
{
    return (uint64_t)ns - (uint64_t)b->start_ns + 1;
}

static struct fm_trace_build *build_of(struct chrome_builder *b, const struct chrome_lane *lane)
{
    struct fm_trace_build **build = &b->builds[b->c->p->threads.data[lane->thread].process];
    if (!*build)
        *build = fm_trace_build_new();
    return *build;
}

/* Calls that ended until then. */
static void end_calls(struct chrome_builder *b, struct chrome_lane *lane, int64_t until_ns)
{
    while (lane->stack.len && lane->stack.data[lane->stack.len - 1].end_ns <= until_ns) {
        int64_t end_ns = lane->stack.data[--lane->stack.len].end_ns;
        fm_trace_build_end(build_of(b, lane), lane->thread, instant(b, end_ns));
    }
}

/* Does the call nest in what is open on the lane? It is cut by what rounding may have added. */
static bool fits(struct chrome_builder *b, struct chrome_lane *lane, int64_t begin_ns,
                 int64_t *end_ns, bool press)
{
    end_calls(b, lane, begin_ns);
    if (!lane->stack.len)
        return true;
    int64_t end = lane->stack.data[lane->stack.len - 1].end_ns;
    if (*end_ns > end && *end_ns - end > ROUNDING_NS && !press)
        return false;
    *end_ns = *end_ns < end ? *end_ns : end;
    return true;
}

static struct chrome_lane *new_lane(struct chrome_builder *b, const struct fm_chrome_thread *t)
{
    struct fm_profile *p = b->c->p;
    struct chrome_lane *lane = &b->lanes[b->lane_count++];
    lane->stack.len = 0;
    lane->thread = t->thread;
    if (b->lane_count > 1) {
        struct fm_thread twin = { .process = t->process, .tid = p->threads.data[t->thread].tid };
        fm_autobuffer name = FM_BUFFER_INIT;
        fm_buffer_addf(&name, "%s (overlapping %zu)",
                       fm_profile_text(p, p->threads.data[t->thread].name), b->lane_count - 1);
        twin.name = fm_profile_string(p, fm_buffer_text(&name));
        lane->thread = fm_profile_thread(p, &twin);
        p->threads.data[lane->thread].start_ns = p->threads.data[t->thread].start_ns;
        p->threads.data[lane->thread].end_ns = p->threads.data[t->thread].end_ns;
    }
    return lane;
}

static struct chrome_lane *lane_for(struct chrome_builder *b, const struct fm_chrome_thread *t,
                                    int64_t begin_ns, int64_t *end_ns)
{
    for (size_t i = 0; i < b->lane_count; i++) {
        if (!fits(b, &b->lanes[i], begin_ns, end_ns, false))
            continue;
        b->overlapping += i > 0;
        return &b->lanes[i];
    }
    if (b->lane_count == LANES_MOST) {
        fits(b, &b->lanes[LANES_MOST - 1], begin_ns, end_ns, true);
        b->pressed++;
        return &b->lanes[LANES_MOST - 1];
    }
    b->overlapping += b->lane_count > 0;
    return new_lane(b, t);
}

static void add_call(struct chrome_builder *b, const struct fm_chrome_span *span)
{
    struct fm_profile *p = b->c->p;
    int64_t end_ns = span->end_ns;
    struct chrome_lane *lane =
        lane_for(b, &b->c->thread_list.data[span->thread], span->begin_ns, &end_ns);
    uint32_t root = p->threads.data[lane->thread].root;
    size_t depth = lane->stack.len;
    uint32_t parent = depth ? lane->stack.data[depth - 1].node : root;
    uint32_t node = fm_tree_child(&b->tree, parent, span->func);
    int64_t ns = end_ns - span->begin_ns;
    fm_profile_add(p, FM_METRIC_CALLS, node, 1);
    fm_profile_add(p, FM_METRIC_TOTAL, node, ns);
    if (!span->open) {
        fm_profile_add(p, FM_METRIC_MIN, node, ns);
        fm_profile_add(p, FM_METRIC_MAX, node, ns);
    }
    if (!depth)
        fm_profile_add(p, FM_METRIC_TOTAL, root, ns);
    b->open += span->open;
    fm_trace_build_begin(build_of(b, lane), p, lane->thread, instant(b, span->begin_ns),
                         span->func);
    fm_vec_push(&lane->stack, ((struct chrome_open){ end_ns, node }));
}

/* When each thread began and ended, and the process: times are since the first of all. */
static void find_times(struct fm_chrome *c)
{
    for (size_t i = 0; i < c->spans.len + c->edges.len; i++) {
        bool is_span = i < c->spans.len;
        const struct fm_chrome_edge *edge = is_span ? NULL : &c->edges.data[i - c->spans.len];
        const struct fm_chrome_span *span = is_span ? &c->spans.data[i] : NULL;
        int64_t begin = is_span ? span->begin_ns : edge->at_ns;
        int64_t end = is_span ? span->end_ns : edge->at_ns;
        struct fm_chrome_thread *t = &c->thread_list.data[is_span ? span->thread : edge->thread];
        t->first_ns = !t->seen || begin < t->first_ns ? begin : t->first_ns;
        t->last_ns = !t->seen || end > t->last_ns ? end : t->last_ns;
        t->seen = true;
    }
}

/* X without a duration is open until its thread ends. */
static void end_open(struct fm_chrome *c)
{
    for (size_t i = 0; i < c->spans.len; i++)
        if (c->spans.data[i].open)
            c->spans.data[i].end_ns = c->thread_list.data[c->spans.data[i].thread].last_ns;
}

static void find_start(struct chrome_builder *b)
{
    b->start_ns = INT64_MAX;
    for (size_t i = 0; i < b->c->thread_list.len; i++) {
        const struct fm_chrome_thread *t = &b->c->thread_list.data[i];
        b->start_ns = t->seen && t->first_ns < b->start_ns ? t->first_ns : b->start_ns;
    }
}

static void set_times(struct chrome_builder *b)
{
    struct fm_chrome *c = b->c;
    struct fm_profile *p = c->p;
    for (size_t i = 0; i < c->thread_list.len; i++) {
        const struct fm_chrome_thread *t = &c->thread_list.data[i];
        struct fm_process *process = &p->processes.data[t->process];
        if (!t->seen)
            continue;
        uint64_t begin = instant(b, t->first_ns), end = instant(b, t->last_ns);
        p->threads.data[t->thread].start_ns = begin;
        p->threads.data[t->thread].end_ns = end;
        if (!process->start_ns || begin < process->start_ns) {
            process->start_ns = begin;
            if (c->base_real_ns && t->first_ns < INT64_MAX - c->base_real_ns)
                process->start_real_ns = (uint64_t)(c->base_real_ns + t->first_ns);
        }
        process->end_ns = end > process->end_ns ? end : process->end_ns;
    }
}

static void add_notes(struct chrome_builder *b)
{
    struct fm_chrome *c = b->c;
    struct fm_profile *p = c->p;
    if (c->overflow)
        fm_profile_note(p, FM_NONE, "lost", 1,
                        "viztracer's buffer was full: the oldest calls are missing");
    if (b->open)
        fm_profile_note(p, FM_NONE, "open", b->open, "calls had not ended when the trace did");
    if (b->overlapping)
        fm_profile_note(p, FM_NONE, "overlapping", b->overlapping,
                        "calls overlap others of their thread: they are in trees of their own");
    if (b->pressed)
        fm_profile_note(p, FM_NONE, "overlapping", b->pressed,
                        "calls overlap too many others: they are cut where these end");
    if (b->unmatched + c->strange)
        fm_profile_note(
            p, FM_NONE, "strange", b->unmatched + c->strange,
            "events end nothing that began, or have no time or name: they are left out");
    if (c->async)
        fm_profile_note(
            p, FM_NONE, "async", c->async,
            "asynchronous spans are no calls: they are in the timeline, not in the trees");
}

/* All that is open on the lanes of a thread ends. */
static void end_lanes(struct chrome_builder *b)
{
    for (size_t i = 0; i < b->lane_count; i++)
        end_calls(b, &b->lanes[i], INT64_MAX);
    b->lane_count = 0;
}

static void finish_builds(struct chrome_builder *b)
{
    for (uint32_t i = 0; i < b->c->p->processes.len; i++) {
        if (b->builds[i])
            fm_trace_build_finish(b->builds[i], b->c->p, i);
        fm_trace_build_free(b->builds[i]);
    }
    free(b->builds);
}

void fm_chrome_build(struct fm_chrome *c)
{
    struct chrome_builder b = { .c = c, .tree = { .p = c->p } };
    b.builds = fm_calloc(c->p->processes.len + 1, sizeof(struct fm_trace_build *));
    find_times(c);
    end_open(c);
    find_start(&b);
    set_times(&b);
    match_edges(&b);
    if (c->spans.len)
        qsort(c->spans.data, c->spans.len, sizeof *c->spans.data,
              c->viztracer ? by_begin_ended_first : by_begin);
    for (size_t i = 0; i < c->spans.len; i++) {
        if (i && c->spans.data[i].thread != c->spans.data[i - 1].thread)
            end_lanes(&b);
        add_call(&b, &c->spans.data[i]);
    }
    end_lanes(&b);
    fm_chrome_give_marks(c, b.builds, b.start_ns);
    finish_builds(&b);
    add_notes(&b);
    for (size_t i = 0; i < LANES_MOST; i++)
        fm_vec_release(&b.lanes[i].stack);
    fm_tree_release(&b.tree);
}
