/* Sampled lanes of a timeline: which there are, and their spans; see sampled.h. */
#include "record/model/trace/lanes/sampled.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "record/model/trace/lanes/run_clocks.h"
#include "record/model/trace/lanes/sampled_lanes.h"

/* --- opening ---------------------------------------------------------------------------------- */

static const struct fm_order_clock *clock_of(const struct fm_profile *p, uint32_t process)
{
    for (size_t i = 0; i < p->order.clocks.len; i++)
        if (p->order.clocks.data[i].process == process)
            return &p->order.clocks.data[i];
    return NULL;
}

/* When each item of a piece begins, and the last one ends. A sample stands in the middle of its time. */
static void set_instants(const struct fm_profile *p, const struct fm_order_lane *lane,
                         const struct fm_order_clock *clock, int64_t shift_ns, uint64_t *instants)
{
    const struct fm_order_item *items = p->order.items.data + lane->first;
    uint64_t counts = 0, at = 0;
    double first_ns = fm_order_clock_ns(clock, 0.5) + (double)shift_ns;
    for (uint32_t i = 0; i < lane->n; i++)
        counts += items[i].count;
    for (uint32_t i = 0; i <= lane->n; i++) {
        double round =
            (double)lane->first_round - 0.5 + (double)lane->rounds * ((double)at / (double)counts);
        double ns = fm_order_clock_ns(clock, round) + (double)shift_ns;
        ns = ns > first_ns ? ns : first_ns;
        instants[i] = ns > 0 && ns < 9e18 ? (uint64_t)ns : 0;
        if (i && instants[i] < instants[i - 1])
            instants[i] = instants[i - 1];
        at += i < lane->n ? items[i].count : 0;
    }
}

static int by_thread_and_time(const void *a, const void *b)
{
    const struct fm_sampled_piece *one = a, *two = b;
    if (one->order->thread != two->order->thread)
        return one->order->thread < two->order->thread ? -1 : 1;
    if (one->instants[0] != two->instants[0])
        return one->instants[0] < two->instants[0] ? -1 : 1;
    return one->order < two->order ? -1 : one->order > two->order;
}

static void add_pieces(struct fm_sampled *s)
{
    const struct fm_profile *p = s->p;
    size_t all = 0;
    for (size_t i = 0; i < p->order.lanes.len; i++)
        all += (size_t)p->order.lanes.data[i].n + 1;
    s->instants = fm_malloc((all + 1) * sizeof *s->instants);
    uint64_t *instants = s->instants;
    const struct fm_order_clock *clock = NULL;
    int64_t shift_ns = 0;
    struct fm_run_clocks clocks = { 0 };
    fm_run_clocks_find(&clocks, p);
    for (size_t i = 0; i < p->order.lanes.len; i++) {
        const struct fm_order_lane *lane = &p->order.lanes.data[i];
        uint32_t process = p->threads.data[lane->thread].process;
        if (!clock || clock->process != process) {
            clock = clock_of(p, process);
            shift_ns = (int64_t)fm_run_clocks_shift_ns(&clocks, p, process);
        }
        if (!clock || !clock->times.len || !lane->n)
            continue;
        set_instants(p, lane, clock, shift_ns, instants);
        fm_vec_push(&s->pieces, ((struct fm_sampled_piece){ lane, instants }));
        instants += lane->n + 1;
    }
    if (s->pieces.len)
        qsort(s->pieces.data, s->pieces.len, sizeof *s->pieces.data, by_thread_and_time);
    fm_run_clocks_release(&clocks);
}

