/*
 * The program's own profile and trace functions (sys.setprofile, sys.settrace): they are told what
 * they would be told without us, and what they raise keeps nothing from us.
 *
 * CPython decides when a call of a C function begins whether it will tell of its end: from 3.12 on
 * by the instruction, which is another one while any tool listens to calls; on 3.11 by the thread's
 * having a profile function. As ours listens, a function that the program sets would hear of the
 * ends of calls that began before it was there: of sys.setprofile itself, of an exec() around it.
 * The standard library's `profile` takes that for a mistake and gives up.
 *
 * And CPython tells tools one after the other, the program's functions before us, and no more of
 * them after one that raises: ends of calls would be missing.
 *
 * So sys.setprofile and sys.settrace are intercepted, and the event source puts functions of its
 * own in front of the program's. They keep from it the ends of calls that are open since a time
 * when nobody but us listened, and see when it raises.
 *
 * Functions that are set by C code (cProfile on 3.11, coverage's tracer) are left alone.
 *
 * Threads: the GIL.
 */
#ifndef FM_AGENT_PROGRAM_TOOLS_H
#define FM_AGENT_PROGRAM_TOOLS_H

#include "target/agent/collector.h"

/* Look after the program's tools in the current interpreter from now on. */
void fm_program_watch(void);

/* The C functions that sys.setprofile and sys.settrace give a thread, whatever the program's
 * function is; NULL as long as they gave none. */
Py_tracefunc fm_program_profile(void);
Py_tracefunc fm_program_trace(void);

/* Is this the end of a call of a C function of which the program's profile function should not
 * know? Asked before the call is taken from our stack. */
bool fm_program_hides(int what, PyObject *arg);

/* ---- what the event source does about it: hooks_*.c --------------------------------------- */

/* Does anybody else listen, so that a C call that begins now in this thread would tell of its end
 * without us? */
bool fm_hooks_others_listen(PyThreadState *thread);

/* The program has set its function in this thread, or taken it away. */
void fm_hooks_profile_was_set(PyThreadState *thread);
void fm_hooks_trace_was_set(PyThreadState *thread);

#endif
