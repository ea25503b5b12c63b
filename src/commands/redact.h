/*
 * Leaving the arguments of command lines out of a recording, by the rules of base/command_line.h.
 *
 * It is done to the command of the run, to those of all its processes, and to the source text of
 * "<string>", which is the code behind -c, and of other code that was made while the program ran. What
 * runs inside programs does the same before it writes anything. The fact "redacted" says so, and has
 * `fathom merge` do it to what a killed run left.
 */
#ifndef FM_COMMANDS_REDACT_H
#define FM_COMMANDS_REDACT_H

#include "record/model/profile.h"

#define FM_REDACT_FACT "redacted"

void fm_redact(struct fm_profile *p);

/* One command line, quoted for a shell or its words just joined by spaces; malloc'ed. */
char *fm_redact_command(const char *command);

#endif
