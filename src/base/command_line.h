/*
 * Command lines without their arguments: passwords, keys, names of customers.
 *
 * What stays is what ran: the program; of a Python or a shell also its plain flags and the script
 * or, behind -m, the module. "…" stands for what was there. Doing it twice changes nothing.
 *
 * Nothing is allocated: it is also used inside profiled processes.
 */
#ifndef FM_BASE_COMMAND_LINE_H
#define FM_BASE_COMMAND_LINE_H

#include <stddef.h>

/* `command` is quoted for a shell, or its words are just joined by spaces. What does not fit into
 * `text` is left out. */
void fm_command_line_redact(const char *command, char *text, size_t bytes);

/* What that takes at most of a line of `len` bytes: "-Xa" becomes "-X …". */
#define FM_COMMAND_LINE_REDACTED_BYTES(len) ((len)*2 + 8)

#endif
