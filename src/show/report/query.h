/*
 * Which rows of a table to show, and in which order: sort keys and restrictions, as pstats has them
 * and then some.
 *
 * Every metric is a key by its name, and "total_…" if it has a total, but where pstats means
 * something else by that word. A sort key may be shortened to any beginning that means one thing only; a beginning that is
 * unique among pstats' own keys keeps its meaning there. Restrictions apply one after the other: a
 * whole number keeps that many rows, a fraction that share of them (rounded as pstats rounds), and
 * anything else is a regular expression searched for in the standard name.
 */
#ifndef FM_REPORT_QUERY_H
#define FM_REPORT_QUERY_H

#include "base/buffer.h"
#include "base/error.h"
#include "record/model/derive/flat.h"
#include "show/report/names.h"

enum fm_sort_field {
    FM_SORT_CALLS,
    FM_SORT_PRIMITIVE,
    FM_SORT_TIME, /* pstats' "time": as self, unless fm_query_settle_time says otherwise */
    FM_SORT_SELF,
    FM_SORT_TOTAL,
    FM_SORT_PERCALL, /* total time per primitive call */
    FM_SORT_FILE,
    FM_SORT_LINE,
    FM_SORT_NAME,
    FM_SORT_STDNAME,
    FM_SORT_METRICS, /* of every metric what is its own, and its total behind it */
    FM_SORT_MIN = FM_SORT_METRICS + 2 * FM_METRIC_MIN,
    FM_SORT_MAX = FM_SORT_METRICS + 2 * FM_METRIC_MAX,
    FM_SORT_SUSPENDED = FM_SORT_METRICS + 2 * FM_METRIC_SUSPENDED,
    FM_SORT_LAST = FM_SORT_METRICS + 2 * FM_METRIC_COUNT - 1,
};

enum fm_restriction_kind { FM_RESTRICT_COUNT, FM_RESTRICT_FRACTION, FM_RESTRICT_PATTERN };

struct fm_restriction {
    enum fm_restriction_kind kind;
    int64_t count;
    double fraction;
    char *text;    /* of a pattern */
    void *pattern; /* compiled */
};

struct fm_query {
    FM_VEC(enum fm_sort_field) sorts; /* empty: the order of the recording */
    struct fm_buffer title;           /* "internal time, function name" */
    bool reverse;
    bool qualified; /* patterns may match the qualified name too */
    /* Before anything else: the rows to look at; NULL: all. */
    bool (*only)(const struct fm_flat_row *row, void *data);
    void *only_data;
    FM_VEC(struct fm_restriction) restrictions;
};

void fm_query_release(struct fm_query *q);

/* Add sort keys, separated by commas. FM_BAD_QUERY if one is unknown or ambiguous. */
int fm_query_sort(struct fm_query *q, const char *keys, struct fm_error *err);

/* The names of all keys, for people. */
void fm_query_add_keys(struct fm_buffer *out);

/* Let "time" mean time with callees, as it does in tables of lines. */
void fm_query_settle_time(struct fm_query *q);

/* Let "self", "time" and "total" mean another metric, and "calls" a second one. */
void fm_query_settle_metrics(struct fm_query *q, enum fm_metric time, enum fm_metric calls);

/* The metric of the first key; FM_METRIC_COUNT if that is none. */
enum fm_metric fm_query_metric(const struct fm_query *q);

/* Add a restriction: "10", "0.25" or a regular expression. */
int fm_query_restrict(struct fm_query *q, const char *text, struct fm_error *err);
void fm_query_limit(struct fm_query *q, int64_t count);

/* The rows that are left, in order. */
struct fm_selection {
    FM_VEC(uint32_t) rows;
    struct fm_buffer message; /* pstats' lines about order and restrictions */
};

void fm_selection_release(struct fm_selection *s);
void fm_query_run(const struct fm_query *q, const struct fm_flat *flat, struct fm_names *names,
                  struct fm_selection *out);

/* Sort edges (of one function) by the same keys; names are those of the row at the other end. */
void fm_query_sort_edges(const struct fm_query *q, struct fm_names *names,
                         struct fm_flat_edge *edges, size_t n, bool by_caller);

#endif
