/* Where everything of a chart goes; see canvas.h. */
#include <math.h>

#include "base/memory.h"
#include "show/plot/canvas.h"
#include "show/report/number.h"

#define GREY       0x737b87 /* to be read on white and on black */
#define RED        0xd6453d
#define FONT       12.0
#define MARGIN     16.0
#define LEFT       76.0
#define BOTTOM     34.0
#define TITLE      28.0
#define ROW        18.0
#define LEVELS_MAX 8 /* of calls, one above the other */

static const uint32_t palette[] = { 0x2f7ed8, 0xe67e22, 0x2ca25f, 0x9467bd, 0xc94f7c,
                                    0x17a2b8, 0x8c6d46, 0x7f8c1f, 0x3b8f83, 0xb0413e };

struct chart {
    const struct fm_plot *plot;
    const struct fm_canvas *canvas;
    double left, top, right, bottom; /* of the field where the curves are */
    double y_most;
    double label_step_y;
};

static uint32_t colour_of(uint32_t number)
{
    return palette[number % FM_COUNT(palette)];
}

static double place_x(const struct chart *c, double x)
{
    const struct fm_plot *plot = c->plot;
    return c->left + (x - plot->x_min) / (plot->x_max - plot->x_min) * (c->right - c->left);
}

static double place_y(const struct chart *c, double y)
{
    return c->bottom - y / c->y_most * (c->bottom - c->top);
}

static void rule(const struct chart *c, double x, double y, double x2, double y2,
                 const struct fm_pen *pen)
{
    struct fm_xy ends[2] = { { x, y }, { x2, y2 } };
    c->canvas->line(c->canvas->self, ends, 2, pen);
}

static void draw_axes(const struct chart *c)
{
    struct fm_pen pen = { GREY, 1, 0.25, 0 };
    struct fm_canvas_font font = { GREY, FONT, FM_ANCHOR_END, false };
    fm_autobuffer text = FM_BUFFER_INIT;
    for (double y = 0; y <= c->y_most * 1.0001; y += c->label_step_y) {
        fm_buffer_clear(&text);
        fm_plot_label_bytes(&text, y, c->label_step_y);
        rule(c, c->left, place_y(c, y), c->right, place_y(c, y), &pen);
        c->canvas->text(c->canvas->self, c->left - 8, place_y(c, y) + FONT * 0.35,
                        fm_buffer_text(&text), &font);
    }
    double span = c->plot->x_max - c->plot->x_min;
    double step = fm_plot_step(span, (int)fmax(2, (c->right - c->left) / 75));
    if (step >= 30) /* minutes and hours have other round numbers */
        step = step < 60 ? 60 : ceil(step / 60) * 60;
    font.anchor = FM_ANCHOR_MIDDLE;
    pen.opacity = 0.6;
    for (double x = fabs(ceil(c->plot->x_min / step - 1e-9) * step);
         x <= c->plot->x_max * 1.0001 + 1e-12; x += step) {
        fm_buffer_clear(&text);
        fm_plot_label_seconds(&text, x, step);
        rule(c, place_x(c, x), c->bottom, place_x(c, x), c->bottom + 5, &pen);
        c->canvas->text(c->canvas->self, fmin(place_x(c, x), c->right - 4), c->bottom + 20,
                        fm_buffer_text(&text), &font);
    }
}

/* What of a line is shown, at most four points for each column of pixels: the first, the highest, the
 * lowest and the last. */
static size_t shorten(const struct chart *c, const struct fm_plot_line *line, struct fm_xy *out)
{
    size_t n = 0, first = 0, low = 0, high = 0;
    double column = -1;
    for (size_t i = 0; i < line->points.len; i++) {
        const struct fm_plot_point *point = &line->points.data[i];
        if (point->x < c->plot->x_min || point->x > c->plot->x_max)
            continue;
        struct fm_xy at = { place_x(c, point->x), place_y(c, point->y) };
        if (floor(at.x) != column || n == 0) {
            column = floor(at.x);
            first = low = high = n;
        } else if (n - first >= 4) { /* the last one gives way, if it is neither */
            size_t last = n - 1;
            if (at.y < out[high].y && high != last)
                out[high].y = at.y;
            if (at.y > out[low].y && low != last)
                out[low].y = at.y;
            out[last] = at;
            continue;
        } else {
            high = at.y < out[high].y ? n : high;
            low = at.y > out[low].y ? n : low;
        }
        out[n++] = at;
    }
    return n;
}

