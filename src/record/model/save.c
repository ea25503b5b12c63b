/*
 * Writes a profile as a .fathom file; see file.h and, for every byte, docs/format.md.
 *
 * Rows gather in one buffer per column and become a block when there are enough of them. Strings
 * get their numbers in order of first use and are written before the first block that uses them; so
 * do functions and threads before the first nodes that use them. That keeps every prefix of the
 * file meaningful, and strings that nothing uses are left out.
 */
#include <errno.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/varint.h"
#include "record/capture/compress.h"
#include "record/capture/format.h"
#include "record/model/file.h"
#include "record/model/flat.h"

#define BLOCK_BYTES      (1u << 20) /* a block is closed when it holds this much */
#define BLOCK_ROWS       32768u     /* … or this many rows */
#define MAX_COLUMNS      24
#define STRING_MAX_BYTES (32u << 20) /* must fit into a block; longer texts are cut */

struct saver {
    const struct fm_profile *p;
    struct fm_writer writer;
    struct fm_compressor *compressor; /* NULL: blocks as they are */
    int rc;                           /* 0, or the negative errno of the first failure */
    struct fm_buffer columns[MAX_COLUMNS];
    uint32_t rows, width; /* of the table being gathered */
    uint64_t first;
    struct fm_buffer block; /* a payload being put together */
    uint32_t *string_ids;   /* by string: its number in the file, 0 if it has none yet */
    uint32_t next_string, strings_first;
    struct fm_buffer strings;    /* not written yet */
    uint32_t functions, threads; /* written so far */
    uint64_t cut_strings;
};

static void write_block(struct saver *s, uint16_t type)
{
    if (!s->rc && s->compressor)
        s->rc = fm_compressor_block(s->compressor, &s->writer, type, s->block.data, s->block.len);
    else if (!s->rc)
        s->rc = fm_writer_block(&s->writer, type, s->block.data, s->block.len);
    fm_buffer_clear(&s->block);
}

static void flush_strings(struct saver *s)
{
    if (s->strings_first == s->next_string)
        return;
    fm_buffer_add_varint(&s->block, s->strings_first);
    fm_buffer_add_varint(&s->block, s->next_string - s->strings_first);
    fm_buffer_add(&s->block, s->strings.data, s->strings.len);
    write_block(s, FM_BLOCK_STRINGS);
    fm_buffer_clear(&s->strings);
    s->strings_first = s->next_string;
}

/* The number of a string in the file. */
static uint32_t string_number(struct saver *s, uint32_t string)
{
    if (!string || s->string_ids[string])
        return string ? s->string_ids[string] : 0;
    size_t len = fm_strings_len(s->p->strings, string);
    if (len > STRING_MAX_BYTES) {
        len = STRING_MAX_BYTES;
        s->cut_strings++;
    }
    if (s->strings.len && s->strings.len + len > BLOCK_BYTES)
        flush_strings(s);
    fm_buffer_add_varint(&s->strings, len);
    fm_buffer_add(&s->strings, fm_strings_get(s->p->strings, string), len);
    return s->string_ids[string] = s->next_string++;
}

/* ---- tables ---- */

static void table_begin(struct saver *s, uint64_t first)
{
    s->first = first;
    s->rows = s->width = 0;
}

static void table_flush(struct saver *s, uint16_t type)
{
    if (!s->rows)
        return;
    flush_strings(s);
    fm_buffer_add_varint(&s->block, s->first);
    fm_buffer_add_varint(&s->block, s->rows);
    fm_buffer_add_varint(&s->block, s->width);
    for (uint32_t i = 0; i < s->width; i++) {
        fm_buffer_add(&s->block, s->columns[i].data, s->columns[i].len);
        fm_buffer_clear(&s->columns[i]);
    }
    write_block(s, type);
    table_begin(s, s->first + s->rows);
}

/* Append a row; a full table is written and goes on as the next block. */
static void table_row(struct saver *s, uint16_t type, const uint64_t *cells, uint32_t width)
{
    s->width = width;
    s->rows++;
    for (uint32_t i = 0; i < width; i++)
        fm_buffer_add_varint(&s->columns[i], cells[i]);
    if (s->rows == BLOCK_ROWS)
        table_flush(s, type);
}

