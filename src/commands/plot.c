/*
 * `fathom plot`: memory over time as a picture, of one run or of several above each other.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clean.h"
#include "base/memory.h"
#include "base/output.h"
#include "commands/inputs.h"
#include "commands/verb.h"
#include "show/plot/canvas.h"
#include "show/report/table.h"

#define WIDTH        960
#define HEIGHT       540
#define TEXT_COLUMNS 100
#define TEXT_ROWS    20
#define SECONDS_MAX  1e10
#define TITLE_BYTES  100 /* of a command */

static const char help[] =
    "usage: fathom plot [options] FILE…\n"
    "\n"
    "Draws memory over time: of recordings made with `fathom run --memory` or `--rss`, and of\n"
    "memory_profiler's mprofile_*.dat. Several files lie above each other in one picture.\n"
    "\n"
    "  -o, --output OUT   the picture: OUT.svg, .png, .pdf or .txt; \"-\", the default: a chart of\n"
    "                     characters on the standard output\n"
    "      --to FORMAT    svg, png, pdf or txt, if the name of OUT does not tell\n"
    "  -t, --title TEXT   above the picture; default: the command that ran\n"
    "  -w, --window A,B   from second A to second B of the run\n"
    "  -s, --slope        the straight line nearest to each curve, and how fast it rises\n"
    "  -n, --no-marks     without calls and regions\n"
    "      --children WHICH   processes below the program: each, sum or none; default: each for one\n"
    "                     file, sum for several\n"
    "  -c, --no-children  --children none\n"
    "      --size WxH     of the picture, in points; default 960x540; of text in characters\n"
    "  -f, --force        overwrite OUT if it exists\n"
    "  -h, --help         this text\n"
    "\n"
    "See docs/plot.md.\n";

static const struct option options[] = {
    { "output", required_argument, NULL, 'o' },   { "to", required_argument, NULL, 'T' },
    { "title", required_argument, NULL, 't' },    { "window", required_argument, NULL, 'w' },
    { "slope", no_argument, NULL, 's' },          { "no-marks", no_argument, NULL, 'n' },
    { "no-function-ts", no_argument, NULL, 'n' }, /* as mprof has it */
    { "children", required_argument, NULL, 'C' }, { "no-children", no_argument, NULL, 'c' },
    { "size", required_argument, NULL, 'S' },     { "force", no_argument, NULL, 'f' },
    { "help", no_argument, NULL, 'h' },           { 0 },
};

struct plot_request {
    struct fm_plot_options plot;
    const char *output, *to, *title;
    bool children_given, force;
    int width, height; /* 0: not given */
    char **files;
};

static int take_children(struct plot_request *q, const char *which)
{
    static const char *const names[] = {
        [FM_PLOT_EACH] = "each", [FM_PLOT_SUM] = "sum", [FM_PLOT_NONE] = "none"
    };
    for (size_t i = 0; i < FM_COUNT(names); i++)
        if (strcmp(which, names[i]) == 0) {
            q->plot.children = (enum fm_plot_children)i;
            q->children_given = true;
            return -1;
        }
    return fm_verb_usage("plot", "--children is each, sum or none, not %s", which);
}

static int take_window(struct plot_request *q, const char *text)
{
    char *comma, *end;
    q->plot.from = strtod(text, &comma);
    q->plot.to = *comma == ',' ? strtod(comma + 1, &end) : 0;
    if (*comma != ',' || comma == text || end == comma + 1 || *end ||
        !(q->plot.from < q->plot.to) || q->plot.from < 0 || q->plot.to > SECONDS_MAX)
        return fm_verb_usage("plot", "-w needs two times in seconds, as 1.5,20");
    q->plot.windowed = true;
    return -1;
}

static int take_size(struct plot_request *q, const char *text)
{
    int end = 0;
    if (sscanf(text, "%dx%d%n", &q->width, &q->height, &end) != 2 || text[end] || q->width < 20 ||
        q->height < 3 || q->width > 10000 || q->height > 10000)
        return fm_verb_usage("plot", "--size needs width and height, as 960x540");
    return -1;
}

/* −1 to go on; otherwise the exit status with which to end. */
static int take_option(struct plot_request *q, int option, char **argv)
{
    switch (option) {
    case 'o':
        q->output = optarg;
        return -1;
    case 'T':
        q->to = optarg;
        return -1;
    case 't':
        q->title = optarg;
        return -1;
    case 'w':
        return take_window(q, optarg);
    case 's':
        q->plot.slope = true;
        return -1;
    case 'n':
        q->plot.marks = false;
        return -1;
    case 'C':
        return take_children(q, optarg);
    case 'c':
        return take_children(q, "none");
    case 'S':
        return take_size(q, optarg);
    case 'f':
        q->force = true;
        return -1;
    case 'h':
        fputs(help, stdout);
        return 0;
    default:
        return fm_verb_usage("plot", option == ':' ? "%s needs a value" : "there is no option %s",
                             argv[optind - 1]);
    }
}

