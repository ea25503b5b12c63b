/*
 * The timeline as a picture of letters: a row for each thread, a letter for the function that was open in most of
 * a column of it (phases.h), what the letters mean below. A capital letter runs, a small one waits.
 */
#include "show/report/timeline/timeline.h"

#include <math.h>
#include <string.h>

#include "base/clean.h"
#include "show/report/number.h"

#define PAGE_WIDTH 100 /* of a file */
#define NAME_MOST  24
#define LEAST      20 /* columns, however narrow the page is */

static const char *thread_name(const struct fm_report *r, const struct fm_lane *lane)
{
    return fm_profile_text(r->p, r->p->threads.data[lane->thread].name);
}

void fm_timeline_lane_name(const struct fm_report *r, const struct fm_lane *lane,
                           struct fm_buffer *out)
{
    const char *name = thread_name(r, lane);
    if (r->p->processes.len > 1)
        fm_buffer_addf(out, "%u ", r->p->processes.data[lane->process].pid);
    if (*name)
        fm_buffer_add_text(out, name);
    else
        fm_buffer_addf(out, "thread %u", r->p->threads.data[lane->thread].tid);
}

void fm_timeline_instant(struct fm_buffer *out, uint64_t ns, uint64_t step_ns)
{
    static const struct {
        uint64_t ns;
        const char *unit;
    } units[] = { { 1000000000u, "s" }, { 1000000u, "ms" }, { 1000u, "µs" }, { 1u, "ns" } };
    size_t u = 0;
    int digits = 0;
    while (u + 1 < FM_COUNT(units) && step_ns < units[u].ns / 10)
        u++;
    for (uint64_t part = units[u].ns; digits < 3 && step_ns % part && part > 1; part /= 10)
        digits++;
    fm_buffer_addf(out, "%.*f %s", digits, (double)ns / (double)units[u].ns, units[u].unit);
}

int fm_timeline_phases(const struct fm_report *r, uint32_t columns, struct fm_phases *ph,
                       struct fm_error *err)
{
    *ph = (struct fm_phases){ .from_ns = r->range.from_ns,
                              .to_ns = r->range.to_ns,
                              .columns = columns };
    return fm_phases_find(ph, r->timeline, &r->scope, err);
}

/* --- the axis --------------------------------------------------------------------------------- */

/* A step of 1, 2 or 5 that leaves room for numbers. */
static uint64_t step_of(const struct fm_phases *ph)
{
    double least = (double)(ph->to_ns - ph->from_ns) / ph->columns * 12;
    double step = pow(10, floor(log10(least > 1 ? least : 1)));
    if (step * 2 >= least)
        step *= step >= least ? 1 : 2;
    else
        step *= step * 5 >= least ? 5 : 10;
    return (uint64_t)step;
}

static void put_spaces(FILE *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fputc(' ', out);
}

static void put_axis(const struct fm_report *r, const struct fm_phases *ph, size_t names)
{
    uint64_t step_ns = step_of(ph);
    fm_autobuffer text = FM_BUFFER_INIT;
    size_t at = 0;
    put_spaces(r->out, names + 2);
    fm_color_begin(&r->style, r->out, FM_COLOR_DIM);
    for (uint64_t ns = (ph->from_ns + step_ns - 1) / step_ns * step_ns; ns <= ph->to_ns;
         ns += step_ns) {
        size_t column =
            (size_t)((double)(ns - ph->from_ns) / (double)(ph->to_ns - ph->from_ns) * ph->columns);
        fm_buffer_clear(&text);
        fm_buffer_add_text(&text, "╵");
        fm_timeline_instant(&text, ns, step_ns);
        size_t width = fm_text_width(text.data, text.len);
        if (column < at || column + width > ph->columns)
            continue;
        put_spaces(r->out, column - at);
        fputs(fm_buffer_text(&text), r->out);
        at = column + width;
    }
    fm_color_end(&r->style, r->out, FM_COLOR_DIM);
    fputc('\n', r->out);
}

/* --- rows ------------------------------------------------------------------------------------- */

static bool waits(const struct fm_phase_column *column)
{
    return column->state < FM_STATE_COUNT && !fm_state_is_running((enum fm_state)column->state);
}

