/* The longest calls of functions; see slowest.h. */
#include "show/report/timeline/slowest.h"

#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "show/report/number.h"

#define BAR_WIDTH 40
#define BARS      24 /* at most: longer distributions have coarser ones */

/* --- finding ---------------------------------------------------------------------------------- */

static int by_length(const void *a, const void *b)
{
    const struct fm_time_span *one = &((const struct fm_found_call *)a)->span;
    const struct fm_time_span *two = &((const struct fm_found_call *)b)->span;
    uint64_t one_ns = one->end_ns - one->begin_ns, two_ns = two->end_ns - two->begin_ns;
    if (one_ns != two_ns)
        return one_ns > two_ns ? -1 : 1;
    return one->begin_ns < two->begin_ns ? -1 : one->begin_ns > two->begin_ns;
}

static void add_durations(struct fm_durations *to, const struct fm_durations *from)
{
    if (!from->calls)
        return;
    to->min_ns = !to->calls || from->min_ns < to->min_ns ? from->min_ns : to->min_ns;
    to->max_ns = from->max_ns > to->max_ns ? from->max_ns : to->max_ns;
    to->calls += from->calls;
    to->sum_ns += from->sum_ns;
    for (size_t i = 0; i < FM_COUNT(to->buckets); i++)
        to->buckets[i] += from->buckets[i];
    for (size_t i = 0; i < from->longest.len; i++)
        fm_vec_push(&to->longest, from->longest.data[i]);
}

int fm_slowest_find(const struct fm_report *r, struct fm_durations *ret, struct fm_error *err)
{
    size_t most = r->rows_max < 0 || r->rows_max > (int)FM_SLOWEST_MOST ? FM_SLOWEST_MOST
                                                                        : (size_t)r->rows_max;
    int status = 0;
    *ret = (struct fm_durations){ 0 };
    for (size_t i = 0; i < r->selection.rows.len && status == 0; i++) {
        struct fm_durations own = { 0 };
        uint32_t func = r->flat->rows.data[r->selection.rows.data[i]].func;
        status = fm_timeline_durations(r->timeline, func, r->range.from_ns, r->range.to_ns, most,
                                       &own, err);
        add_durations(ret, &own);
        fm_durations_release(&own);
    }
    if (ret->longest.len)
        qsort(ret->longest.data, ret->longest.len, sizeof *ret->longest.data, by_length);
    ret->longest.len = ret->longest.len < most ? ret->longest.len : most;
    return status;
}

static double quantile_ns(const struct fm_durations *d, double share)
{
    return fm_timeline_quantile_ns(d->buckets, d->calls, d->min_ns, d->max_ns, share);
}

struct value_texts {
    const struct fm_profile *p;
    struct fm_buffer *out;
};

static bool add_value(void *context, const struct fm_mark *mark)
{
    const struct value_texts *to = context;
    if (mark->kind == FM_MARK_RESULT) {
        fm_buffer_add_text(to->out, to->out->len ? " → " : "→ ");
    } else {
        fm_buffer_add_text(to->out, to->out->len ? ", " : "");
        fm_clean_add(to->out, fm_profile_text(to->p, mark->name),
                     fm_strings_len(to->p->strings, mark->name));
        fm_buffer_add_char(to->out, '=');
    }
    fm_clean_add(to->out, mark->text, mark->text_len);
    return true;
}

int fm_slowest_values(const struct fm_report *r, const struct fm_found_call *call,
                      struct fm_buffer *out, struct fm_error *err)
{
    struct value_texts to = { r->p, out };
    fm_buffer_clear(out);
    return fm_timeline_values(r->timeline, call->lane, &call->span, add_value, &to, err);
}

/* --- for people ------------------------------------------------------------------------------- */

static void put_sentence(const struct fm_report *r, const struct fm_durations *d)
{
    char text[5][FM_NUMBER_BYTES];
    uint32_t row = r->selection.rows.len ? r->selection.rows.data[0] : 0;
    if (r->selection.rows.len == 1)
        fprintf(r->out, "%s  %s\n", fm_names_function(r->names, row),
                fm_names_place(r->names, row));
    else
        fprintf(r->out, "%zu functions\n", r->selection.rows.len);
    if (!d->calls) {
        fputs("no call of it in this time\n", r->out);
        return;
    }
    fprintf(r->out, "%s call%s, %s in all", fm_number_count(text[0], (int64_t)d->calls),
            d->calls == 1 ? "" : "s", fm_number_time(text[1], (int64_t)d->sum_ns));
    if (d->calls > 1)
        fprintf(r->out, "; %s to %s, half of them up to about %s, 99 %% up to about %s",
                fm_number_time(text[0], (int64_t)d->min_ns),
                fm_number_time(text[1], (int64_t)d->max_ns),
                fm_number_time(text[2], (int64_t)quantile_ns(d, 0.5)),
                fm_number_time(text[3], (int64_t)quantile_ns(d, 0.99)));
    fputs("\n\n", r->out);
}

/* Of a call that is cut, what is seen of it is not all that it took. */
static const char *how_it_ended(const struct fm_time_span *span)
{
    bool began_before = span->flags & FM_SPAN_BEGAN_BEFORE;
    if (span->flags & FM_SPAN_UNWOUND)
        return began_before ? "began before, raised" : "raised";
    if (span->flags & (FM_SPAN_OPEN | FM_SPAN_CUT))
        return began_before ? "began before, still open" : "still open";
    if (span->flags & FM_SPAN_YIELDED)
        return began_before ? "began before, yielded" : "yielded";
    return began_before ? "began before" : "";
}

