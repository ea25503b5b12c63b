/*
 * Memory of another process, or of one that died and left a core file: read here, and written
 * by nobody but remote_write.h.
 *
 * An address there is an fm_addr, a number that nobody can dereference by accident. Whatever is read
 * is untrusted: the process runs on while it is read, and may be damaged or hostile.
 *
 * Threads: reading changes nothing in struct fm_remote; any number may read.
 */
#ifndef FM_OS_REMOTE_H
#define FM_OS_REMOTE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef uint64_t fm_addr; /* 0: none */

/* One piece to read. */
struct fm_span {
    fm_addr at;
    void *into;
    size_t len;
};

struct fm_remote;

struct fm_remote_source {
    /* Read the spans in order, in as few steps as possible; the number of spans read whole from the
     * first on, or a negative error number if not even the first was. */
    int (*read)(const struct fm_remote *remote, const struct fm_span *spans, int n);
};

struct fm_remote {
    const struct fm_remote_source *source;
    pid_t pid;  /* 0 for a core file */
    void *data; /* of the source */
};

/* A running process, through process_vm_readv. Nothing is opened or checked here. */
void fm_remote_live(struct fm_remote *remote, pid_t pid);

/* All of it or nothing: 0, or a negative error number (−EFAULT: not mapped; −ESRCH: gone; −EPERM). */
int fm_remote_read(const struct fm_remote *remote, fm_addr at, void *into, size_t len);

/* See struct fm_remote_source. */
static inline int fm_remote_read_spans(const struct fm_remote *remote, const struct fm_span *spans,
                                       int n)
{
    return remote->source->read(remote, spans, n);
}

/* A pointer-sized word at `at`; 0 if it cannot be read. */
fm_addr fm_remote_pointer(const struct fm_remote *remote, fm_addr at);

#endif
