/*
 * A chart as PNG or PDF, drawn by Cairo, which is there wherever Graphviz's library is. It is loaded
 * when needed (base/library.h). Its headers are not: the few functions below have been the same since
 * Cairo 1.0, and its soname would change with them.
 */
#include <stdint.h>

#include "base/library.h"
#include "base/memory.h"
#include "show/plot/canvas.h"

#define LIBCAIRO "libcairo.so.2"
#define SCALE    2.0 /* pixels of a PNG for each point */

typedef struct cairo_surface cairo_surface_t;
typedef struct cairo_context cairo_t;
typedef int (*cairo_writer)(void *closure, const unsigned char *bytes, unsigned len);
struct cairo_extents { /* cairo_text_extents_t */
    double x_bearing, y_bearing, width, height, x_advance, y_advance;
};
enum { CAIRO_ARGB32 = 0, CAIRO_SUCCESS = 0, CAIRO_WRITE_ERROR = 11, CAIRO_JOIN_ROUND = 1 };

cairo_surface_t *cairo_image_surface_create(int format, int width, int height);
cairo_surface_t *cairo_pdf_surface_create_for_stream(cairo_writer write, void *closure,
                                                     double width, double height);
int cairo_surface_write_to_png_stream(cairo_surface_t *s, cairo_writer write, void *closure);
void cairo_surface_finish(cairo_surface_t *s);
int cairo_surface_status(cairo_surface_t *s);
void cairo_surface_destroy(cairo_surface_t *s);
cairo_t *cairo_create(cairo_surface_t *s);
void cairo_destroy(cairo_t *c);
int cairo_status(cairo_t *c);
void cairo_scale(cairo_t *c, double x, double y);
void cairo_paint(cairo_t *c);
void cairo_new_path(cairo_t *c);
void cairo_move_to(cairo_t *c, double x, double y);
void cairo_line_to(cairo_t *c, double x, double y);
void cairo_stroke(cairo_t *c);
void cairo_fill(cairo_t *c);
void cairo_set_line_width(cairo_t *c, double width);
void cairo_set_line_join(cairo_t *c, int join);
void cairo_set_dash(cairo_t *c, const double *dashes, int n, double offset);
void cairo_set_source_rgba(cairo_t *c, double r, double g, double b, double a);
void cairo_select_font_face(cairo_t *c, const char *family, int slant, int weight);
void cairo_set_font_size(cairo_t *c, double size);
void cairo_text_extents(cairo_t *c, const char *text, struct cairo_extents *extents);
void cairo_show_text(cairo_t *c, const char *text);

/* clang-format off */
#define FUNCTIONS(X)                                                                               \
    X(cairo_image_surface_create) X(cairo_pdf_surface_create_for_stream)                           \
    X(cairo_surface_write_to_png_stream) X(cairo_surface_finish) X(cairo_surface_status)           \
    X(cairo_surface_destroy) X(cairo_create) X(cairo_destroy) X(cairo_status) X(cairo_scale)       \
    X(cairo_paint) X(cairo_new_path) X(cairo_move_to) X(cairo_line_to) X(cairo_stroke)             \
    X(cairo_fill) X(cairo_set_line_width) X(cairo_set_line_join) X(cairo_set_dash)                 \
    X(cairo_set_source_rgba) X(cairo_select_font_face) X(cairo_set_font_size)                      \
    X(cairo_text_extents) X(cairo_show_text)
/* clang-format on */

static struct {
    FUNCTIONS(FM_LIBRARY_POINTER)
} cairo;

static const char *const functions[] = { FUNCTIONS(FM_LIBRARY_NAME) };

static void set_colour(cairo_t *c, uint32_t colour, double opacity)
{
    cairo.cairo_set_source_rgba(c, (colour >> 16) / 255.0, (colour >> 8 & 255) / 255.0,
                                (colour & 255) / 255.0, opacity);
}

static void set_path(cairo_t *c, const struct fm_xy *points, size_t n)
{
    cairo.cairo_new_path(c);
    for (size_t i = 0; i < n; i++)
        (i ? cairo.cairo_line_to : cairo.cairo_move_to)(c, points[i].x, points[i].y);
}

static void draw_line(void *self, const struct fm_xy *points, size_t n, const struct fm_pen *pen)
{
    set_path(self, points, n);
    set_colour(self, pen->colour, pen->opacity);
    cairo.cairo_set_line_width(self, pen->width);
    cairo.cairo_set_line_join(self, CAIRO_JOIN_ROUND);
    cairo.cairo_set_dash(self, &pen->dash, pen->dash > 0 ? 1 : 0, 0);
    cairo.cairo_stroke(self);
}

static void draw_area(void *self, const struct fm_xy *points, size_t n, const struct fm_pen *pen)
{
    set_path(self, points, n);
    set_colour(self, pen->colour, pen->opacity);
    cairo.cairo_fill(self);
}

static void draw_text(void *self, double x, double y, const char *text,
                      const struct fm_canvas_font *font)
{
    struct cairo_extents extents = { 0 };
    cairo.cairo_select_font_face(self, "sans-serif", 0, font->bold);
    cairo.cairo_set_font_size(self, font->size);
    cairo.cairo_text_extents(self, text, &extents);
    double share = font->anchor == FM_ANCHOR_START ? 0 : font->anchor == FM_ANCHOR_END ? 1 : 0.5;
    set_colour(self, font->colour, 1);
    cairo.cairo_move_to(self, x - extents.x_advance * share, y);
    cairo.cairo_show_text(self, text);
}

static int take_bytes(void *closure, const unsigned char *bytes, unsigned len)
{
    fm_buffer_add(closure, bytes, len);
    return CAIRO_SUCCESS;
}

int fm_plot_cairo(const struct fm_plot *plot, enum fm_plot_format format, double width,
                  double height, struct fm_buffer *out, struct fm_error *err)
{
    bool pdf = format == FM_PLOT_PDF;
    if (!cairo.cairo_create && fm_library_load(&cairo, FM_COUNT(functions), functions, LIBCAIRO,
                                               "Cairo", "libcairo2", err) < 0)
        return err->status;
    cairo_surface_t *surface =
        pdf ? cairo.cairo_pdf_surface_create_for_stream(take_bytes, out, width, height)
            : cairo.cairo_image_surface_create(CAIRO_ARGB32, (int)(width * SCALE),
                                               (int)(height * SCALE));
    cairo_t *c = cairo.cairo_create(surface);
    if (!pdf)
        cairo.cairo_scale(c, SCALE, SCALE);
    set_colour(c, 0xffffff, 1);
    cairo.cairo_paint(c);
    struct fm_canvas canvas = { c, draw_line, draw_area, draw_text };
    fm_plot_draw(plot, &canvas, width, height);
    int status = cairo.cairo_status(c);
    cairo.cairo_destroy(c);
    if (status == CAIRO_SUCCESS && !pdf)
        status = cairo.cairo_surface_write_to_png_stream(surface, take_bytes, out);
    cairo.cairo_surface_finish(surface);
    if (status == CAIRO_SUCCESS)
        status = cairo.cairo_surface_status(surface);
    cairo.cairo_surface_destroy(surface);
    if (status != CAIRO_SUCCESS && status != 12) /* 12: finished, as it was told to be */
        return fm_error_set(err, FM_UNSUPPORTED, "Cairo cannot draw it (its error %d)", status);
    return 0;
}
