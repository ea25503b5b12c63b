/*
 * The curve of memory as a picture: which lines there are (series.c), where they go (chart.c), and
 * how they come onto a picture (canvas.h: svg.c, cairo.c) or a page of text (text.c).
 *
 * Seconds count from the first look of each recording, so that several runs lie above each other, as
 * `mprof plot` shows them.
 */
#ifndef FM_PLOT_PLOT_H
#define FM_PLOT_PLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/vec.h"
#include "record/model/profile.h"

enum fm_plot_children { FM_PLOT_EACH, FM_PLOT_SUM, FM_PLOT_NONE };
enum fm_plot_kind { FM_PLOT_RESIDENT, FM_PLOT_HEAP, FM_PLOT_SHARE, FM_PLOT_PROCESS, FM_PLOT_LIMIT };

struct fm_plot_options {
    enum fm_plot_children children;
    bool slope, marks;
    bool windowed;
    double from, to; /* seconds */
};

struct fm_plot_point {
    double x, y; /* seconds, bytes */
};

struct fm_plot_line {
    enum fm_plot_kind kind;
    uint32_t run, colour; /* of the palette */
    char *label;
    FM_VEC(struct fm_plot_point) points;
    double peak_x, peak_y;
    bool has_slope;
    double slope, offset; /* bytes per second, bytes at 0 s */
};

/* A call or region, from x to x2. */
struct fm_plot_mark {
    char *label;
    uint32_t run, level, colour;
    double x, x2, y, y2;
};

struct fm_plot {
    FM_VEC(struct fm_plot_line) lines;
    FM_VEC(struct fm_plot_mark) marks;
    char *title; /* NULL: none */
    uint32_t runs;
    double x_min, x_max, y_max; /* what is shown */
    struct fm_plot_options options;
};

void fm_plot_init(struct fm_plot *plot, const struct fm_plot_options *options);
void fm_plot_release(struct fm_plot *plot);

/* Add the curves of a recording; `name` tells it from others, NULL if there is only one. FM_UNSUPPORTED
 * if it has none. */
int fm_plot_add(struct fm_plot *plot, const struct fm_profile *p, const char *name,
                struct fm_error *err);

/* All are there: choose what is shown, fit the slopes. FM_UNSUPPORTED if the window is empty. */
int fm_plot_finish(struct fm_plot *plot, struct fm_error *err);

/* Steps of an axis that people read easily, about `wanted` of them up to `most`: 1, 2 or 5 times a
 * power of ten; of bytes a power of 1024 times that, or times a power of two. */
double fm_plot_step(double most, int wanted);
double fm_plot_step_bytes(double most, int wanted);

/* A number of bytes as whole bytes. */
int64_t fm_plot_bytes(double bytes);

/* "64 MiB" of an axis whose steps are `step`. */
void fm_plot_label_bytes(struct fm_buffer *out, double bytes, double step);
void fm_plot_label_seconds(struct fm_buffer *out, double seconds, double step);

/* The chart in characters: Braille dots, `width` by `height` cells in all. */
void fm_plot_text(const struct fm_plot *plot, int width, int height, bool colours,
                  struct fm_buffer *out);

#endif
