/* The command line of `fathom graph`; see graph_options.h. */
#include "commands/graph/graph_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: fathom graph [OPTION…] FILE… -o OUT.svg|png|pdf|dot\n"
    "The call graph of a recording as a picture. Several files are added up.\n"
    "\n"
    "  -o, --output OUT          where to; the end of the name tells the format; \"-\" is the\n"
    "                            standard output\n"
    "      --to FORMAT           svg, png, pdf or dot, if the name of OUT does not tell\n"
    "  -f, --force               overwrite OUT if it exists\n"
    "\n"
    "What to show:\n"
    "  -n, --node-thres PERCENT  leave out functions with less of the time (0.5)\n"
    "  -e, --edge-thres PERCENT  leave out calls with less of the time (0.1)\n"
    "  -z, --root FUNC           only what FUNC (a glob) calls, directly or not\n"
    "  -l, --leaf FUNC           only what calls FUNC, directly or not\n"
    "      --depth N             at most N calls away from these\n"
    "  -p, --path PATH           only functions of files whose path begins so; may be repeated\n"
    "      --process PID         one process          --thread TID   one thread\n"
    "      --by thread|process   a picture each: OUT has %t thread id, %p process id, %n number\n"
    "      --cpu                 of samples, only time on a processor\n"
    "      --metric NAME         weigh by this and not by time: calls, samples, gil, …\n"
    "      --max-nodes N         refuse pictures of more functions (2000; \"all\")\n"
    "      --list-functions GLOB draw nothing, list what -z and -l may name (\"+\": all)\n"
    "\n"
    "How it looks:\n"
    "  -c, --colormap MAP        color, pink, gray, bw, print\n"
    "      --color-nodes-by-selftime\n"
    "                            colour functions by their own time, not with what they called\n"
    "      --skew NUMBER         below 1: more variety among small shares, above 1: less\n"
    "  -s, --strip               without parameters and template parameters of names\n"
    "  -w, --wrap                long names in several lines\n"
    "      --node-label WHAT     total-time-percentage, self-time-percentage, total-time,\n"
    "                            self-time; may be repeated\n"
    "      --show-samples        how many samples ended in a function\n"
    "\n"
    "Two recordings:\n"
    "      --compare             FILE1 FILE2: what became slower (red) or faster (blue)\n"
    "      --compare-tolerance PERCENT   smaller changes are none (0.001)\n"
    "      --compare-only-slower, --compare-only-faster\n"
    "      --compare-by time|share       by time (default), or each by its own recording\n"
    "  -h, --help                this text\n";

enum {
    OPT_TO = 256,
    OPT_DEPTH,
    OPT_PROCESS,
    OPT_THREAD,
    OPT_BY,
    OPT_CPU,
    OPT_METRIC,
    OPT_MAX_NODES,
    OPT_LIST,
    OPT_BY_SELF,
    OPT_SKEW,
    OPT_NODE_LABEL,
    OPT_SAMPLES,
    OPT_TOTAL,
    OPT_COMPARE,
    OPT_TOLERANCE,
    OPT_SLOWER,
    OPT_FASTER,
    OPT_BY_DIFFERENCE,
    OPT_COMPARE_BY,
};

static const struct option options[] = {
    { "output", required_argument, NULL, 'o' },
    { "to", required_argument, NULL, OPT_TO },
    { "force", no_argument, NULL, 'f' },
    { "node-thres", required_argument, NULL, 'n' },
    { "edge-thres", required_argument, NULL, 'e' },
    { "root", required_argument, NULL, 'z' },
    { "leaf", required_argument, NULL, 'l' },
    { "depth", required_argument, NULL, OPT_DEPTH },
    { "path", required_argument, NULL, 'p' },
    { "process", required_argument, NULL, OPT_PROCESS },
    { "thread", required_argument, NULL, OPT_THREAD },
    { "by", required_argument, NULL, OPT_BY },
    { "cpu", no_argument, NULL, OPT_CPU },
    { "metric", required_argument, NULL, OPT_METRIC },
    { "max-nodes", required_argument, NULL, OPT_MAX_NODES },
    { "list-functions", required_argument, NULL, OPT_LIST },
    { "colormap", required_argument, NULL, 'c' },
    { "colourmap", required_argument, NULL, 'c' },
    { "color-nodes-by-selftime", no_argument, NULL, OPT_BY_SELF },
    { "colour-nodes-by-selftime", no_argument, NULL, OPT_BY_SELF },
    { "skew", required_argument, NULL, OPT_SKEW },
    { "strip", no_argument, NULL, 's' },
    { "wrap", no_argument, NULL, 'w' },
    { "node-label", required_argument, NULL, OPT_NODE_LABEL },
    { "show-samples", no_argument, NULL, OPT_SAMPLES },
    { "total", required_argument, NULL, OPT_TOTAL },
    { "compare", no_argument, NULL, OPT_COMPARE },
    { "compare-tolerance", required_argument, NULL, OPT_TOLERANCE },
    { "compare-only-slower", no_argument, NULL, OPT_SLOWER },
    { "compare-only-faster", no_argument, NULL, OPT_FASTER },
    { "compare-color-by-difference", no_argument, NULL, OPT_BY_DIFFERENCE },
    { "compare-by", required_argument, NULL, OPT_COMPARE_BY },
    { "help", no_argument, NULL, 'h' },
    { 0 },
};

