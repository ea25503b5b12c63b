/* The short report; see summary.h. */
#include "report/summary.h"

#include "report/report.h"

int fm_report_summary(const struct fm_profile *p, FILE *out, int rows)
{
    struct fm_flat_scope all = { FM_NONE, FM_NONE };
    struct fm_flat *flat = fm_flat_new(p, &all);
    struct fm_names *names = fm_names_new(p, flat, FM_NAMES_FILES);
    struct fm_query query = { .qualified = true };
    struct fm_report r = { .p = p,
                           .scope = all,
                           .flat = flat,
                           .names = names,
                           .query = &query,
                           .style = fm_style_for(out, FM_COLOR_AUTO, 0),
                           .out = out };
    fm_query_sort(&query, "self", NULL);
    fm_query_limit(&query, rows);
    fm_query_run(&query, flat, names, &r.selection);
    fm_report_header(&r);
    fm_report_functions(&r);
    fm_selection_release(&r.selection);
    fm_query_release(&query);
    fm_names_free(names);
    fm_flat_free(flat);
    return ferror(out) ? FM_CANNOT_WRITE : 0;
}
