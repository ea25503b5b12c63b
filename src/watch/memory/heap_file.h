/*
 * The heap store of a running process (capture/live_heap.h), found from outside: a process that records
 * its memory has the file mapped. It is read with the kernel's help alone; the process does not notice.
 *
 * The file is somebody else's and may shrink, so it is read and never mapped.
 */
#ifndef FM_WATCH_MEMORY_HEAP_FILE_H
#define FM_WATCH_MEMORY_HEAP_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"

struct fm_heap_file {
    pid_t pid;
    int fd, more; /* its file, and the one on disk where that goes on; −1: not open */
    struct fm_buffer bytes, more_bytes;
};

/* Find and open it. FM_NOT_RECORDED if the process records no memory, with what to do; FM_NOT_FOUND,
 * FM_FORBIDDEN. */
int fm_heap_file_open(struct fm_heap_file *file, pid_t pid, struct fm_error *err);
void fm_heap_file_close(struct fm_heap_file *file);

/* Read the whole of it as it is now into its buffers. */
int fm_heap_file_read(struct fm_heap_file *file, struct fm_error *err);

/* Has the process said that this store is finished? It may have another one by now. */
bool fm_heap_file_is_over(const struct fm_heap_file *file);

#endif
