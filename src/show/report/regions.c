/*
 * The regions of a program (model/regions.h): how often each was entered, how long it took and, where
 * memory was recorded, what it did to the heap and its own peak. Regions inside of others are
 * indented; all are in the order in which the program came to them first.
 */
#include "base/memory.h"
#include "show/report/csv_text.h"
#include "show/report/json_text.h"
#include "show/report/number.h"
#include "show/report/report.h"

#define DEEPEST 40 /* steps of indentation */

static bool any_has_memory(const struct fm_regions *all)
{
    for (size_t i = 0; i < all->rows.len; i++)
        if (all->rows.data[i].memory)
            return true;
    return false;
}

static bool any_waited(const struct fm_regions *all)
{
    for (size_t i = 0; i < all->rows.len; i++)
        if (all->rows.data[i].suspended_ns)
            return true;
    return false;
}

static bool any_has_cpu(const struct fm_regions *all)
{
    for (size_t i = 0; i < all->rows.len; i++)
        if (all->rows.data[i].cpu_ns)
            return true;
    return false;
}

static int depth_of(const struct fm_regions *all, uint32_t row)
{
    int depth = 0;
    while (depth < DEEPEST && (row = all->rows.data[row].around) != FM_NONE)
        depth++;
    return depth;
}

static int64_t net_of(const struct fm_region_row *row)
{
    return fm_sum(row->allocated, row->freed == INT64_MIN ? INT64_MAX : -row->freed);
}

/* ---- for people ---- */

static void add_bytes(struct fm_table *t, const struct fm_region_row *row, int64_t bytes)
{
    char text[FM_NUMBER_BYTES];
    fm_table_cell(t, FM_COLOR_NONE, row->memory ? fm_number_bytes(text, bytes) : "");
}

/* Which of those are there that not every recording has. */
struct columns {
    bool memory, cpu, waited;
};

static void add_row(const struct fm_report *r, struct fm_table *t, const struct fm_regions *all,
                    uint32_t at, struct columns shown)
{
    const struct fm_region_row *row = &all->rows.data[at];
    char text[FM_NUMBER_BYTES];
    fm_autobuffer name = FM_BUFFER_INIT;
    if (shown.memory) {
        add_bytes(t, row, row->above_most);
        add_bytes(t, row, net_of(row));
        add_bytes(t, row, row->allocated);
        add_bytes(t, row, row->freed);
    }
    fm_table_cell(t, FM_COLOR_NONE, fm_number_time(text, row->ns));
    if (shown.cpu)
        fm_table_cell(t, FM_COLOR_NONE, row->cpu_ns ? fm_number_time(text, row->cpu_ns) : "");
    if (shown.waited)
        fm_table_cell(t, FM_COLOR_NONE, fm_number_time(text, row->suspended_ns));
    fm_table_cell(t, FM_COLOR_NONE, fm_number_count(text, row->entered));
    fm_table_cell(t, FM_COLOR_NONE, fm_number_time(text, row->max_ns));
    for (int i = depth_of(all, at); i > 0; i--)
        fm_buffer_add_text(&name, "  ");
    fm_buffer_add_text(&name, fm_profile_text(r->p, row->name));
    if (row->open)
        fm_buffer_add_text(&name, " (open at the end)");
    fm_table_cell(t, FM_COLOR_NAME, fm_buffer_text(&name));
}

void fm_report_regions(const struct fm_report *r)
{
    struct fm_regions all = fm_regions_combined(r->p, r->scope.process);
    struct fm_table t;
    struct columns shown = { any_has_memory(&all), any_has_cpu(&all), any_waited(&all) };
    fm_table_init(&t, r->style);
    if (shown.memory) {
        fm_table_column(&t, "peak", FM_TABLE_RIGHT);
        fm_table_column(&t, "net", FM_TABLE_RIGHT);
        fm_table_column(&t, "allocated", FM_TABLE_RIGHT);
        fm_table_column(&t, "freed", FM_TABLE_OPTIONAL);
    }
    fm_table_column(&t, "time", FM_TABLE_RIGHT);
    if (shown.cpu)
        fm_table_column(&t, "cpu", FM_TABLE_RIGHT);
    if (shown.waited)
        fm_table_column(&t, "suspended", FM_TABLE_RIGHT);
    fm_table_column(&t, "entered", FM_TABLE_RIGHT);
    fm_table_column(&t, "longest", FM_TABLE_OPTIONAL);
    fm_table_column(&t, "region", FM_TABLE_FLEXIBLE);
    for (uint32_t i = 0; i < all.rows.len; i++)
        add_row(r, &t, &all, i, shown);
    fm_table_print(&t, r->out);
    fm_table_release(&t);
    fm_regions_release(&all);
}

