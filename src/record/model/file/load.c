/*
 * Reads a .fathom file into a profile; see file.h and, for every byte, docs/format.md.
 *
 * One pass, block by block. A block is decoded as a whole before anything of it is used, so one
 * that makes no sense leaves no trace but a note. Ids in the file are looked up (model/file/renumber.h),
 * never used as indices. What a lost block took with it is made good as far as numbers go: a
 * function, a thread or a name that is missing gets a stand-in, so that its time stays in the sums;
 * only nodes whose caller is missing are left out, and counted.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "record/capture/format.h"
#include "record/capture/reader.h"
#include "record/model/derive/flat.h"
#include "record/model/file/file.h"
#include "record/model/file/loader.h"
#include "record/model/file/process_columns.h"

/* ---- looking ids up ---- */

uint32_t fm_loader_string(struct fm_loader *l, uint64_t id)
{
    if (id == 0)
        return 0;
    uint32_t string = fm_loader_id(&l->strings, id);
    if (string != FM_NONE)
        return string;
    l->lost_names++;
    return fm_profile_string(l->p, "<lost>");
}

uint32_t fm_loader_function(struct fm_loader *l, uint64_t id)
{
    uint32_t func = fm_loader_id(&l->functions, id);
    if (func != FM_NONE)
        return func;
    l->lost_names++;
    struct fm_function lost = { .kind = FM_FUNCTION_PYTHON };
    lost.name = lost.qualname = fm_profile_string(l->p, "<lost>");
    return fm_profile_function(l->p, &lost);
}

uint32_t fm_loader_process(struct fm_loader *l, uint64_t id)
{
    uint32_t process = fm_loader_id(&l->processes, id);
    if (process != FM_NONE)
        return process;
    if (l->lost_process == FM_NONE)
        l->lost_process = fm_profile_process(
            l->p, &(struct fm_process){ .exit_status = -1, .profiled = true, .calls = true });
    l->lost_names++;
    return l->lost_process;
}

/* ---- blocks: each returns false if the block makes no sense ---- */

static bool load_strings(struct fm_loader *l, struct fm_cursor *c, struct fm_renumber *ids)
{
    uint64_t first = fm_cursor_varint(c);
    uint64_t count = fm_cursor_varint(c);
    struct fm_cursor look = *c;
    if (c->failed || !first || first >= FM_NONE || count > fm_cursor_left(c) ||
        count >= FM_NONE - first || !fm_budget_take(&l->budget, count, FM_LOADER_ROW_BYTES))
        return false;
    for (uint64_t i = 0; i < count; i++)
        fm_cursor_bytes(&look, fm_cursor_varint(&look));
    l->table.first = (uint32_t)first;
    if (look.failed || !fm_loader_is_new(l, ids))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t len = fm_cursor_varint(c);
        const uint8_t *bytes = fm_cursor_bytes(c, len);
        uint32_t string = len ? fm_strings_add(l->p->strings, bytes, (size_t)len) : 0;
        fm_renumber_add(ids, (uint32_t)(first + i), string);
    }
    return true;
}

static bool load_facts(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        struct fm_fact fact = { fm_loader_string(l, fm_loader_cell(l, i, 0)),
                                fm_loader_string(l, fm_loader_cell(l, i, 1)) };
        fm_vec_push(&l->p->facts, fact);
    }
    return true;
}

static int32_t exit_status_of(int64_t value)
{
    return value >= -1 && value <= INT32_MAX ? (int32_t)value : -1;
}

