/*
 * Inside the timeline: lanes of both kinds, and what each kind can do. Nobody outside of this folder
 * includes it.
 *
 * timeline.c opens and asks; traced.c, traced_walk.c, traced_cells.c and traced_marks.c are the lanes of
 * traced threads. Everything else (spans, ranges, durations, groups) is made of the walk alone, so a kind
 * of lanes gets it for nothing.
 *
 * Times inside are those of the machine's clock; only timeline.c knows when the timeline began.
 */
#ifndef FM_MODEL_TRACE_LANES_H
#define FM_MODEL_TRACE_LANES_H

#include "base/map.h"
#include "record/model/trace/lanes/run_clocks.h"
#include "record/model/trace/lanes/timeline.h"
#include "record/model/trace/pack/clock.h"
#include "record/model/trace/pack/events.h"
#include "record/model/trace/pack/levels.h"
#include "record/model/trace/pack/stretch.h"
#include "record/model/trace/pack/trace_marks.h"

/* A block of a lane, as its head tells it. */
struct fm_lane_block {
    uint64_t begin, end; /* ticks */
    uint64_t count;      /* events, cells or marks */
    uint64_t kinds;      /* of marks */
    uint32_t block;      /* in the trace */
    uint32_t depth;      /* of events: the most that was open */
    uint8_t top, width;  /* of a level */
};

struct fm_lane_blocks {
    FM_VEC(struct fm_lane_block) list; /* by begin */
};

struct fm_traced_lane {
    uint32_t trace, number; /* in the profile; of the thread in the blocks */
    struct fm_lane_blocks stretches, levels, marks;
    uint64_t end; /* ticks of the last event */
};

/* What is known of a trace as a whole. */
struct fm_timeline_trace {
    struct fm_trace_clock clock;
    struct fm_trace_tasks tasks;
    bool tasks_read;
    FM_VEC(uint32_t) task_blocks;
    uint32_t unknown; /* function that stands for those that are not known */
};

/* Bodies of blocks that were read last, unpacked. */
#define FM_TIMELINE_KEPT 8
struct fm_kept_body {
    uint32_t trace, block;
    uint64_t used; /* when; 0: empty */
    struct fm_buffer head, body;
};

/* A block that was away and was given. */
struct fm_given_block {
    void *bytes;
    size_t len;
};

/* Blocks that are away: away.c. */
struct fm_away_blocks {
    struct fm_map given; /* trace and block → list */
    FM_VEC(struct fm_given_block) list;
    struct fm_map asked; /* … → wanted */
    FM_VEC(struct fm_wanted_block) wanted;
    bool nowhere; /* one was needed that cannot be had */
};

struct fm_timeline {
    const struct fm_profile *p;
    struct fm_run_clocks clocks;
    struct fm_away_blocks away;
    uint64_t start_ns, length_ns;
    FM_VEC(struct fm_lane) lanes;
    FM_VEC(struct fm_traced_lane) traced; /* by lane, as long as lanes are traced ones */
    struct fm_sampled *sampled;           /* the lanes behind them; NULL: there are none */
    FM_VEC(struct fm_timeline_trace) traces;
    struct fm_kept_body kept[FM_TIMELINE_KEPT];
    uint64_t uses, blocks_read; /* for those who measure */
    uint64_t damaged;           /* blocks that could not be read */
    uint64_t told_since;        /* times of traced events are since then … */
    bool only_ends;             /* … and nobody wants begins */
    struct fm_buffer payload;
    FM_VEC(struct fm_open_frame) frames; /* scratch */
};

/* Times are of the machine's clock here. */
struct fm_lane_ops {
    int (*events)(struct fm_timeline *t, size_t lane, uint64_t from_ns, uint64_t to_ns,
                  fm_lane_event_fn *each, void *context, struct fm_error *err);
    int (*cells)(struct fm_timeline *t, size_t lane, uint64_t from_ns, uint64_t to_ns,
                 uint64_t cell_ns, struct fm_cells *into, struct fm_error *err);
    int (*marks)(struct fm_timeline *t, size_t lane, uint64_t from_ns, uint64_t to_ns,
                 fm_mark_fn *each, void *context, struct fm_error *err);
};
extern const struct fm_lane_ops fm_traced_ops;
extern const struct fm_lane_ops fm_sampled_ops; /* sampled_ops.c */

/* Lanes of sampled threads behind those that are there. */
void fm_sampled_find(struct fm_timeline *t);

/* ---- traced lanes ---- */

/* Find lanes and what their blocks hold. */
void fm_traced_find(struct fm_timeline *t);
void fm_traced_release(struct fm_timeline *t);

/* The body of a block, unpacked; valid until others were asked for. NULL: it cannot be read. */
const struct fm_kept_body *fm_timeline_body(struct fm_timeline *t, uint32_t trace, uint32_t block);

/* The payload of a block that is away, if it was given, or NULL: then it is wanted. */
const struct fm_given_block *fm_timeline_given(struct fm_timeline *t, uint32_t trace,
                                               uint32_t block);
/* Are all events of a lane between two instants (ticks) here? Those that are not are wanted. */
bool fm_timeline_events_here(struct fm_timeline *t, const struct fm_traced_lane *lane,
                             uint64_t from, uint64_t to);
void fm_away_release(struct fm_away_blocks *away);

/* The head of a block, in t->payload. */
bool fm_timeline_head(struct fm_timeline *t, uint32_t trace, uint32_t block);

/* The function of what a begin or a subject (events.h) is of. */
uint32_t fm_timeline_function(const struct fm_timeline *t, uint32_t trace, uint32_t subject);
uint32_t fm_timeline_name(const struct fm_timeline *t, uint32_t trace, uint32_t name);

uint32_t fm_timeline_task_name(struct fm_timeline *t, uint32_t trace, uint32_t task);

static inline struct fm_trace_clock *fm_timeline_clock(struct fm_timeline *t, uint32_t trace)
{
    return &t->traces.data[trace].clock;
}

/* The first block that ends at or after `ticks`, of blocks that follow one another. */
size_t fm_lane_blocks_from(const struct fm_lane_blocks *blocks, uint64_t ticks);

int fm_traced_cells(struct fm_timeline *t, size_t lane, uint64_t from_ns, uint64_t to_ns,
                    uint64_t cell_ns, struct fm_cells *into, struct fm_error *err);
int fm_traced_marks(struct fm_timeline *t, size_t lane, uint64_t from_ns, uint64_t to_ns,
                    fm_mark_fn *each, void *context, struct fm_error *err);

/* Add what happened in a range (since the timeline began) to a profile that has the processes, threads and
 * contexts of the recording. */
int fm_traced_add(struct fm_timeline *t, uint64_t from_ns, uint64_t to_ns, struct fm_profile *into,
                  struct fm_error *err);

/* ---- cells ---- */

/* Puts what follows one another at a depth together until it is as long as a cell. */
struct fm_cell_builder {
    uint64_t cell_ns;
    struct fm_cells *into;
    FM_VEC(struct fm_cell) open; /* by depth; spans 0: none */
    FM_VEC(uint64_t) covered;    /* … ns */
};
void fm_cell_builder_add(struct fm_cell_builder *b, const struct fm_cell *cell,
                         uint64_t covered_ns);
/* … of spans that end, as the walk along a lane tells them (fm_lane_event_fn). */
bool fm_cell_builder_take(void *builder, const struct fm_lane_event *event);
/* The rest, and everything by depth and time. */
void fm_cell_builder_end(struct fm_cell_builder *b);

#endif
