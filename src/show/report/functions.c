/*
 * The table of functions: where the time went.
 *
 * Shares are of all time recorded in the processes and threads shown: the sum of all self times and,
 * of samples, of those that showed no Python frame; a line below the table says how many.
 * Columns about generators and coroutines appear only when a row has something to say there, those
 * of further metrics when the recording has.
 *
 * Of samples there are no calls; instead there is how many ended in the function, how far the share
 * may be off, and what the threads were doing then. Where both were recorded, calls and times are
 * exact and the samples add what the threads were doing.
 */
#include "show/report/metric.h"
#include "show/report/number.h"
#include "show/report/report.h"
#include "show/report/samples/sampling.h"

static void add_time(struct fm_table *t, int64_t ns)
{
    char text[FM_NUMBER_BYTES];
    fm_table_cell(t, FM_COLOR_NONE, fm_number_time(text, ns));
}

static void add_percent(struct fm_table *t, int64_t part, int64_t whole)
{
    char text[FM_NUMBER_BYTES];
    fm_table_cell(t, fm_color_heat((double)part, (double)whole),
                  fm_number_percent(text, (double)part, (double)whole));
}

static void add_row(struct fm_table *t, const struct fm_report *r, uint32_t row, int64_t all_ns,
                    bool suspends)
{
    const struct fm_flat_row *f = &r->flat->rows.data[row];
    char text[FM_NUMBER_BYTES];
    fm_table_cell(t, FM_COLOR_NONE, fm_number_calls(text, f->calls, f->primitive));
    add_time(t, f->self_ns);
    add_percent(t, f->self_ns, all_ns);
    add_time(t, f->total_ns);
    add_percent(t, f->total_ns, all_ns);
    if (f->primitive)
        add_time(t, (int64_t)fm_flat_per_call_ns(f));
    else
        fm_table_cell(t, FM_COLOR_NONE, "");
    if (suspends) {
        fm_table_cell(t, FM_COLOR_NONE, f->resumes ? fm_number_count(text, f->resumes) : "");
        fm_table_cell(t, FM_COLOR_NONE,
                      f->suspended_ns ? fm_number_time(text, f->suspended_ns) : "");
    }
    fm_metric_cells(t, r->flat->columns, f->self, f->total);
    if (r->flat->beside)
        fm_states_cell(t, f->state_ns);
    fm_table_cell_pair(t, FM_COLOR_NAME, fm_names_function(r->names, row),
                       fm_names_place(r->names, row));
}

/* "6.0 ms (5.7 %) in no Python function", so that the shares add up. */
static void print_outside(const struct fm_report *r)
{
    char time[FM_NUMBER_BYTES], percent[FM_NUMBER_BYTES];
    int64_t ns = r->flat->outside.self_ns;
    if (ns <= 0)
        return;
    fm_color_begin(&r->style, r->out, FM_COLOR_DIM);
    fprintf(r->out, "\n%s (%s %%) in no Python function", fm_number_time(time, ns),
            fm_number_percent(percent, (double)ns, (double)fm_flat_total(r->flat).self_ns));
    fm_color_end(&r->style, r->out, FM_COLOR_DIM);
    fputc('\n', r->out);
}

static void print_count(const struct fm_report *r)
{
    size_t shown = r->selection.rows.len, all = r->flat->rows.len;
    char a[FM_NUMBER_BYTES], b[FM_NUMBER_BYTES];
    if (shown >= all)
        return;
    fm_color_begin(&r->style, r->out, FM_COLOR_DIM);
    fprintf(r->out, "\n%s of %s functions", fm_number_count(a, (int64_t)shown),
            fm_number_count(b, (int64_t)all));
    fm_color_end(&r->style, r->out, FM_COLOR_DIM);
    fputc('\n', r->out);
}

/* ---- of samples ---- */

