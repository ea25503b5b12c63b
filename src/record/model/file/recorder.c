/* Appends to a .fathom file; see recorder.h, recording.h and, for every byte, docs/format.md. */
#include "record/model/file/recorder.h"

#include <string.h>

#include "base/memory.h"
#include "base/varint.h"
#include "record/model/file/process_columns.h"
#include "record/model/file/recording.h"
#include "record/model/tree.h"

#define BLOCK_BYTES      (1u << 20)  /* strings are written when there are so many bytes */
#define STRING_MAX_BYTES (32u << 20) /* must fit into a block; longer texts are cut */
#define LATE_MAX         (4 * FM_ROWS_MAX)
#define GAP_MAX          16u /* nodes without a late value that one block may contain in a row */

static const uint16_t block_types[FM_TABLES] = {
#define X(name) FM_BLOCK_##name,
    FM_RECORDER_TABLES(X)
#undef X
};

struct fm_recorder *fm_recorder_new(int fd, bool compress)
{
    struct fm_recorder *r = fm_calloc(1, sizeof *r);
    r->compressor = compress ? fm_compressor_new() : NULL;
    r->known = fm_profile_new();
    r->names.known = r->known->strings;
    r->texts.known = fm_strings_new();
    fm_writer_init(&r->writer, fd);
    r->failed = fm_writer_start(&r->writer);
    return r;
}

void fm_recorder_free(struct fm_recorder *r)
{
    if (!r)
        return;
    fm_compressor_free(r->compressor);
    fm_profile_free(r->known);
    fm_buffer_release(&r->block);
    fm_buffer_release(&r->names.bytes);
    fm_buffer_release(&r->texts.bytes);
    fm_strings_free(r->texts.known);
    for (int i = 0; i < FM_TABLES; i++)
        fm_rows_release(&r->tables[i]);
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        free(r->stretch[m]);
    fm_vec_release(&r->late);
    fm_map_release(&r->children);
    fm_map_release(&r->sources);
    free(r);
}

/* ---- blocks ---- */

/* Write the payload that was put together. */
static void write_block(struct fm_recorder *r, uint16_t type)
{
    if (!r->failed && r->compressor)
        r->failed =
            fm_compressor_block(r->compressor, &r->writer, type, r->block.data, r->block.len);
    else if (!r->failed)
        r->failed = fm_writer_block(&r->writer, type, r->block.data, r->block.len);
    fm_buffer_clear(&r->block);
}

static void write_strings(struct fm_recorder *r, struct fm_new_strings *strings, uint16_t type)
{
    if (!strings->count)
        return;
    fm_buffer_add_varint(&r->block, strings->first);
    fm_buffer_add_varint(&r->block, strings->count);
    fm_buffer_add(&r->block, strings->bytes.data, strings->bytes.len);
    write_block(r, type);
    fm_buffer_clear(&strings->bytes);
    strings->count = 0;
}

/* Columns of values of the nodes first … first + count − 1: one block, there or not there together. */
static void write_values(struct fm_recorder *r, uint64_t first, uint32_t count,
                         int64_t *const *columns)
{
    uint32_t used[FM_METRIC_COUNT], width = 0;
    for (uint32_t m = 0; m < FM_METRIC_COUNT; m++)
        for (uint32_t i = 0; columns[m] && i < count; i++)
            if (columns[m][i]) {
                used[width++] = m;
                break;
            }
    if (!width)
        return;
    fm_buffer_add_varint(&r->block, first);
    fm_buffer_add_varint(&r->block, count);
    fm_buffer_add_varint(&r->block, width);
    for (uint32_t i = 0; i < width; i++)
        fm_buffer_add_varint(&r->block, r->metric_numbers[used[i]] - 1);
    for (uint32_t i = 0; i < width; i++)
        for (uint32_t k = 0; k < count; k++)
            fm_buffer_add_varint(&r->block, fm_zigzag(columns[used[i]][k]));
    write_block(r, FM_BLOCK_VALUES);
}

static void forget_values(int64_t *const *columns, uint32_t count)
{
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        if (columns[m])
            memset(columns[m], 0, count * sizeof *columns[m]);
}

