/*
 * Callers and callees of each function shown, sorted by the query's keys and limited per function.
 * Shares are of the function's own total: how much of it came from this caller, or went into that
 * callee. An edge of which only the calls are known has no times.
 */
#include "record/model/derive/label.h"
#include "show/report/edges.h"
#include "show/report/metric.h"
#include "show/report/number.h"

static void add_columns(struct fm_table *t, const struct fm_report *r, enum fm_direction direction)
{
    fm_table_column(t, r->flat->states ? "samples" : "calls", FM_TABLE_RIGHT);
    fm_table_column(t, "self", FM_TABLE_RIGHT);
    fm_table_column(t, "total", FM_TABLE_RIGHT);
    fm_table_column(t, "%", FM_TABLE_RIGHT);
    fm_metric_columns(t, r->flat->columns);
    fm_table_column(t,
                    direction == FM_CALLERS ? "function ← its callers" : "function → its callees",
                    FM_TABLE_FLEXIBLE);
}

static void add_function(struct fm_table *t, const struct fm_report *r, uint32_t row)
{
    const struct fm_flat_row *f = &r->flat->rows.data[row];
    char text[FM_NUMBER_BYTES];
    fm_table_cell(t, FM_COLOR_BOLD,
                  r->flat->states ? fm_number_count(text, f->total_samples)
                                  : fm_number_calls(text, f->calls, f->primitive));
    fm_table_cell(t, FM_COLOR_BOLD, fm_number_time(text, f->self_ns));
    fm_table_cell(t, FM_COLOR_BOLD, fm_number_time(text, f->total_ns));
    fm_table_cell(t, FM_COLOR_NONE, "");
    fm_metric_cells(t, r->flat->columns, f->self, f->total);
    fm_table_cell_pair(t, FM_COLOR_BOLD, fm_names_function(r->names, row),
                       fm_names_place(r->names, row));
}

static void add_edge(struct fm_table *t, const struct fm_report *r, const struct fm_edges *edges,
                     const struct fm_flat_edge *e, int64_t whole_ns)
{
    char text[FM_NUMBER_BYTES];
    const char *arrow = edges->direction == FM_CALLERS ? "  ← " : "  → ";
    uint32_t other = fm_edges_other(edges, e);
    bool counts_only = fm_edge_counts_only(e);
    fm_table_cell(t, FM_COLOR_NONE,
                  r->flat->states
                      ? fm_number_count(text, e->total_samples)
                      : fm_number_calls(text, e->calls, counts_only ? e->calls : e->primitive));
    fm_table_cell(t, FM_COLOR_NONE, counts_only ? "" : fm_number_time(text, e->self_ns));
    fm_table_cell(t, FM_COLOR_NONE, counts_only ? "" : fm_number_time(text, e->total_ns));
    fm_table_cell(t, fm_color_heat((double)e->total_ns, (double)whole_ns),
                  fm_number_percent(text, (double)e->total_ns, (double)whole_ns));
    fm_metric_cells(t, r->flat->columns, e->self, e->total);
    fm_table_cell_branch(t, FM_COLOR_NAME, arrow, fm_names_function(r->names, other),
                         fm_names_place(r->names, other));
}

/* One line for the edges that are not shown. Their totals may overlap in time, so they are not
 * added up. */
static void add_rest(struct fm_table *t, const struct fm_report *r, const struct fm_flat_edge *e,
                     size_t n)
{
    int64_t calls = 0, self_ns = 0;
    char text[FM_NUMBER_BYTES];
    fm_autobuffer name = FM_BUFFER_INIT;
    for (size_t i = 0; i < n; i++) {
        calls += r->flat->states ? 0 : e[i].calls;
        self_ns += e[i].self_ns;
    }
    fm_buffer_addf(&name, "    %s more", fm_number_count(text, (int64_t)n));
    fm_table_cell(t, FM_COLOR_DIM, r->flat->states ? "" : fm_number_count(text, calls));
    fm_table_cell(t, FM_COLOR_DIM, fm_number_time(text, self_ns));
    fm_table_cell(t, FM_COLOR_DIM, "");
    fm_table_cell(t, FM_COLOR_DIM, "");
    fm_metric_cells_empty(t, r->flat->columns);
    fm_table_cell(t, FM_COLOR_DIM, name.data);
}

void fm_report_edges(const struct fm_report *r, enum fm_direction direction)
{
    struct fm_edges edges;
    struct fm_table t;
    fm_edges_init(&edges, r->flat, direction);
    fm_table_init(&t, r->style);
    add_columns(&t, r, direction);
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        uint32_t row = r->selection.rows.data[i];
        size_t n, shown;
        struct fm_flat_edge *all = fm_edges_of(&edges, row, &n);
        int64_t whole_ns = r->flat->rows.data[row].total_ns;
        shown = r->edges_max >= 0 && (size_t)r->edges_max < n ? (size_t)r->edges_max : n;
        fm_query_sort_edges(r->query, r->names, all, n, direction == FM_CALLERS);
        add_function(&t, r, row);
        for (size_t k = 0; k < shown; k++)
            add_edge(&t, r, &edges, &all[k], whole_ns);
        if (shown < n)
            add_rest(&t, r, all + shown, n - shown);
    }
    fm_table_print(&t, r->out);
    fm_table_release(&t);
    fm_edges_release(&edges);
}
