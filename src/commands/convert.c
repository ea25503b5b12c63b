/*
 * `fathom convert`: a recording, or several added up, in another format. The format of the output
 * is told by --to or by the end of its name.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/convert_choice.h"
#include "commands/inputs.h"
#include "commands/redact.h"
#include "commands/verb.h"
#include "record/formats/format.h"
#include "record/model/derive/weigh.h"

static const char help_start[] =
    "Usage: fathom convert [OPTION…] FILE… -o OUT\n"
    "Write a recording in another format. Several files are added up.\n"
    "\n"
    "  -o, --output OUT   where to; \"-\" is the standard output\n"
    "      --to FORMAT    the format, if the name of OUT does not tell\n"
    "      --metric NAME  weigh by this and not by time: calls, samples, gil, peak,\n"
    "                     leaked, allocated, blocks, … (of memory alone: together,\n"
    "                     or peak)\n"
    "      --from TIME    of a timeline, what is behind this time: 1.5s, 20ms, …\n"
    "      --to TIME      … and before this one (also --until)\n"
    "      --min-duration TIME   … what lasts as long at least\n"
    "      --max-depth N  … the N outermost calls\n"
    "  -f, --force        overwrite OUT if it exists\n"
    "      --redact       leave the arguments of command lines out of it\n"
    "  -h, --help         this text\n"
    "\n"
    "Formats, and the names that choose them:\n"
    "  fathom      Fathom's own: .fathom\n";

struct convert_request {
    const char *output, *to, *metric;
    bool force, redact;
    struct fm_save_choice choice;
};

static const struct option options[] = {
    { "output", required_argument, NULL, 'o' },
    { "to", required_argument, NULL, 't' },
    { "metric", required_argument, NULL, 'm' },
    { "from", required_argument, NULL, 'F' },
    { "until", required_argument, NULL, 'U' },
    { "min-duration", required_argument, NULL, 'M' },
    { "max-depth", required_argument, NULL, 'D' },
    { "force", no_argument, NULL, 'f' },
    { "redact", no_argument, NULL, 'r' },
    { "help", no_argument, NULL, 'h' },
    { 0 },
};

static int print_help(void)
{
    const struct fm_format *const *all = fm_formats_all();
    fputs(help_start, stdout);
    for (size_t i = 0; all[i]; i++) {
        if (!all[i]->save && !all[i]->save_timeline)
            continue;
        printf("  %-11s %s:", all[i]->name, all[i]->title);
        for (size_t k = 0; all[i]->suffixes && all[i]->suffixes[k]; k++)
            printf("%s %s", k ? "," : "", all[i]->suffixes[k]);
        if (all[i]->prefix)
            printf("%s %s…", all[i]->suffixes && all[i]->suffixes[0] ? "," : "", all[i]->prefix);
        fputc('\n', stdout);
    }
    return 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

/* NULL format means .fathom. */
static int choose_format(const struct convert_request *q, const struct fm_format **format,
                         struct fm_error *err)
{
    *format = NULL;
    if (q->to && strcmp(q->to, "fathom") == 0)
        return 0;
    if (q->to) {
        *format = fm_format_named(q->to);
        return *format ? 0 : fm_error_set(err, FM_USAGE, "there is no format \"%s\"", q->to);
    }
    if (ends_with(q->output, ".fathom"))
        return 0;
    *format = fm_format_of_path(q->output);
    if (!*format)
        return fm_error_set(err, FM_USAGE, "the name \"%s\" tells no format; say it with --to",
                            q->output);
    return 0;
}

/* What to weigh by if nobody says: a foreign file of a recording of memory alone would be empty. Peaks of
 * several processes are not of one instant: what they had together is, where that is known. */
static const char *usual_metric(const struct fm_profile *p, const struct fm_format *format)
{
    static const enum fm_metric memory[] = { FM_METRIC_TOGETHER, FM_METRIC_PEAK, FM_METRIC_LEAKED,
                                             FM_METRIC_ALLOCATED };
    bool time = p->flat || p->columns[FM_METRIC_TOTAL].data || p->columns[FM_METRIC_SAMPLES].data ||
                p->columns[FM_METRIC_CALLS].data;
    time = time && format != &fm_format_memray;
    for (size_t i = 0; format && !time && i < FM_COUNT(memory); i++)
        if (p->columns[memory[i]].data)
            return fm_metric_name(memory[i]);
    return NULL;
}

