/* The timeline of a recording: opening it and asking its lanes; see timeline.h, lanes.h. */
#include "record/model/trace/lanes/timeline.h"

#include "base/memory.h"
#include "base/runs.h"
#include "record/model/trace/lanes/lanes.h"
#include "record/model/trace/lanes/sampled.h"

static const struct fm_lane_ops *const ops_of[] = {
    [FM_LANE_TRACED] = &fm_traced_ops, [FM_LANE_SAMPLED] = &fm_sampled_ops
};

/* Lanes begin when the earliest of them does; from here on their times count from there. */
static void set_start(struct fm_timeline *t)
{
    uint64_t start = UINT64_MAX, end = 0;
    for (size_t i = 0; i < t->lanes.len; i++) {
        const struct fm_lane *lane = &t->lanes.data[i];
        start = lane->begin_ns < start ? lane->begin_ns : start;
        end = lane->end_ns > end ? lane->end_ns : end;
    }
    t->start_ns = start;
    t->length_ns = end > start ? end - start : 0;
    for (size_t i = 0; i < t->lanes.len; i++) {
        t->lanes.data[i].begin_ns -= start;
        t->lanes.data[i].end_ns -= start;
    }
}

struct fm_timeline *fm_timeline_open(const struct fm_profile *p, struct fm_error *err)
{
    (void)err;
    struct fm_timeline *t = fm_calloc(1, sizeof *t);
    t->p = p;
    fm_run_clocks_find(&t->clocks, p);
    fm_traced_find(t);
    fm_sampled_find(t);
    if (!t->lanes.len) {
        fm_timeline_free(t);
        return NULL;
    }
    set_start(t);
    return t;
}

void fm_timeline_free(struct fm_timeline *t)
{
    if (!t)
        return;
    fm_traced_release(t);
    fm_sampled_free(t->sampled);
    fm_vec_release(&t->lanes);
    fm_run_clocks_release(&t->clocks);
    free(t);
}

uint64_t fm_timeline_start_ns(const struct fm_timeline *t)
{
    return t->start_ns;
}

uint64_t fm_timeline_length_ns(const struct fm_timeline *t)
{
    return t->length_ns;
}

size_t fm_timeline_runs(const struct fm_timeline *t)
{
    return t->clocks.runs.len ? t->clocks.runs.len : 1;
}

const struct fm_run_clock *fm_timeline_run(const struct fm_timeline *t, size_t run)
{
    return run < t->clocks.runs.len ? &t->clocks.runs.data[run] : NULL;
}

uint64_t fm_timeline_uncertain_ns(const struct fm_timeline *t)
{
    uint64_t most = 0;
    for (size_t i = 0; i < t->clocks.runs.len; i++)
        most =
            t->clocks.runs.data[i].uncertain_ns > most ? t->clocks.runs.data[i].uncertain_ns : most;
    return most;
}

size_t fm_timeline_lanes(const struct fm_timeline *t)
{
    return t->lanes.len;
}

const struct fm_lane *fm_timeline_lane(const struct fm_timeline *t, size_t lane)
{
    return &t->lanes.data[lane];
}

/* ---- asking ---- */

static uint64_t on_clock(const struct fm_timeline *t, uint64_t ns)
{
    return ns < UINT64_MAX / 2 ? ns + t->start_ns : UINT64_MAX / 2;
}

static uint64_t since_start(const struct fm_timeline *t, uint64_t ns)
{
    return ns > t->start_ns ? ns - t->start_ns : 0;
}

static const struct fm_lane_ops *lane_ops(const struct fm_timeline *t, size_t lane)
{
    return lane < t->lanes.len ? ops_of[t->lanes.data[lane].kind] : NULL;
}

static int no_lane(size_t lane, struct fm_error *err)
{
    return fm_error_set(err, FM_BAD_QUERY, "the timeline has no lane %zu", lane);
}

struct asked {
    const struct fm_timeline *t;
    fm_lane_event_fn *event;
    fm_span_fn *span;
    fm_mark_fn *mark;
    void *context;
};

static bool tell_event(void *context, const struct fm_lane_event *event)
{
    const struct asked *asked = context;
    struct fm_lane_event told = *event;
    told.at_ns = since_start(asked->t, told.at_ns);
    told.span.begin_ns = since_start(asked->t, told.span.begin_ns);
    told.span.end_ns = since_start(asked->t, told.span.end_ns);
    return asked->event(asked->context, &told);
}

