/*
 * The timeline of a recording: what happened when, on every lane, whatever recorded it.
 *
 * Model. A recording has lanes (a thread of a process, traced or sampled). On a lane lie spans, nested by
 * depth: calls, or stretches of samples with an equal stack. Beside them are marks (exceptions,
 * collections, instants, regions, losses …) and counters. Times are ns since the timeline began, which is
 * the earliest instant of the recording (`start_ns` of the clock of its machine).
 *
 * Nothing is unpacked when a timeline is opened: its blocks know which stretch of which lane they hold.
 * Drawing asks for cells of a size that can be seen, which come from the coarsest level of detail that
 * is fine enough, or from the events themselves; asking for spans reads events.
 *
 * Plain C without a live process: compiled for the browser, too. Everything in a file is untrusted.
 * Threads: none; a timeline belongs to one thread. What is called back by it must not ask it.
 */
#ifndef FM_MODEL_TRACE_TIMELINE_H
#define FM_MODEL_TRACE_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "record/model/profile.h"

struct fm_timeline;

enum fm_lane_kind {
    FM_LANE_TRACED = 0,  /* every call of a thread */
    FM_LANE_SAMPLED = 1, /* samples of a thread, in order */
};

struct fm_lane {
    enum fm_lane_kind kind;
    uint32_t process, thread; /* indices in the profile */
    uint64_t begin_ns, end_ns;
    uint64_t events; /* words that begin or end something, or samples */
    uint64_t lost;   /* events that were dropped */
    uint32_t depth;  /* the most that was open at once */
    /* Of a sampled lane: what was seen within so long is known, its order is not; 0: the order of all. */
    uint64_t grain_ns;
};

enum fm_span_flags {
    FM_SPAN_BEGAN_BEFORE =
        1, /* open when the lane (with --window: what is kept of it) began, or after a loss */
    FM_SPAN_OPEN = 2,        /* had not ended when the lane did */
    FM_SPAN_UNWOUND = 4,     /* ended by an exception */
    FM_SPAN_RESUMED = 8,     /* a generator or coroutine went on: no call of its own */
    FM_SPAN_YIELDED = 16,    /* it ended by giving up control */
    FM_SPAN_REGION = 32,     /* `func` is a function of kind REGION */
    FM_SPAN_COLLECTION = 64, /* of the garbage collector; REGION, too */
    FM_SPAN_CUT = 128,       /* goes on beyond the end that was asked for */
};

struct fm_time_span {
    uint64_t begin_ns, end_ns;
    uint32_t func; /* in the profile */
    uint32_t depth;
    uint32_t flags;
    uint32_t state; /* of a sampled lane: enum of model/states.h */
};

/* What a piece of a row shows when single spans are too small: the longest of them stands for all. */
struct fm_cell {
    uint64_t begin_ns, end_ns;
    uint32_t func; /* of the longest */
    uint32_t depth;
    uint64_t longest_ns;
    uint64_t spans;  /* how many begin here */
    uint8_t covered; /* 0 to 255: share of the cell in which anything is open at this depth */
    uint8_t flags;   /* enum fm_cell_flags */
    uint32_t state;
};

enum fm_cell_flags {
    FM_CELL_EXACT = 1 /* one span, as it is */,
    FM_CELL_LOST = 2,
    FM_CELL_ERROR = 4
};

enum fm_mark_kind {
    FM_MARK_EXCEPTION,  /* name: its type; func: where it was raised */
    FM_MARK_COLLECTION, /* value: generation, other: collected */
    FM_MARK_INSTANT,
    FM_MARK_COUNTER, /* value: bits of a double */
    FM_MARK_REGION,  /* of a sampled lane, or one that does not nest (token) */
    FM_MARK_LOST,    /* value: events */
    FM_MARK_TASK,    /* a step of a task: value: its number, name: its name */
    FM_MARK_FORK,    /* value: pid of the child */
    FM_MARK_WAITED,  /* the thread stood still for room */
    FM_MARK_CLOCK,   /* the clock jumped: value: ns on the way */
    FM_MARK_AWAIT, /* a task (value) begins to wait for another (other), or for something else (0) */
    FM_MARK_VALUE, /* of the span that begins here: name, text; other: its depth + 1. Or, other is 0: of the
                      INSTANT that is here, or of the REGION whose token is `value` */
    FM_MARK_RESULT, /* of the call that ends here: name ("return", "yield"), text; other: depth + 1 */
    FM_MARK_VARIABLE, /* at a line: name, text */
    FM_MARK_KINDS,
};

