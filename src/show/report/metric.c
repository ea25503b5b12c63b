/* Metrics with columns of their own; see metric.h. */
#include "show/report/metric.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "show/report/json_text.h"
#include "show/report/number.h"

char *fm_number_of(char *out, enum fm_unit unit, int64_t value)
{
    switch (unit) {
    case FM_UNIT_NS:
        return fm_number_time(out, value);
    case FM_UNIT_BYTES:
        return fm_number_bytes(out, value);
    case FM_UNIT_SHARE:
        snprintf(out, FM_NUMBER_BYTES, "%.1f %%", (double)value / 1e4);
        return out;
    default:
        return fm_number_count(out, value);
    }
}

/* ---- for people ---- */

void fm_metric_columns(struct fm_table *t, uint64_t metrics)
{
    for (int m = fm_metric_next(metrics, 0); m < FM_METRIC_COUNT;
         m = fm_metric_next(metrics, m + 1)) {
        const struct fm_metric_info *info = fm_metric_info((enum fm_metric)m);
        fm_table_column(t, info->title, FM_TABLE_RIGHT);
        if (fm_metric_has_total((enum fm_metric)m))
            fm_table_column(t, info->total_title, FM_TABLE_RIGHT);
    }
}

static void add_cell(struct fm_table *t, enum fm_unit unit, int64_t value)
{
    char text[FM_NUMBER_BYTES];
    fm_table_cell(t, FM_COLOR_NONE, value ? fm_number_of(text, unit, value) : "");
}

void fm_metric_cells(struct fm_table *t, uint64_t metrics, const int64_t *self,
                     const int64_t *total)
{
    for (int m = fm_metric_next(metrics, 0); m < FM_METRIC_COUNT;
         m = fm_metric_next(metrics, m + 1)) {
        enum fm_unit unit = fm_metric_info((enum fm_metric)m)->unit;
        add_cell(t, unit, self[m]);
        if (fm_metric_has_total((enum fm_metric)m))
            add_cell(t, unit, total[m]);
    }
}

void fm_metric_cells_empty(struct fm_table *t, uint64_t metrics)
{
    static const int64_t zeros[FM_METRIC_COUNT];
    fm_metric_cells(t, metrics, zeros, zeros);
}

/* ---- for programs ---- */

/* "pings_bytes": the unit follows the name, as everywhere; CSV has seconds. */
static void add_name(struct fm_buffer *out, bool total, enum fm_metric metric, const char *time)
{
    const struct fm_metric_info *info = fm_metric_info(metric);
    const char *const units[FM_UNIT_KINDS] = {
        [FM_UNIT_COUNT] = "",       [FM_UNIT_NS] = time,        [FM_UNIT_BYTES] = "_bytes",
        [FM_UNIT_SHARE] = "_share", [FM_UNIT_ERROR] = "_bytes",
    };
    fm_buffer_addf(out, "%s%s", total ? info->total_name : info->name, units[info->unit]);
}

static void add_number(struct fm_buffer *out, const struct fm_profile *p, enum fm_unit unit,
                       int64_t value, bool seconds)
{
    uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
    if (unit == FM_UNIT_NS && seconds)
        fm_buffer_addf(out, "%s%llu.%09llu", value < 0 ? "-" : "",
                       (unsigned long long)(size / 1000000000),
                       (unsigned long long)(size % 1000000000));
    else if (unit == FM_UNIT_SHARE)
        fm_buffer_addf(out, "%.6f", (double)value / 1e6);
    else
        fm_buffer_addf(
            out, "%lld",
            (long long)(unit == FM_UNIT_ERROR ? fm_profile_error_bytes(p, value) : value));
}

void fm_csv_put_metric_titles(FILE *out, uint64_t metrics, bool totals)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    for (int m = fm_metric_next(metrics, 0); m < FM_METRIC_COUNT;
         m = fm_metric_next(metrics, m + 1)) {
        int last = totals && fm_metric_has_total((enum fm_metric)m);
        for (int total = 0; total <= last; total++) {
            fm_buffer_add_char(&text, ',');
            add_name(&text, total, (enum fm_metric)m, "_s");
        }
    }
    fputs(fm_buffer_text(&text), out);
}

