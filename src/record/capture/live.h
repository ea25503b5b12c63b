/*
 * The live store: how a profiled process keeps its profile so that nothing can lose it.
 *
 * The agent does not write while the program runs. It keeps the calling-context tree in memory
 * that is mapped, shared, from a file in the run's folder (normally on /dev/shm, so no disk is
 * involved). Whatever ends the process - exit, os._exit, exec, SIGKILL, a crash, the out-of-memory
 * killer - the kernel keeps those pages, and the launcher, or `fathom merge` later, reads them.
 * This costs the hot path nothing and needs no signal handler, no helper thread, no exit hook.
 *
 * Layout, all in the machine's own byte order (the file never leaves the machine):
 *
 *     fm_live_header   one page
 *     fm_live_chunk    header + payload, repeated; each a multiple of FM_LIVE_PAGE
 *
 * Chunks are only ever appended. A chunk holds records of one kind; `used` counts payload bytes and
 * is advanced only after the bytes are in place, so a reader of a dead process sees whole records.
 * If the first file's file system fills up, further chunks go to a second file of the same name
 * with ".more" behind it, which has chunks only.
 *
 * Who writes. The agent of the one process, with the GIL of the interpreter it records held, but for
 * the header's end and a thread's own record, which its lock guards (target/agent/threads.h). Nobody
 * but readers looks at the file meanwhile.
 *
 * Pointers inside records are addresses in the process that wrote them. A reader turns one into a
 * node by the chunk's `address`; it trusts nothing: every id, count and pointer is checked.
 */
#ifndef FM_CAPTURE_LIVE_H
#define FM_CAPTURE_LIVE_H

#include <stdint.h>

#define FM_LIVE_MAGIC             "FATHOMLV"
#define FM_LIVE_VERSION           1
#define FM_LIVE_OWN_FILE          "<fathom>" /* the "file" of code that the agent runs itself */
#define FM_LIVE_PAGE              4096u
#define FM_LIVE_SUFFIX            ".live"       /* PID.N.live   a profiled process */
#define FM_LIVE_MORE_SUFFIX       ".more"       /* PID.N.live.more */
#define FM_LIVE_UNPROFILED_SUFFIX ".unprofiled" /* PID.N.unprofiled: a Python without an agent */

/* What a process could not record, counted; index into fm_live_header.lost. */
/* clang-format off */
#define FM_LIVE_LOST_LIST(X)                                                                       \
    X(CONTEXTS, "calls whose own context was not kept: the limit or the memory was exhausted")     \
    X(EVENTS, "returns that matched no open call")                                                 \
    X(HOOK, "times the program had the profile or trace hook for itself")                                         \
    X(THREADS, "threads that share one tree because there were too many")                          \
    X(SOURCES, "sources of generated code that were too large to keep")                            \
    X(TOOL_ID, "monitoring tool ids all taken: nothing recorded")                                  \
    X(CALLS, "calls that were not counted: the store was full")                                    \
    X(TOOL_FREED, "Fathom's monitoring tool, which the program freed: what came after is missing") \
    X(REGIONS, "visits of regions that have no row of their own: there were too many, or no memory for it") \
    X(VALUES, "values of calls and variables that were left out: there was more than 1 MiB of them in a second")
/* clang-format on */

enum fm_live_lost {
#define X(name, meaning) FM_LIVE_LOST_##name,
    FM_LIVE_LOST_LIST(X)
#undef X
};

enum fm_live_flags {
    FM_LIVE_C_CALLS = 1,   /* C calls were recorded */
    FM_LIVE_FORKED = 2,    /* began by fork from a profiled process */
    FM_LIVE_ENDED = 4,     /* end_ticks was set by the process itself */
    FM_LIVE_CALLS = 8,     /* every call was recorded, not only those of functions with lines */
    FM_LIVE_LINES_ON = 16, /* lines were recorded */
    FM_LIVE_TRACED = 32,   /* calls are not here but in PID.N.trace (live_trace.h) */
};

