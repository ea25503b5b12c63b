/*
 * Inside the reader of .fathom files: what load.c (the file, trees and tables) and load_lines.c
 * (lines, spots and waits), load_memory.c, load_history.c, load_regions.c and load_order.c share. Nobody
 * else includes this.
 *
 * Each fm_load_… takes one block in and returns false if it makes no sense.
 */
#ifndef FM_MODEL_LOADER_H
#define FM_MODEL_LOADER_H

#include "base/map.h"
#include "base/varint.h"
#include "record/capture/budget.h"
#include "record/capture/reader.h"
#include "record/model/file/columns.h"
#include "record/model/file/renumber.h"
#include "record/model/profile.h"

/* A context of a history: which one, and its place there. */
struct fm_history_place {
    uint32_t history, context;
};

/* Histories being read. */
struct fm_history_load {
    struct fm_renumber histories, places; /* numbers in the file → of the profile, of `all` */
    FM_VEC(struct fm_history_place) all;
    FM_VEC(uint64_t) missing; /* by history: rows of changes that are still to come */
    uint32_t open;            /* the history whose last slice is open, + 1; 0: none */
    uint64_t open_ns;
};

/* The order of samples being read. */
struct fm_order_load {
    struct fm_renumber lanes;
    FM_VEC(uint64_t) missing; /* by lane: its items that are still to come */
    struct fm_map clocks;     /* process → its clock */
    uint64_t next_item;       /* the row that the next block begins with */
    uint64_t lost;            /* lanes of which something is missing */
};

struct fm_loader {
    struct fm_profile *p;
    unsigned parts; /* enum fm_file_part: what was asked for */
    struct fm_renumber strings, texts, functions, processes, threads, nodes, lines, regions;
    struct fm_map metrics;           /* number in the file → enum fm_metric */
    struct fm_columns table;         /* being read */
    struct fm_map flat_rows;         /* function → row of the ready-made table */
    uint32_t lost_process;           /* stand-in, FM_NONE until needed */
    uint64_t lost_names, lost_nodes; /* counted */
    uint64_t bad_blocks, missing_blocks;
    bool ended; /* the writer's last block was seen */
    struct fm_budget budget;
    struct fm_history_load history;
    struct fm_map traces;           /* number in the file → of the profile */
    struct fm_trace_source *source; /* of the file; NULL: places of blocks are of no use */
    struct fm_order_load order;
};

/* By their numbers in the file; what is missing gets a stand-in and is counted. */
uint32_t fm_loader_string(struct fm_loader *l, uint64_t id);
uint32_t fm_loader_function(struct fm_loader *l, uint64_t id);
uint32_t fm_loader_process(struct fm_loader *l, uint64_t id);

bool fm_load_lines(struct fm_loader *l, struct fm_cursor *c);
bool fm_load_visits(struct fm_loader *l, struct fm_cursor *c);
bool fm_load_line_states(struct fm_loader *l, struct fm_cursor *c);
bool fm_load_marks(struct fm_loader *l, struct fm_cursor *c);
bool fm_load_unit(struct fm_loader *l, struct fm_cursor *c);
bool fm_load_line_memory(struct fm_loader *l, struct fm_cursor *c);
bool fm_load_heap_counts(struct fm_loader *l, struct fm_cursor *c);
bool fm_load_memory_points(struct fm_loader *l, struct fm_cursor *c);
bool fm_load_memory_marks(struct fm_loader *l, struct fm_cursor *c);
bool fm_load_regions(struct fm_loader *l, struct fm_cursor *c);
bool fm_load_histories(struct fm_loader *l, struct fm_cursor *c);
bool fm_load_history_contexts(struct fm_loader *l, struct fm_cursor *c);
bool fm_load_history_changes(struct fm_loader *l, struct fm_cursor *c);
bool fm_load_residents(struct fm_loader *l, struct fm_cursor *c);
bool fm_load_reserves(struct fm_loader *l, struct fm_cursor *c);
bool fm_load_trace_streams(struct fm_loader *l, struct fm_cursor *c);
bool fm_load_trace_functions(struct fm_loader *l, struct fm_cursor *c);
bool fm_load_trace_names(struct fm_loader *l, struct fm_cursor *c);
/* A block whose place is kept. */
bool fm_load_trace_block(struct fm_loader *l, const struct fm_block *block);
bool fm_load_spots(struct fm_loader *l, struct fm_cursor *c);
bool fm_load_waits(struct fm_loader *l, struct fm_cursor *c);

/* All blocks were read: histories of which something is missing are left out, and counted. */
void fm_load_histories_end(struct fm_loader *l);
void fm_load_histories_release(struct fm_loader *l);

bool fm_load_sample_lanes(struct fm_loader *l, struct fm_cursor *c);
bool fm_load_sample_items(struct fm_loader *l, struct fm_cursor *c);
bool fm_load_sample_rounds(struct fm_loader *l, struct fm_cursor *c);

/* All blocks were read: what of the order of samples makes no sense is left out, and counted. */
void fm_load_order_end(struct fm_loader *l);
void fm_load_order_release(struct fm_loader *l);

/* ---- tables being read ---- */

static inline uint32_t fm_loader_id(const struct fm_renumber *ids, uint64_t id)
{
    return id < FM_NONE ? fm_renumber_get(ids, (uint32_t)id) : FM_NONE;
}

/* A row takes at most about this much in a profile; a process, of which there are few, more. */
#define FM_LOADER_ROW_BYTES 96

/* Read the cells of a table whose shape was read, if there is room for what they become. */
static inline bool fm_loader_cells(struct fm_loader *l, struct fm_cursor *c)
{
    uint64_t row_bytes = l->table.width * sizeof(uint64_t) + FM_LOADER_ROW_BYTES;
    return fm_budget_take(&l->budget, l->table.rows, row_bytes) && fm_columns_cells(&l->table, c);
}

static inline bool fm_loader_table(struct fm_loader *l, struct fm_cursor *c)
{
    return fm_columns_shape(&l->table, c) && fm_loader_cells(l, c);
}

static inline uint64_t fm_loader_cell(const struct fm_loader *l, uint32_t row, uint32_t column)
{
    return fm_columns_cell(&l->table, row, column);
}

static inline uint32_t fm_loader_cell32(const struct fm_loader *l, uint32_t row, uint32_t column)
{
    uint64_t value = fm_loader_cell(l, row, column);
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static inline int64_t fm_loader_signed(const struct fm_loader *l, uint32_t row, uint32_t column)
{
    return fm_unzigzag(fm_loader_cell(l, row, column));
}

/* Are the ids first … first + rows − 1 all above those that are known? */
static inline bool fm_loader_is_new(const struct fm_loader *l, const struct fm_renumber *ids)
{
    if (!ids->runs.len)
        return true;
    const struct fm_renumber_run *last = &ids->runs.data[ids->runs.len - 1];
    return l->table.first >= last->from && l->table.first - last->from >= last->count;
}

/* The process that the first cell of a row names, from 1 on; 0: none. */
static inline uint32_t fm_loader_row_process(struct fm_loader *l, uint32_t row)
{
    uint64_t process = fm_loader_cell(l, row, 0);
    return process ? fm_loader_process(l, process - 1) : FM_NONE;
}

/* The line that the first cell of a row names; NULL if it is missing, which is counted. */
static inline struct fm_line *fm_loader_line(struct fm_loader *l, uint32_t row)
{
    uint32_t line = fm_loader_id(&l->lines, fm_loader_cell(l, row, 0));
    l->lost_nodes += line == FM_NONE;
    return line == FM_NONE ? NULL : &l->p->lines.rows.data[line];
}

#endif
