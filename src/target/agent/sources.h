/*
 * What the recording must know about source text: the state of each file when its code was first
 * seen, and the text of code that never had a file (exec, eval, compile).
 *
 * The text of files is not read here: whoever writes the recording does, and compares the state.
 * Threads: the GIL protects everything here.
 */
#ifndef FM_AGENT_SOURCES_H
#define FM_AGENT_SOURCES_H

#include "target/agent/collector.h"

/* Note the size and time of a source file, once per store. */
void fm_sources_see_file(struct fm_collector *c, struct fm_store_text file);

/* Keep the text that is being compiled, if it has no file: the "compile" audit event. */
void fm_sources_see_compile(struct fm_collector *c, PyObject *args);

/* Forget what was noted: a new store begins. */
void fm_sources_reset(struct fm_collector *c);

#endif