const char *fm_graph_options_help(void)
{
    return help;
}

/* A number from `low` to `high`; a percent sign may follow. */
static int take_number(const char *option, double low, double high, double *value,
                       struct fm_error *err)
{
    char *end;
    *value = strtod(optarg, &end);
    if (end == optarg || (*end && strcmp(end, "%") != 0) || !(*value >= low && *value <= high))
        return fm_error_set(err, FM_USAGE, "%s takes a number from %g to %g, not \"%s\"", option,
                            low, high, optarg);
    return 0;
}

static int take_share(const char *option, double *value, struct fm_error *err)
{
    if (take_number(option, 0, 100, value, err) < 0)
        return err->status;
    *value /= 100;
    return 0;
}

static int take_whole(const char *option, bool all, int64_t *value, struct fm_error *err)
{
    char *end;
    errno = 0;
    long long n = strtoll(optarg, &end, 10);
    if (all && strcmp(optarg, "all") == 0)
        n = INT32_MAX;
    else if (end == optarg || *end || errno || n < 0 || n > INT32_MAX)
        return fm_error_set(err, FM_USAGE, "%s takes a whole number%s, not \"%s\"", option,
                            all ? " or \"all\"" : "", optarg);
    *value = n;
    return 0;
}

/* Which of the words it is. */
static int take_word(const char *option, const char *const *words, int *which, struct fm_error *err)
{
    fm_autobuffer list = FM_BUFFER_INIT;
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], optarg) == 0) {
            *which = i;
            return 0;
        }
        fm_buffer_addf(&list, "%s%s", i ? ", " : "", words[i]);
    }
    return fm_error_set(err, FM_USAGE, "%s is one of %s, not \"%s\"", option, fm_buffer_text(&list),
                        optarg);
}

static int take_by(struct fm_graph_options *o, struct fm_error *err)
{
    static const char *const words[] = { "all", "thread", "process", "rank", NULL };
    int which = 0;
    if (take_word("--by", words, &which, err) < 0)
        return err->status;
    o->by = (enum fm_graph_by)which;
    return 0;
}

static int take_label(struct fm_graph_options *o, struct fm_error *err)
{
    static const char *const words[] = { "total-time-percentage", "self-time-percentage",
                                         "total-time", "self-time", NULL };
    int which = 0;
    if (take_word("--node-label", words, &which, err) < 0)
        return err->status;
    o->look.measurements |= 1u << which;
    return 0;
}

/* gprof2dot's ways of estimating totals; here they are exact, so there is nothing to choose. */
static int take_total(struct fm_error *err)
{
    static const char *const words[] = { "callratios", "callstacks", NULL };
    int which = 0;
    return take_word("--total", words, &which, err);
}

static int take_compare_by(struct fm_graph_options *o, struct fm_error *err)
{
    static const char *const words[] = { "time", "share", NULL };
    int which = 0;
    if (take_word("--compare-by", words, &which, err) < 0)
        return err->status;
    o->measure = (enum fm_graph_measure)which;
    return 0;
}

static int take_theme(struct fm_graph_options *o, struct fm_error *err)
{
    const struct fm_theme *theme = fm_theme_named(optarg);
    int which = 0;
    if (!theme)
        return take_word("--colormap", fm_theme_names(), &which, err);
    o->look.theme = theme;
    return 0;
}

static int take_to(struct fm_graph_options *o, struct fm_error *err)
{
    int format = fm_graph_format_named(optarg);
    if (format < 0)
        return fm_error_set(err, FM_USAGE, "--to is svg, png, pdf or dot, not \"%s\"", optarg);
    o->format = (enum fm_graph_format)format;
    return 1;
}

