/* The hottest lines, for people; see hotlines.h for which they are. */
#include <string.h>

#include "show/report/lines/hotlines.h"
#include "show/report/samples/sampling.h"

static double rank_by(enum fm_sort_field field, const struct fm_line *row)
{
    switch (field) {
    case FM_SORT_CALLS:
    case FM_SORT_PRIMITIVE:
        return (double)(row->hits ? row->hits : row->samples);
    case FM_SORT_TOTAL:
    case FM_SORT_TIME:
        return (double)row->total_ns;
    case FM_SORT_PERCALL:
        return row->hits > 0 ? (double)row->total_ns / (double)row->hits : 0;
    case FM_SORT_MIN:
        return (double)row->min_ns;
    case FM_SORT_MAX:
        return (double)row->max_ns;
    case FM_SORT_SUSPENDED:
        return (double)row->suspended_ns;
    default:
        if (field >= FM_SORT_METRICS + 2 * FM_METRIC_STATES)
            return (double)row->state_ns[(field - FM_SORT_METRICS) / 2 - FM_METRIC_STATES];
        return (double)row->self_ns;
    }
}

struct order {
    enum fm_sort_field field;
    bool reverse;
};

static int compare(const void *left, const void *right, void *data)
{
    const struct fm_hotline *a = left, *b = right;
    const struct order *order = data;
    double x = rank_by(order->field, a->row), y = rank_by(order->field, b->row);
    if (x != y)
        return (x > y) != order->reverse ? -1 : 1;
    if (a->row->total_ns != b->row->total_ns)
        return a->row->total_ns > b->row->total_ns ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

void fm_hotlines_init(struct fm_hotlines *hot, const struct fm_report *r)
{
    struct order order = { r->query->sorts.len ? r->query->sorts.data[0] : FM_SORT_SELF,
                           r->query->reverse };
    memset(hot, 0, sizeof *hot);
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        uint32_t index = r->selection.rows.data[i];
        const struct fm_linetable *table = &r->lines->all.data[index];
        for (size_t k = 0; k < table->n; k++) {
            if (fm_line_ran(r->lines, &table->rows[k]))
                fm_vec_push(&hot->all, ((struct fm_hotline){ index, &table->rows[k] }));
        }
    }
    if (hot->all.len)
        qsort_r(hot->all.data, hot->all.len, sizeof *hot->all.data, compare, &order);
    hot->of = hot->all.len;
    if (r->view.hot_max >= 0 && hot->all.len > (size_t)r->view.hot_max)
        hot->all.len = (size_t)r->view.hot_max;
}

void fm_hotlines_release(struct fm_hotlines *hot)
{
    fm_vec_release(&hot->all);
}

const char *fm_hotline_text(const struct fm_report *r, const struct fm_hotline *line,
                            struct fm_buffer *out)
{
    const char *why;
    const struct fm_text *text = fm_texts_find(r->lines->texts, line->row->func, &why);
    fm_buffer_clear(out);
    if (text && line->row->line >= 1 && line->row->line <= fm_text_count(text))
        fm_text_show(text, line->row->line, out);
    const char *shown = fm_buffer_text(out);
    return shown + strspn(shown, " ");
}

/* One scale for both times: they are read against each other. */
static struct fm_scale scale_of(const struct fm_report *r, const struct fm_hotlines *hot)
{
    double max = 0;
    for (size_t i = 0; i < hot->all.len; i++) {
        double time = (double)hot->all.data[i].row->total_ns;
        max = time > max ? time : max;
    }
    return fm_scale_for(r->view.unit, max);
}

/* Is the time in the lines themselves another than with callees? */
static bool has_self(const struct fm_hotlines *hot)
{
    for (size_t i = 0; i < hot->all.len; i++) {
        const struct fm_line *row = hot->all.data[i].row;
        if ((double)(row->total_ns - row->self_ns) > (double)row->total_ns * 0.01)
            return true;
    }
    return false;
}

