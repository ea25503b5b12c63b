/*
 * A profile in memory: what every report, view and foreign format consumes.
 *
 * Model. A profile holds processes; a process holds threads; a thread holds one tree of calling
 * contexts. A node is a function under its caller; its numbers are columns ("metrics") that any
 * collector may add to. All nodes of all threads lie in one array in which a parent always comes
 * before its children, so one forward pass goes down every tree and one backward pass goes up.
 *
 * A profile read from a format without a tree (pstats) has no nodes; it carries a ready-made flat
 * table (`flat`) instead. fm_flat_new() in model/derive/flat.h gives the table for both kinds.
 *
 * Order is deterministic: ids are given in order of appearance in the input.
 *
 * Plain C without a live process, without files: compiled for the browser too.
 * Threads: none; a profile belongs to one thread.
 */
#ifndef FM_MODEL_PROFILE_H
#define FM_MODEL_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strings.h"
#include "base/vec.h"
#include "record/model/lines.h"
#include "record/model/memory.h"
#include "record/model/metrics.h"
#include "record/model/regions.h"
#include "record/model/samples.h"
#include "record/model/trace/sample_order.h"
#include "record/model/trace/traces.h"

#define FM_NONE UINT32_MAX /* no node, no function, no parent */

enum fm_function_kind {
    FM_FUNCTION_PYTHON = 0,
    FM_FUNCTION_C = 1,      /* a builtin called from Python */
    FM_FUNCTION_NATIVE = 2, /* a native symbol */
    FM_FUNCTION_REGION = 3, /* a named region of the program */
    FM_FUNCTION_ROOT = 4,   /* the root of a thread: stands for the thread itself */
};

enum fm_function_flags {
    FM_FUNCTION_GENERATOR = 1,
    FM_FUNCTION_COROUTINE = 2,
    FM_FUNCTION_ASYNC_GENERATOR = 4,
    FM_FUNCTION_TYPE = 8, /* of kind REGION: a type of objects, below the line that made them */
};

struct fm_function {
    uint8_t kind, flags;
    uint32_t line;     /* first line, 0 if unknown */
    uint32_t name;     /* string ids; name is as in pstats: co_name, or "<built-in method x>" */
    uint32_t qualname; /* equal to name when there is no better one */
    uint32_t file;     /* as the program saw it; "" for C functions */
    uint32_t twin;     /* 0, or n for the n-th other function with the same file, line, qualname */
};

struct fm_node {
    uint32_t parent; /* FM_NONE for the root of a thread */
    uint32_t func;
    uint32_t thread;
    uint32_t
        line; /* 0: the function as a whole. Of memory, contexts are lines: that of the function
                      at which it called on, or allocated; several nodes of one function may have
                      one parent then */
};

/* A column of one number per node. One of zeros is not allocated: read with fm_profile_value. */
struct fm_column {
    int64_t *data; /* NULL, or one per node up to the profile's node capacity */
};

struct fm_process {
    uint32_t pid, parent_pid;
    uint32_t exe, command, cwd, version; /* string ids; version as "3.13.0" */
    uint64_t start_real_ns;              /* CLOCK_REALTIME */
    uint64_t start_ns, end_ns;           /* CLOCK_MONOTONIC of that machine; end 0 if unknown */
    uint32_t run; /* which of the runs in this recording, from 0; those of one stand together */
    int32_t exit_status; /* as a shell shows it (128 + signal), -1 if unknown */
    bool profiled;       /* false: a Python for which no agent was there */
    bool forked;
    bool c_calls; /* C calls were recorded */
    bool calls;   /* every call was; false: only of functions with lines */
    bool lines;   /* lines were recorded */
    /* Measured cost of one event pair, in picoseconds. */
    uint64_t cost_call_ps, cost_c_call_ps, cost_resume_ps;
    uint64_t cost_line_ps;  /* of one line */
    uint64_t slow_permille; /* by how much instructions took longer, beside these; 3.11 */
    uint64_t own_ns; /* what the agent took beside these: starting, new contexts and functions */
    /* Of a sampled process. */
    bool sampled;
    uint8_t sample_mode;         /* enum fm_sample_mode: which threads were counted */
    uint64_t sample_interval_ns; /* asked for; 0: as fast as it goes */
    uint64_t sample_rounds;      /* instants at which the process was looked at */
    uint64_t samples;            /* stacks of threads kept, partial ones included */
    uint64_t samples_partial;    /* of these: only the newest frames could be read */
    uint64_t samples_lost;       /* threads that could not be read at all at some instant */
    uint64_t sampler_cpu_ns;     /* processor time that watching took, outside the process */
    /* Of a process whose memory was recorded. */
    bool memory;
    bool memory_python;           /* blocks of Python's allocators one by one, not as arenas */
    bool memory_foreign;          /* sums of another's file: what is 0 or not so may be unknown */
    uint64_t memory_own_bytes;    /* that Fathom needed for it in the process */
    uint64_t memory_sample_bytes; /* 0: every block; else one in so many bytes, as an estimate */
};

enum fm_sample_mode { FM_SAMPLE_WALL = 0, FM_SAMPLE_CPU = 1, FM_SAMPLE_GIL = 2 };

struct fm_thread {
    uint32_t process;
    uint32_t tid;
    uint32_t name; /* string id, "" if unknown */
    uint32_t root; /* node */
    uint64_t start_ns, end_ns;
    uint64_t cpu_ns;
};

