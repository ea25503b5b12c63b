/*
 * The calling-context tree, one per thread: who called whom, with the time below each call, or the
 * memory that was allocated there. Shares are of all time shown. Branches that are too small are
 * summed up in one line.
 */
#include <string.h>

#include "record/model/derive/shed.h"
#include "show/report/branch.h"
#include "show/report/number.h"
#include "show/report/report.h"

struct tree_page {
    const struct fm_report *r;
    struct fm_table table;
    uint32_t *row_of; /* by function: its row in the table, for its name */
    int64_t all_ns, least_ns;
    enum fm_unit unit;
    int64_t *blocks;  /* by node, callees included, of a tree of memory; else NULL */
    int64_t *squares; /* … how far its memory may be off (FM_UNIT_ERROR); NULL if it is exact */
    int64_t *samples; /* by node, callees included; NULL if there are none */
    uint64_t metrics; /* that have a column of their own */
    bool calls;       /* are shown, perhaps beside samples */
    int indent_max;   /* deeper levels are marked by their number instead */
};

/* "│ ├ " in front of a name. */
static void add_lines(const struct tree_page *page, struct fm_buffer *name,
                      const struct fm_step *step)
{
    int from = 1;
    if (step->depth > page->indent_max) {
        fm_buffer_addf(name, "[%d] ", step->depth);
        from = step->depth - 3;
    }
    for (int d = from; d < step->depth; d++)
        fm_buffer_add_text(name, d < 64 && step->lasts >> d & 1 ? "  " : "│ ");
    if (step->depth > 0)
        fm_buffer_add_text(name, step->depth < 64 && step->lasts >> step->depth & 1 ? "└ " : "├ ");
}

static void add_thread_name(const struct fm_profile *p, uint32_t thread, struct fm_buffer *name)
{
    const struct fm_thread *t = &p->threads.data[thread];
    const char *own = fm_profile_text(p, t->name);
    if (p->processes.len > 1)
        fm_buffer_addf(name, "process %u ", p->processes.data[t->process].pid);
    fm_buffer_addf(name, "thread %u", t->tid);
    if (*own)
        fm_buffer_addf(name, " %s", own);
}

static void show_hidden(struct tree_page *page, const struct fm_step *step)
{
    fm_autobuffer lines = FM_BUFFER_INIT;
    char text[FM_NUMBER_BYTES];
    struct fm_table *t = &page->table;
    fm_table_cell(t, FM_COLOR_DIM, fm_number_of(text, page->unit, step->hidden_ns));
    if (page->squares)
        fm_table_cell(t, FM_COLOR_DIM, "");
    fm_table_cell(t, FM_COLOR_DIM,
                  fm_number_percent(text, (double)step->hidden_ns, (double)page->all_ns));
    fm_table_cell(t, FM_COLOR_DIM, "");
    for (int i = page->calls + (page->blocks != NULL) + (page->samples != NULL); i > 0; i--)
        fm_table_cell(t, FM_COLOR_DIM, "");
    fm_metric_cells_empty(t, page->metrics);
    add_lines(page, &lines, step);
    snprintf(text, sizeof text, "%u more", step->hidden);
    fm_table_cell_branch(t, FM_COLOR_DIM, fm_buffer_text(&lines), text, "");
}

static void show_step(const struct fm_branches *b, const struct fm_step *step, void *data)
{
    struct tree_page *page = data;
    const struct fm_profile *p = b->p;
    const struct fm_node *node = &p->nodes.data[step->node];
    fm_autobuffer lines = FM_BUFFER_INIT, thread = FM_BUFFER_INIT;
    char text[FM_NUMBER_BYTES];
    struct fm_table *t = &page->table;
    if (step->hidden) {
        show_hidden(page, step);
        return;
    }
    int64_t total = b->total_ns[step->node], self = b->self_ns[step->node];
    fm_table_cell(t, FM_COLOR_NONE, fm_number_of(text, page->unit, total));
    if (page->squares)
        fm_table_cell(t, FM_COLOR_DIM,
                      fm_number_bytes(text, fm_profile_error_bytes(p, page->squares[step->node])));
    fm_table_cell(t, fm_color_heat((double)total, (double)page->all_ns),
                  fm_number_percent(text, (double)total, (double)page->all_ns));
    fm_table_cell(t, FM_COLOR_NONE,
                  step->depth || self ? fm_number_of(text, page->unit, self) : "");
    int64_t calls = fm_profile_value(p, FM_METRIC_CALLS, step->node) +
                    fm_profile_value(p, FM_METRIC_RESUMES, step->node);
    if (page->calls)
        fm_table_cell(t, FM_COLOR_NONE,
                      step->depth && (calls || !page->samples) ? fm_number_count(text, calls) : "");
    if (page->blocks)
        fm_table_cell(t, FM_COLOR_NONE, fm_number_count(text, page->blocks[step->node]));
    if (page->samples)
        fm_table_cell(t, FM_COLOR_NONE, fm_number_count(text, page->samples[step->node]));
    int64_t self_numbers[FM_METRIC_COUNT], total_numbers[FM_METRIC_COUNT];
    fm_node_numbers_get(&b->numbers, step->node, self_numbers, total_numbers);
    fm_metric_cells(t, page->metrics, self_numbers, total_numbers);
    add_lines(page, &lines, step);
    uint32_t row = page->row_of[node->func];
    if (!step->depth) {
        add_thread_name(p, node->thread, &thread);
        fm_table_cell(t, FM_COLOR_BOLD, thread.data);
    } else if (row == FM_NONE) { /* nothing was recorded but that it was there */
        fm_table_cell_branch(t, FM_COLOR_NAME, lines.data,
                             fm_profile_text(p, p->functions.data[node->func].name), "");
    } else {
        fm_table_cell_branch(t, FM_COLOR_NAME, lines.data, fm_names_function(page->r->names, row),
                             fm_names_place(page->r->names, row));
    }
}

