/*
 * What the resident memory of a process is made of: its memory map, the ranges that the heap library
 * tells of (capture/live_heap.h), and which of these pages are in memory.
 *
 * Model. Each mapping of the process has an owner by its name (code, files, shared memory, stacks,
 * Fathom's own). Of anonymous memory the library says which parts are arenas of Python, mappings that
 * count as blocks, stacks of threads, reservations of other allocators, or its own; all else is that of C's
 * allocator. Of an arena, what is alive in it is what the library counts; the difference is what Python's
 * allocator needs. Of C's memory the same, but that blocks from 256 KiB on are looked at one by one: what
 * of them is not in memory was allocated and never touched (or is swapped out).
 *
 * The process goes on meanwhile: what changes in between is in the rest, which may be below zero.
 *
 * Cost: some milliseconds per GB in memory. The caller rations it.
 */
#ifndef FM_WATCH_MEMORY_RESIDENCE_H
#define FM_WATCH_MEMORY_RESIDENCE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/vec.h"
#include "record/model/memory.h"

/* A library that reserved addresses. */
struct fm_residence_library {
    char *path; /* "": not known */
    int64_t reserved, resident;
};

struct fm_residence {
    struct fm_resident account; /* `rss` is 0: none yet */
    FM_VEC(struct fm_residence_library) libraries;
};

/* `stores` are the two files of its heap store, −1 if there is none of them; `rss` is what it has now. False
 * if it cannot be read; then `r` is what it was. */
bool fm_residence_read(struct fm_residence *r, pid_t pid, const int stores[2], int64_t rss,
                       uint64_t now_ns);
void fm_residence_copy(struct fm_residence *to, const struct fm_residence *from);
void fm_residence_release(struct fm_residence *r);

#endif
