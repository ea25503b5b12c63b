/*
 * `fathom diff`: opens two recordings of any kind, compares them (src/show/report/diff/diff.h), and says if what was
 * measured grew by more than it may.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "commands/inputs.h"
#include "commands/report/report_moment.h"
#include "commands/verb.h"
#include "record/model/derive/edit.h"
#include "record/model/derive/shed.h"
#include "show/report/diff/diff.h"
#include "show/report/lines/linetable.h"
#include "show/report/number.h"

static const char help[] =
    "Usage: fathom diff [OPTION…] BEFORE NOW\n"
    "       fathom diff --at TIME --at TIME RECORDING\n"
    "What changed between two recordings, in any format of `fathom convert`: functions, with what\n"
    "they had before, have now, and the difference, the largest first. Functions are found again\n"
    "although their lines, or the folder of their file, are others.\n"
    "\n"
    "What to compare (by default the time of functions; memory where there is nothing else):\n"
    "      --memory[=WHAT]   memory: lines (the default), functions or tree\n"
    "      --at WHEN         of memory: peak, end (never freed), all (allocated), temporary,\n"
    "                        together (when all processes had most); or a time of the run, 2.5s or\n"
    "                        50%: of both recordings, or, given twice, of each its own\n"
    "      --lines           time by line, where lines were recorded\n"
    "      --tree            by path: the trees of both as one\n"
    "      --depth N         levels of the tree (all)\n"
    "      --min PERCENT     smallest change of a branch, of everything (1)\n"
    "      --fold GLOB       take functions out, what they have goes to their callers\n"
    "      --filter GLOB     only paths through such a function\n"
    "      --root GLOB       only what such functions did, seen from them\n"
    "      --normalize       scale what was before so that its sum is that of now: for runs of\n"
    "                        different length\n"
    "\n"
    "How it looks:\n"
    "  -s, --sort KEY,…      by which number: self total calls, or of memory peak leaked\n"
    "                        allocated blocks temporary (total_peak, peak_blocks, …); and how:\n"
    "                        change (the default), growth, ratio, before, now or name\n"
    "  -n, --limit N         the first N (20; \"all\")\n"
    "      --strip-dirs      file names without folders\n"
    "      --json, --csv     for programs\n"
    "      --color WHEN      auto, always, never\n"
    "      --width N         columns to fit into\n"
    "\n"
    "As a gate:\n"
    "      --fail-above N%   status 17 if the sum (of what is sorted by) grew by more than N %\n"
    "  -h, --help            this text\n";

enum diff_layout { LAYOUT_TABLE, LAYOUT_JSON, LAYOUT_CSV };

struct diff_request {
    enum diff_layout layout;
    bool memory, lines, tree, strip, normalize;
    enum fm_memory_rows rows;
    int key; /* FM_DIFF_KEYS: not said */
    enum fm_diff_order order;
    int limit, depth, width;
    double min_percent, fail_above; /* fail_above < 0: not said */
    enum fm_color_mode color;
    struct fm_report_moment moments[FM_SIDES];
    int timed;         /* how many of these were said */
    FM_VEC(int) edits; /* of which kind, and with which globs */
    FM_VEC(const char *) globs;
    char *file[FM_SIDES];
};

/* ---- the command line ---- */

enum {
    OPT_MEMORY = 256,
    OPT_AT,
    OPT_LINES,
    OPT_TREE,
    OPT_DEPTH,
    OPT_MIN,
    OPT_FOLD,
    OPT_FILTER,
    OPT_ROOT,
    OPT_NORMALIZE,
    OPT_STRIP,
    OPT_JSON,
    OPT_CSV,
    OPT_COLOR,
    OPT_WIDTH,
    OPT_FAIL,
};