static void draw_line(const struct chart *c, const struct fm_plot_line *line)
{
    struct fm_xy *points = fm_malloc((line->points.len + 2) * sizeof *points);
    size_t n = shorten(c, line, points);
    struct fm_pen pen = { colour_of(line->colour), 1.6, 1, 0 };
    if (line->kind == FM_PLOT_LIMIT)
        pen = (struct fm_pen){ RED, 1.2, 0.8, 7 };
    else if (line->kind == FM_PLOT_PROCESS || line->kind == FM_PLOT_SHARE)
        pen.width = 1.1;
    else if (line->kind == FM_PLOT_HEAP && c->plot->runs > 1)
        pen.dash = 4;
    if (n == 1) /* a single look */
        points[n++] = (struct fm_xy){ points[0].x + 3, points[0].y };
    if (n && line->kind == FM_PLOT_RESIDENT && c->plot->runs == 1) {
        struct fm_pen shade = { pen.colour, 0, 0.12, 0 };
        struct fm_xy *area = fm_malloc((n + 2) * sizeof *area);
        for (size_t i = 0; i < n; i++)
            area[i] = points[i];
        area[n] = (struct fm_xy){ points[n - 1].x, c->bottom };
        area[n + 1] = (struct fm_xy){ points[0].x, c->bottom };
        c->canvas->area(c->canvas->self, area, n + 2, &shade);
        free(area);
    }
    if (n)
        c->canvas->line(c->canvas->self, points, n, &pen);
    free(points);
    if (line->has_slope) {
        struct fm_pen trend = { pen.colour, 1, 0.9, 2.5 };
        double from = fmax(c->plot->x_min, line->points.data[0].x);
        double to = fmin(c->plot->x_max, line->points.data[line->points.len - 1].x);
        rule(c, place_x(c, from), place_y(c, fmax(0, line->offset + line->slope * from)),
             place_x(c, to), place_y(c, fmax(0, line->offset + line->slope * to)), &trend);
    }
}

/* The highest of resident memory, or of what is there, of each run. */
static void draw_peaks(const struct chart *c)
{
    for (uint32_t run = 0; run < c->plot->runs; run++) {
        const struct fm_plot_line *line = NULL;
        for (size_t i = 0; i < c->plot->lines.len && !line; i++)
            if (c->plot->lines.data[i].run == run && c->plot->lines.data[i].peak_y >= 0 &&
                c->plot->lines.data[i].kind != FM_PLOT_LIMIT)
                line = &c->plot->lines.data[i];
        if (!line)
            continue;
        double x = place_x(c, line->peak_x), y = place_y(c, line->peak_y);
        struct fm_pen pen = { colour_of(line->colour), 1, 0.7, 3 };
        rule(c, x, y, x, c->bottom, &pen);
        rule(c, c->left, y, x, y, &pen);
        char peak[FM_NUMBER_BYTES];
        fm_autobuffer text = FM_BUFFER_INIT;
        fm_buffer_addf(&text, "peak %s", fm_number_bytes(peak, fm_plot_bytes(line->peak_y)));
        bool right = x > (c->left + c->right) / 2;
        struct fm_canvas_font font = { colour_of(line->colour), FONT,
                                       right ? FM_ANCHOR_END : FM_ANCHOR_START, false };
        c->canvas->text(c->canvas->self, x + (right ? -6 : 6), y - 6, fm_buffer_text(&text), &font);
    }
}

/* Calls and regions: brackets at what the process had when they began and ended, their names at the
 * upper edge, deeper ones lower. */
