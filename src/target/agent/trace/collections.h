/*
 * Garbage collections in a trace: when they begin and end, and what they found.
 *
 * By an entry in gc.callbacks, made before events come and taken out after them, so that nothing of it is
 * in the trace. `gc` is not left imported: the program's own import of it is as without us.
 *
 * Threads: the GIL.
 */
#ifndef FM_AGENT_TRACE_COLLECTIONS_H
#define FM_AGENT_TRACE_COLLECTIONS_H

#include "target/agent/collector.h"

/* Raise nothing. */
void fm_trace_collections_watch(void);
void fm_trace_collections_leave(void);

#endif
