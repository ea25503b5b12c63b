/*
 * The calling contexts of a heap store, while its process runs, for the tests that fathom.pytest_plugin measures: two
 * marshal tuples behind one another that only the Python package reads,
 *
 *     ((file, name), …)                                                of functions
 *     ((caller's place here or −1, function's, line, bytes alive, bytes at the peak), …)
 *
 * A caller comes before what it calls; what has neither bytes nor callees with some is left out.
 */
#ifndef FM_LIBRARY_CONTEXTS_H
#define FM_LIBRARY_CONTEXTS_H

#include "base/buffer.h"
#include "base/error.h"

int fm_contexts_save(const char *path, struct fm_buffer *out, struct fm_error *err);

#endif