static int choose_format(const struct plot_request *q, enum fm_plot_format *ret,
                         struct fm_error *err)
{
    static const struct {
        const char *name;
        enum fm_plot_format format;
    } formats[] = { { "svg", FM_PLOT_SVG },
                    { "png", FM_PLOT_PNG },
                    { "pdf", FM_PLOT_PDF },
                    { "txt", FM_PLOT_TEXT },
                    { "text", FM_PLOT_TEXT } };
    const char *dot = strrchr(q->output, '.'), *slash = strrchr(q->output, '/');
    const char *name = q->to ? q->to : dot && (!slash || dot > slash) ? dot + 1 : "";
    *ret = FM_PLOT_TEXT;
    if (!q->to && strcmp(q->output, "-") == 0)
        return 0;
    for (size_t i = 0; i < FM_COUNT(formats); i++)
        if (strcasecmp(name, formats[i].name) == 0) {
            *ret = formats[i].format;
            return 0;
        }
    return fm_error_set(err, FM_USAGE,
                        "a plot is an svg, png, pdf or txt; neither --to nor the name \"%s\" says "
                        "which",
                        q->output);
}

/* The title if none was given: what ran, if that is one thing. */
static void set_title(struct fm_plot *plot, const struct plot_request *q,
                      const struct fm_profile *p)
{
    struct fm_buffer text = FM_BUFFER_INIT;
    const char *title = q->title ? q->title : p ? fm_profile_fact_get(p, "command") : NULL;
    if (!title || !*title || plot->title)
        return;
    fm_clean_add(&text, title, strlen(title));
    if (!q->title && text.len > TITLE_BYTES) { /* a whole program may stand behind -c */
        size_t len = TITLE_BYTES;
        while (len && (text.data[len] & 0xc0) == 0x80) /* inside of a character */
            len--;
        text.len = len;
        fm_buffer_add_text(&text, "…");
    }
    plot->title = fm_buffer_detach(&text);
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static int add_files(struct fm_plot *plot, const struct plot_request *q, struct fm_error *err)
{
    bool several = q->files[1] != NULL;
    for (size_t i = 0; q->files[i]; i++) {
        char *one[] = { q->files[i], NULL };
        struct fm_profile *p = fm_inputs_open(one, false, 0, err);
        if (!p)
            return err->status;
        fm_inputs_warn("plot", p);
        if (q->title || !several)
            set_title(plot, q, p);
        int status = fm_plot_add(plot, p, several ? name_of(q->files[i]) : NULL, err);
        fm_profile_free(p);
        if (status < 0)
            return fm_error_context(err, "%s", q->files[i]);
    }
    return fm_plot_finish(plot, err);
}

static int draw(const struct fm_plot *plot, const struct plot_request *q,
                enum fm_plot_format format, struct fm_buffer *out, struct fm_error *err)
{
    double width = q->width ? q->width : WIDTH, height = q->width ? q->height : HEIGHT;
    if (format == FM_PLOT_SVG)
        fm_plot_svg(plot, width, height, out);
    else if (format != FM_PLOT_TEXT)
        return fm_plot_cairo(plot, format, width, height, out, err);
    if (format != FM_PLOT_TEXT)
        return 0;
    bool terminal = strcmp(q->output, "-") == 0;
    struct fm_style style =
        fm_style_for(stdout, terminal ? FM_COLOR_AUTO : FM_COLOR_NEVER, q->width);
    int columns = q->width ? q->width : terminal && style.width ? style.width : TEXT_COLUMNS;
    fm_plot_text(plot, columns, q->width ? q->height : TEXT_ROWS, style.color, out);
    return 0;
}

static int make(const struct plot_request *q, struct fm_error *err)
{
    struct fm_plot plot;
    enum fm_plot_format format;
    fm_autobuffer bytes = FM_BUFFER_INIT;
    if (choose_format(q, &format, err) < 0 || fm_output_check(q->output, q->force, err) < 0)
        return err->status;
    fm_plot_init(&plot, &q->plot);
    if (add_files(&plot, q, err) == 0 && draw(&plot, q, format, &bytes, err) == 0)
        fm_output_write_bytes(q->output, q->force, bytes.data, bytes.len, err);
    fm_plot_release(&plot);
    return err->status;
}

int fm_verb_plot(int argc, char **argv)
{
    struct plot_request q = { .plot.marks = true, .output = "-" };
    struct fm_error err = FM_ERROR_INIT;
    int option, status = -1;
    opterr = 0;
    optind = 0;
    while (status < 0 && (option = getopt_long(argc, argv, ":o:t:w:sncfh", options, NULL)) != -1)
        status = take_option(&q, option, argv);
    if (status >= 0)
        return status;
    q.files = argv + optind;
    if (!q.files[0])
        return fm_verb_usage("plot", "name at least one recording");
    if (!q.children_given)
        q.plot.children = q.files[1] ? FM_PLOT_SUM : FM_PLOT_EACH;
    status = make(&q, &err);
    if (status == FM_USAGE)
        return fm_verb_usage("plot", "%s", err.text);
    return status < 0 ? fm_verb_fail("plot", &err) : 0;
}
