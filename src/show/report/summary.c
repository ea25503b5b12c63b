/* The short report; see summary.h. */
#include "show/report/summary.h"

#include "base/memory.h"
#include "record/model/derive/edit.h"
#include "record/model/derive/shed.h"
#include "show/report/report.h"

#define SHORT_ROWS 10 /* of lines, and of functions where lines follow */
#define FEW_ROWS   5  /* of functions where memory is what was asked for */

static void show_functions(struct fm_report *r, int rows)
{
    struct fm_query query = { .qualified = true };
    fm_query_sort(&query, "self", NULL);
    fm_query_limit(&query, rows);
    r->query = &query;
    r->names = fm_names_new(r->p, r->flat, FM_NAMES_FILES);
    fm_query_run(&query, r->flat, r->names, &r->selection);
    fm_report_functions(r);
    fm_selection_release(&r->selection);
    fm_names_free(r->names);
    fm_query_release(&query);
}

static void show_lines(struct fm_report *r, int rows)
{
    struct fm_query query = { .qualified = true };
    struct fm_linetables *lines = fm_linetables_new(r->p, &r->scope, r->flat);
    r->lines = lines;
    r->query = &query;
    r->names = fm_names_new(r->p, &lines->flat, FM_NAMES_FILES);
    r->view.hot_max = rows;
    fm_query_run(&query, &lines->flat, r->names, &r->selection);
    fm_report_hot(r);
    fm_selection_release(&r->selection);
    fm_names_free(r->names);
    fm_linetables_free(lines);
}

static bool has_memory(const struct fm_flat_row *row, void *data)
{
    (void)data;
    return row->self[FM_METRIC_PEAK] > 0;
}

/* Of a copy: the time is still to be shown. */
static void show_memory(const struct fm_profile *p, FILE *out, int rows)
{
    struct fm_profile *copy = fm_profile_new();
    struct fm_query query = { .qualified = true, .only = has_memory };
    struct fm_flat_scope all = { FM_NONE, FM_NONE };
    fm_profile_merge(copy, p);
    fm_autofree uint32_t *origin = fm_profile_shed_time(copy, FM_ROWS_LINES);
    enum fm_instant at = copy->columns[FM_METRIC_TOGETHER].data ? FM_AT_TOGETHER : FM_AT_PEAK;
    struct fm_report r = { .p = copy,
                           .scope = all,
                           .flat = fm_flat_new(copy, &all),
                           .style = fm_style_for(out, FM_COLOR_AUTO, 0),
                           .out = out,
                           .memory = { .at = &fm_instants[at], .origin = origin } };
    r.query = &query;
    r.names = fm_names_new(copy, r.flat, FM_NAMES_FILES);
    fm_query_sort(&query, fm_metric_name(fm_instants[at].bytes), NULL);
    fm_query_limit(&query, rows);
    fm_query_run(&query, r.flat, r.names, &r.selection);
    fm_report_memory_header(&r);
    fm_report_memory_functions(&r);
    fm_selection_release(&r.selection);
    fm_names_free(r.names);
    fm_query_release(&query);
    fm_flat_free((struct fm_flat *)r.flat);
    fm_profile_free(copy);
}

static void show_time(const struct fm_profile *p, FILE *out, int rows, bool beside_memory)
{
    struct fm_flat_scope all = { FM_NONE, FM_NONE };
    struct fm_flat *flat = fm_flat_new(p, &all);
    struct fm_report r = {
        .p = p, .scope = all, .flat = flat, .style = fm_style_for(out, FM_COLOR_AUTO, 0), .out = out
    };
    bool lines_alone = fm_linetables_are_all(p);
    int few = rows < SHORT_ROWS ? rows : SHORT_ROWS;
    if (beside_memory)
        fm_report_time_header(&r);
    else
        fm_report_header(&r);
    if (!lines_alone)
        show_functions(&r, p->lines.rows.len ? few : rows);
    bool lines = p->lines.rows.len && (!beside_memory || lines_alone);
    if (!lines_alone && lines)
        fputc('\n', out);
    if (lines)
        show_lines(&r, few);
    fm_flat_free(flat);
}

int fm_report_summary(struct fm_profile *p, FILE *out, int rows)
{
    bool memory = fm_profile_has_memory(p), time = fm_profile_has_time(p);
    if (memory)
        show_memory(p, out, time ? SHORT_ROWS : rows);
    fm_profile_shed_memory(p);
    if (memory && time)
        fputc('\n', out);
    if (time)
        show_time(p, out, memory ? FEW_ROWS : rows, memory);
    return ferror(out) ? FM_CANNOT_WRITE : 0;
}
