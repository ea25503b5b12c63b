/*
 * The picture; see memory_page.h. Three lines about the process, the titles, the rows, one line for
 * keys. Columns that do not fit are left out, the least important first; names get what is left.
 */
#include "show/top/memory_page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "show/report/number.h"
#include "show/top/page_parts.h"

/* "+1.20 MiB/s", "-3.4 KiB/s"; "" for nothing. */
static char *rate(char *out, double per_second, bool sign)
{
    char bytes[FM_NUMBER_BYTES];
    double size = fabs(per_second);
    out[0] = '\0';
    if (size >= 0.5)
        snprintf(out, FM_NUMBER_BYTES, "%s%s/s",
                 per_second < 0 ? "-"
                 : sign         ? "+"
                                : "",
                 fm_number_bytes(bytes, size < 9e18 ? (int64_t)(size + 0.5) : INT64_MAX));
    return out;
}

/* ---- header ---- */

static void add_bytes(struct fm_buffer *line, const char *name, int64_t bytes)
{
    char text[FM_NUMBER_BYTES];
    fm_buffer_addf(line, "%s%s %s", line->len ? "  " : "", name, fm_number_bytes(text, bytes));
}

static void add_blocks(struct fm_buffer *line, int64_t blocks)
{
    char text[FM_NUMBER_BYTES];
    fm_buffer_addf(line, " in %s blocks", fm_number_count(text, blocks));
}

static void draw_sums(const struct fm_memory_top *top, const struct fm_memory_status *status,
                      const struct fm_page_layout *l)
{
    fm_autobuffer now = FM_BUFFER_INIT;
    fm_autobuffer ever = FM_BUFFER_INIT;
    char text[FM_NUMBER_BYTES];
    add_bytes(&now, "alive", top->all.live);
    add_blocks(&now, top->all.blocks);
    if (top->old_ns) {
        rate(text, fm_memory_top_per_second(top, top->all.live - top->all_before.live), true);
        fm_buffer_addf(&now, "  growth %s", *text ? text : "0");
        int64_t made = top->all.allocated - top->all_before.allocated;
        rate(text, fm_memory_top_per_second(top, made), false);
        fm_buffer_addf(&now, "  new %s", *text ? text : "0");
    }
    add_bytes(&ever, "peak", top->all.peak);
    add_blocks(&ever, top->peak_blocks);
    if (status->resident >= 0)
        add_bytes(&ever, "resident", status->resident);
    add_bytes(&ever, "Fathom's own", top->own_bytes);
    if (!top->python)
        fm_buffer_add_text(&ever, "  malloc only");
    if (top->sample_bytes)
        fm_buffer_addf(&ever, "  estimates, sampled every %s",
                       fm_number_bytes(text, top->sample_bytes));
    fm_screen_put(1, 0, l->columns, FM_LOOK_PLAIN, fm_buffer_text(&now));
    fm_screen_put(2, 0, l->columns, FM_LOOK_PLAIN, fm_buffer_text(&ever));
    if (top->paused)
        fm_screen_put(2, l->columns - 6, 6, FM_LOOK_BOLD, "PAUSED");
}

/* ---- table ---- */

enum { LIVE, SHARE, BLOCKS, GROWTH, TOTAL, MADE, PEAK, COLUMNS };

static const struct column {
    const char *title;
    enum fm_memory_action sort;
    int width, from; /* from how many columns of the screen on */
} columns[COLUMNS] = {
    [LIVE] = { "live", FM_MEMORY_LIVE, 9, 0 },
    [SHARE] = { "%", FM_MEMORY_NOTHING, 6, 60 },
    [BLOCKS] = { "blocks", FM_MEMORY_BLOCKS, 11, 70 },
    [GROWTH] = { "growth", FM_MEMORY_GROWTH, 13, 50 },
    [TOTAL] = { "total", FM_MEMORY_TOTAL, 10, 92 },
    [MADE] = { "new", FM_MEMORY_MADE, 12, 106 },
    [PEAK] = { "at peak", FM_MEMORY_PEAK, 10, 120 },
};

static void draw_titles(const struct fm_memory_top *top, const struct fm_page_layout *l)
{
    int row = l->table - 1, column = 0;
    char title[32];
    fm_screen_fill(row, 0, l->columns, FM_LOOK_TITLE);
    for (int i = 0; i < COLUMNS; i++) {
        const struct column *c = &columns[i];
        if (l->columns < c->from)
            continue;
        snprintf(title, sizeof title, "%s%s", c->title,
                 c->sort != top->sort ? ""
                 : top->reverse       ? "^"
                                      : "v");
        fm_screen_put_right(row, column, c->width, FM_LOOK_TITLE, title);
        column += c->width;
    }
    snprintf(title, sizeof title, "%s%s", top->lines ? "line" : "function",
             top->sort != FM_MEMORY_NAME ? ""
             : top->reverse              ? " by name ^"
                                         : " by name v");
    fm_screen_put(row, l->name, l->columns - l->name, FM_LOOK_TITLE, title);
}

