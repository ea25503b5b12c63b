/*
 * What pstats calls a function: (file, line, name). Two functions may share one label: twins made
 * by exec, lambdas on one line, methods of a name on one line. pstats cannot tell them apart, so
 * whoever speaks pstats adds them up first.
 */
#ifndef FM_FORMATS_PSTATS_H
#define FM_FORMATS_PSTATS_H

#include "model/flat.h"

/* A table with one row per label, in order of first appearance, which the caller frees; NULL if the
 * table is one already. Total times of functions that share a label are added, so time spent in
 * both at once counts twice. */
struct fm_flat *fm_pstats_unite(const struct fm_profile *p, const struct fm_flat *flat);

#endif
