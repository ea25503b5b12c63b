/*
 * Text in the columns of a screen: cleaned first (base/clean.h), as it comes from the watched
 * program, then cut where there is no room.
 */
#ifndef FM_TOP_FIT_H
#define FM_TOP_FIT_H

#include <stddef.h>
#include <wchar.h>

/* Which end is left out where there is no room: it is marked. */
enum fm_fit_cut { FM_FIT_CUT_END, FM_FIT_CUT_START };

/* Write `text` into `out` (room for `cap` characters, the ending NUL among them) in at most
 * `columns` columns; returns how many it takes. `mark` stands for what was left out: one column. */
int fm_fit(wchar_t *out, size_t cap, const char *text, int columns, enum fm_fit_cut cut,
           wchar_t mark);

/* Columns that `text` takes when cleaned. */
int fm_fit_width(const char *text);

#endif
