/* The command line of `fathom report`; see report_options.h. */
#include "commands/report/report_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
    "Usage: fathom report [OPTION…] FILE…\n"
    "Tables and trees of a recording in any format of `fathom convert`. Several files are added up.\n"
    "\n"
    "What to show (by default the functions, or the lines if there is nothing else):\n"
    "      --callers[=FUNC]  who calls each function, or those that FUNC (a glob) names\n"
    "      --callees[=FUNC]  what each function calls\n"
    "      --source[=FUNC]   the source of each function as it ran, from the recording\n"
    "      --edges N         at most N callers or callees per function (10; \"all\")\n"
    "      --tree            the calling-context tree of each thread\n"
    "      --depth N         levels of the tree (all)\n"
    "      --min PERCENT     smallest branch of the tree (1)\n"
    "      --threads         the threads          --processes   the processes\n"
    "      --regions         the named phases of the program (fathom.region)\n"
    "\n"
    "When, where the program was sampled or traced:\n"
    "      --timeline        a picture: what each thread did when\n"
    "      --alike FUNC      calls of FUNC by what they did, and where slow ones differ; traced\n"
    "      --tasks[=FUNC]    tasks of asyncio, longest first: what they ran and waited, by coroutine;\n"
    "                        of FUNC alone. Of a traced run\n"
    "      --slowest FUNC    the longest calls of FUNC (a glob), and how long all of them took;\n"
    "                        of a traced run\n"
    "      --gil             how often and how long threads waited for the interpreter; traced\n"
    "      --from T, --to T  any report of that time alone: 1.5s, 20ms, 50%\n"
    "\n"
    "Where the program was sampled:\n"
    "      --states          what threads and functions were doing: one column per state\n"
    "      --waits           what threads waited for, and where\n"
    "      --spots           the hottest expressions, underlined in their source\n"
    "      --cpu             count only time on a processor: running Python or C\n"
    "      --state NAME,…    count only these states: python c gil lock disk network sleep other\n"
    "\n"
    "Where memory was recorded:\n"
    "      --memory[=WHAT]   who allocated what was alive at the peak. WHAT is summary (lines),\n"
    "                        functions, types, tree, lines (with their source), leaks,\n"
    "                        temporaries, stats, regions, resident (what resident memory was\n"
    "                        made of), threads or processes; goes with --callers, …\n"
    "      --at WHEN         instead of the peak: end (what was never freed), all (everything\n"
    "                        that was allocated), temporary (what was freed at once), together\n"
    "                        (when all processes had most: the default where there are several);\n"
    "                        what was alive at a time of the run: 2.5s, 300ms, 50%; or 1s..2s:\n"
    "                        how much more than at the first time\n"
    "\n"
    "Line by line, where lines were recorded:\n"
    "      --lines[=FUNC]    the functions that were marked, or those with the most time\n"
    "      --hot N           the N hottest lines of the whole program\n"
    "      --annotate        whole files, as plain text to be searched\n"
    "      --summarize       one line per function\n"
    "      --columns LIST    hits time self perhit percent program min max p50 p99 suspended\n"
    "                        samples states, and of memory mem memmax increment allocated freed\n"
    "                        transient; with a + in front in addition to the usual ones\n"
    "      --unit UNIT       of the times: s, ms, us, ns, auto\n"
    "      --skip-zero       without functions that never ran, also if they were marked\n"
    "\n"
    "Which part of it:\n"
    "  -s, --sort KEY,…      calls cumulative filename line module name nfl pcalls stdname time\n"
    "                        (pstats' keys and aliases), self total percall, hits perhit; and\n"
    "                        any metric or state, listed below; any unique beginning will do\n"
    "      --reverse         the other way round\n"
    "  -n, --limit N         the first N (20; 10 with callers or lines; \"all\")\n"
    "  -r, --restrict WHAT   a number of rows, a fraction of them, or a regular expression;\n"
    "                        may be repeated and is applied in order\n"
    "      --process PID     one process          --thread TID  one thread\n"
    "      --fold GLOB       take functions out, their time goes to their callers\n"
    "      --filter GLOB     only paths through such a function\n"
    "      --root GLOB       only what such functions did, seen from them\n"
    "\n"
    "How it looks:\n"
    "      --strip-dirs      file names without folders; never makes two files look alike\n"
    "      --pstats          byte for byte what pstats prints\n"
    "      --json, --csv     for programs\n"
    "      --color WHEN      auto, always, never (auto: on a terminal unless NO_COLOR is set)\n"
    "      --width N         columns to fit into\n"
    "  -h, --help            this text\n";

