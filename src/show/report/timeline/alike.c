/*
 * Calls of a function that did the same, and where the slow ones of them differ (model/trace/lanes/timeline.h):
 * a row for each group, the largest first.
 */
#include <math.h>
#include <stdlib.h>

#include "show/report/csv_text.h"
#include "show/report/json_text.h"
#include "show/report/number.h"
#include "show/report/timeline/timeline.h"

#define MOST_GROUPS 1000u
#define FEW_DIFFER  2u   /* that a row of a table names */
#define WORTH_SHARE 0.05 /* of a call: a smaller difference is none */

struct alike {
    uint32_t func;
    struct fm_call_groups groups;
    struct fm_group_differences *differ;
    size_t shown;
    uint64_t calls;
};

/* ---- finding ---- */

static int find(const struct fm_report *r, uint32_t func, struct alike *a, struct fm_error *err)
{
    *a = (struct alike){ .func = func };
    int status =
        fm_timeline_groups(r->timeline, func, r->range.from_ns, r->range.to_ns, &a->groups, err);
    size_t most =
        r->rows_max < 0 || r->rows_max > (int)MOST_GROUPS ? MOST_GROUPS : (size_t)r->rows_max;
    a->shown = a->groups.groups.len < most ? a->groups.groups.len : most;
    a->differ = fm_calloc(a->shown + 1, sizeof *a->differ);
    a->calls = a->groups.others;
    for (size_t i = 0; i < a->groups.groups.len; i++)
        a->calls += a->groups.groups.data[i].calls;
    if (!status)
        status = fm_timeline_differences(r->timeline, func, r->range.from_ns, r->range.to_ns,
                                         &a->groups, a->shown, a->differ, err);
    return status;
}

static void release(struct alike *a)
{
    for (size_t i = 0; a->differ && i < a->shown; i++)
        fm_group_differences_release(&a->differ[i]);
    free(a->differ);
    fm_call_groups_release(&a->groups);
}

static uint64_t slowest_ns(const struct fm_call_group *group)
{
    const struct fm_time_span *span = &group->slowest[0].span;
    return group->slowest_count ? span->end_ns - span->begin_ns : 0;
}

static double half_ns(const struct fm_call_group *g)
{
    return fm_timeline_quantile_ns(g->buckets, g->calls, g->min_ns, g->max_ns, 0.5);
}

/* ---- for people ---- */

/* As tables name it, if it has a row in one. */
static const char *name_of(const struct fm_report *r, uint32_t func)
{
    const struct fm_function *f = &r->p->functions.data[func];
    for (uint32_t row = 0; row < r->flat->rows.len; row++)
        if (r->flat->rows.data[row].func == func)
            return fm_names_function(r->names, row);
    const char *name = fm_profile_text(r->p, f->qualname);
    return *name ? name : fm_profile_text(r->p, f->name);
}

static void add_word(struct fm_buffer *words, const char *text)
{
    if (words->len)
        fm_buffer_add_text(words, "; ");
    fm_buffer_add_text(words, text);
}

/* "time.sleep +50.1 ms; look_up ×2 (×1)" */
static void say_differences(const struct fm_report *r, const struct alike *a, size_t group,
                            struct fm_buffer *words)
{
    const struct fm_group_differences *d = &a->differ[group];
    double worth = WORTH_SHARE * (double)slowest_ns(&a->groups.groups.data[group]);
    char text[512], number[FM_NUMBER_BYTES];
    for (size_t i = 0; i < d->shape.len && i < FEW_DIFFER; i++) {
        snprintf(text, sizeof text, "%.200s ×%.0f (×%.0f)", name_of(r, d->shape.data[i].func),
                 d->shape.data[i].spans, d->shape.data[i].usual_spans);
        add_word(words, text);
    }
    for (size_t i = 0, said = 0; i < d->slowest.len && said < FEW_DIFFER; i++) {
        const struct fm_call_difference *one = &d->slowest.data[i];
        double more = one->self_ns - one->usual_self_ns;
        if (fabs(more) < worth || a->groups.groups.data[group].calls < 2)
            continue;
        fm_number_time(number, (int64_t)fabs(more));
        snprintf(text, sizeof text, "%.200s %s%s", name_of(r, one->func), more < 0 ? "−" : "+",
                 number);
        add_word(words, text);
        said++;
    }
}

