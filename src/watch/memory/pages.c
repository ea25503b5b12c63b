/* Pages in memory; see pages.h. */
#include "watch/memory/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PAGE          4096u /* the size does not matter to the kernel's list of regions */
#define ENTRIES       4096u
#define PRESENT       (1ull << 63)
#define MOST_UNWALKED ((uint64_t)64 << 30) /* of addresses, entry by entry */

/* As <linux/fs.h> has them since 6.7. */
struct page_span {
    uint64_t start, end, categories;
};
struct page_scan {
    uint64_t size, flags, start, end, walk_end, spans, span_count, most_pages;
    uint64_t inverted, all_of, any_of, returned;
};
#define SCAN        _IOWR('f', 16, struct page_scan)
#define IS_PRESENT  (1u << 3)
#define IS_PFN_ZERO (1u << 5)

void fm_pages_open(struct fm_pages *pages, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/pagemap", (int)pid);
    *pages = (struct fm_pages){ open(path, O_RDONLY | O_CLOEXEC), true };
}

void fm_pages_close(struct fm_pages *pages)
{
    if (pages->fd >= 0)
        close(pages->fd);
    pages->fd = -1;
}

static int64_t overlap(uint64_t start, uint64_t end, uint64_t from, uint64_t to)
{
    uint64_t low = start > from ? start : from, high = end < to ? end : to;
    return low < high ? (int64_t)(high - low) : 0;
}

/* −1: the kernel does not know this. */
static int64_t scan(struct fm_pages *pages, uint64_t start, uint64_t end)
{
    struct page_span spans[256];
    uint64_t first = start / PAGE * PAGE, last = (end + PAGE - 1) / PAGE * PAGE;
    int64_t sum = 0;
    while (first < last) {
        struct page_scan scan = { .size = sizeof scan,
                                  .start = first,
                                  .end = last,
                                  .spans = (uint64_t)(uintptr_t)spans,
                                  .span_count = sizeof spans / sizeof *spans,
                                  .inverted = IS_PFN_ZERO,
                                  .all_of = IS_PRESENT | IS_PFN_ZERO,
                                  .returned = IS_PRESENT };
        int count = ioctl(pages->fd, SCAN, &scan);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return -1;
        for (int i = 0; i < count; i++)
            sum += overlap(start, end, spans[i].start, spans[i].end);
        if (scan.walk_end <= first)
            break;
        first = scan.walk_end;
    }
    return sum;
}

static int64_t read_entries(struct fm_pages *pages, uint64_t start, uint64_t end)
{
    uint64_t entries[ENTRIES], page = (uint64_t)sysconf(_SC_PAGESIZE);
    int64_t sum = 0;
    if (end - start > MOST_UNWALKED)
        return -1;
    for (uint64_t at = start / page; at * page < end;) {
        uint64_t want = (end + page - 1) / page - at;
        want = want < ENTRIES ? want : ENTRIES;
        ssize_t got = pread(pages->fd, entries, want * sizeof *entries, (off_t)(at * 8));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -1 : sum;
        uint64_t count = (uint64_t)got / sizeof *entries;
        for (uint64_t i = 0; i < count; i++)
            if (entries[i] & PRESENT)
                sum += overlap(start, end, (at + i) * page, (at + i + 1) * page);
        at += count ? count : want;
    }
    return sum;
}

int64_t fm_pages_resident(struct fm_pages *pages, uint64_t start, uint64_t end)
{
    if (pages->fd < 0 || start >= end)
        return pages->fd < 0 ? -1 : 0;
    int64_t sum = pages->scans ? scan(pages, start, end) : -1;
    if (sum >= 0)
        return sum;
    pages->scans = false;
    return read_entries(pages, start, end);
}