static enum fm_color color_of(size_t name, bool wait)
{
    if (name >= FM_PHASE_COLORS)
        return FM_COLOR_DIM;
    return (enum fm_color)((wait ? FM_COLOR_WAIT : FM_COLOR_PHASE) + (int)name);
}

/* Beyond the names with a letter there is a dot. */
static void put_column(const struct fm_report *r, size_t name, bool wait)
{
    if (name < FM_PHASE_COLORS)
        fputc((wait ? 'a' : 'A') + (int)name, r->out);
    else
        fputs("·", r->out);
}

static void put_columns(const struct fm_report *r, const struct fm_phases *ph,
                        const struct fm_phase_lane *lane)
{
    enum fm_color color = FM_COLOR_NONE;
    for (uint32_t i = 0; i < ph->columns; i++) {
        const struct fm_phase_column *column = &lane->columns[i];
        bool empty = column->func == FM_NONE, wait = waits(column);
        size_t name = empty ? 0 : fm_phases_name(ph, column->func);
        enum fm_color own = column->lost ? FM_COLOR_WARN
                            : empty      ? FM_COLOR_NONE
                                         : color_of(name, wait);
        if (own != color) {
            fm_color_end(&r->style, r->out, color);
            fm_color_begin(&r->style, r->out, own);
            color = own;
        }
        if (column->lost)
            fputc('!', r->out);
        else if (empty)
            fputc(' ', r->out);
        else
            put_column(r, name, wait);
    }
    fm_color_end(&r->style, r->out, color);
}

/* A name in `width` columns, cut at its end. */
static void put_name(const struct fm_report *r, const char *name, size_t width)
{
    fm_autobuffer clean = FM_BUFFER_INIT;
    fm_clean_add(&clean, name, strlen(name));
    size_t len = clean.len, own = fm_text_width(clean.data, len);
    if (own > width) {
        while (len && fm_text_width(clean.data, len) + 1 > width)
            for (len--; len && ((unsigned char)clean.data[len] & 0xc0) == 0x80;)
                len--;
        fwrite(clean.data, 1, len, r->out);
        fputs("…", r->out);
        own = fm_text_width(clean.data, len) + 1;
    } else if (len) {
        fwrite(clean.data, 1, len, r->out);
    }
    put_spaces(r->out, width - own);
}

static size_t lanes_shown(const struct fm_report *r, size_t lanes)
{
    return r->rows_max < 0 || lanes < (size_t)r->rows_max ? lanes : (size_t)r->rows_max;
}

static size_t names_width(const struct fm_report *r, size_t lanes)
{
    size_t width = 6;
    fm_autobuffer name = FM_BUFFER_INIT;
    for (size_t i = 0; i < lanes; i++) {
        fm_buffer_clear(&name);
        fm_timeline_lane_name(r, fm_timeline_lane(r->timeline, i), &name);
        size_t own = fm_text_width(name.data, name.len);
        width = own > width ? own : width;
    }
    return width < NAME_MOST ? width : NAME_MOST;
}

static void put_lanes(const struct fm_report *r, const struct fm_phases *ph, size_t names)
{
    size_t shown = lanes_shown(r, ph->lanes.len), left = ph->lanes.len - shown;
    fm_autobuffer name = FM_BUFFER_INIT;
    for (size_t i = 0; i < shown; i++) {
        const struct fm_phase_lane *lane = &ph->lanes.data[i];
        fm_buffer_clear(&name);
        fm_timeline_lane_name(r, fm_timeline_lane(r->timeline, lane->lane), &name);
        put_name(r, fm_buffer_text(&name), names);
        fputs("  ", r->out);
        put_columns(r, ph, lane);
        fputc('\n', r->out);
    }
    put_axis(r, ph, names);
    if (left)
        fprintf(r->out, "and %zu more thread%s: --limit all\n", left, left == 1 ? "" : "s");
}

/* --- what the letters mean -------------------------------------------------------------------- */

static uint32_t row_of(const struct fm_report *r, uint32_t func)
{
    for (uint32_t i = 0; i < r->flat->rows.len; i++)
        if (r->flat->rows.data[i].func == func)
            return i;
    return FM_NONE;
}

static void add_name(const struct fm_report *r, struct fm_table *t, uint32_t func)
{
    uint32_t row = row_of(r, func);
    if (row != FM_NONE)
        fm_table_cell_pair(t, FM_COLOR_NAME, fm_names_function(r->names, row),
                           fm_names_place(r->names, row));
    else
        fm_table_cell(t, FM_COLOR_NAME, fm_profile_text(r->p, r->p->functions.data[func].qualname));
}

