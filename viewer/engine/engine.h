/*
 * The viewer's engine: recordings, shaped and laid out for drawing. viewer/ENGINE.md describes what
 * the page sees of it; exports.c is the border to WebAssembly.
 *
 * Model. An engine holds recordings and one table of functions for all of them, so that a function
 * has one id whatever recording or view it shows up in. A view is one recording (or two, to be
 * compared) shaped for showing: scope, folding, grouping. Its nodes are numbered so that the nodes
 * below v are v + 1 … end[v] − 1; hence "is below" and "outermost" need no stack. Numbers are the
 * model's (model/derive/sums.h, model/derive/flat.h), made when first asked for.
 *
 * They leave as doubles: exact up to 2^53 (104 days in ns), and what JavaScript has.
 * Results live in the engine until the next call. Everything that comes from a recording is
 * bounded. Threads: none. Does not draw, does not read files.
 */
#ifndef FM_ENGINE_ENGINE_H
#define FM_ENGINE_ENGINE_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/map.h"
#include "base/strings.h"
#include "base/vec.h"
#include "record/model/derive/flat.h"
#include "record/model/derive/shape.h"
#include "record/model/profile.h"

#define FM_ENGINE_RECORDINGS 16
#define FM_ENGINE_VIEWS      64
#define FM_ENGINE_NUMBERS    2       /* views that keep their numbers */
#define FM_ENGINE_ROWS       200000u /* that any result has at most */
#define FM_MOMENT_COLUMNS    2       /* that an instant has: bytes and blocks */

/* ---- metrics: the same numbers for every recording ---- */

/* Those of the model by their numbers (calls with resumes), and two that are sums of states. */
enum fm_engine_metric {
    FM_ENGINE_TOTAL = FM_METRIC_TOTAL,
    FM_ENGINE_CALLS = FM_METRIC_CALLS,
    FM_ENGINE_RUNNING = FM_METRIC_COUNT,
    FM_ENGINE_WAITING, /* the other states */
    FM_ENGINE_METRICS
};

/* Can shares of it be drawn? Only what adds up. */
bool fm_engine_metric_is_drawn(unsigned metric);
/* The columns of the model (a bit each) that add up to a metric. */
uint64_t fm_engine_metric_columns(unsigned metric);
/* Is it what was alive at an instant? Then it is there once one was chosen (fm_engine_moment). */
static inline bool fm_engine_is_moment(unsigned metric)
{
    return metric >= FM_METRIC_THEN && metric < FM_METRIC_THEN + FM_MOMENT_COLUMNS;
}
/* The description of it, made up for the two. */
struct fm_metric_info fm_engine_metric_info(unsigned metric);
bool fm_engine_metric_is_there(const struct fm_profile *p, unsigned metric);

/* ---- functions ---- */

enum { FM_ENGINE_KIND_MODULE = FM_FUNCTION_ROOT + 1, FM_ENGINE_KIND_EVERYTHING };

struct fm_engine_function {
    uint8_t kind, flags; /* enum fm_function_kind, or one of the two above */
    bool library;        /* not the user's own code */
    uint32_t line, twin;
    uint32_t name, qualname, file, module; /* strings of the engine */
    uint32_t module_func;                  /* the module as a function, FM_NONE until asked for */
    uint32_t at, of; /* one line of a function: which, and whose; 0: it is the function itself */
};

/* ---- results ---- */

enum fm_result_type { FM_RESULT_U32, FM_RESULT_F64 };

struct fm_result_column {
    void *data;
    uint32_t type, values; /* values: numbers in the column, a multiple of the rows */
};

#define FM_RESULT_COLUMNS 20
#define FM_RESULT_SCALARS 8

/* The layout of this struct is known to engine.js. */
struct fm_result {
    uint32_t rows, columns;
    double scalars[FM_RESULT_SCALARS];
    struct fm_result_column column[FM_RESULT_COLUMNS];
};

/* Empty the result, then add columns of `rows` numbers (zeros). */
void fm_result_begin(struct fm_result *r, uint32_t rows);
uint32_t *fm_result_u32(struct fm_result *r);
double *fm_result_f64(struct fm_result *r);
double *fm_result_f64_wide(struct fm_result *r, uint32_t width); /* `width` numbers per row */
void fm_result_release(struct fm_result *r);