static bool have_values(const struct fm_report *r, const struct fm_durations *d,
                        struct fm_error *err)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    for (size_t i = 0; i < d->longest.len && !text.len; i++)
        if (fm_slowest_values(r, &d->longest.data[i], &text, err))
            return false;
    return text.len;
}

static int put_calls(const struct fm_report *r, const struct fm_durations *d, struct fm_error *err)
{
    struct fm_table t;
    char text[FM_NUMBER_BYTES];
    fm_autobuffer name = FM_BUFFER_INIT;
    bool several = r->selection.rows.len > 1;
    int status = 0;
    bool values = have_values(r, d, err);
    fm_table_init(&t, r->style);
    fm_table_column(&t, "took", FM_TABLE_RIGHT);
    fm_table_column(&t, "from", FM_TABLE_RIGHT);
    fm_table_column(&t, "depth", FM_TABLE_OPTIONAL);
    fm_table_column(&t, "ended", FM_TABLE_LEFT);
    fm_table_column(&t, several ? "thread · function" : "thread",
                    values ? FM_TABLE_LEFT : FM_TABLE_FLEXIBLE);
    if (values)
        fm_table_column(&t, "values", FM_TABLE_TEXT);
    for (size_t i = 0; i < d->longest.len; i++) {
        const struct fm_found_call *call = &d->longest.data[i];
        fm_table_cell(&t, FM_COLOR_BOLD,
                      fm_number_time(text, (int64_t)(call->span.end_ns - call->span.begin_ns)));
        snprintf(text, sizeof text, "%.6f s", (double)call->span.begin_ns / 1e9);
        fm_table_cell(&t, FM_COLOR_NONE, text);
        snprintf(text, sizeof text, "%u", call->span.depth);
        fm_table_cell(&t, FM_COLOR_NONE, text);
        fm_table_cell(&t, FM_COLOR_DIM, how_it_ended(&call->span));
        fm_buffer_clear(&name);
        fm_timeline_lane_name(r, fm_timeline_lane(r->timeline, call->lane), &name);
        const char *func = fm_profile_text(r->p, r->p->functions.data[call->span.func].qualname);
        fm_table_cell_pair(&t, FM_COLOR_NAME, fm_buffer_text(&name), several ? func : "");
        if (!values)
            continue;
        status = status ? status : fm_slowest_values(r, call, &name, err);
        fm_table_cell(&t, FM_COLOR_NONE, fm_buffer_text(&name));
    }
    if (status == 0)
        fm_table_print(&t, r->out);
    fm_table_release(&t);
    return status;
}

/* "▊" and so on: eighths of a column. */
static void add_bar(struct fm_buffer *out, double part, double most)
{
    static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    int units = (int)(part / most * BAR_WIDTH * 8 + 0.5);
    for (int i = 0; i < units / 8; i++)
        fm_buffer_add_text(out, "█");
    fm_buffer_add_text(out, units ? eighths[units % 8] : "▏");
}

/* How many calls are in the `step` buckets from `bucket` on. */
static uint64_t calls_from(const struct fm_durations *d, unsigned bucket, unsigned step)
{
    uint64_t calls = 0;
    for (unsigned i = bucket; i < bucket + step && i < FM_COUNT(d->buckets); i++)
        calls += d->buckets[i];
    return calls;
}

static void put_bars(const struct fm_report *r, const struct fm_durations *d)
{
    struct fm_table t;
    char text[FM_NUMBER_BYTES];
    unsigned first = 0, last = FM_COUNT(d->buckets), step = 1;
    uint64_t most = 0;
    while (first < last && !d->buckets[first])
        first++;
    while (last > first && !d->buckets[last - 1])
        last--;
    while ((last - first) / step > BARS)
        step *= 2;
    first -= first % step;
    for (unsigned i = first; i < last; i += step)
        most = calls_from(d, i, step) > most ? calls_from(d, i, step) : most;
    fm_table_init(&t, r->style);
    fm_table_column(&t, "from", FM_TABLE_RIGHT);
    fm_table_column(&t, "calls", FM_TABLE_RIGHT);
    fm_table_column(&t, "", FM_TABLE_LEFT);
    for (unsigned i = first; i < last; i += step) {
        fm_autobuffer bar = FM_BUFFER_INIT;
        uint64_t calls = calls_from(d, i, step);
        fm_table_cell(&t, FM_COLOR_NONE, fm_number_time(text, (int64_t)fm_timeline_bucket_ns(i)));
        fm_table_cell(&t, FM_COLOR_NONE, fm_number_count(text, (int64_t)calls));
        if (calls)
            add_bar(&bar, (double)calls, (double)most);
        fm_table_cell(&t, FM_COLOR_NAME, fm_buffer_text(&bar));
    }
    fm_table_print(&t, r->out);
    fm_table_release(&t);
}

int fm_report_slowest(const struct fm_report *r, struct fm_error *err)
{
    struct fm_durations d;
    int status = fm_slowest_find(r, &d, err);
    if (status == 0) {
        fm_report_header(r);
        put_sentence(r, &d);
        if (d.calls) {
            status = put_calls(r, &d, err);
            fputc('\n', r->out);
            put_bars(r, &d);
        }
    }
    fm_durations_release(&d);
    return status;
}
