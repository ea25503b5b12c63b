/*
 * The .fathom file: names and numbers of its blocks. docs/format.md explains every byte and why;
 * this header is the single list that code uses.
 *
 *     file   := magic(8), u16 major, u16 minor, u32 checksum of these 12 bytes, then block*
 *     block  := u32 sync, u16 type, u16 codec, u32 stored_bytes, u32 raw_bytes,
 *               u32 checksum of the stored payload, u32 checksum of these 20 bytes,
 *               then stored_bytes of payload
 *
 * Little-endian; checksums are CRC-32C. The header has a checksum of its own so that a reader knows
 * a length to be right before it relies on it, and can tell a cut-off block from rubbish.
 * Whatever a block refers to is defined by an earlier block, so any prefix is a valid recording.
 * An unknown block type is skipped; an unknown major version is refused by name.
 */
#ifndef FM_CAPTURE_FORMAT_H
#define FM_CAPTURE_FORMAT_H

#include <stdint.h>

/* clang-format off */
#define FM_FILE_MAGIC "\x89" "FTHM\r\n\x1a"
/* clang-format on */
#define FM_FILE_MAGIC_BYTES  8
#define FM_FILE_HEADER_BYTES 16
#define FM_FILE_MAJOR        1
/* 1: lines (blocks 14 to 17, two flags of processes); 2: samples (blocks 18 to 20, a flag and seven
 * columns of processes); 3: source text in blocks of its own (21), a column of processes; 4: one
 * more of these, the run;
 * 5: memory (blocks 22 to 25, lines of nodes, two flags and a column of processes);
 * 6: memory over time (blocks 26 to 28), regions (block 29, a column of marks), what resident memory is
 * made of (30, 31), sampled memory (a column of processes, metrics of errors);
 * 7: traces and timelines (blocks 32 to 42) */
#define FM_FILE_MINOR 7

#define FM_BLOCK_SYNC         0x4b4c4246u /* "FBLK" */
#define FM_BLOCK_HEADER_BYTES 24
#define FM_BLOCK_MAX_BYTES    (64u << 20) /* raw or stored: bounds what a reader allocates */

enum fm_codec { FM_CODEC_NONE = 0, FM_CODEC_ZSTD = 1 };

/*
 * Payloads. All numbers are varints (zig-zag where marked "signed"); `str` is a string id.
 *
 *     table := first id, rows, columns, then column after column, each of `rows` numbers
 *
 * A later minor version may add columns behind those named here; a reader ignores columns that it
 * does not know and takes 0 for columns that are not there.
 */
