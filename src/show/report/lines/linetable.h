/*
 * The tables of lines that reports show: the functions of which lines were recorded, each with its
 * lines, added up over the processes shown.
 *
 * The time of a function is the sum of its lines'. In recursion a line that is active inside
 * another would count twice; then it is the function's own total time, where calls were recorded.
 *
 * `flat` presents these functions as rows to fm_query_run and fm_names_new, one per table and in
 * the same order: calls are hits, total and self are the lines'. Where processes were sampled,
 * lines have samples and states instead of hits; where lines were recorded as well, beside them:
 * then times are exact in the functions that have hits, and those of samples in others.
 */
#ifndef FM_REPORT_LINETABLE_H
#define FM_REPORT_LINETABLE_H

#include "record/model/derive/flat.h"
#include "record/model/lines.h"
#include "show/report/text.h"

struct fm_linetable {
    uint32_t func;
    const struct fm_line *rows; /* by line; of combined.rows */
    size_t n;
    int64_t hits;
    int64_t samples;
    int64_t time_ns; /* of the function: what its lines are shares of */
    int64_t self_ns; /* sum of its lines */
    bool marked;
};

struct fm_linetables {
    const struct fm_profile *p;
    struct fm_lines combined;
    FM_VEC(struct fm_linetable) all; /* in order of function */
    struct fm_flat flat;
    struct fm_texts *texts;
    bool sampled;  /* there are samples instead of hits */
    bool beside;   /* there are both */
    bool detailed; /* there is more than hits and time; if not, self is set to time */
    bool any_marked;
    int64_t program_ns; /* what a line's share of the program is a share of */
};

/* Of the processes in scope; `flat` is the table of functions of the same scope. */
struct fm_linetables *fm_linetables_new(const struct fm_profile *p,
                                        const struct fm_flat_scope *scope,
                                        const struct fm_flat *flat);
void fm_linetables_free(struct fm_linetables *tables);

/* Did the line run, as far as is known? */
static inline bool fm_line_ran(const struct fm_linetables *tables, const struct fm_line *row)
{
    return row->hits > 0 || ((tables->sampled || tables->beside) && row->total_ns > 0);
}

/* Is there anything to make tables of? */
static inline bool fm_linetables_exist(const struct fm_profile *p)
{
    return p->lines.rows.len || p->lines.marked.len;
}

/* Are lines the only thing that was recorded on purpose? */
bool fm_linetables_are_all(const struct fm_profile *p);

#endif