#define GET_U32(field) process.field = fm_loader_cell32(l, i, FM_PROCESS_COLUMN_##field)
#define GET_U64(field) process.field = fm_loader_cell(l, i, FM_PROCESS_COLUMN_##field)
#define GET_STR(field)                                                                             \
    process.field = fm_loader_string(l, fm_loader_cell(l, i, FM_PROCESS_COLUMN_##field))
#define GET_I32(field)                                                                             \
    process.field = exit_status_of(fm_loader_signed(l, i, FM_PROCESS_COLUMN_##field))
#define GET_MODE(field)                                                                            \
    process.field = (uint8_t)(fm_loader_cell(l, i, FM_PROCESS_COLUMN_##field) <= FM_SAMPLE_GIL     \
                                  ? fm_loader_cell(l, i, FM_PROCESS_COLUMN_##field)                \
                                  : FM_SAMPLE_WALL)
#define GET_FLAGS(field)                                                                           \
    fm_process_set_flags(&process, fm_loader_cell(l, i, FM_PROCESS_COLUMN_##field))

static bool load_processes(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c) || !fm_loader_is_new(l, &l->processes) ||
        !fm_budget_take(&l->budget, l->table.rows, sizeof(struct fm_process)))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        struct fm_process process = { 0 };
#define X(kind, field) GET_##kind(field);
        FM_PROCESS_COLUMN_LIST(X)
#undef X
        fm_renumber_add(&l->processes, l->table.first + i, fm_profile_process(l->p, &process));
    }
    return true;
}

static bool load_functions(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c) || !fm_loader_is_new(l, &l->functions))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        struct fm_function f = {
            .kind = FM_FUNCTION_NATIVE, /* also for kinds that a later version may add */
            .flags = (uint8_t)fm_loader_cell(l, i, 1),
            .line = fm_loader_cell32(l, i, 2),
            .name = fm_loader_string(l, fm_loader_cell(l, i, 3)),
            .qualname = fm_loader_string(l, fm_loader_cell(l, i, 4)),
            .file = fm_loader_string(l, fm_loader_cell(l, i, 5)),
            .twin = fm_loader_cell32(l, i, 6),
        };
        if (fm_loader_cell(l, i, 0) <= FM_FUNCTION_ROOT)
            f.kind = (uint8_t)fm_loader_cell(l, i, 0);
        /* Two ids are two functions, even if damage made them look alike. */
        size_t before = l->p->functions.len;
        uint32_t func = fm_profile_function(l->p, &f);
        if (func < before && f.kind != FM_FUNCTION_ROOT)
            func = fm_profile_function_distinct(l->p, &f);
        fm_renumber_add(&l->functions, l->table.first + i, func);
    }
    return true;
}

static bool load_threads(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c) || !fm_loader_is_new(l, &l->threads))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        struct fm_thread thread = {
            .process = fm_loader_process(l, fm_loader_cell(l, i, 0)),
            .tid = fm_loader_cell32(l, i, 1),
            .name = fm_loader_string(l, fm_loader_cell(l, i, 2)),
            .start_ns = fm_loader_cell(l, i, 3),
            .end_ns = fm_loader_cell(l, i, 4),
            .cpu_ns = fm_loader_cell(l, i, 5),
        };
        fm_renumber_add(&l->threads, l->table.first + i, fm_profile_thread_rootless(l->p, &thread));
    }
    return true;
}

/* The root of a thread; FM_NONE if that thread has one already. */
static uint32_t load_root(struct fm_loader *l, uint64_t thread_id)
{
    uint32_t thread = fm_loader_id(&l->threads, thread_id);
    if (thread == FM_NONE)
        thread = fm_profile_thread_rootless(
            l->p, &(struct fm_thread){ .process = fm_loader_process(l, FM_NONE) });
    if (l->p->threads.data[thread].root != FM_NONE)
        return FM_NONE;
    return fm_profile_thread_root(l->p, thread);
}

static uint32_t line_of(uint64_t cell)
{
    return cell < FM_NONE ? (uint32_t)cell : 0;
}

static bool load_nodes(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c) || !fm_loader_is_new(l, &l->nodes) || l->table.width < 2 ||
        l->table.rows >= FM_NONE - l->p->nodes.len)
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint64_t up = fm_loader_cell(l, i, 0);
        uint32_t node = FM_NONE;
        if (!up) {
            node = load_root(l, fm_loader_cell(l, i, 1));
        } else if (up <= l->table.first + i) {
            uint32_t parent = fm_renumber_get(&l->nodes, (uint32_t)(l->table.first + i - up));
            if (parent != FM_NONE)
                node =
                    fm_profile_node_at(l->p, parent, fm_loader_function(l, fm_loader_cell(l, i, 1)),
                                       line_of(fm_loader_cell(l, i, 2)));
        }
        if (node == FM_NONE)
            l->lost_nodes++;
        else
            fm_renumber_add(&l->nodes, l->table.first + i, node);
    }
    return true;
}

