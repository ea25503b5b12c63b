/* The beginning of a recording, for start.c, where it is the process's, and late.c. */
#ifndef FM_HEAP_START_H
#define FM_HEAP_START_H

#include <stdbool.h>

/* Open a store in fm_heap.folder and count from now on: fm_heap.header says whether that went well.
 * Where the program runs already, hooks are put in place by the caller. Busy must be set. */
void fm_start_begin(const char *mode, bool late);

/* The process says no more. */
void fathom_heap_end(void);

#endif
