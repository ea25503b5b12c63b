/* Tables; see table.h. */
#include "show/report/table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clean.h"
#include "record/model/states.h"
#include "show/report/number.h"

#define FLEXIBLE_MIN 24 /* a table on a very narrow terminal runs over */
#define NAME_MIN     12 /* columns left for a name behind the lines of a tree */
#define GAP          2

static const char *const codes[FM_COLORS] = {
    [FM_COLOR_NONE] = "",
    [FM_COLOR_DIM] = "\033[2m",
    [FM_COLOR_BOLD] = "\033[1m",
    [FM_COLOR_NAME] = "\033[36m",
    [FM_COLOR_WARN] = "\033[33m",
    [FM_COLOR_HEAT1] = "",
    [FM_COLOR_HEAT2] = "\033[32m",
    [FM_COLOR_HEAT3] = "\033[33m",
    [FM_COLOR_HEAT4] = "\033[1;31m",
    [FM_COLOR_WORSE] = "\033[31m",
    [FM_COLOR_BETTER] = "\033[32m",
    [FM_COLOR_STATES] = "",
    /* Black on a bright ground, then on a plain one. */
    [FM_COLOR_PHASE] = "\033[30;102m",
    [FM_COLOR_PHASE + 1] = "\033[30;104m",
    [FM_COLOR_PHASE + 2] = "\033[30;103m",
    [FM_COLOR_PHASE + 3] = "\033[30;105m",
    [FM_COLOR_PHASE + 4] = "\033[30;106m",
    [FM_COLOR_PHASE + 5] = "\033[30;101m",
    [FM_COLOR_PHASE + 6] = "\033[30;47m",
    [FM_COLOR_PHASE + 7] = "\033[30;42m",
    [FM_COLOR_PHASE + 8] = "\033[30;45m",
    [FM_COLOR_PHASE + 9] = "\033[30;43m",
    [FM_COLOR_WAIT] = "\033[92m",
    [FM_COLOR_WAIT + 1] = "\033[94m",
    [FM_COLOR_WAIT + 2] = "\033[93m",
    [FM_COLOR_WAIT + 3] = "\033[95m",
    [FM_COLOR_WAIT + 4] = "\033[96m",
    [FM_COLOR_WAIT + 5] = "\033[91m",
    [FM_COLOR_WAIT + 6] = "\033[37m",
    [FM_COLOR_WAIT + 7] = "\033[32m",
    [FM_COLOR_WAIT + 8] = "\033[35m",
    [FM_COLOR_WAIT + 9] = "\033[33m",
};

/* The state that a piece of a cell begins with: its word before a share, or its letter in a bar. */
static enum fm_ansi state_color(const char *text, size_t len, bool words)
{
    for (int s = 0; s < FM_STATE_COUNT; s++) {
        const struct fm_state_info *state = fm_state_info((enum fm_state)s);
        size_t word = strlen(state->word);
        if (words ? word < len && text[word] == ' ' && memcmp(text, state->word, word) == 0
                  : text[0] == state->letter)
            return state->ansi;
    }
    return FM_ANSI_DIM;
}

static void begin_state(FILE *out, enum fm_ansi color)
{
    if (color == FM_ANSI_DIM)
        fputs(codes[FM_COLOR_DIM], out);
    else
        fprintf(out, "\033[3%dm", (int)color);
}

struct fm_style fm_style_for(FILE *out, enum fm_color_mode mode, int width)
{
    struct fm_style style = { .width = width };
    bool terminal = isatty(fileno(out));
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    bool plain = (no_color && *no_color) || (term && strcmp(term, "dumb") == 0);
    style.color = mode == FM_COLOR_ALWAYS || (mode == FM_COLOR_AUTO && terminal && !plain);
    struct winsize size;
    if (width <= 0 && terminal && ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col)
        style.width = size.ws_col;
    return style;
}

enum fm_color fm_color_heat(double part, double whole)
{
    double share = whole > 0 ? part / whole : 0;
    if (share >= 0.25)
        return FM_COLOR_HEAT4;
    if (share >= 0.10)
        return FM_COLOR_HEAT3;
    return share >= 0.03 ? FM_COLOR_HEAT2 : FM_COLOR_HEAT1;
}

void fm_color_begin(const struct fm_style *style, FILE *out, enum fm_color color)
{
    if (style->color)
        fputs(codes[color], out);
}

void fm_color_end(const struct fm_style *style, FILE *out, enum fm_color color)
{
    if (style->color && *codes[color])
        fputs("\033[0m", out);
}

void fm_table_init(struct fm_table *t, struct fm_style style)
{
    memset(t, 0, sizeof *t);
    t->style = style;
}

void fm_table_release(struct fm_table *t)
{
    fm_vec_release(&t->columns);
    fm_vec_release(&t->cells);
    fm_buffer_release(&t->text);
}