/* Takes the profile over. */
static int write_timeline(const struct convert_request *q, struct fm_profile *p,
                          const struct fm_format *format, struct fm_error *err)
{
    struct fm_save_choice choice = q->choice;
    choice.say_spans = fm_convert_say_spans;
    int status = fm_profile_write_timeline(p, q->output, format, &choice, q->force, err);
    fm_profile_free(p);
    return status;
}

static int check_choice(const struct convert_request *q, const struct fm_format *format,
                        struct fm_error *err)
{
    bool timeline = format && format->save_timeline;
    if (!timeline && fm_convert_chose(&q->choice))
        return fm_error_set(err, FM_USAGE,
                            "--from, --to TIME, --min-duration and --max-depth are of timelines: "
                            "write one as perfetto or chrome");
    if (timeline && q->metric)
        return fm_error_set(err, FM_USAGE, "a timeline has no metric to be weighed by");
    return 0;
}

static int convert(const struct convert_request *q, char *const *files, struct fm_error *err)
{
    const struct fm_format *format;
    if (choose_format(q, &format, err) < 0 || check_choice(q, format, err) < 0)
        return err->status;
    struct fm_profile *p = fm_inputs_open(files, format == &fm_format_pstats, FM_FILE_ALL, err);
    if (!p)
        return err->status;
    fm_inputs_warn("convert", p);
    if (q->redact)
        fm_redact(p);
    if (format && format->save_timeline)
        return write_timeline(q, p, format, err);
    const char *metric = q->metric ? q->metric : usual_metric(p, format);
    int status = metric ? fm_profile_weigh(p, metric, err) : 0;
    if (status == 0)
        status = fm_profile_write(p, q->output, format, q->force, err);
    fm_profile_free(p);
    return status;
}

/* An option that chooses a part of a timeline. NULL, or what is wrong with it. */
static const char *take_choice(struct convert_request *q, int option, const char *value)
{
    char *end;
    if (option == 'D') {
        unsigned long depth = strtoul(value, &end, 10);
        q->choice.max_depth = (uint32_t)depth;
        bool ok = fm_convert_is_time(value) && !*end && depth >= 1 && depth <= INT32_MAX;
        return ok ? NULL : "--max-depth needs a whole number from 1 on";
    }
    uint64_t *ns = option == 'F'   ? &q->choice.from_ns
                   : option == 'M' ? &q->choice.min_ns
                                   : &q->choice.to_ns;
    return fm_convert_time(value, ns) && (*ns || option == 'F')
               ? NULL
               : "a time needs its unit, as 10us, 1.5ms, 2s or 3min";
}

int fm_verb_convert(int argc, char **argv)
{
    struct convert_request q = { 0 };
    struct fm_error err = FM_ERROR_INIT;
    int option;
    opterr = 0;
    optind = 0;
    while ((option = getopt_long(argc, argv, ":o:fh", options, NULL)) != -1) {
        const char *wrong = NULL;
        if (option == 'o')
            q.output = optarg;
        else if ((option == 't' && fm_convert_is_time(optarg)) || strchr("FUMD", option))
            wrong = take_choice(&q, option, optarg);
        else if (option == 't')
            q.to = optarg;
        else if (option == 'm')
            q.metric = optarg;
        else if (option == 'f')
            q.force = true;
        else if (option == 'r')
            q.redact = true;
        else if (option == 'h')
            return print_help();
        else
            return fm_verb_usage("convert",
                                 option == ':' ? "%s needs a value" : "there is no option %s",
                                 argv[optind - 1]);
        if (wrong)
            return fm_verb_usage("convert", "%s", wrong);
    }
    if (!argv[optind])
        return fm_verb_usage("convert", "name at least one recording");
    if (!q.output)
        return fm_verb_usage("convert", "name the output with -o");
    int status = convert(&q, argv + optind, &err);
    if (status == FM_USAGE)
        return fm_verb_usage("convert", "%s", err.text);
    return status < 0 ? fm_verb_fail("convert", &err) : 0;
}
