/*
 * Reports of a timeline for programs. Times are nanoseconds (JSON) or seconds (CSV) since the timeline began.
 * Phases (phases.h) are stretches of one function, to a thousandth of what is shown.
 */
#include "show/report/csv_text.h"
#include "show/report/json_text.h"
#include "show/report/timeline/slowest.h"
#include "show/report/timeline/timeline.h"

#define COLUMNS 1000u

static uint32_t columns_of(const struct fm_report *r)
{
    uint64_t ns = r->range.to_ns - r->range.from_ns;
    return ns < COLUMNS ? (uint32_t)ns : COLUMNS;
}

static bool runs(const struct fm_phase_column *column)
{
    return column->state < FM_STATE_COUNT && fm_state_is_running((enum fm_state)column->state);
}

static bool is_same_phase(const struct fm_phase_column *a, const struct fm_phase_column *b)
{
    return a->func == b->func && a->lost == b->lost &&
           (a->state == b->state || (runs(a) && runs(b)));
}

/* The first column behind the phase that begins at `column`. */
static uint32_t phase_end(const struct fm_phases *ph, const struct fm_phase_column *columns,
                          uint32_t column)
{
    uint32_t end = column + 1;
    while (end < ph->columns && is_same_phase(&columns[column], &columns[end]))
        end++;
    return end;
}

