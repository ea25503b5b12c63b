/*
 * A profile as a whole through the recorder, and with it a .fathom file in one go; see recorder.h and
 * file.h.
 *
 * Facts, processes and notes come first, being small and wanted in any case; source text comes last,
 * being large and the easiest to do without. Functions and threads are given to the recorder in their
 * order when the first nodes need them, so that nodes go out in blocks as early as may be. Strings that
 * nothing uses are left out.
 */
#include <string.h>

#include "base/memory.h"
#include "base/varint.h"
#include "record/model/derive/flat.h"
#include "record/model/file/file.h"
#include "record/model/file/recorder.h"
#include "record/model/file/recording.h"

struct append {
    struct fm_recorder *r;
    const struct fm_profile *p;
    uint32_t *strings;   /* of `p` → number in the file; FM_NONE: not given yet */
    uint32_t *functions; /* … those below `functions_done` */
    uint32_t functions_done;
    uint32_t threads_done;
    uint32_t first_process, first_thread; /* the numbers of those of `p` begin here */
    uint32_t first_node;
};

static uint32_t string_number(struct append *a, uint32_t string)
{
    if (a->strings[string] == FM_NONE)
        a->strings[string] = fm_recorder_string(a->r, fm_profile_text(a->p, string),
                                                fm_strings_len(a->p->strings, string));
    return a->strings[string];
}

/* A process where 0 means none. */
static uint64_t process_number(const struct append *a, uint32_t process)
{
    return process == FM_NONE ? 0 : (uint64_t)a->first_process + process + 1;
}

/* ---- what comes first ---- */

static void append_facts(struct append *a)
{
    for (size_t i = 0; i < a->p->facts.len; i++)
        fm_recorder_fact(a->r, fm_profile_text(a->p, a->p->facts.data[i].key),
                         fm_profile_text(a->p, a->p->facts.data[i].value));
}

static void append_processes(struct append *a)
{
    for (size_t i = 0; i < a->p->processes.len; i++) {
        struct fm_process process = a->p->processes.data[i];
        process.run += a->r->runs;
        process.exe = string_number(a, process.exe);
        process.command = string_number(a, process.command);
        process.cwd = string_number(a, process.cwd);
        process.version = string_number(a, process.version);
        fm_recorder_process(a->r, &process);
    }
    a->r->runs += fm_profile_runs(a->p);
}

static void append_notes(struct append *a)
{
    for (size_t i = 0; i < a->p->notes.len; i++) {
        const struct fm_note *note = &a->p->notes.data[i];
        FM_RECORDER_ROW(a->r, FM_TABLE_NOTES, process_number(a, note->process),
                        string_number(a, note->kind), note->count, string_number(a, note->text));
    }
}

/* ---- trees ---- */

/* Functions up to, not including, `end`. */
static void append_functions(struct append *a, uint32_t end)
{
    for (; a->functions_done < end; a->functions_done++) {
        struct fm_function f = a->p->functions.data[a->functions_done];
        f.name = string_number(a, f.name);
        f.qualname = string_number(a, f.qualname);
        f.file = string_number(a, f.file);
        a->functions[a->functions_done] = fm_recorder_function(a->r, &f);
    }
}

static void append_threads(struct append *a, uint32_t end)
{
    for (; a->threads_done < end; a->threads_done++) {
        struct fm_thread thread = a->p->threads.data[a->threads_done];
        thread.process += a->first_process;
        thread.name = string_number(a, thread.name);
        fm_recorder_thread(a->r, &thread);
    }
}

/* What the nodes of a stretch refer to. */
static void append_needs(struct append *a, uint32_t begin, uint32_t end)
{
    uint32_t functions = a->functions_done, threads = a->threads_done;
    for (uint32_t i = begin; i < end; i++) {
        const struct fm_node *node = &a->p->nodes.data[i];
        if (node->func >= functions)
            functions = node->func + 1;
        if (node->thread >= threads)
            threads = node->thread + 1;
    }
    append_functions(a, functions);
    append_threads(a, threads);
}

