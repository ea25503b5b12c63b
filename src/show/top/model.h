/*
 * What `fathom top` shows, as numbers: tables of functions or lines, computed from the profiles
 * that the sampler hands out, one after the other.
 *
 * Model. Every profile is complete in itself and has ids of its own, so what is in it is known here
 * by its content: functions, threads, nodes and lines get numbers that stay for as long as the
 * model lives. Each node and line has its numbers as of the last profile ("now") and of the one
 * before; their difference is the last interval. A selected, opened or filtered row therefore stays
 * the same row from one refresh to the next. The profiles themselves are not kept.
 *
 * Self time of a function is that of the samples that ended in it; total time counts a sample once,
 * however often the function is on the stack. Lines have no threads: they are those of all.
 *
 * Plain C without a live process and without a terminal. Threads: none.
 */
#ifndef FM_TOP_MODEL_H
#define FM_TOP_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/strings.h"
#include "base/vec.h"
#include "record/model/profile.h"

struct fm_top_count {
    int64_t samples;
    int64_t state_ns[FM_STATE_COUNT];
};

struct fm_top_function {
    uint8_t kind;
    uint32_t line, twin;
    uint32_t name; /* qualified if known; string id of the model */
    uint32_t file; /* index, or FM_NONE */
};

struct fm_top_file {
    uint32_t path; /* string id */
    uint32_t cut;  /* bytes in front that are not needed to tell it from the others */
};

struct fm_top_thread {
    uint32_t pid, tid, name; /* name: string id */
    uint32_t root;           /* node */
    struct fm_top_count now, before;
};

struct fm_top_node {
    uint32_t parent, func, thread;
    bool outermost; /* no caller of it is the same function */
    struct fm_top_count now, before;
};

/* What threads waited for at a line. */
struct fm_top_wait {
    uint32_t line;   /* index of fm_top_model.lines */
    uint32_t next;   /* wait of the same line, or FM_NONE */
    uint32_t state;  /* enum fm_state */
    uint32_t detail; /* string id */
    int64_t samples, now_ns, before_ns;
};

struct fm_top_line {
    uint32_t func, line;
    uint32_t wait; /* the last one met, or FM_NONE */
    struct fm_top_count now, before;
    int64_t total_now_ns, total_before_ns;
};

struct fm_top_model {
    struct fm_strings *strings;
    struct fm_strings *function_keys; /* the content of each; id - 1 is its number */
    struct fm_strings *thread_keys;   /* the content of each, but several may be alike */
    struct fm_strings *wait_keys;     /* as function_keys */
    FM_VEC(struct fm_top_file) files;
    FM_VEC(struct fm_top_function) functions;
    FM_VEC(struct fm_top_thread) threads;
    FM_VEC(struct fm_top_node) nodes; /* a parent comes before its children */
    FM_VEC(struct fm_top_line) lines;
    FM_VEC(struct fm_top_wait) waits;
    struct fm_map file_of, thread_of, node_of, line_of;
    struct fm_map alike;             /* how many threads of one content the profile had so far */
    struct fm_top_count now, before; /* of everything */
    uint64_t start_ns, before_ns, now_ns;
    uint32_t command, version; /* of the first process: string ids */
    uint32_t processes;
};

struct fm_top_model *fm_top_model_new(uint64_t start_ns);
void fm_top_model_free(struct fm_top_model *model);

/* Take in what was gathered until `now_ns`: what was "now" becomes "before". */
void fm_top_model_take(struct fm_top_model *model, const struct fm_profile *p, uint64_t now_ns);

enum fm_top_sort {
    FM_TOP_SORT_SELF,
    FM_TOP_SORT_TOTAL,
    FM_TOP_SORT_SAMPLES,
    FM_TOP_SORT_NAME,
    FM_TOP_SORT_PLACE,
};

#define FM_TOP_ALL_STATES ((1u << FM_STATE_COUNT) - 1)

struct fm_top_query {
    bool lines;       /* instead of functions */
    bool since_start; /* shares of all the time, not of the last interval */
    uint32_t thread;  /* FM_NONE: all */
    unsigned states;  /* one bit per enum fm_state */
    enum fm_top_sort sort;
    bool reverse;
    /* Rows (by key) that are open although they normally are not, or the other way round: those
     * with value 1. A function or line is closed; a caller is open while it is the only one. */
    const struct fm_map *toggled;
};

struct fm_top_row {
    uint64_t key;        /* the same row has the same key in every table */
    uint32_t func, line; /* line 0: the row is a function */
    uint32_t wait;       /* FM_NONE, or this is what the line waited for */
    uint32_t depth;      /* 0, or how many calls above the function this caller is */
    bool has_more, open; /* callers of a function, waits of a line; they follow */
    /* Of the span that the shares are of: */
    int64_t self_ns, total_ns;        /* total −1: not known */
    int64_t state_ns[FM_STATE_COUNT]; /* what self is made of */
    /* Since the start: */
    int64_t self_start_ns, total_start_ns; /* total −1: not known */
    int64_t samples;
};

struct fm_top_table {
    FM_VEC(struct fm_top_row) rows;
    int64_t whole_ns; /* of which the shares are parts */
    double samples;   /* about how many samples that time is made of */
};

void fm_top_table_fill(struct fm_top_table *table, const struct fm_top_model *model,
                       const struct fm_top_query *query);
void fm_top_table_release(struct fm_top_table *table);

/* The half width of the 95 % interval of a share of one half, in percent: no share shown is off by
 * more. Only that share of the samples counts which was seen whole. 0 if there are none. */
double fm_top_table_error_percent(const struct fm_top_table *table, double whole_share);

/* What a row is called: its function, and "file:line", in as few components as tell files apart.
 * Not cleaned. The place goes into `out`. */
const char *fm_top_name(const struct fm_top_model *model, uint32_t func);
const char *fm_top_place(const struct fm_top_model *model, uint32_t func, uint32_t line, char *out,
                         size_t cap);

#endif
