/*
 * Mappings that a program makes for itself: private, anonymous, writable memory, which is what an
 * allocator of its own takes from the kernel. Not files or shared memory; stacks, and addresses that are
 * only reserved, are known but do not count. A mapping may be taken away in parts, or replaced.
 */
#ifndef FM_HEAP_MAPPINGS_H
#define FM_HEAP_MAPPINGS_H

void fm_mappings_hold(void); /* around fork */
void fm_mappings_release(void);

#endif
