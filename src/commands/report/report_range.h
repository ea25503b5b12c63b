/*
 * `fathom report --from T --to T`, and the timeline that they, --timeline and --slowest are of.
 */
#ifndef FM_COMMANDS_REPORT_RANGE_H
#define FM_COMMANDS_REPORT_RANGE_H

#include "commands/report/report_options.h"

/* Is a timeline needed? */
bool fm_report_range_is_asked(const struct fm_report_options *o);

/* What does not go together, whatever the recording holds. */
int fm_report_range_check(const struct fm_report_options *o, struct fm_error *err);

/* Open the timeline of `*p` and find the stretch that was asked for. A report of the timeline keeps it in `*t`;
 * for any other `*p` becomes the profile of the stretch. A sentence if the recording has none. */
int fm_report_range_open(const struct fm_report_options *o, struct fm_profile **p,
                         struct fm_timeline **t, struct fm_report_range *range,
                         struct fm_error *err);

#endif
