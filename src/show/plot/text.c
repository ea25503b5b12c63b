/*
 * A chart in characters: each cell is a Braille pattern of two by four dots. Where lines cross, a cell
 * has the colour of the one that is listed first; without colours, what is allocated is dotted and
 * limits are dashed.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "show/plot/plot.h"
#include "show/report/number.h"

#define LABEL 10 /* columns in front of the field */

struct text_chart {
    const struct fm_plot *plot;
    int columns, rows; /* cells of the field */
    uint8_t *dots;     /* of each cell */
    uint8_t *owner;    /* line + 1 */
    double y_most;
    bool colours;
};

/* The bits of a cell: see the Unicode standard, Braille patterns. */
static const uint8_t bits[4][2] = {
    { 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 }
};

static void put_dot(struct text_chart *c, long x, long y, uint8_t owner)
{
    if (x < 0 || y < 0 || x >= c->columns * 2L || y >= c->rows * 4L)
        return;
    size_t cell = (size_t)(y / 4) * (size_t)c->columns + (size_t)(x / 2);
    c->dots[cell] |= bits[y % 4][x % 2];
    if (!c->owner[cell])
        c->owner[cell] = owner;
}

/* From one dot to the next, every `gap`-th column only. */
static void join_dots(struct text_chart *c, long x, long y, long x2, long y2, uint8_t owner,
                      long gap)
{
    long steps = labs(x2 - x) > labs(y2 - y) ? labs(x2 - x) : labs(y2 - y);
    for (long i = 0; i <= steps; i++) {
        double share = steps ? (double)i / (double)steps : 0;
        long at = x + lround(share * (double)(x2 - x));
        if (gap < 2 || at % gap == 0)
            put_dot(c, at, y + lround(share * (double)(y2 - y)), owner);
    }
}

static void draw_line(struct text_chart *c, size_t number)
{
    const struct fm_plot_line *line = &c->plot->lines.data[number];
    long last_x = -1, last_y = 0;
    long gap = line->kind == FM_PLOT_LIMIT ? 3 : line->kind == FM_PLOT_HEAP && !c->colours ? 2 : 1;
    for (size_t i = 0; i < line->points.len; i++) {
        double x = line->points.data[i].x, span = c->plot->x_max - c->plot->x_min;
        if (x < c->plot->x_min || x > c->plot->x_max)
            continue;
        long at_x = lround((x - c->plot->x_min) / span * (double)(c->columns * 2 - 1));
        long at_y = lround((1 - line->points.data[i].y / c->y_most) * (double)(c->rows * 4 - 1));
        join_dots(c, last_x < 0 ? at_x : last_x, last_x < 0 ? at_y : last_y, at_x, at_y,
                  (uint8_t)(number + 1), gap);
        last_x = at_x;
        last_y = at_y;
    }
}

static int ansi_of(const struct fm_plot *plot, size_t number)
{
    static const int codes[] = { 34, 33, 32, 35, 36, 31, 94, 92 };
    const struct fm_plot_line *line = &plot->lines.data[number];
    return line->kind == FM_PLOT_LIMIT ? 31 : codes[line->colour % FM_COUNT(codes)];
}

static void add_padded(struct fm_buffer *out, const char *text, int width)
{
    int free_columns = width - (int)fm_text_width(text, strlen(text));
    fm_buffer_addf(out, "%*s%s", free_columns > 0 ? free_columns : 0, "", text);
}

static void add_row(const struct text_chart *c, int row, struct fm_buffer *out)
{
    int colour = 0;
    for (int i = 0; i < c->columns; i++) {
        size_t cell = (size_t)row * (size_t)c->columns + (size_t)i;
        int wanted = c->owner[cell] && c->colours ? ansi_of(c->plot, c->owner[cell] - 1u) : 0;
        if (wanted != colour)
            fm_buffer_addf(out, "\033[%dm", wanted);
        colour = wanted;
        uint8_t dots = c->dots[cell]; /* U+2800 + dots */
        if (dots)
            fm_buffer_addf(out, "\xe2%c%c", 0xa0 | dots >> 6, 0x80 | (dots & 0x3f));
        else
            fm_buffer_add_char(out, ' ');
    }
    if (colour)
        fm_buffer_add_text(out, "\033[0m");
    while (out->len && out->data[out->len - 1] == ' ')
        out->data[--out->len] = '\0';
    fm_buffer_add_char(out, '\n');
}

