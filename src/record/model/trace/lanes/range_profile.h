/*
 * The profile of a stretch of time: the processes, threads, functions and contexts of the whole, to which lanes add
 * what they have of the stretch.
 */
#ifndef FM_MODEL_TRACE_RANGE_PROFILE_H
#define FM_MODEL_TRACE_RANGE_PROFILE_H

#include "record/model/profile.h"

/* A copy with the same numbers of strings, functions, processes, threads and nodes, without any values. What is
 * not known by time (lines, waits, memory, regions, what recording cost) is left out. Caller frees. */
struct fm_profile *fm_range_profile_new(const struct fm_profile *p);

/* Contexts in which nothing happened go. */
void fm_range_profile_end(struct fm_profile *p);

#endif
