/*
 * Reads a .fathom file into a profile; see file.h and, for every byte, docs/format.md.
 *
 * One pass, block by block. A block is decoded as a whole before anything of it is used, so one
 * that makes no sense leaves no trace but a note. Ids in the file are looked up (model/renumber.h),
 * never used as indices. What a lost block took with it is made good as far as numbers go: a
 * function, a thread or a name that is missing gets a stand-in, so that its time stays in the sums;
 * only nodes whose caller is missing are left out, and counted.
 */
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/varint.h"
#include "capture/format.h"
#include "capture/reader.h"
#include "model/columns.h"
#include "model/file.h"
#include "model/flat.h"
#include "model/renumber.h"

struct loader {
    struct fm_profile *p;
    struct fm_renumber strings, functions, processes, threads, nodes, lines;
    struct fm_map metrics;           /* number in the file → enum fm_metric */
    struct fm_columns table;         /* being read */
    struct fm_map flat_rows;         /* function → row of the ready-made table */
    uint32_t lost_process;           /* stand-in, FM_NONE until needed */
    uint64_t lost_names, lost_nodes; /* counted */
    uint64_t bad_blocks, missing_blocks;
    bool ended; /* the writer's last block was seen */
};

/* ---- looking ids up ---- */

static uint32_t id_at(const struct fm_renumber *ids, uint64_t id)
{
    return id < FM_NONE ? fm_renumber_get(ids, (uint32_t)id) : FM_NONE;
}

static uint32_t string_at(struct loader *l, uint64_t id)
{
    if (id == 0)
        return 0;
    uint32_t string = id_at(&l->strings, id);
    if (string != FM_NONE)
        return string;
    l->lost_names++;
    return fm_profile_string(l->p, "<lost>");
}

static uint32_t function_at(struct loader *l, uint64_t id)
{
    uint32_t func = id_at(&l->functions, id);
    if (func != FM_NONE)
        return func;
    l->lost_names++;
    struct fm_function lost = { .kind = FM_FUNCTION_PYTHON };
    lost.name = lost.qualname = fm_profile_string(l->p, "<lost>");
    return fm_profile_function(l->p, &lost);
}

static uint32_t process_at(struct loader *l, uint64_t id)
{
    uint32_t process = id_at(&l->processes, id);
    if (process != FM_NONE)
        return process;
    if (l->lost_process == FM_NONE)
        l->lost_process = fm_profile_process(
            l->p, &(struct fm_process){ .exit_status = -1, .profiled = true, .calls = true });
    l->lost_names++;
    return l->lost_process;
}

/* ---- tables ---- */

static bool read_table(struct loader *l, struct fm_cursor *c)
{
    return fm_columns_read(&l->table, c);
}

static uint64_t cell(const struct loader *l, uint32_t row, uint32_t column)
{
    return fm_columns_cell(&l->table, row, column);
}

static uint32_t cell32(const struct loader *l, uint32_t row, uint32_t column)
{
    uint64_t value = cell(l, row, column);
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static int64_t cell_signed(const struct loader *l, uint32_t row, uint32_t column)
{
    return fm_unzigzag(cell(l, row, column));
}

/* Are the ids first … first + rows − 1 all above those that are known? */
static bool ids_are_new(const struct loader *l, const struct fm_renumber *ids)
{
    if (!ids->runs.len)
        return true;
    const struct fm_renumber_run *last = &ids->runs.data[ids->runs.len - 1];
    return l->table.first >= last->from && l->table.first - last->from >= last->count;
}

/* ---- blocks: each returns false if the block makes no sense ---- */

static bool load_strings(struct loader *l, struct fm_cursor *c)
{
    uint64_t first = fm_cursor_varint(c);
    uint64_t count = fm_cursor_varint(c);
    struct fm_cursor look = *c;
    if (c->failed || !first || first >= FM_NONE || count > fm_cursor_left(c) ||
        count >= FM_NONE - first)
        return false;
    for (uint64_t i = 0; i < count; i++)
        fm_cursor_bytes(&look, fm_cursor_varint(&look));
    l->table.first = (uint32_t)first;
    if (look.failed || !ids_are_new(l, &l->strings))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t len = fm_cursor_varint(c);
        const uint8_t *bytes = fm_cursor_bytes(c, len);
        uint32_t string = len ? fm_strings_add(l->p->strings, bytes, (size_t)len) : 0;
        fm_renumber_add(&l->strings, (uint32_t)(first + i), string);
    }
    return true;
}