static void count_piece(const struct fm_sampled *s, struct fm_lane *lane,
                        const struct fm_sampled_piece *piece)
{
    const struct fm_order_item *items = fm_sampled_items(s, piece);
    uint64_t end_ns = piece->instants[piece->order->n];
    uint64_t rounds = piece->order->rounds ? piece->order->rounds : 1;
    uint64_t grain_ns = piece->order->grain > 1
                            ? (uint64_t)((double)(end_ns - piece->instants[0]) / (double)rounds *
                                         (double)piece->order->grain)
                            : 0;
    for (uint32_t i = 0; i < piece->order->n; i++) {
        if (items[i].node == FM_ORDER_UNSEEN)
            continue;
        uint32_t depth = s->depths[items[i].node];
        lane->events += items[i].count;
        lane->depth = depth > lane->depth ? depth : lane->depth;
    }
    lane->end_ns = end_ns > lane->end_ns ? end_ns : lane->end_ns;
    lane->grain_ns = grain_ns > lane->grain_ns ? grain_ns : lane->grain_ns;
}

static void add_lanes(struct fm_sampled *s)
{
    for (size_t i = 0; i < s->pieces.len; i++) {
        const struct fm_sampled_piece *piece = &s->pieces.data[i];
        uint32_t thread = piece->order->thread;
        struct fm_sampled_lane *last = s->lanes.len ? &s->lanes.data[s->lanes.len - 1] : NULL;
        if (!last || last->lane.thread != thread) {
            struct fm_lane lane = { .kind = FM_LANE_SAMPLED,
                                    .process = s->p->threads.data[thread].process,
                                    .thread = thread,
                                    .begin_ns = piece->instants[0] };
            fm_vec_push(&s->lanes, ((struct fm_sampled_lane){ lane, (uint32_t)i, 0 }));
            last = &s->lanes.data[s->lanes.len - 1];
        }
        last->n++;
        count_piece(s, &last->lane, piece);
    }
}

struct fm_sampled *fm_sampled_open(const struct fm_profile *p)
{
    if (!p->order.lanes.len)
        return NULL;
    struct fm_sampled *s = fm_calloc(1, sizeof *s);
    s->p = p;
    s->depths = fm_calloc(p->nodes.len + 1, sizeof *s->depths);
    for (size_t i = 0; i < p->nodes.len; i++)
        if (p->nodes.data[i].parent != FM_NONE)
            s->depths[i] = s->depths[p->nodes.data[i].parent] + 1;
    add_pieces(s);
    add_lanes(s);
    if (s->lanes.len)
        return s;
    fm_sampled_free(s);
    return NULL;
}

void fm_sampled_free(struct fm_sampled *s)
{
    if (!s)
        return;
    fm_vec_release(&s->lanes);
    fm_vec_release(&s->pieces);
    free(s->instants);
    free(s->depths);
    free(s);
}

size_t fm_sampled_lanes(const struct fm_sampled *s)
{
    return s->lanes.len;
}

const struct fm_lane *fm_sampled_lane(const struct fm_sampled *s, size_t lane)
{
    return &s->lanes.data[lane].lane;
}

/* --- spans ------------------------------------------------------------------------------------ */

/* A frame on the stack. */
struct open_frame {
    uint32_t node;
    bool told; /* its begin */
    uint64_t begin_ns;
    uint64_t state_ns[FM_STATE_COUNT];
};

struct sampled_walk {
    const struct fm_sampled *s;
    const struct fm_lane *lane;
    uint64_t from_ns, to_ns, at_ns;
    fm_lane_event_fn *each;
    void *context;
    FM_VEC(struct open_frame) frames;
    FM_VEC(uint32_t) path; /* of the item at hand, outermost first */
    bool stopped;
};

static uint32_t most_of(const uint64_t *state_ns)
{
    uint32_t most = 0;
    for (uint32_t k = 1; k < FM_STATE_COUNT; k++)
        most = state_ns[k] > state_ns[most] ? k : most;
    return most;
}

