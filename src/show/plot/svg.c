/*
 * A chart as SVG. Colours are of middle lightness, and what is behind them is light or dark as the
 * reader's system is.
 */
#include "base/clean.h"
#include "show/plot/canvas.h"

static void add_points(struct fm_buffer *out, const struct fm_xy *points, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fm_buffer_addf(out, "%s%.1f,%.1f", i ? " " : "", points[i].x, points[i].y);
}

static void draw_line(void *self, const struct fm_xy *points, size_t n, const struct fm_pen *pen)
{
    struct fm_buffer *out = self;
    fm_buffer_add_text(out, "<polyline points=\"");
    add_points(out, points, n);
    fm_buffer_addf(out, "\" fill=\"none\" stroke=\"#%06x\" stroke-width=\"%g\"", pen->colour,
                   pen->width);
    if (pen->opacity < 1)
        fm_buffer_addf(out, " stroke-opacity=\"%g\"", pen->opacity);
    if (pen->dash > 0)
        fm_buffer_addf(out, " stroke-dasharray=\"%g\"", pen->dash);
    fm_buffer_add_text(out, " stroke-linejoin=\"round\"/>\n");
}

static void draw_area(void *self, const struct fm_xy *points, size_t n, const struct fm_pen *pen)
{
    struct fm_buffer *out = self;
    fm_buffer_add_text(out, "<polygon points=\"");
    add_points(out, points, n);
    fm_buffer_addf(out, "\" fill=\"#%06x\" fill-opacity=\"%g\"/>\n", pen->colour, pen->opacity);
}

static void draw_text(void *self, double x, double y, const char *text,
                      const struct fm_canvas_font *font)
{
    static const char *const anchors[] = { "start", "middle", "end" };
    struct fm_buffer *out = self;
    fm_buffer_addf(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%g\" fill=\"#%06x\"", x, y,
                   font->size, font->colour);
    if (font->anchor != FM_ANCHOR_START)
        fm_buffer_addf(out, " text-anchor=\"%s\"", anchors[font->anchor]);
    if (font->bold)
        fm_buffer_add_text(out, " font-weight=\"bold\"");
    fm_buffer_add_char(out, '>');
    for (; *text; text++) { /* it is clean: see series.c */
        if (*text == '<')
            fm_buffer_add_text(out, "&lt;");
        else if (*text == '>')
            fm_buffer_add_text(out, "&gt;");
        else if (*text == '&')
            fm_buffer_add_text(out, "&amp;");
        else
            fm_buffer_add_char(out, *text);
    }
    fm_buffer_add_text(out, "</text>\n");
}

void fm_plot_svg(const struct fm_plot *plot, double width, double height, struct fm_buffer *out)
{
    struct fm_canvas canvas = { out, draw_line, draw_area, draw_text };
    fm_buffer_addf(out,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" "
                   "viewBox=\"0 0 %g %g\" font-family=\"system-ui, sans-serif\">\n"
                   "<style>.page{fill:#fff}@media (prefers-color-scheme:dark)"
                   "{.page{fill:#16181d}}</style>\n"
                   "<rect class=\"page\" width=\"100%%\" height=\"100%%\"/>\n",
                   width, height, width, height);
    fm_plot_draw(plot, &canvas, width, height);
    fm_buffer_add_text(out, "</svg>\n");
}
