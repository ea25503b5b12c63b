/*
 * A log of every look, for those who want to compare it with what the program says of itself
 * (tests/oracle/looks.py): FATHOM_LOOK_LOG=FILE, one line each: `ns pid tid proof state
 * frame;frame;frame`, oldest frame first.
 */
#ifndef FM_SAMPLER_LOOK_LOG_H
#define FM_SAMPLER_LOOK_LOG_H

#include "watch/sampler/target.h"

/* What the looker of the target just saw of the thread. Does nothing unless asked for. */
void fm_look_log_stack(const struct fm_target *t, const struct fm_watched_thread *th);
/* A look at which the thread could not be read. */
void fm_look_log_lost(const struct fm_target *t, const struct fm_watched_thread *th);

#endif