struct fm_mark {
    uint64_t begin_ns, end_ns;
    enum fm_mark_kind kind;
    uint32_t lane;
    uint32_t name; /* string id of the profile */
    uint32_t func; /* or FM_NONE */
    uint64_t value, other;
    const char
        *text; /* of VALUE, RESULT and VARIABLE: UTF-8, untrusted, while it is told; else NULL */
    size_t text_len;
};

/* NULL with status 0 of `err` if the recording has no timeline. `p` and `bytes` outlive it. */
struct fm_timeline *fm_timeline_open(const struct fm_profile *p, struct fm_error *err);
void fm_timeline_free(struct fm_timeline *t);

uint64_t fm_timeline_start_ns(const struct fm_timeline *t); /* of the machine's clock */
uint64_t fm_timeline_length_ns(const struct fm_timeline *t);
/* Runs that were merged stand side by side by the time of day (run_clocks.h), as far as that can be told to
 * within so much; NULL: there is only one. */
struct fm_run_clock;
size_t fm_timeline_runs(const struct fm_timeline *t);
const struct fm_run_clock *fm_timeline_run(const struct fm_timeline *t, size_t run);
uint64_t fm_timeline_uncertain_ns(const struct fm_timeline *t);
size_t fm_timeline_lanes(const struct fm_timeline *t);
const struct fm_lane *fm_timeline_lane(const struct fm_timeline *t, size_t lane);

/* Cells of a lane between two instants, none shorter than `cell_ns` unless it is a span by itself; by
 * depth, then by time. */
struct fm_cells {
    FM_VEC(struct fm_cell) cells;
};
int fm_timeline_cells(struct fm_timeline *t, size_t lane, uint64_t from_ns, uint64_t to_ns,
                      uint64_t cell_ns, struct fm_cells *into, struct fm_error *err);
void fm_cells_release(struct fm_cells *cells);

/* Blocks of events may be away (traces.h). Whoever needs one that can be fetched goes on without it, and it
 * is wanted from then on, until it is given or the wishes are forgotten. */
struct fm_wanted_block {
    uint32_t trace, block;
    uint32_t bytes;
    uint64_t at; /* in the file that the recording was made of */
};
size_t fm_timeline_wanted(const struct fm_timeline *t, const struct fm_wanted_block **list);
void fm_timeline_forget_wanted(struct fm_timeline *t);
/* Give the payload of one; `bytes` is taken over, and freed with the timeline. */
void fm_timeline_give(struct fm_timeline *t, uint32_t trace, uint32_t block, void *bytes,
                      size_t len);
/* Has anything that was asked for since then needed blocks that are nowhere? */
bool fm_timeline_left_out(const struct fm_timeline *t);

/* Where the blocks of events lie that touch a range. */
typedef void fm_block_place_fn(void *context, uint64_t at, uint32_t bytes);
void fm_timeline_blocks_between(struct fm_timeline *t, uint64_t from_ns, uint64_t to_ns,
                                fm_block_place_fn *each, void *context);

/* A range is from an instant to before another; to the end of a lane or beyond it: all of it. */

/* What happens on a lane between two instants, in its order: spans begin and end, always nested. What is
 * open at the first instant begins first, outermost first, at the time when it really began; what is open
 * at the second ends last, with CUT or OPEN. `each` may end the walk by returning false. */
struct fm_lane_event {
    uint64_t at_ns;
    bool ends;
    struct fm_time_span
        span; /* of a begin: end_ns and the flags that tell how it ends are not known */
};
typedef bool fm_lane_event_fn(void *context, const struct fm_lane_event *event);
int fm_timeline_events(struct fm_timeline *t, size_t lane, uint64_t from_ns, uint64_t to_ns,
                       fm_lane_event_fn *each, void *context, struct fm_error *err);

/* Every span of a lane that touches the time between two instants, in the order of their end: callees
 * before their caller. Those that go on beyond the second are CUT there. `each` may end the walk by
 * returning false. */
typedef bool fm_span_fn(void *context, const struct fm_time_span *span);
int fm_timeline_spans(struct fm_timeline *t, size_t lane, uint64_t from_ns, uint64_t to_ns,
                      fm_span_fn *each, void *context, struct fm_error *err);

/* Marks of a lane (or FM_NONE: all lanes) between two instants, by time. */
typedef bool fm_mark_fn(void *context, const struct fm_mark *mark);
int fm_timeline_marks(struct fm_timeline *t, uint32_t lane, uint64_t from_ns, uint64_t to_ns,
                      fm_mark_fn *each, void *context, struct fm_error *err);