static bool load_metrics(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        const char *name = fm_profile_text(l->p, fm_loader_string(l, fm_loader_cell(l, i, 0)));
        for (uint32_t m = 0; m < FM_METRIC_COUNT; m++)
            if (strcmp(name, fm_metric_name((enum fm_metric)m)) == 0)
                fm_map_at(&l->metrics, l->table.first + i, m, NULL);
    }
    return true;
}

static bool load_values(struct fm_loader *l, struct fm_cursor *c)
{
    const uint32_t *metrics[64];
    if (!fm_columns_shape(&l->table, c) || l->table.width > FM_COUNT(metrics))
        return false;
    for (uint32_t m = 0; m < l->table.width; m++)
        metrics[m] = fm_map_find(&l->metrics, fm_cursor_varint(c));
    if (!fm_loader_cells(l, c))
        return false;
    for (uint32_t m = 0; m < l->table.width; m++) {
        if (!metrics[m])
            continue; /* a later version's metric */
        for (uint32_t i = 0; i < l->table.rows; i++) {
            uint64_t value = fm_loader_cell(l, i, m);
            uint32_t node = value ? fm_renumber_get(&l->nodes, l->table.first + i) : FM_NONE;
            if (node != FM_NONE)
                fm_profile_add(l->p, (enum fm_metric) * metrics[m], node, fm_unzigzag(value));
        }
    }
    return true;
}

/* Before version 1.3 source text was among the other strings. What was not asked for is not lost. */
static uint32_t load_text(struct fm_loader *l, uint32_t row)
{
    uint64_t among_strings = fm_loader_cell(l, row, 2), text = fm_loader_cell(l, row, 5);
    if (among_strings)
        return fm_loader_string(l, among_strings);
    uint32_t string = text ? fm_loader_id(&l->texts, text) : 0;
    if (string != FM_NONE)
        return string;
    l->lost_names += l->parts & FM_FILE_TEXTS ? 1 : 0;
    return 0;
}

static bool load_sources(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint64_t state = fm_loader_cell(l, i, 1);
        struct fm_source source = {
            .file = fm_loader_string(l, fm_loader_cell(l, i, 0)),
            .state = state <= FM_SOURCE_CHANGED ? (uint8_t)state : FM_SOURCE_CHANGED,
            .text = load_text(l, i),
            .mtime_ns = fm_loader_cell(l, i, 3),
            .size_bytes = fm_loader_cell(l, i, 4),
        };
        fm_vec_push(&l->p->sources, source);
    }
    return true;
}

static bool load_notes(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        uint64_t process = fm_loader_cell(l, i, 0);
        struct fm_note note = {
            .process = process ? fm_loader_id(&l->processes, process - 1) : FM_NONE,
            .kind = fm_loader_string(l, fm_loader_cell(l, i, 1)),
            .count = fm_loader_cell(l, i, 2),
            .text = fm_loader_string(l, fm_loader_cell(l, i, 3)),
        };
        fm_vec_push(&l->p->notes, note);
    }
    return true;
}

static bool load_flat_rows(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c))
        return false;
    if (!l->p->flat)
        l->p->flat = fm_calloc(1, sizeof *l->p->flat);
    for (uint32_t i = 0; i < l->table.rows; i++) {
        struct fm_flat_row row = {
            .func = fm_loader_function(l, fm_loader_cell(l, i, 0)),
            .calls = fm_loader_signed(l, i, 1),
            .primitive = fm_loader_signed(l, i, 2),
            .resumes = fm_loader_signed(l, i, 3),
            .self_ns = fm_loader_signed(l, i, 4),
            .total_ns = fm_loader_signed(l, i, 5),
            .min_ns = fm_loader_signed(l, i, 6),
            .max_ns = fm_loader_signed(l, i, 7),
            .suspended_ns = fm_loader_signed(l, i, 8),
        };
        bool is_new;
        fm_map_at(&l->flat_rows, row.func, (uint32_t)l->p->flat->rows.len, &is_new);
        if (is_new)
            fm_vec_push(&l->p->flat->rows, row);
        else
            l->lost_nodes++;
        l->p->flat->sampled |= fm_loader_cell(l, i, 9) != 0;
    }
    return true;
}