static void put_groups(const struct fm_report *r, const struct alike *a)
{
    struct fm_table t;
    char text[FM_NUMBER_BYTES];
    fm_table_init(&t, r->style);
    fm_table_column(&t, "calls", FM_TABLE_RIGHT);
    fm_table_column(&t, "half up to", FM_TABLE_RIGHT);
    fm_table_column(&t, "slowest", FM_TABLE_RIGHT);
    fm_table_column(&t, "from", FM_TABLE_RIGHT);
    fm_table_column(&t, "calls in it", FM_TABLE_OPTIONAL);
    fm_table_column(&t, "unlike the first group; the slowest, unlike its own", FM_TABLE_FLEXIBLE);
    for (size_t i = 0; i < a->shown; i++) {
        const struct fm_call_group *g = &a->groups.groups.data[i];
        fm_autobuffer words = FM_BUFFER_INIT;
        fm_table_cell(&t, FM_COLOR_NONE, fm_number_count(text, (int64_t)g->calls));
        fm_table_cell(&t, FM_COLOR_NONE, fm_number_time(text, (int64_t)half_ns(g)));
        fm_table_cell(&t, FM_COLOR_BOLD, fm_number_time(text, (int64_t)slowest_ns(g)));
        snprintf(text, sizeof text, "%.6f s", (double)g->slowest[0].span.begin_ns / 1e9);
        fm_table_cell(&t, FM_COLOR_NONE, text);
        fm_table_cell(&t, FM_COLOR_NONE, fm_number_count(text, (int64_t)g->spans));
        say_differences(r, a, i, &words);
        fm_table_cell(&t, FM_COLOR_NAME, fm_buffer_text(&words));
    }
    fm_table_print(&t, r->out);
    fm_table_release(&t);
}

int fm_report_alike(const struct fm_report *r, struct fm_error *err)
{
    char text[2][FM_NUMBER_BYTES];
    int status = 0;
    fm_report_header(r);
    for (size_t i = 0; i < r->selection.rows.len && status == 0; i++) {
        struct alike a;
        uint32_t row = r->selection.rows.data[i];
        status = find(r, r->flat->rows.data[row].func, &a, err);
        fprintf(r->out, "%s%s  %s\n", i ? "\n" : "", fm_names_function(r->names, row),
                fm_names_place(r->names, row));
        if (status == 0 && a.calls) {
            fprintf(r->out, "%s call%s, in %s group%s that did the same\n\n",
                    fm_number_count(text[0], (int64_t)a.calls), a.calls == 1 ? "" : "s",
                    fm_number_count(text[1], (int64_t)a.groups.groups.len),
                    a.groups.groups.len == 1 ? "" : "s");
            put_groups(r, &a);
        } else if (status == 0) {
            fputs("no call of it began and ended in this time\n", r->out);
        }
        release(&a);
    }
    return status;
}

/* ---- for programs ---- */

static void add_call(struct fm_buffer *out, const struct fm_report *r, const char *key,
                     const struct fm_found_call *call)
{
    const struct fm_lane *lane = fm_timeline_lane(r->timeline, call->lane);
    fm_json_add_key(out, key);
    fm_buffer_add_char(out, '{');
    fm_json_add_member(out, "ns", (int64_t)(call->span.end_ns - call->span.begin_ns));
    fm_json_add_member(out, "begin_ns", (int64_t)call->span.begin_ns);
    fm_json_add_member(out, "pid", r->p->processes.data[lane->process].pid);
    fm_json_add_member(out, "tid", r->p->threads.data[lane->thread].tid);
    fm_buffer_add_char(out, '}');
}

