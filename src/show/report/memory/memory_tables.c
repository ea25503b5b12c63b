/*
 * Tables of who allocated memory: lines or functions, and their callers and callees.
 *
 * Shares are of all that the processes and threads shown had at the instant the report is of. What
 * belongs to threads without Python code is in no row; a line below the table says how much it is.
 */
#include <string.h>

#include "show/report/edges.h"
#include "show/report/memory/memory.h"
#include "show/report/number.h"
#include "show/report/report.h"

static void add_bytes(struct fm_table *t, int64_t bytes)
{
    char text[FM_NUMBER_BYTES];
    fm_table_cell(t, FM_COLOR_NONE, bytes ? fm_number_bytes(text, bytes) : "");
}

static void add_percent(struct fm_table *t, int64_t part, int64_t whole)
{
    char text[FM_NUMBER_BYTES];
    fm_table_cell(t, fm_color_heat((double)part, (double)whole),
                  fm_number_percent(text, (double)part, (double)whole));
}

static void add_count(struct fm_table *t, int64_t count)
{
    char text[FM_NUMBER_BYTES];
    fm_table_cell(t, FM_COLOR_NONE, count ? fm_number_count(text, count) : "");
}

#define WIDE 100 /* columns: below, the place is for the names */

/* Beside what the report is of: all that was allocated, and how much of that was freed at once. */
static const enum fm_metric beside[] = { FM_METRIC_ALLOCATED, FM_METRIC_TEMPORARY };

static bool is_beside(const struct fm_report *r, size_t i)
{
    bool wide = r->style.width <= 0 || r->style.width >= WIDE;
    return wide && beside[i] != r->memory.at->bytes;
}

static void add_columns(struct fm_table *t, const struct fm_report *r)
{
    fm_table_column(t, "self", FM_TABLE_RIGHT);
    fm_memory_error_column(t, r->p, r->memory.at->bytes);
    fm_table_column(t, "%", FM_TABLE_RIGHT);
    fm_table_column(t, "blocks", FM_TABLE_RIGHT);
    if (r->memory.rows != FM_ROWS_TYPES) { /* which call nobody */
        fm_table_column(t, "total", FM_TABLE_RIGHT);
        fm_memory_error_column(t, r->p, r->memory.at->bytes);
        fm_table_column(t, "%", FM_TABLE_RIGHT);
    }
    for (size_t i = 0; i < FM_COUNT(beside); i++)
        if (is_beside(r, i))
            fm_table_column(t, fm_metric_name(beside[i]), FM_TABLE_RIGHT);
    fm_table_column(t, r->memory.rows == FM_ROWS_TYPES ? "type" : "function", FM_TABLE_FLEXIBLE);
}

static void add_row(struct fm_table *t, const struct fm_report *r, uint32_t row, int64_t all)
{
    const struct fm_flat_row *f = &r->flat->rows.data[row];
    const struct fm_instant_info *at = r->memory.at;
    add_bytes(t, f->self[at->bytes]);
    fm_memory_error_cell(t, r->p, at->bytes, f->self);
    add_percent(t, f->self[at->bytes], all);
    add_count(t, f->self[at->blocks]);
    if (r->memory.rows != FM_ROWS_TYPES) {
        add_bytes(t, f->total[at->bytes]);
        fm_memory_error_cell(t, r->p, at->bytes, f->total);
        add_percent(t, f->total[at->bytes], all);
    }
    for (size_t i = 0; i < FM_COUNT(beside); i++)
        if (is_beside(r, i))
            add_bytes(t, f->self[beside[i]]);
    fm_table_cell_pair(t, FM_COLOR_NAME, fm_names_function(r->names, row),
                       fm_names_place(r->names, row));
}

static void print_dim(const struct fm_report *r, const char *text)
{
    fm_color_begin(&r->style, r->out, FM_COLOR_DIM);
    fputs(text, r->out);
    fm_color_end(&r->style, r->out, FM_COLOR_DIM);
    fputc('\n', r->out);
}

/* "684 KiB (8.8 %) in no Python function", so that the shares add up. */
static void print_rest(const struct fm_report *r, int64_t part, int64_t all, const char *where)
{
    char bytes[FM_NUMBER_BYTES], percent[FM_NUMBER_BYTES], text[160];
    if (part <= 0)
        return;
    snprintf(text, sizeof text, "\n%s (%s %%) in no %s", fm_number_bytes(bytes, part),
             fm_number_percent(percent, (double)part, (double)all), where);
    print_dim(r, text);
}

