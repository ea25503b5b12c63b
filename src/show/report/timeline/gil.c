/*
 * How often and how long threads waited for the interpreter, as hand-overs tell (model/trace/lanes/timeline.h): from
 * below and from above, since events alone do not say when a thread began to wait.
 */
#include <stdlib.h>

#include "show/report/csv_text.h"
#include "show/report/json_text.h"
#include "show/report/number.h"
#include "show/report/timeline/timeline.h"

struct gil_report {
    struct fm_gil_waits waits; /* by lane */
    FM_VEC(size_t) order;      /* lanes that are shown, who waited longest first */
    bool unknown;              /* C calls of one of them were not recorded */
};

/* ---- finding ---- */

static bool is_shown(const struct fm_report *r, size_t lane)
{
    const struct fm_lane *of = fm_timeline_lane(r->timeline, lane);
    return (r->scope.process == FM_NONE || r->scope.process == of->process) &&
           (r->scope.thread == FM_NONE || r->scope.thread == of->thread);
}

static int by_wait(const void *a, const void *b, void *waits)
{
    const struct fm_gil_wait *x = (struct fm_gil_wait *)waits + *(const size_t *)a;
    const struct fm_gil_wait *y = (struct fm_gil_wait *)waits + *(const size_t *)b;
    if (x->most_ns != y->most_ns)
        return x->most_ns > y->most_ns ? -1 : 1;
    if (x->turns != y->turns)
        return x->turns > y->turns ? -1 : 1;
    return x < y ? -1 : x > y;
}

static int find(const struct fm_report *r, struct gil_report *found, struct fm_error *err)
{
    *found = (struct gil_report){ 0 };
    int status =
        fm_timeline_gil_waits(r->timeline, r->range.from_ns, r->range.to_ns, &found->waits, err);
    for (size_t lane = 0; lane < found->waits.list.len; lane++) {
        if (!is_shown(r, lane))
            continue;
        fm_vec_push(&found->order, lane);
        found->unknown |= !found->waits.list.data[lane].known;
    }
    if (found->order.len)
        qsort_r(found->order.data, found->order.len, sizeof *found->order.data, by_wait,
                found->waits.list.data);
    return status;
}

static void release(struct gil_report *found)
{
    fm_vec_release(&found->waits.list);
    fm_vec_release(&found->order);
}

/* ---- for people ---- */

static void put_row(const struct fm_report *r, struct fm_table *t, size_t lane,
                    const struct fm_gil_wait *wait)
{
    fm_autobuffer name = FM_BUFFER_INIT;
    char text[FM_NUMBER_BYTES];
    bool any = wait->known && wait->waits;
    fm_timeline_lane_name(r, fm_timeline_lane(r->timeline, lane), &name);
    fm_table_cell(t, FM_COLOR_NONE, wait->known ? fm_number_count(text, (int64_t)wait->turns) : "");
    fm_table_cell(t, FM_COLOR_NONE, wait->known ? fm_number_count(text, (int64_t)wait->waits) : "");
    fm_table_cell(t, FM_COLOR_NONE, any ? fm_number_time(text, (int64_t)wait->least_ns) : "");
    fm_table_cell(t, FM_COLOR_BOLD, any ? fm_number_time(text, (int64_t)wait->most_ns) : "");
    fm_table_cell(t, FM_COLOR_NONE, any ? fm_number_time(text, (int64_t)wait->longest_ns) : "");
    snprintf(text, sizeof text, "%.6f s", (double)wait->longest_at_ns / 1e9);
    fm_table_cell(t, FM_COLOR_NONE, any ? text : "");
    fm_table_cell(t, FM_COLOR_NAME, fm_buffer_text(&name));
}

static void put_table(const struct fm_report *r, const struct gil_report *found)
{
    struct fm_table t;
    size_t most = r->rows_max < 0 ? SIZE_MAX : (size_t)r->rows_max;
    size_t shown = found->order.len < most ? found->order.len : most;
    fm_table_init(&t, r->style);
    fm_table_column(&t, "turns", FM_TABLE_RIGHT);
    fm_table_column(&t, "waits", FM_TABLE_RIGHT);
    fm_table_column(&t, "at least", FM_TABLE_RIGHT);
    fm_table_column(&t, "at most", FM_TABLE_RIGHT);
    fm_table_column(&t, "longest up to", FM_TABLE_RIGHT);
    fm_table_column(&t, "from", FM_TABLE_RIGHT);
    fm_table_column(&t, "thread", FM_TABLE_FLEXIBLE);
    for (size_t i = 0; i < shown; i++)
        put_row(r, &t, found->order.data[i], &found->waits.list.data[found->order.data[i]]);
    fm_table_print(&t, r->out);
    fm_table_release(&t);
    if (shown < found->order.len)
        fprintf(r->out, "and %zu more thread%s: --limit all\n", found->order.len - shown,
                found->order.len - shown == 1 ? "" : "s");
}

