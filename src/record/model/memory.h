/*
 * What is known of a program's memory beside the contexts that allocated it: how large blocks were and
 * how long they lived, by process; and the curves of the heap and of resident memory over time.
 *
 * In the trees each context (a line, see fm_node.line) has the metrics of memory (model/metrics.h), of
 * itself only. Peaks of processes are each its own: added up they are at least the peak of the sum.
 */
#ifndef FM_MODEL_MEMORY_H
#define FM_MODEL_MEMORY_H

#include <stdint.h>

#include "base/vec.h"
#include "record/model/history.h"

/* Tables of numbers by bucket. Sizes: half-octaves of bytes; lives: octaves of allocations that the
 * thread made meanwhile (capture/live_heap.h has both); kinds: the function that was asked. */
#define FM_HEAP_BUCKETS_MAX 128

enum fm_heap_table { FM_HEAP_SIZES, FM_HEAP_LIVES, FM_HEAP_BY_KIND, FM_HEAP_TABLES };

struct fm_heap_count {
    uint32_t process;
    uint32_t table; /* enum fm_heap_table */
    uint32_t bucket;
    int64_t blocks, bytes; /* bytes are known of kinds alone */
};

/* One look at a process, or at the whole run (process FM_NONE). What was not looked at is −1. */
struct fm_memory_point {
    uint32_t process;
    uint64_t at_ns;         /* CLOCK_MONOTONIC */
    int64_t heap;           /* what is allocated */
    int64_t rss, pss, swap; /* resident, its share of what is shared, swapped out */
    int64_t limit; /* what the control group may have, or --limit if that is less; run only */
    int64_t group; /* what the group has, files in memory included; run only */
};

/* A call or region of the program, marked on the curve: when it began and ended, and what the process
 * had then (−1: not known). */
struct fm_memory_mark {
    uint32_t process;
    uint32_t name;   /* string id */
    uint32_t level;  /* how many are around it; FM_MARK_NO_LEVEL: not known */
    uint32_t thread; /* tid; 0: not known */
    uint64_t begin_ns, end_ns;
    int64_t begin_bytes, end_bytes;
};

#define FM_MARK_NO_LEVEL UINT32_MAX

/* What the resident memory of a process was made of, at an instant; the order is that of the file. */
/* clang-format off */
#define FM_RESIDENT_LIST(X)                                                                        \
    X(PYTHON,   "python",   "alive: Python's blocks")                                              \
    X(C,        "c",        "alive: C's blocks")                                                   \
    X(MAPPINGS, "mappings", "alive: mappings")                                                     \
    X(PYMALLOC, "pymalloc", "Python's allocator: free blocks and pools, rounding")                 \
    X(MALLOC,   "malloc",   "C's allocator: free chunks, headers; what it never gave out")         \
    X(RESERVED, "reserved", "allocators of libraries")                                             \
    X(FILES,    "files",    "code, data and files")                                                \
    X(STACKS,   "stacks",   "stacks")                                                              \
    X(SHARED,   "shared",   "shared memory")                                                       \
    X(OWN,      "own",      "Fathom's own")                                                        \
    X(REST,     "rest",     "not explained")
/* clang-format on */

enum fm_resident_part {
#define X(name, key, title) FM_RESIDENT_##name,
    FM_RESIDENT_LIST(X)
#undef X
        FM_RESIDENT_PARTS,
};

enum fm_resident_when { FM_RESIDENT_HIGHEST, FM_RESIDENT_LAST, FM_RESIDENT_WHENS };

struct fm_resident {
    uint32_t process;
    uint32_t when;                    /* enum fm_resident_when: of those that were looked at so */
    uint64_t at_ns;                   /* CLOCK_MONOTONIC */
    int64_t rss;                      /* the sum of the parts */
    int64_t untouched;                /* allocated, but never touched: no part of it */
    int64_t parts[FM_RESIDENT_PARTS]; /* bytes; the rest may be below 0 */
};

/* Addresses that a library took for an allocator of its own, at the same instant. */
struct fm_reserve {
    uint32_t process;
    uint32_t when;
    uint32_t library; /* string id: its file; 0: not known */
    int64_t reserved, resident;
};

const char *fm_resident_title(enum fm_resident_part part);
const char *fm_resident_key(enum fm_resident_part part); /* of JSON and CSV */

struct fm_memory {
    FM_VEC(struct fm_resident) residents;
    FM_VEC(struct fm_reserve) reserves;
    FM_VEC(struct fm_heap_count) counts;
    FM_VEC(struct fm_memory_point) points; /* of each process in order of time */
    FM_VEC(struct fm_memory_mark) marks;
    FM_VEC(struct fm_history) histories;
};

void fm_memory_release(struct fm_memory *memory);

/* The nodes are others by now: what names them goes. */
void fm_memory_forget_histories(struct fm_memory *memory);

/* Where a bucket begins: bytes, or allocations; of kinds it is the kind itself. The bucket behind the
 * last begins where that ends. */
int64_t fm_heap_bucket_start(enum fm_heap_table table, uint32_t bucket);

/* Who was asked, for people: "Python objects", "malloc", … */
const char *fm_heap_kind_title(int64_t kind);

#endif
