/*
 * The longest calls of the functions that were asked for, and how long all of their calls took.
 */
#ifndef FM_REPORT_SLOWEST_H
#define FM_REPORT_SLOWEST_H

#include "show/report/timeline/timeline.h"

#define FM_SLOWEST_MOST 1000u /* calls */

/* Of the functions of the report's selection, in its stretch of time. */
int fm_slowest_find(const struct fm_report *r, struct fm_durations *ret, struct fm_error *err);

/* Make `out` "a=1, b='x' → 2": the values that are known of a call. */
int fm_slowest_values(const struct fm_report *r, const struct fm_found_call *call,
                      struct fm_buffer *out, struct fm_error *err);

#endif
