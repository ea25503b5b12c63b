/*
 * The heap store: how a process keeps what it knows of its memory so that nothing can lose it.
 *
 * The same idea as the live store (live.h), for the heap library (target/heap): counters and calling
 * contexts lie in memory that is mapped, shared, from a file PID.N.heap in the run's folder. What
 * ends the process does not matter; and the launcher, which maps the file too, sees the counters
 * move while the program runs: the curve of the heap costs the program nothing.
 *
 * Layout, all in the machine's own byte order (the file never leaves the machine):
 *
 *     fm_heap_header   FM_HEAP_HEADER_BYTES: facts, counters, and where the pieces lie
 *     pieces           arrays of nodes, of accounts, and the bytes of definitions, in any order
 *
 * In the process each array is one range of addresses; in the file its pieces are spread. A piece is
 * listed (`piece_count`) only after its space is there. What is beyond the count of an array is zero.
 *
 * Where the folder's file system is small, or memory is scarce, pieces lie in a second file on disk, of
 * the same name with ".more" behind it. If there was no room even for the header, that is in the
 * second file and the first one is empty.
 *
 * Numbers of nodes, accounts, codes and threads begin with 1 (threads with 0, the main thread's is
 * not always); 0 is none. A reader trusts nothing: every number is checked.
 */
#ifndef FM_CAPTURE_LIVE_HEAP_H
#define FM_CAPTURE_LIVE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#define FM_HEAP_MAGIC        "FATHOMHP"
#define FM_HEAP_VERSION      3
#define FM_HEAP_SUFFIX       ".heap" /* PID.N.heap */
#define FM_HEAP_MORE_SUFFIX  ".more" /* PID.N.heap.more */
#define FM_HEAP_HEADER_BYTES 16384u
#define FM_HEAP_PIECES       256

enum fm_heap_flags {
    FM_HEAP_PYTHON = 1,    /* allocations of Python's own allocators were recorded */
    FM_HEAP_FORKED = 2,    /* began by fork; accounts up to `inherited` were the parent's */
    FM_HEAP_ENDED = 4,     /* the process said that it ends */
    FM_HEAP_NO_TYPES = 16, /* types were asked for, and this Python does not tell them */
    FM_HEAP_TYPES_END =
        8,              /* the program took the place of who told types: later ones are not known */
    FM_HEAP_LATE = 32,  /* began while the program ran: what was there before is not known */
    FM_HEAP_READY = 64, /* what the process had when it began is told: a child tells that last */
};

/* Who allocated, for the table of kinds; the order is that of the counters below. */
/* clang-format off */
#define FM_HEAP_KIND_LIST(X)                                                                       \
    X(OBJECT, "Python objects")                                                                    \
    X(MEMORY, "Python memory")                                                                     \
    X(MALLOC, "malloc")                                                                            \
    X(CALLOC, "calloc")                                                                            \
    X(REALLOC, "realloc")                                                                          \
    X(ALIGNED, "aligned")                                                                          \
    X(MMAP, "mmap")
/* clang-format on */

enum fm_heap_kind {
#define X(name, title) FM_HEAP_KIND_##name,
    FM_HEAP_KIND_LIST(X)
#undef X
        FM_HEAP_KINDS,
};

/* Of sizes: bucket 2n for [2^n, 1.5 * 2^n) bytes, 2n + 1 for [1.5 * 2^n, 2^(n+1)). Of lifetimes: n
 * for less than 2^n allocations of the same thread, in whole octaves. */
#define FM_HEAP_SIZE_BUCKETS 96
#define FM_HEAP_LIFE_BUCKETS 33

static inline unsigned fm_heap_size_bucket(uint64_t bytes)
{
    if (bytes < 2)
        return 0;
    unsigned octave = 63 - (unsigned)__builtin_clzll(bytes);
    return octave * 2 + (unsigned)(bytes >> (octave - 1) & 1);
}

static inline unsigned fm_heap_life_bucket(uint32_t age)
{
    return age ? 32 - (unsigned)__builtin_clz(age) : 0;
}