void fm_table_column(struct fm_table *t, const char *title, enum fm_table_align align)
{
    fm_vec_push(&t->columns,
                ((struct fm_table_column){ title, align, fm_text_width(title, strlen(title)) }));
}

void fm_table_cell_branch(struct fm_table *t, enum fm_color color, const char *lines,
                          const char *text, const char *dim)
{
    struct fm_table_cell cell = { .start = t->text.len, .color = color };
    struct fm_table_column *column = &t->columns.data[t->cells.len % t->columns.len];
    fm_buffer_add_text(&t->text, lines);
    cell.lead = t->text.len - cell.start;
    fm_clean_add(&t->text, text, strlen(text));
    cell.dim_from = t->text.len - cell.start;
    if (*dim) {
        fm_buffer_add_text(&t->text, "  ");
        fm_clean_add(&t->text, dim, strlen(dim));
    }
    cell.len = t->text.len - cell.start;
    size_t width = fm_text_width(fm_buffer_text(&t->text) + cell.start, cell.len);
    if (width > column->width)
        column->width = width;
    fm_vec_push(&t->cells, cell);
}

void fm_table_cell_pair(struct fm_table *t, enum fm_color color, const char *text, const char *dim)
{
    fm_table_cell_branch(t, color, "", text, dim);
}

void fm_table_cell(struct fm_table *t, enum fm_color color, const char *text)
{
    fm_table_cell_pair(t, color, text, "");
}

static bool is_flexible(const struct fm_table_column *c)
{
    return c->align == FM_TABLE_FLEXIBLE || c->align == FM_TABLE_TEXT;
}

/* How the columns share the page. */
struct layout {
    size_t flexible; /* width left for the flexible column */
    bool optional;   /* there is room for the optional columns */
};

static size_t width_of_others(const struct fm_table *t, bool optional)
{
    size_t others = 0;
    for (size_t i = 0; i < t->columns.len; i++) {
        const struct fm_table_column *c = &t->columns.data[i];
        if (!is_flexible(c) && (optional || c->align != FM_TABLE_OPTIONAL))
            others += c->width + GAP;
    }
    return others;
}

static struct layout lay_out(const struct fm_table *t)
{
    struct layout layout = { SIZE_MAX, true };
    if (t->style.width <= 0)
        return layout;
    size_t width = (size_t)t->style.width, others = width_of_others(t, true);
    layout.optional = width >= others + FLEXIBLE_MIN;
    if (!layout.optional)
        others = width_of_others(t, false);
    layout.flexible = width > others + FLEXIBLE_MIN ? width - others : FLEXIBLE_MIN;
    return layout;
}

static bool is_shown(const struct fm_table_column *c, const struct layout *layout)
{
    return c->align != FM_TABLE_OPTIONAL || layout->optional;
}

static bool is_right(const struct fm_table_column *c)
{
    return c->align == FM_TABLE_RIGHT || c->align == FM_TABLE_OPTIONAL;
}

static void pad(FILE *out, size_t n)
{
    fprintf(out, "%*s", (int)n, "");
}

/* Bytes of the longest start (or, backwards, the longest end) that fits `columns`. */
static size_t fitting(const char *text, size_t len, size_t columns, bool end)
{
    size_t used = 0;
    while (used < len) {
        size_t next = used + 1;
        if (end) {
            while (next < len && ((unsigned char)text[len - next] & 0xc0) == 0x80)
                next++;
        } else {
            while (next < len && ((unsigned char)text[next] & 0xc0) == 0x80)
                next++;
        }
        if (fm_text_width(end ? text + len - next : text, next) > columns)
            break;
        used = next;
    }
    return used;
}

static void print_part(const struct fm_table *t, FILE *out, enum fm_color color, const char *text,
                       size_t len)
{
    if (!len)
        return;
    fm_color_begin(&t->style, out, color);
    fwrite(text, 1, len, out);
    fm_color_end(&t->style, out, color);
}

/* The words of a cell of states, or the cells of a bar, each in its colour. */
static void print_states(const struct fm_table *t, FILE *out, const char *text, size_t len)
{
    static const char between[] = " · ";
    bool words = memchr(text, ' ', len) != NULL;
    for (size_t at = 0; at < len;) {
        const char *gap = words ? memmem(text + at, len - at, between, strlen(between)) : NULL;
        size_t end = gap ? (size_t)(gap - text) : len;
        while (!words && end > at + 1 && text[end - 1] != text[at])
            end--;
        begin_state(out, state_color(text + at, end - at, words));
        fprintf(out, "%.*s\033[0m", (int)(end - at), text + at);
        if (gap)
            print_part(t, out, FM_COLOR_DIM, between, strlen(between));
        at = gap ? end + strlen(between) : end;
    }
}

/* Print a cell in at most `limit` columns; the middle gives way, or the end. Returns the columns
 * used. */
