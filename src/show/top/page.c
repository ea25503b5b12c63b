/*
 * The picture; see page.h. From top to bottom: up to four lines about the process and the sampler,
 * the titles, the rows, one line for keys, messages and typing. Columns that do not fit are left
 * out, the least important first; names get what is left.
 */
#include "show/top/page.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "show/report/number.h"
#include "show/report/samples/sampling.h"
#include "show/top/page_parts.h"
#include "show/top/screen.h"

bool fm_page_fits(const struct fm_page_layout *l)
{
    if (l->rows >= 8 && l->columns >= 40)
        return true;
    fm_screen_cursor(-1, 0);
    fm_screen_put(0, 0, l->columns, FM_LOOK_PLAIN, "too small: needs 40x8");
    fm_screen_show();
    return false;
}

static struct fm_page_layout layout_of(void)
{
    struct fm_page_layout l = { .columns = fm_screen_columns(), .rows = fm_screen_rows() };
    l.header = l.rows >= 14 ? 4 : l.rows >= 11 ? 2 : 1;
    l.table = l.header + 1;
    l.self_time = l.columns >= 58 ? 9 : 0;
    l.total_time = l.columns >= 66 ? 9 : 0;
    l.states = l.columns >= 130 ? 17 : l.columns >= 76 ? 9 : 0;
    l.samples = l.columns >= 100 ? 10 : 0;
    l.name = 7 + 8 + l.self_time + l.total_time + l.samples + l.states + 1;
    return l;
}

/* Times in at most 8 columns. */
static const char *short_time(char *out, int64_t ns)
{
    long long s = ns / 1000000000;
    if (ns < 0) /* not known */
        out[0] = '\0';
    else if (s >= 86400)
        snprintf(out, FM_NUMBER_BYTES, "%lldd%02lldh", s / 86400, s / 3600 % 24);
    else if (s >= 3600)
        snprintf(out, FM_NUMBER_BYTES, "%lldh%02lldm", s / 3600, s / 60 % 60);
    else if (s >= 600)
        snprintf(out, FM_NUMBER_BYTES, "%lldm%02llds", s / 60, s % 60);
    else
        fm_number_time(out, ns);
    char *micro = fm_screen_has_unicode() ? NULL : strstr(out, "µ");
    if (micro)
        memcpy(micro, "us", sizeof "us"); /* as many bytes */
    return out;
}

enum fm_look fm_page_heat(double part, double whole)
{
    double share = whole > 0 ? part / whole : 0;
    return share >= 0.25   ? FM_LOOK_HEAT4
           : share >= 0.10 ? FM_LOOK_HEAT3
           : share >= 0.03 ? FM_LOOK_HEAT2
                           : FM_LOOK_HEAT1;
}

/* ---- table ---- */

static void draw_title(const struct fm_top_view *view, int row, int *column, int width,
                       const char *text, int sort)
{
    char title[32];
    const char *arrow = (int)view->query.sort != sort ? "" : view->query.reverse ? "^" : "v";
    snprintf(title, sizeof title, "%s%s", text, arrow);
    if (width)
        fm_screen_put_right(row, *column, width, FM_LOOK_TITLE, title);
    *column += width;
}

static void draw_titles(const struct fm_top_view *view, const struct fm_page_layout *l)
{
    int row = l->table - 1, column = 0, sort = (int)view->query.sort;
    char title[48];
    fm_screen_fill(row, 0, l->columns, FM_LOOK_TITLE);
    draw_title(view, row, &column, 7, "self%", FM_TOP_SORT_SELF);
    draw_title(view, row, &column, 8, "total%", FM_TOP_SORT_TOTAL);
    draw_title(view, row, &column, l->self_time, "self", -1);
    draw_title(view, row, &column, l->total_time, "total", -1);
    draw_title(view, row, &column, l->samples, "samples", FM_TOP_SORT_SAMPLES);
    if (l->states)
        fm_screen_put(row, column + 1, l->states - 1, FM_LOOK_TITLE, "states");
    snprintf(title, sizeof title, "%s%s%s", view->query.lines ? "line" : "function",
             sort == FM_TOP_SORT_NAME    ? " by name "
             : sort == FM_TOP_SORT_PLACE ? " by place "
                                         : "",
             sort != FM_TOP_SORT_NAME && sort != FM_TOP_SORT_PLACE ? ""
             : view->query.reverse                                 ? "^"
                                                                   : "v");
    fm_screen_put(row, l->name, l->columns - l->name, FM_LOOK_TITLE, title);
}

