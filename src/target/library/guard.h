/*
 * Work of the tool inside somebody's program, where exhausted memory must not end the process.
 *
 * The tool's code is written for allocation that cannot fail (base/memory.h): in the command, which
 * has nothing better to do, it ends the process. Here it leaves the work instead, as if it had
 * never begun: what the work has taken (memory, descriptors, files without a name yet, contexts of
 * zstd and zlib) is given back and fm_guard_run() returns FM_NO_MEMORY. So the tool's code stays
 * one and readable, and the program gets a MemoryError.
 *
 * How: libfathom.so is linked so that the calls of its own code which take or give back something
 * come through here (--wrap, see python/fathom/meson.build), and a list is kept. It relies on the
 * tool's code keeping nothing from one call to the next: it has no variables of its own.
 *
 * Threads: the list is the calling thread's. Others may call at the same time.
 */
#ifndef FM_LIBRARY_GUARD_H
#define FM_LIBRARY_GUARD_H

/* Call work(context); what it returns, or FM_NO_MEMORY. Not within itself. */
int fm_guard_run(int (*work)(void *context), void *context);

/* This memory is the result: it stays. */
void fm_guard_keep(void *memory);

#endif