/* Something a reader of the report must know: what was lost, what could not be done. */
struct fm_note {
    uint32_t process; /* index or FM_NONE */
    uint32_t kind;    /* string id: "lost", "unprofiled", "recovered", "cut-off", … */
    uint64_t count;
    uint32_t text; /* string id: one sentence */
};

enum fm_source_state { FM_SOURCE_FILE = 0, FM_SOURCE_GENERATED = 1, FM_SOURCE_CHANGED = 2 };

struct fm_source {
    uint32_t file; /* string id, as in fm_function.file */
    uint8_t state;
    uint32_t text;                 /* string id; 0 while only the file's time and size are known */
    uint64_t mtime_ns, size_bytes; /* of the file when the program first ran it; 0 if unknown */
};

/* A fact about the whole run: "command", "host", "os", "fathom", "start", "output", "live", … */
struct fm_fact {
    uint32_t key, value;
};

struct fm_flat;

struct fm_profile {
    struct fm_strings *strings;
    FM_VEC(struct fm_function) functions;
    FM_VEC(struct fm_process) processes;
    FM_VEC(struct fm_thread) threads;
    FM_VEC(struct fm_node) nodes;
    struct fm_column columns[FM_METRIC_COUNT];
    bool has_lined_nodes; /* some node is of a line */
    size_t column_cap;    /* allocated length of each non-NULL column */
    FM_VEC(struct fm_note) notes;
    FM_VEC(struct fm_source) sources;
    FM_VEC(struct fm_fact) facts;
    struct fm_lines lines;
    struct fm_samples samples;
    struct fm_sample_order order; /* of samples in time */
    struct fm_memory memory;
    struct fm_regions regions;
    struct fm_traces traces;
    struct fm_flat *flat; /* NULL, or the table of a profile that came without a tree */
    struct fm_function_index *function_index; /* internal to profile.c */
};

struct fm_profile *fm_profile_new(void);
void fm_profile_free(struct fm_profile *p);

uint32_t fm_profile_string(struct fm_profile *p, const char *text);
const char *fm_profile_text(const struct fm_profile *p, uint32_t string);
/* A string of another profile, NUL included, in this one. */
uint32_t fm_profile_string_of(struct fm_profile *into, const struct fm_profile *from, uint32_t id);

/* Is some of the memory an estimate, of sampled blocks? */
bool fm_profile_has_estimates(const struct fm_profile *p);

/* The "±" of a number by the square of its error; see fm_error_bytes. */
int64_t fm_profile_error_bytes(const struct fm_profile *p, int64_t squares);

/* The function equal to `f` in kind, line, name, qualname, file and twin; added if new. */
uint32_t fm_profile_function(struct fm_profile *p, const struct fm_function *f);

/* A new function that may look like another: gets the next free twin number. */
uint32_t fm_profile_function_distinct(struct fm_profile *p, const struct fm_function *f);

uint32_t fm_profile_process(struct fm_profile *p, const struct fm_process *process);
uint32_t fm_profile_runs(const struct fm_profile *p); /* how many; merging numbers on from there */

/* A new thread of `process` with its root node. The root's function has kind ROOT. The total of a
 * root is the time of all calls below it, so what folding takes from them stays visible there. */
uint32_t fm_profile_thread(struct fm_profile *p, const struct fm_thread *thread);

/* The two steps of fm_profile_thread, for readers that meet a thread before its root: between them
 * the thread's root is FM_NONE, which nobody else may see. */
uint32_t fm_profile_thread_rootless(struct fm_profile *p, const struct fm_thread *thread);
uint32_t fm_profile_thread_root(struct fm_profile *p, uint32_t thread);

/* A new node under `parent` (which must exist); the caller sees to it that the pair is new. */
uint32_t fm_profile_node(struct fm_profile *p, uint32_t parent, uint32_t func);

/* The same of one line of the function. */
uint32_t fm_profile_node_at(struct fm_profile *p, uint32_t parent, uint32_t func, uint32_t line);

/* Make room for `nodes` nodes in all, when the number is known beforehand. */
void fm_profile_reserve(struct fm_profile *p, size_t nodes);

/* The sum, or the nearest number that fits: totals of a damaged recording must not wrap around. */
static inline int64_t fm_sum(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return b < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

int64_t fm_profile_value(const struct fm_profile *p, enum fm_metric metric, uint32_t node);
/* Combine `value` into the node's number as the metric's kind says. */
void fm_profile_add(struct fm_profile *p, enum fm_metric metric, uint32_t node, int64_t value);

/* A metric by node: what is the node's own, and what it has together with its callees (model/metrics.h
 * says which of both is recorded). Caller frees. */
int64_t *fm_profile_selves_new(const struct fm_profile *p, enum fm_metric metric);
int64_t *fm_profile_totals_new(const struct fm_profile *p, enum fm_metric metric);
/* The metrics (a bit each) that are recorded and have a column of their own in every table. */
uint64_t fm_profile_columns(const struct fm_profile *p);

void fm_profile_note(struct fm_profile *p, uint32_t process, const char *kind, uint64_t count,
                     const char *text);
void fm_profile_fact(struct fm_profile *p, const char *key, const char *value);
const char *fm_profile_fact_get(const struct fm_profile *p, const char *key); /* NULL if absent */

#endif