/* As many nodes as one block holds, with their values. */
static void append_stretch(struct append *a, uint32_t begin, uint32_t end)
{
    struct fm_recorder *r = a->r;
    append_needs(a, begin, end);
    if (r->tables[FM_TABLE_NODES].count + (end - begin) > FM_ROWS_MAX)
        fm_recorder_write(r);
    uint32_t place = r->tables[FM_TABLE_NODES].count;
    for (uint32_t i = begin; i < end; i++) {
        const struct fm_node *node = &a->p->nodes.data[i];
        if (node->parent == FM_NONE)
            fm_recorder_root(r, a->first_thread + node->thread);
        else if (node->line)
            FM_RECORDER_ROW(r, FM_TABLE_NODES, i - node->parent, a->functions[node->func],
                            node->line);
        else
            FM_RECORDER_ROW(r, FM_TABLE_NODES, i - node->parent, a->functions[node->func]);
    }
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        if (a->p->columns[m].data)
            memcpy(fm_recorder_stretch(r, (enum fm_metric)m) + place, a->p->columns[m].data + begin,
                   (end - begin) * sizeof(int64_t));
}

static void append_nodes(struct append *a)
{
    uint32_t count = (uint32_t)a->p->nodes.len;
    for (uint32_t begin = 0, end; begin < count && !a->r->failed; begin = end) {
        end = count - begin < FM_ROWS_MAX ? count : begin + FM_ROWS_MAX;
        append_stretch(a, begin, end);
    }
    append_functions(a, (uint32_t)a->p->functions.len);
    append_threads(a, (uint32_t)a->p->threads.len);
}

/* A table that came without a tree is added to that of other profiles; it is small, and written when
 * the recording ends. */
static void append_flat(struct append *a)
{
    struct fm_profile *known = a->r->known;
    if (!a->p->flat)
        return;
    struct fm_flat *moved = fm_calloc(1, sizeof *moved);
    fm_flat_add(moved, a->p->flat);
    for (size_t i = 0; i < moved->rows.len; i++)
        moved->rows.data[i].func = a->functions[moved->rows.data[i].func];
    if (!known->flat)
        known->flat = fm_calloc(1, sizeof *known->flat);
    fm_flat_add(known->flat, moved);
    fm_flat_free(moved);
}

void fm_recorder_sums(struct fm_recorder *r)
{
    const struct fm_flat *flat = r->known->flat;
    uint64_t unit;
    if (r->known->lines.unit_s > 0) {
        memcpy(&unit, &r->known->lines.unit_s, sizeof unit);
        FM_RECORDER_ROW(r, FM_TABLE_LINE_UNIT, unit);
    }
    for (size_t i = 0; flat && i < flat->rows.len; i++) {
        const struct fm_flat_row *row = &flat->rows.data[i];
        FM_RECORDER_ROW(r, FM_TABLE_FLAT_ROWS, row->func, fm_zigzag(row->calls),
                        fm_zigzag(row->primitive), fm_zigzag(row->resumes), fm_zigzag(row->self_ns),
                        fm_zigzag(row->total_ns), fm_zigzag(row->min_ns), fm_zigzag(row->max_ns),
                        fm_zigzag(row->suspended_ns), flat->sampled);
    }
    for (size_t i = 0; flat && i < flat->edges.len; i++) {
        const struct fm_flat_edge *edge = &flat->edges.data[i];
        FM_RECORDER_ROW(r, FM_TABLE_FLAT_EDGES, flat->rows.data[edge->caller].func,
                        flat->rows.data[edge->callee].func, fm_zigzag(edge->calls),
                        fm_zigzag(edge->primitive), fm_zigzag(edge->self_ns),
                        fm_zigzag(edge->total_ns));
    }
}

/* ---- lines ---- */

static void append_visits(struct append *a, uint64_t number, uint32_t histogram)
{
    const uint32_t *buckets = a->p->lines.histograms.data[histogram].buckets;
    for (unsigned b = 0; b < FM_LINE_BUCKETS; b++)
        if (buckets[b])
            FM_RECORDER_ROW(a->r, FM_TABLE_LINE_VISITS, number, b, buckets[b]);
}