static void tell(struct sampled_walk *w, const struct open_frame *frame, uint64_t at_ns, bool ends,
                 unsigned flags)
{
    uint32_t func = w->s->p->nodes.data[frame->node].func;
    struct fm_lane_event event = { .at_ns = at_ns, .ends = ends };
    event.span = (struct fm_time_span){ .begin_ns = frame->begin_ns,
                                        .end_ns = ends ? at_ns : 0,
                                        .func = func,
                                        .depth = (uint32_t)(frame - w->frames.data),
                                        .flags = flags,
                                        .state = most_of(frame->state_ns) };
    if (frame->begin_ns == w->lane->begin_ns)
        event.span.flags |= FM_SPAN_BEGAN_BEFORE;
    if (w->s->p->functions.data[func].kind == FM_FUNCTION_REGION)
        event.span.flags |= FM_SPAN_REGION;
    w->stopped = w->stopped || !w->each(w->context, &event);
}

/* Frames from `depth` on are no more. */
static void close_frames(struct sampled_walk *w, size_t depth, unsigned flags)
{
    uint64_t end_ns = w->at_ns < w->to_ns ? w->at_ns : w->to_ns;
    for (; w->frames.len > depth; w->frames.len--) {
        const struct open_frame *frame = &w->frames.data[w->frames.len - 1];
        if (frame->told && !w->stopped)
            tell(w, frame, end_ns, true, flags);
    }
}

static void set_path(struct sampled_walk *w, uint32_t node)
{
    uint32_t depth = w->s->depths[node];
    w->path.len = 0;
    fm_vec_reserve(&w->path, depth);
    w->path.len = depth;
    for (; depth > 0; node = w->s->p->nodes.data[node].parent)
        w->path.data[--depth] = node;
}

/* What is seen from `at_ns` to `end_ns`. */
static void walk_item(struct sampled_walk *w, const struct fm_order_item *item, uint64_t end_ns)
{
    size_t same = 0;
    w->path.len = 0;
    if (item->node != FM_ORDER_UNSEEN)
        set_path(w, item->node);
    while (same < w->path.len && same < w->frames.len &&
           w->frames.data[same].node == w->path.data[same])
        same++;
    close_frames(w, same, 0);
    for (size_t i = 0; i < w->path.len && !w->stopped; i++) {
        if (i >= same)
            fm_vec_push(&w->frames,
                        ((struct open_frame){ .node = w->path.data[i], .begin_ns = w->at_ns }));
        struct open_frame *frame = &w->frames.data[i];
        frame->state_ns[item->state] += end_ns - w->at_ns;
        if (!frame->told && end_ns > w->from_ns) {
            frame->told = true;
            tell(w, frame, frame->begin_ns, false, 0);
        }
    }
    w->at_ns = end_ns;
}

static void walk_piece(struct sampled_walk *w, const struct fm_sampled_piece *piece)
{
    const struct fm_order_item *items = fm_sampled_items(w->s, piece);
    if (piece->instants[0] > w->at_ns) {
        close_frames(w, 0, 0); /* nothing was seen between */
        w->at_ns = piece->instants[0];
    }
    for (uint32_t k = 0; k < piece->order->n && !w->stopped && w->at_ns < w->to_ns; k++)
        if (piece->instants[k + 1] > w->at_ns) /* not so of several threads in one lane */
            walk_item(w, &items[k], piece->instants[k + 1]);
}

void fm_sampled_events(const struct fm_sampled *s, size_t lane, uint64_t from_ns, uint64_t to_ns,
                       fm_lane_event_fn *each, void *context)
{
    const struct fm_sampled_lane *own = &s->lanes.data[lane];
    struct sampled_walk w = { .s = s,
                              .lane = &own->lane,
                              .from_ns = from_ns,
                              .to_ns = to_ns,
                              .at_ns = own->lane.begin_ns,
                              .each = each,
                              .context = context };
    for (uint32_t i = 0; i < own->n && !w.stopped && w.at_ns < to_ns; i++)
        walk_piece(&w, &s->pieces.data[own->first + i]);
    close_frames(&w, 0, w.at_ns < own->lane.end_ns || w.at_ns > to_ns ? FM_SPAN_CUT : FM_SPAN_OPEN);
    fm_vec_release(&w.frames);
    fm_vec_release(&w.path);
}
