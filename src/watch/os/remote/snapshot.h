/*
 * Pages of another process's memory, copied: what a look at a running program is made of.
 *
 * Model. A snapshot is a set of whole pages. Pages are planned (fm_snapshot_want) and then read
 * together, neighbours as one piece, in one system call (fm_snapshot_fetch). What turns out to be
 * missing is planned and fetched in turn. A page that cannot be read is kept as such, so that
 * nobody asks for it again. Whether all pages are of one instant is not known here: whoever fetches
 * makes sure that the program does not run meanwhile, or says that it did.
 *
 * Why pages: what a stack is made of lies close together, a page costs hardly more to read than a
 * word of it (1.9 µs and 1.4 µs), and where things lie need not be known to read them again: pages
 * that were of use in the last looks are read first in the next one. That saves reads and never
 * changes what is found.
 *
 * Threads: belongs to one.
 */
#ifndef FM_OS_SNAPSHOT_H
#define FM_OS_SNAPSHOT_H

#include <stdbool.h>

#include "base/map.h"
#include "base/vec.h"
#include "watch/os/remote/remote.h"

#define FM_SNAPSHOT_PAGE      4096u
#define FM_SNAPSHOT_MAX_PAGES 4096u

struct fm_snapshot_page {
    fm_addr at;
    bool readable;
    bool used; /* something in it was asked for */
};

struct fm_snapshot {
    FM_VEC(struct fm_snapshot_page) pages; /* their bytes lie one behind the other in `bytes` */
    FM_VEC(uint8_t) bytes;
    size_t fetched;    /* how many pages have been; the others are planned */
    size_t last;       /* page that was read from last: mostly it is the next, too */
    struct fm_map map; /* page number → index */
};

enum fm_snapshot_answer { FM_SNAPSHOT_HERE, FM_SNAPSHOT_MISSING, FM_SNAPSHOT_UNREADABLE };

void fm_snapshot_release(struct fm_snapshot *s);

/* Forget all pages. */
void fm_snapshot_clear(struct fm_snapshot *s);

/* Plan to read the page that holds `at`. False if it is there or planned already, or there are too
 * many. */
bool fm_snapshot_want(struct fm_snapshot *s, fm_addr at);

/* Read what is planned and, behind it in the same step, the `n` pieces of `tail`: those are the
 * newest. 0, or a negative error number if the tail could not be read (the process is gone, or what
 * it named is). */
int fm_snapshot_fetch(struct fm_snapshot *s, const struct fm_remote *remote,
                      const struct fm_span *tail, int n);

/* Copy bytes out of it. `at` of the first byte that is missing, if any is, goes to `*missing`. */
enum fm_snapshot_answer fm_snapshot_read(struct fm_snapshot *s, fm_addr at, void *into, size_t len,
                                         fm_addr *missing);

/* Which pages to read first next time: those that were of use now, and for a while those that were
 * before. */
struct fm_snapshot_hints {
    struct fm_snapshot_hint {
        fm_addr at;
        uint32_t idle; /* looks since it was of use */
    } * data;
    size_t len, cap;
};

/* Plan what the hints say. */
void fm_snapshot_want_hints(struct fm_snapshot *s, const struct fm_snapshot_hints *hints);
/* Learn from what was used. */
void fm_snapshot_learn(const struct fm_snapshot *s, struct fm_snapshot_hints *hints);

#endif