static void append_line_states(struct append *a, uint64_t number, const struct fm_line *row)
{
    uint64_t cells[2 + FM_STATE_COUNT] = { number, fm_zigzag(row->samples) };
    bool any = row->samples != 0;
    for (int state = 0; state < FM_STATE_COUNT; state++) {
        cells[2 + state] = fm_zigzag(row->state_ns[state]);
        any = any || row->state_ns[state];
    }
    if (any)
        fm_recorder_row(a->r, FM_TABLE_LINE_STATES, cells, FM_COUNT(cells));
}

static void append_lines(struct append *a)
{
    const struct fm_lines *lines = &a->p->lines;
    double *known_unit_s = &a->r->known->lines.unit_s;
    for (size_t i = 0; i < lines->marked.len; i++)
        FM_RECORDER_ROW(a->r, FM_TABLE_LINE_MARKS, a->functions[lines->marked.data[i]]);
    /* Of two timers the coarser one describes the sum, as line_profiler has it. */
    if (lines->unit_s > *known_unit_s)
        *known_unit_s = lines->unit_s;
    for (size_t i = 0; i < lines->rows.len && !a->r->failed; i++) {
        const struct fm_line *row = &lines->rows.data[i];
        uint64_t number = FM_RECORDER_ROW(
            a->r, FM_TABLE_LINES, process_number(a, row->process), a->functions[row->func],
            row->line, fm_zigzag(row->hits), fm_zigzag(row->total_ns), fm_zigzag(row->self_ns),
            fm_zigzag(row->min_ns), fm_zigzag(row->max_ns), fm_zigzag(row->suspended_ns));
        if (row->histogram != FM_NONE)
            append_visits(a, number, row->histogram);
        append_line_states(a, number, row);
        if (row->memory)
            FM_RECORDER_ROW(a->r, FM_TABLE_LINE_MEMORY, number, fm_zigzag(row->allocated),
                            fm_zigzag(row->freed), fm_zigzag(row->heap_after),
                            fm_zigzag(row->heap_most), fm_zigzag(row->above_most));
    }
}

/* ---- the rest ---- */

static void append_samples(struct append *a)
{
    const struct fm_samples *samples = &a->p->samples;
    for (size_t i = 0; i < samples->spots.len; i++) {
        const struct fm_spot *spot = &samples->spots.data[i];
        FM_RECORDER_ROW(a->r, FM_TABLE_SPOTS, process_number(a, spot->process),
                        a->functions[spot->func], spot->line, spot->end_line, spot->column,
                        spot->end_column, fm_zigzag(spot->samples), fm_zigzag(spot->ns));
    }
    for (size_t i = 0; i < samples->waits.len; i++) {
        const struct fm_wait *wait = &samples->waits.data[i];
        FM_RECORDER_ROW(a->r, FM_TABLE_WAITS, process_number(a, wait->process),
                        a->functions[wait->func], wait->line, wait->state,
                        string_number(a, wait->detail), fm_zigzag(wait->samples),
                        fm_zigzag(wait->ns));
    }
}

static uint64_t known_bytes(int64_t bytes)
{
    return bytes < 0 ? 0 : (uint64_t)bytes + 1;
}

/* Each block stands for itself: its first row has nothing before it. */
static struct fm_row_before *row_before(struct append *a, enum fm_recorder_table table,
                                        struct fm_row_before *before)
{
    const struct fm_rows *rows = &a->r->tables[table];
    if (fm_rows_full(rows) || !rows->count)
        *before = (struct fm_row_before){ 0 };
    return before;
}

