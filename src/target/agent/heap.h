/*
 * The agent's part in recording memory: it tells the heap library (target/heap), which knows no version
 * of Python, what frames and code objects of this one look like.
 */
#ifndef FM_AGENT_HEAP_H
#define FM_AGENT_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "target/agent/python.h"

/* If the heap library is in this process. With the GIL, when the program's first code is about to run. */
void fm_heap_introduce(void);

/* What is alive in this process (target/library/alive.h) as bytes, which are not counted themselves;
 * None if nothing records its memory. NULL with an exception. */
PyObject *fm_heap_alive(bool contexts);

/* A stretch of the program whose peak is measured for itself (target/heap/account/stretch.h) begins or ends, or goes on:
 * bytes, −1 if there is none. `own`: of the thread that began it alone, above what it began with. */
int64_t fm_heap_stretch_begin(void);
int64_t fm_heap_stretch_peak(void);
int64_t fm_heap_stretch_own_peak(void);
int64_t fm_heap_stretch_end(void);

/* Record the memory of this process from now on, in a store in `folder`. 0; 1 if it is recorded already;
 * −1 with an exception. */
int fm_heap_begin(const char *folder);
void fm_heap_over(void); /* … and no longer */

#endif