static void draw_marks(const struct chart *c)
{
    for (size_t i = 0; i < c->plot->marks.len; i++) {
        const struct fm_plot_mark *mark = &c->plot->marks.data[i];
        if (mark->x2 < c->plot->x_min || mark->x > c->plot->x_max)
            continue;
        uint32_t colour = colour_of(mark->level + 2);
        double x = place_x(c, fmax(mark->x, c->plot->x_min));
        double x2 = place_x(c, fmin(mark->x2, c->plot->x_max));
        double y = c->top + 6 + ROW * (mark->level < LEVELS_MAX ? mark->level : LEVELS_MAX);
        struct fm_pen pen = { colour, 1.2, 0.9, 0 };
        struct fm_xy bar[4] = { { x, y + 5 }, { x, y }, { x2, y }, { x2, y + 5 } };
        c->canvas->line(c->canvas->self, bar, 4, &pen);
        struct fm_pen thin = { colour, 0.8, 0.45, 3 };
        if (mark->y >= 0)
            rule(c, x, y + 5, x, place_y(c, mark->y), &thin);
        if (mark->y2 >= 0)
            rule(c, x2, y + 5, x2, place_y(c, mark->y2), &thin);
        struct fm_canvas_font font = { colour, FONT - 1, FM_ANCHOR_START, false };
        c->canvas->text(c->canvas->self, x + 4, y + 13, mark->label, &font);
    }
}

/* Many lines are listed in two columns. */
static size_t legend_rows(const struct fm_plot *plot)
{
    return plot->lines.len > 4 ? (plot->lines.len + 1) / 2 : plot->lines.len;
}

static void draw_legend(const struct chart *c, double top)
{
    size_t rows = legend_rows(c->plot);
    for (size_t i = 0; i < c->plot->lines.len; i++) {
        double x = MARGIN + (double)(i / rows) * (c->right - MARGIN) / 2;
        double y = top + (double)(i % rows) * ROW;
        const struct fm_plot_line *line = &c->plot->lines.data[i];
        bool limit = line->kind == FM_PLOT_LIMIT;
        bool dashed = line->kind == FM_PLOT_HEAP && c->plot->runs > 1;
        struct fm_pen pen = { limit ? RED : colour_of(line->colour), 2, 1,
                              limit    ? 7
                              : dashed ? 4
                                       : 0 };
        struct fm_canvas_font font = { GREY, FONT, FM_ANCHOR_START, false };
        rule(c, x, y - 4, x + 22, y - 4, &pen);
        c->canvas->text(c->canvas->self, x + 30, y, line->label, &font);
    }
}

void fm_plot_draw(const struct fm_plot *plot, const struct fm_canvas *canvas, double width,
                  double height)
{
    double title = plot->title ? TITLE : 0;
    double legend = ROW * (double)legend_rows(plot);
    struct chart c = { .plot = plot,
                       .canvas = canvas,
                       .left = LEFT,
                       .right = width - MARGIN,
                       .top = MARGIN + title + legend + 6,
                       .bottom = height - BOTTOM };
    if (c.bottom < c.top + 40)
        c.bottom = c.top + 40;
    c.label_step_y = fm_plot_step_bytes(plot->y_max, 6);
    double levels = 0; /* the names of calls stand above the curves */
    for (size_t i = 0; i < plot->marks.len; i++)
        levels = fmax(levels, fmin(plot->marks.data[i].level + 1, LEVELS_MAX + 1));
    double room = 1 - fmin(0.6, (levels * ROW + 14) / (c.bottom - c.top));
    c.y_most = ceil(plot->y_max / room / c.label_step_y - 1e-9) * c.label_step_y;
    struct fm_canvas_font font = { GREY, FONT + 3, FM_ANCHOR_START, true };
    if (plot->title)
        canvas->text(canvas->self, MARGIN, MARGIN + FONT + 2, plot->title, &font);
    draw_legend(&c, MARGIN + title + FONT);
    draw_axes(&c);
    for (size_t i = plot->lines.len; i > 0; i--) /* the first on top */
        draw_line(&c, &plot->lines.data[i - 1]);
    draw_peaks(&c);
    draw_marks(&c);
}
