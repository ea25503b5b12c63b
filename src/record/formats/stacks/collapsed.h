/* Collapsed stacks: collapsed.c writes them, collapsed_read.c reads them. */
#ifndef FM_FORMATS_COLLAPSED_H
#define FM_FORMATS_COLLAPSED_H

#include "base/error.h"
#include "record/model/profile.h"

/* Stands alone where the stack has no frame: a thread that was looked at before its first Python
 * function or after its last. Of a line without any frame flamegraph.pl draws nothing, and speedscope
 * a frame without a name. */
#define FM_COLLAPSED_NO_FRAME "<no Python frame>"

bool fm_collapsed_recognise(const void *bytes, size_t len);
struct fm_profile *fm_collapsed_load(const void *bytes, size_t len, const char *name,
                                     struct fm_error *err);

#endif
