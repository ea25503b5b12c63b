/*
 * The hottest lines of all functions shown, in order. Lines are ranked by the first sort key that
 * means something for a line (time, self, hits, min, max, suspended, percall), by default by the
 * time in the line itself: with callees, every line on the way to the work would come first.
 */
#ifndef FM_REPORT_HOTLINES_H
#define FM_REPORT_HOTLINES_H

#include "show/report/report.h"

struct fm_hotline {
    uint32_t table; /* index in the tables */
    const struct fm_line *row;
};

struct fm_hotlines {
    FM_VEC(struct fm_hotline) all; /* lines that were hit */
    size_t of;                     /* so many there were before cutting down to the hottest */
};

void fm_hotlines_init(struct fm_hotlines *hot, const struct fm_report *r);
void fm_hotlines_release(struct fm_hotlines *hot);

/* The line's text as shown, without the space in front; "" if there is none. */
const char *fm_hotline_text(const struct fm_report *r, const struct fm_hotline *line,
                            struct fm_buffer *out);

#endif