enum {
    OPT_REVERSE = 256,
    OPT_CALLERS,
    OPT_REGIONS,
    OPT_CALLEES,
    OPT_EDGES,
    OPT_TREE,
    OPT_DEPTH,
    OPT_MIN,
    OPT_THREADS,
    OPT_PROCESSES,
    OPT_THREAD,
    OPT_PROCESS,
    OPT_FOLD,
    OPT_FILTER,
    OPT_ROOT,
    OPT_SOURCE,
    OPT_STRIP,
    OPT_PSTATS,
    OPT_JSON,
    OPT_CSV,
    OPT_COLOR,
    OPT_WIDTH,
    OPT_LINES,
    OPT_HOT,
    OPT_ANNOTATE,
    OPT_SUMMARIZE,
    OPT_COLUMNS,
    OPT_UNIT,
    OPT_SKIP_ZERO,
    OPT_STATES,
    OPT_WAITS,
    OPT_SPOTS,
    OPT_CPU,
    OPT_STATE,
    OPT_MEMORY,
    OPT_AT,
    OPT_TIMELINE,
    OPT_SLOWEST,
    OPT_ALIKE,
    OPT_TASKS,
    OPT_GIL,
    OPT_FROM,
    OPT_TO,
};

static const struct option options[] = {
    { "sort", required_argument, NULL, 's' },
    { "limit", required_argument, NULL, 'n' },
    { "restrict", required_argument, NULL, 'r' },
    { "help", no_argument, NULL, 'h' },
    { "reverse", no_argument, NULL, OPT_REVERSE },
    { "callers", optional_argument, NULL, OPT_CALLERS },
    { "callees", optional_argument, NULL, OPT_CALLEES },
    { "edges", required_argument, NULL, OPT_EDGES },
    { "tree", no_argument, NULL, OPT_TREE },
    { "depth", required_argument, NULL, OPT_DEPTH },
    { "min", required_argument, NULL, OPT_MIN },
    { "threads", no_argument, NULL, OPT_THREADS },
    { "processes", no_argument, NULL, OPT_PROCESSES },
    { "thread", required_argument, NULL, OPT_THREAD },
    { "process", required_argument, NULL, OPT_PROCESS },
    { "fold", required_argument, NULL, OPT_FOLD },
    { "filter", required_argument, NULL, OPT_FILTER },
    { "root", required_argument, NULL, OPT_ROOT },
    { "source", optional_argument, NULL, OPT_SOURCE },
    { "strip-dirs", no_argument, NULL, OPT_STRIP },
    { "pstats", no_argument, NULL, OPT_PSTATS },
    { "json", no_argument, NULL, OPT_JSON },
    { "csv", no_argument, NULL, OPT_CSV },
    { "color", required_argument, NULL, OPT_COLOR },
    { "colour", required_argument, NULL, OPT_COLOR },
    { "width", required_argument, NULL, OPT_WIDTH },
    { "lines", optional_argument, NULL, OPT_LINES },
    { "hot", required_argument, NULL, OPT_HOT },
    { "annotate", no_argument, NULL, OPT_ANNOTATE },
    { "summarize", no_argument, NULL, OPT_SUMMARIZE },
    { "summarise", no_argument, NULL, OPT_SUMMARIZE },
    { "columns", required_argument, NULL, OPT_COLUMNS },
    { "unit", required_argument, NULL, OPT_UNIT },
    { "skip-zero", no_argument, NULL, OPT_SKIP_ZERO },
    { "states", no_argument, NULL, OPT_STATES },
    { "waits", no_argument, NULL, OPT_WAITS },
    { "spots", no_argument, NULL, OPT_SPOTS },
    { "cpu", no_argument, NULL, OPT_CPU },
    { "state", required_argument, NULL, OPT_STATE },
    { "memory", optional_argument, NULL, OPT_MEMORY },
    { "regions", no_argument, NULL, OPT_REGIONS },
    { "at", required_argument, NULL, OPT_AT },
    { "timeline", no_argument, NULL, OPT_TIMELINE },
    { "slowest", required_argument, NULL, OPT_SLOWEST },
    { "alike", required_argument, NULL, OPT_ALIKE },
    { "tasks", optional_argument, NULL, OPT_TASKS },
    { "gil", no_argument, NULL, OPT_GIL },
    { "from", required_argument, NULL, OPT_FROM },
    { "to", required_argument, NULL, OPT_TO },
    { 0 },
};

