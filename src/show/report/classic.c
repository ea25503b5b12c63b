/*
 * pstats' own layout, byte for byte, for scripts and eyes that are used to it: print_stats,
 * print_callers and print_callees of Lib/pstats.py, whose text has not changed from 3.8 to 3.15
 * (3.15 gives sampled profiles a title of their own).
 *
 * Widths count characters, not columns, because Python's len() does.
 */
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clean.h"
#include "record/model/derive/label.h"
#include "show/report/edges.h"
#include "show/report/report.h"

/* What is gathered before it is written; a whole table is one write. */
#define FLUSH_BYTES ((size_t)1 << 16)

struct classic_page {
    const struct fm_report *r;
    struct fm_buffer text;
};

static void flush_page(struct classic_page *page)
{
    if (page->text.len)
        fwrite(page->text.data, 1, page->text.len, page->r->out);
    fm_buffer_clear(&page->text);
}

static size_t characters(const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

static void add_spaces(struct fm_buffer *out, size_t n)
{
    fm_buffer_reserve(out, n + 1);
    memset(out->data + out->len, ' ', n);
    out->len += n;
    out->data[out->len] = '\0';
}

static void add_right(struct fm_buffer *out, const char *text, size_t len, size_t width)
{
    if (len < width)
        add_spaces(out, width - len);
    fm_buffer_add(out, text, len);
}

static size_t format_int(char *digits, int64_t value)
{
    char back[24];
    size_t n = 0, at = 0;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do {
        back[n++] = (char)('0' + left % 10);
    } while (left /= 10);
    if (value < 0)
        digits[at++] = '-';
    while (n)
        digits[at++] = back[--n];
    return at;
}

static void add_calls(struct fm_buffer *out, int64_t calls, int64_t primitive, size_t width)
{
    char text[64];
    size_t n = format_int(text, calls);
    if (calls != primitive) {
        text[n++] = '/';
        n += format_int(text + n, primitive);
    }
    add_right(out, text, n, width);
}

/* "%8.3f". The common case is done with integers; near a tie printf decides, exactly. */
static void add_f8(struct fm_buffer *out, double x)
{
    char text[64];
    double thousandths = x * 1000, whole = floor(thousandths), rest = thousandths - whole;
    if (!(x >= 0 && x < 1e9) || fabs(rest - 0.5) < 1e-5) {
        fm_buffer_addf(out, "%8.3f", x);
        return;
    }
    uint64_t n = (uint64_t)whole + (rest > 0.5);
    size_t len = format_int(text, (int64_t)(n / 1000));
    text[len++] = '.';
    text[len++] = (char)('0' + n / 100 % 10);
    text[len++] = (char)('0' + n / 10 % 10);
    text[len++] = (char)('0' + n % 10);
    add_right(out, text, len, 8);
}

static double seconds(int64_t ns)
{
    return fm_label_seconds(ns);
}

static void add_name(struct classic_page *page, uint32_t row)
{
    const char *name = fm_names_std(page->r->names, row);
    size_t len = fm_names_std_len(page->r->names, row);
    for (size_t at = 0, n; at < len; at += n) {
        bool space = name[at] == '\n' || name[at] == '\t'; /* as pstats prints them */
        n = 1;
        while (at + n < len && (name[at + n] == '\n' || name[at + n] == '\t') == space)
            n++;
        if (space)
            fm_buffer_add(&page->text, name + at, n);
        else
            fm_clean_add(&page->text, name + at, n);
    }
}

static size_t name_width(struct classic_page *page, uint32_t row)
{
    size_t start = page->text.len;
    add_name(page, row);
    size_t width = characters(page->text.data + start, page->text.len - start);
    page->text.len = start;
    return width;
}

/* The dates pstats prints; several files in its order: the first, then the others backwards. */
static void add_files(struct classic_page *page)
{
    const char *const *files = page->r->files;
    size_t n = 0;
    while (files[n])
        n++;
    for (size_t i = 0; i < n; i++) {
        const char *path = files[i ? n - i : 0];
        struct stat st;
        char date[64];
        struct tm tm;
        if (stat(path, &st) == 0 && localtime_r(&st.st_mtime, &tm)) {
            strftime(date, sizeof date, "%a %b %e %H:%M:%S %Y", &tm);
            fm_buffer_addf(&page->text, "%s    ", date);
        }
        fm_clean_add(&page->text, path, strlen(path));
        fm_buffer_add_char(&page->text, '\n');
    }
    if (n)
        fm_buffer_add_char(&page->text, '\n');
}

static void add_summary(struct classic_page *page)
{
    struct fm_flat_total total = fm_flat_total(page->r->flat);
    fm_buffer_addf(&page->text, "         %lld function calls ", (long long)total.calls);
    if (total.calls != total.primitive)
        fm_buffer_addf(&page->text, "(%lld primitive calls) ", (long long)total.primitive);
    fm_buffer_addf(&page->text, "in %.3f seconds\n\n", seconds(total.self_ns));
}

static void add_row(struct classic_page *page, uint32_t row)
{
    const struct fm_flat_row *f = &page->r->flat->rows.data[row];
    struct fm_buffer *out = &page->text;
    add_calls(out, f->calls, f->primitive, 9);
    fm_buffer_add_char(out, ' ');
    add_f8(out, seconds(f->self_ns));
    fm_buffer_add_char(out, ' ');
    if (f->calls)
        add_f8(out, seconds(f->self_ns - f->uncounted_self_ns) / (double)f->calls);
    else
        add_spaces(out, 8);
    fm_buffer_add_char(out, ' ');
    add_f8(out, seconds(f->total_ns));
    fm_buffer_add_char(out, ' ');
    if (f->primitive)
        add_f8(out, seconds(f->total_ns - f->uncounted_ns) / (double)f->primitive);
    else
        add_spaces(out, 8);
    fm_buffer_add_char(out, ' ');
    add_name(page, row);
    fm_buffer_add_char(out, '\n');
}

void fm_report_classic(const struct fm_report *r)
{
    struct classic_page page = { .r = r };
    add_files(&page);
    add_summary(&page);
    if (r->selection.rows.len) {
        fm_buffer_addf(&page.text, "%s\n", fm_buffer_text(&r->selection.message));
        fm_buffer_add_text(&page.text, r->flat->sampled
                                           ? " nsamples  tottime persample cumtime persample"
                                           : "   ncalls  tottime  percall  cumtime  percall");
        fm_buffer_add_text(&page.text, " filename:lineno(function)\n");
        for (size_t i = 0; i < r->selection.rows.len; i++) {
            add_row(&page, r->selection.rows.data[i]);
            if (page.text.len > FLUSH_BYTES)
                flush_page(&page);
        }
        fm_buffer_add_text(&page.text, "\n\n");
    }
    flush_page(&page);
    fm_buffer_release(&page.text);
}

/* Python sorts the keys of the dict: by file, line and name. */
static int compare_ends(const void *a, const void *b, void *data)
{
    const struct classic_page *page = ((void **)data)[0];
    const struct fm_edges *edges = ((void **)data)[1];
    struct fm_names *names = page->r->names;
    uint32_t x = fm_edges_other(edges, a), y = fm_edges_other(edges, b);
    int order = strcmp(fm_names_file(names, x), fm_names_file(names, y));
    if (order)
        return order;
    uint32_t m = fm_names_line(names, x), n = fm_names_line(names, y);
    if (m != n)
        return m < n ? -1 : 1;
    return strcmp(fm_names_name(names, x), fm_names_name(names, y));
}

static void add_edge(struct classic_page *page, uint32_t other, const struct fm_flat_edge *edge,
                     size_t width, bool first)
{
    struct fm_buffer *out = &page->text;
    if (fm_edge_counts_only(edge)) {
        add_spaces(out, first ? 0 : width + 3);
        add_name(page, other);
        fm_buffer_addf(out, "(%lld) ", (long long)edge->calls);
        add_f8(out, seconds(page->r->flat->rows.data[other].total_ns));
    } else {
        add_spaces(out, first ? 0 : width + 1);
        add_calls(out, edge->calls, edge->primitive, first ? 7 : 9);
        fm_buffer_add_char(out, ' ');
        add_f8(out, seconds(edge->self_ns));
        fm_buffer_add_char(out, ' ');
        add_f8(out, seconds(edge->total_ns));
        fm_buffer_add_text(out, "  ");
        add_name(page, other);
    }
    fm_buffer_add_char(out, '\n');
}

static void add_edges(struct classic_page *page, uint32_t row, const struct fm_edges *edges,
                      size_t width)
{
    size_t n, own = name_width(page, row);
    struct fm_flat_edge *all = fm_edges_of(edges, row, &n);
    add_name(page, row);
    add_spaces(&page->text, own < width ? width - own : 0);
    fm_buffer_add_text(&page->text, edges->direction == FM_CALLERS ? "<- " : "-> ");
    if (!n)
        fm_buffer_add_char(&page->text, '\n');
    void *context[] = { page, (void *)edges };
    qsort_r(all, n, sizeof *all, compare_ends, context);
    for (size_t i = 0; i < n; i++)
        add_edge(page, fm_edges_other(edges, &all[i]), &all[i], width, i == 0);
}

static void add_heading(struct classic_page *page, size_t width, enum fm_direction direction)
{
    const struct fm_flat *flat = page->r->flat;
    fm_buffer_add_text(&page->text, "Function ");
    add_spaces(&page->text, width > 9 ? width - 9 : 0);
    fm_buffer_add_text(&page->text, direction == FM_CALLERS ? "was called by...\n" : "called...\n");
    if (!flat->edges.len || fm_edge_counts_only(&flat->edges.data[0]))
        return;
    add_spaces(&page->text, width);
    fm_buffer_addf(&page->text, "    %s  tottime  cumtime\n",
                   flat->sampled ? "nsamples" : "ncalls");
}

void fm_report_classic_edges(const struct fm_report *r, enum fm_direction direction)
{
    struct classic_page page = { .r = r };
    struct fm_edges edges;
    size_t width = 0;
    if (!r->selection.rows.len)
        return;
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        size_t own = name_width(&page, r->selection.rows.data[i]);
        width = own > width ? own : width;
    }
    width += 2;
    fm_edges_init(&edges, r->flat, direction);
    fm_buffer_addf(&page.text, "%s\n", fm_buffer_text(&r->selection.message));
    add_heading(&page, width, direction);
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        add_edges(&page, r->selection.rows.data[i], &edges, width);
        if (page.text.len > FLUSH_BYTES)
            flush_page(&page);
    }
    fm_buffer_add_text(&page.text, "\n\n");
    flush_page(&page);
    fm_edges_release(&edges);
    fm_buffer_release(&page.text);
}
