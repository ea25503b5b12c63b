/*
 * Which lines of Python source belong to one statement.
 *
 * A logical line goes on over a newline inside brackets, inside a triple-quoted string and after a
 * backslash; that is a matter of lexing alone, so no parser is needed. An f-string that nests its
 * own kind of quote (3.12) is read as two strings with something between them, which comes to the
 * same.
 *
 * Usable inside a profiled process: one pass, no allocation, no libc but memcmp.
 */
#ifndef FM_BASE_STATEMENTS_H
#define FM_BASE_STATEMENTS_H

#include <stddef.h>
#include <stdint.h>

/* Number of lines in the text; a last line without newline counts. */
size_t fm_statements_lines(const char *text, size_t len);

/* For each line i (from 0) the number (from 0) of the line on which its logical line begins. Writes
 * at most `count` entries. */
void fm_statements_map(const char *text, size_t len, uint32_t *ret_first, size_t count);

#endif
