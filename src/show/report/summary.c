/* The short report; see summary.h. */
#include "show/report/summary.h"

#include "show/report/report.h"

#define SHORT_ROWS 10 /* of lines, and of functions where lines follow */

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

int fm_report_summary(const struct fm_profile *p, FILE *out, int rows)
{
    struct fm_flat_scope all = { FM_NONE, FM_NONE };
    struct fm_flat *flat = fm_flat_new(p, &all);
    struct fm_report r = {
        .p = p, .scope = all, .flat = flat, .style = fm_style_for(out, FM_COLOR_AUTO, 0), .out = out
    };
    bool lines_alone = fm_linetables_are_all(p);
    int few = rows < SHORT_ROWS ? rows : SHORT_ROWS;
    fm_report_header(&r);
    if (!lines_alone)
        show_functions(&r, p->lines.rows.len ? few : rows);
    if (!lines_alone && p->lines.rows.len)
        fputc('\n', out);
    if (p->lines.rows.len)
        show_lines(&r, few);
    fm_flat_free(flat);
    return ferror(out) ? FM_CANNOT_WRITE : 0;
}