static bool load_facts(struct loader *l, struct fm_cursor *c)
{
    if (!read_table(l, c))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        struct fm_fact fact = { string_at(l, cell(l, i, 0)), string_at(l, cell(l, i, 1)) };
        fm_vec_push(&l->p->facts, fact);
    }
    return true;
}

static bool load_processes(struct loader *l, struct fm_cursor *c)
{
    if (!read_table(l, c) || !ids_are_new(l, &l->processes))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint64_t flags = cell(l, i, FM_PROCESS_FLAGS);
        int64_t exit_status = cell_signed(l, i, FM_PROCESS_EXIT_STATUS);
        struct fm_process process = {
            .pid = cell32(l, i, FM_PROCESS_PID),
            .parent_pid = cell32(l, i, FM_PROCESS_PARENT_PID),
            .exe = string_at(l, cell(l, i, FM_PROCESS_EXE)),
            .command = string_at(l, cell(l, i, FM_PROCESS_COMMAND)),
            .cwd = string_at(l, cell(l, i, FM_PROCESS_CWD)),
            .version = string_at(l, cell(l, i, FM_PROCESS_VERSION)),
            .start_real_ns = cell(l, i, FM_PROCESS_START_REAL_NS),
            .start_ns = cell(l, i, FM_PROCESS_START_NS),
            .end_ns = cell(l, i, FM_PROCESS_END_NS),
            .exit_status =
                exit_status >= -1 && exit_status <= INT32_MAX ? (int32_t)exit_status : -1,
            .profiled = flags & FM_PROCESS_PROFILED,
            .forked = flags & FM_PROCESS_FORKED,
            .c_calls = flags & FM_PROCESS_C_CALLS,
            .calls = !(flags & FM_PROCESS_FEW_CALLS),
            .lines = flags & FM_PROCESS_LINES,
            .cost_call_ps = cell(l, i, FM_PROCESS_COST_CALL_PS),
            .cost_c_call_ps = cell(l, i, FM_PROCESS_COST_C_CALL_PS),
            .cost_resume_ps = cell(l, i, FM_PROCESS_COST_RESUME_PS),
            .own_ns = cell(l, i, FM_PROCESS_OWN_NS),
            .cost_line_ps = cell(l, i, FM_PROCESS_COST_LINE_PS),
        };
        fm_renumber_add(&l->processes, l->table.first + i, fm_profile_process(l->p, &process));
    }
    return true;
}

static bool load_functions(struct loader *l, struct fm_cursor *c)
{
    if (!read_table(l, c) || !ids_are_new(l, &l->functions))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        struct fm_function f = {
            .kind = FM_FUNCTION_NATIVE, /* also for kinds that a later version may add */
            .flags = (uint8_t)cell(l, i, 1),
            .line = cell32(l, i, 2),
            .name = string_at(l, cell(l, i, 3)),
            .qualname = string_at(l, cell(l, i, 4)),
            .file = string_at(l, cell(l, i, 5)),
            .twin = cell32(l, i, 6),
        };
        if (cell(l, i, 0) <= FM_FUNCTION_ROOT)
            f.kind = (uint8_t)cell(l, i, 0);
        /* Two ids are two functions, even if damage made them look alike. */
        size_t before = l->p->functions.len;
        uint32_t func = fm_profile_function(l->p, &f);
        if (func < before && f.kind != FM_FUNCTION_ROOT)
            func = fm_profile_function_distinct(l->p, &f);
        fm_renumber_add(&l->functions, l->table.first + i, func);
    }
    return true;
}

static bool load_threads(struct loader *l, struct fm_cursor *c)
{
    if (!read_table(l, c) || !ids_are_new(l, &l->threads))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        struct fm_thread thread = {
            .process = process_at(l, cell(l, i, 0)),
            .tid = cell32(l, i, 1),
            .name = string_at(l, cell(l, i, 2)),
            .start_ns = cell(l, i, 3),
            .end_ns = cell(l, i, 4),
            .cpu_ns = cell(l, i, 5),
        };
        fm_renumber_add(&l->threads, l->table.first + i, fm_profile_thread_rootless(l->p, &thread));
    }
    return true;
}