/* A whole number from 0 to INT32_MAX; "all" is -1 where that is allowed. */
static int take_number(const char *option, const char *text, bool all, int64_t *value,
                       struct fm_error *err)
{
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (all && strcmp(text, "all") == 0)
        n = -1;
    else if (end == text || *end || errno || n < 0 || n > INT32_MAX)
        return fm_error_set(err, FM_USAGE, "%s takes a whole number%s, not \"%s\"", option,
                            all ? " or \"all\"" : "", text);
    *value = n;
    return 0;
}

static int take_int(const char *option, const char *text, bool all, int *value,
                    struct fm_error *err)
{
    int64_t n = 0;
    if (take_number(option, text, all, &n, err) < 0)
        return err->status;
    *value = (int)n;
    return 0;
}

static int take_percent(const char *text, double *value, struct fm_error *err)
{
    char *end;
    *value = strtod(text, &end);
    if (end == text || (*end && strcmp(end, "%") != 0) || !(*value >= 0 && *value <= 100))
        return fm_error_set(err, FM_USAGE, "--min takes a percentage, not \"%s\"", text);
    return 0;
}

static int take_color(const char *text, enum fm_color_mode *mode, struct fm_error *err)
{
    static const char *const names[] = { "auto", "always", "never" };
    for (size_t i = 0; i < FM_COUNT(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *mode = (enum fm_color_mode)i;
            return 0;
        }
    }
    return fm_error_set(err, FM_USAGE, "--color is auto, always or never, not \"%s\"", text);
}

static int take_limit(struct fm_report_options *o, const char *text, struct fm_error *err)
{
    int64_t n = 0;
    if (take_number("--limit", text, true, &n, err) < 0)
        return err->status;
    if (n >= 0)
        fm_query_limit(&o->query, n);
    o->limited = true;
    return 0;
}

/* What can be added up and sorted by is the model's list. */
static void print_help(void)
{
    fputs(help, stdout);
    fputs("\nMetrics and states:", stdout);
    for (int m = 0; m < FM_METRIC_COUNT; m++) {
        const struct fm_metric_info *info = fm_metric_info((enum fm_metric)m);
        printf(" %s", info->name);
        if (fm_metric_has_total_key((enum fm_metric)m))
            printf(" %s", info->total_name);
    }
    putchar('\n');
}

static int no_such_state(const char *text, size_t len, struct fm_error *err)
{
    fm_autobuffer names = FM_BUFFER_INIT;
    for (int s = 0; s < FM_STATE_COUNT; s++)
        fm_buffer_addf(&names, "%s%s", s ? ", " : "", fm_state_name((enum fm_state)s));
    return fm_error_set(err, FM_USAGE, "there is no state \"%.*s\"; there are %s", (int)len, text,
                        fm_buffer_text(&names));
}

static int take_states(const char *text, unsigned *states, struct fm_error *err)
{
    for (;; text++) {
        size_t len = strcspn(text, ",");
        unsigned bit = 0;
        for (int s = 0; s < FM_STATE_COUNT; s++) {
            const char *name = fm_state_name((enum fm_state)s);
            if (strlen(name) == len && memcmp(name, text, len) == 0)
                bit = 1u << s;
        }
        if (!bit)
            return no_such_state(text, len, err);
        *states |= bit;
        text += len;
        if (!*text)
            return 0;
    }
}

static int take_at(struct fm_report_options *o, const char *text, struct fm_error *err)
{
    int i = 0;
    o->at_said = o->memory = true;
    while (i < FM_AT_TIME && strcmp(text, fm_instants[i].name) != 0)
        i++;
    o->at = (enum fm_instant)i;
    if (i < FM_AT_TIME || fm_report_moment_parse(&o->moment, text))
        return 0;
    return fm_error_set(err, FM_USAGE,
                        "--at is peak, together, end, all, temporary, a time of the run (2.5s, "
                        "300ms, 50%%), or two of them (1s..2s), not \"%s\"",
                        text);
}

