/*
 * What is alive in a heap store, while its process runs, for fathom.memory_snapshot(): three marshal
 * tuples behind one another that only the Python package reads,
 *
 *     (live, blocks, peak, peak blocks, allocated, allocated blocks, Fathom's own bytes,
 *      bytes in which a block was sampled, or 0)
 *
 * and of lines and of functions ((file, line, name, bytes, blocks, bytes with callees), …): those that
 * have any.
 */
#ifndef FM_LIBRARY_ALIVE_H
#define FM_LIBRARY_ALIVE_H

#include "base/buffer.h"
#include "base/error.h"

struct fm_profile;

/* The store at `path` as it is now; NULL with an error. */
struct fm_profile *fm_alive_load(const char *path, struct fm_error *err);

/* A file as it is now; a process may go on with it meanwhile. */
int fm_alive_read(const char *path, struct fm_buffer *into, struct fm_error *err);

int fm_alive_save(const char *path, struct fm_buffer *out, struct fm_error *err);

#endif
