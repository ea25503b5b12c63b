/*
 * Which lines of two recordings are the same, in functions that are (model/derive/pairs.h). Where both recordings hold the
 * source: those with equal text, in their order, and then those that are alike for at least a third, at their
 * beginning and end: they were edited. So a line that others pushed down is compared with itself. Where the source
 * of a line is not known: those that are as far from where the function begins, or have the same number, whichever fits more.
 */
#ifndef FM_REPORT_DIFF_LINES_H
#define FM_REPORT_DIFF_LINES_H

#include "show/report/diff/diff.h"

/* A line of a function. */
struct fm_diff_line {
    uint32_t func; /* of its side */
    uint32_t name; /* of the function, among those of both */
    uint32_t line;
    uint32_t tag;    /* the caller's */
    uint32_t number; /* result: of the line, among those of both */
};

typedef FM_VEC(struct fm_diff_line) fm_diff_lines;

/* Number them; how many numbers there are. They are sorted by name and line. */
uint32_t fm_diff_match_lines(const struct fm_diff *d, fm_diff_lines lines[FM_SIDES]);

#endif
