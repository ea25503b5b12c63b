/*
 * Opening what a user named on the command line: one recording, or several added up.
 */
#ifndef FM_COMMANDS_INPUTS_H
#define FM_COMMANDS_INPUTS_H

#include <stdbool.h>

#include "base/error.h"
#include "record/model/file/file.h"
#include "record/model/profile.h"

/* Open the NULL-terminated `files` and add them up. pstats adds the files behind the first from the
 * last to the second; `as_pstats` does the same, so that functions come in its order. Of recordings
 * at least `parts` (enum fm_file_part) are read. A recording of a run that never finished is refused
 * with the command that completes it. */
struct fm_profile *fm_inputs_open(char *const *files, bool as_pstats, unsigned parts,
                                  struct fm_error *err);

/* Say on stderr what a cut-off or damaged recording lacks, for outputs that have no place for it. */
void fm_inputs_warn(const char *verb, const struct fm_profile *p);

/* The note that says so, or NULL if the recording is whole. */
const char *fm_inputs_lack(const struct fm_profile *p);

/* Did the launcher of this recording die before it could gather the processes? */
bool fm_inputs_unfinished(const struct fm_profile *p);

#endif
