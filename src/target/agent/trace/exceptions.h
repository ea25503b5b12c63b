/*
 * Exceptions in a trace, each once: in the call that raises it, not in those it passes.
 *
 * An exception that is raised has a traceback of one entry by then; in every call that it passes another
 * is put in front. So one that is raised again later, by `raise` or out of a future, is not told again.
 * What ends iterations and closes generators is no exception to anybody who looks at a trace.
 *
 * Threads: the GIL.
 */
#ifndef FM_AGENT_TRACE_EXCEPTIONS_H
#define FM_AGENT_TRACE_EXCEPTIONS_H

#include "target/agent/collector.h"

/* One is raised, or passes, in the innermost call. */
void fm_trace_exception(struct fm_collector *c, struct fm_agent_thread *t, PyObject *exception);

#endif
