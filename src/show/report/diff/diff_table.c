/*
 * The comparison of two recordings for people: what stands above it, the table of rows, and the tree.
 *
 * Of what it is sorted by, a row has before, now, the difference and how many times as much that is; of the other
 * numbers the differences. More is red, less is green.
 */
#include <string.h>

#include "base/clean.h"
#include "show/report/diff/diff.h"
#include "show/report/metric.h"
#include "show/report/number.h"

static enum fm_unit unit_of(int key)
{
    return fm_metric_info(fm_diff_keys[key].metric)->unit;
}

/* ---- what stands above ---- */

static void print_line(const struct fm_diff *d, enum fm_color color, const struct fm_buffer *line)
{
    fm_autobuffer clean = FM_BUFFER_INIT;
    fm_clean_add(&clean, line->data, line->len);
    fm_color_begin(&d->style, d->out, color);
    fputs(fm_buffer_text(&clean), d->out);
    fm_color_end(&d->style, d->out, color);
    fputc('\n', d->out);
}

static void print_side(const struct fm_diff *d, int side)
{
    const struct fm_report *r = &d->side[side];
    const char *command = fm_profile_fact_get(r->p, "command");
    fm_autobuffer line = FM_BUFFER_INIT;
    fm_buffer_addf(&line, "%s  %s", side == FM_BEFORE ? "before" : "now   ", r->files[0]);
    if (d->timed) {
        const struct fm_shown *at = &d->shown[side];
        char number[FM_NUMBER_BYTES];
        fm_buffer_addf(&line, " at %.3f s, as looked at %s before", at->asked_ns / 1e9,
                       fm_number_time(number, (int64_t)(at->asked_ns - at->shown_ns)));
    }
    if (command)
        fm_buffer_addf(&line, "  %s", command);
    print_line(d, FM_COLOR_DIM, &line);
}

/* "self 1.23 s → 2.46 s, +1.23 s (2.00×)". */
static void add_sum(const struct fm_diff *d, struct fm_buffer *line, int key)
{
    char a[FM_NUMBER_BYTES], b[FM_NUMBER_BYTES], c[FM_NUMBER_BYTES];
    const struct fm_diff_key *k = &fm_diff_keys[key];
    int64_t before = fm_diff_scaled(d, FM_BEFORE, d->all[FM_BEFORE][key]);
    int64_t now = d->all[FM_NOW][key];
    const char *title = key == FM_DIFF_SELF || key == FM_DIFF_TOTAL ? "time" : k->title;
    if (k->memory && k->total)
        title += strlen("total ");
    fm_buffer_addf(line, "%s %s → %s", title, fm_number_of(a, unit_of(key), before),
                   fm_number_of(b, unit_of(key), now));
    if (before == now)
        fm_buffer_add_text(line, ", the same");
    else
        fm_buffer_addf(line, ", %s", fm_diff_number(c, unit_of(key), now - before));
    if (before != now && before > 0 && now > 0)
        fm_buffer_addf(line, " (%s)", fm_diff_ratio(c, before, now));
}

static void add_count(struct fm_buffer *line, size_t count, const char *what)
{
    char number[FM_NUMBER_BYTES];
    if (count)
        fm_buffer_addf(line, "%s%s %s", line->len ? " · " : "",
                       fm_number_count(number, (int64_t)count), what);
}

/* Times of samples and times of calls are not alike. */
static void print_warnings(const struct fm_diff *d)
{
    for (int side = 0; side < FM_SIDES; side++)
        for (size_t i = 0; i < d->side[side].p->notes.len; i++) {
            const struct fm_profile *p = d->side[side].p;
            fm_autobuffer line = FM_BUFFER_INIT;
            fm_buffer_addf(&line, "%s: %s", side == FM_BEFORE ? "before" : "now",
                           fm_profile_text(p, p->notes.data[i].text));
            print_line(d, FM_COLOR_WARN, &line);
        }
    for (int side = 0; side < FM_SIDES; side++)
        if (d->memory && fm_profile_has_estimates(d->side[side].p)) {
            fm_autobuffer line = FM_BUFFER_INIT;
            fm_buffer_addf(&line, "%s: memory is estimated from samples of it",
                           side == FM_BEFORE ? "before" : "now");
            print_line(d, FM_COLOR_WARN, &line);
        }
    if (!d->memory && d->side[FM_BEFORE].flat->states != d->side[FM_NOW].flat->states) {
        fm_autobuffer line = FM_BUFFER_INIT;
        fm_buffer_addf(&line,
                       "%s was sampled and the other recorded call by call: times differ by "
                       "what recording calls cost",
                       d->side[FM_BEFORE].flat->states ? "before" : "now");
        print_line(d, FM_COLOR_WARN, &line);
    }
}