static const struct option options[] = {
    { "sort", required_argument, NULL, 's' },
    { "limit", required_argument, NULL, 'n' },
    { "help", no_argument, NULL, 'h' },
    { "memory", optional_argument, NULL, OPT_MEMORY },
    { "at", required_argument, NULL, OPT_AT },
    { "lines", no_argument, NULL, OPT_LINES },
    { "tree", no_argument, NULL, OPT_TREE },
    { "depth", required_argument, NULL, OPT_DEPTH },
    { "min", required_argument, NULL, OPT_MIN },
    { "fold", required_argument, NULL, OPT_FOLD },
    { "filter", required_argument, NULL, OPT_FILTER },
    { "root", required_argument, NULL, OPT_ROOT },
    { "normalize", no_argument, NULL, OPT_NORMALIZE },
    { "normalise", no_argument, NULL, OPT_NORMALIZE },
    { "strip-dirs", no_argument, NULL, OPT_STRIP },
    { "json", no_argument, NULL, OPT_JSON },
    { "csv", no_argument, NULL, OPT_CSV },
    { "color", required_argument, NULL, OPT_COLOR },
    { "colour", required_argument, NULL, OPT_COLOR },
    { "width", required_argument, NULL, OPT_WIDTH },
    { "fail-above", required_argument, NULL, OPT_FAIL },
    { 0 },
};

static int take_number(const char *option, const char *text, int *value, struct fm_error *err)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (strcmp(text, "all") == 0)
        n = -1;
    else if (end == text || *end || errno || n < 0 || n > INT32_MAX)
        return fm_error_set(err, FM_USAGE, "%s takes a whole number or \"all\", not \"%s\"", option,
                            text);
    *value = (int)n;
    return 0;
}

static int take_percent(const char *option, const char *text, double *value, struct fm_error *err)
{
    char *end;
    *value = strtod(text, &end);
    end += strspn(end, " ");
    if (end == text || (*end && strcmp(end, "%") != 0) || !(*value >= 0 && *value <= 1e9))
        return fm_error_set(err, FM_USAGE, "%s takes a percentage, not \"%s\"", option, text);
    return 0;
}

/* The word of a list that `text` is; -1: none. */
static int find_word(const char *const *words, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i], text) == 0)
            return (int)i;
    return -1;
}

static int take_sort(struct diff_request *q, const char *text, struct fm_error *err)
{
    static const char *const orders[] = { "change", "growth", "ratio", "before", "now", "name" };
    while (*text) {
        size_t len = strcspn(text, ",");
        fm_autofree char *word = fm_strndup(text, len);
        int order = find_word(orders, FM_COUNT(orders), word), key = fm_diff_key_named(word);
        if (order >= 0)
            q->order = (enum fm_diff_order)order;
        else if (key < FM_DIFF_KEYS)
            q->key = key;
        else
            return fm_error_set(
                err, FM_BAD_QUERY,
                "there is no sort key \"%s\"; there are self, total, calls, peak, leaked, "
                "allocated, blocks, temporary, together, and change, growth, ratio, before, now, name",
                word);
        text += len + (text[len] == ',');
    }
    if (q->key < FM_DIFF_KEYS && fm_diff_keys[q->key].memory)
        q->memory = true;
    return 0;
}

static int take_memory(struct diff_request *q, const char *text, struct fm_error *err)
{
    static const char *const words[] = { "lines", "functions", "tree" };
    int word = text ? find_word(words, FM_COUNT(words), text) : 0;
    if (word < 0)
        return fm_error_set(err, FM_USAGE, "--memory= is lines, functions or tree, not \"%s\"",
                            text);
    q->memory = true;
    q->rows = word == 1 ? FM_ROWS_FUNCTIONS : FM_ROWS_LINES;
    q->tree = q->tree || word == 2;
    return 0;
}

/* A time of the run; the second is that of what is now. */
static int take_moment(struct diff_request *q, const char *text, struct fm_error *err)
{
    struct fm_report_moment moment;
    if (!fm_report_moment_parse(&moment, text) || moment.range)
        return fm_error_set(
            err, FM_USAGE,
            "--at is peak, end, all, temporary, together, or a time as 2.5s or 50%%, "
            "not \"%s\"",
            text);
    if (q->timed == FM_SIDES)
        return fm_error_set(err, FM_USAGE, "--at: there are two recordings, and three times");
    q->moments[FM_NOW] = moment;
    if (!q->timed)
        q->moments[FM_BEFORE] = moment;
    q->timed++;
    q->memory = true;
    q->key = fm_diff_key_named("then");
    return 0;
}

static int take_at(struct diff_request *q, const char *text, struct fm_error *err)
{
    static const char *const keys[] = { "peak", "leaked", "allocated", "temporary", "together" };
    static const char *const words[] = { "peak", "end", "all", "temporary", "together" };
    int word = find_word(words, FM_COUNT(words), text);
    if (word < 0)
        return take_moment(q, text, err);
    q->memory = true;
    q->key = fm_diff_key_named(keys[word]);
    return 0;
}

