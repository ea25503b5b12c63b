/*
 * Lines of functions; see lines.h.
 *
 * Rows are added in any order; fm_lines_sort puts them in order and combines rows of one process,
 * function and line, so every other part of the system may rely on both. What is already in order
 * is only looked at, so adding one process after the other stays cheap.
 */
#include "record/model/lines.h"

#include <string.h>

#include "base/memory.h"
#include "record/model/profile.h"

unsigned fm_line_bucket(int64_t ns)
{
    if (ns < 2)
        return 0;
    unsigned octave = 63 - (unsigned)__builtin_clzll((uint64_t)ns);
    unsigned bucket = octave * 2 + (unsigned)((uint64_t)ns >> (octave - 1) & 1);
    return bucket < FM_LINE_BUCKETS ? bucket : FM_LINE_BUCKETS - 1;
}

/* Where a bucket begins, in quarters of a nanosecond: the first ones are narrower than one. */
static int64_t bucket_begin_quarters(unsigned bucket)
{
    return (int64_t)(bucket % 2 ? 6 : 4) << bucket / 2;
}

struct fm_line *fm_lines_add(struct fm_lines *lines, uint32_t process, uint32_t func, uint32_t line,
                             bool histogram)
{
    struct fm_line row = { .process = process, .func = func, .line = line, .histogram = FM_NONE };
    fm_vec_push(&lines->rows, row);
    struct fm_line *added = &lines->rows.data[lines->rows.len - 1];
    if (histogram)
        fm_lines_histogram(lines, added);
    return added;
}

struct fm_line_histogram *fm_lines_histogram(struct fm_lines *lines, struct fm_line *row)
{
    if (row->histogram == FM_NONE) {
        row->histogram = (uint32_t)lines->histograms.len;
        fm_vec_push(&lines->histograms, (struct fm_line_histogram){ 0 });
    }
    return &lines->histograms.data[row->histogram];
}

void fm_lines_mark(struct fm_lines *lines, uint32_t func)
{
    fm_vec_push(&lines->marked, func);
}

/* ---- adding up ---- */

static void combine_numbers(struct fm_line *row, const struct fm_line *extra)
{
    row->hits = fm_sum(row->hits, extra->hits);
    row->total_ns = fm_sum(row->total_ns, extra->total_ns);
    row->self_ns = fm_sum(row->self_ns, extra->self_ns);
    row->suspended_ns = fm_sum(row->suspended_ns, extra->suspended_ns);
    row->min_ns = fm_metric_combine(FM_METRIC_MIN, row->min_ns, extra->min_ns);
    row->max_ns = fm_metric_combine(FM_METRIC_MAX, row->max_ns, extra->max_ns);
    row->samples = fm_sum(row->samples, extra->samples);
    row->memory = row->memory || extra->memory;
    row->allocated = fm_sum(row->allocated, extra->allocated);
    row->freed = fm_sum(row->freed, extra->freed);
    row->heap_after = extra->memory ? extra->heap_after : row->heap_after;
    row->heap_most = extra->heap_most > row->heap_most ? extra->heap_most : row->heap_most;
    row->above_most = extra->above_most > row->above_most ? extra->above_most : row->above_most;
    for (int s = 0; s < FM_STATE_COUNT; s++)
        row->state_ns[s] = fm_sum(row->state_ns[s], extra->state_ns[s]);
}

static void combine_histograms(struct fm_line_histogram *to, const struct fm_line_histogram *extra)
{
    for (unsigned b = 0; b < FM_LINE_BUCKETS; b++)
        if (__builtin_add_overflow(to->buckets[b], extra->buckets[b], &to->buckets[b]))
            to->buckets[b] = UINT32_MAX;
}

void fm_lines_combine(struct fm_lines *lines, struct fm_line *row, const struct fm_lines *from,
                      const struct fm_line *extra)
{
    combine_numbers(row, extra);
    if (extra->histogram == FM_NONE)
        return;
    /* First: when both tables are the same one, making room may move it. */
    struct fm_line_histogram *to = fm_lines_histogram(lines, row);
    combine_histograms(to, &from->histograms.data[extra->histogram]);
}

/* ---- order ---- */

