/* What all processes of a run have together; see together.h. */
#include "watch/memory/together.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/memory.h"
#include "record/capture/live_heap.h"
#include "watch/os/path.h"

int fm_together_make(const char *folder, int64_t limit)
{
    struct fm_heap_run run = { .version = FM_HEAP_RUN_VERSION, .epoch = 1, .limit = limit };
    memcpy(run.magic, FM_HEAP_RUN_MAGIC, sizeof run.magic);
    fm_autofree char *path = fm_path_join(folder, FM_HEAP_RUN_FILE);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    ssize_t written = write(fd, &run, sizeof run);
    close(fd);
    if (written == (ssize_t)sizeof run)
        return 0;
    unlink(path);
    return -1;
}

static bool read_at(int fd, void *bytes, size_t len, size_t at)
{
    return pread(fd, bytes, len, (off_t)at) == (ssize_t)len;
}

bool fm_together_passed(const char *folder, uint32_t *ret_pid, int64_t *ret_sum)
{
    struct fm_heap_run run;
    fm_autofree char *path = fm_path_join(folder, FM_HEAP_RUN_FILE);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool whole = fd >= 0 && read_at(fd, &run, sizeof run, 0);
    if (fd >= 0)
        close(fd);
    if (!whole || !run.passed_by)
        return false;
    *ret_pid = run.passed_by;
    *ret_sum = run.passed_sum > run.limit ? run.passed_sum : run.peak;
    return true;
}

static void write_at(int fd, const void *bytes, size_t len, size_t at)
{
    /* Of a folder that is full, or gone, the peak may be too high: nothing can be done. */
    ssize_t written = pwrite(fd, bytes, len, (off_t)at);
    (void)written;
}

static void bury(int run_fd, int store, const struct fm_heap_header *h)
{
    struct fm_heap_run run;
    if (!read_at(run_fd, &run, sizeof run, 0))
        return;
    run.gone += h->contributed;
    uint32_t left = FM_HEAP_LEFT;
    write_at(run_fd, &run.gone, sizeof run.gone, offsetof(struct fm_heap_run, gone));
    write_at(store, &run.peak, sizeof run.peak, offsetof(struct fm_heap_header, left_peak));
    write_at(store, &left, sizeof left, offsetof(struct fm_heap_header, left));
}

void fm_together_bury(const char *folder, int store)
{
    struct fm_heap_header h;
    size_t bytes = offsetof(struct fm_heap_header, worlds);
    if (!read_at(store, &h, bytes, 0) || h.left != FM_HEAP_STAYS)
        return;
    fm_autofree char *path = fm_path_join(folder, FM_HEAP_RUN_FILE);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return;
    bury(fd, store, &h);
    close(fd);
}