#define ROW(s, type, ...)                                                                          \
    do {                                                                                           \
        const uint64_t fm_cells_[] = { __VA_ARGS__ };                                              \
        _Static_assert(FM_COUNT(fm_cells_) <= MAX_COLUMNS, "room for every column");               \
        table_row(s, type, fm_cells_, FM_COUNT(fm_cells_));                                        \
    } while (0)

/* ---- what a profile consists of ---- */

static uint64_t process_number(uint32_t process)
{
    return process == FM_NONE ? 0 : (uint64_t)process + 1;
}

/* Strings that are not part of the profile (names of metrics) need no place in its string table. */
static uint32_t literal_number(struct saver *s, const char *text)
{
    fm_buffer_add_varint(&s->strings, strlen(text));
    fm_buffer_add_text(&s->strings, text);
    return s->next_string++;
}

/* Up to the last one that is used, but no fewer than version 1.0 had. */
static int metrics_to_save(const struct fm_profile *p)
{
    int count = FM_METRIC_COUNT;
    while (count > FM_METRIC_SAMPLES && !p->columns[count - 1].data)
        count--;
    return count;
}

static void save_metrics(struct saver *s)
{
    int count = metrics_to_save(s->p);
    table_begin(s, 0);
    for (int m = 0; m < count; m++) {
        uint32_t name = literal_number(s, fm_metric_name((enum fm_metric)m));
        uint32_t unit = literal_number(s, fm_metric_unit((enum fm_metric)m));
        ROW(s, FM_BLOCK_METRICS, name, unit, (uint64_t)fm_metric_kind((enum fm_metric)m));
    }
    table_flush(s, FM_BLOCK_METRICS);
}

static void save_facts(struct saver *s)
{
    table_begin(s, 0);
    for (size_t i = 0; i < s->p->facts.len; i++) {
        const struct fm_fact *fact = &s->p->facts.data[i];
        ROW(s, FM_BLOCK_RUN, string_number(s, fact->key), string_number(s, fact->value));
    }
    table_flush(s, FM_BLOCK_RUN);
}

static bool any_is_sampled(const struct fm_profile *p)
{
    for (size_t i = 0; i < p->processes.len; i++)
        if (p->processes.data[i].sampled)
            return true;
    return false;
}

static void save_processes(struct saver *s)
{
    uint32_t width = any_is_sampled(s->p) ? FM_PROCESS_COLUMNS : FM_PROCESS_SAMPLE_MODE;
    table_begin(s, 0);
    for (size_t i = 0; i < s->p->processes.len; i++) {
        const struct fm_process *process = &s->p->processes.data[i];
        uint64_t cells[FM_PROCESS_COLUMNS] = {
            [FM_PROCESS_PID] = process->pid,
            [FM_PROCESS_PARENT_PID] = process->parent_pid,
            [FM_PROCESS_EXE] = string_number(s, process->exe),
            [FM_PROCESS_COMMAND] = string_number(s, process->command),
            [FM_PROCESS_CWD] = string_number(s, process->cwd),
            [FM_PROCESS_VERSION] = string_number(s, process->version),
            [FM_PROCESS_START_REAL_NS] = process->start_real_ns,
            [FM_PROCESS_START_NS] = process->start_ns,
            [FM_PROCESS_END_NS] = process->end_ns,
            [FM_PROCESS_EXIT_STATUS] = fm_zigzag(process->exit_status),
            [FM_PROCESS_FLAGS] = (process->profiled ? FM_PROCESS_PROFILED : 0u) |
                                 (process->forked ? FM_PROCESS_FORKED : 0u) |
                                 (process->c_calls ? FM_PROCESS_C_CALLS : 0u) |
                                 (process->calls ? 0u : FM_PROCESS_FEW_CALLS) |
                                 (process->lines ? FM_PROCESS_LINES : 0u) |
                                 (process->sampled ? FM_PROCESS_SAMPLED : 0u),
            [FM_PROCESS_COST_CALL_PS] = process->cost_call_ps,
            [FM_PROCESS_COST_C_CALL_PS] = process->cost_c_call_ps,
            [FM_PROCESS_COST_RESUME_PS] = process->cost_resume_ps,
            [FM_PROCESS_OWN_NS] = process->own_ns,
            [FM_PROCESS_COST_LINE_PS] = process->cost_line_ps,
            [FM_PROCESS_SAMPLE_MODE] = process->sample_mode,
            [FM_PROCESS_SAMPLE_INTERVAL_NS] = process->sample_interval_ns,
            [FM_PROCESS_SAMPLE_ROUNDS] = process->sample_rounds,
            [FM_PROCESS_SAMPLES] = process->samples,
            [FM_PROCESS_SAMPLES_PARTIAL] = process->samples_partial,
            [FM_PROCESS_SAMPLES_LOST] = process->samples_lost,
            [FM_PROCESS_SAMPLER_CPU_NS] = process->sampler_cpu_ns,
        };
        _Static_assert(FM_PROCESS_COLUMNS <= MAX_COLUMNS, "room for every column");
        table_row(s, FM_BLOCK_PROCESSES, cells, width);
    }
    table_flush(s, FM_BLOCK_PROCESSES);
}