/* What could not be recorded, counted. */
/* clang-format off */
#define FM_HEAP_LOST_LIST(X)                                                                       \
    X(BLOCKS, "allocations that were not recorded: Fathom's own memory was exhausted")             \
    X(CONTEXTS, "allocations without their context: there were too many, or no memory for it")     \
    X(DEEP, "allocations whose oldest callers were cut off: the stack was too deep")               \
    X(SIGNALS, "allocations inside of Fathom's own work, by a signal handler")
/* clang-format on */

enum fm_heap_lost {
#define X(name, meaning) FM_HEAP_LOST_##name,
    FM_HEAP_LOST_LIST(X)
#undef X
        FM_HEAP_LOST_COUNT,
};

/* Counters of one of two worlds: what holds the GIL ("Python": plain numbers), and what need not
 * ("C": atomic). `live` of both together is what is allocated now. */
struct fm_heap_counters {
    int64_t live, live_blocks;
    uint64_t unknown_frees; /* of blocks that were never seen */
    uint64_t sizes[FM_HEAP_SIZE_BUCKETS];
    uint64_t lives[FM_HEAP_LIFE_BUCKETS];
    uint64_t kind_blocks[FM_HEAP_KINDS], kind_bytes[FM_HEAP_KINDS];
};

enum { FM_HEAP_WORLD_PYTHON, FM_HEAP_WORLD_C, FM_HEAP_WORLDS };

enum fm_heap_array {
    FM_HEAP_NODES,    /* struct fm_heap_node[] */
    FM_HEAP_ACCOUNTS, /* struct fm_heap_account[] */
    FM_HEAP_DEFS,     /* bytes: definitions, see below */
    FM_HEAP_THREADS,  /* struct fm_heap_thread[] */
    FM_HEAP_SHARES,   /* struct fm_heap_share[], by account */
    FM_HEAP_ERRORS,   /* struct fm_heap_error[], by account: of sampled blocks */
    FM_HEAP_RANGES,   /* struct fm_heap_range[]: changed in place, from 0 on */
    FM_HEAP_ARRAYS,
};

/* Whose addresses are whose, for an account of resident memory. */
enum fm_heap_range_kind {
    FM_HEAP_RANGE_NONE,
    FM_HEAP_RANGE_MAPPING,  /* an mmap that counts as a block of its own; `by`: its caller */
    FM_HEAP_RANGE_RESERVED, /* one that does not: PROT_NONE, or MAP_NORESERVE */
    FM_HEAP_RANGE_STACK, /* a page of the stack of a thread, whose number is `by`; or MAP_STACK */
    FM_HEAP_RANGE_ARENA, /* of Python's small blocks */
    FM_HEAP_RANGE_PYTHON_BLOCK, /* FM_HEAP_LARGE_BYTES or more */
    FM_HEAP_RANGE_C_BLOCK,      /* … */
};

#define FM_HEAP_LARGE_BYTES (256 << 10)

struct fm_heap_range {
    uint64_t start, bytes; /* addresses; 0: none */
    uint64_t by;
    uint32_t kind, reserved;
};

/* Memory of Fathom's own in the process: as much of it as there is room for. */
#define FM_HEAP_OWN_RANGES 64
struct fm_heap_own_range {
    uint64_t start, end;
};

struct fm_heap_piece {
    uint32_t array;  /* enum fm_heap_array */
    uint32_t file;   /* 1: the second one */
    uint64_t at;     /* in the file */
    uint64_t offset; /* in the array, bytes */
    uint64_t bytes;
};

/* Of sampled blocks the worlds are two halves of all samples, and each finds a peak of its own, at which
 * the accounts of both note what they have (target/heap/sampled/sampled_account.h). */
struct fm_heap_half {
    int64_t peak;
    uint64_t variance; /* of what is alive, as in fm_heap_error */
    uint32_t epoch, rising;
};