int fm_timeline_events(struct fm_timeline *t, size_t lane, uint64_t from_ns, uint64_t to_ns,
                       fm_lane_event_fn *each, void *context, struct fm_error *err)
{
    const struct fm_lane_ops *ops = lane_ops(t, lane);
    struct asked asked = { .t = t, .event = each, .context = context };
    if (!ops)
        return no_lane(lane, err);
    from_ns = on_clock(t, from_ns);
    /* The whole of it has its last instant, too; else what comes then is that of the next stretch. */
    to_ns = to_ns >= t->length_ns ? UINT64_MAX : on_clock(t, to_ns);
    if (ops != &fm_traced_ops)
        return ops->events(t, lane, from_ns, to_ns, tell_event, &asked, err);
    t->told_since = t->start_ns; /* there are so many of these that nothing is between */
    int status = ops->events(t, lane, from_ns, to_ns, each, context, err);
    t->told_since = 0;
    return status;
}

static bool tell_span(void *context, const struct fm_lane_event *event)
{
    const struct asked *asked = context;
    return !event->ends || asked->span(asked->context, &event->span);
}

int fm_timeline_spans(struct fm_timeline *t, size_t lane, uint64_t from_ns, uint64_t to_ns,
                      fm_span_fn *each, void *context, struct fm_error *err)
{
    struct asked asked = { .t = t, .span = each, .context = context };
    t->only_ends = true;
    int status = fm_timeline_events(t, lane, from_ns, to_ns, tell_span, &asked, err);
    t->only_ends = false;
    return status;
}

int fm_timeline_cells(struct fm_timeline *t, size_t lane, uint64_t from_ns, uint64_t to_ns,
                      uint64_t cell_ns, struct fm_cells *into, struct fm_error *err)
{
    const struct fm_lane_ops *ops = lane_ops(t, lane);
    into->cells.len = 0;
    if (!ops)
        return no_lane(lane, err);
    int status = ops->cells(t, lane, on_clock(t, from_ns), on_clock(t, to_ns), cell_ns, into, err);
    for (size_t i = 0; i < into->cells.len; i++) {
        struct fm_cell *cell = &into->cells.data[i];
        cell->begin_ns = since_start(t, cell->begin_ns);
        cell->end_ns = since_start(t, cell->end_ns);
    }
    return status;
}

void fm_cells_release(struct fm_cells *cells)
{
    fm_vec_release(&cells->cells);
}

/* ---- marks ---- */

struct kept_mark {
    struct fm_mark mark;
    uint64_t text_at;
};

struct mark_list {
    const struct fm_timeline *t;
    FM_VEC(struct kept_mark) marks;
    struct fm_buffer texts;
};

static bool keep_mark(void *context, const struct fm_mark *mark)
{
    struct mark_list *list = context;
    struct kept_mark kept = { *mark, list->texts.len };
    kept.mark.begin_ns = since_start(list->t, mark->begin_ns);
    kept.mark.end_ns = since_start(list->t, mark->end_ns);
    if (mark->text_len)
        fm_buffer_add(&list->texts, mark->text, mark->text_len);
    fm_vec_push(&list->marks, kept);
    return true;
}

static int compare_marks(const void *a, const void *b)
{
    const struct kept_mark *x = a, *y = b;
    if (x->mark.begin_ns != y->mark.begin_ns)
        return x->mark.begin_ns < y->mark.begin_ns ? -1 : 1;
    return 0;
}

int fm_timeline_marks(struct fm_timeline *t, uint32_t lane, uint64_t from_ns, uint64_t to_ns,
                      fm_mark_fn *each, void *context, struct fm_error *err)
{
    struct mark_list list = { .t = t };
    int status = FM_OK;
    if (lane != FM_NONE && lane >= t->lanes.len)
        return no_lane(lane, err);
    for (size_t i = 0; i < t->lanes.len && !status; i++)
        if (lane == FM_NONE || lane == i)
            status = lane_ops(t, i)->marks(t, i, on_clock(t, from_ns), on_clock(t, to_ns),
                                           keep_mark, &list, err);
    /* Those of one instant stay in the order in which they were told. */
    fm_sort_runs(list.marks.data, list.marks.len, sizeof *list.marks.data, compare_marks);
    for (size_t i = 0; i < list.marks.len && !status; i++) {
        struct kept_mark *kept = &list.marks.data[i];
        if (kept->mark.text_len)
            kept->mark.text = (const char *)list.texts.data + kept->text_at;
        if (!each(context, &kept->mark))
            break;
    }
    fm_vec_release(&list.marks);
    fm_buffer_release(&list.texts);
    return status;
}
