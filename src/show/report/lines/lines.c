/*
 * Functions line by line, as line_profiler has taught people to read them: above, the function and
 * its time; then every line of it with its numbers, also those that never ran.
 *
 * In a module or a class most lines are other functions' and stand in their own tables: long runs
 * of lines without numbers are left out there.
 */
#include <string.h>

#include "base/clean.h"
#include "show/report/report.h"
#include "show/report/samples/sampling.h"

#define RUN_MAX 3 /* lines without numbers that a module or a class shows in a row */

struct block {
    const struct fm_report *r;
    const struct fm_linetable *table;
    const struct fm_text *text; /* NULL if there is none */
    struct fm_table page;
    struct fm_line_format formats[FM_LINE_COLUMN_COUNT];
    int n_formats;
    size_t at; /* the next row of the table */
    struct fm_buffer line;
};

static void put(const struct fm_report *r, const char *label, enum fm_color color, const char *text)
{
    fputs(label, r->out);
    fm_color_begin(&r->style, r->out, color);
    fm_clean_put(r->out, text);
    fm_color_end(&r->style, r->out, color);
}

static void print_head(const struct fm_report *r, uint32_t row, const char *why)
{
    char number[FM_NUMBER_BYTES];
    const struct fm_linetable *table = &r->lines->all.data[row];
    put(r, "Total time: ", FM_COLOR_BOLD, fm_number_time(number, table->time_ns));
    put(r, "\nFile: ", FM_COLOR_NONE, fm_names_file(r->names, row));
    put(r, "\nFunction: ", FM_COLOR_NAME, fm_names_function(r->names, row));
    fprintf(r->out, " at line %u\n", r->p->functions.data[table->func].line);
    if (*why) {
        put(r, "", FM_COLOR_WARN, "No source is shown: ");
        put(r, "", FM_COLOR_WARN, why);
        fputc('\n', r->out);
    }
    fputc('\n', r->out);
}

static void begin_page(struct block *b)
{
    const struct fm_report *r = b->r;
    struct fm_line_columns columns = fm_line_columns_for(&r->view.columns, r->lines, b->table);
    fm_table_init(&b->page, r->style);
    b->page.ruled = true;
    fm_table_column(&b->page, "Line #", FM_TABLE_RIGHT);
    for (int i = 0; i < columns.n; i++) {
        struct fm_line_format *f = &b->formats[b->n_formats++];
        *f = fm_line_format_for(r->lines, b->table, columns.list[i], r->view.unit);
        f->as_bar = fm_states_as_bar(&r->style);
        fm_table_column(&b->page, f->title,
                        f->column == FM_LINE_STATES ? FM_TABLE_LEFT : FM_TABLE_RIGHT);
    }
    fm_table_column(&b->page, "Line Contents", FM_TABLE_TEXT);
}

static bool is_heated(enum fm_line_column column)
{
    return column == FM_LINE_TIME || column == FM_LINE_PERCENT;
}

static void add_numbers(struct block *b, const struct fm_line *row)
{
    char number[FM_NUMBER_BYTES];
    for (int i = 0; i < b->n_formats; i++) {
        const struct fm_line_format *f = &b->formats[i];
        enum fm_color color = FM_COLOR_NONE;
        if (f->column == FM_LINE_STATES)
            color = FM_COLOR_STATES;
        if (row && is_heated(f->column))
            color = fm_color_heat((double)row->total_ns, (double)b->table->time_ns);
        fm_table_cell(&b->page, color, row ? fm_line_write(f, b->r->lines, row, number) : "");
    }
}

/* Of the source: what takes most of the time stands out, what never ran steps back. */
static enum fm_color text_color(const struct block *b, const struct fm_line *row)
{
    if (!row || (row->hits <= 0 && row->total_ns <= 0))
        return FM_COLOR_DIM;
    double part = (double)row->total_ns, whole = (double)b->table->time_ns;
    return fm_color_heat(part, whole) == FM_COLOR_HEAT4 ? FM_COLOR_BOLD : FM_COLOR_NONE;
}

static void add_line(struct block *b, uint32_t number, const struct fm_line *row)
{
    char text[FM_NUMBER_BYTES];
    snprintf(text, sizeof text, "%u", number);
    fm_table_cell(&b->page, FM_COLOR_DIM, text);
    add_numbers(b, row);
    fm_buffer_clear(&b->line);
    if (b->text && number >= 1 && number <= fm_text_count(b->text))
        fm_text_show(b->text, number, &b->line);
    fm_table_cell(&b->page, text_color(b, row), fm_buffer_text(&b->line));
}

static void add_gap(struct block *b, uint32_t lines)
{
    char text[64];
    fm_table_cell(&b->page, FM_COLOR_DIM, "⋮");
    add_numbers(b, NULL);
    snprintf(text, sizeof text, "(%u lines)", lines);
    fm_table_cell(&b->page, FM_COLOR_DIM, text);
}

