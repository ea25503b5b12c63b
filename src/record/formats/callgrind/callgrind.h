/* The callgrind format, version 1: what its writer (callgrind.c) and its reader share. */
#ifndef FM_FORMATS_CALLGRIND_H
#define FM_FORMATS_CALLGRIND_H

#include "record/formats/format.h"

#define FM_CALLGRIND_CREATOR "fathom"
#define FM_CALLGRIND_NO_FILE "~"    /* the file of builtins, as in pstats */
#define FM_CALLGRIND_HITS    "hits" /* the event that counts how often a line began */

bool fm_callgrind_recognise(const void *bytes, size_t len);
struct fm_profile *fm_callgrind_load(const void *bytes, size_t len, const char *name,
                                     struct fm_error *err);

#endif
