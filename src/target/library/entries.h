/*
 * The rows and edges of a profile for getstats(), as a marshal list that only the Python package
 * reads: [((file, line, name, qualname, twin, is_c), calls, recursive, total_s, self_s,
 * [(row number of the callee, calls, recursive, total_s, self_s), …]), …]
 */
#ifndef FM_LIBRARY_ENTRIES_H
#define FM_LIBRARY_ENTRIES_H

#include "base/buffer.h"
#include "record/model/profile.h"

int fm_entries_save(const struct fm_profile *p, struct fm_buffer *out);

#endif
