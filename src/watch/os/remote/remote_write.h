/*
 * Writing memory of another process. Nobody does it but who asks a Python to run a script
 * (cpython/remote_call.h); everything else only reads.
 */
#ifndef FM_OS_REMOTE_WRITE_H
#define FM_OS_REMOTE_WRITE_H

#include "watch/os/remote/remote.h"

/* Of a running process. 0, or a negative error number; −EFAULT: not all of it could be written. */
int fm_remote_write(const struct fm_remote *remote, fm_addr at, const void *from, size_t len);

#endif
