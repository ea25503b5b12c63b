/* The command line of `fathom report`; see report_options.h. */
#include "commands/report/report_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "commands/report/report_range.h"

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
        o->part = FM_PART_HOT;
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
    return fm_error_set(err, FM_USAGE, "unknown option");
}

/* Options of tables of lines; false if it is another. Only --lines may name functions, and it may
 * stand beside the others. */
static bool take_lines(struct fm_report_options *o, int option)
{
    switch (option) {
    case OPT_LINES:
        if (!fm_part_is_of_lines(o->part))
            o->part = FM_PART_LINES;
        o->function = optarg;
        return true;
    case OPT_ANNOTATE:
        o->part = FM_PART_ANNOTATE;
        return true;
    case OPT_SUMMARIZE:
        o->view.summarize = true;
        return true;
    case OPT_SKIP_ZERO:
        o->skip_zero = true;
        return true;
    }
    return false;
}

/* Options of samples; false if it is another. */
static bool take_samples(struct fm_report_options *o, int option)
{
    switch (option) {
    case OPT_STATES:
    case OPT_WAITS:
    case OPT_SPOTS:
        o->part = option == OPT_STATES  ? FM_PART_STATES
                  : option == OPT_WAITS ? FM_PART_WAITS
                                        : FM_PART_SPOTS;
        return true;
    case OPT_CPU:
        o->states |= fm_states_running();
        return true;
    }
    return false;
}

/* Remember that a part was chosen, or what was asked of lines without choosing them. */
static void remember(struct fm_report_options *o, int option)
{
    static const struct {
        int option;
        const char *name;
    } of_lines[] = { { OPT_SUMMARIZE, "--summarize" },
                     { OPT_COLUMNS, "--columns" },
                     { OPT_UNIT, "--unit" },
                     { OPT_SKIP_ZERO, "--skip-zero" } };
    static const int parts[] = { OPT_CALLERS, OPT_CALLEES, OPT_TREE,    OPT_THREADS,  OPT_PROCESSES,
                                 OPT_SOURCE,  OPT_LINES,   OPT_HOT,     OPT_ANNOTATE, OPT_STATES,
                                 OPT_WAITS,   OPT_SPOTS,   OPT_REGIONS, OPT_TIMELINE, OPT_SLOWEST,
                                 OPT_ALIKE,   OPT_TASKS,   OPT_GIL };
    for (size_t i = 0; i < FM_COUNT(of_lines); i++) {
        if (of_lines[i].option == option)
            o->of_lines = of_lines[i].name;
    }
    for (size_t i = 0; i < FM_COUNT(parts); i++)
        o->part_said = o->part_said || parts[i] == option;
}