static int take_color(struct diff_request *q, const char *text, struct fm_error *err)
{
    static const char *const words[] = { "auto", "always", "never" };
    int word = find_word(words, FM_COUNT(words), text);
    if (word < 0)
        return fm_error_set(err, FM_USAGE, "--color is auto, always or never, not \"%s\"", text);
    q->color = (enum fm_color_mode)word;
    return 0;
}

static int take_option(struct diff_request *q, int option, struct fm_error *err)
{
    switch (option) {
    case 's':
        return take_sort(q, optarg, err);
    case 'n':
        return take_number("--limit", optarg, &q->limit, err);
    case OPT_DEPTH:
        return take_number("--depth", optarg, &q->depth, err);
    case OPT_WIDTH:
        return take_number("--width", optarg, &q->width, err);
    case OPT_MIN:
        return take_percent("--min", optarg, &q->min_percent, err);
    case OPT_FAIL:
        return take_percent("--fail-above", optarg, &q->fail_above, err);
    case OPT_MEMORY:
        return take_memory(q, optarg, err);
    case OPT_AT:
        return take_at(q, optarg, err);
    case OPT_COLOR:
        return take_color(q, optarg, err);
    case OPT_LINES:
        q->lines = true;
        return 0;
    case OPT_TREE:
        q->tree = true;
        return 0;
    case OPT_NORMALIZE:
        q->normalize = true;
        return 0;
    case OPT_STRIP:
        q->strip = true;
        return 0;
    case OPT_JSON:
        q->layout = LAYOUT_JSON;
        return 0;
    case OPT_CSV:
        q->layout = LAYOUT_CSV;
        return 0;
    default: /* OPT_FOLD, OPT_FILTER, OPT_ROOT */
        fm_vec_push(&q->edits, option);
        fm_vec_push(&q->globs, optarg);
        return 0;
    }
}

