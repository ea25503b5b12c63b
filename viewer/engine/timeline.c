/* What happened when, for the page; see timeline.h. */
#include "timeline.h"

#include "base/memory.h"
#include "json.h"
#include "record/model/trace/lanes/timeline.h"

#define MAX_LANES   5000u
#define MAX_LONGEST 1000u

/* ---- what there is ---- */

static struct fm_timeline *open_timeline(struct fm_engine *e, struct fm_recording *r)
{
    if (r->timeline_asked)
        return r->timeline;
    r->timeline_asked = true;
    r->timeline = fm_timeline_open(r->p, &e->err);
    return r->timeline;
}

uint32_t fm_recording_function(const struct fm_recording *r, uint32_t func)
{
    return func < r->p->functions.len ? r->func_of[func] : 0;
}

uint64_t fm_timeline_instant(double ns)
{
    return ns > 0 ? ns < 9e18 ? (uint64_t)ns : (uint64_t)9e18 : 0;
}

struct fm_timeline *fm_engine_timeline_of(struct fm_engine *e, int recording,
                                          struct fm_recording **ret_recording)
{
    struct fm_recording *r = fm_engine_recording(e, recording);
    if (!r)
        return NULL;
    e->err = (struct fm_error){ 0 };
    struct fm_timeline *t = open_timeline(e, r);
    if (!t && !e->err.status)
        fm_error_set(&e->err, FM_USAGE, "this recording has no timeline");
    *ret_recording = r;
    return t;
}

int fm_engine_timeline(struct fm_engine *e, int recording)
{
    struct fm_buffer *out = &e->text;
    struct fm_recording *r = fm_engine_recording(e, recording);
    if (!r)
        return -1;
    e->err = (struct fm_error){ 0 };
    struct fm_timeline *t = open_timeline(e, r);
    if (!t && e->err.status)
        return -1;
    fm_buffer_clear(out);
    if (!t) {
        fm_buffer_add_text(out, "null");
        return 0;
    }
    size_t lanes = fm_timeline_lanes(t);
    fm_buffer_add_char(out, '{');
    json_int(out, "startNs", (int64_t)(fm_timeline_start_ns(t) & INT64_MAX));
    json_int(out, "lengthNs", (int64_t)(fm_timeline_length_ns(t) & INT64_MAX));
    json_int(out, "lanesInAll", (int64_t)lanes);
    json_int(out, "runs", (int64_t)fm_timeline_runs(t));
    json_int(out, "uncertainNs", (int64_t)(fm_timeline_uncertain_ns(t) & INT64_MAX));
    json_key(out, "lanes");
    fm_buffer_add_char(out, '[');
    for (size_t i = 0; i < lanes && i < MAX_LANES; i++) {
        const struct fm_lane *lane = fm_timeline_lane(t, i);
        json_open(out, '{');
        json_bool(out, "sampled", lane->kind == FM_LANE_SAMPLED);
        json_int(out, "process", lane->process);
        json_int(out, "thread", lane->thread);
        json_int(out, "begin", (int64_t)(lane->begin_ns & INT64_MAX));
        json_int(out, "end", (int64_t)(lane->end_ns & INT64_MAX));
        json_int(out, "events", (int64_t)(lane->events & INT64_MAX));
        json_int(out, "lost", (int64_t)(lane->lost & INT64_MAX));
        json_int(out, "depth", lane->depth);
        json_close(out, '}');
    }
    json_close(out, ']');
    fm_buffer_add_char(out, '}');
    return 0;
}

/* ---- cells ---- */

int fm_engine_timeline_cells(struct fm_engine *e, int recording, uint32_t lane, double from_ns,
                             double to_ns, double cell_ns)
{
    struct fm_recording *r;
    struct fm_timeline *t = fm_engine_timeline_of(e, recording, &r);
    struct fm_cells cells = { 0 };
    if (!t)
        return -1;
    if (lane >= fm_timeline_lanes(t)) {
        fm_error_set(&e->err, FM_USAGE, "there is no lane %u", lane);
        return -1;
    }
    if (fm_timeline_cells(t, lane, fm_timeline_instant(from_ns), fm_timeline_instant(to_ns),
                          fm_timeline_instant(cell_ns < 1 ? 1 : cell_ns), &cells, &e->err) < 0) {
        fm_cells_release(&cells);
        return -1;
    }
    size_t rows = cells.cells.len < FM_ENGINE_ROWS ? cells.cells.len : FM_ENGINE_ROWS;
    struct fm_result *out = &e->results[0];
    fm_result_begin(out, (uint32_t)rows);
    double *begin = fm_result_f64(out), *end = fm_result_f64(out);
    uint32_t *func = fm_result_u32(out), *depth = fm_result_u32(out);
    double *longest = fm_result_f64(out), *spans = fm_result_f64(out);
    uint32_t *covered = fm_result_u32(out), *flags = fm_result_u32(out);
    uint32_t *state = fm_result_u32(out);
    for (size_t i = 0; i < rows; i++) {
        const struct fm_cell *cell = &cells.cells.data[i];
        begin[i] = (double)cell->begin_ns;
        end[i] = (double)cell->end_ns;
        func[i] = fm_recording_function(r, cell->func);
        depth[i] = cell->depth;
        longest[i] = (double)cell->longest_ns;
        spans[i] = (double)cell->spans;
        covered[i] = cell->covered;
        flags[i] = cell->flags;
        state[i] = cell->state;
    }
    out->scalars[0] = cells.cells.len > rows;
    fm_cells_release(&cells);
    return 0;
}

