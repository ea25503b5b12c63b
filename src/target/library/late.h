/*
 * The heap stores that fathom.memory() left in its folder, as a profile: of this process, and of
 * children that it forked meanwhile.
 */
#ifndef FM_LIBRARY_LATE_H
#define FM_LIBRARY_LATE_H

#include "base/error.h"
#include "record/model/profile.h"

int fm_late_load(struct fm_profile *p, const char *folder, const char *version,
                 struct fm_error *err);

#endif