/* The tree of callers: each is indented below what it calls. */
static int draw_branch(const struct fm_top_row *row, const struct fm_page_layout *l, int y,
                       enum fm_look look)
{
    int room = (l->columns - l->name) / 2, indent = (int)row->depth * 2;
    if (indent > room)
        indent = room;
    const char *arrow = fm_screen_has_unicode() ? "← " : "< ";
    const char *sign = row->wait != FM_NONE ? "" : row->depth ? arrow : row->open ? "- " : "";
    return indent + fm_screen_put(y, l->name + indent, l->columns - l->name - indent, look, sign);
}

int fm_page_first_width(int first, int second, int room)
{
    int half = (room - 2) / 2;
    if (first + 2 + second <= room || first <= half)
        return first;
    return second <= half ? room - 2 - second : room - 2 - half;
}

static void draw_wait(const struct fm_top_model *model, const struct fm_top_row *row,
                      const struct fm_page_layout *l, int y, bool selected)
{
    const struct fm_top_wait *wait = &model->waits.data[row->wait];
    enum fm_look look = selected ? FM_LOOK_SELECTED : fm_look_of_state(wait->state);
    int column = l->name + 2;
    column += fm_screen_put(y, column, 16, look, fm_state_word(wait->state)) + 1;
    fm_screen_put(y, column, l->columns - column, selected ? FM_LOOK_SELECTED : FM_LOOK_PLAIN,
                  fm_strings_get(model->strings, wait->detail));
}

/* A name and where it is; of a line, where it is and in which function. */
static void draw_name(const struct fm_top_model *model, const struct fm_top_row *row,
                      const struct fm_page_layout *l, int y, bool selected)
{
    char path[4096], name[512];
    enum fm_look dim = selected ? FM_LOOK_SELECTED : FM_LOOK_DIM;
    int column = l->name + draw_branch(row, l, y, dim), room = l->columns - column;
    uint32_t twin = model->functions.data[row->func].twin;
    const char *place = fm_top_place(model, row->func, row->line, path, sizeof path);
    snprintf(name, sizeof name, twin ? "%s #%u" : "%s", fm_top_name(model, row->func), twin + 1);
    /* Folders that tell files apart are the first to go. */
    if (fm_fit_width(name) + fm_fit_width(place) + 2 > room && strrchr(place, '/'))
        place = strrchr(place, '/') + 1;
    const char *first = row->line ? place : name, *second = row->line ? name : place;
    int width = fm_page_first_width(fm_fit_width(first), fm_fit_width(second), room);
    column += fm_screen_put_cut(y, column, width, selected ? FM_LOOK_SELECTED : FM_LOOK_NAME, first,
                                row->line ? FM_FIT_CUT_START : FM_FIT_CUT_END);
    fm_screen_put_cut(y, column + 2, l->columns - column - 2, dim, second,
                      row->line ? FM_FIT_CUT_END : FM_FIT_CUT_START);
}

static void draw_share(int y, int column, int width, int64_t part, int64_t whole, bool selected)
{
    char text[FM_NUMBER_BYTES];
    fm_number_percent(text, part < 0 ? 0 : (double)part, (double)whole);
    fm_screen_put_right(y, column, width,
                        selected ? FM_LOOK_SELECTED : fm_page_heat((double)part, (double)whole),
                        text);
}