struct fm_heap_header {
    char magic[8];
    uint32_t version;
    uint32_t flags;
    uint32_t pid, parent_pid;
    uint32_t inherited; /* the last account that was the parent's, and … */
    uint32_t piece_count;
    uint64_t start_ns, start_real_ns; /* CLOCK_MONOTONIC, CLOCK_REALTIME of one instant */
    uint64_t end_ns;                  /* 0 if the process never said */
    uint64_t used[FM_HEAP_ARRAYS];    /* records; of definitions bytes */
    uint64_t lost[FM_HEAP_LOST_COUNT];
    uint64_t own_bytes; /* of Fathom's tables in the process, beside this file */
    /* Allocations that were refused, the largest of them, and who asked for it. */
    uint64_t refused, refused_bytes;
    uint32_t refused_node, reserved;
    /* The peak. While `rising`, the highest is now; the first free after that begins a new epoch. */
    int64_t peak, peak_blocks;
    uint32_t epoch, rising;
    /* Of what the process has together with others (struct fm_heap_run): what it said it had, of
     * which what it was born with is no part; if it left, the peak of the run until then. */
    int64_t told, contributed, left_peak;
    int64_t earlier_peak; /* in a stretch that is measured for itself: the peak before it; else 0 */
    uint32_t left;        /* enum fm_heap_left */
    uint32_t member;      /* of the run, from 1 on; 0: of none */
    /* 0: every block is recorded. Else one in so many bytes, and all numbers are estimates. */
    uint64_t sample_bytes;
    struct fm_heap_half halves[FM_HEAP_WORLDS];
    _Alignas(64) struct fm_heap_counters worlds[FM_HEAP_WORLDS];
    _Alignas(64) struct fm_heap_piece pieces[FM_HEAP_PIECES];
    int64_t python_large; /* of what is alive of Python's: in none of its pools */
    int64_t mapped;       /* of what is alive of C's: mappings */
    struct fm_heap_own_range own[FM_HEAP_OWN_RANGES];
};

_Static_assert(sizeof(struct fm_heap_header) <= FM_HEAP_HEADER_BYTES, "it fits");

enum fm_heap_left {
    FM_HEAP_STAYS,
    FM_HEAP_EXECUTES, /* another program, unless that fails */
    FM_HEAP_LEFT,
};

/*
 * What all processes of a run have together: one file in the run's folder, which all of them map.
 *
 * A process tells of what it has when that has changed by FM_HEAP_TELL_BYTES, so the sum, and the
 * peak of it, are right within so much for each process. While `rising`, the highest sum is now; the
 * first process that tells of less begins a new epoch, as with the peak of one process. The sum is two
 * words: what the first process has, which nobody else writes, and what all others have.
 *
 * `gone` is the launcher's alone: what processes had that were killed, and could not say so.
 */
#define FM_HEAP_RUN_FILE    "together"
#define FM_HEAP_RUN_MAGIC   "FATHOMTG"
#define FM_HEAP_RUN_VERSION 3
#define FM_HEAP_TELL_BYTES  (16 << 10)

struct fm_heap_run {
    char magic[8];
    uint32_t version;
    uint32_t reserved;
    _Alignas(64) int64_t live;
    int64_t first;
    _Alignas(64) int64_t peak;
    int64_t gone;
    uint32_t epoch, rising;
    int64_t alone_peak; /* when the second joined: until then it was the first one's own */
    uint32_t members;   /* processes that joined, in all */
    /* Who passed the limit, and the sum then. It is asked to end; 0: nobody, or there is no limit. */
    uint32_t passed_by;
    int64_t limit, passed_sum;
    uint32_t teller; /* pid of who changes the sum now; 0: nobody */
    uint32_t unused;
};

_Static_assert(sizeof(struct fm_heap_run) == 192, "three cache lines");

/* A context: an instruction of a code object under its caller. Of a root `code` is 0. */
struct fm_heap_node {
    uint32_t parent;                  /* 0 for a root */
    uint32_t code;                    /* number of a definition */
    uint32_t offset;                  /* of the instruction, bytes from the first */
    uint32_t account[FM_HEAP_WORLDS]; /* 0: nothing was allocated here */
    uint32_t thread;
    uint64_t reserved;
};

/*
 * What was allocated in one context. `live` is what of it is alive now, `at` what was at the last
 * peak before `epoch`. An account of an older epoch than the header's has not changed since that one
 * began: whoever touches it next notes at = live first.
 */
struct fm_heap_account {
    uint64_t allocated, blocks;
    int64_t at, live;
    int32_t at_blocks, live_blocks;
    uint32_t epoch;
    uint32_t node;
    uint64_t temporary; /* freed before the thread allocated twice more: bytes, and blocks */
    uint32_t temporary_blocks, thread;
};

