/*
 * The short report that `fathom run` prints when the program has ended.
 */
#ifndef FM_REPORT_SUMMARY_H
#define FM_REPORT_SUMMARY_H

#include <stdio.h>

#include "record/model/profile.h"

/* The header and the `rows` functions with the largest self time; where lines were recorded, the
 * hottest lines too (at most ten of each), or instead if calls were not. Where memory was recorded, the
 * `rows` lines with most of it, and of the others a few behind them. What is of memory is taken out of
 * the profile. 0, or negative if writing failed. */
int fm_report_summary(struct fm_profile *p, FILE *out, int rows);

#endif