static void add_legend(const struct text_chart *c, struct fm_buffer *out)
{
    char peak[FM_NUMBER_BYTES];
    for (size_t i = 0; i < c->plot->lines.len; i++) {
        const struct fm_plot_line *line = &c->plot->lines.data[i];
        const char *sign = line->kind == FM_PLOT_LIMIT                 ? "⠒ "
                           : line->kind == FM_PLOT_HEAP && !c->colours ? "⠄⠄"
                                                                       : "⠤⠤";
        if (c->colours)
            fm_buffer_addf(out, "\033[%dm", ansi_of(c->plot, i));
        fm_buffer_add_text(out, sign);
        if (c->colours)
            fm_buffer_add_text(out, "\033[0m");
        fm_buffer_addf(out, " %s", line->label);
        if (line->peak_y >= 0)
            fm_buffer_addf(out, "%s%s", line->kind == FM_PLOT_LIMIT ? ": " : ", peak ",
                           fm_number_bytes(peak, fm_plot_bytes(line->peak_y)));
        if (line->peak_y >= 0 && line->kind != FM_PLOT_LIMIT)
            fm_buffer_addf(out, " at %.3f s", line->peak_x);
        fm_buffer_add_char(out, '\n');
    }
}

static void add_marks(const struct fm_plot *plot, struct fm_buffer *out)
{
    char begin[FM_NUMBER_BYTES], end[FM_NUMBER_BYTES];
    for (size_t i = 0; i < plot->marks.len; i++) {
        const struct fm_plot_mark *mark = &plot->marks.data[i];
        fm_buffer_addf(out, "%*s[ %s, from %.3f s", (int)(mark->level % 32) * 2, "", mark->label,
                       mark->x);
        if (mark->y >= 0)
            fm_buffer_addf(out, ": %s", fm_number_bytes(begin, fm_plot_bytes(mark->y)));
        if (mark->y >= 0 && mark->y2 >= 0)
            fm_buffer_addf(out, " to %s", fm_number_bytes(end, fm_plot_bytes(mark->y2)));
        fm_buffer_add_text(out, " ]\n");
    }
}

void fm_plot_text(const struct fm_plot *plot, int width, int height, bool colours,
                  struct fm_buffer *out)
{
    struct text_chart c = { .plot = plot, .colours = colours };
    c.columns = width - LABEL > 10 ? width - LABEL : 10;
    c.rows = height > 3 ? height : 3;
    c.dots = fm_calloc((size_t)c.columns, (size_t)c.rows);
    c.owner = fm_calloc((size_t)c.columns, (size_t)c.rows);
    double step = fm_plot_step_bytes(plot->y_max, c.rows / 4 > 2 ? c.rows / 4 : 2);
    c.y_most = ceil(plot->y_max / step - 1e-9) * step;
    for (size_t i = 0; i < plot->lines.len && i < 255; i++)
        draw_line(&c, i);
    if (plot->title)
        fm_buffer_addf(out, "%s\n", plot->title);
    add_legend(&c, out);
    double shown = INFINITY; /* the label of the row above */
    for (int row = 0; row < c.rows; row++) {
        /* The label whose dot lies in this row. */
        double top = c.y_most * (1 - (row * 4 - 0.5) / (c.rows * 4 - 1));
        double label = floor(top / step + 1e-9) * step;
        double bottom = c.y_most * (1 - (row * 4 + 3.5) / (c.rows * 4 - 1));
        fm_autobuffer text = FM_BUFFER_INIT;
        if (label >= bottom && label < shown && label <= c.y_most) {
            fm_plot_label_bytes(&text, label, step);
            shown = label;
        }
        add_padded(out, fm_buffer_text(&text), LABEL - 2);
        fm_buffer_add_text(out, text.len ? " ┤" : " │");
        add_row(&c, row, out);
    }
    fm_autobuffer from = FM_BUFFER_INIT, to = FM_BUFFER_INIT;
    fm_buffer_addf(&from, "%.3f s", plot->x_min);
    fm_buffer_addf(&to, "%.3f s", plot->x_max);
    fm_buffer_addf(out, "%*s%s", LABEL, "", fm_buffer_text(&from));
    add_padded(out, fm_buffer_text(&to), c.columns - (int)from.len);
    fm_buffer_add_char(out, '\n');
    add_marks(plot, out);
    free(c.dots);
    free(c.owner);
}
