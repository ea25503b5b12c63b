/*
 * Whole files with the numbers of their lines: the lines of all functions of one text, added up.
 * Times are without recorded callees, so that lines, files and threads add up.
 */
#ifndef FM_REPORT_ANNOTATED_H
#define FM_REPORT_ANNOTATED_H

#include "show/report/report.h"

struct fm_annotated_line {
    uint32_t line;
    int64_t hits, self_ns;
    int64_t samples, state_ns[FM_STATE_COUNT];
};

struct fm_annotated {
    uint32_t file;              /* string id */
    const struct fm_text *text; /* NULL if there is none, and then: */
    const char *why;
    int64_t self_ns;
    size_t first, n; /* in the lines of all */
};

struct fm_annotation {
    FM_VEC(struct fm_annotated) files; /* in order of name */
    FM_VEC(struct fm_annotated_line) lines;
};

void fm_annotation_init(struct fm_annotation *a, const struct fm_report *r);
void fm_annotation_release(struct fm_annotation *a);

#endif