/* The root of a thread; FM_NONE if that thread has one already. */
static uint32_t load_root(struct loader *l, uint64_t thread_id)
{
    uint32_t thread = id_at(&l->threads, thread_id);
    if (thread == FM_NONE)
        thread = fm_profile_thread_rootless(
            l->p, &(struct fm_thread){ .process = process_at(l, FM_NONE) });
    if (l->p->threads.data[thread].root != FM_NONE)
        return FM_NONE;
    return fm_profile_thread_root(l->p, thread);
}

static bool load_nodes(struct loader *l, struct fm_cursor *c)
{
    if (!read_table(l, c) || !ids_are_new(l, &l->nodes) || l->table.width < 2 ||
        l->table.rows >= FM_NONE - l->p->nodes.len)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint64_t up = cell(l, i, 0);
        uint32_t node = FM_NONE;
        if (!up) {
            node = load_root(l, cell(l, i, 1));
        } else if (up <= l->table.first + i) {
            uint32_t parent = fm_renumber_get(&l->nodes, (uint32_t)(l->table.first + i - up));
            if (parent != FM_NONE)
                node = fm_profile_node(l->p, parent, function_at(l, cell(l, i, 1)));
        }
        if (node == FM_NONE)
            l->lost_nodes++;
        else
            fm_renumber_add(&l->nodes, l->table.first + i, node);
    }
    return true;
}

static bool load_metrics(struct loader *l, struct fm_cursor *c)
{
    if (!read_table(l, c))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        const char *name = fm_profile_text(l->p, string_at(l, cell(l, i, 0)));
        for (uint32_t m = 0; m < FM_METRIC_COUNT; m++)
            if (strcmp(name, fm_metric_name((enum fm_metric)m)) == 0)
                fm_map_at(&l->metrics, l->table.first + i, m, NULL);
    }
    return true;
}

static bool load_values(struct loader *l, struct fm_cursor *c)
{
    const uint32_t *metrics[64];
    if (!fm_columns_shape(&l->table, c) || l->table.width > FM_COUNT(metrics))
        return false;
    for (uint32_t m = 0; m < l->table.width; m++)
        metrics[m] = fm_map_find(&l->metrics, fm_cursor_varint(c));
    if (!fm_columns_cells(&l->table, c))
        return false;
    for (uint32_t m = 0; m < l->table.width; m++) {
        if (!metrics[m])
            continue; /* a later version's metric */
        for (uint32_t i = 0; i < l->table.rows; i++) {
            uint64_t value = cell(l, i, m);
            uint32_t node = value ? fm_renumber_get(&l->nodes, l->table.first + i) : FM_NONE;
            if (node != FM_NONE)
                fm_profile_add(l->p, (enum fm_metric) * metrics[m], node, fm_unzigzag(value));
        }
    }
    return true;
}

static bool load_sources(struct loader *l, struct fm_cursor *c)
{
    if (!read_table(l, c))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint64_t state = cell(l, i, 1);
        struct fm_source source = {
            .file = string_at(l, cell(l, i, 0)),
            .state = state <= FM_SOURCE_CHANGED ? (uint8_t)state : FM_SOURCE_CHANGED,
            .text = string_at(l, cell(l, i, 2)),
            .mtime_ns = cell(l, i, 3),
            .size_bytes = cell(l, i, 4),
        };
        fm_vec_push(&l->p->sources, source);
    }
    return true;
}

static bool load_notes(struct loader *l, struct fm_cursor *c)
{
    if (!read_table(l, c))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint64_t process = cell(l, i, 0);
        struct fm_note note = {
            .process = process ? id_at(&l->processes, process - 1) : FM_NONE,
            .kind = string_at(l, cell(l, i, 1)),
            .count = cell(l, i, 2),
            .text = string_at(l, cell(l, i, 3)),
        };
        fm_vec_push(&l->p->notes, note);
    }
    return true;
}

