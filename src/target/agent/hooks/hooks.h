/*
 * Where events come from. Exactly one of these files is in an agent's build for its Python:
 *   hooks_monitoring.c   3.12 and later: sys.monitoring with C callbacks
 *   hooks_3_11.c         3.11: the profile function, or the frame-evaluation hook without C calls
 *
 * Threads: called with the GIL; events arrive with it, in the thread that they are about.
 */
#ifndef FM_AGENT_HOOKS_H
#define FM_AGENT_HOOKS_H

#include "target/agent/collector.h"

/* Begin to receive events for the collector in all threads of the current interpreter. */
int fm_hooks_install(struct fm_collector *c);

/* A code object was marked while the collector runs: receive its lines from now on. */
int fm_hooks_mark(struct fm_collector *c, PyCodeObject *code);

/* Stop receiving them, and leave whatever the program itself installed as it is. */
int fm_hooks_remove(struct fm_collector *c);

#endif
