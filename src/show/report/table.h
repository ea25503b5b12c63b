/*
 * A table on a terminal or in a file: aligned columns, calm colours, long names shortened in the
 * middle so that a row fits the width.
 *
 *     struct fm_table t;
 *     fm_table_init(&t, style);
 *     fm_table_column(&t, "calls", FM_TABLE_RIGHT);
 *     fm_table_cell(&t, FM_COLOR_NONE, "12");       cells go row by row, left to right
 *     fm_table_print(&t, out);
 *     fm_table_release(&t);
 *
 * Control characters in a cell are shown as "?": names come from files that may be hostile to a
 * terminal. At most one column is flexible: it is the one that is shortened, in the middle
 * (FM_TABLE_FLEXIBLE), or at the end, as source text wants it (FM_TABLE_TEXT).
 */
#ifndef FM_REPORT_TABLE_H
#define FM_REPORT_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/vec.h"

enum fm_color {
    FM_COLOR_NONE,
    FM_COLOR_DIM,
    FM_COLOR_BOLD,
    FM_COLOR_NAME,  /* a function */
    FM_COLOR_WARN,  /* something was lost */
    FM_COLOR_HEAT1, /* a small share … */
    FM_COLOR_HEAT2,
    FM_COLOR_HEAT3,
    FM_COLOR_HEAT4,  /* … most of it */
    FM_COLOR_WORSE,  /* more than it was */
    FM_COLOR_BETTER, /* less */
    FM_COLOR_STATES, /* a cell of states (sampling.h): each in its own colour */
    FM_COLOR_PHASE, /* FM_PHASE_COLORS grounds that can be told apart, for pieces of a timeline … */
    FM_COLOR_WAIT = FM_COLOR_PHASE + 10, /* … and the same as letters, where it stands still */
    FM_COLORS = FM_COLOR_WAIT + 10,
};
#define FM_PHASE_COLORS 10

enum fm_color_mode { FM_COLOR_AUTO, FM_COLOR_ALWAYS, FM_COLOR_NEVER };

/* How a report looks: decided once, by where it goes. */
struct fm_style {
    bool color;
    int width; /* columns; 0: no limit */
};

/* Colours if `out` is a terminal and NO_COLOR is not set, unless told; the terminal's width unless
 * `width` is given (> 0). A file has no width limit. */
struct fm_style fm_style_for(FILE *out, enum fm_color_mode mode, int width);

/* The colour of a share: warmer the larger it is. */
enum fm_color fm_color_heat(double part, double whole);

/* Switch a colour on, and off again; nothing without colours. */
void fm_color_begin(const struct fm_style *style, FILE *out, enum fm_color color);
void fm_color_end(const struct fm_style *style, FILE *out, enum fm_color color);

/* An optional column is right-aligned, and left out where the page is too narrow for all. */
enum fm_table_align {
    FM_TABLE_LEFT,
    FM_TABLE_RIGHT,
    FM_TABLE_FLEXIBLE,
    FM_TABLE_TEXT,
    FM_TABLE_OPTIONAL,
};

struct fm_table_column {
    const char *title;
    enum fm_table_align align;
    size_t width;
};

struct fm_table_cell {
    size_t start, len; /* in `text` */
    enum fm_color color;
    size_t lead;     /* bytes in front that are dim and never cut: the lines of a tree */
    size_t dim_from; /* from this byte on the text is dim again */
};

struct fm_table {
    struct fm_style style;
    bool ruled; /* a line of = under the titles */
    FM_VEC(struct fm_table_column) columns;
    FM_VEC(struct fm_table_cell) cells;
    struct fm_buffer text;
};

void fm_table_init(struct fm_table *t, struct fm_style style);
void fm_table_release(struct fm_table *t);
void fm_table_column(struct fm_table *t, const char *title, enum fm_table_align align);
void fm_table_cell(struct fm_table *t, enum fm_color color, const char *text);
/* A cell of two parts, the second of them dim: a name and where it is. */
void fm_table_cell_pair(struct fm_table *t, enum fm_color color, const char *text, const char *dim);
/* The same with lines of a tree in front. */
void fm_table_cell_branch(struct fm_table *t, enum fm_color color, const char *lines,
                          const char *text, const char *dim);
void fm_table_print(const struct fm_table *t, FILE *out);

#endif