static void add_difference(struct fm_buffer *out, const struct fm_report *r,
                           const struct fm_call_difference *d, size_t number)
{
    fm_buffer_add_text(out, number ? ", {" : "{");
    fm_json_add_function(out, r->p, d->func);
    fm_json_add_member(out, "self_ns", (int64_t)llround(d->self_ns));
    fm_json_add_member(out, "usual_self_ns", (int64_t)llround(d->usual_self_ns));
    fm_json_add_member(out, "calls", (int64_t)llround(d->spans));
    fm_json_add_member(out, "usual_calls", (int64_t)llround(d->usual_spans));
    fm_buffer_add_char(out, '}');
}

static void add_group(struct fm_buffer *out, const struct fm_report *r, const struct alike *a,
                      size_t i)
{
    const struct fm_call_group *g = &a->groups.groups.data[i];
    fm_buffer_add_text(out, i ? ",\n  {" : "\n  {");
    fm_json_add_function(out, r->p, a->func);
    fm_json_add_member(out, "calls", (int64_t)g->calls);
    fm_json_add_member(out, "total_ns", (int64_t)g->sum_ns);
    fm_json_add_member(out, "min_ns", (int64_t)g->min_ns);
    fm_json_add_member(out, "half_ns", (int64_t)half_ns(g));
    fm_json_add_member(out, "max_ns", (int64_t)g->max_ns);
    fm_json_add_member(out, "spans", (int64_t)g->spans);
    add_call(out, r, "slowest", &g->slowest[0]);
    fm_json_add_key(out, "slowest_differs");
    fm_buffer_add_char(out, '[');
    for (size_t k = 0; k < a->differ[i].slowest.len; k++)
        add_difference(out, r, &a->differ[i].slowest.data[k], k);
    fm_buffer_add_char(out, ']');
    fm_json_add_key(out, "unlike_first");
    fm_buffer_add_char(out, '[');
    for (size_t k = 0; k < a->differ[i].shape.len; k++)
        add_difference(out, r, &a->differ[i].shape.data[k], k);
    fm_buffer_add_text(out, "]}");
}

int fm_report_alike_json(const struct fm_report *r, struct fm_error *err)
{
    fm_autobuffer out = FM_BUFFER_INIT;
    int status = 0;
    fm_json_add_subject(&out, r);
    fm_json_add_key(&out, "groups");
    fm_buffer_add_char(&out, '[');
    for (size_t i = 0; i < r->selection.rows.len && status == 0; i++) {
        struct alike a;
        status = find(r, r->flat->rows.data[r->selection.rows.data[i]].func, &a, err);
        for (size_t k = 0; k < a.shown && status == 0; k++) {
            if (i && !k && out.data[out.len - 1] == '}')
                fm_buffer_add_char(&out, ',');
            add_group(&out, r, &a, k);
        }
        release(&a);
    }
    fm_buffer_add_text(&out, "]}\n");
    if (status == 0)
        fwrite(out.data, 1, out.len, r->out);
    return status;
}

int fm_report_alike_csv(const struct fm_report *r, struct fm_error *err)
{
    int status = 0;
    fputs("calls,total_ns,min_ns,half_ns,max_ns,spans,slowest_begin_ns,function,file,line\n",
          r->out);
    for (size_t i = 0; i < r->selection.rows.len && status == 0; i++) {
        struct alike a;
        status = find(r, r->flat->rows.data[r->selection.rows.data[i]].func, &a, err);
        for (size_t k = 0; k < a.shown && status == 0; k++) {
            const struct fm_call_group *g = &a.groups.groups.data[k];
            fprintf(r->out, "%llu,%llu,%llu,%.0f,%llu,%llu,%llu,", (unsigned long long)g->calls,
                    (unsigned long long)g->sum_ns, (unsigned long long)g->min_ns, half_ns(g),
                    (unsigned long long)g->max_ns, (unsigned long long)g->spans,
                    (unsigned long long)g->slowest[0].span.begin_ns);
            fm_csv_put_function(r, a.func);
            fputc('\n', r->out);
        }
        release(&a);
    }
    return status;
}
