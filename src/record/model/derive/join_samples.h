/*
 * Samples beside exact numbers: one run that both recorded calls (or lines) inside its processes
 * and sampled them from outside becomes one profile.
 *
 * A process known to both stays one process with the trees of the exact recording; a sampled path
 * is looked up in them by its functions (calls of C functions, which samples do not show, are
 * passed over) and only added where it is missing. Samples and states are added to the nodes and
 * lines; times stay exact. A process that was only sampled comes with its own trees and times, and
 * so does a thread of a known process that only the samples have: that of asyncio's tasks. Where
 * lines were recorded but not every call, times of trees are those of the samples, times of lines
 * exact in the functions that have them. Notes come along.
 */
#ifndef FM_MODEL_JOIN_SAMPLES_H
#define FM_MODEL_JOIN_SAMPLES_H

#include "record/model/profile.h"

void fm_profile_join_samples(struct fm_profile *into, const struct fm_profile *sampled);

#endif