/* Options with a value that must be checked. */
static int take_value(struct fm_graph_options *o, int option, struct fm_error *err)
{
    int64_t depth = 0;
    int status = 0;
    switch (option) {
    case 'n':
        return take_share("--node-thres", &o->filter.node_min, err);
    case 'e':
        return take_share("--edge-thres", &o->filter.edge_min, err);
    case 'c':
        return take_theme(o, err);
    case OPT_DEPTH:
        status = take_whole("--depth", false, &depth, err);
        o->filter.depth = (int)depth;
        return status;
    case OPT_PROCESS:
        return take_whole("--process", false, &o->process, err);
    case OPT_THREAD:
        return take_whole("--thread", false, &o->thread, err);
    case OPT_BY:
        return take_by(o, err);
    case OPT_MAX_NODES:
        return take_whole("--max-nodes", true, &o->max_nodes, err);
    case OPT_SKEW:
        return take_number("--skew", 1e-9, 1e9, &o->look.skew, err);
    case OPT_NODE_LABEL:
        return take_label(o, err);
    case OPT_TOTAL:
        return take_total(err);
    case OPT_TOLERANCE:
        return take_share("--compare-tolerance", &o->look.tolerance, err);
    case OPT_COMPARE_BY:
        return take_compare_by(o, err);
    }
    return fm_error_set(err, FM_USAGE, "unknown option");
}

/* Options that need no check; false if it is another. */
static bool take_plain(struct fm_graph_options *o, int option)
{
    switch (option) {
    case 'o':
        o->output = optarg;
        return true;
    case 'f':
        o->force = true;
        return true;
    case 'z':
        o->filter.root = optarg;
        return true;
    case 'l':
        o->filter.leaf = optarg;
        return true;
    case 'p':
        fm_vec_push(&o->paths, optarg);
        return true;
    case 's':
        o->look.strip = true;
        return true;
    case 'w':
        o->look.wrap = true;
        return true;
    case 'h':
        o->help = true;
        return true;
    case OPT_CPU:
        o->cpu = true;
        return true;
    case OPT_METRIC:
        o->metric = optarg;
        return true;
    case OPT_LIST:
        o->list = strcmp(optarg, "+") == 0 ? "*" : optarg;
        return true;
    case OPT_BY_SELF:
        o->look.by_self = true;
        return true;
    case OPT_SAMPLES:
        o->look.samples = true;
        return true;
    case OPT_COMPARE:
    case OPT_BY_DIFFERENCE:
        o->compare = true;
        return true;
    case OPT_SLOWER:
        o->compare = o->look.only_slower = true;
        return true;
    case OPT_FASTER:
        o->compare = o->look.only_faster = true;
        return true;
    }
    return false;
}

static int check(struct fm_graph_options *o, bool format_said, struct fm_error *err)
{
    size_t files = 0;
    while (o->files[files])
        files++;
    if (!files)
        return fm_error_set(err, FM_USAGE, "name at least one recording");
    if (o->compare && files != 2)
        return fm_error_set(err, FM_USAGE, "--compare takes two recordings, not %zu", files);
    if (o->compare && (o->by != FM_GRAPH_OF_ALL || o->process >= 0 || o->thread >= 0))
        return fm_error_set(err, FM_USAGE, "--compare is of whole recordings");
    if (o->look.only_slower && o->look.only_faster)
        return fm_error_set(err, FM_USAGE,
                            "--compare-only-slower and --compare-only-faster exclude each other");
    if (o->list)
        return 0;
    if (!o->output)
        return fm_error_set(err, FM_USAGE, "name the output with -o");
    if (!format_said && fm_graph_format_of_path(o->output) < 0)
        return fm_error_set(err, FM_USAGE,
                            "the name \"%s\" does not end in .svg, .png, .pdf or .dot; say the "
                            "format with --to",
                            o->output);
    if (!format_said)
        o->format = (enum fm_graph_format)fm_graph_format_of_path(o->output);
    return 0;
}

int fm_graph_options_parse(struct fm_graph_options *o, int argc, char **argv, struct fm_error *err)
{
    bool format_said = false;
    int option, status = 0;
    *o = (struct fm_graph_options){
        .process = -1,
        .thread = -1,
        .max_nodes = 2000,
        .filter = { .node_min = 0.005, .edge_min = 0.001, .depth = -1 },
        .look = { .theme = fm_theme_named("color"), .skew = 1, .tolerance = 0.00001 },
    };
    opterr = 0;
    optind = 0;
    while ((option = getopt_long(argc, argv, ":o:fn:e:z:l:p:c:swh", options, NULL)) != -1) {
        if (option == ':' || option == '?')
            return fm_error_set(err, FM_USAGE,
                                option == ':' ? "%s needs a value" : "there is no option %s",
                                argv[optind - 1]);
        if (option == OPT_TO)
            format_said = (status = take_to(o, err)) > 0;
        else if (!take_plain(o, option))
            status = take_value(o, option, err);
        if (status < 0)
            return status;
    }
    if (o->help)
        return 0;
    o->files = argv + optind;
    fm_vec_push(&o->paths, NULL);
    o->filter.paths = o->paths.data;
    if (!o->look.measurements)
        o->look.measurements = FM_GRAPH_TOTAL_SHARE | FM_GRAPH_SELF_SHARE;
    return check(o, format_said, err);
}

void fm_graph_options_release(struct fm_graph_options *o)
{
    fm_vec_release(&o->paths);
}
