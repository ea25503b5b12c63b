/*
 * Where Fathom's own parts are: the preload library and the agents, which lie in one folder.
 *
 * Looked at, in this order: $FATHOM_AGENTS; python/fathom beside the executable (a build folder);
 * lib/python3…/site-packages/fathom and dist-packages/fathom below the prefix of the executable.
 */
#ifndef FM_OS_LOCATE_H
#define FM_OS_LOCATE_H

#include "base/error.h"

#define FM_LOCATE_PRELOAD "libfathom_preload.so"
#define FM_LOCATE_HEAP    "libfathom_heap.so" /* first, and with --memory alone */

/* The folder, absolute and without links, malloc'ed; NULL with an error saying where it looked. */
char *fm_locate_agents(struct fm_error *err);

#endif