static void save_notes(struct saver *s)
{
    table_begin(s, 0);
    for (size_t i = 0; i < s->p->notes.len; i++) {
        const struct fm_note *note = &s->p->notes.data[i];
        ROW(s, FM_BLOCK_NOTES, process_number(note->process), string_number(s, note->kind),
            note->count, string_number(s, note->text));
    }
    table_flush(s, FM_BLOCK_NOTES);
}

/* Functions up to, not including, `end`. */
static void save_functions(struct saver *s, uint32_t end)
{
    table_begin(s, s->functions);
    for (; s->functions < end; s->functions++) {
        const struct fm_function *f = &s->p->functions.data[s->functions];
        ROW(s, FM_BLOCK_FUNCTIONS, f->kind, f->flags, f->line, string_number(s, f->name),
            string_number(s, f->qualname), string_number(s, f->file), f->twin);
    }
    table_flush(s, FM_BLOCK_FUNCTIONS);
}

static void save_threads(struct saver *s, uint32_t end)
{
    table_begin(s, s->threads);
    for (; s->threads < end; s->threads++) {
        const struct fm_thread *t = &s->p->threads.data[s->threads];
        ROW(s, FM_BLOCK_THREADS, t->process, t->tid, string_number(s, t->name), t->start_ns,
            t->end_ns, t->cpu_ns);
    }
    table_flush(s, FM_BLOCK_THREADS);
}

/* ---- nodes ---- */

static bool column_used(const struct saver *s, int metric, uint32_t begin, uint32_t end)
{
    const int64_t *data = s->p->columns[metric].data;
    for (uint32_t i = begin; data && i < end; i++)
        if (data[i])
            return true;
    return false;
}

/* The numbers of a stretch of nodes, all metrics in one block: there, or not there, together. */
static void save_values(struct saver *s, uint32_t begin, uint32_t end)
{
    uint32_t used[FM_METRIC_COUNT], count = 0;
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        if (column_used(s, m, begin, end))
            used[count++] = (uint32_t)m;
    if (!count)
        return;
    fm_buffer_add_varint(&s->block, begin);
    fm_buffer_add_varint(&s->block, end - begin);
    fm_buffer_add_varint(&s->block, count);
    for (uint32_t i = 0; i < count; i++)
        fm_buffer_add_varint(&s->block, used[i]);
    for (uint32_t i = 0; i < count; i++) {
        const int64_t *data = s->p->columns[used[i]].data;
        for (uint32_t node = begin; node < end; node++)
            fm_buffer_add_varint(&s->block, fm_zigzag(data[node]));
    }
    write_block(s, FM_BLOCK_VALUES);
}

static void save_node_stretch(struct saver *s, uint32_t begin, uint32_t end)
{
    uint32_t functions = s->functions, threads = s->threads;
    for (uint32_t i = begin; i < end; i++) {
        const struct fm_node *node = &s->p->nodes.data[i];
        if (node->func >= functions)
            functions = node->func + 1;
        if (node->thread >= threads)
            threads = node->thread + 1;
    }
    save_functions(s, functions);
    save_threads(s, threads);
    table_begin(s, begin);
    for (uint32_t i = begin; i < end; i++) {
        const struct fm_node *node = &s->p->nodes.data[i];
        bool root = node->parent == FM_NONE;
        ROW(s, FM_BLOCK_NODES, root ? 0 : i - node->parent, root ? node->thread : node->func);
    }
    table_flush(s, FM_BLOCK_NODES);
    save_values(s, begin, end);
}

