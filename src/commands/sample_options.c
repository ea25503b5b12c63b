/* The options of sampling; see sample_options.h. */
#include "commands/sample_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RATE_HZ 1e6

void fm_sample_options_init(struct fm_sampler_options *options)
{
    *options = (struct fm_sampler_options){ .rate_hz = FM_SAMPLE_DEFAULT_HZ,
                                            .max_cpu_percent = FM_SAMPLE_DEFAULT_MAX_CPU,
                                            .mode = FM_SAMPLE_WALL,
                                            .children = true };
}

/* A number between the bounds, written in full. */
static bool parse_number(const char *text, double least, double most, double *ret)
{
    char *end;
    double value = text && *text ? strtod(text, &end) : NAN;
    if (!isfinite(value) || *end || value < least || value > most)
        return false;
    *ret = value;
    return true;
}

/* "--rate 100" or "--rate=100". */
static bool take_value(const char *name, char **words, int *at, const char **ret)
{
    size_t len = strlen(name);
    const char *word = words[*at];
    if (strncmp(word, name, len) != 0 || (word[len] && word[len] != '='))
        return false;
    *ret = word[len] ? word + len + 1 : words[*at + 1];
    *at += word[len] || !*ret ? 1 : 2;
    return true;
}

static int take_rate(struct fm_sampler_options *options, const char *value, struct fm_error *err)
{
    options->max_cpu_percent = 0;
    if (value && strcmp(value, "max") == 0) {
        options->rate_hz = 0;
        return 1;
    }
    if (!parse_number(value, 1, MAX_RATE_HZ, &options->rate_hz))
        return fm_error_set(err, FM_USAGE, "--rate goes from 1 to 1000000 samples a second, or max");
    return 1;
}

int fm_sample_options_take(struct fm_sampler_options *options, char **words, int *at,
                           struct fm_error *err)
{
    const char *value;
    if (take_value("--rate", words, at, &value))
        return take_rate(options, value, err);
    if (take_value("--max-cpu", words, at, &value)) {
        if (!parse_number(value, 0.1, 100, &options->max_cpu_percent))
            return fm_error_set(err, FM_USAGE, "--max-cpu goes from 0.1 to 100 percent");
        return 1;
    }
    int known = 1;
    if (strcmp(words[*at], "--cpu") == 0)
        options->mode = FM_SAMPLE_CPU;
    else if (strcmp(words[*at], "--gil") == 0)
        options->mode = FM_SAMPLE_GIL;
    else if (strcmp(words[*at], "--tasks") == 0)
        options->tasks = true;
    else if (strcmp(words[*at], "--no-children") == 0)
        options->children = false;
    else
        known = 0;
    *at += known;
    return known;
}

int fm_sample_options_seconds(const char *text, uint64_t *ret_ns, struct fm_error *err)
{
    double seconds;
    if (!parse_number(text, 0.001, 1e9, &seconds))
        return fm_error_set(err, FM_USAGE, "--duration needs a number of seconds, 0.001 or more");
    *ret_ns = (uint64_t)(seconds * 1e9);
    return 0;
}
