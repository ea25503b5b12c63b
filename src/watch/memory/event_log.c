/* The events of a process, kept; see event_log.h. */
#include "watch/memory/event_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "record/capture/live_heap.h"
#include "record/capture/live_slices.h"
#include "watch/memory/drain.h"
#include "watch/memory/slicer.h"
#include "watch/os/run/folder.h"

#define WRITE_BYTES (64u << 10)
#define LAPS_MOST   8u /* of the ring, at one time: the launcher has other things to do */

struct fm_event_log {
    char *ring, *path, *beside; /* where it is written; if there is no folder on disk, beside */
    int fd;
    bool failed;
    struct fm_slices slices; /* what is not written yet, and where they go on */
    struct fm_drain drain;
};

struct fm_event_log *fm_event_log_new(const char *folder, pid_t pid, unsigned number)
{
    struct fm_event_log *log = fm_calloc(1, sizeof *log);
    struct fm_buffer ring = FM_BUFFER_INIT, path = FM_BUFFER_INIT, beside = FM_BUFFER_INIT;
    fm_buffer_addf(&ring, "%s/%d.%u" FM_EVENTS_SUFFIX, folder, (int)pid, number);
    fm_buffer_addf(&path, "%s/" FM_FOLDER_MORE_LINK "/%d.%u" FM_SLICES_SUFFIX, folder, (int)pid,
                   number);
    fm_buffer_addf(&beside, "%s/%d.%u" FM_SLICES_SUFFIX, folder, (int)pid, number);
    log->ring = fm_buffer_detach(&ring);
    log->path = fm_buffer_detach(&path);
    log->beside = fm_buffer_detach(&beside);
    log->fd = -1;
    fm_drain_init(&log->drain);
    return log;
}

void fm_event_log_free(struct fm_event_log *log)
{
    if (!log)
        return;
    fm_drain_close(&log->drain);
    fm_drain_release(&log->drain);
    fm_slices_release(&log->slices);
    if (log->fd >= 0)
        close(log->fd);
    free(log->ring);
    free(log->path);
    free(log->beside);
    free(log);
}

/* The ring is there, and a file for what is in it. */
static bool begin(struct fm_event_log *log, int store)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    struct fm_slices_header header = { FM_SLICES_MAGIC, FM_SLICES_VERSION, FM_SLICES_EVENTS };
    uint64_t start_ns = 0;
    if (log->drain.fd >= 0)
        return true;
    if (pread(store, &start_ns, sizeof start_ns, offsetof(struct fm_heap_header, start_ns)) !=
            (ssize_t)sizeof start_ns ||
        !start_ns || !fm_drain_open(&log->drain, log->ring, start_ns))
        return false;
    log->fd = open(log->path, flags, 0600);
    if (log->fd < 0 && errno != EEXIST)
        log->fd = open(log->beside, flags, 0600);
    if (log->fd < 0 && errno == EEXIST) { /* it is kept already */
        fm_drain_release(&log->drain);
        return false;
    }
    log->failed = log->fd < 0 || !fm_slices_write(log->fd, &header, sizeof header);
    return true;
}

static void write_slices(struct fm_event_log *log)
{
    log->failed =
        log->failed || !fm_slices_write(log->fd, log->slices.bytes.data, log->slices.bytes.len);
    fm_buffer_clear(&log->slices.bytes);
}

void fm_event_log_drain(struct fm_event_log *log, int store, bool ended)
{
    if (!log || !begin(log, store) || log->failed)
        return;
    uint32_t most = LAPS_MOST * (FM_EVENTS_SLOTS / FM_DRAIN_EVENTS);
    while (most-- && fm_drain_read(&log->drain, &log->slices, ended)) {
        if (log->slices.bytes.len >= WRITE_BYTES)
            write_slices(log);
        fm_drain_done(&log->drain);
    }
    write_slices(log);
    if (log->failed)
        fm_drain_close(&log->drain);
}

void fm_event_log_sweep(const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        int pid, end = 0;
        unsigned number;
        char name[64];
        if (sscanf(entry->d_name, "%d.%u%n", &pid, &number, &end) != 2 || !end ||
            strcmp(entry->d_name + end, FM_EVENTS_SUFFIX) != 0)
            continue;
        snprintf(name, sizeof name, "%d.%u" FM_HEAP_SUFFIX, pid, number);
        int store = openat(dirfd(dir), name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (store < 0)
            continue;
        struct fm_event_log *log = fm_event_log_new(folder, pid, number);
        fm_event_log_drain(log, store, true);
        fm_event_log_free(log);
        close(store);
    }
    closedir(dir);
}