struct fm_live_header {
    char magic[8];
    uint32_t version;
    uint32_t flags;
    uint32_t pid, parent_pid;
    uint32_t python_hex;            /* PY_VERSION_HEX of the interpreter */
    uint32_t opens;                 /* how often a thread got a record of OPEN, or took one over */
    uint64_t start_ticks, start_ns; /* one instant on both clocks (CLOCK_MONOTONIC) */
    uint64_t start_real_ns;         /* the same instant, CLOCK_REALTIME */
    uint64_t later_ticks, later_ns; /* a later pair: enough to estimate the length of a tick */
    uint64_t end_ticks;             /* last instant known to the process, 0 if it never said */
    /* What one event pair costs the program, in ticks * 256, measured at start in this process. */
    uint64_t cost_python_call, cost_c_call, cost_resume;
    /* Spent in the agent outside events already known: starting, new contexts. */
    uint64_t own_ticks;
    uint64_t cost_line; /* as the costs above, of one line */
    uint64_t nowhere;   /* in-process pointer: the node of calls without a context, in no chunk */
    uint64_t lost[16];
    uint64_t slow_permille; /* by how much instructions without an event take longer */
};

enum fm_live_kind {
    FM_LIVE_NODES = 1,   /* struct fm_live_node[] */
    FM_LIVE_DEFS = 2,    /* definitions: a log of varint records, see below */
    FM_LIVE_THREADS = 3, /* struct fm_live_thread[] */
    FM_LIVE_STACK = 4,   /* struct fm_live_frame[], of one thread */
    FM_LIVE_RESUMED = 5, /* struct fm_live_resumed[] */
    FM_LIVE_LINES = 6,   /* struct fm_live_line[] */
    FM_LIVE_REGIONS =
        7,              /* struct fm_live_region[], in the order of their ids, which begin with 1 */
    FM_LIVE_VISITS = 8, /* struct fm_live_visit[] */
    FM_LIVE_METERS = 9, /* struct fm_live_meter[], numbered from 0 */
    FM_LIVE_OPEN = 10,  /* struct fm_live_open[] */
    FM_LIVE_KIND_COUNT, /* a kind below this is one of these, or 0, which is none */
};

#define FM_LIVE_CHUNK_MAGIC 0x4b4e4843u /* "CHNK" */

struct fm_live_chunk {
    uint32_t magic;
    uint32_t kind;
    uint32_t bytes;    /* the whole chunk, this header included */
    uint32_t used;     /* payload bytes in use */
    uint32_t first_id; /* NODES, THREADS: the id of the first record. STACK: its own number */
    uint32_t reserved;
    uint64_t address; /* where this chunk lay in the process */
    uint8_t pad[32];
};

/* A context: a function under its caller. One cache line; the hot path touches nothing else. */
struct fm_live_node {
    uint64_t last_child; /* in-process pointer: the child called most recently, a guess */
    uint64_t resumed;    /* in-process pointer to a struct fm_live_resumed, or 0 */
    uint32_t parent;     /* node id; roots name themselves */
    uint32_t func;       /* function id from the definitions; 0 for a root */
    uint64_t calls;      /* entries, counted on entry; resumes are not calls */
    uint64_t total_ticks, min_ticks, max_ticks; /* of completed entries */
    uint32_t id;
    int32_t next_hint; /* in-process: distance, in nodes, to the sibling called after this one */
};

/* What only generators and coroutines have. */
struct fm_live_resumed {
    uint32_t node;
    uint32_t reserved;
    uint64_t resumes;
    uint64_t suspended_ticks; /* from yield to the next resume */
    uint64_t reserved2;
};

/* One open call on a thread's stack; reading a dead process credits the time until its end. */
struct fm_live_frame {
    uint64_t node; /* in-process pointer to a struct fm_live_node */
    uint64_t key;  /* code object or method definition, to match the return */
    uint64_t enter_ticks;
    uint64_t func; /* in-process pointer, the agent's own */
};

struct fm_live_thread {
    uint32_t root;  /* node id */
    uint32_t tid;   /* kernel thread id */
    uint32_t stack; /* number (first_id) of the STACK chunk in use */
    uint32_t depth; /* open frames in it, not counting frame 0, which is the thread's root */
    uint64_t start_ticks, last_ticks;
    uint64_t cpu_ns; /* CPU time between first and last look at the thread's clock */
    uint64_t cpu_start_ns;
    char name[64];      /* UTF-8, NUL-terminated, cut if longer; empty if unknown */
    uint64_t end_ticks; /* it ended then and its `depth` calls with it; 0 if it went on, or if they
                           were closed */
    uint8_t pad[8];
};

