/*
 * Inside the recorder: what recorder.c (numbers, order, blocks) and record_profile.c (a profile as a
 * whole) share. Nobody else includes this.
 *
 * Invariants:
 *  1. `known` holds every string, function, source and fact that was given; ids in it are the numbers
 *     of the file.
 *  2. Names are written before all tables, source text right before the table that names it: the
 *     last, so that a file that is cut off lacks text rather than numbers. Rows wait in `tables`, in the order of FM_RECORDER_TABLES; a row refers only to rows of tables
 *     before its own, or to earlier rows of its own. So writing all tables in order is always right.
 *  3. The values of the nodes that wait are in `stretch`, one column per metric; those of nodes that
 *     were written before are in `late`.
 */
#ifndef FM_MODEL_RECORDING_H
#define FM_MODEL_RECORDING_H

#include "base/map.h"
#include "record/capture/compress.h"
#include "record/capture/format.h"
#include "record/capture/rows.h"
#include "record/capture/writer.h"
#include "record/model/profile.h"

/* clang-format off */
#define FM_RECORDER_TABLES(X)                                                                      \
    X(RUN) X(PROCESSES) X(NOTES) X(METRICS) X(FUNCTIONS) X(THREADS) X(NODES) X(FLAT_ROWS)          \
    X(FLAT_EDGES) X(LINE_MARKS) X(LINE_UNIT) X(LINES) X(LINE_VISITS) X(LINE_STATES) X(LINE_MEMORY) \
    X(SPOTS) X(WAITS) X(HEAP_COUNTS) X(MEMORY_POINTS) X(MEMORY_MARKS) X(HISTORIES)                 \
    X(HISTORY_CONTEXTS) X(HISTORY_CHANGES) X(REGIONS) X(RESIDENTS) X(RESERVES) X(TRACE_STREAMS)    \
    X(TRACE_FUNCTIONS) X(TRACE_NAMES) X(SAMPLE_ROUNDS) X(SAMPLE_LANES) X(SAMPLE_ITEMS) X(SOURCES)
/* clang-format on */

enum fm_recorder_table {
#define X(name) FM_TABLE_##name,
    FM_RECORDER_TABLES(X)
#undef X
        FM_TABLES
};

struct fm_late_value {
    uint32_t node;
    uint32_t metric : 8,
        order : 24; /* order: in which they came, for those that the last one sets */
    int64_t value;
};

/* Strings of one numbering, names or source text: all that are known, and those that wait. */
struct fm_new_strings {
    struct fm_strings *known;
    struct fm_buffer bytes;
    uint32_t first, count;
};

/* The last row of a table whose rows are told by their difference to the one before of the block: of
 * whichever profile it was. */
struct fm_row_before {
    uint64_t time, context;
};

struct fm_recorder {
    struct fm_row_before point, change, item, round; /* ns; µs; –; ns */
    struct fm_writer writer;
    struct fm_compressor *compressor; /* NULL: blocks as they are */
    int failed;                       /* 0, or the negative errno of the first failure */
    struct fm_profile *known;
    struct fm_buffer block; /* a payload being put together */
    struct fm_new_strings names, texts;
    uint64_t cut_strings;
    struct fm_rows tables[FM_TABLES];
    uint32_t metric_numbers[FM_METRIC_COUNT]; /* of the file, + 1; 0: not used yet */
    int64_t *stretch[FM_METRIC_COUNT];        /* NULL, or FM_ROWS_MAX values */
    FM_VEC(struct fm_late_value) late;
    struct fm_map children; /* (context, function) → context */
    struct fm_map sources;  /* (file, text) of those that are known */
    uint32_t runs;          /* of the profiles so far */
    uint32_t traces;        /* … and theirs */
};

/* Add a row; all that waits is written first if there is no room. Returns its number. */
uint64_t fm_recorder_row(struct fm_recorder *r, enum fm_recorder_table table, const uint64_t *cells,
                         uint32_t width);

#define FM_RECORDER_ROW(r, table, ...)                                                             \
    fm_recorder_row((r), (table), (const uint64_t[]){ __VA_ARGS__ },                               \
                    sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

/* Write all that waits. */
void fm_recorder_write(struct fm_recorder *r);

/* What is one for all profiles and known at the end: the table of those that came without a tree, and
 * the unit of a timer. */
void fm_recorder_sums(struct fm_recorder *r);

/* The traces of a profile that was appended: what its processes and threads begin with in the file, and
 * the numbers of its functions and strings there. */
struct fm_append_numbers {
    uint32_t first_process, first_thread;
    const uint32_t *functions;
    uint32_t (*string)(void *context, uint32_t string);
    void *context;
};
void fm_recorder_traces(struct fm_recorder *r, const struct fm_profile *p,
                        const struct fm_append_numbers *numbers);

/* Source text: as a string, in blocks that a reader may pass over. */
uint32_t fm_recorder_source_text(struct fm_recorder *r, const void *bytes, size_t len);

/* The values that wait of one metric, by place among the nodes that wait. */
int64_t *fm_recorder_stretch(struct fm_recorder *r, enum fm_metric metric);

static inline uint64_t fm_recorder_next(const struct fm_recorder *r, enum fm_recorder_table table)
{
    return fm_rows_next(&r->tables[table]);
}

/* The order of samples of a profile; the numbers of its processes, threads and contexts begin at these. */
struct fm_order_numbers {
    uint32_t first_process, first_thread, first_node;
};
void fm_recorder_order(struct fm_recorder *r, const struct fm_sample_order *order,
                       const struct fm_order_numbers *numbers);

#endif