static void draw_row(const struct fm_top_view *view, const struct fm_top_model *model,
                     const struct fm_page_layout *l, int y, size_t index)
{
    const struct fm_top_row *row = &view->table.rows.data[index];
    bool selected = index == view->selected;
    enum fm_look look = selected ? FM_LOOK_SELECTED : FM_LOOK_PLAIN;
    char text[FM_NUMBER_BYTES];
    int column = 0;
    if (selected)
        fm_screen_fill(y, 0, l->columns, FM_LOOK_SELECTED);
    draw_share(y, column, 6, row->self_ns, view->table.whole_ns, selected);
    draw_share(y, column += 7, 7, row->total_ns, view->table.whole_ns, selected);
    column += 8;
    if (l->self_time)
        fm_screen_put_right(y, column, l->self_time, look, short_time(text, row->self_start_ns));
    column += l->self_time;
    if (l->total_time)
        fm_screen_put_right(y, column, l->total_time, look, short_time(text, row->total_start_ns));
    column += l->total_time;
    if (l->samples)
        fm_screen_put_right(y, column, l->samples, look, fm_number_count(text, row->samples));
    column += l->samples;
    if (l->states)
        fm_page_draw_bar(y, column + 1, l->states - 1, row->state_ns, selected);
    if (row->wait != FM_NONE)
        draw_wait(model, row, l, y, selected);
    else
        draw_name(model, row, l, y, selected);
}

static void draw_table(struct fm_top_view *view, const struct fm_top_model *model,
                       const struct fm_page_layout *l)
{
    int rows = l->rows - l->table - 1;
    view->page = (size_t)rows;
    fm_top_view_scroll(view);
    draw_titles(view, l);
    for (int i = 0; i < rows && view->first + (size_t)i < view->table.rows.len; i++)
        draw_row(view, model, l, l->table + i, view->first + (size_t)i);
    if (!view->table.rows.len)
        fm_screen_put(l->table + 1, 2, l->columns - 4, FM_LOOK_DIM,
                      view->query.states != FM_TOP_ALL_STATES || view->query.thread != FM_NONE
                          ? "no samples of what was chosen with S and T"
                          : "no samples yet");
}

/* ---- lists and help, over the table ---- */

static void draw_list(struct fm_top_view *view, const struct fm_page_layout *l)
{
    int rows = l->rows - l->table - 1;
    size_t count = view->items.len, page = (size_t)rows;
    view->page = page;
    if (view->item < view->first_item)
        view->first_item = view->item;
    if (view->item >= view->first_item + page)
        view->first_item = view->item - page + 1;
    fm_screen_fill(l->table - 1, 0, l->columns, FM_LOOK_TITLE);
    fm_screen_put(l->table - 1, 1, l->columns - 1, FM_LOOK_TITLE,
                  view->mode == FM_TOP_MODE_THREADS ? "running  thread, in the last interval"
                                                    : "share  state, in the last interval");
    for (int i = 0; i < rows && view->first_item + (size_t)i < count; i++) {
        size_t at = view->first_item + (size_t)i;
        bool selected = at == view->item;
        if (selected)
            fm_screen_fill(l->table + i, 0, l->columns, FM_LOOK_SELECTED);
        fm_screen_put(l->table + i, 1, l->columns - 1, selected ? FM_LOOK_SELECTED : FM_LOOK_PLAIN,
                      view->items.data[at].text);
    }
}

void fm_page_draw_help(const char *title, const struct fm_top_key *keys, size_t count,
                       const struct fm_page_layout *l)
{
    fm_screen_clear();
    fm_screen_fill(0, 0, l->columns, FM_LOOK_TITLE);
    fm_screen_put(0, 1, l->columns, FM_LOOK_TITLE, title);
    for (int i = 0; i < l->rows - 2 && (size_t)i < count; i++) {
        fm_screen_put(1 + i, 2, 13, FM_LOOK_BOLD, keys[i].shown);
        fm_screen_put(1 + i, 16, l->columns - 16, FM_LOOK_PLAIN, keys[i].help);
    }
}