/*
 * A line of a function of which lines are recorded, over all threads of the process. Times are of
 * visits: from the moment the line begins until another line of the same activation does.
 * The histogram counts visits by inclusive time: bucket 2n for [2^n, 1.5 * 2^n) ticks, 2n + 1 for
 * [1.5 * 2^n, 2^(n+1)); shorter ones in bucket 0, longer ones in the last.
 */
#define FM_LIVE_LINE_BUCKETS 80

struct fm_live_line {
    uint32_t func; /* as in nodes */
    uint32_t line; /* number in the file; the first line of a statement that spans several */
    uint64_t hits;
    uint64_t total_ticks; /* callees included; of nested activations only the outermost counts */
    uint64_t self_ticks;  /* without recorded callees */
    /* Of one visit, callees included; UINT64_MAX, 0: none ended yet. */
    uint64_t min_ticks, max_ticks;
    uint64_t suspended_ticks; /* a generator or coroutine waited here to be resumed */
    uint32_t active, owner;   /* the agent's own: activations on this line now, and whose */
    /* Of memory (target/agent/lines/line_memory.h): bytes; the heap after the last visit and the highest
     * after any; the most that it stood above where a visit found it. */
    uint64_t allocated, freed;
    int64_t heap_after, heap_most, above_most;
    uint64_t reserved[3];
    uint32_t buckets[FM_LIVE_LINE_BUCKETS];
};

/*
 * A region of the program (fathom.region) below the one around it, over all threads of the process: its
 * visits that ended. Of memory see target/agent/regions/regions.h. What is below itself counts once.
 */
struct fm_live_region {
    uint32_t id;
    uint32_t kept;    /* visits that were kept, and are in VISITS */
    uint64_t entered; /* counted on entry */
    uint64_t ended;
    uint64_t total_ticks, min_ticks,
        max_ticks;            /* from its begin to its end; min: UINT64_MAX, none */
    uint64_t suspended_ticks; /* of that, while the generator or coroutine that is in it waited */
    uint64_t allocated, freed;
    int64_t above_most; /* the most that one visit stood above what it found */
    /* Processor time, of visits in threads that ended: the sum of both; in how many visits. */
    int64_t cpu_ns, cpu_ticks;
    uint64_t cpu_ended;
    uint64_t reserved[3];
};

enum fm_live_visit_state {
    FM_LIVE_VISIT_FREE = 0, /* nothing, or a visit that was not kept */
    FM_LIVE_VISIT_RUNS = 1,
    FM_LIVE_VISIT_WAITS = 2, /* suspended */
    FM_LIVE_VISIT_ENDED = 3,
};

#define FM_LIVE_NO_METER UINT32_MAX /* of a visit that is in no thread: it has time alone */

/* One visit of a region: as long as it is open, and afterwards if it is kept. */
struct fm_live_visit {
    uint32_t region;
    uint32_t state; /* enum fm_live_visit_state */
    uint32_t tid;   /* of the thread that began it */
    uint32_t meter; /* number of that of the thread it runs in */
    uint32_t level; /* regions around it */
    uint32_t node;  /* its context in the tree of calls while it runs; 0: none */
    uint64_t order; /* of two that run in one thread, the one with the higher went on later */
    uint64_t begin_ticks, end_ticks;
    uint64_t suspended_ticks, since_ticks; /* waited in all; waits since, or (`node`) runs since */
    /* Of memory. The meter when it began, or went on; what was before that; and the highest that the
     * meter stood until the next region began or went on in the thread, and above its begin before. */
    uint64_t allocated, freed, had_allocated, had_freed;
    int64_t high, above;
    int64_t heap_begin, heap_end; /* what the process had; 0: not known */
};

/* What a thread that was in a region has allocated and freed since it began: the heap library counts
 * here (struct fm_heap_meter of target/heap/layout.h). */
