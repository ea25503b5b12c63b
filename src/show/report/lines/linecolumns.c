/* Columns of a table of lines; see linecolumns.h. */
#include "show/report/lines/linecolumns.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "show/report/samples/sampling.h"

static const struct {
    const char *typed, *title;
} names[] = {
#define X(name, typed, title) { typed, title },
    FM_LINE_COLUMN_LIST(X)
#undef X
};

static const struct {
    const char *typed, *shown;
    double ns;
    int digits_max; /* down to a nanosecond */
} units[] = {
    [FM_TIME_AUTO] = { "auto", "", 0, 0 }, [FM_TIME_S] = { "s", "s", 1e9, 9 },
    [FM_TIME_MS] = { "ms", "ms", 1e6, 6 }, [FM_TIME_US] = { "us", "µs", 1e3, 3 },
    [FM_TIME_NS] = { "ns", "ns", 1, 0 },
};

int fm_time_unit_parse(enum fm_time_unit *unit, const char *text, struct fm_error *err)
{
    for (size_t i = 0; i < FM_COUNT(units); i++) {
        if (strcmp(text, units[i].typed) == 0 || strcmp(text, units[i].shown) == 0) {
            *unit = (enum fm_time_unit)i;
            return 0;
        }
    }
    return fm_error_set(err, FM_USAGE, "--unit is s, ms, us, ns or auto, not \"%s\"", text);
}

/* ---- choosing ---- */

static void add_column(struct fm_line_columns *columns, enum fm_line_column column)
{
    for (int i = 0; i < columns->n; i++) {
        if (columns->list[i] == column)
            return;
    }
    columns->list[columns->n++] = column;
}

static int take_column(struct fm_line_columns *columns, const char *word, size_t len,
                       struct fm_error *err)
{
    for (size_t i = 0; i < FM_LINE_COLUMN_COUNT; i++) {
        if (strlen(names[i].typed) == len && memcmp(names[i].typed, word, len) == 0) {
            add_column(columns, (enum fm_line_column)i);
            return 0;
        }
    }
    fm_autobuffer all = FM_BUFFER_INIT;
    for (size_t i = 0; i < FM_LINE_COLUMN_COUNT; i++)
        fm_buffer_addf(&all, "%s%s", i ? ", " : "", names[i].typed);
    return fm_error_set(err, FM_USAGE, "there is no column \"%.*s\" of lines; there are %s",
                        (int)len, word, all.data);
}

int fm_line_columns_parse(struct fm_line_columns *columns, const char *text, struct fm_error *err)
{
    bool chosen = text[0] != '+';
    if (chosen)
        *columns = (struct fm_line_columns){ .chosen = true };
    for (;;) {
        text += text[0] == '+';
        size_t len = strcspn(text, ",");
        if (take_column(columns, text, len, err) < 0)
            return err->status;
        if (!text[len])
            return 0;
        text += len + 1;
    }
}

struct fm_line_columns fm_line_columns_for(const struct fm_line_columns *asked,
                                           const struct fm_linetables *tables,
                                           const struct fm_linetable *table)
{
    struct fm_line_columns columns = { 0 };
    bool self = false, suspended = false, memory = false;
    if (asked->chosen)
        return *asked;
    for (size_t i = 0; i < table->n && tables->detailed; i++) {
        const struct fm_line *row = &table->rows[i];
        double difference = fabs((double)row->total_ns - (double)row->self_ns);
        self = self || difference > (double)row->total_ns * 0.01;
        suspended = suspended || row->suspended_ns;
        memory = memory || row->memory;
    }
    add_column(&columns, tables->sampled ? FM_LINE_SAMPLES : FM_LINE_HITS);
    add_column(&columns, FM_LINE_TIME);
    if (self)
        add_column(&columns, FM_LINE_SELF);
    if (!tables->sampled)
        add_column(&columns, FM_LINE_PERHIT);
    add_column(&columns, FM_LINE_PERCENT);
    if (tables->sampled || tables->beside)
        add_column(&columns, FM_LINE_STATES);
    if (memory) {
        add_column(&columns, FM_LINE_HEAP);
        add_column(&columns, FM_LINE_INCREMENT);
        add_column(&columns, FM_LINE_TRANSIENT);
    }
    for (int i = 0; i < asked->n; i++)
        add_column(&columns, asked->list[i]);
    if (suspended)
        add_column(&columns, FM_LINE_SUSPENDED);
    return columns;
}

/* ---- writing ---- */

struct fm_scale fm_scale_for(enum fm_time_unit unit, double max_ns)
{
    bool fixed = unit != FM_TIME_AUTO;
    if (!fixed) {
        unit = max_ns >= 1e9   ? FM_TIME_S
               : max_ns >= 1e6 ? FM_TIME_MS
               : max_ns >= 1e3 ? FM_TIME_US
                               : FM_TIME_NS;
    }
    struct fm_scale scale = { units[unit].ns, units[unit].shown, 3 };
    /* A unit that is large for these numbers: enough digits for three that count. */
    for (double max = max_ns / scale.unit_ns; max > 0 && max < 1 && scale.digits < 9; max *= 10)
        scale.digits++;
    if (scale.digits > units[unit].digits_max)
        scale.digits = units[unit].digits_max;
    return scale;
}

