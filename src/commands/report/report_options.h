/*
 * What a user asked of `fathom report`, parsed and checked but not yet looked up in any recording.
 */
#ifndef FM_COMMANDS_REPORT_OPTIONS_H
#define FM_COMMANDS_REPORT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "commands/report/report_moment.h"
#include "show/report/report.h"

enum fm_layout { FM_LAYOUT_TABLE, FM_LAYOUT_PSTATS, FM_LAYOUT_JSON, FM_LAYOUT_CSV };

enum fm_edit_kind { FM_EDIT_FOLD, FM_EDIT_FILTER, FM_EDIT_ROOT };

struct fm_edit_step {
    enum fm_edit_kind kind;
    const char *glob;
};

struct fm_report_options {
    enum fm_part part;
    enum fm_layout layout;
    bool part_said;       /* the user said which */
    const char *function; /* of --callers=, --callees=, --lines=; NULL: every function */
    struct fm_lines_view view;
    const char *of_lines; /* an option that only tables of lines have, or NULL */
    bool skip_zero;
    struct fm_query query;
    bool sorted, limited; /* the user said so */
    bool strip_dirs;
    int edges_max, depth_max, rows_max, width;
    unsigned states;          /* only these count as time, a bit each; 0: all */
    bool memory;              /* the report is of memory */
    enum fm_memory_rows rows; /* … by line, function or type */
    enum fm_instant at;
    bool at_said;
    struct fm_report_moment moment; /* of FM_AT_TIME */
    struct fm_moment from, to;      /* the stretch of the timeline that it is of … */
    bool from_said, to_said;
    bool together; /* it is known when all processes shown had most */
    double min_percent;
    int64_t process, thread; /* -1: all */
    enum fm_color_mode color;
    FM_VEC(struct fm_edit_step) edits;
    char *const *files; /* NULL-terminated, at least one */
};

/* 0; 1 if help was printed and nothing is left to do; negative on an error. A sentence about a
 * wrong command line has FM_USAGE. */
int fm_report_options_parse(struct fm_report_options *o, int argc, char **argv,
                            struct fm_error *err);

/* Does it all go together, whatever the recordings hold? */
int fm_report_options_check(struct fm_report_options *o, struct fm_error *err);

/* Let the report be of memory. A sentence if it cannot be. */
int fm_report_options_take_memory(struct fm_report_options *o, struct fm_error *err);

/* What was left open, once the part to show is certain: an order and a length that suit a page. The
 * lines of marked functions are shown whatever their number. */
int fm_report_options_settle(struct fm_report_options *o, bool marked, struct fm_error *err);
void fm_report_options_release(struct fm_report_options *o);

#endif