static bool load_flat_edges(struct fm_loader *l, struct fm_cursor *c)
{
    if (!fm_loader_table(l, c))
        return false;
    for (uint32_t i = 0; i < l->table.rows; i++) {
        const uint32_t *caller =
            fm_map_find(&l->flat_rows, fm_loader_function(l, fm_loader_cell(l, i, 0)));
        const uint32_t *callee =
            fm_map_find(&l->flat_rows, fm_loader_function(l, fm_loader_cell(l, i, 1)));
        if (!caller || !callee) {
            l->lost_nodes++;
            continue;
        }
        struct fm_flat_edge edge = {
            .caller = *caller,
            .callee = *callee,
            .calls = fm_loader_signed(l, i, 2),
            .primitive = fm_loader_signed(l, i, 3),
            .self_ns = fm_loader_signed(l, i, 4),
            .total_ns = fm_loader_signed(l, i, 5),
        };
        fm_vec_push(&l->p->flat->edges, edge);
    }
    return true;
}

/* ---- the whole ---- */

static bool load_block(struct fm_loader *l, const struct fm_block *block, uint64_t blocks_before)
{
    struct fm_cursor c = fm_cursor_over(block->data, block->len);
    switch (block->type) {
    case FM_BLOCK_STRINGS:
        return load_strings(l, &c, &l->strings);
    case FM_BLOCK_TEXTS:
        return load_strings(l, &c, &l->texts);
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
        return fm_load_lines(l, &c);
    case FM_BLOCK_LINE_VISITS:
        return fm_load_visits(l, &c);
    case FM_BLOCK_LINE_MARKS:
        return fm_load_marks(l, &c);
    case FM_BLOCK_LINE_UNIT:
        return fm_load_unit(l, &c);
    case FM_BLOCK_LINE_STATES:
        return fm_load_line_states(l, &c);
    case FM_BLOCK_SPOTS:
        return fm_load_spots(l, &c);
    case FM_BLOCK_WAITS:
        return fm_load_waits(l, &c);
    case FM_BLOCK_LINE_MEMORY:
        return fm_load_line_memory(l, &c);
    case FM_BLOCK_HEAP_COUNTS:
        return fm_load_heap_counts(l, &c);
    case FM_BLOCK_MEMORY_POINTS:
        return fm_load_memory_points(l, &c);
    case FM_BLOCK_MEMORY_MARKS:
        return fm_load_memory_marks(l, &c);
    case FM_BLOCK_REGIONS:
        return fm_load_regions(l, &c);
    case FM_BLOCK_HISTORIES:
        return fm_load_histories(l, &c);
    case FM_BLOCK_HISTORY_CONTEXTS:
        return fm_load_history_contexts(l, &c);
    case FM_BLOCK_HISTORY_CHANGES:
        return fm_load_history_changes(l, &c);
    case FM_BLOCK_RESIDENTS:
        return fm_load_residents(l, &c);
    case FM_BLOCK_RESERVES:
        return fm_load_reserves(l, &c);
    case FM_BLOCK_TRACE_STREAMS:
        return fm_load_trace_streams(l, &c);
    case FM_BLOCK_TRACE_FUNCTIONS:
        return fm_load_trace_functions(l, &c);
    case FM_BLOCK_TRACE_NAMES:
        return fm_load_trace_names(l, &c);
    case FM_BLOCK_TRACE_EVENTS:
    case FM_BLOCK_TRACE_LEVELS:
    case FM_BLOCK_TRACE_MARKS:
    case FM_BLOCK_TRACE_TASKS:
    case FM_BLOCK_TRACE_CLOCK:
        return fm_load_trace_block(l, block);
    case FM_BLOCK_SAMPLE_LANES:
        return fm_load_sample_lanes(l, &c);
    case FM_BLOCK_SAMPLE_ITEMS:
        return fm_load_sample_items(l, &c);
    case FM_BLOCK_SAMPLE_ROUNDS:
        return fm_load_sample_rounds(l, &c);
    case FM_BLOCK_END:
        l->ended = true;
        l->missing_blocks = fm_cursor_varint(&c) - blocks_before;
        return !c.failed;
    default: /* a later version's block */
        return true;
    }
}

static void note_damage(struct fm_loader *l, const struct fm_reader *reader)
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

