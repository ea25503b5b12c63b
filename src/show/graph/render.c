/* Pictures by Graphviz; see render.h. */
#include "show/graph/render.h"

#include <fcntl.h>
#include <gvc.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/library.h"
#include "base/memory.h"

/* clang-format off */
#define FUNCTIONS(X)                                                                               \
    X(agclose) X(agmemread) X(agseterrf) X(gvContext) X(gvFreeLayout) X(gvLayout)                  \
    X(gvPluginList) X(gvRender)
/* clang-format on */

static struct {
    FUNCTIONS(FM_LIBRARY_POINTER)
} graphviz;

/* Cairo's pictures have at most so many pixels in a row or column. */
#define PIXELS_MAX 32000.0
#define DPI        96.0

static const struct {
    const char *name;
    enum fm_graph_format format;
} formats[] = {
    { "dot", FM_GRAPH_DOT }, { "gv", FM_GRAPH_DOT },  { "svg", FM_GRAPH_SVG },
    { "png", FM_GRAPH_PNG }, { "pdf", FM_GRAPH_PDF },
};

/* What Graphviz calls the formats: with a renderer of ours where there are several. */
static const char *const devices[] = { "dot", "svg", "png", "pdf" };

int fm_graph_format_named(const char *name)
{
    for (size_t i = 0; i < FM_COUNT(formats); i++)
        if (strcasecmp(formats[i].name, name) == 0)
            return (int)formats[i].format;
    return -1;
}

int fm_graph_format_of_path(const char *file)
{
    const char *dot = strrchr(file, '.'), *slash = strrchr(file, '/');
    return dot && (!slash || dot > slash + 1) && dot > file ? fm_graph_format_named(dot + 1) : -1;
}

static const char *const functions[] = { FUNCTIONS(FM_LIBRARY_NAME) };

/* ---- what Graphviz says ---- */

static char said[256]; /* the first complaint, without its newline; Graphviz gives us no context */

static int hear(char *text)
{
    static const char noise[] = "Error: ";
    if (strncmp(text, noise, sizeof noise - 1) == 0)
        text += sizeof noise - 1;
    if (!*said && strcmp(text, "Error") != 0 && strcmp(text, ": ") != 0)
        snprintf(said, sizeof said, "%.*s", (int)strcspn(text, "\n"), text);
    return 0;
}

/* Send the standard error elsewhere; returns what it was, or -1 if it stays. */
static int silence(void)
{
    int fd = memfd_create("graphviz", MFD_CLOEXEC);
    int old = fd >= 0 ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3) : -1;
    fflush(stderr);
    if (old >= 0)
        dup2(fd, STDERR_FILENO);
    if (fd >= 0)
        close(fd);
    return old;
}

static void unsilence(int old)
{
    fflush(stderr);
    if (old < 0)
        return;
    if (!*said) {
        ssize_t n = pread(STDERR_FILENO, said, sizeof said - 1, 0);
        said[n > 0 ? n : 0] = '\0';
        said[strcspn(said, "\n")] = '\0';
    }
    dup2(old, STDERR_FILENO);
    close(old);
}

/* ---- drawing ---- */

static bool has_plugin(GVC_t *gvc, const char *kind, const char *name)
{
    int n = 0;
    bool found = false;
    char **list = graphviz.gvPluginList(gvc, kind, &n, NULL);
    for (int i = 0; i < n; i++) {
        found = found || strcasecmp(list[i], name) == 0;
        free(list[i]);
    }
    free(list);
    return found;
}

static int check_plugins(GVC_t *gvc, enum fm_graph_format format, struct fm_error *err)
{
    bool layout = has_plugin(gvc, "layout", "dot");
    if (layout && has_plugin(gvc, "device", devices[format]))
        return 0;
    return fm_error_set(err, FM_UNSUPPORTED,
                        "Graphviz has no plug-in here that %s%s; install its package (Debian, "
                        "Ubuntu: libgvc6; others: graphviz) or write a .dot file",
                        layout ? "writes " : "lays out graphs", layout ? devices[format] : "");
}