static void add_sampled_row(struct fm_table *t, const struct fm_report *r, uint32_t row,
                            const struct fm_flat_total *all, const struct fm_sampling *sampling)
{
    const struct fm_flat_row *f = &r->flat->rows.data[row];
    char text[FM_NUMBER_BYTES];
    add_time(t, f->self_ns);
    add_percent(t, f->self_ns, all->self_ns);
    fm_table_cell(t, FM_COLOR_DIM,
                  fm_sampling_write_error(text, sampling, f->samples, all->samples));
    add_time(t, f->total_ns);
    add_percent(t, f->total_ns, all->self_ns);
    fm_table_cell(t, FM_COLOR_NONE, fm_number_count(text, f->samples));
    fm_metric_cells(t, r->flat->columns, f->self, f->total);
    fm_states_cell(t, f->state_ns);
    fm_table_cell_pair(t, FM_COLOR_NAME, fm_names_function(r->names, row),
                       fm_names_place(r->names, row));
}

static void report_sampled(const struct fm_report *r)
{
    struct fm_table t;
    struct fm_flat_total all = fm_flat_total(r->flat);
    int64_t states[FM_STATE_COUNT] = { 0 };
    struct fm_sampling sampling = fm_sampling_of(r->p, &r->scope);
    fm_table_init(&t, r->style);
    fm_table_column(&t, "self", FM_TABLE_RIGHT);
    fm_table_column(&t, "%", FM_TABLE_RIGHT);
    fm_table_column(&t, "±", FM_TABLE_RIGHT);
    fm_table_column(&t, "total", FM_TABLE_RIGHT);
    fm_table_column(&t, "%", FM_TABLE_RIGHT);
    fm_table_column(&t, "samples", FM_TABLE_OPTIONAL);
    fm_metric_columns(&t, r->flat->columns);
    fm_table_column(&t, "states", FM_TABLE_LEFT);
    fm_table_column(&t, "function", FM_TABLE_FLEXIBLE);
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        uint32_t row = r->selection.rows.data[i];
        fm_states_add(states, r->flat->rows.data[row].state_ns);
        add_sampled_row(&t, r, row, &all, &sampling);
    }
    fm_table_print(&t, r->out);
    fm_table_release(&t);
    fm_states_print_legend(&r->style, r->out, states);
    print_outside(r);
    print_count(r);
}

/* ---- of calls ---- */

void fm_report_functions(const struct fm_report *r)
{
    struct fm_table t;
    bool suspends = false;
    size_t shown = r->selection.rows.len;
    if (r->flat->states) {
        report_sampled(r);
        return;
    }
    for (size_t i = 0; i < shown; i++) {
        const struct fm_flat_row *f = &r->flat->rows.data[r->selection.rows.data[i]];
        suspends = suspends || f->resumes || f->suspended_ns;
    }
    fm_table_init(&t, r->style);
    fm_table_column(&t, r->flat->sampled ? "samples" : "calls", FM_TABLE_RIGHT);
    fm_table_column(&t, "self", FM_TABLE_RIGHT);
    fm_table_column(&t, "%", FM_TABLE_RIGHT);
    fm_table_column(&t, "total", FM_TABLE_RIGHT);
    fm_table_column(&t, "%", FM_TABLE_RIGHT);
    fm_table_column(&t, "per call", FM_TABLE_OPTIONAL);
    if (suspends) {
        fm_table_column(&t, "resumes", FM_TABLE_RIGHT);
        fm_table_column(&t, "suspended", FM_TABLE_RIGHT);
    }
    fm_metric_columns(&t, r->flat->columns);
    if (r->flat->beside)
        fm_table_column(&t, "states", FM_TABLE_LEFT);
    fm_table_column(&t, "function", FM_TABLE_FLEXIBLE);
    int64_t all_ns = fm_flat_total(r->flat).self_ns, states[FM_STATE_COUNT] = { 0 };
    for (size_t i = 0; i < shown; i++) {
        add_row(&t, r, r->selection.rows.data[i], all_ns, suspends);
        fm_states_add(states, r->flat->rows.data[r->selection.rows.data[i]].state_ns);
    }
    fm_table_print(&t, r->out);
    fm_table_release(&t);
    if (r->flat->beside)
        fm_states_print_legend(&r->style, r->out, states);
    print_outside(r);
    print_count(r);
}
