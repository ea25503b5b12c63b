/*
 * What threads and functions were doing, one column per state: first each thread, then each
 * function shown. Numbers are percent of the row's own time, so a row adds up to 100; states that
 * occur nowhere have no column. Time is of the functions themselves, without what they called.
 */
#include "show/report/branch.h"
#include "show/report/report.h"
#include "show/report/samples/sampling.h"

static void add_state_columns(struct fm_table *t, const bool used[FM_STATE_COUNT])
{
    fm_table_column(t, "time", FM_TABLE_RIGHT);
    fm_table_column(t, "samples", FM_TABLE_OPTIONAL);
    for (int s = 0; s < FM_STATE_COUNT; s++)
        if (used[s])
            fm_table_column(t, fm_state_name((enum fm_state)s), FM_TABLE_RIGHT);
}

static void add_state_cells(struct fm_table *t, int64_t samples,
                            const int64_t state_ns[FM_STATE_COUNT], const bool used[FM_STATE_COUNT])
{
    char text[FM_NUMBER_BYTES];
    int64_t sum = fm_states_sum(state_ns);
    fm_table_cell(t, FM_COLOR_NONE, fm_number_time(text, sum));
    fm_table_cell(t, FM_COLOR_NONE, fm_number_count(text, samples));
    for (int s = 0; s < FM_STATE_COUNT; s++)
        if (used[s])
            fm_table_cell(t, fm_color_heat((double)state_ns[s], (double)sum),
                          fm_number_percent(text, (double)state_ns[s], (double)sum));
}

static void add_thread(struct fm_table *t, const struct fm_report *r, uint32_t thread,
                       const struct fm_thread_states *states, const bool used[FM_STATE_COUNT])
{
    const struct fm_thread *own = &r->p->threads.data[thread];
    fm_autobuffer id = FM_BUFFER_INIT;
    const char *name = fm_profile_text(r->p, own->name);
    add_state_cells(t, states->samples, states->state_ns, used);
    if (r->p->processes.len > 1)
        fm_buffer_addf(&id, "%u/", r->p->processes.data[own->process].pid);
    fm_buffer_addf(&id, "%u", own->tid);
    fm_table_cell_pair(t, FM_COLOR_NAME, *name ? name : id.data, *name ? id.data : "");
}

static void print_threads(const struct fm_report *r, const struct fm_thread_states *states,
                          const bool used[FM_STATE_COUNT])
{
    struct fm_table t;
    fm_table_init(&t, r->style);
    add_state_columns(&t, used);
    fm_table_column(&t, "thread", FM_TABLE_FLEXIBLE);
    for (uint32_t i = 0; i < r->p->threads.len; i++)
        if (fm_branches_shows(r->p, &r->scope, i) && fm_states_sum(states[i].state_ns) > 0)
            add_thread(&t, r, i, &states[i], used);
    fm_table_print(&t, r->out);
    fm_table_release(&t);
}

static void print_functions(const struct fm_report *r, const bool used[FM_STATE_COUNT])
{
    struct fm_table t;
    fm_table_init(&t, r->style);
    add_state_columns(&t, used);
    fm_table_column(&t, "function", FM_TABLE_FLEXIBLE);
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        uint32_t row = r->selection.rows.data[i];
        const struct fm_flat_row *f = &r->flat->rows.data[row];
        if (fm_states_sum(f->state_ns) <= 0)
            continue;
        add_state_cells(&t, f->samples, f->state_ns, used);
        fm_table_cell_pair(&t, FM_COLOR_NAME, fm_names_function(r->names, row),
                           fm_names_place(r->names, row));
    }
    fm_table_print(&t, r->out);
    fm_table_release(&t);
}

void fm_report_states(const struct fm_report *r)
{
    fm_autofree struct fm_thread_states *states = fm_thread_states_new(r->p);
    bool used[FM_STATE_COUNT] = { false };
    for (uint32_t i = 0; i < r->p->threads.len; i++)
        for (int s = 0; s < FM_STATE_COUNT && fm_branches_shows(r->p, &r->scope, i); s++)
            used[s] = used[s] || states[i].state_ns[s] > 0;
    print_threads(r, states, used);
    fputc('\n', r->out);
    print_functions(r, used);
}