static bool load_flat_rows(struct loader *l, struct fm_cursor *c)
{
    if (!read_table(l, c))
        return false;
    if (!l->p->flat)
        l->p->flat = fm_calloc(1, sizeof *l->p->flat);
    for (uint32_t i = 0; i < l->table.rows; i++) {
        struct fm_flat_row row = {
            .func = function_at(l, cell(l, i, 0)),
            .calls = cell_signed(l, i, 1),
            .primitive = cell_signed(l, i, 2),
            .resumes = cell_signed(l, i, 3),
            .self_ns = cell_signed(l, i, 4),
            .total_ns = cell_signed(l, i, 5),
            .min_ns = cell_signed(l, i, 6),
            .max_ns = cell_signed(l, i, 7),
            .suspended_ns = cell_signed(l, i, 8),
        };
        bool is_new;
        fm_map_at(&l->flat_rows, row.func, (uint32_t)l->p->flat->rows.len, &is_new);
        if (is_new)
            fm_vec_push(&l->p->flat->rows, row);
        else
            l->lost_nodes++;
        l->p->flat->sampled |= cell(l, i, 9) != 0;
    }
    return true;
}

static bool load_flat_edges(struct loader *l, struct fm_cursor *c)
{
    if (!read_table(l, c))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        const uint32_t *caller = fm_map_find(&l->flat_rows, function_at(l, cell(l, i, 0)));
        const uint32_t *callee = fm_map_find(&l->flat_rows, function_at(l, cell(l, i, 1)));
        if (!caller || !callee) {
            l->lost_nodes++;
            continue;
        }
        struct fm_flat_edge edge = {
            .caller = *caller,
            .callee = *callee,
            .calls = cell_signed(l, i, 2),
            .primitive = cell_signed(l, i, 3),
            .self_ns = cell_signed(l, i, 4),
            .total_ns = cell_signed(l, i, 5),
        };
        fm_vec_push(&l->p->flat->edges, edge);
    }
    return true;
}

/* ---- lines ---- */

static bool load_lines(struct loader *l, struct fm_cursor *c)
{
    if (!read_table(l, c) || !ids_are_new(l, &l->lines) || l->table.width < 4 ||
        l->table.rows >= FM_NONE - l->p->lines.rows.len)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint64_t process = cell(l, i, 0);
        struct fm_line *row =
            fm_lines_add(&l->p->lines, process ? process_at(l, process - 1) : FM_NONE,
                         function_at(l, cell(l, i, 1)), cell32(l, i, 2), false);
        row->hits = cell_signed(l, i, 3);
        row->total_ns = cell_signed(l, i, 4);
        row->self_ns = cell_signed(l, i, 5);
        row->min_ns = cell_signed(l, i, 6);
        row->max_ns = cell_signed(l, i, 7);
        row->suspended_ns = cell_signed(l, i, 8);
        fm_renumber_add(&l->lines, l->table.first + i, (uint32_t)l->p->lines.rows.len - 1);
    }
    return true;
}

static bool load_visits(struct loader *l, struct fm_cursor *c)
{
    struct fm_lines *lines = &l->p->lines;
    if (!read_table(l, c) || l->table.width < 3)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint32_t row = id_at(&l->lines, cell(l, i, 0)), visits = cell32(l, i, 2);
        uint64_t bucket = cell(l, i, 1);
        if (row == FM_NONE) {
            l->lost_nodes++;
            continue;
        }
        uint32_t *to = &fm_lines_histogram(lines, &lines->rows.data[row])
                            ->buckets[bucket < FM_LINE_BUCKETS ? bucket : FM_LINE_BUCKETS - 1];
        if (__builtin_add_overflow(*to, visits, to))
            *to = UINT32_MAX;
    }
    return true;
}

static bool load_marks(struct loader *l, struct fm_cursor *c)
{
    if (!read_table(l, c))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint32_t func = id_at(&l->functions, cell(l, i, 0));
        if (func != FM_NONE)
            fm_lines_mark(&l->p->lines, func);
    }
    return true;
}

static bool load_unit(struct loader *l, struct fm_cursor *c)
{
    double unit_s;
    if (!read_table(l, c) || l->table.rows != 1)
        return false;
    uint64_t bits = cell(l, 0, 0);
    memcpy(&unit_s, &bits, sizeof unit_s);
    if (!(unit_s > 0 && unit_s <= 1e9))
        return false;
    l->p->lines.unit_s = unit_s;
    return true;
}

/* ---- the whole ---- */

