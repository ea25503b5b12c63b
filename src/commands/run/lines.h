/*
 * When `--lines` chose nothing: says so in the recording, and names the functions that come
 * nearest.
 */
#ifndef FM_COMMANDS_RUN_LINES_H
#define FM_COMMANDS_RUN_LINES_H

#include "record/model/profile.h"

/* Add a note of kind "lines" to a profile that should have lines and has none. */
void fm_run_lines_note(struct fm_profile *p, const char *patterns);

#endif
