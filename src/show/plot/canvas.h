/*
 * What a chart is drawn on: lines, areas and text, at points from the upper left corner. One for SVG,
 * which is text that we write, and one for PNG and PDF, which Cairo draws.
 */
#ifndef FM_PLOT_CANVAS_H
#define FM_PLOT_CANVAS_H

#include "show/plot/plot.h"

struct fm_xy {
    double x, y;
};

struct fm_pen {
    uint32_t colour; /* 0xrrggbb */
    double width, opacity;
    double dash; /* 0: an unbroken line */
};

enum fm_anchor { FM_ANCHOR_START, FM_ANCHOR_MIDDLE, FM_ANCHOR_END };

struct fm_canvas_font {
    uint32_t colour;
    double size;
    enum fm_anchor anchor;
    bool bold;
};

struct fm_canvas {
    void *self;
    void (*line)(void *self, const struct fm_xy *points, size_t n, const struct fm_pen *pen);
    void (*area)(void *self, const struct fm_xy *points, size_t n, const struct fm_pen *pen);
    void (*text)(void *self, double x, double y, const char *text,
                 const struct fm_canvas_font *font);
};

enum fm_plot_format { FM_PLOT_SVG, FM_PLOT_PNG, FM_PLOT_PDF, FM_PLOT_TEXT };

/* Draw the chart; the canvas has that size. */
void fm_plot_draw(const struct fm_plot *plot, const struct fm_canvas *canvas, double width,
                  double height);

void fm_plot_svg(const struct fm_plot *plot, double width, double height, struct fm_buffer *out);

/* FM_UNSUPPORTED if Cairo is not there. */
int fm_plot_cairo(const struct fm_plot *plot, enum fm_plot_format format, double width,
                  double height, struct fm_buffer *out, struct fm_error *err);

#endif
