/* Texts as pickle protocol 0 has them: a line, with backslashes for what a line cannot hold. */
#ifndef FM_FORMATS_PICKLE_TEXT_H
#define FM_FORMATS_PICKLE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* Undo backslashes; false if one is broken. Of "raw-unicode-escape" (UNICODE) only \u and \U are
 * special, and bytes are Latin-1; of a Python 2 string the usual ones are, and bytes are bytes. */
bool fm_pickle_unescape(const char *s, size_t len, bool unicode, struct fm_buffer *out);

#endif
