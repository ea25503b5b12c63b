/*
 * Cells of a traced lane: from the coarsest level of detail that is fine enough, or from the events if
 * there is none, or if they are so few that they are read as fast; see lanes.h, levels.h.
 */
#include "base/runs.h"
#include "record/model/trace/lanes/lanes.h"

#define FEW_EVENTS 150000u /* are read within a few milliseconds */

/* ---- from a level ---- */

struct level_read {
    uint64_t from, to; /* ticks */
    unsigned level;
    struct fm_level_cells cells;
};

static void take_cell(void *context, const struct fm_level_cell *cell)
{
    struct level_read *read = context;
    if (cell->origin <= read->level && cell->end >= read->from && cell->begin < read->to)
        fm_vec_push(&read->cells.cells, *cell);
}

static int compare_cells(const void *a, const void *b)
{
    const struct fm_level_cell *x = a, *y = b;
    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* False: some of it is away. */
static bool read_level(struct fm_timeline *t, const struct fm_traced_lane *lane,
                       struct level_read *read)
{
    bool here = true;
    read->cells.cells.len = 0;
    for (size_t i = 0; i < lane->levels.list.len; i++) {
        const struct fm_lane_block *block = &lane->levels.list.data[i];
        struct fm_level_facts facts;
        if (block->begin >= read->to)
            break;
        if (block->top < read->level || block->end < read->from)
            continue;
        const struct fm_kept_body *body = fm_timeline_body(t, lane->trace, block->block);
        if (!body) {
            here = here && !t->p->traces.list.data[lane->trace].blocks.data[block->block].away;
            continue;
        }
        struct fm_cursor head = fm_cursor_over(body->head.data, body->head.len);
        if (!fm_level_facts(&facts, &head) || !fm_level_read(&facts, &body->body, take_cell, read))
            t->damaged++;
    }
    /* Each block is a run. */
    fm_sort_runs(read->cells.cells.data, read->cells.cells.len, sizeof *read->cells.cells.data,
                 compare_cells);
    return here;
}

static void add_level_cell(struct fm_timeline *t, const struct fm_traced_lane *lane,
                           const struct fm_level_cell *from, struct fm_cell_builder *b)
{
    struct fm_trace_clock *clock = fm_timeline_clock(t, lane->trace);
    struct fm_cell cell = { .begin_ns = fm_trace_clock_ns(clock, from->begin),
                            .end_ns = fm_trace_clock_ns(clock, from->end),
                            .func = fm_timeline_function(t, lane->trace, from->subject),
                            .depth = from->depth,
                            .longest_ns = fm_trace_clock_length_ns(clock, from->longest),
                            .spans = from->spans };
    cell.flags = (uint8_t)(from->flags | (from->origin ? 0 : FM_CELL_EXACT));
    uint64_t length = cell.end_ns - cell.begin_ns, ticks = from->end - from->begin;
    fm_cell_builder_add(b, &cell,
                        ticks ? (uint64_t)((double)from->covered / (double)ticks * (double)length)
                              : length);
}

/* ---- choosing ---- */

/* The level whose buckets are not much longer than a cell; 0: events. */
static unsigned level_for(struct fm_timeline *t, const struct fm_traced_lane *lane,
                          uint64_t cell_ns)
{
    unsigned level = 0, width = lane->levels.list.len ? lane->levels.list.data[0].width : 63;
    const struct fm_trace_clock *clock = fm_timeline_clock(t, lane->trace);
    while (level < FM_LEVELS && width < 60 &&
           fm_trace_clock_length_ns(clock, (uint64_t)1 << width) <= cell_ns + cell_ns / 2) {
        level++;
        width += 2;
    }
    return level;
}

static uint64_t events_between(const struct fm_traced_lane *lane, uint64_t from, uint64_t to)
{
    uint64_t events = 0;
    for (size_t i = fm_lane_blocks_from(&lane->stretches, from); i < lane->stretches.list.len;
         i++) {
        if (lane->stretches.list.data[i].begin >= to)
            break;
        events += lane->stretches.list.data[i].count;
    }
    return events;
}

int fm_traced_cells(struct fm_timeline *t, size_t lane, uint64_t from_ns, uint64_t to_ns,
                    uint64_t cell_ns, struct fm_cells *into, struct fm_error *err)
{
    const struct fm_traced_lane *traced = &t->traced.data[lane];
    const struct fm_trace_clock *clock = fm_timeline_clock(t, traced->trace);
    struct fm_cell_builder b = { .cell_ns = cell_ns ? cell_ns : 1, .into = into };
    struct level_read read = { .from = from_ns ? fm_trace_clock_ticks(clock, from_ns - 1) : 0,
                               .to = fm_trace_clock_ticks(clock, to_ns) + 1 };
    int status = FM_OK;
    read.level = level_for(t, traced, cell_ns);
    bool wanted = !read.level || events_between(traced, read.from, read.to) <= FEW_EVENTS;
    bool leveled = traced->levels.list.len;
    if (wanted && (!leveled || fm_timeline_events_here(t, traced, read.from, read.to))) {
        t->only_ends = true;
        status = fm_traced_ops.events(t, lane, from_ns, to_ns, fm_cell_builder_take, &b, err);
        t->only_ends = false;
    } else {
        read.level = read.level ? read.level : 1; /* the finest, until there is more */
        while (!read_level(t, traced, &read) && read.level < FM_LEVELS)
            read.level++; /* a coarser one, until it is there */
        for (size_t i = 0; i < read.cells.cells.len; i++)
            add_level_cell(t, traced, &read.cells.cells.data[i], &b);
    }
    fm_vec_release(&read.cells.cells);
    fm_cell_builder_end(&b);
    return status;
}