/* Values of a span, as it was told by others of these: its arguments, what is known of a region, and what it
 * returned or yielded. */
int fm_timeline_values(struct fm_timeline *t, uint32_t lane, const struct fm_time_span *span,
                       fm_mark_fn *each, void *context, struct fm_error *err);

/* Values of a mark: an INSTANT, or a REGION with a token; of others there are none. Of `mark` its begin, kind, lane
 * and value are asked for. Values of a region are on the lane where it began; the mark is on that where it ended. */
int fm_timeline_mark_values(struct fm_timeline *t, const struct fm_mark *mark, fm_mark_fn *each,
                            void *context, struct fm_error *err);

/* How a task ended, as far as its coroutine told. The numbers of files, and of capture/live_trace.h. */
enum fm_task_end {
    FM_TASK_UNKNOWN = 0, /* a recording of before */
    FM_TASK_RETURNED = 1,
    FM_TASK_RAISED = 2,
    FM_TASK_CANCELLED = 3,
    FM_TASK_FAILED = 4, /* raised or cancelled */
    FM_TASK_ENDS,
};

/* Tasks of asyncio, by process and number. Their steps are marks (TASK), and so is what they wait for
 * (AWAIT). */
struct fm_traced_task {
    uint32_t process;
    uint32_t lane;                /* on which it was made, or FM_NONE */
    uint32_t number;              /* in its process, from 1 */
    uint32_t name;                /* string id */
    uint32_t creator;             /* number of the task that made it, or 0 */
    uint64_t created_ns, done_ns; /* done: UINT64_MAX, it was not */
    uint32_t ended;               /* then: enum fm_task_end */
};
typedef bool fm_traced_task_fn(void *context, const struct fm_traced_task *task);
int fm_timeline_tasks(struct fm_timeline *t, fm_traced_task_fn *each, void *context,
                      struct fm_error *err);

/* Their whole lives: those that were there between two instants, by process and number. */
struct fm_task_life {
    struct fm_traced_task task;
    uint64_t begin_ns, end_ns; /* made, or its first step; done, or the end of the timeline */
    uint32_t func;             /* the coroutine; FM_NONE: it never ran, or was not seen */
    uint64_t steps, ran_ns;
    uint64_t longest_step_ns, longest_step_at_ns;
};
struct fm_task_lives {
    FM_VEC(struct fm_task_life) list;
};
int fm_timeline_task_lives(struct fm_timeline *t, uint64_t from_ns, uint64_t to_ns,
                           struct fm_task_lives *into, struct fm_error *err);

/* The profile of a stretch of time alone: trees of calls, as every report and view shows them. Calls that
 * reach over an end are cut there; a call counts where it begins. Caller frees. */
struct fm_profile *fm_timeline_profile(struct fm_timeline *t, uint64_t from_ns, uint64_t to_ns,
                                       struct fm_error *err);

/* The longest calls of a function (or FM_NONE: of any), longest first, and how long its calls take: counts
 * by powers of √2 as the histogram of lines (capture/live.h) does, in ns. */
struct fm_found_call {
    struct fm_time_span span;
    uint32_t lane;
};
struct fm_durations {
    FM_VEC(struct fm_found_call) longest;
    uint64_t calls, sum_ns, min_ns, max_ns;
    uint64_t buckets[128];
};
int fm_timeline_durations(struct fm_timeline *t, uint32_t func, uint64_t from_ns, uint64_t to_ns,
                          size_t longest, struct fm_durations *into, struct fm_error *err);
void fm_durations_release(struct fm_durations *d);

/* The longest calls alone, which is much faster: the rest of `into` is 0. */
int fm_timeline_slowest(struct fm_timeline *t, uint32_t func, uint64_t from_ns, uint64_t to_ns,
                        size_t longest, struct fm_durations *into, struct fm_error *err);

/* The bucket of a duration. */
static inline unsigned fm_timeline_bucket(uint64_t ns)
{
    if (ns < 2)
        return 0;
    unsigned octave = 63 - (unsigned)__builtin_clzll(ns);
    return octave * 2 + (unsigned)(ns >> (octave - 1) & 1);
}

/* Where a bucket begins, ns. */
static inline double fm_timeline_bucket_ns(unsigned bucket)
{
    double octave = (double)(1ull << (bucket / 2 < 63 ? bucket / 2 : 63));
    return bucket == 0 ? 0 : bucket % 2 ? octave * 1.5 : octave;
}