static void save_nodes(struct saver *s)
{
    uint32_t count = (uint32_t)s->p->nodes.len;
    for (uint32_t begin = 0; begin < count && !s->rc; begin += BLOCK_ROWS)
        save_node_stretch(s, begin, count - begin < BLOCK_ROWS ? count : begin + BLOCK_ROWS);
    save_functions(s, (uint32_t)s->p->functions.len);
    save_threads(s, (uint32_t)s->p->threads.len);
}

/* ---- the rest ---- */

static void save_flat(struct saver *s)
{
    const struct fm_flat *flat = s->p->flat;
    if (!flat)
        return;
    table_begin(s, 0);
    for (size_t i = 0; i < flat->rows.len; i++) {
        const struct fm_flat_row *row = &flat->rows.data[i];
        ROW(s, FM_BLOCK_FLAT_ROWS, row->func, fm_zigzag(row->calls), fm_zigzag(row->primitive),
            fm_zigzag(row->resumes), fm_zigzag(row->self_ns), fm_zigzag(row->total_ns),
            fm_zigzag(row->min_ns), fm_zigzag(row->max_ns), fm_zigzag(row->suspended_ns),
            flat->sampled);
    }
    table_flush(s, FM_BLOCK_FLAT_ROWS);
    table_begin(s, 0);
    for (size_t i = 0; i < flat->edges.len; i++) {
        const struct fm_flat_edge *edge = &flat->edges.data[i];
        ROW(s, FM_BLOCK_FLAT_EDGES, flat->rows.data[edge->caller].func,
            flat->rows.data[edge->callee].func, fm_zigzag(edge->calls), fm_zigzag(edge->primitive),
            fm_zigzag(edge->self_ns), fm_zigzag(edge->total_ns));
    }
    table_flush(s, FM_BLOCK_FLAT_EDGES);
}

static void save_visits(struct saver *s, size_t begin, size_t end)
{
    const struct fm_lines *lines = &s->p->lines;
    table_begin(s, 0);
    for (size_t i = begin; i < end; i++) {
        uint32_t histogram = lines->rows.data[i].histogram;
        for (unsigned b = 0; histogram != FM_NONE && b < FM_LINE_BUCKETS; b++)
            if (lines->histograms.data[histogram].buckets[b])
                ROW(s, FM_BLOCK_LINE_VISITS, i, b, lines->histograms.data[histogram].buckets[b]);
    }
    table_flush(s, FM_BLOCK_LINE_VISITS);
}

static bool line_is_sampled(const struct fm_line *row)
{
    bool any = row->samples != 0;
    for (int s = 0; s < FM_STATE_COUNT; s++)
        any = any || row->state_ns[s];
    return any;
}

static void save_line_states(struct saver *s, size_t begin, size_t end)
{
    _Static_assert(2 + FM_STATE_COUNT <= MAX_COLUMNS, "room for every column");
    table_begin(s, 0);
    for (size_t i = begin; i < end; i++) {
        const struct fm_line *row = &s->p->lines.rows.data[i];
        uint64_t cells[2 + FM_STATE_COUNT] = { i, fm_zigzag(row->samples) };
        for (int state = 0; state < FM_STATE_COUNT; state++)
            cells[2 + state] = fm_zigzag(row->state_ns[state]);
        if (line_is_sampled(row))
            table_row(s, FM_BLOCK_LINE_STATES, cells, FM_COUNT(cells));
    }
    table_flush(s, FM_BLOCK_LINE_STATES);
}

static void save_samples(struct saver *s)
{
    const struct fm_samples *samples = &s->p->samples;
    table_begin(s, 0);
    for (size_t i = 0; i < samples->spots.len; i++) {
        const struct fm_spot *spot = &samples->spots.data[i];
        ROW(s, FM_BLOCK_SPOTS, process_number(spot->process), spot->func, spot->line,
            spot->end_line, spot->column, spot->end_column, fm_zigzag(spot->samples),
            fm_zigzag(spot->ns));
    }
    table_flush(s, FM_BLOCK_SPOTS);
    table_begin(s, 0);
    for (size_t i = 0; i < samples->waits.len; i++) {
        const struct fm_wait *wait = &samples->waits.data[i];
        ROW(s, FM_BLOCK_WAITS, process_number(wait->process), wait->func, wait->line, wait->state,
            string_number(s, wait->detail), fm_zigzag(wait->samples), fm_zigzag(wait->ns));
    }
    table_flush(s, FM_BLOCK_WAITS);
}

