/*
 * Colours, widths and sizes of a call graph by weight: gprof2dot's colour maps, and one of two hues
 * for comparisons.
 */
#ifndef FM_GRAPH_THEME_H
#define FM_GRAPH_THEME_H

#include <stdbool.h>
#include <stdint.h>

struct fm_hsl {
    double h, s, l;
};

struct fm_theme {
    const char *name;
    struct fm_hsl min, max; /* of weight 0 and 1 */
    double gamma;
    double font_min, font_max; /* points */
    double pen_min, pen_max;
    bool filled;     /* boxes are filled; otherwise they are lines in the colour of their text */
    bool colourless; /* made of greys alone */
};

struct fm_rgb {
    uint8_t r, g, b;
};

/* The theme of that name, or NULL; the first is the default. NULL-terminated list of names. */
const struct fm_theme *fm_theme_named(const char *name);
const char *const *fm_theme_names(void);

/* `skew` bends the curve from weight to colour; 1 leaves it straight. */
struct fm_rgb fm_theme_colour(const struct fm_theme *theme, double weight, double skew);
/* The colour of text on that ground: white, or dark where white could not be read. */
struct fm_rgb fm_theme_text(struct fm_rgb ground);
double fm_theme_font(const struct fm_theme *theme, double weight);
double fm_theme_pen(const struct fm_theme *theme, double weight);
double fm_theme_arrow(const struct fm_theme *theme, double weight);

/* The colour of a change from -1 (much less, blue) over 0 (grey) to 1 (much more, red), as the
 * ground of a box or as a line. */
struct fm_rgb fm_theme_change(double change);
struct fm_rgb fm_theme_change_line(double change);

#endif
