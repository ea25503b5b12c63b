/*
 * Text of others where people read it: names of functions, files and threads, commands, source lines
 * and sentences about them may hold anything. Whatever prints such text passes it through here; this
 * is the one place that decides how it is shown.
 *
 * Characters that can be seen stay as they are. What steers a terminal (C0, DEL, C1), turns the
 * direction of writing, breaks a line or takes no place of its own becomes the escape that Python
 * writes for it: \n, \x1b, \u202e, \U000e0041; so do lone surrogates (\udcff) and bytes that are no
 * UTF-8 (\xff). The result is one line of valid UTF-8. A backslash stays one: it is for eyes, JSON
 * is exact.
 */
#ifndef FM_BASE_CLEAN_H
#define FM_BASE_CLEAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buffer.h"

/* Must this character not be printed as it is? */
bool fm_clean_is_hidden(uint32_t c);

/* Append what stands behind the backslash for such a character, or such a byte: "x1b". */
void fm_clean_add_escape(struct fm_buffer *out, uint32_t c);

/* Append `len` bytes of text, clean. */
void fm_clean_add(struct fm_buffer *out, const char *text, size_t len);

/* Print text, clean. */
void fm_clean_put(FILE *out, const char *text);

/* Print what the format makes, clean, and a newline. */
void fm_clean_say(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