static const char *number(const struct fm_memory_top *top, const struct fm_memory_row *row,
                          int column, char *out)
{
    switch (column) {
    case LIVE:
        return fm_number_bytes(out, row->now.live);
    case SHARE:
        return fm_number_percent(out, (double)row->now.live, (double)top->all.live);
    case BLOCKS:
        return fm_number_count(out, row->now.blocks);
    case GROWTH:
        return rate(out, fm_memory_top_per_second(top, row->growth), true);
    case TOTAL:
        return fm_number_bytes(out, row->now.total);
    case MADE:
        return rate(out, fm_memory_top_per_second(top, row->made), false);
    default:
        return fm_number_bytes(out, row->now.peak);
    }
}

/* A file by its name, with the folder where the name says little. */
static const char *short_path(const char *path)
{
    const char *name = strrchr(path, '/');
    if (!name || strncmp(name, "/__", 3) != 0)
        return name ? name + 1 : path;
    while (name > path && name[-1] != '/')
        name--;
    return name;
}

static void draw_name(const struct fm_memory_top *top, const struct fm_memory_row *row,
                      const struct fm_page_layout *l, int y, bool selected)
{
    char place[4200] = "";
    const char *name = fm_strings_get(top->strings, row->name);
    const char *file = fm_strings_get(top->strings, row->file);
    int room = l->columns - l->name;
    if (*file)
        snprintf(place, sizeof place, "%s:%u", short_path(file), row->line);
    int width = fm_page_first_width(fm_fit_width(name), fm_fit_width(place), room);
    int column = l->name +
                 fm_screen_put(y, l->name, width, selected ? FM_LOOK_SELECTED : FM_LOOK_NAME, name);
    fm_screen_put_cut(y, column + 2, l->columns - column - 2,
                      selected ? FM_LOOK_SELECTED : FM_LOOK_DIM, place, FM_FIT_CUT_START);
}

static void draw_row(const struct fm_memory_top *top, const struct fm_page_layout *l, int y,
                     size_t index)
{
    const struct fm_memory_row *row = &top->rows.data[index];
    bool selected = index == top->selected;
    char text[FM_NUMBER_BYTES];
    int column = 0;
    if (selected)
        fm_screen_fill(y, 0, l->columns, FM_LOOK_SELECTED);
    for (int i = 0; i < COLUMNS; i++) {
        enum fm_look look = i == SHARE || i == LIVE
                                ? fm_page_heat((double)row->now.live, (double)top->all.live)
                            : i == GROWTH && row->growth > 0 ? FM_LOOK_BOLD
                                                             : FM_LOOK_PLAIN;
        if (l->columns < columns[i].from)
            continue;
        fm_screen_put_right(y, column, columns[i].width, selected ? FM_LOOK_SELECTED : look,
                            number(top, row, i, text));
        column += columns[i].width;
    }
    draw_name(top, row, l, y, selected);
}

static void draw_table(struct fm_memory_top *top, const struct fm_page_layout *l)
{
    int rows = l->rows - l->table - 1;
    top->page = (size_t)rows;
    fm_memory_top_scroll(top);
    draw_titles(top, l);
    for (int i = 0; i < rows && top->first + (size_t)i < top->rows.len; i++)
        draw_row(top, l, l->table + i, top->first + (size_t)i);
}

void fm_memory_page_draw(struct fm_memory_top *top, const struct fm_memory_status *status)
{
    struct fm_page_layout l = { .columns = fm_screen_columns(), .rows = fm_screen_rows() };
    l.header = l.rows >= 11 ? 3 : 1;
    l.table = l.header + 1;
    for (int i = 0; i < COLUMNS; i++)
        l.name += l.columns >= columns[i].from ? columns[i].width : 0;
    l.name += 2;
    fm_screen_clear();
    if (!fm_page_fits(&l))
        return;
    fm_screen_cursor(-1, 0);
    if (top->help) {
        fm_page_draw_help("keys of fathom top --memory", fm_memory_keys, fm_memory_keys_count, &l);
        fm_screen_put(l.rows - 1, 0, l.columns, FM_LOOK_DIM, "any key: back");
        fm_screen_show();
        return;
    }
    uint64_t now = top->now_ns > status->start_ns ? top->now_ns : status->start_ns;
    struct fm_page_subject subject = { "fathom top --memory",  status->pid, "", status->command,
                                       now - status->start_ns, top->ended };
    fm_page_draw_subject(&subject, &l);
    if (l.header > 1)
        draw_sums(top, status, &l);
    draw_table(top, &l);
    if (status->note)
        fm_screen_put(l.rows - 1, 0, l.columns, FM_LOOK_WARNING, status->note);
    else
        fm_page_draw_keys(fm_memory_keys, fm_memory_keys_count, &l);
    fm_screen_show();
}