static void append_memory(struct append *a)
{
    const struct fm_memory *memory = &a->p->memory;
    for (size_t i = 0; i < memory->counts.len; i++) {
        const struct fm_heap_count *count = &memory->counts.data[i];
        FM_RECORDER_ROW(a->r, FM_TABLE_HEAP_COUNTS, process_number(a, count->process), count->table,
                        count->bucket, fm_zigzag(count->blocks), fm_zigzag(count->bytes));
    }
    for (size_t i = 0; i < memory->points.len; i++) {
        const struct fm_memory_point *point = &memory->points.data[i];
        struct fm_row_before *before = row_before(a, FM_TABLE_MEMORY_POINTS, &a->r->point);
        FM_RECORDER_ROW(a->r, FM_TABLE_MEMORY_POINTS, process_number(a, point->process),
                        fm_zigzag((int64_t)(point->at_ns - before->time)), known_bytes(point->heap),
                        known_bytes(point->rss), known_bytes(point->pss), known_bytes(point->swap),
                        known_bytes(point->limit), known_bytes(point->group));
        before->time = point->at_ns;
    }
    for (size_t i = 0; i < memory->marks.len; i++) {
        const struct fm_memory_mark *mark = &memory->marks.data[i];
        FM_RECORDER_ROW(a->r, FM_TABLE_MEMORY_MARKS, process_number(a, mark->process),
                        string_number(a, mark->name),
                        mark->level == FM_MARK_NO_LEVEL ? 0 : (uint64_t)mark->level + 1,
                        mark->begin_ns, mark->end_ns, known_bytes(mark->begin_bytes),
                        known_bytes(mark->end_bytes), mark->thread);
    }
}

static void append_regions(struct append *a)
{
    uint64_t first = fm_recorder_next(a->r, FM_TABLE_REGIONS);
    for (size_t i = 0; i < a->p->regions.rows.len; i++) {
        const struct fm_region_row *row = &a->p->regions.rows.data[i];
        FM_RECORDER_ROW(a->r, FM_TABLE_REGIONS, process_number(a, row->process),
                        row->around == FM_NONE ? 0 : first + row->around + 1,
                        string_number(a, row->name), fm_zigzag(row->entered), fm_zigzag(row->open),
                        fm_zigzag(row->ns), fm_zigzag(row->suspended_ns), fm_zigzag(row->min_ns),
                        fm_zigzag(row->max_ns), row->memory, fm_zigzag(row->allocated),
                        fm_zigzag(row->freed), fm_zigzag(row->above_most), fm_zigzag(row->cpu_ns));
    }
}

/* ---- memory over time ---- */

static void append_change(struct append *a, uint64_t history, uint64_t at_ns, uint64_t context,
                          const struct fm_history_change *change)
{
    struct fm_row_before *before = row_before(a, FM_TABLE_HISTORY_CHANGES, &a->r->change);
    FM_RECORDER_ROW(a->r, FM_TABLE_HISTORY_CHANGES, history,
                    fm_zigzag((int64_t)(at_ns / 1000 - before->time)),
                    fm_zigzag((int64_t)(context - before->context)), fm_zigzag(change->bytes),
                    fm_zigzag(change->blocks));
    *before = (struct fm_row_before){ at_ns / 1000, context };
}

/* A slice without changes is a row that changes nothing. Returns how many rows there are. */
static uint64_t append_changes(struct append *a, const struct fm_history *h, uint64_t number,
                               uint64_t first_context, bool only_count)
{
    struct fm_slices_walk w = fm_slices_walk(h->slices.bytes.data, h->slices.bytes.len);
    static const struct fm_history_change none;
    uint64_t at_ns, rows = 0;
    while (fm_slices_next(&w, &at_ns) && !a->r->failed) {
        struct fm_history_change change;
        uint64_t before = rows;
        for (; fm_slices_next_change(&w, &change); rows++)
            if (!only_count)
                append_change(a, number, at_ns, first_context + change.context, &change);
        if (rows > before)
            continue;
        rows++;
        if (!only_count)
            append_change(a, number, at_ns, first_context, &none);
    }
    return rows;
}

static void append_histories(struct append *a)
{
    for (size_t i = 0; i < a->p->memory.histories.len && !a->r->failed; i++) {
        const struct fm_history *h = &a->p->memory.histories.data[i];
        uint64_t rows = append_changes(a, h, 0, 0, true);
        uint64_t number = FM_RECORDER_ROW(a->r, FM_TABLE_HISTORIES, process_number(a, h->process),
                                          h->begin_ns, h->end_ns, rows, h->exact);
        uint64_t first = fm_recorder_next(a->r, FM_TABLE_HISTORY_CONTEXTS);
        for (size_t k = 0; k < h->contexts.len; k++)
            FM_RECORDER_ROW(a->r, FM_TABLE_HISTORY_CONTEXTS, number,
                            (uint64_t)a->first_node + h->contexts.data[k]);
        append_changes(a, h, number, first, false);
    }
}