/* What memray has as commands: a part, or the summary of another instant. */
static int take_memory(struct fm_report_options *o, const char *text, struct fm_error *err)
{
    static const struct {
        const char *name;
        enum fm_part part; /* that of functions leaves another that was chosen: callers, a tree */
        enum fm_memory_rows rows;
        enum fm_instant at;
    } all[] = {
        { "summary", FM_PART_FUNCTIONS, FM_ROWS_LINES, FM_INSTANTS },
        { "functions", FM_PART_FUNCTIONS, FM_ROWS_FUNCTIONS, FM_INSTANTS },
        { "types", FM_PART_FUNCTIONS, FM_ROWS_TYPES, FM_INSTANTS },
        { "tree", FM_PART_TREE, FM_ROWS_LINES, FM_INSTANTS },
        { "lines", FM_PART_LINES, FM_ROWS_LINES, FM_INSTANTS },
        { "leaks", FM_PART_FUNCTIONS, FM_ROWS_LINES, FM_AT_END },
        { "temporaries", FM_PART_FUNCTIONS, FM_ROWS_LINES, FM_AT_TEMPORARY },
        { "stats", FM_PART_STATS, FM_ROWS_LINES, FM_INSTANTS },
        { "regions", FM_PART_REGIONS, FM_ROWS_LINES, FM_INSTANTS },
        { "resident", FM_PART_RESIDENT, FM_ROWS_LINES, FM_INSTANTS },
        { "threads", FM_PART_THREADS, FM_ROWS_LINES, FM_INSTANTS },
        { "processes", FM_PART_PROCESSES, FM_ROWS_LINES, FM_INSTANTS },
    };
    o->memory = true;
    for (size_t i = 0; text && i < FM_COUNT(all); i++) {
        if (strcmp(text, all[i].name) != 0)
            continue;
        if (!o->part_said || all[i].part != FM_PART_FUNCTIONS)
            o->part = all[i].part;
        o->part_said = true;
        o->rows = all[i].rows;
        if (all[i].at != FM_INSTANTS && !o->at_said) {
            o->at = all[i].at;
            o->at_said = true;
        }
        return 0;
    }
    if (!text)
        return 0;
    return fm_error_set(err, FM_USAGE,
                        "--memory= is summary, functions, types, tree, lines, leaks, temporaries, "
                        "stats, regions, resident, threads or processes, not \"%s\"",
                        text);
}

static int take_instant(struct fm_report_options *o, bool from, const char *text,
                        struct fm_error *err)
{
    if (from)
        o->from_said = true;
    else
        o->to_said = true;
    if (fm_moment_parse(from ? &o->from : &o->to, text))
        return 0;
    return fm_error_set(err, FM_USAGE, "%s takes a time of the run (1.5s, 20ms, 50%%), not \"%s\"",
                        from ? "--from" : "--to", text);
}

static void add_edit(struct fm_report_options *o, enum fm_edit_kind kind)
{
    fm_vec_push(&o->edits, ((struct fm_edit_step){ kind, optarg }));
}

/* Options with a value that must be checked. */
static int take_value(struct fm_report_options *o, int option, struct fm_error *err)
{
    switch (option) {
    case 's':
        o->sorted = true;
        return fm_query_sort(&o->query, optarg, err);
    case 'n':
        return take_limit(o, optarg, err);
    case 'r':
        o->limited = true;
        return fm_query_restrict(&o->query, optarg, err);
    case OPT_EDGES:
        return take_int("--edges", optarg, true, &o->edges_max, err);
    case OPT_DEPTH:
        return take_int("--depth", optarg, true, &o->depth_max, err);
    case OPT_MIN:
        return take_percent(optarg, &o->min_percent, err);
    case OPT_THREAD:
        return take_number("--thread", optarg, false, &o->thread, err);
    case OPT_PROCESS:
        return take_number("--process", optarg, false, &o->process, err);
    case OPT_COLOR:
        return take_color(optarg, &o->color, err);
    case OPT_WIDTH:
        return take_int("--width", optarg, false, &o->width, err);
    case OPT_HOT:
        return take_int("--hot", optarg, true, &o->view.hot_max, err);
    case OPT_COLUMNS:
        return fm_line_columns_parse(&o->view.columns, optarg, err);
    case OPT_UNIT:
        return fm_time_unit_parse(&o->view.unit, optarg, err);
    case OPT_STATE:
        return take_states(optarg, &o->states, err);
    case OPT_MEMORY:
        return take_memory(o, optarg, err);
    case OPT_AT:
        return take_at(o, optarg, err);
    case OPT_FROM:
    case OPT_TO:
        return take_instant(o, option == OPT_FROM, optarg, err);
    }
    return 0;
}