static void add_columns(struct tree_page *page)
{
    fm_table_init(&page->table, page->r->style);
    fm_table_column(&page->table, "total", FM_TABLE_RIGHT);
    if (page->squares)
        fm_memory_error_column(&page->table, page->r->p, page->r->memory.at->bytes);
    fm_table_column(&page->table, "%", FM_TABLE_RIGHT);
    fm_table_column(&page->table, "self", FM_TABLE_RIGHT);
    if (page->calls)
        fm_table_column(&page->table, "calls", FM_TABLE_RIGHT);
    if (page->blocks)
        fm_table_column(&page->table, "blocks", FM_TABLE_RIGHT);
    if (page->samples)
        fm_table_column(&page->table, "samples", FM_TABLE_RIGHT);
    fm_metric_columns(&page->table, page->metrics);
    fm_table_column(&page->table, "function", FM_TABLE_FLEXIBLE);
}

/* Threads that are known by their memory alone have no time, and others no memory at this instant. */
static bool is_empty(const struct fm_branches *b, uint32_t thread, bool of_memory)
{
    uint32_t root = b->p->threads.data[thread].root;
    bool leaf = b->start[root] == b->start[root + 1];
    return !fm_branches_weight(b, root) && (of_memory || (leaf && fm_profile_has_memory(b->p)));
}

void fm_report_tree(const struct fm_report *r)
{
    struct tree_page page = { .r = r, .indent_max = r->style.width > 0 ? r->style.width / 6 : 40 };
    const struct fm_instant_info *at = r->memory.at;
    struct fm_branches b;
    int64_t weight = 0;
    page.calls = !r->flat->states && !at;
    page.unit = at ? FM_UNIT_BYTES : FM_UNIT_NS;
    if (r->flat->states || r->flat->beside)
        page.samples = fm_profile_totals_new(r->p, FM_METRIC_SAMPLES);
    if (at) {
        page.blocks = fm_profile_totals_new(r->p, at->blocks);
        if (fm_memory_has_error(r->p, at->bytes))
            page.squares = fm_profile_totals_new(r->p, fm_metric_error(at->bytes));
        fm_branches_init_of(&b, r->p, at->bytes);
    } else {
        fm_branches_init(&b, r->p);
    }
    page.metrics = b.numbers.metrics;
    page.row_of = fm_malloc(r->p->functions.len * sizeof *page.row_of);
    memset(page.row_of, 0xff, r->p->functions.len * sizeof *page.row_of); /* FM_NONE */
    for (uint32_t i = 0; i < r->flat->rows.len; i++)
        page.row_of[r->flat->rows.data[i].func] = i;
    add_columns(&page);
    for (uint32_t i = 0; i < r->p->threads.len; i++) {
        uint32_t root = r->p->threads.data[i].root;
        if (!fm_branches_shows(r->p, &r->scope, i))
            continue;
        page.all_ns += b.total_ns[root];
        weight = fm_sum(weight, fm_branches_weight(&b, root));
    }
    page.least_ns = (int64_t)((double)weight * r->min_percent / 100);
    if (at && page.least_ns < 1)
        page.least_ns = 1; /* what has nothing at this instant */
    for (uint32_t i = 0; i < r->p->threads.len; i++) {
        if (fm_branches_shows(r->p, &r->scope, i) && !is_empty(&b, i, at))
            fm_branches_walk(&b, i, r->depth_max, page.least_ns, show_step, &page);
    }
    fm_table_print(&page.table, r->out);
    fm_table_release(&page.table);
    free(page.row_of);
    free(page.blocks);
    free(page.squares);
    free(page.samples);
    fm_branches_release(&b);
}