/* What belongs to a stretch of lines follows it directly, so that a cut-off file has both. */
static void save_line_stretch(struct saver *s, size_t begin, size_t end)
{
    table_begin(s, begin);
    for (size_t i = begin; i < end; i++) {
        const struct fm_line *row = &s->p->lines.rows.data[i];
        ROW(s, FM_BLOCK_LINES, process_number(row->process), row->func, row->line,
            fm_zigzag(row->hits), fm_zigzag(row->total_ns), fm_zigzag(row->self_ns),
            fm_zigzag(row->min_ns), fm_zigzag(row->max_ns), fm_zigzag(row->suspended_ns));
    }
    table_flush(s, FM_BLOCK_LINES);
    save_visits(s, begin, end);
    save_line_states(s, begin, end);
}

static void save_lines(struct saver *s)
{
    const struct fm_lines *lines = &s->p->lines;
    uint64_t unit;
    table_begin(s, 0);
    for (size_t i = 0; i < lines->marked.len; i++)
        ROW(s, FM_BLOCK_LINE_MARKS, lines->marked.data[i]);
    table_flush(s, FM_BLOCK_LINE_MARKS);
    if (lines->unit_s > 0) {
        memcpy(&unit, &lines->unit_s, sizeof unit);
        table_begin(s, 0);
        ROW(s, FM_BLOCK_LINE_UNIT, unit);
        table_flush(s, FM_BLOCK_LINE_UNIT);
    }
    for (size_t begin = 0; begin < lines->rows.len && !s->rc; begin += BLOCK_ROWS)
        save_line_stretch(
            s, begin, lines->rows.len - begin < BLOCK_ROWS ? lines->rows.len : begin + BLOCK_ROWS);
}

static void save_sources(struct saver *s)
{
    table_begin(s, 0);
    for (size_t i = 0; i < s->p->sources.len; i++) {
        const struct fm_source *source = &s->p->sources.data[i];
        ROW(s, FM_BLOCK_SOURCES, string_number(s, source->file), source->state,
            string_number(s, source->text), source->mtime_ns, source->size_bytes);
        /* Texts are written as they come; the rows that name them should not wait for the last. */
        if (s->rows == 64)
            table_flush(s, FM_BLOCK_SOURCES);
    }
    table_flush(s, FM_BLOCK_SOURCES);
    if (s->cut_strings) {
        uint32_t kind = literal_number(s, "lost");
        uint32_t text = literal_number(s, "texts were too long for the recording and are cut");
        ROW(s, FM_BLOCK_NOTES, 0, kind, s->cut_strings, text);
        table_flush(s, FM_BLOCK_NOTES);
    }
}

static int save(const struct fm_profile *p, int fd, struct fm_compressor *compressor,
                struct fm_error *err)
{
    struct saver s = { .p = p, .compressor = compressor, .next_string = 1, .strings_first = 1 };
    fm_writer_init(&s.writer, fd);
    s.string_ids = fm_calloc(fm_strings_count(p->strings), sizeof *s.string_ids);
    s.rc = fm_writer_start(&s.writer);
    save_metrics(&s);
    save_facts(&s);
    save_processes(&s);
    save_notes(&s);
    save_nodes(&s);
    save_flat(&s);
    save_lines(&s);
    save_samples(&s);
    save_sources(&s);
    if (!s.rc)
        s.rc = fm_writer_end(&s.writer);
    for (size_t i = 0; i < MAX_COLUMNS; i++)
        fm_buffer_release(&s.columns[i]);
    fm_buffer_release(&s.block);
    fm_buffer_release(&s.strings);
    free(s.string_ids);
    if (s.rc)
        return fm_error_set_errno(err, FM_CANNOT_WRITE, -s.rc, "writing the recording");
    return FM_OK;
}

int fm_file_save(const struct fm_profile *p, int fd, struct fm_error *err)
{
    struct fm_compressor *compressor = fm_compressor_new();
    int status = save(p, fd, compressor, err);
    fm_compressor_free(compressor);
    return status;
}

int fm_file_save_plain(const struct fm_profile *p, int fd, struct fm_error *err)
{
    return save(p, fd, NULL, err);
}
