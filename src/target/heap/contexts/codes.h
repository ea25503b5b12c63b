/*
 * Code objects, and types, as contexts know them: by a number that stands for their content, so that code that is
 * compiled again and again (exec, eval) is one. Its definition goes into the store when it is first
 * seen.
 *
 * An address means a code object only while that lives: watched.h tells of its end.
 *
 * Threads: any, with or without the GIL; one lock.
 */
#ifndef FM_HEAP_CODES_H
#define FM_HEAP_CODES_H

#include "target/heap/heap.h"

/* The number of a code object that a frame of this thread runs (FM_HEAP_DEF_CODE), or of a type
 * (FM_HEAP_DEF_TYPE); 0 if there is no room for it. */
uint32_t fm_codes_number(const void *address, enum fm_heap_def kind);

/* Is this the address of a code object that is known? Then it is no longer. */
bool fm_codes_forget(const void *code);

/* In a child: nothing is defined in its store yet. */
void fm_codes_reset(void);

void fm_codes_hold(void);
void fm_codes_release(void);

#endif
