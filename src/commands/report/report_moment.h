/*
 * The time of `fathom report --at`: "2.5s", "300ms", "50%", and "1s..2s", from one to the other.
 */
#ifndef FM_COMMANDS_REPORT_MOMENT_H
#define FM_COMMANDS_REPORT_MOMENT_H

#include "base/error.h"
#include "record/model/profile.h"

struct fm_report_moment {
    bool range;
    struct fm_moment from, to; /* `from` of a range only */
};

/* One time. False if the text is none. */
bool fm_moment_parse(struct fm_moment *m, const char *text);

/* False if the text is no time. */
bool fm_report_moment_parse(struct fm_report_moment *m, const char *text);

/* Give the contexts what they had then (model/history.h). A sentence if the recording does not say:
 * `name` is that of the file. */
int fm_report_moment_show(const struct fm_report_moment *m, struct fm_profile *p, const char *name,
                          struct fm_shown *ret_from, struct fm_shown *ret_to, struct fm_error *err);

#endif