void fm_diff_print_header(struct fm_diff *d)
{
    fm_autobuffer sums = FM_BUFFER_INIT, counts = FM_BUFFER_INIT, scaled = FM_BUFFER_INIT;
    print_side(d, FM_BEFORE);
    print_side(d, FM_NOW);
    add_sum(d, &sums, d->key);
    print_line(d, FM_COLOR_BOLD, &sums);
    if (d->scale != 1) {
        fm_buffer_addf(
            &scaled, "all numbers before are multiplied by %.4g, so that their sum is that of now",
            d->scale);
        print_line(d, FM_COLOR_NONE, &scaled);
    }
    add_count(&counts, d->grew, "grew");
    add_count(&counts, d->shrank, "shrank");
    add_count(&counts, d->fresh, d->fresh == 1 ? "is new" : "are new");
    add_count(&counts, d->gone, d->gone == 1 ? "is no more" : "are no more");
    if (counts.len)
        print_line(d, FM_COLOR_NONE, &counts);
    print_warnings(d);
    fputc('\n', d->out);
}

/* ---- rows ---- */

static void add_number(struct fm_table *t, int key, int64_t number)
{
    char text[FM_NUMBER_BYTES];
    fm_table_cell(t, FM_COLOR_NONE, number ? fm_number_of(text, unit_of(key), number) : "");
}

static void add_change(struct fm_table *t, int key, int64_t change)
{
    char text[FM_NUMBER_BYTES];
    fm_table_cell(t, fm_diff_color(change), fm_diff_number(text, unit_of(key), change));
}

static void add_compared(struct fm_table *t, int key, int64_t before, int64_t now)
{
    char text[FM_NUMBER_BYTES];
    add_number(t, key, before);
    add_number(t, key, now);
    add_change(t, key, now - before);
    fm_table_cell(t, FM_COLOR_NONE, fm_diff_ratio(text, before, now));
}

static void add_columns(struct fm_table *t)
{
    fm_table_column(t, "before", FM_TABLE_RIGHT);
    fm_table_column(t, "now", FM_TABLE_RIGHT);
    fm_table_column(t, "change", FM_TABLE_RIGHT);
    fm_table_column(t, "", FM_TABLE_RIGHT);
}

/* Of memory the page has place for what matters most; programs get all. */
static bool is_beside(const struct fm_diff *d, int key)
{
    enum fm_metric metric = fm_diff_keys[key].metric;
    return key != d->key &&
           (!d->memory || (!fm_diff_keys[key].total && !d->timed &&
                           (metric == FM_METRIC_PEAK || metric == FM_METRIC_LEAKED ||
                            metric == FM_METRIC_ALLOCATED || metric == FM_METRIC_BLOCKS)));
}

/* Did anything change that the table shows? */
static bool is_changed(const struct fm_diff *d, const struct fm_diff_row *row)
{
    for (int key = fm_diff_next_key(d, 0); key < FM_DIFF_KEYS; key = fm_diff_next_key(d, key + 1))
        if ((key == d->key || is_beside(d, key)) && fm_diff_change(row, key))
            return true;
    return false;
}

/* The rows that are shown: in the order of changes those without any come last, and are left out. */
static size_t rows_shown(const struct fm_diff *d)
{
    size_t shown = d->rows.len;
    if (d->rows_max >= 0 && (size_t)d->rows_max < shown)
        shown = (size_t)d->rows_max;
    while (d->order == FM_DIFF_BY_CHANGE && shown && !is_changed(d, &d->rows.data[shown - 1]))
        shown--;
    return shown;
}