/* What of an account was alive when all processes together had most: as `at` and `epoch` of the
 * account, with the run's epochs. Kept while there is more than one process. */
struct fm_heap_share {
    int64_t at;
    int32_t at_blocks;
    uint32_t epoch;
};

/* How far the estimates of an account may be off: the expected squares of their errors, in squares of
 * FM_HEAP_VARIANCE_BYTES, so that they fit. */
#define FM_HEAP_VARIANCE_BYTES 16

struct fm_heap_error {
    uint64_t allocated, live, at, temporary;
    /* What the account had at the peak of its own half: as its `at` and `epoch`, which are of the other
     * half's. */
    int64_t own_at;
    uint64_t own_at_error;
    int32_t own_at_blocks;
    uint32_t own_epoch;
    uint64_t reserved;
};

/* By what there is at the peak of the other half, and at that of its own (sampled_account.h). */
static inline int64_t fm_heap_sampled_mean(int64_t at_others, int64_t at_own)
{
    return at_others / 4 * 3 + at_own / 4 + (at_others % 4 * 3 + at_own % 4) / 4;
}

/* A store may say anything. */
static inline int64_t fm_heap_square(uint64_t square)
{
    return square > INT64_MAX ? INT64_MAX : (int64_t)square;
}

/* What a sampled account of that half has at the peak, and the square of its error. Where the other half
 * has no sample at all it has no peak to ask at: a process that is small against what is sampled. */
struct fm_heap_sampled_peak {
    int64_t bytes, blocks, square;
};

static inline struct fm_heap_sampled_peak fm_heap_sampled_peak(const struct fm_heap_header *header,
                                                               int half,
                                                               const struct fm_heap_account *a,
                                                               const struct fm_heap_error *e)
{
    const struct fm_heap_half *own = &header->halves[half], *other = &header->halves[!half];
    bool own_is_now = e->own_epoch != own->epoch || own->rising;
    bool other_is_now = a->epoch != other->epoch || other->rising;
    struct fm_heap_sampled_peak now = { a->live, a->live_blocks, fm_heap_square(e->live) },
                                at = { a->at, a->at_blocks, fm_heap_square(e->at) },
                                own_at = { e->own_at, e->own_at_blocks,
                                           fm_heap_square(e->own_at_error) };
    if (own_is_now)
        own_at = now;
    if (!other->peak)
        return own_at;
    if (other_is_now)
        at = now;
    return (struct fm_heap_sampled_peak){
        fm_heap_sampled_mean(at.bytes, own_at.bytes),
        fm_heap_sampled_mean(at.blocks, own_at.blocks),
        fm_heap_sampled_mean(at.square, own_at.square),
    };
}

enum fm_heap_thread_flags {
    FM_HEAP_THREAD_CALLED = 2, /* `name`: so it calls itself for the system */
    FM_HEAP_THREAD_NAMED = 4, /* `name`: so Python calls it; else what the system called it first */
};

struct fm_heap_thread {
    uint32_t tid;
    uint32_t root;    /* node */
    uint32_t flags;   /* enum fm_heap_thread_flags */
    uint32_t threads; /* that shared this record, one after the other */
    uint64_t start_ns;
    char name[40];
};

_Static_assert(sizeof(struct fm_heap_node) == 32, "two to a cache line");
_Static_assert(sizeof(struct fm_heap_account) == 64, "one cache line");
_Static_assert(sizeof(struct fm_heap_thread) == 64, "documented");
_Static_assert(sizeof(struct fm_heap_share) == 16, "four to a cache line");
_Static_assert(sizeof(struct fm_heap_error) == 64, "one cache line");

/*
 * Definitions: varint length of the rest, varint kind, then fields; texts are varint length + bytes.
 * A reader skips kinds it does not know.
 */
enum fm_heap_def {
    /* code number, flags of the code object, first line, then name, qualname and file, and the
     * table of positions (PEP 657: 3.11 and later) */
    FM_HEAP_DEF_CODE = 1,
    /* the same fields of a type, by its name: a node of it has no offset. Numbers are of one list */
    FM_HEAP_DEF_TYPE = 2,
};

#endif
