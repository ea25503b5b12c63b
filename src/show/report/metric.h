/*
 * Metrics that have a column of their own in every table (FM_PLACE_COLUMN of model/metrics.h): their
 * titles and cells for people, and their names and numbers for programs. Which of them a table has
 * is a set of bits: those with any number (columns of model/derive/flat.h, fm_profile_columns).
 *
 * Where a metric has a total, that is a second column: "pings" and "total pings", or for programs
 * "pings_bytes" and "total_pings_bytes".
 */
#ifndef FM_REPORT_METRIC_H
#define FM_REPORT_METRIC_H

#include <stdio.h>

#include "record/model/derive/flat.h"
#include "show/report/table.h"

/* A number of a metric for people: "1.2 ms", "12,345", "3.40 MiB", "56.7 %". `out` has room for
 * FM_NUMBER_BYTES. */
char *fm_number_of(char *out, enum fm_unit unit, int64_t value);

void fm_metric_columns(struct fm_table *t, uint64_t metrics);
/* `self` and `total` are by metric. */
void fm_metric_cells(struct fm_table *t, uint64_t metrics, const int64_t *self,
                     const int64_t *total);
void fm_metric_cells_empty(struct fm_table *t, uint64_t metrics);

/* Without totals (`totals` false, `total` NULL) where a row stands for itself: threads. */
void fm_csv_put_metric_titles(FILE *out, uint64_t metrics, bool totals);
void fm_csv_put_metrics(FILE *out, const struct fm_profile *p, uint64_t metrics,
                        const int64_t *self, const int64_t *total);
void fm_json_add_metrics(struct fm_buffer *out, const struct fm_profile *p, uint64_t metrics,
                         const int64_t *self, const int64_t *total);

/* What the nodes of a profile have of these metrics. */
struct fm_node_numbers {
    uint64_t metrics;
    int64_t *self[FM_METRIC_COUNT], *total[FM_METRIC_COUNT]; /* by node; NULL: none */
};
void fm_node_numbers_init(struct fm_node_numbers *all, const struct fm_profile *p);
void fm_node_numbers_init_of(struct fm_node_numbers *all, const struct fm_profile *p,
                             uint64_t metrics);
void fm_node_numbers_release(struct fm_node_numbers *all);
void fm_node_numbers_get(const struct fm_node_numbers *all, uint32_t node,
                         int64_t self[FM_METRIC_COUNT], int64_t total[FM_METRIC_COUNT]);

/* The same of whole threads: numbers by metric, one thread behind the other. Caller frees. */
int64_t *fm_thread_numbers_new(const struct fm_profile *p, uint64_t *metrics);

/* Titles and cells where a thread stands for itself: one column per metric. */
void fm_metric_thread_columns(struct fm_table *t, uint64_t metrics);
void fm_metric_thread_cells(struct fm_table *t, uint64_t metrics, const int64_t *numbers);

#endif
