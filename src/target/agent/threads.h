/*
 * Threads of the program as a collector sees them: records, stacks, names, CPU clocks, fork.
 *
 * A thread gets a record at its first event and gives it back when it ends (a destructor of
 * thread-specific data, which runs without the GIL). A fork, and the end of the process, may come
 * from a thread without the GIL, too. So there is one lock, for what collector.h marks with it; the
 * hot path takes none. Lock order: GIL, then this lock; who has it runs none of Python's code.
 */
#ifndef FM_AGENT_THREADS_H
#define FM_AGENT_THREADS_H

#include "target/agent/collector.h"

/* Once per process: fork handlers and the destructor. 0 or −1. */
int fm_threads_prepare(void);

/* The lock. */
void fm_threads_lock(void);
void fm_threads_unlock(void);
bool fm_threads_try_lock(void); /* for a while; false: it is not to be had */

/* Close every open call of every thread and unhook the threads from the collector. */
void fm_threads_detach_all(struct fm_collector *c);

/* Read the CPU clocks of all running threads into their records. The lock is held. */
void fm_threads_look(struct fm_collector *c);

/* Put the name that `threading` gives the current thread into its record, if it has one by now. */
void fm_thread_learn_name(struct fm_agent_thread *t);

/* The name that a threading.Thread has, read without running any of the program's code; new, or NULL. */
PyObject *fm_thread_name_of(PyObject *thread);

#endif
