/*
 * The agent's part in recording memory: it tells the heap library (target/heap), which knows no version
 * of Python, what frames and code objects of this one look like.
 */
#ifndef FM_AGENT_HEAP_H
#define FM_AGENT_HEAP_H

/* If the heap library is in this process. With the GIL, when the program's first code is about to run. */
void fm_heap_introduce(void);

#endif
