/*
 * The trace of a process: what it tells the launcher of every call that begins or ends, with
 * `fathom run --trace`.
 *
 * Words of two bytes in chunks of shared memory, the file PID.N.trace in the run's folder: a page of
 * header, a descriptor per chunk, then the chunks. A thread owns the chunk that it fills; when it is
 * full (or the thread ends) the thread hands it over and takes a free one. The launcher empties what
 * was handed over, in the order of `sequence` of each thread, sets its bytes to zero and frees it. So
 * memory is bounded, nobody in the process writes to disk, and nothing is lost when it is killed: no
 * valid word is 0, so what a chunk holds ends at the first word that is 0, without a cursor.
 *
 *     word   := u16: bits 0-1 operation (enum fm_trace_op), bits 2-15 time + 1
 *     time   := units since the word before of the thread; a unit is 1 << header.shift ticks. Who writes
 *               advances its last time by the units that it wrote, so that rounding never adds up
 *     CALL   := word, u16: bit 15: a generator goes on (no new call), bits 0-14 function; 0x7fff: the
 *               function is in the u32 that follows (low half first). Function ids are those of the
 *               definitions in the live store (PID.N.live, FM_LIVE_DEF_FUNCTION), from 1 on
 *     RETURN := word: the innermost open call ends
 *     YIELD  := word: the innermost open call is a generator or coroutine and gives up control
 *     ESCAPE := word, u16: bits 0-7 kind (enum fm_trace_escape), bits 8-15 n, then n u16 of payload
 *
 * Names are those of the live store's definitions (FM_LIVE_DEF_NAME). Chunks that wait may be those of a
 * thread that did nothing for long: another that needs room hands them over for it, not full.
 *
 * Numbers in payloads are u32 or u64, low half first. A reader skips kinds that it does not know. A
 * thread's first chunk begins with TIME. A word may stand in the chunk before its payload does when
 * the process is killed: a reader accepts a call only with a function that is defined, and an escape
 * whose payload is in the chunk; the writer puts the payload in place before the word.
 */
#ifndef FM_CAPTURE_LIVE_TRACE_H
#define FM_CAPTURE_LIVE_TRACE_H

#include <stdint.h>

#define FM_TRACE_MAGIC         "FATHOMTR"
#define FM_TRACE_VERSION       1
#define FM_TRACE_SUFFIX        ".trace" /* PID.N.trace, beside PID.N.live */
#define FM_TRACE_CHUNK_BYTES   65536u
#define FM_TRACE_CHUNKS        256u /* at most: 16 MiB a process */
#define FM_TRACE_HEADER_BYTES  4096u
#define FM_TRACE_LONGEST       (2u * (2 + 255)) /* bytes of the longest record: an escape */
#define FM_TRACE_TIME_MAX      0x3ffeu          /* units that fit a word */
#define FM_TRACE_WIDE_FUNCTION 0x7fffu
#define FM_TRACE_RESUME        0x8000u

enum fm_trace_op {
    FM_TRACE_RETURN = 0,
    FM_TRACE_CALL = 1,
    FM_TRACE_YIELD = 2,
    FM_TRACE_ESCAPE = 3,
};

/* Payloads; all times in ticks. */
enum fm_trace_escape {
    FM_TRACE_TIME = 1,     /* u64 ticks: the last time is this now; the word's own is 0 */
    FM_TRACE_UNWIND = 2,   /* the innermost call ends by an exception */
    FM_TRACE_CLOSE = 3,    /* u32 n: the n innermost calls end, nobody heard how */
    FM_TRACE_THROW = 4,    /* u32 function: a generator goes on because something is thrown in */
    FM_TRACE_RAISE = 5,    /* u32 name: an exception of that type is raised in the innermost call */
    FM_TRACE_GC_BEGIN = 6, /* u32 generation */
    FM_TRACE_GC_END = 7,   /* u32 collected, u32 uncollectable */
    FM_TRACE_REGION_BEGIN = 8, /* u32 name: nests with calls and regions of the thread */
    FM_TRACE_REGION_END =
        9, /* u32 name: the innermost open region of that name ends; 0: the one that nothing is
                                   open in. Then, if it was in a coroutine that waited: u64 ticks,
                                   when it began first */
    FM_TRACE_COUNTER = 10,     /* u32 name, u64 bits of a double */
    FM_TRACE_INSTANT = 11,     /* u32 name */
    FM_TRACE_ASYNC_BEGIN = 12, /* u32 name, u32 token: a span that may end on another thread */
    FM_TRACE_ASYNC_END = 13,   /* u32 token */
    FM_TRACE_TASK_NEW = 14, /* u32 task (a number of its own, from 1), u32 name, u32 creator or 0 */
    FM_TRACE_TASK_STEP = 15,   /* u32 task or 0: who runs on this thread from now on */
    FM_TRACE_TASK_AWAITS = 16, /* u32 task, u32 task that it waits for, or 0: something else */
    FM_TRACE_TASK_DONE = 17,   /* u32 task, u32 enum fm_trace_task_end */
    FM_TRACE_OPEN = 18,      /* u32 function, u64 ticks: open without an event: it began before, or
                                   was inherited by fork, or is told again after LOST */
    FM_TRACE_LOST = 19,      /* u64 events, u64 from, u64 to: dropped; all open calls are told again
                                   by OPEN, outermost first, behind it */
    FM_TRACE_TASK_NAME = 20, /* u32 task, u32 name: it has another name now */
    FM_TRACE_VALUE = 21,     /* u32 name, u16: bits 0-3 enum fm_trace_value_of, bits 4-15 n; of
                                   TOKEN: u32 token; then n bytes of UTF-8 and one of 0 if n is odd */
    FM_TRACE_WAITED = 22,    /* u64 ticks: the thread stood still so long for room (block) */
    FM_TRACE_FORK = 23, /* u32 pid of the child, or 0: the child's store says who its parent is */
    FM_TRACE_RESUMED_AFTER =
        24, /* u16, u32 or u64 units (n is 1, 2 or 4): so long had the generator
                                    waited that goes on with the next record, CALL, THROW or
                                    REGION_BEGIN */
    FM_TRACE_ESCAPE_COUNT,
};

