/*
 * What is counted and measured: one list for the recording, the tables, trees and graphs of the
 * terminal, the foreign formats, and the page. A metric is one line here. Whoever adds up, sorts,
 * writes or draws numbers asks this description; nobody lists metrics a second time.
 *
 * The states of threads (model/states.h) are metrics too: the time a context spent in each. They
 * follow the list, in their own order.
 *
 * Add at the end of the list: the order is that of tables, and model/derive/flat.h calls the first ones by
 * their names. A recording names its metrics, so names must stay, but numbers are this program's
 * alone. A metric that this version does not know is left out when read.
 */
#ifndef FM_MODEL_METRICS_H
#define FM_MODEL_METRICS_H

#include "record/model/states.h"

/* What one of it is, and so how people and programs see it: "1.2 ms", "12,345", "3.4 MiB", "56 %".
 */
enum fm_unit {
    FM_UNIT_COUNT,
    FM_UNIT_NS,
    FM_UNIT_BYTES,
    FM_UNIT_SHARE, /* of one, in millionths */
    FM_UNIT_ERROR, /* bytes, as the square of a standard error, so that they add up; see fm_error_bytes */
    FM_UNIT_KINDS,
};

/* How two numbers of one context become one. The values are those of the file format. */
enum fm_metric_kind {
    FM_COMBINE_SUM = 0,
    FM_COMBINE_MIN = 1, /* 0 means none yet */
    FM_COMBINE_MAX = 2,
    FM_COMBINE_LAST = 3, /* the one that came later, if there is one */
};

/* What of a context a number is of. */
enum fm_metric_scope {
    FM_OF_CALLEES, /* it includes what the callees have; its own is the difference */
    FM_OF_SELF, /* its own; with what the callees have it is a total. Folded, it is the caller's */
    FM_OF_ENTRIES, /* of the entries into it alone: there is no total, and folded it is nobody's */
};

enum fm_metric_origin {
    FM_EXACT,       /* counted or measured */
    FM_SAMPLED,     /* estimated from samples */
    FM_AS_RECORDED, /* exact where calls were recorded, else sampled */
};

enum fm_metric_place {
    FM_PLACE_OWN,    /* the tables have a column for it already */
    FM_PLACE_COLUMN, /* a column of its own in every table, where any number is not zero */
    FM_PLACE_STATE,  /* with the other states */
    FM_PLACE_MEMORY, /* in the tables of memory */
    FM_PLACE_ERROR,  /* beside a metric of memory: how far an estimate may be off */
};

/* Colours are 0xrrggbb on a light and on a dark page; 0: the page's own. */
/*    name       in files     for people       unit   combine what of  origin       place   light, dark */
/* clang-format off */
#define FM_METRIC_LIST(X)                                                                          \
    X(TOTAL,     "total",     "time",          NS,    SUM,  CALLEES, AS_RECORDED, OWN,    0, 0) /* wall time */       \
    X(CALLS,     "calls",     "calls",         COUNT, SUM,  ENTRIES, EXACT,       OWN,    0, 0) /* from the caller */ \
    X(RESUMES,   "resumes",   "resumes",       COUNT, SUM,  ENTRIES, EXACT,       OWN,    0, 0) /* of generators */   \
    X(MIN,       "min",       "shortest call", NS,    MIN,  ENTRIES, EXACT,       OWN,    0, 0)                       \
    X(MAX,       "max",       "longest call",  NS,    MAX,  ENTRIES, EXACT,       OWN,    0, 0)                       \
    X(SUSPENDED, "suspended", "suspended",     NS,    SUM,  ENTRIES, EXACT,       OWN,    0, 0) /* yield to resume */ \
    X(SAMPLES,   "samples",   "samples",       COUNT, SUM,  SELF,    SAMPLED,     OWN,    0, 0) /* that ended here */ \
    X(PEAK,             "peak",             "memory at the peak", BYTES, SUM, SELF, EXACT, MEMORY, 0xb3541e, 0xe08a4f) \
    X(PEAK_BLOCKS,      "peak_blocks",      "blocks at the peak", COUNT, SUM, SELF, EXACT, MEMORY, 0xb3541e, 0xe08a4f) \
    X(LEAKED,           "leaked",           "memory at the end",  BYTES, SUM, SELF, EXACT, MEMORY, 0x9c2f4b, 0xe07090) \
    X(LEAKED_BLOCKS,    "leaked_blocks",    "blocks at the end",  COUNT, SUM, SELF, EXACT, MEMORY, 0x9c2f4b, 0xe07090) \
    X(ALLOCATED,        "allocated",        "allocated memory",   BYTES, SUM, SELF, EXACT, MEMORY, 0x8a6d1f, 0xd4b45c) \
    X(BLOCKS,           "blocks",           "allocations",        COUNT, SUM, SELF, EXACT, MEMORY, 0x8a6d1f, 0xd4b45c) \
    X(TEMPORARY,        "temporary",        "temporary memory",   BYTES, SUM, SELF, EXACT, MEMORY, 0x5d7a36, 0xa6c878) \
    X(TEMPORARY_BLOCKS, "temporary_blocks", "temporary blocks",   COUNT, SUM, SELF, EXACT, MEMORY, 0x5d7a36, 0xa6c878) /* freed at once */ \
    X(TOGETHER,         "together",         "memory when all processes had most", BYTES, SUM, SELF, EXACT, MEMORY, 0x7a4f9c, 0xb592d6) \
    X(TOGETHER_BLOCKS,  "together_blocks",  "blocks when all processes had most", COUNT, SUM, SELF, EXACT, MEMORY, 0x7a4f9c, 0xb592d6)        \
    X(THEN,             "then",             "memory at that time",  BYTES, SUM, SELF, EXACT, MEMORY, 0x2f6f8f, 0x7fb8d6) \
    X(THEN_BLOCKS,      "then_blocks",      "blocks at that time",  COUNT, SUM, SELF, EXACT, MEMORY, 0x2f6f8f, 0x7fb8d6) \
    X(PEAK_ERROR,       "peak_error",       "error of memory at the peak", ERROR, SUM, SELF, EXACT, ERROR, 0, 0) /* of sampled blocks */ \
    X(LEAKED_ERROR,     "leaked_error",     "error of memory at the end",  ERROR, SUM, SELF, EXACT, ERROR, 0, 0) \
    X(ALLOCATED_ERROR,  "allocated_error",  "error of allocated memory",   ERROR, SUM, SELF, EXACT, ERROR, 0, 0) \
    X(TEMPORARY_ERROR,  "temporary_error",  "error of temporary memory",   ERROR, SUM, SELF, EXACT, ERROR, 0, 0)
