/*
 * What reports of a timeline share: the stretch of time that is shown, lanes and functions by name.
 */
#ifndef FM_REPORT_TIMELINE_H
#define FM_REPORT_TIMELINE_H

#include "show/report/report.h"
#include "show/report/timeline/phases.h"

/* "MainThread", with the process in front where there are several; for a page. */
void fm_timeline_lane_name(const struct fm_report *r, const struct fm_lane *lane,
                           struct fm_buffer *out);

/* "2.5 s", with as many digits as `step_ns` has: instants that are told apart on an axis. */
void fm_timeline_instant(struct fm_buffer *out, uint64_t ns, uint64_t step_ns);

/* The phases of the stretch that is shown, in so many columns. */
int fm_timeline_phases(const struct fm_report *r, uint32_t columns, struct fm_phases *ph,
                       struct fm_error *err);

#endif
