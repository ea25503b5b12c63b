/*
 * Text of the watched program on a terminal: names, paths and commands may hold anything. Here they
 * become characters that only ever take their place on the screen: what controls a terminal, turns
 * the direction of writing or takes no place becomes "?", as do bytes that are no UTF-8.
 */
#ifndef FM_TOP_CLEAN_H
#define FM_TOP_CLEAN_H

#include <stddef.h>
#include <wchar.h>

/* Which end is left out where there is no room: it is marked. */
enum fm_clean_cut { FM_CLEAN_CUT_END, FM_CLEAN_CUT_START };

/* Write `text` into `out` (room for `cap` characters, the ending NUL among them) in at most
 * `columns` columns; returns how many it takes. `mark` stands for what was left out: one column. */
int fm_clean(wchar_t *out, size_t cap, const char *text, int columns, enum fm_clean_cut cut,
             wchar_t mark);

/* Columns that `text` takes when cleaned. */
int fm_clean_width(const char *text);

#endif
