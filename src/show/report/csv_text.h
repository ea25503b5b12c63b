/*
 * Writing CSV: text, times, and what every report says of a function. Used by csv.c and
 * csv_samples.c.
 *
 * Text is as clean as in tables (base/clean.h), so a row is a line and a terminal is safe; who needs
 * the very bytes takes JSON. A cell that a spreadsheet would compute gets an apostrophe in front,
 * as OWASP advises; numbers are written by others and stay numbers.
 */
#ifndef FM_REPORT_CSV_TEXT_H
#define FM_REPORT_CSV_TEXT_H

#include "show/report/report.h"

void fm_csv_put_text(const struct fm_report *r, const char *text);
void fm_csv_put_seconds(const struct fm_report *r, int64_t ns);     /* with a comma in front */
void fm_csv_put_function(const struct fm_report *r, uint32_t func); /* name, file, first line */

/* The text of a line, empty if there is none; with a comma in front. */
void fm_csv_put_source(const struct fm_report *r, const struct fm_text *text, uint32_t line);

/* Every state in seconds, and the titles of these columns; with a comma in front. */
void fm_csv_put_state_titles(const struct fm_report *r);
void fm_csv_put_states(const struct fm_report *r, const int64_t state_ns[FM_STATE_COUNT]);

void fm_csv_put_regions(const struct fm_report *r); /* regions.c */

/* Reports of samples (csv_samples.c). */
void fm_csv_put_sampled(const struct fm_report *r);
void fm_csv_put_state_table(const struct fm_report *r);
void fm_csv_put_places(const struct fm_report *r, enum fm_part part);

#endif
