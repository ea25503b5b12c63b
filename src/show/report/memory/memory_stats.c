/*
 * Memory in numbers: who was asked for it, how large blocks were and how long they lived, as bars,
 * and the lines that allocated most of it.
 */
#include "base/memory.h"
#include "show/report/memory/memory.h"
#include "show/report/number.h"
#include "show/report/report.h"

#define BAR_CELLS 30

static void print_title(const struct fm_report *r, const char *title)
{
    fm_color_begin(&r->style, r->out, FM_COLOR_BOLD);
    fputs(title, r->out);
    fm_color_end(&r->style, r->out, FM_COLOR_BOLD);
    fputc('\n', r->out);
}

/* A bar, exact to an eighth of a cell; what is there at all is seen. */
static void add_bar(struct fm_table *t, int64_t part, int64_t whole)
{
    static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    fm_autobuffer bar = FM_BUFFER_INIT;
    int cells = (int)((double)part / (double)whole * BAR_CELLS * 8 + 0.5);
    cells = part > 0 && cells < 1 ? 1 : cells;
    for (int i = 0; i < cells / 8; i++)
        fm_buffer_add_text(&bar, "█");
    fm_buffer_add_text(&bar, eighths[cells % 8]);
    fm_table_cell(t, FM_COLOR_NAME, fm_buffer_text(&bar));
}

static int64_t sum_of(const fm_memory_buckets *buckets, int64_t *largest)
{
    int64_t sum = 0;
    *largest = 1;
    for (size_t i = 0; i < buckets->len; i++) {
        sum = fm_sum(sum, buckets->data[i].blocks);
        if (buckets->data[i].blocks > *largest)
            *largest = buckets->data[i].blocks;
    }
    return sum;
}

static void show_kinds(const struct fm_report *r)
{
    fm_memory_buckets kinds = fm_memory_buckets_of(r, FM_HEAP_BY_KIND, false);
    struct fm_table t;
    char text[FM_NUMBER_BYTES];
    fm_table_init(&t, r->style);
    fm_table_column(&t, "asked", FM_TABLE_LEFT);
    fm_table_column(&t, "blocks", FM_TABLE_RIGHT);
    fm_table_column(&t, "%", FM_TABLE_RIGHT);
    fm_table_column(&t, "bytes", FM_TABLE_RIGHT);
    int64_t largest, all = sum_of(&kinds, &largest);
    for (size_t i = 0; i < kinds.len; i++) {
        const struct fm_memory_bucket *kind = &kinds.data[i];
        fm_table_cell(&t, FM_COLOR_NONE, fm_heap_kind_title(kind->from));
        fm_table_cell(&t, FM_COLOR_NONE, fm_number_count(text, kind->blocks));
        fm_table_cell(&t, FM_COLOR_NONE,
                      fm_number_percent(text, (double)kind->blocks, (double)all));
        fm_table_cell(&t, FM_COLOR_NONE, fm_number_bytes(text, kind->bytes));
    }
    fm_table_print(&t, r->out);
    fm_table_release(&t);
    fm_vec_release(&kinds);
}

/* "64 B …", "128 …": where the bucket begins. */
static void add_range(struct fm_table *t, enum fm_heap_table table,
                      const struct fm_memory_bucket *bucket)
{
    char from[FM_NUMBER_BYTES], text[FM_NUMBER_BYTES + 8];
    if (table == FM_HEAP_SIZES)
        fm_number_bytes(from, bucket->from);
    else
        fm_number_count(from, bucket->from);
    bool one = bucket->below == bucket->from + 1;
    snprintf(text, sizeof text, "%s%s", from, one ? "" : " …");
    fm_table_cell(t, FM_COLOR_NONE, text);
}

