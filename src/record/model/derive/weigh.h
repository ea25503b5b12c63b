/*
 * Another metric in the place of time, for those who know but one: call graphs, and formats that
 * weigh stacks with one number.
 *
 * Afterwards a context's total is that of the metric, and what is about time is gone: samples,
 * states, lines, shortest and longest calls. If it is no time, the fact "unit" says what it is, by
 * which writers know not to call it one. A state is time: only what threads spent in it remains.
 */
#ifndef FM_MODEL_WEIGH_H
#define FM_MODEL_WEIGH_H

#include "base/error.h"
#include "record/model/profile.h"

/* FM_USAGE if there is no metric of that name, FM_UNSUPPORTED if the recording has none of it or it
 * does not add up. */
int fm_profile_weigh(struct fm_profile *p, const char *metric, struct fm_error *err);

#endif
