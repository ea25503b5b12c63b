/*
 * Mappings that a program makes for itself: private, anonymous, writable memory, which is what an
 * allocator of its own takes from the kernel. Not stacks, files, shared memory, or addresses that are
 * only reserved. A mapping may be taken away in parts, or replaced.
 */
#ifndef FM_HEAP_MAPPINGS_H
#define FM_HEAP_MAPPINGS_H

void fm_mappings_hold(void); /* around fork */
void fm_mappings_release(void);

#endif
