/* Collapsed stacks: collapsed.c writes them, collapsed_read.c reads them. */
#ifndef FM_FORMATS_COLLAPSED_H
#define FM_FORMATS_COLLAPSED_H

#include "base/error.h"
#include "model/profile.h"

bool fm_collapsed_recognise(const void *bytes, size_t len);
struct fm_profile *fm_collapsed_load(const void *bytes, size_t len, const char *name,
                                     struct fm_error *err);

#endif