/* clang-format on */

enum fm_metric {
#define X(name, ...) FM_METRIC_##name,
    FM_METRIC_LIST(X)
#undef X
#define X(name, ...) FM_METRIC_STATE_##name,
        FM_STATE_LIST(X)
#undef X
            FM_METRIC_COUNT,
    FM_METRIC_STATES = FM_METRIC_COUNT - FM_STATE_COUNT, /* the first of them */
};

/* Sets of metrics are bits of a uint64_t, and a block of a recording has no more columns. */
_Static_assert(FM_METRIC_COUNT <= 64, "a bit for every metric");

struct fm_metric_info {
    const char *name;                /* in files, and for programs; also the sort key */
    const char *title, *total_title; /* for people */
    const char *total_name;          /* the sort key of totals: "total_…" */
    enum fm_unit unit;
    enum fm_metric_kind kind;
    enum fm_metric_scope scope;
    enum fm_metric_origin origin;
    enum fm_metric_place place;
    uint32_t light, dark; /* on a page: 0xrrggbb; 0: the page's own */
};

extern const struct fm_metric_info fm_metric_infos[FM_METRIC_COUNT];

static inline const struct fm_metric_info *fm_metric_info(enum fm_metric metric)
{
    return &fm_metric_infos[metric];
}

/* The metric of that name; FM_METRIC_COUNT if there is none. */
enum fm_metric fm_metric_named(const char *name);

/* Is it of memory: an amount, or how far that may be off? */
static inline bool fm_metric_is_memory(enum fm_metric metric)
{
    enum fm_metric_place place = fm_metric_info(metric)->place;
    return place == FM_PLACE_MEMORY || place == FM_PLACE_ERROR;
}

/* The number that says how far another may be off; FM_METRIC_COUNT if it has none. */
enum fm_metric fm_metric_error(enum fm_metric metric);

/* What is written as "±": the truth is within so many bytes in 19 of 20 cases. Two standard errors; where
 * there are few samples, of one in so many bytes, these are not known well either: of as many samples
 * more (tests/unit/test_sampled.c). What has no error is exact. */
#define FM_ERROR_WIDTH        2
#define FM_ERROR_UNIT_BYTES   16 /* the squares are of so many bytes */
#define FM_ERROR_MORE_SAMPLES 3
int64_t fm_error_bytes(int64_t squares, uint64_t sample_bytes);

/* How a unit is called in files: "", "ns", "bytes", "ppm", "256 bytes²". */
const char *fm_unit_name(enum fm_unit unit);

static inline const char *fm_metric_name(enum fm_metric metric)
{
    return fm_metric_info(metric)->name;
}

static inline const char *fm_metric_unit(enum fm_metric metric)
{
    return fm_unit_name(fm_metric_info(metric)->unit);
}

static inline enum fm_metric_kind fm_metric_kind(enum fm_metric metric)
{
    return fm_metric_info(metric)->kind;
}

/* Is the number of a context its own alone, and its caller's when it is folded? */
static inline bool fm_metric_is_self(enum fm_metric metric)
{
    return fm_metric_info(metric)->scope == FM_OF_SELF;
}

/* Has it a total, with callees, beside what is a context's own? */
static inline bool fm_metric_has_total(enum fm_metric metric)
{
    return fm_metric_info(metric)->scope != FM_OF_ENTRIES;
}

/* Is its total a sort key of its own, "total_…"? */
static inline bool fm_metric_has_total_key(enum fm_metric metric)
{
    enum fm_metric_place place = fm_metric_info(metric)->place;
    return (place == FM_PLACE_COLUMN || place == FM_PLACE_MEMORY) && fm_metric_has_total(metric);
}

/* May its numbers be below zero? They are differences of two instants, or of one and nothing. */
static inline bool fm_metric_is_difference(enum fm_metric metric)
{
    return metric == FM_METRIC_THEN || metric == FM_METRIC_THEN_BLOCKS;
}

/* Do its numbers add up, so that shares of them make sense? */
static inline bool fm_metric_is_sum(enum fm_metric metric)
{
    return fm_metric_info(metric)->kind == FM_COMBINE_SUM;
}

static inline enum fm_metric fm_metric_of_state(enum fm_state state)
{
    return (enum fm_metric)(FM_METRIC_STATES + (int)state);
}

/* The next metric of a set (a bit each) from `metric` on; FM_METRIC_COUNT behind the last. */
static inline int fm_metric_next(uint64_t metrics, int metric)
{
    while (metric < FM_METRIC_COUNT && !(metrics >> metric & 1))
        metric++;
    return metric;
}

/* Two numbers of one metric as one. */
int64_t fm_metric_combine(enum fm_metric metric, int64_t a, int64_t b);

#endif