static void show_histogram(const struct fm_report *r, enum fm_heap_table table, const char *title)
{
    fm_memory_buckets buckets = fm_memory_buckets_of(r, table, true);
    struct fm_table t;
    char text[FM_NUMBER_BYTES];
    if (!buckets.len)
        return;
    fm_table_init(&t, r->style);
    fm_table_column(&t, title, FM_TABLE_RIGHT);
    fm_table_column(&t, "blocks", FM_TABLE_RIGHT);
    fm_table_column(&t, "%", FM_TABLE_RIGHT);
    fm_table_column(&t, "", FM_TABLE_LEFT);
    int64_t largest, all = sum_of(&buckets, &largest);
    for (size_t i = 0; i < buckets.len; i++) {
        int64_t blocks = buckets.data[i].blocks;
        add_range(&t, table, &buckets.data[i]);
        fm_table_cell(&t, FM_COLOR_NONE, fm_number_count(text, blocks));
        fm_table_cell(&t, FM_COLOR_NONE, fm_number_percent(text, (double)blocks, (double)all));
        add_bar(&t, blocks, largest);
    }
    fputc('\n', r->out);
    fm_table_print(&t, r->out);
    fm_table_release(&t);
    fm_vec_release(&buckets);
}

/* ---- the lines that allocated most ---- */

struct top_order {
    const struct fm_flat *flat;
    enum fm_metric metric;
};

static int compare_tops(const void *left, const void *right, void *data)
{
    const struct top_order *order = data;
    uint32_t x = *(const uint32_t *)left, y = *(const uint32_t *)right;
    int64_t a = order->flat->rows.data[x].self[order->metric];
    int64_t b = order->flat->rows.data[y].self[order->metric];
    if (a != b)
        return a < b ? 1 : -1;
    return x < y ? -1 : x > y;
}

uint32_t *fm_memory_tops_new(const struct fm_report *r, enum fm_metric metric, size_t *count)
{
    size_t n = r->selection.rows.len, with = 0;
    struct top_order order = { r->flat, metric };
    uint32_t *rows = fm_malloc((n + 1) * sizeof *rows);
    for (size_t i = 0; i < n; i++)
        if (r->flat->rows.data[r->selection.rows.data[i]].self[metric])
            rows[with++] = r->selection.rows.data[i];
    qsort_r(rows, with, sizeof *rows, compare_tops, &order);
    *count = r->memory.tops >= 0 && (size_t)r->memory.tops < with ? (size_t)r->memory.tops : with;
    return rows;
}

static void show_tops(const struct fm_report *r, enum fm_metric metric, const char *title)
{
    size_t count;
    fm_autofree uint32_t *rows = fm_memory_tops_new(r, metric, &count);
    int64_t all = fm_memory_sums_of(r).all[metric];
    struct fm_table t;
    char text[FM_NUMBER_BYTES];
    fm_table_init(&t, r->style);
    fm_table_column(&t, "bytes", FM_TABLE_RIGHT);
    fm_table_column(&t, "blocks", FM_TABLE_RIGHT);
    fm_table_column(&t, "%", FM_TABLE_RIGHT);
    fm_table_column(&t, "function", FM_TABLE_FLEXIBLE);
    for (size_t i = 0; i < count; i++) {
        const struct fm_flat_row *f = &r->flat->rows.data[rows[i]];
        fm_table_cell(&t, FM_COLOR_NONE, fm_number_bytes(text, f->self[r->memory.at->bytes]));
        fm_table_cell(&t, FM_COLOR_NONE, fm_number_count(text, f->self[r->memory.at->blocks]));
        fm_table_cell(&t, fm_color_heat((double)f->self[metric], (double)all),
                      fm_number_percent(text, (double)f->self[metric], (double)all));
        fm_table_cell_pair(&t, FM_COLOR_NAME, fm_names_function(r->names, rows[i]),
                           fm_names_place(r->names, rows[i]));
    }
    fputc('\n', r->out);
    print_title(r, title);
    fm_table_print(&t, r->out);
    fm_table_release(&t);
}

void fm_report_memory_stats(const struct fm_report *r)
{
    char title[96];
    show_kinds(r);
    show_histogram(r, FM_HEAP_SIZES, "size");
    show_histogram(r, FM_HEAP_LIVES, "life in allocations");
    snprintf(title, sizeof title, "Most bytes %s", r->memory.at->title);
    show_tops(r, r->memory.at->bytes, title);
    snprintf(title, sizeof title, "Most blocks %s", r->memory.at->title);
    show_tops(r, r->memory.at->blocks, title);
}
