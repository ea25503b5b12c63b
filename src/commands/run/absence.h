/*
 * Why no agent got into a Python in a run with --calls or --lines, as far as it can be told from the
 * program that was started: the system keeps privileged programs from being preloaded, and a static
 * one has no loader that would.
 */
#ifndef FM_COMMANDS_RUN_ABSENCE_H
#define FM_COMMANDS_RUN_ABSENCE_H

#include "commands/run/command.h"
#include "record/model/profile.h"

#define FM_RUN_ABSENCE "no Python was profiled" /* the beginning of such a note */

/* If nothing was profiled and nothing in `p` says why: add a note of kind "unprofiled" that does. */
void fm_run_absence_note(struct fm_profile *p, const struct fm_run_command *command);

#endif