/* Options that choose what is shown. */
static const struct {
    int option;
    enum fm_part part;
    bool function; /* it may name one */
} parts[] = {
    { OPT_CALLERS, FM_PART_CALLERS, true },  { OPT_CALLEES, FM_PART_CALLEES, true },
    { OPT_SOURCE, FM_PART_SOURCE, true },    { OPT_TREE, FM_PART_TREE, false },
    { OPT_THREADS, FM_PART_THREADS, false }, { OPT_PROCESSES, FM_PART_PROCESSES, false },
    { OPT_REGIONS, FM_PART_REGIONS, false }, { OPT_LINES, FM_PART_LINES, true },
    { OPT_HOT, FM_PART_HOT, false },         { OPT_ANNOTATE, FM_PART_ANNOTATE, false },
    { OPT_STATES, FM_PART_STATES, false },   { OPT_WAITS, FM_PART_WAITS, false },
    { OPT_SPOTS, FM_PART_SPOTS, false },     { OPT_TIMELINE, FM_PART_TIMELINE, false },
    { OPT_SLOWEST, FM_PART_SLOWEST, true },  { OPT_ALIKE, FM_PART_ALIKE, true },
    { OPT_TASKS, FM_PART_TASKS, true },      { OPT_GIL, FM_PART_GIL, false },
};

static void take_part(struct fm_report_options *o, int option)
{
    for (size_t i = 0; i < FM_COUNT(parts); i++) {
        if (parts[i].option != option)
            continue;
        /* --lines may stand beside the other tables of lines, to name functions. */
        if (option != OPT_LINES || !fm_part_is_of_lines(o->part))
            o->part = parts[i].part;
        if (parts[i].function)
            o->function = optarg;
        o->part_said = true;
    }
}

/* Remember what was asked of lines without choosing them. */
static void remember(struct fm_report_options *o, int option)
{
    static const struct {
        int option;
        const char *name;
    } of_lines[] = { { OPT_SUMMARIZE, "--summarize" },
                     { OPT_COLUMNS, "--columns" },
                     { OPT_UNIT, "--unit" },
                     { OPT_SKIP_ZERO, "--skip-zero" } };
    for (size_t i = 0; i < FM_COUNT(of_lines); i++) {
        if (of_lines[i].option == option)
            o->of_lines = of_lines[i].name;
    }
}

static int take_option(struct fm_report_options *o, int option, struct fm_error *err)
{
    take_part(o, option);
    remember(o, option);
    switch (option) {
    case OPT_REVERSE:
        o->query.reverse = true;
        return 0;
    case OPT_SUMMARIZE:
        o->view.summarize = true;
        return 0;
    case OPT_SKIP_ZERO:
        o->skip_zero = true;
        return 0;
    case OPT_CPU:
        o->states |= fm_states_running();
        return 0;
    case OPT_FOLD:
    case OPT_FILTER:
    case OPT_ROOT:
        add_edit(o, option == OPT_FOLD     ? FM_EDIT_FOLD
                    : option == OPT_FILTER ? FM_EDIT_FILTER
                                           : FM_EDIT_ROOT);
        return 0;
    case OPT_STRIP:
        o->strip_dirs = true;
        return 0;
    case OPT_PSTATS:
    case OPT_JSON:
    case OPT_CSV:
        o->layout = option == OPT_PSTATS ? FM_LAYOUT_PSTATS
                    : option == OPT_JSON ? FM_LAYOUT_JSON
                                         : FM_LAYOUT_CSV;
        return 0;
    }
    return take_value(o, option, err);
}

int fm_report_options_parse(struct fm_report_options *o, int argc, char **argv,
                            struct fm_error *err)
{
    int option;
    memset(o, 0, sizeof *o);
    o->process = o->thread = o->depth_max = -1;
    o->edges_max = -2; /* not said */
    o->min_percent = -1;
    opterr = 0;
    optind = 0;
    while ((option = getopt_long(argc, argv, ":s:n:r:h", options, NULL)) != -1) {
        if (option == 'h') {
            print_help();
            return 1;
        }
        if (option == ':')
            return fm_error_set(err, FM_USAGE, "%s needs a value", argv[optind - 1]);
        if (option == '?' && optopt && optopt < 256)
            return fm_error_set(err, FM_USAGE, "there is no option -%c", optopt);
        if (option == '?')
            return fm_error_set(err, FM_USAGE,
                                "%s is no option, or not a unique beginning of one, "
                                "or takes no value",
                                argv[optind - 1]);
        if (take_option(o, option, err) < 0)
            return err->status;
    }
    o->files = argv + optind;
    if (!*o->files)
        return fm_error_set(err, FM_USAGE, "name at least one recording");
    return fm_report_options_check(o, err);
}

void fm_report_options_release(struct fm_report_options *o)
{
    fm_query_release(&o->query);
    fm_vec_release(&o->edits);
}