static size_t print_text(const struct fm_table *t, FILE *out, const struct fm_table_cell *cell,
                         size_t limit, bool keep_start)
{
    const char *text = fm_buffer_text(&t->text) + cell->start;
    size_t lead = fm_text_width(text, cell->lead);
    print_part(t, out, FM_COLOR_DIM, text, cell->lead);
    text += cell->lead;
    size_t len = cell->len - cell->lead, width = fm_text_width(text, len);
    size_t dim = cell->dim_from - cell->lead;
    limit = limit > lead + NAME_MIN ? limit - lead : NAME_MIN;
    if (width <= limit && cell->color == FM_COLOR_STATES && t->style.color) {
        print_states(t, out, text, len);
        return lead + width;
    }
    if (width <= limit) {
        print_part(t, out, cell->color, text, dim);
        print_part(t, out, FM_COLOR_DIM, text + dim, len - dim);
        return lead + width;
    }
    /* Keep the start of the name and the end of the path: that is what tells functions apart. */
    size_t head = fitting(text, len, keep_start ? limit - 1 : (limit - 1) / 2, false);
    size_t head_width = fm_text_width(text, head);
    size_t tail = keep_start ? 0 : fitting(text, len, limit - 1 - head_width, true);
    size_t from = len - tail;
    size_t tail_width = fm_text_width(text + from, tail);
    print_part(t, out, cell->color, text, head < dim ? head : dim);
    print_part(t, out, FM_COLOR_DIM, text + dim, head > dim ? head - dim : 0);
    print_part(t, out, FM_COLOR_DIM, "…", strlen("…"));
    print_part(t, out, cell->color, text + from, from < dim ? dim - from : 0);
    size_t dim_start = from > dim ? from : dim;
    print_part(t, out, FM_COLOR_DIM, text + dim_start, len - dim_start);
    return lead + head_width + 1 + tail_width;
}

static size_t limit_of(const struct fm_table_column *c, const struct layout *layout)
{
    bool narrow = is_flexible(c) && layout->flexible < c->width;
    return narrow ? layout->flexible : c->width;
}

static void print_cell(const struct fm_table *t, FILE *out, size_t column,
                       const struct fm_table_cell *cell, const struct layout *layout)
{
    const struct fm_table_column *c = &t->columns.data[column];
    bool last = column + 1 == t->columns.len;
    size_t limit = limit_of(c, layout);
    size_t own = fm_text_width(fm_buffer_text(&t->text) + cell->start, cell->len);
    if (is_right(c) && own < limit)
        pad(out, limit - own);
    size_t used = print_text(t, out, cell, limit, c->align == FM_TABLE_TEXT);
    if (!last && !is_right(c) && used < limit)
        pad(out, limit - used);
    if (!last)
        pad(out, GAP);
}

static void print_titles(const struct fm_table *t, FILE *out, const struct layout *layout)
{
    fm_color_begin(&t->style, out, FM_COLOR_BOLD);
    for (size_t i = 0; i < t->columns.len; i++) {
        const struct fm_table_column *c = &t->columns.data[i];
        size_t width = fm_text_width(c->title, strlen(c->title)), limit = limit_of(c, layout);
        bool last = i + 1 == t->columns.len;
        if (!is_shown(c, layout))
            continue;
        if (is_right(c))
            pad(out, limit - width);
        fputs(c->title, out);
        if (!last)
            pad(out, (is_right(c) || limit < width ? 0 : limit - width) + GAP);
    }
    fm_color_end(&t->style, out, FM_COLOR_BOLD);
    fputc('\n', out);
}

/* As wide as the titles. */
static void print_rule(const struct fm_table *t, FILE *out, const struct layout *layout)
{
    size_t width = 0;
    for (size_t i = 0; i < t->columns.len; i++) {
        const struct fm_table_column *c = &t->columns.data[i];
        bool last = i + 1 == t->columns.len;
        if (is_shown(c, layout))
            width += last && !is_right(c) ? fm_text_width(c->title, strlen(c->title))
                                          : limit_of(c, layout) + (last ? 0 : GAP);
    }
    fm_color_begin(&t->style, out, FM_COLOR_DIM);
    while (width--)
        fputc('=', out);
    fm_color_end(&t->style, out, FM_COLOR_DIM);
    fputc('\n', out);
}

void fm_table_print(const struct fm_table *t, FILE *out)
{
    struct layout layout = lay_out(t);
    size_t columns = t->columns.len;
    print_titles(t, out, &layout);
    if (t->ruled)
        print_rule(t, out, &layout);
    for (size_t i = 0; i < t->cells.len; i++) {
        if (is_shown(&t->columns.data[i % columns], &layout))
            print_cell(t, out, i % columns, &t->cells.data[i], &layout);
        if (i % columns == columns - 1)
            fputc('\n', out);
    }
}
