/*
 * What pstats calls a function: (file, line, name). Two functions may share one label: twins made
 * by exec, lambdas on one line, methods of a name on one line. pstats cannot tell them apart, so
 * whoever speaks pstats adds them up first.
 */
#ifndef FM_FORMATS_PSTATS_H
#define FM_FORMATS_PSTATS_H

#include "base/error.h"
#include "record/model/derive/flat.h"

/* A table with one row per label, in order of first appearance, which the caller frees; NULL if the
 * table is one already. Total times of functions that share a label are added, so time spent in
 * both at once counts twice. */
struct fm_flat *fm_pstats_combine(const struct fm_profile *p, const struct fm_flat *flat);

/* The profile in a pstats file; NULL with the reason in `err`. */
struct fm_profile *fm_pstats_load(const void *bytes, size_t len, const char *name,
                                  struct fm_error *err);

/* Sort the edges by callee and caller, and combine equal ones. */
void fm_pstats_sort_edges(struct fm_flat *flat);

#endif
