/*
 * The reports: each prints one view of a profile. A verb fills in a struct fm_report once; every
 * view reads it and changes nothing but the order of its own copies.
 *
 * Adding a report is one file here, one declaration below and one option in commands/report/report.c.
 */
#ifndef FM_REPORT_REPORT_H
#define FM_REPORT_REPORT_H

#include <stdio.h>

#include "base/error.h"
#include "record/model/derive/flat.h"
#include "record/model/profile.h"
#include "show/report/lines/linecolumns.h"
#include "show/report/memory/memory.h"
#include "show/report/names.h"
#include "show/report/query.h"
#include "show/report/table.h"

struct fm_timeline;

/* How tables of lines are wanted. */
struct fm_lines_view {
    struct fm_line_columns columns;
    enum fm_time_unit unit;
    int hot_max;    /* lines in the table of the hottest; < 0: all */
    bool summarize; /* one line per function */
};

/* The stretch of the timeline that is shown, since it began. */
struct fm_report_range {
    bool asked; /* only a part of it */
    uint64_t from_ns, to_ns, length_ns;
};

struct fm_report {
    const struct fm_profile *p;
    struct fm_flat_scope scope; /* the processes and threads shown */
    const struct fm_flat *flat; /* their functions */
    struct fm_names *names;
    const struct fm_query *query;
    const struct fm_linetables *lines; /* NULL, or the lines; then names and selection are theirs */
    struct fm_selection selection;     /* the rows to show, in order */
    struct fm_style style;
    FILE *out;
    const char *const *files; /* NULL-terminated: the inputs, by name */
    /* Of one view only. */
    int edges_max;      /* callers or callees shown per function; < 0: all */
    unsigned states;    /* only these count as time, a bit each; 0: all */
    int rows_max;       /* spots or waits; < 0: all */
    int depth_max;      /* levels of the tree; < 0: all */
    double min_percent; /* smallest share of the time a branch of the tree must have */
    struct fm_lines_view view;
    struct fm_memory_view memory;
    struct fm_timeline *timeline; /* of a report of the timeline */
    struct fm_report_range range;
};

enum fm_direction { FM_CALLERS, FM_CALLEES };

/* Tables and trees for people. */
void fm_report_header(const struct fm_report *r);
void fm_report_time_header(const struct fm_report *r); /* only how the times came about */
void fm_report_notes(const struct fm_report *r);
void fm_report_functions(const struct fm_report *r);
void fm_report_edges(const struct fm_report *r, enum fm_direction direction);
void fm_report_tree(const struct fm_report *r);
void fm_report_threads(const struct fm_report *r);
void fm_report_processes(const struct fm_report *r);
void fm_report_source(const struct fm_report *r);
void fm_report_states(const struct fm_report *r);   /* what threads and functions were doing */
void fm_report_waits(const struct fm_report *r);    /* what threads waited for */
void fm_report_regions(const struct fm_report *r);  /* named phases of the program */
void fm_report_spots(const struct fm_report *r);    /* the hottest expressions */
void fm_report_lines(const struct fm_report *r);    /* each function, line by line */
void fm_report_hot(const struct fm_report *r);      /* the hottest lines of all functions */
void fm_report_annotate(const struct fm_report *r); /* whole files, to be searched with grep */

/* Of a report of memory (memory.h): what its tables are, and what stands above them. */
void fm_report_memory_header(const struct fm_report *r);
void fm_report_memory_functions(const struct fm_report *r);
void fm_report_memory_edges(const struct fm_report *r, enum fm_direction direction);
void fm_report_memory_lines(const struct fm_report *r);
void fm_report_memory_threads(const struct fm_report *r);
void fm_report_memory_processes(const struct fm_report *r);
void fm_report_memory_stats(const struct fm_report *r);
void fm_report_memory_resident(const struct fm_report *r);
void fm_report_memory_reserves(const struct fm_report *r); /* sentences, for headers */
void fm_report_memory_resident_json(const struct fm_report *r, struct fm_buffer *out);
void fm_report_memory_resident_csv(const struct fm_report *r);

/* Of the timeline: the phases of its threads, the longest calls of functions. */
int fm_report_timeline(const struct fm_report *r, struct fm_error *err);
int fm_report_timeline_json(const struct fm_report *r, struct fm_error *err);
int fm_report_timeline_csv(const struct fm_report *r, struct fm_error *err);
int fm_report_slowest(const struct fm_report *r, struct fm_error *err);
int fm_report_slowest_json(const struct fm_report *r, struct fm_error *err);
int fm_report_slowest_csv(const struct fm_report *r, struct fm_error *err);

/* Calls that did the same, and where slow ones differ; timeline/alike.c. */
int fm_report_alike(const struct fm_report *r, struct fm_error *err);
int fm_report_alike_json(const struct fm_report *r, struct fm_error *err);
int fm_report_alike_csv(const struct fm_report *r, struct fm_error *err);

/* Tasks of asyncio, from when they were made to their end; timeline/tasks.c. */
int fm_report_tasks(const struct fm_report *r, struct fm_error *err);
int fm_report_tasks_json(const struct fm_report *r, struct fm_error *err);
int fm_report_tasks_csv(const struct fm_report *r, struct fm_error *err);

/* How often and how long threads waited for the interpreter; timeline/gil.c. */
int fm_report_gil(const struct fm_report *r, struct fm_error *err);
int fm_report_gil_json(const struct fm_report *r, struct fm_error *err);
int fm_report_gil_csv(const struct fm_report *r, struct fm_error *err);

/* pstats' own layout, byte for byte. `flat` must have one row per label (fm_pstats_combine). */
void fm_report_classic(const struct fm_report *r);
void fm_report_classic_edges(const struct fm_report *r, enum fm_direction direction);

/* For programs: which parts to write. */
enum fm_part {
    FM_PART_FUNCTIONS,
    FM_PART_CALLERS,
    FM_PART_CALLEES,
    FM_PART_TREE,
    FM_PART_THREADS,
    FM_PART_PROCESSES,
    FM_PART_SOURCE,
    FM_PART_STATS, /* of memory */
    FM_PART_REGIONS,
    FM_PART_RESIDENT, /* of memory */
    FM_PART_TIMELINE,
    FM_PART_SLOWEST,
    FM_PART_ALIKE,
    FM_PART_TASKS,
    FM_PART_GIL,
    FM_PART_STATES,
    FM_PART_WAITS,
    FM_PART_SPOTS,
    FM_PART_LINES,
    FM_PART_HOT,
    FM_PART_ANNOTATE,
};

static inline bool fm_part_is_of_lines(enum fm_part part)
{
    return part >= FM_PART_LINES;
}

static inline bool fm_part_is_of_samples(enum fm_part part)
{
    return part >= FM_PART_STATES && part <= FM_PART_SPOTS;
}

static inline bool fm_part_is_of_timeline(enum fm_part part)
{
    return part >= FM_PART_TIMELINE && part <= FM_PART_GIL;
}

void fm_report_json(const struct fm_report *r, enum fm_part part);
void fm_report_csv(const struct fm_report *r, enum fm_part part);
void fm_report_memory_json(const struct fm_report *r, enum fm_part part);
void fm_report_memory_csv(const struct fm_report *r, enum fm_part part);

#endif