static void loader_release(struct fm_loader *l)
{
    fm_renumber_release(&l->strings);
    fm_renumber_release(&l->texts);
    fm_renumber_release(&l->functions);
    fm_renumber_release(&l->processes);
    fm_renumber_release(&l->threads);
    fm_renumber_release(&l->nodes);
    fm_map_release(&l->metrics);
    fm_map_release(&l->flat_rows);
    fm_map_release(&l->traces);
    fm_trace_source_drop(l->source);
    fm_renumber_release(&l->lines);
    fm_renumber_release(&l->regions);
    fm_load_histories_release(l);
    fm_load_order_release(l);
    fm_columns_release(&l->table);
}

bool fm_file_recognise(const void *bytes, size_t len)
{
    return fm_reader_recognise(bytes, len);
}

/* The types of blocks that hold what was asked for; a later version's are none of them. */
static uint64_t types_of(unsigned parts)
{
    uint64_t types = (1ull << FM_BLOCK_TYPES) - 1;
    uint64_t histories = 1ull << FM_BLOCK_HISTORIES | 1ull << FM_BLOCK_HISTORY_CONTEXTS |
                         1ull << FM_BLOCK_HISTORY_CHANGES;
    types &= parts & FM_FILE_HISTORIES ? types : ~histories;
    return parts & FM_FILE_TEXTS ? types : types & ~(1ull << FM_BLOCK_TEXTS);
}

/* Those of which a profile keeps the place. */
static const uint64_t placed_types = 1ull << FM_BLOCK_TRACE_EVENTS | 1ull << FM_BLOCK_TRACE_LEVELS |
                                     1ull << FM_BLOCK_TRACE_MARKS | 1ull << FM_BLOCK_TRACE_TASKS |
                                     1ull << FM_BLOCK_TRACE_CLOCK;

static struct fm_profile *load(struct fm_reader *reader, unsigned parts, const char *name,
                               struct fm_error *err)
{
    struct fm_loader l = { .lost_process = FM_NONE,
                           .parts = parts,
                           .budget = fm_budget_for(reader->len) };
    struct fm_block block;
    reader->wanted = types_of(parts);
    reader->placed = placed_types;
    l.source = reader->bytes ? fm_trace_source_bytes(reader->bytes, (size_t)reader->len)
                             : fm_trace_source_file(reader->fd);
    l.p = fm_profile_new();
    while (!l.budget.spent && fm_reader_next(reader, &block))
        if (!fm_budget_take(&l.budget, block.len, 1) || !load_block(&l, &block, reader->blocks - 1))
            l.bad_blocks++;
    /* A thread that was cut off before its first node. */
    for (uint32_t t = 0; t < l.p->threads.len; t++)
        if (l.p->threads.data[t].root == FM_NONE)
            fm_profile_thread_root(l.p, t);
    fm_lines_sort(&l.p->lines);
    fm_samples_sort(&l.p->samples);
    fm_load_histories_end(&l);
    fm_load_order_end(&l);
    note_damage(&l, reader);
    loader_release(&l);
    if (l.budget.spent) {
        fm_budget_fail(&l.budget, err);
        fm_error_context(err, "reading %s", name);
        fm_profile_free(l.p);
        return NULL;
    }
    return l.p;
}

struct fm_profile *fm_file_load(const void *bytes, size_t len, const char *name,
                                struct fm_error *err)
{
    struct fm_reader reader;
    struct fm_profile *p = NULL;
    if (fm_reader_init(&reader, bytes, len, err) < 0)
        fm_error_context(err, "reading %s", name);
    else
        p = load(&reader, FM_FILE_ALL, name, err);
    fm_reader_release(&reader);
    return p;
}

struct fm_profile *fm_file_load_fd(int fd, uint64_t len, const char *name, unsigned parts,
                                   struct fm_error *err)
{
    struct fm_reader reader;
    struct fm_profile *p = NULL;
    if (fm_reader_init_fd(&reader, fd, len, err) < 0)
        fm_error_context(err, "reading %s", name);
    else
        p = load(&reader, parts, name, err);
    if (p && reader.failed) {
        fm_error_set_errno(err, FM_CANNOT_READ, reader.failed, "reading %s", name);
        fm_profile_free(p);
        p = NULL;
    }
    fm_reader_release(&reader);
    return p;
}