static int compare_late(const void *a, const void *b)
{
    const struct fm_late_value *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Values of nodes that were written before: a block per stretch of nodes that lie close together. */
static void write_late(struct fm_recorder *r)
{
    int64_t *columns[FM_METRIC_COUNT] = { 0 };
    if (!r->late.len)
        return;
    qsort(r->late.data, r->late.len, sizeof *r->late.data, compare_late);
    for (size_t i = 0, end; i < r->late.len; i = end) {
        uint32_t first = r->late.data[i].node, last = first;
        for (end = i; end < r->late.len && r->late.data[end].node - last <= GAP_MAX &&
                      r->late.data[end].node - first < FM_ROWS_MAX;
             end++) {
            const struct fm_late_value *late = &r->late.data[end];
            if (!columns[late->metric])
                columns[late->metric] = fm_calloc(FM_ROWS_MAX, sizeof(int64_t));
            int64_t *to = &columns[late->metric][late->node - first];
            *to = fm_metric_combine((enum fm_metric)late->metric, *to, late->value);
            last = late->node;
        }
        write_values(r, first, last - first + 1, columns);
        forget_values(columns, last - first + 1);
    }
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        free(columns[m]);
    r->late.len = 0;
}

void fm_recorder_write(struct fm_recorder *r)
{
    write_strings(r, &r->names, FM_BLOCK_STRINGS);
    for (int i = 0; i < FM_TABLES; i++) {
        struct fm_rows *rows = &r->tables[i];
        uint32_t count = rows->count;
        uint64_t first = rows->first;
        if (i == FM_TABLE_SOURCES)
            write_strings(r, &r->texts, FM_BLOCK_TEXTS);
        if (count) {
            fm_rows_take(rows, &r->block);
            write_block(r, block_types[i]);
        }
        if (i != FM_TABLE_NODES)
            continue;
        write_values(r, first, count, r->stretch);
        forget_values(r->stretch, count);
        write_late(r);
    }
}

uint64_t fm_recorder_row(struct fm_recorder *r, enum fm_recorder_table table, const uint64_t *cells,
                         uint32_t width)
{
    if (fm_rows_full(&r->tables[table]))
        fm_recorder_write(r);
    uint64_t number = fm_recorder_next(r, table);
    fm_rows_add(&r->tables[table], cells, width);
    return number;
}

/* ---- ending ---- */

bool fm_recorder_failed(const struct fm_recorder *r)
{
    return r->failed != 0;
}

static int tell(const struct fm_recorder *r, struct fm_error *err)
{
    return r->failed ? fm_error_set_errno(err, FM_CANNOT_WRITE, -r->failed, "writing the recording")
                     : FM_OK;
}

int fm_recorder_flush(struct fm_recorder *r, struct fm_error *err)
{
    fm_recorder_write(r);
    return tell(r, err);
}

int fm_recorder_end(struct fm_recorder *r, struct fm_error *err)
{
    if (r->cut_strings)
        FM_RECORDER_ROW(r, FM_TABLE_NOTES, 0, fm_recorder_text(r, "lost"), r->cut_strings,
                        fm_recorder_text(r, "texts were too long for the recording and are cut"));
    fm_recorder_sums(r);
    fm_recorder_write(r);
    if (!r->failed)
        r->failed = fm_writer_end(&r->writer);
    return tell(r, err);
}

/* ---- strings ---- */

/* Is there room among the strings that wait? */
static bool fits(const struct fm_new_strings *strings, size_t len)
{
    return !strings->count || strings->bytes.len + len <= BLOCK_BYTES;
}

/* The string's number, and whether it is new and has to be written. */
static uint32_t number_of(struct fm_recorder *r, struct fm_new_strings *strings, const void *bytes,
                          size_t *len, bool *is_new)
{
    if (*len > STRING_MAX_BYTES) {
        *len = STRING_MAX_BYTES;
        r->cut_strings++;
    }
    uint32_t before = fm_strings_count(strings->known);
    uint32_t number = fm_strings_add(strings->known, bytes, *len);
    *is_new = number == before;
    return number;
}

static void add_string(struct fm_new_strings *strings, uint32_t number, const void *bytes,
                       size_t len)
{
    if (!strings->count++)
        strings->first = number;
    fm_buffer_add_varint(&strings->bytes, len);
    fm_buffer_add(&strings->bytes, bytes, len);
}

uint32_t fm_recorder_string(struct fm_recorder *r, const void *bytes, size_t len)
{
    bool is_new;
    uint32_t number = number_of(r, &r->names, bytes, &len, &is_new);
    if (is_new && !fits(&r->names, len))
        write_strings(r, &r->names, FM_BLOCK_STRINGS);
    if (is_new)
        add_string(&r->names, number, bytes, len);
    return number;
}

uint32_t fm_recorder_text(struct fm_recorder *r, const char *text)
{
    return fm_recorder_string(r, text, strlen(text));
}

uint32_t fm_recorder_source_text(struct fm_recorder *r, const void *bytes, size_t len)
{
    bool is_new;
    uint32_t number = number_of(r, &r->texts, bytes, &len, &is_new);
    if (is_new && !fits(&r->texts, len))
        fm_recorder_write(r);
    if (is_new)
        add_string(&r->texts, number, bytes, len);
    return number;
}

/* ---- functions, processes, threads ---- */

uint32_t fm_recorder_function(struct fm_recorder *r, const struct fm_function *f)
{
    size_t before = r->known->functions.len;
    uint32_t func = fm_profile_function(r->known, f);
    if (func == before)
        FM_RECORDER_ROW(r, FM_TABLE_FUNCTIONS, f->kind, f->flags, f->line, f->name, f->qualname,
                        f->file, f->twin);
    return func;
}

#define CELL_U32(field)   process->field
#define CELL_U64(field)   process->field
#define CELL_STR(field)   process->field
#define CELL_MODE(field)  process->field
#define CELL_I32(field)   fm_zigzag(process->field)
#define CELL_FLAGS(field) fm_process_flags(process)

uint32_t fm_recorder_process(struct fm_recorder *r, const struct fm_process *process)
{
    const uint64_t cells[FM_PROCESS_COLUMNS] = {
#define X(kind, field) [FM_PROCESS_COLUMN_##field] = CELL_##kind(field),
        FM_PROCESS_COLUMN_LIST(X)
#undef X
    };
    uint32_t width = FM_PROCESS_COLUMNS;
    while (width > FM_PROCESS_COLUMN_sample_mode && !cells[width - 1]) /* as in version 1.1 */
        width--;
    return (uint32_t)fm_recorder_row(r, FM_TABLE_PROCESSES, cells, width);
}

uint32_t fm_recorder_thread(struct fm_recorder *r, const struct fm_thread *thread)
{
    return (uint32_t)FM_RECORDER_ROW(r, FM_TABLE_THREADS, thread->process, thread->tid,
                                     thread->name, thread->start_ns, thread->end_ns,
                                     thread->cpu_ns);
}

/* ---- contexts and their values ---- */

uint32_t fm_recorder_root(struct fm_recorder *r, uint32_t thread)
{
    return (uint32_t)FM_RECORDER_ROW(r, FM_TABLE_NODES, 0, thread);
}

uint32_t fm_recorder_context(struct fm_recorder *r, uint32_t parent, uint32_t func)
{
    bool is_new;
    uint32_t fresh = (uint32_t)fm_recorder_next(r, FM_TABLE_NODES);
    uint32_t context = fm_tree_at(&r->children, parent, func, fresh, &is_new);
    if (is_new)
        FM_RECORDER_ROW(r, FM_TABLE_NODES, context - parent, func);
    return context;
}

/* A metric gets its number in the file when it is first used. */
static void define_metric(struct fm_recorder *r, enum fm_metric metric)
{
    if (r->metric_numbers[metric])
        return;
    uint32_t name = fm_recorder_text(r, fm_metric_name(metric));
    uint32_t unit = fm_recorder_text(r, fm_metric_unit(metric));
    uint64_t number =
        FM_RECORDER_ROW(r, FM_TABLE_METRICS, name, unit, (uint64_t)fm_metric_kind(metric));
    r->metric_numbers[metric] = (uint32_t)number + 1;
}

int64_t *fm_recorder_stretch(struct fm_recorder *r, enum fm_metric metric)
{
    define_metric(r, metric);
    if (!r->stretch[metric])
        r->stretch[metric] = fm_calloc(FM_ROWS_MAX, sizeof(int64_t));
    return r->stretch[metric];
}

void fm_recorder_value(struct fm_recorder *r, enum fm_metric metric, uint32_t context,
                       int64_t value)
{
    int64_t *waiting = fm_recorder_stretch(r, metric);
    uint64_t first = r->tables[FM_TABLE_NODES].first;
    if (context >= first) {
        int64_t *to = &waiting[context - first];
        *to = fm_metric_combine(metric, *to, value);
        return;
    }
    _Static_assert(FM_METRIC_COUNT <= 256 && LATE_MAX < 1 << 24, "both fit");
    fm_vec_push(&r->late, ((struct fm_late_value){ context, (uint32_t)metric & 0xff,
                                                   (uint32_t)r->late.len & 0xffffff, value }));
    if (r->late.len == LATE_MAX)
        fm_recorder_write(r);
}

/* ---- facts ---- */

void fm_recorder_fact(struct fm_recorder *r, const char *key, const char *value)
{
    if (fm_profile_fact_get(r->known, key))
        return;
    uint32_t k = fm_recorder_text(r, key), v = fm_recorder_text(r, value);
    fm_profile_fact(r->known, key, value);
    FM_RECORDER_ROW(r, FM_TABLE_RUN, k, v);
}