static int row_order(const void *left, const void *right)
{
    const struct fm_line *a = left, *b = right;
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    if (a->func != b->func)
        return a->func < b->func ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

/* Rows up to here are in order, without equal ones. */
static size_t ordered_rows(const struct fm_lines *lines)
{
    size_t n = lines->rows.len ? 1 : 0;
    while (n < lines->rows.len && row_order(&lines->rows.data[n - 1], &lines->rows.data[n]) < 0)
        n++;
    return n;
}

/* Histograms that no row has any more are given up. */
static void drop_histograms(struct fm_lines *lines)
{
    struct fm_lines kept = { 0 };
    for (size_t i = 0; i < lines->rows.len; i++) {
        struct fm_line *row = &lines->rows.data[i];
        if (row->histogram == FM_NONE)
            continue;
        fm_vec_push(&kept.histograms, lines->histograms.data[row->histogram]);
        row->histogram = (uint32_t)kept.histograms.len - 1;
    }
    fm_vec_release(&lines->histograms);
    lines->histograms.data = kept.histograms.data;
    lines->histograms.len = kept.histograms.len;
    lines->histograms.cap = kept.histograms.cap;
}

static int number_order(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

static void sort_marked(struct fm_lines *lines)
{
    uint32_t *marked = lines->marked.data;
    size_t n = lines->marked.len, kept = 0, ordered = 1;
    while (ordered < n && marked[ordered - 1] < marked[ordered])
        ordered++;
    if (ordered >= n)
        return;
    qsort(marked, n, sizeof *marked, number_order);
    for (size_t i = 1; i < n; i++)
        if (marked[i] != marked[kept])
            marked[++kept] = marked[i];
    lines->marked.len = kept + 1;
}

static void sort_rows(struct fm_lines *lines)
{
    if (ordered_rows(lines) == lines->rows.len)
        return;
    qsort(lines->rows.data, lines->rows.len, sizeof *lines->rows.data, row_order);
    size_t kept = 0;
    for (size_t i = 1; i < lines->rows.len; i++) {
        if (row_order(&lines->rows.data[kept], &lines->rows.data[i]) == 0)
            fm_lines_combine(lines, &lines->rows.data[kept], lines, &lines->rows.data[i]);
        else
            lines->rows.data[++kept] = lines->rows.data[i];
    }
    if (kept + 1 == lines->rows.len)
        return;
    lines->rows.len = kept + 1;
    drop_histograms(lines);
}

void fm_lines_sort(struct fm_lines *lines)
{
    sort_rows(lines);
    sort_marked(lines);
}

struct fm_lines fm_lines_combined(const struct fm_profile *p, uint32_t process)
{
    struct fm_lines combined = { .unit_s = p->lines.unit_s };
    for (size_t i = 0; i < p->lines.rows.len; i++) {
        const struct fm_line *row = &p->lines.rows.data[i];
        if (process != FM_NONE && row->process != process)
            continue;
        struct fm_line *copy = fm_lines_add(&combined, process, row->func, row->line, false);
        fm_lines_combine(&combined, copy, &p->lines, row);
    }
    for (size_t i = 0; i < p->lines.marked.len; i++)
        fm_vec_push(&combined.marked, p->lines.marked.data[i]);
    fm_lines_sort(&combined);
    return combined;
}

void fm_lines_release(struct fm_lines *lines)
{
    fm_vec_release(&lines->rows);
    fm_vec_release(&lines->histograms);
    fm_vec_release(&lines->marked);
    lines->unit_s = 0;
}

/* ---- quantiles ---- */

int64_t fm_lines_quantile_ns(const struct fm_lines *lines, const struct fm_line *row,
                             double fraction)
{
    if (row->histogram == FM_NONE)
        return 0;
    const uint32_t *buckets = lines->histograms.data[row->histogram].buckets;
    uint64_t visits = 0, before = 0;
    for (unsigned b = 0; b < FM_LINE_BUCKETS; b++)
        visits += buckets[b];
    if (!visits)
        return 0;
    double rank = fraction * (double)visits;
    unsigned b = 0;
    while (b < FM_LINE_BUCKETS - 1 && (!buckets[b] || (double)(before + buckets[b]) < rank))
        before += buckets[b++];
    /* Inside a bucket visits are taken to be spread evenly. */
    double begin = (double)bucket_begin_quarters(b) / 4;
    double width = (double)bucket_begin_quarters(b + 1) / 4 - begin;
    double into = buckets[b] ? (rank - (double)before) / buckets[b] : 0;
    int64_t ns = (int64_t)(begin + width * (into < 0 ? 0 : into > 1 ? 1 : into));
    if (row->max_ns && ns > row->max_ns)
        ns = row->max_ns;
    return ns < row->min_ns ? row->min_ns : ns;
}
