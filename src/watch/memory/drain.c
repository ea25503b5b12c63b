/* Events of a process as slices; see drain.h. */
#include "watch/memory/drain.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

void fm_drain_init(struct fm_drain *d)
{
    *d = (struct fm_drain){ .fd = -1 };
}

void fm_drain_release(struct fm_drain *d)
{
    if (d->fd >= 0)
        close(d->fd);
    fm_vec_release(&d->changes);
    d->fd = -1;
}

bool fm_drain_open(struct fm_drain *d, const char *path, uint64_t start_ns)
{
    struct fm_events_header h;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && pread(fd, &h, sizeof h, 0) == (ssize_t)sizeof h &&
        memcmp(h.magic, FM_EVENTS_MAGIC, sizeof h.magic) == 0 && h.version == FM_EVENTS_VERSION) {
        d->fd = fd;
        d->start_ns = start_ns;
        return true;
    }
    if (fd >= 0)
        close(fd);
    return false;
}

static int compare_changes(const void *a, const void *b)
{
    const struct fm_history_change *x = a, *y = b;
    return x->context < y->context ? -1 : x->context > y->context;
}

/* Those that wait are of one microsecond: a slice. */
static void add_slice(struct fm_drain *d, struct fm_slices *into)
{
    if (!d->changes.len)
        return;
    qsort(d->changes.data, d->changes.len, sizeof *d->changes.data, compare_changes);
    fm_slices_begin(into, d->start_ns + d->us * 1000);
    for (size_t i = 0; i < d->changes.len;) {
        struct fm_history_change sum = d->changes.data[i];
        while (++i < d->changes.len && d->changes.data[i].context == sum.context) {
            sum.bytes += d->changes.data[i].bytes; /* of 58 bits each, and not that many */
            sum.blocks += d->changes.data[i].blocks;
        }
        if (sum.bytes || sum.blocks)
            fm_slices_change(into, &sum);
    }
    fm_slices_end(into);
    d->changes.len = 0;
}

/* Events of several threads may be out of order by a little: time does not go back. */
static void add_event(struct fm_drain *d, const struct fm_event *e, struct fm_slices *into)
{
    uint64_t us = e->when >> 20, kind = e->when >> 18 & 3;
    int64_t bytes = (int64_t)fm_event_bytes(e);
    if (us > d->us || d->changes.len == FM_DRAIN_EVENTS) {
        add_slice(d, into);
        d->us = us > d->us ? us : d->us;
    }
    struct fm_history_change change = { fm_event_account(e),
                                        kind == FM_EVENT_BEGIN ? bytes : -bytes,
                                        kind == FM_EVENT_BEGIN ? 1
                                        : kind == FM_EVENT_END ? -1
                                                               : 0 };
    fm_vec_push(&d->changes, change);
}

static bool is_whole(const struct fm_drain *d, uint64_t i)
{
    return d->events[i].what >> 63 == fm_events_lap(d->tail + i);
}

/* Up to `count` slots from the tail on; returns how many. */
static uint64_t read_slots(struct fm_drain *d, uint64_t count)
{
    off_t at = (off_t)(FM_EVENTS_AT + d->tail % FM_EVENTS_SLOTS * sizeof *d->events);
    ssize_t got = count ? pread(d->fd, d->events, count * sizeof *d->events, at) : 0;
    return got > 0 ? (uint64_t)got / sizeof *d->events : 0;
}

bool fm_drain_read(struct fm_drain *d, struct fm_slices *into, bool ended)
{
    uint64_t head, count = FM_EVENTS_SLOTS - d->tail % FM_EVENTS_SLOTS, i = 0;
    if (d->fd < 0 || pread(d->fd, &head, sizeof head, offsetof(struct fm_events_header, head)) !=
                         (ssize_t)sizeof head)
        return false;
    count = count < FM_DRAIN_EVENTS ? count : FM_DRAIN_EVENTS;
    count = count < head - d->tail ? count : head - d->tail;
    if (head <= d->tail || head - d->tail > 2ull * FM_EVENTS_SLOTS)
        count = 0; /* those who wait have numbers, too */
    /* The first word of a slot may have been copied before it was written, and the second after. So what
     * was seen whole is read again. */
    uint64_t n = read_slots(d, count);
    while (i < n && (ended || is_whole(d, i)))
        i++;
    n = read_slots(d, i);
    for (i = 0; i < n; i++)
        if (is_whole(d, i))
            add_event(d, &d->events[i], into);
    d->tail += n;
    if (ended && !i)
        add_slice(d, into);
    return i > 0;
}

void fm_drain_done(struct fm_drain *d)
{
    if (d->fd >= 0 &&
        pwrite(d->fd, &d->tail, sizeof d->tail, offsetof(struct fm_events_header, tail)) < 0)
        return; /* the process closes the ring when it has waited long enough */
}

void fm_drain_close(struct fm_drain *d)
{
    uint64_t closed = 1;
    if (d->fd >= 0 &&
        pwrite(d->fd, &closed, sizeof closed, offsetof(struct fm_events_header, closed)) < 0)
        return;
}
