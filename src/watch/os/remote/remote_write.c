/* Writing memory of another process; see remote_write.h. */
#include "watch/os/remote/remote_write.h"

#include <errno.h>
#include <sys/uio.h>

int fm_remote_write(const struct fm_remote *remote, fm_addr at, const void *from, size_t len)
{
    struct iovec here = { (void *)(uintptr_t)from, len };
    struct iovec there = { (void *)(uintptr_t)at, len };
    ssize_t done = process_vm_writev(remote->pid, &here, 1, &there, 1, 0);
    if (done < 0)
        return -errno;
    return (size_t)done == len ? 0 : -EFAULT;
}