int fm_report_gil(const struct fm_report *r, struct fm_error *err)
{
    struct gil_report found;
    int status = find(r, &found, err);
    if (status == 0) {
        fm_report_header(r);
        put_table(r, &found);
        fputs("\nturns: it got the interpreter from another thread; waits: it was in Python code "
              "before,\nnot in a call of C, which may wait for anything\n",
              r->out);
        if (found.unknown)
            fputs("nothing is known of processes without C calls (--no-c-calls)\n", r->out);
    }
    release(&found);
    return status;
}

/* ---- for programs ---- */

static void add_row(struct fm_buffer *out, const struct fm_report *r, size_t lane,
                    const struct fm_gil_wait *wait)
{
    const struct fm_lane *of = fm_timeline_lane(r->timeline, lane);
    fm_buffer_add_text(out, "\n  {");
    fm_json_add_member(out, "process", r->p->processes.data[of->process].pid);
    fm_json_add_member(out, "thread", r->p->threads.data[of->thread].tid);
    fm_json_add_text_member(out, "name",
                            fm_profile_text(r->p, r->p->threads.data[of->thread].name));
    fm_json_add_key(out, "known");
    fm_buffer_add_text(out, wait->known ? "true" : "false");
    fm_json_add_member(out, "turns", (int64_t)wait->turns);
    fm_json_add_member(out, "waits", (int64_t)wait->waits);
    fm_json_add_member(out, "least_ns", (int64_t)wait->least_ns);
    fm_json_add_member(out, "most_ns", (int64_t)wait->most_ns);
    fm_json_add_member(out, "longest_ns", (int64_t)wait->longest_ns);
    fm_json_add_member(out, "longest_at_ns", (int64_t)wait->longest_at_ns);
    fm_buffer_add_char(out, '}');
}

int fm_report_gil_json(const struct fm_report *r, struct fm_error *err)
{
    struct gil_report found;
    fm_autobuffer out = FM_BUFFER_INIT;
    int status = find(r, &found, err);
    fm_json_add_subject(&out, r);
    fm_json_add_key(&out, "threads");
    fm_buffer_add_char(&out, '[');
    for (size_t i = 0; i < found.order.len; i++) {
        if (i)
            fm_buffer_add_char(&out, ',');
        add_row(&out, r, found.order.data[i], &found.waits.list.data[found.order.data[i]]);
    }
    fm_buffer_add_text(&out, "]}\n");
    if (status == 0)
        fwrite(out.data, 1, out.len, r->out);
    release(&found);
    return status;
}

int fm_report_gil_csv(const struct fm_report *r, struct fm_error *err)
{
    struct gil_report found;
    int status = find(r, &found, err);
    fputs("process,thread,name,turns,waits,least_s,most_s,longest_s,longest_at_s\r\n", r->out);
    for (size_t i = 0; i < found.order.len && status == 0; i++) {
        const struct fm_lane *of = fm_timeline_lane(r->timeline, found.order.data[i]);
        const struct fm_gil_wait *wait = &found.waits.list.data[found.order.data[i]];
        if (!wait->known)
            continue;
        fprintf(r->out, "%u,%u,", r->p->processes.data[of->process].pid,
                r->p->threads.data[of->thread].tid);
        fm_csv_put_text(r, fm_profile_text(r->p, r->p->threads.data[of->thread].name));
        fprintf(r->out, ",%llu,%llu", (unsigned long long)wait->turns,
                (unsigned long long)wait->waits);
        fm_csv_put_seconds(r, (int64_t)wait->least_ns);
        fm_csv_put_seconds(r, (int64_t)wait->most_ns);
        fm_csv_put_seconds(r, (int64_t)wait->longest_ns);
        fm_csv_put_seconds(r, (int64_t)wait->longest_at_ns);
        fputs("\r\n", r->out);
    }
    release(&found);
    return status;
}