/* Put commas between groups of three digits in front of the point. */
static void group(char *out, const char *digits)
{
    size_t whole = strcspn(digits, "."), at = 0;
    for (size_t i = 0; digits[i]; i++) {
        if (i && i < whole && (whole - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
}

char *fm_scale_write(const struct fm_scale *scale, char *out, double ns)
{
    char digits[FM_NUMBER_BYTES - 16];
    double value = ns / scale->unit_ns, least = pow(10, -scale->digits);
    out[0] = '\0';
    if (ns > 0 && value < least / 2) {
        snprintf(out, FM_NUMBER_BYTES, "<%.*f", scale->digits, least);
    } else if (ns > 0) {
        snprintf(digits, sizeof digits, "%.*f", scale->digits, value);
        group(out, digits);
    }
    return out;
}

static double per_hit(const struct fm_line *row)
{
    return row->hits > 0 ? (double)row->total_ns / (double)row->hits : 0;
}

double fm_line_value(const struct fm_linetables *tables, const struct fm_line *row,
                     enum fm_line_column column)
{
    switch (column) {
    case FM_LINE_HITS:
        return (double)row->hits;
    case FM_LINE_TIME:
    case FM_LINE_PERCENT:
    case FM_LINE_PROGRAM:
        return (double)row->total_ns;
    case FM_LINE_SELF:
        return (double)row->self_ns;
    case FM_LINE_PERHIT:
        return per_hit(row);
    case FM_LINE_MIN:
        return (double)row->min_ns;
    case FM_LINE_MAX:
        return (double)row->max_ns;
    case FM_LINE_P50:
        return (double)fm_lines_quantile_ns(&tables->combined, row, 0.5);
    case FM_LINE_P99:
        return (double)fm_lines_quantile_ns(&tables->combined, row, 0.99);
    case FM_LINE_SUSPENDED:
        return (double)row->suspended_ns;
    case FM_LINE_SAMPLES:
        return (double)row->samples;
    case FM_LINE_HEAP:
        return (double)row->heap_after;
    case FM_LINE_HEAP_MOST:
        return (double)row->heap_most;
    case FM_LINE_INCREMENT:
        return (double)row->allocated - (double)row->freed;
    case FM_LINE_ALLOCATED:
        return (double)row->allocated;
    case FM_LINE_FREED:
        return (double)row->freed;
    case FM_LINE_TRANSIENT:
        return (double)row->above_most;
    case FM_LINE_STATES:
    case FM_LINE_COLUMN_COUNT:
        break;
    }
    return 0;
}

static bool is_bytes(enum fm_line_column column)
{
    return column >= FM_LINE_HEAP && column <= FM_LINE_TRANSIENT;
}

static bool is_time(enum fm_line_column column)
{
    return column != FM_LINE_HITS && column != FM_LINE_PERCENT && column != FM_LINE_PROGRAM &&
           column != FM_LINE_SAMPLES && column != FM_LINE_STATES && !is_bytes(column);
}

/* Times of single visits may lie far apart in one table, and the short ones matter as much. */
static bool is_of_visits(enum fm_line_column column)
{
    return column == FM_LINE_PERHIT || column == FM_LINE_MIN || column == FM_LINE_MAX ||
           column == FM_LINE_P50 || column == FM_LINE_P99;
}

/* The scale for numbers from `min_ns` to `max_ns`: a smaller unit than the largest number asks for
 * if the smallest could not be seen otherwise. */
static struct fm_scale scale_between(enum fm_time_unit unit, double min_ns, double max_ns)
{
    struct fm_scale scale = fm_scale_for(unit, max_ns);
    while (unit == FM_TIME_AUTO && scale.unit_ns > 1e3 && min_ns > 0 &&
           min_ns < scale.unit_ns / 1000) {
        struct fm_scale finer = fm_scale_for(unit, scale.unit_ns / 1000);
        if (max_ns / finer.unit_ns >= 1e5)
            break; /* more digits than anyone reads */
        scale = finer;
    }
    return scale;
}

struct fm_line_format fm_line_format_for(const struct fm_linetables *tables,
                                         const struct fm_linetable *table,
                                         enum fm_line_column column, enum fm_time_unit unit)
{
    /* Self is read against time, so it has the unit of that. */
    enum fm_line_column ruler = column == FM_LINE_SELF ? FM_LINE_TIME : column;
    struct fm_line_format format = { .column = column };
    double min = 0, max = 0;
    format.whole = (double)(column == FM_LINE_PROGRAM ? tables->program_ns : table->time_ns);
    for (size_t i = 0; i < table->n && is_time(column); i++) {
        double value = fm_line_value(tables, &table->rows[i], ruler);
        max = fmax(max, value);
        if (value > 0 && (min == 0 || value < min))
            min = value;
    }
    format.scale = is_of_visits(column) ? scale_between(unit, min, max) : fm_scale_for(unit, max);
    /* Nanoseconds per hit may be few: one digit behind the point tells 1.2 from 0.8. */
    if (column == FM_LINE_PERHIT && format.scale.digits == 0)
        format.scale.digits = 1;
    snprintf(format.title, sizeof format.title, "%s%s%s", names[column].title,
             is_time(column) ? " " : "", is_time(column) ? format.scale.unit : "");
    return format;
}

char *fm_line_write(const struct fm_line_format *format, const struct fm_linetables *tables,
                    const struct fm_line *row, char *out)
{
    double value = fm_line_value(tables, row, format->column);
    if (format->column == FM_LINE_HITS)
        return fm_number_count(out, row->hits);
    out[0] = '\0';
    if (format->column == FM_LINE_SAMPLES) /* callers have time but no sample of their own */
        return row->samples ? fm_number_count(out, row->samples) : out;
    if (format->column == FM_LINE_STATES)
        return format->as_bar ? fm_states_write_bar(out, row->state_ns)
                              : fm_states_write(out, row->state_ns);
    if (is_bytes(format->column))
        return row->memory ? fm_number_bytes(out, (int64_t)value) : out;
    if (is_time(format->column))
        return fm_scale_write(&format->scale, out, value);
    return fm_number_percent(out, value, format->whole);
}