/* ---- blocks that are away ---- */

int fm_engine_timeline_wanted(struct fm_engine *e, int recording)
{
    struct fm_recording *r;
    struct fm_timeline *t = fm_engine_timeline_of(e, recording, &r);
    const struct fm_wanted_block *wanted;
    if (!t)
        return -1;
    size_t rows = fm_timeline_wanted(t, &wanted);
    rows = rows < FM_ENGINE_ROWS ? rows : FM_ENGINE_ROWS;
    struct fm_result *out = &e->results[0];
    fm_result_begin(out, (uint32_t)rows);
    uint32_t *trace = fm_result_u32(out), *block = fm_result_u32(out);
    double *at = fm_result_f64(out);
    uint32_t *bytes = fm_result_u32(out);
    for (size_t i = 0; i < rows; i++) {
        trace[i] = wanted[i].trace;
        block[i] = wanted[i].block;
        at[i] = (double)wanted[i].at;
        bytes[i] = wanted[i].bytes;
    }
    out->scalars[0] = fm_timeline_left_out(t);
    fm_timeline_forget_wanted(t);
    return 0;
}

int fm_engine_timeline_give(struct fm_engine *e, int recording, uint32_t trace, uint32_t block,
                            void *bytes, size_t len)
{
    struct fm_recording *r;
    struct fm_timeline *t = fm_engine_timeline_of(e, recording, &r);
    if (t)
        fm_timeline_give(t, trace, block, bytes, len);
    else
        free(bytes);
    return t ? 0 : -1;
}

/* ---- single spans ---- */

struct span_columns {
    double *begin, *end;
    uint32_t *func, *depth, *flags, *lane;
};

static struct span_columns begin_spans(struct fm_result *out, size_t rows)
{
    struct span_columns c;
    fm_result_begin(out, (uint32_t)rows);
    c.begin = fm_result_f64(out);
    c.end = fm_result_f64(out);
    c.func = fm_result_u32(out);
    c.depth = fm_result_u32(out);
    c.flags = fm_result_u32(out);
    c.lane = fm_result_u32(out);
    return c;
}

static void put_span(const struct span_columns *c, const struct fm_recording *r, size_t row,
                     const struct fm_time_span *span, uint32_t lane)
{
    c->begin[row] = (double)span->begin_ns;
    c->end[row] = (double)span->end_ns;
    c->func[row] = fm_recording_function(r, span->func);
    c->depth[row] = span->depth;
    c->flags[row] = span->flags;
    c->lane[row] = lane;
}

uint32_t fm_recording_function_within(const struct fm_recording *r, uint32_t func)
{
    for (uint32_t i = 0; i < r->p->functions.len; i++)
        if (r->func_of[i] == func)
            return i;
    return FM_NONE;
}

static void put_buckets(struct fm_result *out, const struct fm_durations *d)
{
    size_t first = 0, end = FM_COUNT(d->buckets);
    while (first < end && !d->buckets[first])
        first++;
    while (end > first && !d->buckets[end - 1])
        end--;
    fm_result_begin(out, (uint32_t)(end - first));
    double *from = fm_result_f64(out), *to = fm_result_f64(out), *calls = fm_result_f64(out);
    for (size_t i = first; i < end; i++) {
        from[i - first] = fm_timeline_bucket_ns((unsigned)i);
        to[i - first] = fm_timeline_bucket_ns((unsigned)i + 1);
        calls[i - first] = (double)d->buckets[i];
    }
}

