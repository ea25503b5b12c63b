/*
 * The columns of a table of lines: which there are, what stands in them, and in which unit.
 *
 * Times of one column share one unit and one number of digits, so that the eye can compare them
 * without reading; the unit stands in the title.
 */
#ifndef FM_REPORT_LINECOLUMNS_H
#define FM_REPORT_LINECOLUMNS_H

#include "base/error.h"
#include "show/report/lines/linetable.h"
#include "show/report/number.h"

/*        name          as typed     title */
/* clang-format off */
#define FM_LINE_COLUMN_LIST(X)                                                                     \
    X(HITS,             "hits",      "Hits")                                                       \
    X(TIME,             "time",      "Time")                                                       \
    X(SELF,             "self",      "Self")                                                       \
    X(PERHIT,           "perhit",    "Per Hit")                                                    \
    X(PERCENT,          "percent",   "% Time")                                                     \
    X(PROGRAM,          "program",   "% Program")                                                  \
    X(MIN,              "min",       "Min")                                                        \
    X(MAX,              "max",       "Max")                                                        \
    X(P50,              "p50",       "P50")                                                        \
    X(P99,              "p99",       "P99")                                                        \
    X(SUSPENDED,        "suspended", "Suspended")                                                  \
    X(SAMPLES,          "samples",   "Samples")                                                    \
    X(STATES,           "states",    "States")                                                     \
    X(HEAP,             "mem",       "Mem usage") /* after the last visit */                       \
    X(HEAP_MOST,        "memmax",    "Max usage")                                                  \
    X(INCREMENT,        "increment", "Increment")                                                  \
    X(ALLOCATED,        "allocated", "Allocated")                                                  \
    X(FREED,            "freed",     "Freed")                                                      \
    X(TRANSIENT,        "transient", "Transient") /* the most above its beginning, of one visit */
/* clang-format on */

enum fm_line_column {
#define X(name, typed, title) FM_LINE_##name,
    FM_LINE_COLUMN_LIST(X)
#undef X
        FM_LINE_COLUMN_COUNT
};

enum fm_time_unit { FM_TIME_AUTO, FM_TIME_S, FM_TIME_MS, FM_TIME_US, FM_TIME_NS };

/* A list of columns, each at most once. */
struct fm_line_columns {
    enum fm_line_column list[FM_LINE_COLUMN_COUNT];
    int n;
    bool chosen; /* these and no others; otherwise in addition to the usual ones */
};

/* "hits,time,p99" chooses, "+p99,max" adds. */
int fm_line_columns_parse(struct fm_line_columns *columns, const char *text, struct fm_error *err);
/* "s", "ms", "us", "ns" or "auto". */
int fm_time_unit_parse(enum fm_time_unit *unit, const char *text, struct fm_error *err);

/* The columns to show for a table: those asked for, and without a choice self and suspended where
 * they say something. */
struct fm_line_columns fm_line_columns_for(const struct fm_line_columns *asked,
                                           const struct fm_linetables *tables,
                                           const struct fm_linetable *table);

/* How the numbers of one column are written. */
struct fm_scale {
    double unit_ns;
    const char *unit;
    int digits;
};

/* For a column whose largest number is `max_ns`. */
struct fm_scale fm_scale_for(enum fm_time_unit unit, double max_ns);
/* "" for nothing, "<0.001" for what would be written as nothing. */
char *fm_scale_write(const struct fm_scale *scale, char *out, double ns);

/* What stands in a column: a count, nanoseconds, or for shares the part in nanoseconds. States are
 * no number. */
double fm_line_value(const struct fm_linetables *tables, const struct fm_line *row,
                     enum fm_line_column column);

/* A column of one table: its title with the unit, and its cells. */
struct fm_line_format {
    enum fm_line_column column;
    struct fm_scale scale; /* of times */
    double whole;          /* of shares */
    bool as_bar;           /* of states */
    char title[32];
};

struct fm_line_format fm_line_format_for(const struct fm_linetables *tables,
                                         const struct fm_linetable *table,
                                         enum fm_line_column column, enum fm_time_unit unit);
char *fm_line_write(const struct fm_line_format *format, const struct fm_linetables *tables,
                    const struct fm_line *row, char *out);

#endif
