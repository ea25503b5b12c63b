/*
 * PyMem_RawMalloc and its family, hooked by PyMem_SetAllocator where malloc itself is not ours (late.c).
 * They are called with or without the GIL: blocks are those of the C world.
 */
#ifndef FM_HEAP_RAW_WORLD_H
#define FM_HEAP_RAW_WORLD_H

/* Put the hooks in place, unless they are. With the GIL. */
void fm_raw_world_hook(void);

#endif