/* A picture of pixels that would be too large gets larger pixels. */
static void fit(graph_t *g)
{
    boxf bounds = GD_bb(g);
    double points = fmax(bounds.UR.x - bounds.LL.x, bounds.UR.y - bounds.LL.y);
    double inches = points / POINTS_PER_INCH + 1;
    if (inches * DPI > PIXELS_MAX)
        GD_drawing(g)->dpi = PIXELS_MAX / inches;
}

static int draw(GVC_t *gvc, graph_t *g, enum fm_graph_format format, struct fm_buffer *out,
                struct fm_error *err)
{
    char *bytes = NULL;
    size_t len = 0;
    if (graphviz.gvLayout(gvc, g, "dot") != 0)
        return fm_error_set(err, FM_UNSUPPORTED, "Graphviz cannot lay out the graph");
    if (format == FM_GRAPH_PNG)
        fit(g);
    FILE *stream = open_memstream(&bytes, &len);
    int status = stream ? graphviz.gvRender(gvc, g, devices[format], stream) : -1;
    if (!stream || fclose(stream) != 0 || status != 0 || !len)
        fm_error_set(err, FM_UNSUPPORTED, "Graphviz cannot draw the graph as %s", devices[format]);
    else
        fm_buffer_add(out, bytes, len);
    free(bytes);
    graphviz.gvFreeLayout(gvc, g);
    return err->status;
}

/* The declaration of the document type names an address; no reader of SVG needs it. */
static void drop_doctype(struct fm_buffer *svg, size_t from)
{
    char *start = strstr(svg->data + from, "<!DOCTYPE"), *root = strstr(svg->data + from, "<svg");
    char *end = start && root && start < root ? strchr(start, '>') : NULL;
    if (!end || end > root)
        return;
    end += end[1] == '\n' ? 2 : 1;
    memmove(start, end, (size_t)(svg->data + svg->len - end) + 1);
    svg->len -= (size_t)(end - start);
}

/* The one context of this process. It is never freed: the plug-in for text remembers the last font
 * by a name that belongs to the context, and would look at it in the next one. */
static GVC_t *context(void)
{
    static GVC_t *gvc;
    if (!gvc)
        gvc = graphviz.gvContext();
    return gvc;
}

static int render(const char *dot, enum fm_graph_format format, struct fm_buffer *out,
                  struct fm_error *err)
{
    GVC_t *gvc = context();
    if (!gvc)
        return fm_error_set(err, FM_UNSUPPORTED, "Graphviz does not start");
    if (check_plugins(gvc, format, err) < 0)
        return err->status;
    graph_t *g = graphviz.agmemread(dot);
    if (!g)
        return fm_error_set(err, FM_UNSUPPORTED, "Graphviz does not read its own language");
    draw(gvc, g, format, out, err);
    graphviz.agclose(g);
    return err->status;
}

int fm_graph_render(const char *dot, enum fm_graph_format format, struct fm_buffer *out,
                    struct fm_error *err)
{
    struct fm_error own = FM_ERROR_INIT;
    size_t from = out->len;
    err = err ? err : &own;
    if (format == FM_GRAPH_DOT) {
        fm_buffer_add_text(out, dot);
        return 0;
    }
    if (!graphviz.gvContext && fm_library_load(&graphviz, FM_COUNT(functions), functions, FM_LIBGVC,
                                               "Graphviz's library", "libgvc6", err) < 0)
        return err->status;
    said[0] = '\0';
    int old = silence();
    agusererrf before = graphviz.agseterrf(hear);
    int status = render(dot, format, out, err);
    graphviz.agseterrf(before);
    unsilence(old);
    if (status < 0 && *said && strstr(err->text, "plug-in") == NULL) {
        struct fm_error reason = *err;
        fm_error_set(err, status, "%s: %s", reason.text, said);
    }
    if (status == 0 && format == FM_GRAPH_SVG)
        drop_doctype(out, from);
    return status;
}