static bool load_block(struct loader *l, const struct fm_block *block, uint64_t blocks_before)
{
    struct fm_cursor c = fm_cursor_over(block->data, block->len);
    switch (block->type) {
    case FM_BLOCK_STRINGS:
        return load_strings(l, &c);
    case FM_BLOCK_RUN:
        return load_facts(l, &c);
    case FM_BLOCK_PROCESSES:
        return load_processes(l, &c);
    case FM_BLOCK_FUNCTIONS:
        return load_functions(l, &c);
    case FM_BLOCK_THREADS:
        return load_threads(l, &c);
    case FM_BLOCK_NODES:
        return load_nodes(l, &c);
    case FM_BLOCK_METRICS:
        return load_metrics(l, &c);
    case FM_BLOCK_VALUES:
        return load_values(l, &c);
    case FM_BLOCK_SOURCES:
        return load_sources(l, &c);
    case FM_BLOCK_NOTES:
        return load_notes(l, &c);
    case FM_BLOCK_FLAT_ROWS:
        return load_flat_rows(l, &c);
    case FM_BLOCK_FLAT_EDGES:
        return load_flat_edges(l, &c);
    case FM_BLOCK_LINES:
        return load_lines(l, &c);
    case FM_BLOCK_LINE_VISITS:
        return load_visits(l, &c);
    case FM_BLOCK_LINE_MARKS:
        return load_marks(l, &c);
    case FM_BLOCK_LINE_UNIT:
        return load_unit(l, &c);
    case FM_BLOCK_END:
        l->ended = true;
        l->missing_blocks = fm_cursor_varint(&c) - blocks_before;
        return !c.failed;
    default: /* a later version's block */
        return true;
    }
}

static void note_damage(struct loader *l, const struct fm_reader *reader)
{
    struct fm_profile *p = l->p;
    if (!l->ended || reader->cut_off)
        fm_profile_note(p, FM_NONE, "cut-off", 1,
                        "the recording ends early: what was recorded last is missing");
    if (reader->header_damaged)
        fm_profile_note(p, FM_NONE, "damaged", 1,
                        "the recording's first bytes are damaged: its version is unknown");
    if (reader->skipped_bytes)
        fm_profile_note(p, FM_NONE, "damaged", reader->skipped_bytes,
                        "bytes of the recording are damaged and were skipped");
    if (l->bad_blocks)
        fm_profile_note(p, FM_NONE, "damaged", l->bad_blocks,
                        "blocks of the recording do not fit the others and were left out");
    if (l->missing_blocks && !reader->damaged_spots)
        fm_profile_note(p, FM_NONE, "damaged", l->missing_blocks,
                        "blocks of the recording are missing");
    if (l->lost_nodes)
        fm_profile_note(p, FM_NONE, "damaged", l->lost_nodes,
                        "contexts or visits were left out because what they belong to is missing");
    if (l->lost_names)
        fm_profile_note(p, FM_NONE, "damaged", l->lost_names,
                        "names are missing and shown as <lost>");
}

static void loader_release(struct loader *l)
{
    fm_renumber_release(&l->strings);
    fm_renumber_release(&l->functions);
    fm_renumber_release(&l->processes);
    fm_renumber_release(&l->threads);
    fm_renumber_release(&l->nodes);
    fm_map_release(&l->metrics);
    fm_map_release(&l->flat_rows);
    fm_renumber_release(&l->lines);
    fm_columns_release(&l->table);
}

bool fm_file_recognise(const void *bytes, size_t len)
{
    return fm_reader_recognise(bytes, len);
}

struct fm_profile *fm_file_load(const void *bytes, size_t len, const char *name,
                                struct fm_error *err)
{
    struct loader l = { .lost_process = FM_NONE };
    struct fm_reader reader;
    struct fm_block block;
    if (fm_reader_init(&reader, bytes, len, err)) {
        fm_error_context(err, "reading %s", name);
        return NULL;
    }
    l.p = fm_profile_new();
    while (fm_reader_next(&reader, &block))
        if (!load_block(&l, &block, reader.blocks - 1))
            l.bad_blocks++;
    /* A thread that was cut off before its first node. */
    for (uint32_t t = 0; t < l.p->threads.len; t++)
        if (l.p->threads.data[t].root == FM_NONE)
            fm_profile_thread_root(l.p, t);
    fm_lines_sort(&l.p->lines);
    note_damage(&l, &reader);
    fm_reader_release(&reader);
    loader_release(&l);
    return l.p;
}