static void add_time(struct fm_table *t, const struct fm_report *r, const struct fm_scale *scale,
                     int64_t ns)
{
    char number[FM_NUMBER_BYTES];
    double part = (double)ns, whole = (double)r->lines->program_ns;
    fm_table_cell(t, FM_COLOR_NONE, fm_scale_write(scale, number, part));
    fm_table_cell(t, fm_color_heat(part, whole), fm_number_percent(number, part, whole));
}

static void add_row(struct fm_table *t, const struct fm_report *r, const struct fm_hotline *line,
                    const struct fm_scale *scale, bool with_self)
{
    fm_autobuffer text = FM_BUFFER_INIT, place = FM_BUFFER_INIT;
    char number[FM_NUMBER_BYTES];
    if (with_self)
        add_time(t, r, scale, line->row->self_ns);
    add_time(t, r, scale, line->row->total_ns);
    int64_t seen = r->lines->sampled ? line->row->samples : line->row->hits;
    bool unknown = r->lines->beside && !seen; /* the function's lines were not recorded */
    fm_table_cell(t, FM_COLOR_NONE, unknown ? "" : fm_number_count(number, seen));
    if (r->lines->sampled || r->lines->beside)
        fm_states_cell(t, line->row->state_ns);
    fm_buffer_addf(&place, "%s:%u", fm_names_file(r->names, line->table), line->row->line);
    fm_table_cell(t, FM_COLOR_DIM, place.data);
    fm_table_cell_pair(t, FM_COLOR_NONE, fm_hotline_text(r, line, &text),
                       fm_names_function(r->names, line->table));
}

static void print_count(const struct fm_report *r, const struct fm_hotlines *hot)
{
    char a[FM_NUMBER_BYTES], b[FM_NUMBER_BYTES];
    if (hot->all.len == hot->of)
        return;
    fm_color_begin(&r->style, r->out, FM_COLOR_DIM);
    fprintf(r->out, "\n%s of %s lines that ran", fm_number_count(a, (int64_t)hot->all.len),
            fm_number_count(b, (int64_t)hot->of));
    fm_color_end(&r->style, r->out, FM_COLOR_DIM);
    fputc('\n', r->out);
}

void fm_report_hot(const struct fm_report *r)
{
    struct fm_hotlines hot;
    struct fm_table t;
    char self_title[32], time_title[32];
    int64_t states[FM_STATE_COUNT] = { 0 };
    fm_hotlines_init(&hot, r);
    struct fm_scale scale = scale_of(r, &hot);
    bool with_self = has_self(&hot);
    snprintf(self_title, sizeof self_title, "Self %s", scale.unit);
    snprintf(time_title, sizeof time_title, "Time %s", scale.unit);
    fm_table_init(&t, r->style);
    if (with_self) {
        fm_table_column(&t, self_title, FM_TABLE_RIGHT);
        fm_table_column(&t, "%", FM_TABLE_RIGHT);
    }
    fm_table_column(&t, time_title, FM_TABLE_RIGHT);
    fm_table_column(&t, "%", FM_TABLE_RIGHT);
    bool states_shown = r->lines->sampled || r->lines->beside;
    if (r->lines->sampled)
        fm_table_column(&t, "Samples", FM_TABLE_OPTIONAL);
    else
        fm_table_column(&t, "Hits", FM_TABLE_RIGHT);
    if (states_shown)
        fm_table_column(&t, "States", FM_TABLE_LEFT);
    fm_table_column(&t, "Line", FM_TABLE_LEFT);
    fm_table_column(&t, "Line Contents", FM_TABLE_TEXT);
    for (size_t i = 0; i < hot.all.len; i++) {
        add_row(&t, r, &hot.all.data[i], &scale, with_self);
        fm_states_add(states, hot.all.data[i].row->state_ns);
    }
    fm_table_print(&t, r->out);
    if (states_shown)
        fm_states_print_legend(&r->style, r->out, states);
    print_count(r, &hot);
    fm_table_release(&t);
    fm_hotlines_release(&hot);
}
