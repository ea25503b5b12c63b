/* The options of sampling; see sample_options.h. */
#include "commands/sample_options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/verb.h"

#define MAX_RATE_HZ 1e6

void fm_sample_options_init(struct fm_sampler_options *options)
{
    *options = (struct fm_sampler_options){ .rate_hz = FM_SAMPLE_DEFAULT_HZ,
                                            .max_cpu_percent = FM_SAMPLE_DEFAULT_MAX_CPU,
                                            .mode = FM_SAMPLE_WALL,
                                            .timeline = true,
                                            .children = true };
}

bool fm_option_number(const char *text, double least, double most, double *ret)
{
    char *end;
    double value = text && *text ? strtod(text, &end) : NAN;
    if (!isfinite(value) || *end || value < least || value > most)
        return false;
    *ret = value;
    return true;
}

bool fm_option_whole(const char *text, long least, long most, long *ret)
{
    char *end;
    errno = 0;
    long value = text && *text ? strtol(text, &end, 10) : 0;
    if (!text || !*text || errno || *end || value < least || value > most)
        return false;
    *ret = value;
    return true;
}

bool fm_option_value(const char *name, char **words, int *at, const char **ret)
{
    const char *word = words[*at];
    size_t len = strlen(name);
    if (strncmp(word, name, len) != 0)
        return false;
    if (word[len] == '\0') {
        *ret = words[*at + 1]; /* NULL at the end */
        *at += *ret ? 2 : 1;
        return true;
    }
    bool is_long = name[1] == '-';
    if (is_long && word[len] != '=')
        return false;
    *ret = word + len + is_long;
    *at += 1;
    return true;
}

bool fm_option_flag(const char *name, char **words, int *at)
{
    if (strcmp(words[*at], name) != 0)
        return false;
    *at += 1;
    return true;
}

static int take_rate(struct fm_sampler_options *options, const char *value, struct fm_error *err)
{
    if (!options->max_cpu_asked)
        options->max_cpu_percent = 0;
    if (value && strcmp(value, "max") == 0) {
        options->rate_hz = 0;
        return 1;
    }
    if (!fm_option_number(value, 1, MAX_RATE_HZ, &options->rate_hz))
        return fm_error_set(err, FM_USAGE,
                            "--rate goes from 1 to 1000000 samples a second, or max");
    return 1;
}

static int take_mode(struct fm_sampler_options *options, enum fm_sample_mode mode,
                     struct fm_error *err)
{
    if (options->mode != FM_SAMPLE_WALL && options->mode != mode)
        return fm_error_set(err, FM_USAGE,
                            "--cpu and --gil choose different threads: give one of them");
    options->mode = mode;
    return 1;
}

int fm_sample_options_take(struct fm_sampler_options *options, char **words, int *at,
                           struct fm_error *err)
{
    const char *value;
    if (fm_option_value("--rate", words, at, &value))
        return take_rate(options, value, err);
    if (fm_option_value("--max-cpu", words, at, &value)) {
        if (!fm_option_number(value, 0.1, 100, &options->max_cpu_percent))
            return fm_error_set(err, FM_USAGE, "--max-cpu goes from 0.1 to 100 percent");
        options->max_cpu_asked = true;
        return 1;
    }
    if (fm_option_flag("--cpu", words, at))
        return take_mode(options, FM_SAMPLE_CPU, err);
    if (fm_option_flag("--gil", words, at))
        return take_mode(options, FM_SAMPLE_GIL, err);
    if (fm_option_flag("--tasks", words, at))
        options->tasks = true;
    else if (fm_option_flag("--no-timeline", words, at))
        options->timeline = false;
    else if (fm_option_flag("--stop", words, at))
        options->way = FM_WAY_STOP;
    else if (fm_option_flag("--no-children", words, at))
        options->children = false;
    else
        return 0;
    return 1;
}

/* What is left when the verb and sampling do not know the word: output or process. */
static int take_watch(struct fm_watch_options *options, char **words, int *at, struct fm_error *err)
{
    const char *value;
    long pid;
    if (fm_option_value("-o", words, at, &value) ||
        fm_option_value("--output", words, at, &value)) {
        options->output = value;
        return value && *value ? 1 : fm_error_set(err, FM_USAGE, "-o needs a name");
    }
    if (fm_option_flag("-f", words, at) || fm_option_flag("--force", words, at)) {
        options->force = true;
        return 1;
    }
    const char *word = words[(*at)++];
    if (word[0] == '-')
        return fm_error_set(err, FM_USAGE, "unknown option %s", word);
    if (options->pid)
        return fm_error_set(err, FM_USAGE, "one process at a time; its children are followed");
    if (!fm_option_whole(word, 1, INT32_MAX, &pid))
        return fm_error_set(err, FM_USAGE, "%s is no process id", word);
    options->pid = (pid_t)pid;
    return 1;
}

int fm_watch_options_parse(struct fm_watch_options *options, const struct fm_watch_verb *verb,
                           int argc, char **argv)
{
    struct fm_error err = FM_ERROR_INIT;
    *options = (struct fm_watch_options){ 0 };
    fm_sample_options_init(&options->sampling);
    for (int at = 1; at < argc && err.status == 0;) {
        if (fm_option_flag("-h", argv, &at) || fm_option_flag("--help", argv, &at))
            return fputs(verb->help, stdout) < 0;
        int taken = fm_sample_options_take(&options->sampling, argv, &at, &err);
        if (taken == 0)
            taken = verb->take(verb->context, argv, &at, &err);
        if (taken == 0)
            take_watch(options, argv, &at, &err);
    }
    if (err.status == 0 && !options->pid)
        fm_error_set(&err, FM_USAGE, "which process? Give its id");
    return err.status < 0 ? fm_verb_usage(verb->name, "%s", err.text) : -1;
}