enum fm_block_type {
    FM_BLOCK_STRINGS = 1,    /* first id, count, count × (length, bytes); "" is id 0, unwritten */
    FM_BLOCK_RUN = 2,        /* table: key str, value str; "command", "host", "live" … */
    FM_BLOCK_PROCESSES = 3,  /* table: see model/file/process_columns.h */
    FM_BLOCK_FUNCTIONS = 4,  /* table: kind, flags, line, name str, qualname str, file str, twin */
    FM_BLOCK_THREADS = 5,    /* table: process, tid, name str, start ns, end ns, CPU ns */
    FM_BLOCK_NODES = 6,      /* table: id − parent, function, line or 0; a root: 0, thread */
    FM_BLOCK_METRICS = 7,    /* table: name str, unit str, how to combine (enum fm_metric_kind) */
    FM_BLOCK_VALUES = 8,     /* first node, nodes, metrics, then each metric's number, then a column
                               of signed values for each; values of one node add up */
    FM_BLOCK_SOURCES = 9,    /* table: file str, state, text str (before 1.3), mtime ns, bytes,
                                number in TEXTS */
    FM_BLOCK_NOTES = 10,     /* table: process + 1 or 0, kind str, number, text str */
    FM_BLOCK_FLAT_ROWS = 11, /* table, of a profile that came without a tree (pstats): function,
                                 then signed: calls, primitive, resumes, self, total, min, max,
                                 suspended; then 1 if the numbers are samples */
    FM_BLOCK_FLAT_EDGES = 12,  /* table: caller function, callee function, then signed: calls,
                                 primitive, self, total */
    FM_BLOCK_END = 13,         /* the number of blocks before it: the writer finished in order */
    FM_BLOCK_LINES = 14,       /* table: process + 1 or 0, function, line, then signed: hits, total,
                                 self, min, max, suspended */
    FM_BLOCK_LINE_VISITS = 15, /* table: row of LINES, bucket (model/lines.h), visits in it */
    FM_BLOCK_LINE_MARKS = 16,  /* table: function whose lines were asked for by decorator or name */
    FM_BLOCK_LINE_UNIT = 17,   /* table: the timer unit of an imported .lprof, bits of a double */
    FM_BLOCK_LINE_STATES = 18, /* table: row of LINES, then signed: samples, ns of each state in the
                                  order of model/states.h */
    FM_BLOCK_SPOTS = 19, /* table: process + 1 or 0, function, line, end line, column, end column,
                            then signed: samples, ns */
    FM_BLOCK_WAITS = 20, /* table: process + 1 or 0, function, line, state, detail str, then signed:
                            samples, ns */
    FM_BLOCK_TEXTS =
        21, /* as STRINGS, with its own numbers: source text, which one may do without */
    FM_BLOCK_HEAP_COUNTS = 22, /* table: process + 1, table, bucket, then signed: blocks, bytes; see
                                  model/memory.h */
    FM_BLOCK_MEMORY_POINTS = 23, /* table: process + 1 or 0, ns since the row before of the block,
                                    signed, then heap, resident, proportional, swap, limit, group, each +
                                    1 or 0: not known */
    FM_BLOCK_LINE_MEMORY = 24, /* table: row of LINES, then signed: bytes allocated, freed, the heap
                                  after the last visit, the highest after any, the most above the
                                  beginning of a visit */
    FM_BLOCK_MEMORY_MARKS =
        25, /* table: process + 1 or 0, name str, level + 1 or 0, begin ns, end ns,
                                   then bytes at the begin and at the end, each + 1 or 0 */
    FM_BLOCK_HISTORIES =
        26, /* table: process + 1, begin ns, end ns, rows of it in HISTORY_CHANGES, 1 if
            it is of every event */
    FM_BLOCK_HISTORY_CONTEXTS = 27, /* table: row of HISTORIES, node */
    FM_BLOCK_HISTORY_CHANGES = 28, /* table: row of HISTORIES, µs since the row before of the block,
                                      signed, row of HISTORY_CONTEXTS − that of the row before,
                                      signed, then signed: bytes, blocks */
    FM_BLOCK_REGIONS =
        29, /* table: process + 1 or 0, row of the region around it + 1 or 0, name str,
                              then signed: times entered, visits open at the end, ns, suspended ns,
                              min ns, max ns; then 1 if memory is known, and signed: bytes allocated,
                              freed, the most above the beginning of a visit */
    FM_BLOCK_RESIDENTS = 30, /* table: process + 1 or 0, when, ns, then signed bytes: resident,
                                untouched, and the parts in the order of model/memory.h */
    FM_BLOCK_RESERVES = 31,  /* table: process + 1 or 0, when, library str, then signed bytes:
                                reserved, resident */
    /* Traces. Blocks of a trace begin with its number, a u32 with the low byte first; what is large in
     * them is compressed by itself. docs/format.md, "Traces", has every byte. */
    FM_BLOCK_TRACE_STREAMS = 32,   /* table: a lane each; see model/trace/traces.h */
    FM_BLOCK_TRACE_FUNCTIONS = 33, /* table: trace, number in its blocks, function */
    FM_BLOCK_TRACE_EVENTS = 34,    /* a stretch of events of a thread, which decodes alone */
    FM_BLOCK_TRACE_LEVELS = 35,    /* a level of detail of a thread */
    FM_BLOCK_TRACE_MARKS = 36,     /* what is no call: exceptions, counters, losses … */
    FM_BLOCK_TRACE_NAMES = 37,     /* table: trace, number in its blocks, name str */
    FM_BLOCK_SAMPLE_LANES = 38,    /* table: thread, first round, rounds, grain, rows of it in
                                      SAMPLE_ITEMS: the next ones */
    FM_BLOCK_TRACE_TASKS = 39,     /* asyncio tasks */
    FM_BLOCK_TRACE_CLOCK = 40,     /* instants on the clock of the process and CLOCK_MONOTONIC */
    FM_BLOCK_SAMPLE_ITEMS = 41,    /* table: row of SAMPLE_LANES, node + 1 or 0 − that of the row
                                      before of the block, signed, state, rounds */
    FM_BLOCK_SAMPLE_ROUNDS = 42,   /* table: process + 1, round and ns since those of the row before
                                      of the block, signed */
    FM_BLOCK_TYPES,                /* a type below this is known to this version */
};

#endif
