/*
 * Keeps what is known of ended threads small: a server that makes a thread for each request would otherwise
 * fill memory with records and stacks of threads, each seen once.
 *
 * When there are FM_FOLD_THREADS more ended threads than last time, all that ended are put together by name,
 * numbers left out: "Thread-12 (work)" and "Thread-13 (work)" become one record, "Thread-… (work)", that
 * knows for how many it stands. Equal stacks become one row. Nothing that was counted is lost; what can no
 * longer be told is which of these threads it was.
 */
#ifndef FM_SAMPLER_FOLD_H
#define FM_SAMPLER_FOLD_H

#include "sampler/target.h"

#define FM_FOLD_THREADS 1000u /* that ended, each with a record of its own */
#define FM_FOLD_NAMES   200u  /* of folded records; the rest is "other threads" */

/* Between two rounds: numbers of threads and rows of the tally change. Mostly there is nothing to do. */
void fm_fold_ended(struct fm_target *t);

#endif