/* 1: help was printed. */
static int parse(struct diff_request *q, int argc, char **argv, struct fm_error *err)
{
    int option;
    opterr = 0;
    optind = 0;
    while ((option = getopt_long(argc, argv, ":s:n:h", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return 1;
        }
        if (option == ':' || option == '?')
            return fm_error_set(err, FM_USAGE,
                                option == ':' ? "%s needs a value" : "there is no option %s",
                                argv[optind - 1]);
        if (take_option(q, option, err) < 0)
            return err->status;
    }
    int files = argc - optind;
    if (files != 2 && !(files == 1 && q->timed == FM_SIDES))
        return fm_error_set(
            err, FM_USAGE,
            "name two recordings: what was, and what is; or one, and two times of it "
            "with --at");
    q->file[FM_BEFORE] = argv[optind];
    q->file[FM_NOW] = argv[optind + files - 1];
    if (q->lines && (q->memory || q->tree))
        return fm_error_set(err, FM_USAGE, "--lines is of time, and no tree");
    return 0;
}

/* ---- both recordings ---- */

struct diff_subject {
    struct fm_profile *p[FM_SIDES];
    uint32_t *origin[FM_SIDES];
    struct fm_flat *flat[FM_SIDES];
    struct fm_linetables
        *lines[FM_SIDES]; /* of lines: their functions, which may have no other numbers */
    struct fm_pairs pairs;
    struct fm_shown shown[FM_SIDES];
    const char *files[FM_SIDES][2];
    struct fm_diff d;
};

static int edit(struct diff_subject *s, int side, const struct diff_request *q,
                struct fm_error *err)
{
    for (size_t i = 0; i < q->edits.len; i++) {
        struct fm_profile *old = s->p[side];
        void *glob = (void *)(uintptr_t)q->globs.data[i];
        if (!old->threads.len)
            return fm_error_set(
                err, FM_UNSUPPORTED,
                "--fold, --filter and --root need calling contexts, which %s does not hold",
                q->file[side]);
        s->p[side] = q->edits.data[i] == OPT_FOLD ? fm_profile_fold(old, fm_function_glob, glob)
                     : q->edits.data[i] == OPT_FILTER
                         ? fm_profile_filter(old, fm_function_glob, glob)
                         : fm_profile_root(old, fm_function_glob, glob);
        fm_profile_free(old);
    }
    return 0;
}

static int open_side(struct diff_subject *s, int side, const struct diff_request *q,
                     struct fm_error *err)
{
    char *const files[2] = { q->file[side], NULL };
    s->files[side][0] = q->file[side];
    /* Lines are told by their text. Whether they are compared may depend on what the files hold. */
    unsigned parts = FM_FILE_TEXTS | (q->timed ? FM_FILE_HISTORIES : 0);
    s->p[side] = fm_inputs_open(files, false, parts, err);
    return s->p[side] ? edit(s, side, q, err) : err->status;
}

/* Are there times of functions? line_profiler's files have lines alone, mprof's not even these. */
static bool has_functions(const struct fm_profile *p)
{
    return fm_profile_has_time(p) && (p->nodes.len || p->flat);
}

/* Both must have what is compared; if nothing was said, it is what both have. */
static int choose(const struct diff_subject *s, struct diff_request *q, struct fm_error *err)
{
    bool asked = q->memory || q->lines;
    bool time = true, memory = true;
    for (int side = 0; side < FM_SIDES; side++) {
        time = time && fm_profile_has_time(s->p[side]);
        memory = memory && fm_profile_has_memory(s->p[side]);
    }
    if (!asked && !time && memory)
        q->memory = true;
    if (!asked && !q->memory && !q->tree && s->p[FM_BEFORE]->lines.rows.len &&
        s->p[FM_NOW]->lines.rows.len &&
        !(has_functions(s->p[FM_BEFORE]) && has_functions(s->p[FM_NOW])))
        q->lines = true;
    for (int side = 0; side < FM_SIDES; side++) {
        const struct fm_profile *p = s->p[side];
        bool holds = q->memory  ? fm_profile_has_memory(p)
                     : q->lines ? p->lines.rows.len > 0
                                : has_functions(p);
        if (!holds)
            return fm_error_set(err, FM_UNSUPPORTED,
                                "%s holds no %s, so there is nothing to compare", q->file[side],
                                q->memory  ? "memory"
                                : q->lines ? "lines"
                                           : "time of functions");
        if (q->tree && !p->threads.len)
            return fm_error_set(err, FM_UNSUPPORTED,
                                "%s holds no calling contexts, so there is no tree to compare",
                                q->file[side]);
    }
    bool together = s->p[FM_BEFORE]->columns[FM_METRIC_TOGETHER].data &&
                    s->p[FM_NOW]->columns[FM_METRIC_TOGETHER].data;
    if (q->key == FM_DIFF_KEYS && q->memory && together) /* as in reports of several processes */
        q->key = fm_diff_key_named("together");
    if (q->key == FM_DIFF_KEYS)
        q->key = q->memory ? FM_DIFF_PEAK : q->lines ? FM_DIFF_TOTAL : FM_DIFF_SELF;
    const struct fm_diff_key *key = &fm_diff_keys[q->key];
    if (key->memory != q->memory)
        return fm_error_set(err, FM_BAD_QUERY, "the sort key \"%s\" is of %s", key->name,
                            key->memory ? "memory" : "time");
    if (q->tree && fm_metric_info(key->metric)->unit == FM_UNIT_COUNT)
        return fm_error_set(err, FM_BAD_QUERY, "a tree is of times or bytes, not of \"%s\"",
                            key->name);
    return 0;
}

/* Give the contexts what they had at the times that were asked for. */
static int show_times(struct diff_subject *s, const struct diff_request *q, struct fm_error *err)
{
    for (int side = 0; side < FM_SIDES && q->timed; side++) {
        struct fm_shown none;
        if (fm_report_moment_show(&q->moments[side], s->p[side], q->file[side], &none,
                                  &s->shown[side], err) < 0)
            return err->status;
    }
    return 0;
}

static void prepare(struct diff_subject *s, const struct diff_request *q)
{
    struct fm_diff *d = &s->d;
    const struct fm_profile *const both[] = { s->p[FM_BEFORE], s->p[FM_NOW] };
    fm_pairs_init(&s->pairs, both);
    *d = (struct fm_diff){ .memory = q->memory,
                           .lines = q->lines,
                           .key = q->key,
                           .timed = q->timed > 0,
                           .shown = { s->shown[FM_BEFORE], s->shown[FM_NOW] },
                           .order = q->order,
                           .rows_max = q->limit,
                           .depth_max = q->depth,
                           .min_percent = q->min_percent,
                           .style = fm_style_for(stdout, q->color, q->width),
                           .out = stdout };
    bool narrow = q->layout == LAYOUT_TABLE && d->style.width > 0 && d->style.width < 120;
    for (int side = 0; side < FM_SIDES; side++) {
        struct fm_report *r = &d->side[side];
        if (q->memory)
            s->origin[side] = fm_profile_shed_time(s->p[side], q->rows);
        else
            fm_profile_shed_memory(s->p[side]);
        r->p = s->p[side];
        r->files = s->files[side];
        r->scope = (struct fm_flat_scope){ FM_NONE, FM_NONE };
        r->flat = s->flat[side] = fm_flat_new(r->p, &r->scope);
        d->time_ns[side] = fm_flat_total(r->flat).self_ns;
        if (q->lines) {
            s->lines[side] = fm_linetables_new(r->p, &r->scope, r->flat);
            r->flat = &s->lines[side]->flat;
        }
        r->names =
            fm_names_new(r->p, r->flat, q->strip || narrow ? FM_NAMES_FILES : FM_NAMES_WHOLE);
        d->origin[side] = q->memory && q->rows == FM_ROWS_LINES ? s->origin[side] : NULL;
    }
    fm_diff_init(d, &s->pairs, q->normalize);
}

static void print(struct diff_subject *s, const struct diff_request *q)
{
    if (q->layout == LAYOUT_JSON) {
        fm_diff_print_json(&s->d, q->tree);
    } else if (q->layout == LAYOUT_CSV) {
        fm_diff_print_csv(&s->d, q->tree);
    } else {
        fm_diff_print_header(&s->d);
        if (q->tree)
            fm_diff_print_tree(&s->d);
        else
            fm_diff_print_rows(&s->d);
    }
}

/* More than the user allowed? */
static int judge(const struct diff_subject *s, const struct diff_request *q, struct fm_error *err)
{
    const struct fm_diff *d = &s->d;
    double before = (double)d->all[FM_BEFORE][q->key], now = (double)d->all[FM_NOW][q->key];
    const char *what =
        q->key == FM_DIFF_SELF || q->key == FM_DIFF_TOTAL ? "time" : fm_diff_keys[q->key].title;
    if (q->fail_above < 0 || now <= before * (1 + q->fail_above / 100))
        return 0;
    if (before <= 0)
        return fm_error_set(err, FM_OVER_LIMIT, "%s grew from nothing", what);
    return fm_error_set(err, FM_OVER_LIMIT, "%s grew by %.3g %%, more than the %.3g %% that it may",
                        what, (now / before - 1) * 100, q->fail_above);
}

static void release(struct diff_subject *s, struct diff_request *q)
{
    fm_diff_release(&s->d);
    for (int side = 0; side < FM_SIDES; side++) {
        fm_names_free(s->d.side[side].names);
        fm_linetables_free(s->lines[side]);
        fm_flat_free(s->flat[side]);
        free(s->origin[side]);
        fm_profile_free(s->p[side]);
    }
    fm_pairs_release(&s->pairs);
    fm_vec_release(&q->edits);
    fm_vec_release(&q->globs);
}

static int compare(struct diff_subject *s, struct diff_request *q, struct fm_error *err)
{
    for (int side = 0; side < FM_SIDES; side++)
        if (open_side(s, side, q, err) < 0)
            return err->status;
    if (choose(s, q, err) < 0 || show_times(s, q, err) < 0)
        return err->status;
    prepare(s, q);
    print(s, q);
    if (fflush(stdout) != 0 || ferror(stdout))
        return fm_error_set(err, FM_CANNOT_WRITE, "the comparison cannot be written");
    return judge(s, q, err);
}

int fm_verb_diff(int argc, char **argv)
{
    struct diff_request q = {
        .key = FM_DIFF_KEYS, .limit = 20, .depth = -1, .min_percent = 1, .fail_above = -1
    };
    struct diff_subject s = { 0 };
    struct fm_error err = FM_ERROR_INIT;
    int status = parse(&q, argc, argv, &err);
    if (status == 0)
        status = compare(&s, &q, &err);
    release(&s, &q);
    if (status >= 0)
        return 0;
    if (status == FM_USAGE)
        return fm_verb_usage("diff", "%s", err.text);
    return fm_verb_fail("diff", &err);
}