/* Of types: what is no object, but memory that objects, or extensions, asked for besides. */
static void print_outside(const struct fm_report *r, const struct fm_memory_sums *sums)
{
    enum fm_metric bytes = r->memory.at->bytes;
    int64_t part = sums->all[bytes];
    if (r->memory.rows != FM_ROWS_TYPES) {
        print_rest(r, sums->outside[bytes], sums->all[bytes], "Python function");
        return;
    }
    for (size_t i = 0; i < r->flat->rows.len; i++)
        if (fm_function_is_type(&r->p->functions.data[r->flat->rows.data[i].func]))
            part -= r->flat->rows.data[i].self[bytes];
    print_rest(r, part, sums->all[bytes], "object itself");
}

static void print_count(const struct fm_report *r)
{
    static const char *const titles[] = {
        [FM_ROWS_LINES] = "lines", [FM_ROWS_FUNCTIONS] = "functions", [FM_ROWS_TYPES] = "types"
    };
    char a[FM_NUMBER_BYTES], b[FM_NUMBER_BYTES], text[160];
    int64_t shown = (int64_t)r->selection.rows.len, all = 0;
    for (uint32_t i = 0; i < r->flat->rows.len; i++) {
        const struct fm_flat_row *row = &r->flat->rows.data[i];
        all += row->total[r->memory.at->bytes] &&
               (r->memory.rows != FM_ROWS_TYPES ||
                fm_function_is_type(&r->p->functions.data[row->func]));
    }
    if (shown >= all)
        return;
    snprintf(text, sizeof text, "\n%s of %s %s", fm_number_count(a, shown), fm_number_count(b, all),
             titles[r->memory.rows]);
    print_dim(r, text);
}

void fm_report_memory_functions(const struct fm_report *r)
{
    struct fm_table t;
    struct fm_memory_sums sums = fm_memory_sums_of(r);
    fm_table_init(&t, r->style);
    add_columns(&t, r);
    for (size_t i = 0; i < r->selection.rows.len; i++)
        add_row(&t, r, r->selection.rows.data[i], sums.all[r->memory.at->bytes]);
    fm_table_print(&t, r->out);
    fm_table_release(&t);
    print_outside(r, &sums);
    print_count(r);
}

/* ---- callers and callees ---- */

static void add_numbers(struct fm_table *t, const struct fm_report *r, const int64_t *self,
                        const int64_t *total)
{
    add_count(t, self[r->memory.at->blocks]);
    add_bytes(t, self[r->memory.at->bytes]);
    fm_memory_error_cell(t, r->p, r->memory.at->bytes, self);
    add_bytes(t, total[r->memory.at->bytes]);
    fm_memory_error_cell(t, r->p, r->memory.at->bytes, total);
}

static void add_edges(struct fm_table *t, const struct fm_report *r, const struct fm_edges *edges,
                      uint32_t row)
{
    const struct fm_flat_row *f = &r->flat->rows.data[row];
    const char *arrow = edges->direction == FM_CALLERS ? "  ← " : "  → ";
    char text[FM_NUMBER_BYTES], more[FM_NUMBER_BYTES + 16];
    int64_t whole = f->total[r->memory.at->bytes];
    size_t n, kept = 0;
    struct fm_flat_edge *all = fm_edges_of(edges, row, &n);
    for (size_t i = 0; i < n; i++)
        if (all[i].total[r->memory.at->bytes])
            all[kept++] = all[i];
    size_t shown = r->edges_max >= 0 && (size_t)r->edges_max < kept ? (size_t)r->edges_max : kept;
    fm_query_sort_edges(r->query, r->names, all, kept, edges->direction == FM_CALLERS);
    add_numbers(t, r, f->self, f->total);
    fm_table_cell(t, FM_COLOR_NONE, "");
    fm_table_cell_pair(t, FM_COLOR_BOLD, fm_names_function(r->names, row),
                       fm_names_place(r->names, row));
    for (size_t i = 0; i < shown; i++) {
        uint32_t other = fm_edges_other(edges, &all[i]);
        add_numbers(t, r, all[i].self, all[i].total);
        add_percent(t, all[i].total[r->memory.at->bytes], whole);
        fm_table_cell_branch(t, FM_COLOR_NAME, arrow, fm_names_function(r->names, other),
                             fm_names_place(r->names, other));
    }
    if (shown == kept)
        return;
    for (int i = 0; i < (fm_memory_has_error(r->p, r->memory.at->bytes) ? 6 : 4); i++)
        fm_table_cell(t, FM_COLOR_DIM, "");
    snprintf(more, sizeof more, "    %s more", fm_number_count(text, (int64_t)(kept - shown)));
    fm_table_cell(t, FM_COLOR_DIM, more);
}