int fm_engine_timeline_durations(struct fm_engine *e, int recording, uint32_t func, double from_ns,
                                 double to_ns, uint32_t longest, bool only_longest)
{
    struct fm_recording *r;
    struct fm_timeline *t = fm_engine_timeline_of(e, recording, &r);
    struct fm_durations d = { 0 };
    uint64_t from = fm_timeline_instant(from_ns), to = fm_timeline_instant(to_ns);
    uint32_t within = FM_NONE;
    int status = 0;
    if (!t)
        return -1;
    longest = longest < MAX_LONGEST ? longest : MAX_LONGEST;
    if (func == FM_NONE || (within = fm_recording_function_within(r, func)) != FM_NONE)
        status = only_longest ? fm_timeline_slowest(t, within, from, to, longest, &d, &e->err)
                              : fm_timeline_durations(t, within, from, to, longest, &d, &e->err);
    if (status < 0) {
        fm_durations_release(&d);
        return -1;
    }
    struct span_columns c = begin_spans(&e->results[0], d.longest.len);
    for (size_t i = 0; i < d.longest.len; i++)
        put_span(&c, r, i, &d.longest.data[i].span, d.longest.data[i].lane);
    double *scalars = e->results[0].scalars;
    scalars[0] = (double)d.calls;
    scalars[1] = (double)d.sum_ns;
    scalars[2] = (double)d.min_ns;
    scalars[3] = (double)d.max_ns;
    put_buckets(&e->results[1], &d);
    fm_durations_release(&d);
    return 0;
}

/* ---- the next span ---- */

struct search {
    const bool *wanted; /* by function of the profile */
    size_t functions;
    uint64_t from_ns;
    bool backwards, found;
    struct fm_time_span best;
};

static bool look_at(void *context, const struct fm_time_span *span)
{
    struct search *s = context;
    if (span->func >= s->functions || !s->wanted[span->func])
        return true;
    bool beyond = s->backwards ? span->begin_ns < s->from_ns : span->begin_ns > s->from_ns;
    bool nearer = !s->found || (s->backwards ? span->begin_ns > s->best.begin_ns
                                             : span->begin_ns < s->best.begin_ns);
    if (beyond && nearer) {
        s->best = *span;
        s->found = true;
    }
    return true;
}

struct one {
    struct fm_time_span span;
};

static bool is_it(void *context, const struct fm_time_span *span)
{
    struct one *one = context;
    if (span->begin_ns != one->span.begin_ns || span->depth != one->span.depth ||
        span->func != one->span.func)
        return true;
    one->span = *span;
    return false;
}

int fm_engine_timeline_find(struct fm_engine *e, int recording, const uint32_t *funcs, uint32_t len,
                            double from_ns, double to_ns, bool backwards)
{
    struct fm_recording *r;
    struct fm_timeline *t = fm_engine_timeline_of(e, recording, &r);
    uint32_t lane = 0;
    if (!t)
        return -1;
    fm_autofree bool *by_id = fm_calloc(e->functions.len, sizeof *by_id);
    fm_autofree bool *wanted = fm_calloc(r->p->functions.len, sizeof *wanted);
    for (uint32_t i = 0; i < len; i++)
        if (funcs[i] < e->functions.len)
            by_id[funcs[i]] = true;
    for (size_t i = 0; i < r->p->functions.len; i++)
        wanted[i] = by_id[r->func_of[i]];
    struct search s = { .wanted = wanted,
                        .functions = r->p->functions.len,
                        .from_ns = fm_timeline_instant(from_ns),
                        .backwards = backwards };
    uint64_t low = fm_timeline_instant(backwards ? to_ns : from_ns);
    uint64_t high = fm_timeline_instant(backwards ? from_ns : to_ns);
    for (uint32_t i = 0; i < fm_timeline_lanes(t); i++) {
        struct fm_time_span before = s.best;
        bool had = s.found;
        if (fm_timeline_spans(t, i, low, high, look_at, &s, &e->err) < 0)
            return -1;
        if (s.found && (!had || s.best.begin_ns != before.begin_ns))
            lane = i;
    }
    /* What was looked at may end before the span does. */
    struct one one = { .span = s.best };
    if (s.found && s.best.end_ns >= high &&
        fm_timeline_spans(t, lane, s.best.begin_ns, fm_timeline_length_ns(t), is_it, &one,
                          &e->err) < 0)
        return -1;
    struct span_columns c = begin_spans(&e->results[0], s.found ? 1 : 0);
    if (s.found)
        put_span(&c, r, 0, &one.span, lane);
    return 0;
}

/* ---- a stretch of time ---- */

int fm_engine_timeline_range(struct fm_engine *e, int recording, double from_ns, double to_ns)
{
    struct fm_recording *r;
    struct fm_timeline *t = fm_engine_timeline_of(e, recording, &r);
    if (!t)
        return -1;
    struct fm_profile *p =
        fm_timeline_profile(t, fm_timeline_instant(from_ns), fm_timeline_instant(to_ns), &e->err);
    return p ? fm_engine_add(e, p, r->name) : -1;
}