static int take_option(struct fm_report_options *o, int option, struct fm_error *err)
{
    switch (option) {
    case OPT_REVERSE:
        o->query.reverse = true;
        return 0;
    case OPT_CALLERS:
    case OPT_CALLEES:
        o->part = option == OPT_CALLERS ? FM_PART_CALLERS : FM_PART_CALLEES;
        o->function = optarg;
        return 0;
    case OPT_SOURCE:
        o->part = FM_PART_SOURCE;
        o->function = optarg;
        return 0;
    case OPT_TREE:
        o->part = FM_PART_TREE;
        return 0;
    case OPT_THREADS:
        o->part = FM_PART_THREADS;
        return 0;
    case OPT_PROCESSES:
        o->part = FM_PART_PROCESSES;
        return 0;
    case OPT_REGIONS:
        o->part = FM_PART_REGIONS;
        return 0;
    case OPT_TIMELINE:
    case OPT_GIL:
        o->part = option == OPT_GIL ? FM_PART_GIL : FM_PART_TIMELINE;
        return 0;
    case OPT_SLOWEST:
    case OPT_ALIKE:
        o->part = option == OPT_ALIKE ? FM_PART_ALIKE : FM_PART_SLOWEST;
        o->function = optarg;
        return 0;
    case OPT_TASKS:
        o->part = FM_PART_TASKS;
        o->function = optarg;
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
    return take_lines(o, option) || take_samples(o, option) ? 0 : take_value(o, option, err);
}

int fm_report_options_take_memory(struct fm_report_options *o, struct fm_error *err)
{
    o->memory = true;
    if (o->states || o->part == FM_PART_SOURCE || o->part == FM_PART_ANNOTATE ||
        fm_part_is_of_samples(o->part))
        return fm_error_set(err, FM_USAGE,
                            "--source, --annotate, --states, --waits, --spots, --cpu and --state "
                            "are of time, and do not go with --memory");
    if (o->of_lines)
        return fm_error_set(err, FM_USAGE, "%s is of time, and does not go with --memory",
                            o->of_lines);
    if (o->layout == FM_LAYOUT_PSTATS)
        return fm_error_set(err, FM_USAGE, "pstats knows no memory: --pstats does not go with it");
    return 0;
}

/* What does not go together, whatever the recording holds. */
static int check(struct fm_report_options *o, struct fm_error *err)
{
    if (o->part == FM_PART_REGIONS && (o->thread >= 0 || o->edits.len))
        return fm_error_set(
            err, FM_USAGE,
            "regions are recorded for all threads of a process together, and beside "
            "calling contexts: --thread, --fold, --filter and --root do not go with "
            "them");
    if (fm_instant_of(fm_query_metric(&o->query)) != FM_INSTANTS)
        o->memory = true; /* who sorts by memory asks for it */
    if (fm_report_range_check(o, err) < 0)
        return err->status;
    if (o->memory)
        return fm_report_options_take_memory(o, err);
    if (o->of_lines && !o->part_said) { /* who asks for columns of lines asks for lines */
        o->part = FM_PART_LINES;
        o->part_said = true;
    }
    bool lines = fm_part_is_of_lines(o->part);
    if (o->of_lines && !lines)
        return fm_error_set(err, FM_USAGE, "%s goes with --lines, --hot or --annotate",
                            o->of_lines);
    if (lines && o->edits.len)
        return fm_error_set(err, FM_USAGE,
                            "--fold, --filter and --root reshape calling contexts, and lines have "
                            "none");
    if (lines && o->thread >= 0)
        return fm_error_set(err, FM_USAGE,
                            "the lines of all threads of a process are recorded together, so "
                            "--thread does not go with them");
    if ((o->part == FM_PART_WAITS || o->part == FM_PART_SPOTS) && o->thread >= 0)
        return fm_error_set(err, FM_USAGE,
                            "the places of all threads of a process are recorded together, so "
                            "--thread does not go with --waits or --spots");
    if (o->part == FM_PART_SPOTS && o->states)
        return fm_error_set(
            err, FM_USAGE,
            "expressions are recorded without their states, so --cpu and --state do "
            "not go with --spots");
    if (o->layout == FM_LAYOUT_PSTATS && o->part > FM_PART_CALLEES)
        return fm_error_set(err, FM_USAGE,
                            "pstats has no such report: --pstats goes with the functions, "
                            "--callers or --callees");
    if (o->layout != FM_LAYOUT_TABLE && o->part == FM_PART_SOURCE)
        return fm_error_set(err, FM_USAGE, "--source is plain text: it takes no --json or --csv");
    return 0;
}

/* The instant, if it was not said, is the one that is sorted by; of statistics it is all of them. */
static enum fm_instant default_instant(const struct fm_report_options *o)
{
    enum fm_instant sorted = fm_instant_of(fm_query_metric(&o->query));
    bool parts = o->part == FM_PART_THREADS || o->part == FM_PART_PROCESSES;
    if (sorted != FM_INSTANTS)
        return sorted;
    if (o->part == FM_PART_STATS)
        return FM_AT_ALL;
    return o->together && !parts ? FM_AT_TOGETHER : FM_AT_PEAK;
}

static int settle_memory(struct fm_report_options *o, struct fm_error *err)
{
    bool edges = o->part == FM_PART_CALLERS || o->part == FM_PART_CALLEES;
    if (!o->at_said)
        o->at = default_instant(o);
    if (!o->at_said && o->at == FM_AT_TIME)
        return fm_error_set(err, FM_USAGE, "say which time you sort by: --at 2.5s, or --at 50%%");
    if (!o->sorted && fm_query_sort(&o->query, edges ? "total" : "self", err) < 0)
        return err->status;
    fm_query_settle_metrics(&o->query, fm_instants[o->at].bytes, fm_instants[o->at].blocks);
    return 0;
}

static int settle_sort(struct fm_report_options *o, struct fm_error *err)
{
    bool edges = o->part == FM_PART_CALLERS || o->part == FM_PART_CALLEES;
    if (o->memory)
        return settle_memory(o, err);
    if (fm_part_is_of_lines(o->part))
        fm_query_settle_time(&o->query);
    if (o->sorted || o->layout == FM_LAYOUT_PSTATS)
        return 0;
    return fm_query_sort(&o->query, edges || o->part == FM_PART_LINES ? "total" : "self", err);
}

/* A number of rows is meant for what is shown: places, not the functions they are in. */
static void settle_rows(struct fm_report_options *o, int usual)
{
    size_t kept = 0;
    o->rows_max = !o->limited && o->layout == FM_LAYOUT_TABLE ? usual : -1;
    for (size_t i = 0; i < o->query.restrictions.len; i++) {
        struct fm_restriction r = o->query.restrictions.data[i];
        int count = r.count < INT32_MAX ? (int)r.count : INT32_MAX;
        if (r.kind != FM_RESTRICT_COUNT)
            o->query.restrictions.data[kept++] = r;
        else if (o->rows_max < 0 || count < o->rows_max)
            o->rows_max = count;
    }
    o->query.restrictions.len = kept;
}

int fm_report_options_settle(struct fm_report_options *o, bool marked, struct fm_error *err)
{
    bool edges = o->part == FM_PART_CALLERS || o->part == FM_PART_CALLEES;
    bool ten = edges || (o->part == FM_PART_LINES && !o->memory);
    bool all = o->part == FM_PART_HOT || o->part == FM_PART_ANNOTATE ||
               (o->part == FM_PART_LINES && !o->memory && (marked || o->view.summarize));
    o->query.qualified = o->layout != FM_LAYOUT_PSTATS;
    if (settle_sort(o, err) < 0)
        return err->status;
    if (o->memory && o->part == FM_PART_HOT) { /* its number is that of the lines */
        all = false;
        o->limited = true;
        if (o->view.hot_max >= 0)
            fm_query_limit(&o->query, o->view.hot_max);
    }
    if (o->part == FM_PART_STATS)
        settle_rows(o, 5);
    else if (o->part == FM_PART_WAITS || o->part == FM_PART_SPOTS)
        settle_rows(o, 20);
    else if (fm_part_is_of_timeline(o->part))
        settle_rows(o, o->part == FM_PART_TIMELINE ? 40 : 10);
    else if (!o->limited && o->layout == FM_LAYOUT_TABLE && !o->function && !all)
        fm_query_limit(&o->query, ten ? 10 : 20);
    if (o->layout != FM_LAYOUT_TABLE && o->edges_max == -2)
        o->edges_max = -1;
    if (o->edges_max == -2)
        o->edges_max = 10;
    if (o->min_percent < 0)
        o->min_percent = o->layout == FM_LAYOUT_TABLE ? 1 : 0;
    return 0;
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
        remember(o, option);
    }
    o->files = argv + optind;
    if (!*o->files)
        return fm_error_set(err, FM_USAGE, "name at least one recording");
    return check(o, err);
}

void fm_report_options_release(struct fm_report_options *o)
{
    fm_query_release(&o->query);
    fm_vec_release(&o->edits);
}