struct fm_live_meter {
    uint64_t allocated, freed;
    int64_t high, top;
    uint64_t on; /* 0: nobody counts here */
    uint64_t reserved[3];
};

/*
 * The regions that a thread is in now, the oldest first, with whose they are: for whoever looks at the thread's frames
 * from outside, at an instant at which it does not run. The thread alone writes here. A region is below the
 * frame that is named, if that is still a call of the code.
 */
#define FM_LIVE_OPEN_MOST 40u

struct fm_live_open_region {
    uint64_t frame, code; /* addresses in the process; 0: not known */
    uint32_t region;      /* its id */
    uint32_t reserved;
};

struct fm_live_open {
    uint32_t tid;
    uint32_t n; /* may be more than there is room for: the newest are not here then */
    uint64_t reserved[7];
    struct fm_live_open_region regions[FM_LIVE_OPEN_MOST];
};

static inline unsigned fm_live_line_bucket(uint64_t ticks)
{
    if (ticks < 2)
        return 0;
    unsigned octave = 63 - (unsigned)__builtin_clzll(ticks);
    unsigned bucket = octave * 2 + (unsigned)(ticks >> (octave - 1) & 1);
    return bucket < FM_LIVE_LINE_BUCKETS ? bucket : FM_LIVE_LINE_BUCKETS - 1;
}

_Static_assert(sizeof(struct fm_live_line) == 448, "documented");
_Static_assert(sizeof(struct fm_live_region) == 128, "two cache lines");
_Static_assert(sizeof(struct fm_live_visit) == 128, "two cache lines");
_Static_assert(sizeof(struct fm_live_meter) == 64, "each thread's on a cache line of its own");
_Static_assert(sizeof(struct fm_live_open) == 1024, "whole cache lines, four of them to a page");
_Static_assert(sizeof(struct fm_live_node) == 64, "a node is one cache line");
_Static_assert(sizeof(struct fm_live_chunk) == 64, "payloads keep cache-line alignment");
_Static_assert(sizeof(struct fm_live_frame) == 32, "documented");
_Static_assert(sizeof(struct fm_live_resumed) == 32, "documented");
_Static_assert(sizeof(struct fm_live_thread) == 128, "documented");
_Static_assert(sizeof(struct fm_live_header) <= FM_LIVE_PAGE, "the header is one page");

/*
 * A definition is: varint length of the rest, then varint kind, then fields. Strings are varint
 * length + bytes (UTF-8). A reader skips kinds it does not know.
 */
enum fm_live_def {
    /* id, flags (enum fm_live_function_flags), line, name, qualname, file. Ids count from 1.
     * qualname is empty when equal to name. C functions have file "" and line 0. */
    FM_LIVE_DEF_FUNCTION = 1,
    /* key, value: facts about the process: "exe", "version", "command", "cwd", … */
    FM_LIVE_DEF_INFO = 2,
    /* file, text: source of code that has no file, as it was compiled. */
    FM_LIVE_DEF_SOURCE = 3,
    /* mtime_ns, size, file: state of a source file when first seen. */
    FM_LIVE_DEF_FILE = 4,
    /* function id, flags (enum fm_live_lines_flags): lines of this function are recorded. */
    FM_LIVE_DEF_LINES = 5,
    /* id, id of the region around it or 0, name. Ids count from 1. */
    FM_LIVE_DEF_REGION = 6,
    /* id, name: what marks of a trace are called (live_trace.h). Ids count from 1. */
    FM_LIVE_DEF_NAME = 7,
    /* id of its name, types: what an exception is called and all that it is made from, with commas. */
    FM_LIVE_DEF_EXCEPTION = 8,
};

enum fm_live_lines_flags {
    FM_LIVE_LINES_MARKED = 1, /* asked for by a decorator or by name, not by "mine" or "all" */
};

enum fm_live_function_flags {
    FM_LIVE_FUNCTION_C = 1,
    FM_LIVE_FUNCTION_GENERATOR = 2,
    FM_LIVE_FUNCTION_COROUTINE = 4,
    FM_LIVE_FUNCTION_ASYNC_GENERATOR = 8,
    FM_LIVE_FUNCTION_REGION = 16, /* of the program (fathom.region): name alone, as C functions */
};

#endif