/* "running", or for what it waits; nothing is known of a traced thread. */
static const char *state_of(const struct fm_phase_column *column)
{
    if (runs(column))
        return "running";
    return column->state < FM_STATE_COUNT ? fm_state_name((enum fm_state)column->state) : "";
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void add_range(struct fm_buffer *out, const struct fm_report *r)
{
    fm_json_add_key(out, "timeline");
    fm_buffer_add_char(out, '{');
    fm_json_add_member(out, "start_ns", (int64_t)fm_timeline_start_ns(r->timeline));
    fm_json_add_member(out, "length_ns", (int64_t)r->range.length_ns);
    fm_json_add_member(out, "from_ns", (int64_t)r->range.from_ns);
    fm_json_add_member(out, "to_ns", (int64_t)r->range.to_ns);
    fm_buffer_add_char(out, '}');
}

static void add_thread(struct fm_buffer *out, const struct fm_report *r, const struct fm_lane *lane)
{
    const struct fm_thread *thread = &r->p->threads.data[lane->thread];
    fm_json_add_member(out, "pid", r->p->processes.data[lane->process].pid);
    fm_json_add_member(out, "tid", thread->tid);
    fm_json_add_text_member(out, "thread", fm_profile_text(r->p, thread->name));
}

static void add_phases(struct fm_buffer *out, const struct fm_report *r, const struct fm_phases *ph,
                       const struct fm_phase_column *columns)
{
    bool first = true;
    fm_json_add_key(out, "phases");
    fm_buffer_add_char(out, '[');
    for (uint32_t i = 0, end; i < ph->columns; i = end) {
        end = phase_end(ph, columns, i);
        if (columns[i].func == FM_NONE)
            continue;
        fm_buffer_add_text(out, first ? "\n    {" : ",\n    {");
        first = false;
        fm_json_add_member(out, "begin_ns", (int64_t)fm_phases_at_ns(ph, i));
        fm_json_add_member(out, "end_ns", (int64_t)fm_phases_at_ns(ph, end));
        if (*state_of(&columns[i]))
            fm_json_add_text_member(out, "state", state_of(&columns[i]));
        if (columns[i].lost)
            fm_json_add_member(out, "lost", 1);
        fm_json_add_function(out, r->p, columns[i].func);
        fm_buffer_add_char(out, '}');
    }
    fm_buffer_add_char(out, ']');
}

int fm_report_timeline_json(const struct fm_report *r, struct fm_error *err)
{
    struct fm_phases ph;
    fm_autobuffer out = FM_BUFFER_INIT;
    int status = fm_timeline_phases(r, columns_of(r), &ph, err);
    fm_json_add_subject(&out, r);
    add_range(&out, r);
    fm_json_add_member(&out, "runs", (int64_t)fm_timeline_runs(r->timeline));
    fm_json_add_member(&out, "uncertain_ns", (int64_t)fm_timeline_uncertain_ns(r->timeline));
    fm_json_add_key(&out, "lanes");
    fm_buffer_add_char(&out, '[');
    for (size_t i = 0; i < ph.lanes.len && status == 0; i++) {
        const struct fm_lane *lane = fm_timeline_lane(r->timeline, ph.lanes.data[i].lane);
        fm_buffer_add_text(&out, i ? ",\n  {" : "\n  {");
        fm_json_add_text_member(&out, "kind", lane->kind == FM_LANE_TRACED ? "traced" : "sampled");
        add_thread(&out, r, lane);
        fm_json_add_member(&out, "begin_ns", (int64_t)lane->begin_ns);
        fm_json_add_member(&out, "end_ns", (int64_t)lane->end_ns);
        fm_json_add_member(&out, "events", (int64_t)lane->events);
        fm_json_add_member(&out, "lost", (int64_t)lane->lost);
        fm_json_add_member(&out, "grain_ns", (int64_t)lane->grain_ns);
        add_phases(&out, r, &ph, ph.lanes.data[i].columns);
        fm_buffer_add_char(&out, '}');
    }
    fm_buffer_add_text(&out, "]}\n");
    if (status == 0)
        fwrite(out.data, 1, out.len, r->out);
    fm_phases_release(&ph);
    return status;
}

struct value_members {
    const struct fm_profile *p;
    struct fm_buffer *out;
    bool any;
};

static bool add_value(void *context, const struct fm_mark *mark)
{
    struct value_members *to = context;
    fm_autobuffer text = FM_BUFFER_INIT;
    if (!to->any) {
        fm_json_add_key(to->out, "values");
        fm_buffer_add_char(to->out, '{');
    }
    to->any = true;
    fm_json_add_key(to->out, fm_profile_text(to->p, mark->name));
    fm_buffer_add(&text, mark->text, mark->text_len);
    fm_json_add_text(to->out, fm_buffer_text(&text));
    return true;
}

static int add_values(struct fm_buffer *out, const struct fm_report *r,
                      const struct fm_found_call *call, struct fm_error *err)
{
    struct value_members to = { r->p, out, false };
    int status = fm_timeline_values(r->timeline, call->lane, &call->span, add_value, &to, err);
    if (to.any)
        fm_buffer_add_char(out, '}');
    return status;
}

int fm_report_slowest_json(const struct fm_report *r, struct fm_error *err)
{
    struct fm_durations d;
    fm_autobuffer out = FM_BUFFER_INIT;
    int status = fm_slowest_find(r, &d, err);
    fm_json_add_subject(&out, r);
    add_range(&out, r);
    fm_json_add_member(&out, "calls", (int64_t)d.calls);
    fm_json_add_member(&out, "total_ns", (int64_t)d.sum_ns);
    fm_json_add_member(&out, "min_ns", (int64_t)d.min_ns);
    fm_json_add_member(&out, "max_ns", (int64_t)d.max_ns);
    fm_json_add_key(&out, "slowest");
    fm_buffer_add_char(&out, '[');
    for (size_t i = 0; i < d.longest.len; i++) {
        const struct fm_found_call *call = &d.longest.data[i];
        fm_buffer_add_text(&out, i ? ",\n  {" : "\n  {");
        fm_json_add_member(&out, "ns", (int64_t)(call->span.end_ns - call->span.begin_ns));
        fm_json_add_member(&out, "begin_ns", (int64_t)call->span.begin_ns);
        fm_json_add_member(&out, "end_ns", (int64_t)call->span.end_ns);
        fm_json_add_member(&out, "depth", call->span.depth);
        add_thread(&out, r, fm_timeline_lane(r->timeline, call->lane));
        fm_json_add_function(&out, r->p, call->span.func);
        status = status ? status : add_values(&out, r, call, err);
        fm_buffer_add_char(&out, '}');
    }
    fm_buffer_add_char(&out, ']');
    fm_json_add_key(&out, "distribution");
    fm_buffer_add_char(&out, '[');
    for (unsigned i = 0, n = 0; i < FM_COUNT(d.buckets); i++) {
        if (!d.buckets[i])
            continue;
        fm_buffer_add_text(&out, n++ ? ", {" : "{");
        fm_json_add_member(&out, "from_ns", (int64_t)fm_timeline_bucket_ns(i));
        fm_json_add_member(&out, "calls", (int64_t)d.buckets[i]);
        fm_buffer_add_char(&out, '}');
    }
    fm_buffer_add_text(&out, "]}\n");
    if (status == 0)
        fwrite(out.data, 1, out.len, r->out);
    fm_durations_release(&d);
    return status;
}

/* --- CSV -------------------------------------------------------------------------------------- */

static void put_seconds(const struct fm_report *r, uint64_t ns)
{
    fprintf(r->out, "%llu.%09llu", (unsigned long long)(ns / 1000000000u),
            (unsigned long long)(ns % 1000000000u));
}

static void put_thread(const struct fm_report *r, const struct fm_lane *lane)
{
    const struct fm_thread *thread = &r->p->threads.data[lane->thread];
    fprintf(r->out, "%u,%u,", r->p->processes.data[lane->process].pid, thread->tid);
    fm_csv_put_text(r, fm_profile_text(r->p, thread->name));
    fputc(',', r->out);
}

static void put_stretch(const struct fm_report *r, uint64_t begin_ns, uint64_t end_ns)
{
    put_seconds(r, begin_ns);
    fputc(',', r->out);
    put_seconds(r, end_ns);
    fputc(',', r->out);
}

int fm_report_timeline_csv(const struct fm_report *r, struct fm_error *err)
{
    struct fm_phases ph;
    int status = fm_timeline_phases(r, columns_of(r), &ph, err);
    fputs("pid,tid,thread,begin_s,end_s,state,function,file,line\n", r->out);
    for (size_t i = 0; i < ph.lanes.len && status == 0; i++) {
        const struct fm_phase_column *columns = ph.lanes.data[i].columns;
        for (uint32_t k = 0, end; k < ph.columns; k = end) {
            end = phase_end(&ph, columns, k);
            if (columns[k].func == FM_NONE)
                continue;
            put_thread(r, fm_timeline_lane(r->timeline, ph.lanes.data[i].lane));
            put_stretch(r, fm_phases_at_ns(&ph, k), fm_phases_at_ns(&ph, end));
            fprintf(r->out, "%s,", state_of(&columns[k]));
            fm_csv_put_function(r, columns[k].func);
            fputc('\n', r->out);
        }
    }
    fm_phases_release(&ph);
    return status;
}

int fm_report_slowest_csv(const struct fm_report *r, struct fm_error *err)
{
    struct fm_durations d;
    fm_autobuffer values = FM_BUFFER_INIT;
    int status = fm_slowest_find(r, &d, err);
    fputs("pid,tid,thread,begin_s,end_s,took_s,depth,function,file,line,values\n", r->out);
    for (size_t i = 0; i < d.longest.len && status == 0; i++) {
        const struct fm_time_span *span = &d.longest.data[i].span;
        put_thread(r, fm_timeline_lane(r->timeline, d.longest.data[i].lane));
        put_stretch(r, span->begin_ns, span->end_ns);
        put_seconds(r, span->end_ns - span->begin_ns);
        fprintf(r->out, ",%u,", span->depth);
        fm_csv_put_function(r, span->func);
        fputc(',', r->out);
        status = fm_slowest_values(r, &d.longest.data[i], &values, err);
        fm_csv_put_text(r, fm_buffer_text(&values));
        fputc('\n', r->out);
    }
    fm_durations_release(&d);
    return status;
}