/* ---- for programs ---- */

/* The names from the outermost to this one, each given to `put`. */
static void each_name(const struct fm_regions *all, uint32_t row,
                      void (*put)(void *data, uint32_t name, bool first), void *data)
{
    uint32_t path[DEEPEST + 1];
    int n = 0;
    for (uint32_t at = row; at != FM_NONE && n <= DEEPEST; at = all->rows.data[at].around)
        path[n++] = at;
    for (int i = n; i-- > 0;)
        put(data, all->rows.data[path[i]].name, i == n - 1);
}

struct json_path {
    struct fm_buffer *out;
    const struct fm_profile *p;
};

static void put_json_name(void *data, uint32_t name, bool first)
{
    struct json_path *path = data;
    if (!first)
        fm_buffer_add_text(path->out, ", ");
    fm_json_add_text(path->out, fm_profile_text(path->p, name));
}

void fm_json_add_regions(struct fm_buffer *out, const struct fm_report *r)
{
    struct fm_regions all = fm_regions_combined(r->p, r->scope.process);
    struct json_path path = { out, r->p };
    for (uint32_t i = 0; i < all.rows.len; i++) {
        const struct fm_region_row *row = &all.rows.data[i];
        fm_buffer_add_text(out, i ? ",\n  {" : "\n  {");
        fm_json_add_text_member(out, "name", fm_profile_text(r->p, row->name));
        fm_json_add_key(out, "path");
        fm_buffer_add_char(out, '[');
        each_name(&all, i, put_json_name, &path);
        fm_buffer_add_char(out, ']');
        fm_json_add_member(out, "entered", row->entered);
        fm_json_add_member(out, "open", row->open);
        fm_json_add_member(out, "total_ns", row->ns);
        fm_json_add_member(out, "suspended_ns", row->suspended_ns);
        fm_json_add_member(out, "min_ns", row->min_ns);
        fm_json_add_member(out, "max_ns", row->max_ns);
        if (row->cpu_ns)
            fm_json_add_member(out, "cpu_ns", row->cpu_ns);
        if (row->memory) {
            fm_json_add_member(out, "allocated_bytes", row->allocated);
            fm_json_add_member(out, "freed_bytes", row->freed);
            fm_json_add_member(out, "net_bytes", net_of(row));
            fm_json_add_member(out, "peak_bytes", row->above_most);
        }
        fm_buffer_add_char(out, '}');
    }
    fm_regions_release(&all);
}

static void put_csv_name(void *data, uint32_t name, bool first)
{
    struct json_path *path = data;
    if (!first)
        fm_buffer_add_text(path->out, " / ");
    fm_buffer_add_text(path->out, fm_profile_text(path->p, name));
}

void fm_csv_put_regions(const struct fm_report *r)
{
    struct fm_regions all = fm_regions_combined(r->p, r->scope.process);
    fputs("region,entered,open,seconds,suspended_seconds,min_seconds,max_seconds,"
          "allocated_bytes,freed_bytes,net_bytes,peak_bytes,cpu_seconds\r\n",
          r->out);
    for (uint32_t i = 0; i < all.rows.len; i++) {
        const struct fm_region_row *row = &all.rows.data[i];
        fm_autobuffer text = FM_BUFFER_INIT;
        struct json_path path = { &text, r->p };
        each_name(&all, i, put_csv_name, &path);
        fm_csv_put_text(r, fm_buffer_text(&text));
        fprintf(r->out, ",%lld,%lld", (long long)row->entered, (long long)row->open);
        fm_csv_put_seconds(r, row->ns);
        fm_csv_put_seconds(r, row->suspended_ns);
        fm_csv_put_seconds(r, row->min_ns);
        fm_csv_put_seconds(r, row->max_ns);
        if (row->memory)
            fprintf(r->out, ",%lld,%lld,%lld,%lld", (long long)row->allocated,
                    (long long)row->freed, (long long)net_of(row), (long long)row->above_most);
        else
            fputs(",,,,", r->out);
        if (row->cpu_ns)
            fm_csv_put_seconds(r, row->cpu_ns);
        else
            fputs(",", r->out);
        fputs("\r\n", r->out);
    }
    fm_regions_release(&all);
}
