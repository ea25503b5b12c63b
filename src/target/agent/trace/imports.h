/*
 * Imports in a trace: the frozen function that finds and loads a module has a region in it, "import NAME",
 * as long as it runs. Modules that are loaded already do not come by there.
 *
 * Threads: the GIL.
 */
#ifndef FM_AGENT_TRACE_IMPORTS_H
#define FM_AGENT_TRACE_IMPORTS_H

#include "target/agent/trace/trace.h"

/* Is it that function? */
bool fm_trace_is_import(PyCodeObject *code);

/* Its call has begun, with this first argument (or NULL); and is about to end. */
void fm_trace_import_begins(struct fm_collector *c, struct fm_agent_thread *t, PyObject *name);
void fm_trace_import_ends(struct fm_collector *c, struct fm_agent_thread *t, uint64_t now);

#endif