/* What resident memory was made of. */
static void append_residents(struct append *a)
{
    const struct fm_memory *memory = &a->p->memory;
    for (size_t i = 0; i < memory->residents.len; i++) {
        const struct fm_resident *resident = &memory->residents.data[i];
        uint64_t cells[5 + FM_RESIDENT_REST] = { process_number(a, resident->process),
                                                 resident->when, resident->at_ns,
                                                 fm_zigzag(resident->rss),
                                                 fm_zigzag(resident->untouched) };
        for (int part = 0; part < FM_RESIDENT_REST; part++)
            cells[5 + part] = fm_zigzag(resident->parts[part]);
        fm_recorder_row(a->r, FM_TABLE_RESIDENTS, cells, FM_COUNT(cells));
    }
    for (size_t i = 0; i < memory->reserves.len; i++) {
        const struct fm_reserve *reserve = &memory->reserves.data[i];
        FM_RECORDER_ROW(a->r, FM_TABLE_RESERVES, process_number(a, reserve->process), reserve->when,
                        string_number(a, reserve->library), fm_zigzag(reserve->reserved),
                        fm_zigzag(reserve->resident));
    }
}

static uint32_t number_string(void *a, uint32_t string)
{
    return string_number(a, string);
}

static void append_traces(struct append *a)
{
    struct fm_append_numbers numbers = { a->first_process, a->first_thread, a->functions,
                                         number_string, a };
    fm_recorder_traces(a->r, a->p, &numbers);
}

/* The text of a file that two recordings share is kept once; two states of it are kept both. */
static void append_sources(struct append *a)
{
    for (size_t i = 0; i < a->p->sources.len && !a->r->failed; i++) {
        const struct fm_source *source = &a->p->sources.data[i];
        uint32_t file = string_number(a, source->file);
        uint32_t text = fm_recorder_source_text(a->r, fm_profile_text(a->p, source->text),
                                                fm_strings_len(a->p->strings, source->text));
        bool is_new;
        fm_map_at(&a->r->sources, fm_map_pair(file, text), 0, &is_new);
        if (is_new)
            FM_RECORDER_ROW(a->r, FM_TABLE_SOURCES, file, source->state, 0, source->mtime_ns,
                            source->size_bytes, text);
    }
}

void fm_recorder_profile(struct fm_recorder *r, const struct fm_profile *p)
{
    struct append a = { .r = r, .p = p };
    uint32_t strings = fm_strings_count(p->strings);
    a.strings = fm_malloc(strings * sizeof *a.strings);
    memset(a.strings, 0xff, strings * sizeof *a.strings);
    a.functions = fm_malloc((p->functions.len + 1) * sizeof *a.functions);
    a.first_process = (uint32_t)fm_recorder_next(r, FM_TABLE_PROCESSES);
    a.first_thread = (uint32_t)fm_recorder_next(r, FM_TABLE_THREADS);
    a.first_node = (uint32_t)fm_recorder_next(r, FM_TABLE_NODES);
    append_facts(&a);
    append_processes(&a);
    append_notes(&a);
    append_nodes(&a);
    append_flat(&a);
    append_lines(&a);
    append_samples(&a);
    append_memory(&a);
    append_regions(&a);
    append_histories(&a);
    append_residents(&a);
    append_traces(&a);
    fm_recorder_order(r, &p->order,
                      &(struct fm_order_numbers){ a.first_process, a.first_thread, a.first_node });
    append_sources(&a);
    free(a.strings);
    free(a.functions);
}

/* ---- a file in one go ---- */

static int save(const struct fm_profile *p, int fd, bool compress, struct fm_error *err)
{
    struct fm_recorder *r = fm_recorder_new(fd, compress);
    fm_recorder_profile(r, p);
    int status = fm_recorder_end(r, err);
    fm_recorder_free(r);
    return status;
}

int fm_file_save(const struct fm_profile *p, int fd, struct fm_error *err)
{
    return save(p, fd, true, err);
}

int fm_file_save_plain(const struct fm_profile *p, int fd, struct fm_error *err)
{
    return save(p, fd, false, err);
}