static void put_legend(const struct fm_report *r, const struct fm_phases *ph)
{
    struct fm_table t;
    char text[FM_NUMBER_BYTES], letter[2] = "";
    double column_ns = (double)(ph->to_ns - ph->from_ns) / ph->columns, all = 0;
    for (size_t i = 0; i < ph->names.len; i++)
        all += (double)ph->names.data[i].columns;
    fm_table_init(&t, r->style);
    fm_table_column(&t, "", FM_TABLE_LEFT);
    fm_table_column(&t, "about", FM_TABLE_RIGHT);
    fm_table_column(&t, "%", FM_TABLE_RIGHT);
    fm_table_column(&t, "function", FM_TABLE_FLEXIBLE);
    for (size_t i = 0; i < ph->names.len; i++) {
        const struct fm_phase_name *name = &ph->names.data[i];
        letter[0] = (char)('A' + (int)i);
        fm_table_cell(&t, color_of(i, false), i < FM_PHASE_COLORS ? letter : "·");
        fm_table_cell(&t, FM_COLOR_NONE,
                      fm_number_time(text, (int64_t)(column_ns * (double)name->columns)));
        fm_table_cell(&t, fm_color_heat((double)name->columns, all),
                      fm_number_percent(text, (double)name->columns, all));
        add_name(r, &t, name->func);
    }
    fm_table_print(&t, r->out);
    fm_table_release(&t);
}

/* What a reader must know of how fine it is. */
static void put_notes(const struct fm_report *r, const struct fm_phases *ph)
{
    uint64_t grain_ns = 0, lost = 0;
    bool sampled = false;
    char text[FM_NUMBER_BYTES];
    for (size_t i = 0; i < ph->lanes.len; i++) {
        const struct fm_lane *lane = fm_timeline_lane(r->timeline, ph->lanes.data[i].lane);
        sampled = sampled || lane->kind == FM_LANE_SAMPLED;
        grain_ns = lane->grain_ns > grain_ns ? lane->grain_ns : grain_ns;
        lost += lane->kind == FM_LANE_TRACED ? lane->lost : 0;
    }
    fm_color_begin(&r->style, r->out, FM_COLOR_DIM);
    fprintf(r->out, "\na letter is the function that was open for most of %s",
            fm_number_time(text, (int64_t)((ph->to_ns - ph->from_ns) / ph->columns)));
    fputs(sampled ? "; a small one waits\n" : "\n", r->out);
    if (grain_ns)
        fprintf(r->out, "the order of samples is known to within %s\n",
                fm_number_time(text, (int64_t)grain_ns));
    if (fm_timeline_runs(r->timeline) > 1)
        fprintf(r->out,
                "%zu runs side by side by the time of day, to within %s if their machines' clocks "
                "agreed\n",
                fm_timeline_runs(r->timeline),
                fm_number_time(text, (int64_t)fm_timeline_uncertain_ns(r->timeline)));
    fm_color_end(&r->style, r->out, FM_COLOR_DIM);
    if (!lost)
        return;
    fm_color_begin(&r->style, r->out, FM_COLOR_WARN);
    fprintf(r->out, "%s event%s lost, where ! stands\n", fm_number_count(text, (int64_t)lost),
            lost == 1 ? " was" : "s were");
    fm_color_end(&r->style, r->out, FM_COLOR_WARN);
}

int fm_report_timeline(const struct fm_report *r, struct fm_error *err)
{
    struct fm_phases ph;
    size_t names = names_width(r, fm_timeline_lanes(r->timeline));
    int width = r->style.width > 0 ? r->style.width : PAGE_WIDTH;
    size_t columns = (size_t)width > names + 2 + LEAST ? (size_t)width - names - 2 : LEAST;
    if (columns > r->range.to_ns - r->range.from_ns)
        columns = (size_t)(r->range.to_ns - r->range.from_ns);
    int status = fm_timeline_phases(r, (uint32_t)columns, &ph, err);
    if (status == 0) {
        fm_report_header(r);
        put_lanes(r, &ph, names);
        fputc('\n', r->out);
        put_legend(r, &ph);
        put_notes(r, &ph);
    }
    fm_phases_release(&ph);
    return status;
}