/* The time that a share of calls did not exceed, as near as their counts tell. */
double fm_timeline_quantile_ns(const uint64_t buckets[128], uint64_t calls, uint64_t min_ns,
                               uint64_t max_ns, double share);

/* Calls of a function that began and ended in the range, grouped by what was called in them and in what
 * order; the largest group first. Traced lanes alone. */
struct fm_call_group {
    uint64_t hash; /* of what they did */
    uint64_t calls, sum_ns, min_ns, max_ns;
    uint64_t spans; /* in each of them */
    uint64_t buckets[128];
    struct fm_found_call first;
    struct fm_found_call slowest[8]; /* longest first */
    uint32_t slowest_count;
};
struct fm_call_groups {
    FM_VEC(struct fm_call_group) groups;
    uint64_t others; /* calls in groups beyond the first 65,536 */
};
int fm_timeline_groups(struct fm_timeline *t, uint32_t func, uint64_t from_ns, uint64_t to_ns,
                       struct fm_call_groups *into, struct fm_error *err);
void fm_call_groups_release(struct fm_call_groups *groups);

/* Where the slow ones of a group differ: of functions that are in it the time of their own, and how often they
 * are called, in one call and in the usual one, which is the average of all of the group. */
struct fm_call_difference {
    uint32_t func;
    double self_ns, usual_self_ns;
    double spans, usual_spans;
};
struct fm_group_differences {
    FM_VEC(struct fm_call_difference)
    slowest; /* its slowest call against the usual: most time first */
    FM_VEC(struct fm_call_difference) shape; /* the usual call against that of the largest group */
};
/* Of the first `count` groups, into as many; a call inside of another one of the function counts as a part of
 * that. The caller releases each. */
int fm_timeline_differences(struct fm_timeline *t, uint32_t func, uint64_t from_ns, uint64_t to_ns,
                            const struct fm_call_groups *groups, size_t count,
                            struct fm_group_differences *into, struct fm_error *err);
void fm_group_differences_release(struct fm_group_differences *d);

/* The interpreter's lock goes from one traced thread of a process to another, in between two instants; the
 * other had done nothing that is recorded since `idle_since_ns` (UINT64_MAX: nothing at all), and at `taken_ns`
 * the lock was first seen with somebody else since then. If it waited all along, and others kept the lock
 * between their events, it waited from `after_ns` − `taken_ns` to `before_ns` − `idle_since_ns`. Only of a
 * Python with a global lock. */
struct fm_handover {
    uint32_t from_lane, to_lane;
    uint64_t after_ns, before_ns;
    uint64_t idle_since_ns, taken_ns;
    uint32_t func, depth; /* of the code that was innermost meanwhile, regions aside; or FM_NONE */
};
/* Did it wait for the lock? In C code it may have waited for anything. */
static inline bool fm_handover_is_wait(const struct fm_profile *p,
                                       const struct fm_handover *handover)
{
    return handover->func != FM_NONE &&
           p->functions.data[handover->func].kind == FM_FUNCTION_PYTHON;
}
typedef bool fm_handover_fn(void *context, const struct fm_handover *handover);
int fm_timeline_handovers(struct fm_timeline *t, uint32_t process, uint64_t from_ns, uint64_t to_ns,
                          fm_handover_fn *each, void *context, struct fm_error *err);

/* How often and how long each traced lane waited for the lock. A wait counts where it ends; what of it lies
 * before the range is not of it. Known where C calls were recorded: else Python code that waits may be in one. */
struct fm_gil_wait {
    bool known;
    uint64_t turns;                     /* how often it got the lock from another */
    uint64_t waits;                     /* … while it was in Python code */
    uint64_t least_ns, most_ns;         /* that it waited then, in all */
    uint64_t longest_ns, longest_at_ns; /* … at most in one of them, and since when */
};
struct fm_gil_waits {
    FM_VEC(struct fm_gil_wait) list; /* by lane */
};
int fm_timeline_gil_waits(struct fm_timeline *t, uint64_t from_ns, uint64_t to_ns,
                          struct fm_gil_waits *into, struct fm_error *err);

/* A process was made by another: from which lane, and when. */
struct fm_flow {
    uint32_t from_lane, to_lane;
    uint64_t from_ns, to_ns;
};
typedef bool fm_flow_fn(void *context, const struct fm_flow *flow);
int fm_timeline_flows(struct fm_timeline *t, fm_flow_fn *each, void *context, struct fm_error *err);

#endif
