/*
 * Reports of memory: of which instant they are, and what all of them ask.
 *
 * A report is of what was alive when the process had most of it (the peak), of what was alive at its
 * end, of all that was ever allocated, of what was freed at once, or of what was alive at some time, or
 * was alive more than at another. Each is a pair of metrics: bytes and blocks. The profile of such a report holds nothing but memory (model/derive/shed.h), and its functions
 * are lines, unless whole functions were asked for.
 */
#ifndef FM_REPORT_MEMORY_H
#define FM_REPORT_MEMORY_H

#include "record/model/derive/shed.h"
#include "show/report/branch.h"
#include "show/report/table.h"

enum fm_instant {
    FM_AT_PEAK,
    FM_AT_END,
    FM_AT_ALL,
    FM_AT_TEMPORARY,
    FM_AT_TOGETHER,
    FM_AT_TIME, /* some time of the run, which the view says */
    FM_INSTANTS,
};

struct fm_instant_info {
    const char *name;  /* of --at, and for programs */
    const char *title; /* for people: "at the peak" */
    enum fm_metric bytes, blocks;
};

extern const struct fm_instant_info fm_instants[FM_INSTANTS];

/* The instant that a metric is of; FM_INSTANTS if it is none of memory. */
enum fm_instant fm_instant_of(enum fm_metric metric);

struct fm_memory_view {
    const struct fm_instant_info *at; /* NULL: the report is of time */
    enum fm_memory_rows rows;
    const uint32_t *origin; /* by function: the one it is a line of */
    int tops;               /* lines in the statistics, of each kind; < 0: all */
    bool range;             /* of FM_AT_TIME: the difference of two */
    struct fm_shown from, to;
};

/* What the processes and threads of a report have, by metric. */
struct fm_memory_sums {
    int64_t all[FM_METRIC_COUNT];
    int64_t outside[FM_METRIC_COUNT]; /* of that, by threads that ran no Python code */
    int64_t inherited;                /* bytes at the peak that children had from their parents */
    int64_t own_bytes;                /* that Fathom took beside it */
    /* The most that was seen when the processes were looked at from outside; 0: they were not. */
    int64_t resident, looks;
    int64_t processes;   /* whose memory was recorded */
    bool python, c_only; /* there are some with, without Python's own allocators */
    bool foreign;        /* all are of others' files: numbers of which there are none are unknown */
    /* The smallest and the largest of which a block was sampled in; 0: of some every block is known. */
    int64_t sample_least, sample_most;
};

struct fm_report;

struct fm_memory_sums fm_memory_sums_of(const struct fm_report *r);

/* By thread, or by process, and metric: FM_METRIC_COUNT numbers each. Caller frees. */
int64_t *fm_memory_of_threads_new(const struct fm_profile *p);
int64_t *fm_memory_of_processes_new(const struct fm_profile *p);

/* Go through the trees as the report asks, with the numbers of all metrics of memory by node. */
void fm_memory_walk(const struct fm_report *r, fm_step_show *show, void *data);

/* The metrics of memory, a bit each; what several processes had together, and how far estimates may be
 * off, only if it is there. */
uint64_t fm_memory_metrics(const struct fm_profile *p);

/* ---- estimates: of sampled blocks numbers are right within ± ---- */

/* What was recorded of a process, for programs: "all", "malloc", "sampled", "no". */
const char *fm_memory_recorded(const struct fm_process *process);

/* A column "±", and its cell for one of the metrics of memory, of which `numbers` has all; nothing where
 * numbers are exact. */
bool fm_memory_has_error(const struct fm_profile *p, enum fm_metric metric);
void fm_memory_error_column(struct fm_table *t, const struct fm_profile *p, enum fm_metric metric);
void fm_memory_error_cell(struct fm_table *t, const struct fm_profile *p, enum fm_metric metric,
                          const int64_t *numbers);

/* "12.3 MiB", or "about 12.3 MiB ± 1.2 MiB". */
void fm_memory_describe(struct fm_buffer *out, const struct fm_profile *p, enum fm_metric metric,
                        const int64_t *numbers);

/* "one block in 512 KiB was sampled: …"; nothing where numbers are exact. */
void fm_memory_describe_samples(struct fm_buffer *out, const struct fm_memory_sums *sums);

/* ---- the statistics: how large blocks were, how long they lived, who was asked for them ---- */

struct fm_memory_bucket {
    int64_t from, below; /* bytes, or allocations of the thread meanwhile; of kinds the kind */
    int64_t blocks, bytes;
};

/* What the processes of the report have in the buckets of a table, the empty ones at both ends left
 * out; half an octave is one, or with `octaves` whole ones. Caller releases. */
typedef FM_VEC(struct fm_memory_bucket) fm_memory_buckets;
fm_memory_buckets fm_memory_buckets_of(const struct fm_report *r, enum fm_heap_table table,
                                       bool octaves);

/* The rows shown that have most of a metric themselves; caller frees. */
uint32_t *fm_memory_tops_new(const struct fm_report *r, enum fm_metric metric, size_t *count);

#endif