void fm_diff_print_rows(struct fm_diff *d)
{
    struct fm_table t;
    size_t shown = rows_shown(d);
    if (!shown) {
        fputs("nothing changed\n", d->out);
        return;
    }
    fm_table_init(&t, d->style);
    add_columns(&t);
    for (int key = fm_diff_next_key(d, 0); key < FM_DIFF_KEYS; key = fm_diff_next_key(d, key + 1))
        if (is_beside(d, key))
            fm_table_column(&t, d->lines && key == FM_DIFF_CALLS ? "hits" : fm_diff_keys[key].title,
                            FM_TABLE_OPTIONAL);
    fm_table_column(&t, d->lines || d->origin[FM_BEFORE] ? "line" : "function", FM_TABLE_FLEXIBLE);
    for (size_t i = 0; i < shown; i++) {
        const struct fm_diff_row *row = &d->rows.data[i];
        fm_autobuffer own = FM_BUFFER_INIT;
        add_compared(&t, d->key, row->numbers[FM_BEFORE][d->key], row->numbers[FM_NOW][d->key]);
        for (int key = fm_diff_next_key(d, 0); key < FM_DIFF_KEYS;
             key = fm_diff_next_key(d, key + 1))
            if (is_beside(d, key))
                add_change(&t, key, fm_diff_change(row, key));
        fm_table_cell_pair(&t, FM_COLOR_NAME, fm_diff_function(d, row),
                           fm_diff_place(d, row, &own));
    }
    fm_table_print(&t, d->out);
    fm_table_release(&t);
    if (shown < d->rows.len) {
        char a[FM_NUMBER_BYTES], b[FM_NUMBER_BYTES];
        fm_autobuffer line = FM_BUFFER_INIT;
        fm_buffer_addf(&line, "%s of %s %s", fm_number_count(a, (int64_t)shown),
                       fm_number_count(b, (int64_t)d->rows.len),
                       d->lines || d->origin[FM_BEFORE] ? "lines" : "functions");
        fputc('\n', d->out);
        print_line(d, FM_COLOR_DIM, &line);
    }
}

/* ---- the tree ---- */

struct diff_page {
    struct fm_diff *d;
    struct fm_table table;
    bool calls;
};

static void add_branch(struct fm_table *t, struct fm_diff *d, const struct fm_diff_step *step)
{
    fm_autobuffer lines = FM_BUFFER_INIT, own = FM_BUFFER_INIT, text = FM_BUFFER_INIT;
    int most = d->style.width > 0 ? d->style.width / 6 : 40;
    int from = 1;
    if (step->depth > most) {
        fm_buffer_addf(&lines, "[%d] ", step->depth);
        from = step->depth - 3;
    }
    for (int n = from; n < step->depth; n++)
        fm_buffer_add_text(&lines, n < 64 && step->lasts >> n & 1 ? "  " : "│ ");
    if (step->depth > 0)
        fm_buffer_add_text(&lines,
                           step->depth < 64 && step->lasts >> step->depth & 1 ? "└ " : "├ ");
    if (step->hidden) {
        fm_buffer_addf(&text, "%u more", step->hidden);
        fm_table_cell_branch(t, FM_COLOR_DIM, fm_buffer_text(&lines), text.data, "");
    } else if (!step->row) {
        fm_table_cell(t, FM_COLOR_BOLD, "all threads");
    } else {
        fm_table_cell_branch(t, FM_COLOR_NAME, fm_buffer_text(&lines),
                             fm_diff_function(d, step->row), fm_diff_place(d, step->row, &own));
    }
}

static void show_step(const struct fm_diff_step *step, void *data)
{
    struct diff_page *page = data;
    struct fm_table *t = &page->table;
    int key = page->d->key;
    add_compared(t, key, step->total[FM_BEFORE], step->total[FM_NOW]);
    add_change(t, key, step->hidden ? 0 : step->self[FM_NOW] - step->self[FM_BEFORE]);
    if (page->calls)
        add_change(t, FM_DIFF_CALLS,
                   step->hidden ? 0 : step->calls[FM_NOW] - step->calls[FM_BEFORE]);
    add_branch(t, page->d, step);
}

void fm_diff_print_tree(struct fm_diff *d)
{
    struct diff_page page = { .d = d };
    page.calls = !d->memory && (d->all[FM_BEFORE][FM_DIFF_CALLS] || d->all[FM_NOW][FM_DIFF_CALLS]);
    fm_table_init(&page.table, d->style);
    add_columns(&page.table);
    fm_table_column(&page.table, "self", FM_TABLE_RIGHT);
    if (page.calls)
        fm_table_column(&page.table, "calls", FM_TABLE_OPTIONAL);
    fm_table_column(&page.table, "function", FM_TABLE_FLEXIBLE);
    fm_diff_walk(d, show_step, &page);
    fm_table_print(&page.table, d->out);
    fm_table_release(&page.table);
}
