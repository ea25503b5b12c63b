/*
 * Which pages of another process are in memory: /proc/PID/pagemap, by its ioctl where there is one
 * (Linux 6.7), which passes over what was never touched, else page by page. A range too large for that is
 * not looked at.
 */
#ifndef FM_WATCH_MEMORY_PAGES_H
#define FM_WATCH_MEMORY_PAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct fm_pages {
    int fd; /* −1: may not be read */
    bool scans;
};

void fm_pages_open(struct fm_pages *pages, pid_t pid);
void fm_pages_close(struct fm_pages *pages);

/* Bytes between two addresses that are in memory; the page of zeros that is read but never written does
 * not count. −1 if that cannot be known. */
int64_t fm_pages_resident(struct fm_pages *pages, uint64_t start, uint64_t end);

#endif