/* Rows before line `limit` that are not shown yet. */
static void add_rows_before(struct block *b, uint64_t limit)
{
    for (; b->at < b->table->n && b->table->rows[b->at].line < limit; b->at++)
        add_line(b, b->table->rows[b->at].line, &b->table->rows[b->at]);
}

/* Every line from `first` to `last`, except long runs without numbers where `is_open`. */
static void add_range(struct block *b, uint32_t first, uint32_t last, bool is_open)
{
    const struct fm_linetable *table = b->table;
    for (uint32_t n = first; n <= last; n++) {
        const struct fm_line *row = b->at < table->n ? &table->rows[b->at] : NULL;
        if (row && row->line == n) {
            add_line(b, n, row);
            b->at++;
            continue;
        }
        uint32_t next = row && row->line <= last ? row->line : last + 1;
        if (is_open && next - n > RUN_MAX) {
            add_gap(b, next - n);
            n = next - 1;
        } else {
            add_line(b, n, NULL);
        }
    }
}

static void print_block(const struct fm_report *r, uint32_t index)
{
    struct block b = { .r = r, .table = &r->lines->all.data[index] };
    const char *why;
    b.text = fm_texts_find(r->lines->texts, b.table->func, &why);
    print_head(r, index, why);
    begin_page(&b);
    if (b.text) {
        bool is_open;
        uint32_t first = r->p->functions.data[b.table->func].line;
        uint32_t last = fm_text_function_end(r->p, b.text, b.table->func, &is_open);
        uint32_t count = fm_text_count(b.text);
        uint32_t ran = b.table->n ? b.table->rows[b.table->n - 1].line : 0;
        first = first ? first : 1;
        last = ran > last ? ran : last;
        add_rows_before(&b, first);
        add_range(&b, first, last < count ? last : count, is_open);
    }
    add_rows_before(&b, (uint64_t)UINT32_MAX + 1);
    fm_table_print(&b.page, r->out);
    fm_table_release(&b.page);
    fm_buffer_release(&b.line);
}

static void print_count(const struct fm_report *r)
{
    char a[FM_NUMBER_BYTES], b[FM_NUMBER_BYTES];
    size_t shown = r->selection.rows.len, all = r->lines->all.len;
    if (shown >= all)
        return;
    fm_color_begin(&r->style, r->out, FM_COLOR_DIM);
    fprintf(r->out, "\n%s of %s functions with lines", fm_number_count(a, (int64_t)shown),
            fm_number_count(b, (int64_t)all));
    fm_color_end(&r->style, r->out, FM_COLOR_DIM);
    fputc('\n', r->out);
}

/* One line per function. */
static void print_summary(const struct fm_report *r)
{
    struct fm_table t;
    char number[FM_NUMBER_BYTES], title[32];
    double max = 0;
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        double ns = (double)r->lines->all.data[r->selection.rows.data[i]].time_ns;
        max = ns > max ? ns : max;
    }
    struct fm_scale scale = fm_scale_for(r->view.unit, max);
    snprintf(title, sizeof title, "Time %s", scale.unit);
    fm_table_init(&t, r->style);
    fm_table_column(&t, title, FM_TABLE_RIGHT);
    fm_table_column(&t, "% Program", FM_TABLE_RIGHT);
    fm_table_column(&t, r->lines->sampled ? "Samples" : "Hits", FM_TABLE_RIGHT);
    fm_table_column(&t, "Function", FM_TABLE_FLEXIBLE);
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        uint32_t row = r->selection.rows.data[i];
        const struct fm_linetable *f = &r->lines->all.data[row];
        double whole = (double)r->lines->program_ns, part = (double)f->time_ns;
        fm_table_cell(&t, FM_COLOR_NONE, fm_scale_write(&scale, number, part));
        fm_table_cell(&t, fm_color_heat(part, whole), fm_number_percent(number, part, whole));
        int64_t seen = r->lines->sampled ? f->samples : f->hits;
        fm_table_cell(&t, FM_COLOR_NONE, fm_number_count(number, seen));
        fm_table_cell_pair(&t, FM_COLOR_NAME, fm_names_function(r->names, row),
                           fm_names_place(r->names, row));
    }
    fm_table_print(&t, r->out);
    fm_table_release(&t);
}

void fm_report_lines(const struct fm_report *r)
{
    if (r->view.summarize)
        print_summary(r);
    int64_t states[FM_STATE_COUNT] = { 0 };
    for (size_t i = 0; i < r->selection.rows.len && !r->view.summarize; i++) {
        const struct fm_linetable *table = &r->lines->all.data[r->selection.rows.data[i]];
        for (size_t k = 0; k < table->n && (r->lines->sampled || r->lines->beside); k++)
            fm_states_add(states, table->rows[k].state_ns);
        if (i)
            fputc('\n', r->out);
        print_block(r, r->selection.rows.data[i]);
    }
    fm_states_print_legend(&r->style, r->out, states);
    print_count(r);
}
