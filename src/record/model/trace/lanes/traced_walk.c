/*
 * The walk along a traced lane: its stretches, one after the other, as begins and ends; see lanes.h.
 *
 * Only the stretches between the two instants are read. What happened in the first of them before the
 * instant that was asked for is gone through in silence, since its frame says what is open.
 */
#include "record/model/trace/lanes/lanes.h"

struct walk {
    struct fm_timeline *t;
    const struct fm_traced_lane *lane;
    struct fm_trace_clock *clock;
    uint64_t from, to; /* ticks: the first that is asked for, and the first that is not */
    uint64_t first;    /* ticks: where the lane begins; what is open then began before */
    bool started;      /* what is open was told */
    bool stopped;      /* nobody wants more */
    fm_lane_event_fn *each;
    void *context;
    uint64_t at; /* ticks */
};

static uint32_t begin_flags(uint32_t code)
{
    switch (fm_event_how(code)) {
    case FM_EVENT_RESUME:
        return FM_SPAN_RESUMED;
    case FM_EVENT_OPEN:
        return FM_SPAN_BEGAN_BEFORE;
    case FM_EVENT_OTHER:
        return FM_SPAN_REGION | (fm_event_id(code) & 1 ? FM_SPAN_COLLECTION : 0);
    default:
        return 0;
    }
}

static uint32_t end_flags(const struct walk *w, uint32_t code)
{
    switch (code) {
    case FM_EVENT_YIELD:
        return FM_SPAN_YIELDED;
    case FM_EVENT_UNWIND:
        return FM_SPAN_UNWOUND;
    case FM_EVENT_CLOSE:
        return w->at == w->lane->end ? FM_SPAN_OPEN : 0;
    default:
        return 0;
    }
}

static inline uint64_t told_ns(const struct walk *w, uint64_t ns)
{
    return ns > w->t->told_since ? ns - w->t->told_since : 0;
}

static void tell(struct walk *w, const struct fm_open_frame *frame, size_t depth, bool ends,
                 uint64_t at_ns, uint32_t flags)
{
    struct fm_lane_event event;
    if (!ends && w->t->only_ends)
        return;
    event.ends = ends;
    event.span.state = 0;
    event.span.begin_ns = told_ns(w, fm_trace_clock_ns(w->clock, frame->begin));
    event.at_ns = event.span.end_ns = ends ? told_ns(w, at_ns) : event.span.begin_ns;
    event.span.func = fm_timeline_function(w->t, w->lane->trace, fm_event_subject(frame->code));
    event.span.depth = (uint32_t)depth;
    event.span.flags = begin_flags(frame->code) | flags;
    if (frame->begin < w->first)
        event.span.flags |= FM_SPAN_BEGAN_BEFORE;
    w->stopped = !w->each(w->context, &event);
}

static void start(struct walk *w)
{
    w->started = true;
    for (size_t i = 0; i < w->t->frames.len && !w->stopped; i++)
        tell(w, &w->t->frames.data[i], i, false, 0, 0);
}

static void take(struct walk *w, const struct fm_stretch_event *e)
{
    struct fm_timeline *t = w->t;
    if (!w->started && e->ticks >= w->from)
        start(w);
    if (w->stopped)
        return;
    w->at = e->ticks;
    if (fm_event_begins(e->code)) {
        struct fm_open_frame frame = { e->ticks, e->code };
        if (fm_event_how(e->code) == FM_EVENT_OPEN)
            frame.begin = e->extra < e->ticks ? e->ticks - e->extra : 0;
        if (t->frames.len >= FM_TRACE_DEPTH_MAX)
            return;
        fm_vec_push(&t->frames, frame);
        if (w->started)
            tell(w, &frame, t->frames.len - 1, false, 0, 0);
    } else if (t->frames.len) {
        t->frames.len--;
        if (w->started)
            tell(w, &t->frames.data[t->frames.len], t->frames.len, true,
                 fm_trace_clock_ns(w->clock, e->ticks), end_flags(w, e->code));
    }
}

/* All that is open ends: where the walk does, or where something is missing. */
static void end_all(struct walk *w, uint64_t at_ns, uint32_t flags)
{
    struct fm_timeline *t = w->t;
    while (t->frames.len && !w->stopped) {
        t->frames.len--;
        uint64_t begin = fm_trace_clock_ns(w->clock, t->frames.data[t->frames.len].begin);
        tell(w, &t->frames.data[t->frames.len], t->frames.len, true, at_ns > begin ? at_ns : begin,
             flags);
    }
}

/* Open what the stretch says is open, if it does not follow on the one before. */
static void set_frames(struct walk *w, const struct fm_stretch *stretch, bool follows)
{
    struct fm_timeline *t = w->t;
    if (follows && t->frames.len == stretch->frames.len)
        return;
    if (w->started)
        end_all(w, fm_trace_clock_ns(w->clock, w->at), FM_SPAN_CUT);
    t->frames.len = 0;
    for (size_t i = 0; i < stretch->frames.len; i++)
        fm_vec_push(&t->frames, stretch->frames.data[i]);
    if (w->started)
        start(w);
}

static void walk_stretches(struct walk *w)
{
    struct fm_stretch stretch = { 0 };
    struct fm_stretch_facts facts;
    struct fm_stretch_event e;
    const struct fm_lane_blocks *blocks = &w->lane->stretches;
    bool follows = false;
    for (size_t i = fm_lane_blocks_from(blocks, w->from); i < blocks->list.len && !w->stopped;
         i++) {
        const struct fm_lane_block *block = &blocks->list.data[i];
        if (block->begin >= w->to)
            break;
        const struct fm_kept_body *body = fm_timeline_body(w->t, w->lane->trace, block->block);
        struct fm_cursor head =
            body ? fm_cursor_over(body->head.data, body->head.len) : fm_cursor_over("", 0);
        if (!body || !fm_stretch_facts(&facts, &head) ||
            !fm_stretch_open(&stretch, &facts, &body->body)) {
            follows = false;
            continue;
        }
        set_frames(w, &stretch, follows && w->at == block->begin);
        w->at = block->begin;
        while (!w->stopped && fm_stretch_next(&stretch, &e) && e.ticks < w->to)
            take(w, &e);
        follows = !stretch.events_left;
        w->at = w->at > block->end ? w->at : block->end;
    }
    fm_stretch_release(&stretch);
}

static int traced_events(struct fm_timeline *t, size_t lane, uint64_t from_ns, uint64_t to_ns,
                         fm_lane_event_fn *each, void *context, struct fm_error *err)
{
    (void)err;
    const struct fm_traced_lane *traced = &t->traced.data[lane];
    struct walk w = { .t = t, .lane = traced, .each = each, .context = context };
    w.clock = fm_timeline_clock(t, traced->trace);
    w.from = from_ns ? fm_trace_clock_ticks(w.clock, from_ns - 1) + 1 : 0;
    uint64_t end_ns = fm_trace_clock_ns(w.clock, traced->end);
    w.to = to_ns > end_ns ? UINT64_MAX : to_ns ? fm_trace_clock_ticks(w.clock, to_ns - 1) + 1 : 0;
    t->frames.len = 0;
    w.first = traced->stretches.list.len ? traced->stretches.list.data[0].begin : 0;
    walk_stretches(&w);
    if (!w.started && !w.stopped)
        start(&w);
    if (w.to <= traced->end)
        end_all(&w, to_ns, FM_SPAN_CUT);
    else
        end_all(&w, end_ns, FM_SPAN_OPEN);
    return FM_OK;
}

const struct fm_lane_ops fm_traced_ops = { traced_events, fm_traced_cells, fm_traced_marks };
