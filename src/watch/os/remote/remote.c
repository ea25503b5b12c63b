/* Memory of another process; see remote.h. */
#include "watch/os/remote/remote.h"

#include <errno.h>
#include <limits.h>
#include <sys/uio.h>

#ifndef IOV_MAX
#define IOV_MAX 1024
#endif

/* How many of the spans `bytes` bytes fill. The kernel may stop inside a span, at a page. */
static int whole_spans(const struct fm_span *spans, int n, size_t bytes)
{
    for (int i = 0; i < n; i++) {
        if (bytes < spans[i].len)
            return i;
        bytes -= spans[i].len;
    }
    return n;
}

/* At least one and at most IOV_MAX spans, in one system call. */
static int read_some(const struct fm_remote *remote, const struct fm_span *spans, int n)
{
    struct iovec here[IOV_MAX], there[IOV_MAX];
    int i = 0;
    do {
        here[i] = (struct iovec){ spans[i].into, spans[i].len };
        there[i] = (struct iovec){ (void *)(uintptr_t)spans[i].at, spans[i].len };
    } while (++i < n);
    ssize_t got = process_vm_readv(remote->pid, here, n, there, n, 0);
    if (got < 0)
        return -errno;
    int whole = whole_spans(spans, n, got);
    return whole ? whole : -EFAULT;
}

static int read_live(const struct fm_remote *remote, const struct fm_span *spans, int n)
{
    int done = 0;
    while (done < n) {
        int part = n - done < IOV_MAX ? n - done : IOV_MAX;
        int got = read_some(remote, spans + done, part);
        if (got < 0)
            return done ? done : got;
        done += got;
        if (got < part)
            break;
    }
    return done;
}

static const struct fm_remote_source live_source = { read_live };

void fm_remote_live(struct fm_remote *remote, pid_t pid)
{
    *remote = (struct fm_remote){ &live_source, pid, NULL };
}

int fm_remote_read(const struct fm_remote *remote, fm_addr at, void *into, size_t len)
{
    struct fm_span span = { at, into, len };
    int got = fm_remote_read_spans(remote, &span, 1);
    return got < 0 ? got : 0;
}

fm_addr fm_remote_pointer(const struct fm_remote *remote, fm_addr at)
{
    uint64_t value;
    return fm_remote_read(remote, at, &value, sizeof value) == 0 ? value : 0;
}