/* ---- recordings and the engine ---- */

struct fm_recording {
    struct fm_profile *p;
    char *name;
    uint32_t *func_of;     /* by function of the profile: id in the engine */
    uint32_t *thread_of;   /* by thread: its root as a function of the engine */
    struct fm_links links; /* of its contexts; made with the first view */
    bool *timeless;        /* by thread: fm_flat_timeless_new, made with the links */
    bool estimated;        /* the tree was made of a table; its process and thread are inventions */
    uint32_t processes, threads, nodes;          /* that were really there */
    struct fm_column earlier[FM_MOMENT_COLUMNS]; /* what was alive at the earlier of two instants */
    struct fm_timeline *timeline;                /* NULL until asked for, or if there is none */
    bool timeline_asked;
    struct fm_mark_overview *overview; /* NULL until asked for; timeline_marks.c */
    void *bytes;                       /* of the file, if they are still needed */
};

struct fm_view;

struct fm_engine {
    struct fm_recording *recordings[FM_ENGINE_RECORDINGS];
    struct fm_view *views[FM_ENGINE_VIEWS];
    uint64_t used; /* counts the turns of views, to know which one was used last */
    struct fm_strings *strings;
    struct fm_strings *keys; /* a function's id is the id of its key */
    FM_VEC(struct fm_engine_function) functions;
    struct fm_result results[3];
    struct fm_buffer text;
    struct fm_error err;
};

void fm_engine_init(struct fm_engine *e);
void fm_engine_release(struct fm_engine *e);

/* Take a profile over (fm_engine_open: read one). A number, or −1 and e->err. */
int fm_engine_add(struct fm_engine *e, struct fm_profile *p, const char *name);
int fm_engine_open(struct fm_engine *e, const void *bytes, size_t len, const char *name);
void fm_engine_close(struct fm_engine *e, int recording);
struct fm_recording *fm_engine_recording(struct fm_engine *e, int recording); /* or NULL */

/* Give the functions and threads of a recording their ids. functions.c */
void fm_engine_name(struct fm_engine *e, struct fm_recording *r);
uint32_t fm_engine_module_of(struct fm_engine *e, uint32_t func);
uint32_t fm_engine_line_of(struct fm_engine *e, uint32_t func, uint32_t line);
/* Make a tree of the table of a profile that came without one. estimate.c */
void fm_recording_estimate(struct fm_recording *r);

/* JSON into e->text. summary.c, functions.c */
int fm_engine_summary(struct fm_engine *e, int recording);
int fm_engine_functions(struct fm_engine *e, uint32_t from);

/* Lines of a file into results[0], its functions and their first lines into results[1], expressions that were
 * executing into results[2] (function, line, end line, column, end column, samples, ns), its text into e->text.
 * source.c
 * Scalars of results[0]: state of the text (3: none), 1 if there is text, 1 if there are states. */
int fm_engine_source(struct fm_engine *e, int recording, const char *file, size_t len,
                     uint32_t process);

/* What is known of memory beside contexts (model/memory.h): the curves into results[0] (process, FM_NONE: the
 * run; ns, heap, rss, pss, swap, limit), how many blocks there were of each kind into results[1] (process, table,
 * bucket, from, to, blocks, bytes), visits of regions into results[2] (process, name, level, thread, begin, end,
 * bytes then and then), and as JSON into e->text the names of these, the regions and what resident memory was
 * made of. memory.c */
int fm_engine_memory(struct fm_engine *e, int recording);

/* Let the metrics "then" be what was alive `to_ns` after the run began; a view of a recording against itself has
 * what was alive after `from_ns` before. Negative: nothing. Scalars: when that of `from_ns` was really looked at
 * (−1: never) and at how many processes, the same of `to_ns`. moment.c */
int fm_engine_moment(struct fm_engine *e, int recording, double from_ns, double to_ns);
/* Let the earlier instant stand where the later one does, or undo that. */
void fm_recording_swap_moments(struct fm_recording *r);

#endif
