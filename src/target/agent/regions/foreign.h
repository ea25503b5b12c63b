/*
 * Regions that libraries wrote already: LSST's timeMethod and time_this, and the events and stages of petsc4py,
 * which those of PyOP2 and Firedrake are (petsc_log.h). The program neither asks for it nor sees it.
 *
 * Python code is recognised by its file and name when its module is executed (the audit event "exec"), or in
 * the modules that are there when regions begin. From then on its calls are heard of by region_frames.h, and are
 * regions: named after the function that a variable of the call holds, or by the text that it holds.
 *
 * Nothing is recognised in other interpreters than the one that is recorded. Threads: the GIL.
 */
#ifndef FM_AGENT_REGION_FOREIGN_H
#define FM_AGENT_REGION_FOREIGN_H

#include "target/agent/python.h"

#include <stdbool.h>

/* Regions are recorded from now on: look at the modules that are there. With `hears`, at those that come, too,
 * by an audit hook of our own; else somebody calls fm_foreign_see_exec(). Raises nothing. */
void fm_foreign_begin(bool hears);

/* The event "exec" with its arguments. Raises nothing. */
void fm_foreign_see_exec(PyObject *args);

/* How many codes are followed: while there is none, nobody needs to tell of calls. */
extern int fm_foreign_count;

/* A call of some code begins, or ends in whichever way; `frame` is its own. */
void fm_foreign_enter(PyCodeObject *code, const void *frame);
void fm_foreign_leave(PyCodeObject *code, const void *frame);

#endif