void fm_csv_put_metrics(FILE *out, const struct fm_profile *p, uint64_t metrics,
                        const int64_t *self, const int64_t *total)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    for (int m = fm_metric_next(metrics, 0); m < FM_METRIC_COUNT;
         m = fm_metric_next(metrics, m + 1)) {
        enum fm_unit unit = fm_metric_info((enum fm_metric)m)->unit;
        fm_buffer_add_char(&text, ',');
        add_number(&text, p, unit, self[m], true);
        if (!total || !fm_metric_has_total((enum fm_metric)m))
            continue;
        fm_buffer_add_char(&text, ',');
        add_number(&text, p, unit, total[m], true);
    }
    fputs(fm_buffer_text(&text), out);
}

void fm_json_add_metrics(struct fm_buffer *out, const struct fm_profile *p, uint64_t metrics,
                         const int64_t *self, const int64_t *total)
{
    for (int m = fm_metric_next(metrics, 0); m < FM_METRIC_COUNT;
         m = fm_metric_next(metrics, m + 1)) {
        int last = total && fm_metric_has_total((enum fm_metric)m);
        for (int with = 0; with <= last; with++) {
            fm_autobuffer name = FM_BUFFER_INIT;
            add_name(&name, with, (enum fm_metric)m, "_ns");
            fm_json_add_key(out, name.data);
            add_number(out, p, fm_metric_info((enum fm_metric)m)->unit, with ? total[m] : self[m],
                       false);
        }
    }
}

/* ---- of nodes ---- */

void fm_node_numbers_init(struct fm_node_numbers *all, const struct fm_profile *p)
{
    fm_node_numbers_init_of(all, p, fm_profile_columns(p));
}

void fm_node_numbers_init_of(struct fm_node_numbers *all, const struct fm_profile *p,
                             uint64_t metrics)
{
    *all = (struct fm_node_numbers){ .metrics = metrics };
    for (int m = fm_metric_next(all->metrics, 0); m < FM_METRIC_COUNT;
         m = fm_metric_next(all->metrics, m + 1)) {
        all->self[m] = fm_profile_selves_new(p, (enum fm_metric)m);
        if (fm_metric_has_total((enum fm_metric)m))
            all->total[m] = fm_profile_totals_new(p, (enum fm_metric)m);
    }
}

void fm_node_numbers_release(struct fm_node_numbers *all)
{
    for (int m = 0; m < FM_METRIC_COUNT; m++) {
        free(all->self[m]);
        free(all->total[m]);
    }
}

void fm_node_numbers_get(const struct fm_node_numbers *all, uint32_t node,
                         int64_t self[FM_METRIC_COUNT], int64_t total[FM_METRIC_COUNT])
{
    for (int m = fm_metric_next(all->metrics, 0); m < FM_METRIC_COUNT;
         m = fm_metric_next(all->metrics, m + 1)) {
        self[m] = all->self[m][node];
        total[m] = all->total[m] ? all->total[m][node] : 0;
    }
}

/* ---- of threads ---- */

int64_t *fm_thread_numbers_new(const struct fm_profile *p, uint64_t *metrics)
{
    struct fm_node_numbers all;
    fm_node_numbers_init(&all, p);
    *metrics = all.metrics;
    int64_t *numbers = fm_calloc(p->threads.len * FM_METRIC_COUNT + 1, sizeof *numbers);
    for (int m = fm_metric_next(all.metrics, 0); m < FM_METRIC_COUNT;
         m = fm_metric_next(all.metrics, m + 1)) {
        for (size_t i = 0; i < p->nodes.len; i++) {
            int64_t *number =
                &numbers[(size_t)p->nodes.data[i].thread * FM_METRIC_COUNT + (size_t)m];
            if (!all.total[m] || p->nodes.data[i].parent == FM_NONE)
                *number = fm_metric_combine((enum fm_metric)m, *number,
                                            all.total[m] ? all.total[m][i] : all.self[m][i]);
        }
    }
    fm_node_numbers_release(&all);
    return numbers;
}

void fm_metric_thread_columns(struct fm_table *t, uint64_t metrics)
{
    for (int m = fm_metric_next(metrics, 0); m < FM_METRIC_COUNT;
         m = fm_metric_next(metrics, m + 1))
        fm_table_column(t, fm_metric_info((enum fm_metric)m)->title, FM_TABLE_RIGHT);
}

void fm_metric_thread_cells(struct fm_table *t, uint64_t metrics, const int64_t *numbers)
{
    for (int m = fm_metric_next(metrics, 0); m < FM_METRIC_COUNT;
         m = fm_metric_next(metrics, m + 1))
        add_cell(t, fm_metric_info((enum fm_metric)m)->unit, numbers[m]);
}
