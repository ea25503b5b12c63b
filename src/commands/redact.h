/*
 * Leaving the arguments of command lines out of a recording: passwords, keys, names of customers.
 *
 * What stays is what ran: the program; of a Python or a shell also its plain flags and the script
 * or, behind -m, the module. "…" stands for what was there. It is done to the command of the run, to
 * those of all its processes, and to the source text of "<string>", which is the code behind -c.
 * The fact "redacted" says so, and has `fathom merge` do the same to what a killed run left.
 */
#ifndef FM_COMMANDS_REDACT_H
#define FM_COMMANDS_REDACT_H

#include "record/model/profile.h"

#define FM_REDACT_FACT "redacted"

void fm_redact(struct fm_profile *p);

/* One command line, quoted for a shell or its words just joined by spaces; malloc'ed. */
char *fm_redact_command(const char *command);

#endif