static void draw_help(struct fm_top_view *view, const struct fm_page_layout *l)
{
    int rows = l->rows - 2;
    size_t count = fm_top_keys_count;
    view->page = (size_t)rows;
    if (view->item + (size_t)rows > count)
        view->item = count > (size_t)rows ? count - (size_t)rows : 0;
    fm_page_draw_help("keys of fathom top", fm_top_keys + view->item, count - view->item, l);
}

/* ---- the line at the bottom ---- */

void fm_page_draw_keys(const struct fm_top_key *keys, size_t count, const struct fm_page_layout *l)
{
    int column = 0, row = l->rows - 1;
    for (size_t i = 0; i < count; i++) {
        const struct fm_top_key *key = &keys[i];
        char shown[16];
        snprintf(shown, sizeof shown, "%.*s", (int)strcspn(key->shown, " "), key->shown);
        int width = (int)(strlen(shown) + 1 + strlen(key->word));
        if (!*key->word || column + width > l->columns)
            continue;
        column += fm_screen_put(row, column, 16, FM_LOOK_BOLD, shown) + 1;
        column += fm_screen_put(row, column, 16, FM_LOOK_DIM, key->word) + 2;
    }
}

static void draw_input(const struct fm_top_view *view, const struct fm_page_layout *l,
                       const char *label)
{
    int row = l->rows - 1, column = fm_screen_put(row, 0, l->columns / 2, FM_LOOK_BOLD, label);
    column += fm_screen_put_cut(row, column, l->columns - column - 1, FM_LOOK_PLAIN,
                                fm_buffer_text(&view->input), FM_FIT_CUT_START);
    int cursor = column;
    if (*view->message)
        fm_screen_put(row, column + 2, l->columns - column - 2, FM_LOOK_WARNING, view->message);
    fm_screen_cursor(row, cursor);
}

static void draw_bottom(const struct fm_top_view *view, const struct fm_page_layout *l)
{
    char text[1200];
    int row = l->rows - 1;
    fm_screen_cursor(-1, 0);
    switch (view->mode) {
    case FM_TOP_MODE_SEARCH:
        draw_input(view, l, "search: ");
        return;
    case FM_TOP_MODE_FILE:
        draw_input(view, l, "write to (Esc: do not): ");
        return;
    case FM_TOP_MODE_REPLACE:
        snprintf(text, sizeof text, "%s exists. Overwrite it? y n", fm_buffer_text(&view->input));
        fm_screen_put_cut(row, 0, l->columns, FM_LOOK_WARNING, text, FM_FIT_CUT_START);
        return;
    case FM_TOP_MODE_HELP:
        fm_screen_put(row, 0, l->columns, FM_LOOK_DIM,
                      fm_top_keys_count > view->page ? "PgDn, PgUp: more; any other key: back"
                                                     : "any key: back");
        return;
    case FM_TOP_MODE_THREADS:
    case FM_TOP_MODE_STATES:
        fm_screen_put(row, 0, l->columns, FM_LOOK_DIM, "Up, Down, Enter: choose; Esc: back");
        return;
    case FM_TOP_MODE_TABLE:
        break;
    }
    if (*view->message)
        fm_screen_put(row, 0, l->columns, view->is_warning ? FM_LOOK_WARNING : FM_LOOK_BOLD,
                      view->message);
    else if (view->ended)
        fm_screen_put(row, 0, l->columns, FM_LOOK_WARNING,
                      "the process has ended; w writes the recording, q quits");
    else
        fm_page_draw_keys(fm_top_keys, fm_top_keys_count, l);
}

void fm_page_draw(struct fm_top_view *view, const struct fm_top_model *model,
                  const struct fm_top_status *status)
{
    struct fm_page_layout l = layout_of();
    fm_screen_clear();
    if (!fm_page_fits(&l))
        return;
    fm_page_draw_header(view, model, status, &l);
    if (view->mode == FM_TOP_MODE_THREADS || view->mode == FM_TOP_MODE_STATES)
        draw_list(view, &l);
    else
        draw_table(view, model, &l);
    if (view->mode == FM_TOP_MODE_HELP)
        draw_help(view, &l);
    draw_bottom(view, &l);
    fm_screen_show();
}
