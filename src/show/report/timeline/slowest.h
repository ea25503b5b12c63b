/*
 * The longest calls of the functions that were asked for, and how long all of their calls took.
 */
#ifndef FM_REPORT_SLOWEST_H
#define FM_REPORT_SLOWEST_H

#include "show/report/timeline/timeline.h"

#define FM_SLOWEST_MOST 1000u /* calls */

/* Of the functions of the report's selection, in its stretch of time. */
int fm_slowest_find(const struct fm_report *r, struct fm_durations *ret, struct fm_error *err);

/* Where bucket `bucket` of the durations begins, ns. */
static inline double fm_slowest_bucket_ns(unsigned bucket)
{
    double octave = (double)(1ull << (bucket / 2 < 63 ? bucket / 2 : 63));
    return bucket == 0 ? 0 : bucket % 2 ? octave * 1.5 : octave;
}

/* The time that a share of the calls did not exceed, as near as the buckets tell. */
double fm_slowest_quantile_ns(const struct fm_durations *d, double share);

#endif