void fm_report_memory_edges(const struct fm_report *r, enum fm_direction direction)
{
    struct fm_edges edges;
    struct fm_table t;
    fm_edges_init(&edges, r->flat, direction);
    fm_table_init(&t, r->style);
    fm_table_column(&t, "blocks", FM_TABLE_RIGHT);
    fm_table_column(&t, "self", FM_TABLE_RIGHT);
    fm_memory_error_column(&t, r->p, r->memory.at->bytes);
    fm_table_column(&t, "total", FM_TABLE_RIGHT);
    fm_memory_error_column(&t, r->p, r->memory.at->bytes);
    fm_table_column(&t, "%", FM_TABLE_RIGHT);
    fm_table_column(&t,
                    direction == FM_CALLERS ? "function ← its callers" : "function → its callees",
                    FM_TABLE_FLEXIBLE);
    for (size_t i = 0; i < r->selection.rows.len; i++)
        add_edges(&t, r, &edges, r->selection.rows.data[i]);
    fm_table_print(&t, r->out);
    fm_table_release(&t);
    fm_edges_release(&edges);
}

/* ---- lines with their source ---- */

static const char *source_of(const struct fm_report *r, struct fm_texts *texts, uint32_t row,
                             struct fm_buffer *out)
{
    const char *why;
    uint32_t func = r->flat->rows.data[row].func, line = fm_names_line(r->names, row);
    const struct fm_text *text = fm_texts_find(texts, r->memory.origin[func], &why);
    fm_buffer_clear(out);
    if (text && line >= 1 && line <= fm_text_count(text))
        fm_text_show(text, line, out);
    const char *shown = fm_buffer_text(out);
    return shown + strspn(shown, " ");
}

static void add_line(struct fm_table *t, const struct fm_report *r, struct fm_texts *texts,
                     uint32_t row, int64_t all)
{
    const struct fm_flat_row *f = &r->flat->rows.data[row];
    fm_autobuffer text = FM_BUFFER_INIT;
    const char *place = fm_names_place(r->names, row);
    add_bytes(t, f->self[r->memory.at->bytes]);
    fm_memory_error_cell(t, r->p, r->memory.at->bytes, f->self);
    add_percent(t, f->self[r->memory.at->bytes], all);
    add_count(t, f->self[r->memory.at->blocks]);
    fm_table_cell(t, FM_COLOR_DIM, place);
    const char *source = source_of(r, texts, row, &text), *name = fm_names_function(r->names, row);
    if (*source)
        fm_table_cell_pair(t, FM_COLOR_NONE, source, name);
    else
        fm_table_cell(t, FM_COLOR_DIM, name);
}

void fm_report_memory_lines(const struct fm_report *r)
{
    struct fm_table t;
    struct fm_texts *texts = fm_texts_new(r->p);
    struct fm_memory_sums sums = fm_memory_sums_of(r);
    fm_table_init(&t, r->style);
    fm_table_column(&t, "self", FM_TABLE_RIGHT);
    fm_memory_error_column(&t, r->p, r->memory.at->bytes);
    fm_table_column(&t, "%", FM_TABLE_RIGHT);
    fm_table_column(&t, "blocks", FM_TABLE_RIGHT);
    fm_table_column(&t, "Line", FM_TABLE_LEFT);
    fm_table_column(&t, "Line Contents", FM_TABLE_TEXT);
    for (size_t i = 0; i < r->selection.rows.len; i++)
        add_line(&t, r, texts, r->selection.rows.data[i], sums.all[r->memory.at->bytes]);
    fm_table_print(&t, r->out);
    fm_table_release(&t);
    fm_texts_free(texts);
    print_outside(r, &sums);
}
