/*
 * The way from the agent to everything that is not needed inside a running program: libfathom.so,
 * a plain library beside the agent that turns a snapshot of a live store into a file. It is loaded
 * only when the program asks for a result, so the agent itself stays small and free of
 * dependencies.
 *
 * Threads: called with the GIL, which is held until the result is there.
 */
#ifndef FM_AGENT_BRIDGE_H
#define FM_AGENT_BRIDGE_H

#include "target/agent/python.h"

#include <stdbool.h>

/* [(snapshot, …), …] and a format's name → bytes of a file in that format, the snapshots added up.
 * NULL with an exception. */
PyObject *fm_bridge_convert(PyObject *snapshots, const char *format);

/* Write them to a file; the format follows from its name. −1 with an exception. */
int fm_bridge_save(PyObject *snapshots, const char *path, int overwrite);

/* What is alive in the heap store of this process, which lies at `path` (target/library/alive.h), or its
 * calling contexts (contexts.h), as bytes. NULL with an exception. */
PyObject *fm_bridge_alive(const char *path, bool contexts);

/* Make a recording of the heap stores in a folder, whose first is this process's. −1 with an
 * exception. */
int fm_bridge_late(const char *folder, const char *path, int overwrite);

/* The path of a library that lies beside this one. */
int fm_bridge_find(const char *name, char *path, size_t size);

#endif
