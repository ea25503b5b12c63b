/*
 * Two recordings compared: what each function, line or path had before, has now, and the difference.
 *
 * Functions are matched as model/derive/pairs.h says, lines of functions as diff_lines.h does, paths by their functions or
 * lines, threads taken together. Numbers are those of the reports of each recording.
 *
 * A verb fills in both sides and makes the rows (fm_diff_init); the views print them.
 */
#ifndef FM_REPORT_DIFF_H
#define FM_REPORT_DIFF_H

#include "record/model/derive/pairs.h"
#include "show/report/report.h"

enum { FM_BEFORE, FM_NOW, FM_SIDES };

/* What is compared: a metric, of functions themselves or with their callees. */
/* clang-format off */
/*    key                 for programs              title              metric, with callees, of memory */
#define FM_DIFF_LIST(X)                                                                               \
    X("self",             "self_ns",                "self",             TOTAL,            false, false) \
    X("total",            "total_ns",               "total",            TOTAL,            true,  false) \
    X("calls",            "calls",                  "calls",            CALLS,            false, false) \
    X("peak",             "peak_bytes",             "peak",             PEAK,             false, true)  \
    X("total_peak",       "total_peak_bytes",       "total peak",       PEAK,             true,  true)  \
    X("peak_blocks",      "peak_blocks",            "peak blocks",      PEAK_BLOCKS,      false, true)  \
    X("leaked",           "leaked_bytes",           "at the end",       LEAKED,           false, true)  \
    X("total_leaked",     "total_leaked_bytes",     "total at the end", LEAKED,           true,  true)  \
    X("leaked_blocks",    "leaked_blocks",          "blocks at the end", LEAKED_BLOCKS,   false, true)  \
    X("allocated",        "allocated_bytes",        "allocated",        ALLOCATED,        false, true)  \
    X("total_allocated",  "total_allocated_bytes",  "total allocated",  ALLOCATED,        true,  true)  \
    X("blocks",           "blocks",                 "blocks",           BLOCKS,           false, true)  \
    X("temporary",        "temporary_bytes",        "temporary",        TEMPORARY,        false, true)  \
    X("total_temporary",  "total_temporary_bytes",  "total temporary",  TEMPORARY,        true,  true)  \
    X("temporary_blocks", "temporary_blocks",       "temporary blocks", TEMPORARY_BLOCKS, false, true)  \
    X("together",         "together_bytes",         "all together",     TOGETHER,         false, true)  \
    X("total_together",   "total_together_bytes",   "total all together", TOGETHER,       true,  true)  \
    X("together_blocks",  "together_blocks",        "blocks all together", TOGETHER_BLOCKS, false, true) \
    X("then",             "then_bytes",             "alive",            THEN,             false, true)  \
    X("total_then",       "total_then_bytes",       "total alive",      THEN,             true,  true)  \
    X("then_blocks",      "then_blocks",            "blocks alive",     THEN_BLOCKS,      false, true)
/* clang-format on */

enum { FM_DIFF_SELF, FM_DIFF_TOTAL, FM_DIFF_CALLS, FM_DIFF_PEAK, FM_DIFF_KEYS = 21 };

struct fm_diff_key {
    const char *name, *json, *title;
    enum fm_metric metric;
    bool total, memory;
};

extern const struct fm_diff_key fm_diff_keys[FM_DIFF_KEYS];

/* FM_DIFF_KEYS if there is none of that name. */
int fm_diff_key_named(const char *name);

enum fm_diff_order {
    FM_DIFF_BY_CHANGE, /* the largest difference first, whichever way */
    FM_DIFF_BY_GROWTH, /* what grew most first */
    FM_DIFF_BY_RATIO,
    FM_DIFF_BY_BEFORE,
    FM_DIFF_BY_NOW,
    FM_DIFF_BY_NAME,
};

struct fm_diff_row {
    uint32_t row[FM_SIDES]; /* of each side's table of functions; FM_NONE: it is not there */
    uint32_t line;          /* of lines: which, as it is called now */
    int64_t numbers[FM_SIDES][FM_DIFF_KEYS];
};

struct fm_diff {
    struct fm_report side[FM_SIDES]; /* with p, flat, names and files */
    const uint32_t
        *origin[FM_SIDES]; /* of memory by line: the functions that lines are of; else NULL */
    bool memory, lines;    /* lines: rows are lines of functions, of time */
    int key;               /* what is shown and sorted by */
    enum fm_diff_order order;
    int64_t time_ns[FM_SIDES]; /* all time of each */
    bool timed;                /* of two times of a run: */
    struct fm_shown shown[FM_SIDES];
    double scale;            /* that everything before was multiplied with */
    int rows_max, depth_max; /* < 0: all */
    double min_percent;
    struct fm_style style;
    FILE *out;
    /* Made by fm_diff_init. */
    uint32_t *name[FM_SIDES]; /* by function: its number among those of both */
    uint32_t names;
    FM_VEC(struct fm_diff_row) rows;
    int64_t all[FM_SIDES][FM_DIFF_KEYS]; /* of the whole recording, not scaled */
    size_t grew, shrank, fresh, gone;    /* rows that did, by the key */
};

/* `pairs` are of the functions as they were before memory was separated from time. With `normalize` the numbers
 * before are scaled so that their sum is that of now. */
void fm_diff_init(struct fm_diff *d, const struct fm_pairs *pairs, bool normalize);
void fm_diff_release(struct fm_diff *d);

static inline int64_t fm_diff_change(const struct fm_diff_row *row, int key)
{
    return row->numbers[FM_NOW][key] - row->numbers[FM_BEFORE][key];
}

/* The keys that this comparison has, one after the other; FM_DIFF_KEYS behind the last. */
int fm_diff_next_key(const struct fm_diff *d, int key);

/* A number of one side, scaled as the comparison asks. */
int64_t fm_diff_scaled(const struct fm_diff *d, int side, int64_t number);

/* "+1.2 ms", "-3", "" for none. `out` has room for FM_NUMBER_BYTES. */
char *fm_diff_number(char *out, enum fm_unit unit, int64_t change);
/* "2.00×", "new", "gone", "" if both are the same. */
char *fm_diff_ratio(char *out, int64_t before, int64_t now);
enum fm_color fm_diff_color(int64_t change);

/* What a row is called: of now, or of before if it is no more. */
const char *fm_diff_function(struct fm_diff *d, const struct fm_diff_row *row);
const char *fm_diff_place(struct fm_diff *d, const struct fm_diff_row *row, struct fm_buffer *own);

/* The views. */
void fm_diff_print_header(struct fm_diff *d);
void fm_diff_print_rows(struct fm_diff *d);
void fm_diff_print_json(struct fm_diff *d, bool tree);
void fm_diff_print_csv(struct fm_diff *d, bool tree);
void fm_diff_print_tree(struct fm_diff *d);

/* One path of both trees. */
struct fm_diff_step {
    int depth;
    uint64_t lasts;                /* bit n: on level n it is the last of its siblings */
    const struct fm_diff_row *row; /* its names; NULL: all together */
    int64_t total[FM_SIDES], self[FM_SIDES], calls[FM_SIDES];
    uint32_t hidden; /* not a path: so many that changed too little, with these totals */
};

typedef void fm_diff_show(const struct fm_diff_step *step, void *data);

/* Go through the trees of both: those that changed most first. */
void fm_diff_walk(struct fm_diff *d, fm_diff_show *show, void *data);

#endif
