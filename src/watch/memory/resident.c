/* How much of a process is in memory; see resident.h. */
#include "watch/memory/resident.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "watch/os/procfs.h"

#define ROLLUP_BYTES 8192

int fm_resident_open(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

int64_t fm_resident_read(int fd, int64_t *ret_code)
{
    char text[128];
    ssize_t n;
    do
        n = pread(fd, text, sizeof text - 1, 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    /* size resident shared code …, in pages; all are 0 of one that ended and was not waited for */
    int64_t page = sysconf(_SC_PAGESIZE), fields[4];
    char *at = text;
    for (size_t i = 0; i < 4; i++)
        fields[i] = strtoll(at, &at, 10);
    if (fields[0] <= 0)
        return -1;
    if (ret_code)
        *ret_code = fields[3] * page;
    return fields[1] * page;
}

static int64_t kilobytes(const char *text, const char *key)
{
    const char *value = fm_procfs_field(text, key);
    return value ? strtoll(value, NULL, 10) * 1024 : -1;
}

void fm_resident_shares(pid_t pid, int64_t *ret_pss, int64_t *ret_swap)
{
    /* Opened anew each time: a kept descriptor would hold the memory of a process that ended. */
    struct fm_buffer text = FM_BUFFER_INIT;
    *ret_pss = *ret_swap = -1;
    if (fm_procfs_read_of(pid, "smaps_rollup", ROLLUP_BYTES, &text) == 0) {
        *ret_pss = kilobytes(fm_buffer_text(&text), "Pss:");
        *ret_swap = kilobytes(fm_buffer_text(&text), "SwapPss:");
    }
    fm_buffer_release(&text);
}