/* How a task ended, as far as its coroutine tells. */
enum fm_trace_task_end {
    FM_TRACE_TASK_UNKNOWN = 0,
    FM_TRACE_TASK_RETURNED = 1,
    FM_TRACE_TASK_RAISED = 2,
    FM_TRACE_TASK_CANCELLED = 3,
    FM_TRACE_TASK_FAILED =
        4, /* by an exception, cancelled or not: 3.11 with C calls tells no more */
    FM_TRACE_TASK_ENDS,
};

#define FM_TRACE_VALUE_BYTES 200u /* the longest text of a value */

/* What a value is of: the innermost open call or region, which began at this time; the innermost open
 * call, which ends at this time; a variable at this time; the span of a token, whose ASYNC_BEGIN the thread told
 * right before; the INSTANT that it told right before. */
enum fm_trace_value_of {
    FM_TRACE_OF_BEGIN = 0,
    FM_TRACE_OF_END = 1,
    FM_TRACE_OF_VARIABLE = 2,
    FM_TRACE_OF_TOKEN = 3,
    FM_TRACE_OF_INSTANT = 4,
    FM_TRACE_OF_COUNT,
};

enum fm_trace_chunk_state {
    FM_TRACE_CHUNK_FREE = 0, /* zeroed; any thread of the process may take it (compare and swap) */
    FM_TRACE_CHUNK_FILLING = 1, /* its thread's */
    FM_TRACE_CHUNK_FULL = 2,    /* the launcher's */
};

struct fm_trace_chunk {
    uint32_t state;    /* enum fm_trace_chunk_state; changed last, with release */
    uint32_t thread;   /* number of the thread, from 1, never used again in the process: its place
                          among the THREADS of the live store, plus 1 */
    uint32_t tid;      /* of the kernel */
    uint32_t last;     /* 1: the thread ended with this chunk */
    uint64_t sequence; /* of the thread, from 0 */
    uint64_t ticks;    /* last time before the first word */
    uint64_t ns;       /* CLOCK_MONOTONIC at that time, to follow the clock */
    uint64_t reserved[3];
};

/* What a thread has lost and not told yet, because there was no room for a LOST: it may end so. */
struct fm_trace_untold {
    uint32_t thread; /* as in chunks; 0: of nobody */
    uint32_t tid;
    uint64_t events;
    uint64_t ticks; /* of the last of them */
};

#define FM_TRACE_UNTOLD 128u /* threads; those of others are in `lost_events` alone */

struct fm_trace_header {
    char magic[8];
    uint32_t version;
    uint32_t shift; /* of the unit of time */
    uint32_t chunks,
        chunk_bytes; /* chunks that have room in the file: grows, when all are in use */
    uint32_t drops;  /* 1: --on-full drop, 0: block */
    uint32_t reserved;
    _Alignas(64) uint32_t handed; /* futex: chunks handed over so far; the launcher waits here */
    uint32_t launcher_waits;      /* 1: wake it when a chunk is handed over */
    _Alignas(
        64) uint32_t freed; /* futex: chunks freed so far; a thread that needs one waits here */
    uint32_t threads_wait;  /* so many wait */
    uint32_t closed;        /* nobody empties chunks any more: events are counted as lost */
    _Alignas(64) uint64_t lost_events;
    uint64_t waited_ticks;
    uint64_t own_ticks; /* spent outside of events */
    struct fm_trace_untold untold[FM_TRACE_UNTOLD];
};

#define FM_TRACE_DESCRIPTORS_AT FM_TRACE_HEADER_BYTES
#define FM_TRACE_CHUNKS_AT      (FM_TRACE_DESCRIPTORS_AT + FM_TRACE_CHUNKS * 64u)
#define FM_TRACE_FILE_BYTES     (FM_TRACE_CHUNKS_AT + FM_TRACE_CHUNKS * FM_TRACE_CHUNK_BYTES)

_Static_assert(sizeof(struct fm_trace_header) <= FM_TRACE_HEADER_BYTES, "it fits");
_Static_assert(sizeof(struct fm_trace_chunk) == 64, "a cache line each");

#endif
