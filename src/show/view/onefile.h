/*
 * A report in one file: the page with the engine and the recordings in it, for a browser without a
 * server. viewer/ENGINE.md, "One file", describes the encoding.
 */
#ifndef FM_VIEW_ONEFILE_H
#define FM_VIEW_ONEFILE_H

#include <stdbool.h>

#include "show/view/contents.h"

/* More bytes of single calls make a page slow to open; it has levels of detail instead, and says so. */
#define FM_ONEFILE_EVENTS ((uint64_t)32 << 20)

/* The file appears whole or not at all; an existing one is only replaced if `overwrite`. */
int fm_onefile_write(const struct fm_contents *contents, const char *path, bool overwrite,
                     struct fm_error *err);

#endif
