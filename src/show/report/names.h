/*
 * What the functions of a table are called in a report. Names are spelled when first asked for.
 *
 * Stripping folders never makes two files look alike: a file is shown by the shortest end of its
 * path, in whole components, that no other file in the table shares.
 */
#ifndef FM_REPORT_NAMES_H
#define FM_REPORT_NAMES_H

#include "record/model/derive/flat.h"

enum fm_names_strip {
    FM_NAMES_WHOLE,  /* paths as recorded */
    FM_NAMES_FILES,  /* file names, longer where two files would look alike */
    FM_NAMES_LABELS, /* file names, longer only where two functions would look alike, as they do
                        after pstats' strip_dirs */
};

struct fm_names;

struct fm_names *fm_names_new(const struct fm_profile *p, const struct fm_flat *flat,
                              enum fm_names_strip strip);
void fm_names_free(struct fm_names *names);

/* pstats' standard name: "file:line(name)" or "{built-in …}". */
const char *fm_names_std(struct fm_names *names, uint32_t row);
size_t fm_names_std_len(struct fm_names *names, uint32_t row);

const char *fm_names_file(const struct fm_names *names, uint32_t row); /* "~" for builtins */
const char *fm_names_name(const struct fm_names *names, uint32_t row); /* as pstats: co_name */
const char *fm_names_function(struct fm_names *names, uint32_t row);   /* qualified */
const char *fm_names_place(struct fm_names *names,
                           uint32_t row); /* "file:line", "built-in" or "" */
uint32_t fm_names_line(const struct fm_names *names, uint32_t row);

#endif
